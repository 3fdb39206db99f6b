//! The whole service in the test process, over a fresh database and a folder
//! for its files.
