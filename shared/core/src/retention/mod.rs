//! The retention settings as their rows hold them. What a policy deletes, and
//! when a change of it comes into force, is decided in the query layer.

mod held_branches;
mod preview;
mod stored;

pub use held_branches::HeldBranches;
pub use preview::{Exemptions, Preview};
pub use stored::{Pending, Stored};
