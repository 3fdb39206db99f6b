//! Finds the element a test lost, and a locator that finds it again.
//!
//! [`heal`] compares what is known of the lost element with the elements of
//! the failing page; [`locators`] writes calls that find one of them, with
//! their costs; [`rewrite`] puts such a call into the source line. All of it
//! is arithmetic on values: elements come from what the reporter stored
//! ([`element`]), the failing [`Page`] from an accessibility snapshot ([`aria`])
//! or the document of a trace ([`inventory`]).

pub mod aria;
pub mod candidates;
pub mod element;
pub mod inventory;
pub mod locator_identity;
mod matcher;
mod page;
pub mod ratio;
mod resolve;
pub mod rewrite;
pub mod verify;

#[cfg(test)]
mod tests;

pub use candidates::{Call, Locator, Priced, Recommendation, locators, recommend};
pub use element::Element;
pub use locator_identity::{Finder, chain_in_error};
pub use matcher::{Answer, Ranked, Verdict, heal, is_like};
pub use page::Page;
pub use resolve::{Found, found_by};
