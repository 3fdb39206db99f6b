//! What commands and queries share: why something is refused, who acts, how an
//! edit names a field, where pages are, and retrying what gave way to others.
//!
//! Must not live here: anything that reads or writes results. The one thing that
//! writes is the audit log of [`acting`].

pub mod account_refusal;
pub mod account_rule;
pub mod acting;
pub mod administration;
mod change;
mod error;
mod links;
pub mod retention;
pub mod retry;
mod totals;

pub use acting::Acting;
pub use change::Change;
pub use error::{Entity, LifeRefusal, QueryError, Result, TokenRefusal};
pub use links::Links;
pub use totals::Totals;
