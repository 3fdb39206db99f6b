//! Accounts: who exists, what they reach, how they are recognised.
//!
//! `principal` is the one statement that answers "who is this and which
//! projects are theirs"; the other modules keep the rows behind it. Names,
//! addresses and secrets arrive here normalised and hashed: nothing in these
//! tables opens anything by itself.

pub mod api_keys;
pub mod assignments;
pub mod invitations;
pub mod principal;
pub mod sessions;
pub mod tokens;
pub mod used_states;
pub mod users;
