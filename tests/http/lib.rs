//! Tests of the whole service over HTTP, on both databases; see `tests/`.
