//! Taking a run out of everything that counts it, and back.

pub(crate) mod restoring;
pub(crate) mod rollup_reversal;
