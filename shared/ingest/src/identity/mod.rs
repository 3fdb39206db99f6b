//! Tests that are the same under two paths: what finds them, joins their
//! histories, and makes them two again.

pub(crate) mod checking;
pub(crate) mod decisions;
pub(crate) mod finding;
pub(crate) mod joining;
mod rekeying;
