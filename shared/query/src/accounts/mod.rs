//! Accounts: recognising callers, signing in, and everything people and
//! administrators do with accounts.

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
pub mod refused_access;
pub mod sessions;
pub mod setup;
pub mod sign_in;
pub mod users;
pub mod visitor;

pub use callboard_core::account_refusal as refusal;
pub use callboard_core::account_rule::{self as rule, AccountRule};
pub use callboard_core::acting::{self, Acting};
