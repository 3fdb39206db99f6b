//! What is stored as files that leave the service: the tests of a run as they
//! are asked for ([`RunFile`]), and anything larger by a job ([`later`]).
//! Everything is read and written in pages, so its size does not matter.

mod csv;
mod ctrf;
mod junit;
pub mod later;
mod reading;
mod run_file;

pub use reading::{ExportHead, ExportWish, ExportedTest, head, page};
pub use run_file::{Part, RunFile};
