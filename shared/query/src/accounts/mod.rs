//! Accounts: recognising callers, signing in, and everything people and
//! administrators do with accounts.

pub mod acting;
pub mod addresses;
pub mod api_keys;
pub mod auth_mode;
pub mod editing;
pub mod enabling;
pub mod invitations;
pub mod invite_mail;
pub mod mails;
mod masking;
pub mod members;
pub mod own;
pub mod passwords;
pub mod providers;
pub mod recognise;
pub mod refusal;
pub mod refused_access;
pub mod rule;
pub mod sessions;
pub mod setup;
pub mod sign_in;
pub mod users;
pub mod visitor;

pub use acting::Acting;
pub use rule::AccountRule;
