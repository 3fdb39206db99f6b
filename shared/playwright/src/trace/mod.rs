//! Reads Playwright traces without fetching them: the directory at the end of
//! the archive, and then only the entries a question needs.
//!
//! Reading is in two halves. [`Archive`] asks a [`ByteRanges`] for stretches of
//! the file and keeps no more than the compressed entries; [`Trace::parse`] is
//! plain computation on them. Whatever an archive claims about itself, nothing
//! grows beyond [`Limits`], names never become paths, and what cannot be read
//! is an error or is left out, never a panic.
//!
//! Recorded formats are 6, 7 and 10 (Playwright 1.40, 1.46 and 1.65); 5, 8 and
//! 9 lie between them, and newer ones are read as far as they are alike.

mod archive;
pub mod dom;
mod events;
mod failing;
mod network;
mod parse;
pub mod pool;
mod resources;
mod stacks;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::ops::Range;

pub use archive::{Archive, Packed};
pub use events::Frame;
pub use failing::FailingAction;
pub use network::{Body, ConsoleLine, Exchange, Header};
pub use parse::{Action, ActionError, Attachment, ScreencastFrame, Trace, TraceFiles};
pub use resources::{resource_name, source_name};

/// A file that is read in stretches.
pub trait ByteRanges: Sync {
    /// Why a read failed.
    type Error: Send;

    /// Length of the file in bytes.
    fn size(&self) -> u64;

    /// The bytes of `range`, which lies within the file. Fewer bytes are an
    /// archive that ends early.
    fn read(&self, range: Range<u64>) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send;
}

/// Bounds of what is read of one trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most entries of the archive.
    pub entries: usize,
    /// Most compressed bytes that are fetched at a time.
    pub fetched_bytes: u64,
    /// Most inflated bytes of one entry.
    pub entry_bytes: u64,
    /// Most inflated bytes altogether.
    pub total_bytes: u64,
    /// Most times an entry may grow when it is inflated.
    pub ratio: u64,
    /// Most events.
    pub events: usize,
    /// Longest line in bytes; longer ones are left out.
    pub line_bytes: usize,
}

impl Limits {
    /// The limits of the service.
    pub const DEFAULT: Self = Self {
        entries: 20_000,
        fetched_bytes: 32 << 20,
        entry_bytes: 64 << 20,
        total_bytes: 200 << 20,
        ratio: 200,
        events: 100_000,
        line_bytes: 4 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a trace is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError<E> {
    /// Something is larger than [`Limits`] allow.
    #[error("the trace is larger than what is read: {0}")]
    TooLarge(&'static str),
    /// Not an archive, or damaged, or made in a way that is not understood.
    #[error("the trace cannot be read: {0}")]
    Unreadable(&'static str),
    /// The file could not be fetched.
    #[error("the trace could not be fetched")]
    Source(E),
}

/// An error of the half that fetches nothing.
pub type ParseError = TraceError<std::convert::Infallible>;

impl ParseError {
    /// The same error for readers that fetch as well.
    #[must_use]
    pub fn widen<E>(self) -> TraceError<E> {
        match self {
            Self::TooLarge(what) => TraceError::TooLarge(what),
            Self::Unreadable(what) => TraceError::Unreadable(what),
            Self::Source(never) => match never {},
        }
    }
}
