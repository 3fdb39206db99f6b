//! The parts of the benchmark, each measurable on its own.

pub mod commits;
pub mod history;
pub mod memory;
pub mod projects;
pub mod read;
pub mod size;
pub mod start;
pub mod stream;
pub mod submit;
pub mod upload;

use callboard_domain::time::Timestamp;

/// What all parts share.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Determines what is sent.
    pub seed: u64,
    /// When the newest generated run starts, about.
    pub until: Timestamp,
    /// Whether a glimpse is enough: far fewer requests.
    pub quick: bool,
}

impl Setting {
    /// A number of requests or runs, less when a glimpse is enough.
    #[must_use]
    pub const fn bounded(&self, wanted: usize) -> usize {
        if self.quick { wanted.div_ceil(10) } else { wanted }
    }
}
