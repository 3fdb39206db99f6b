//! How the audit log shows personal data that changed: enough to recognise it,
//! not enough to learn it.

use callboard_store::accounts::users::UserRow;
use serde_json::{Value, json};

const HIDDEN: char = '…';

/// The first letter of a name: `A…`.
pub(super) fn mask_name(name: &str) -> String {
    name.chars().take(1).chain([HIDDEN]).collect()
}

/// The first letter of the mailbox and the domain: `a…@example.org`.
pub(super) fn mask_address(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((mailbox, domain)) => format!("{}@{domain}", mask_name(mailbox)),
        None => mask_name(address),
    }
}

/// The addresses of an account before and after a change.
pub(super) fn masked_address_change(before: &UserRow, after: &UserRow) -> Value {
    let masked = |user: &UserRow| user.email.as_ref().map(|email| mask_address(&email.address));
    json!({ "from": masked(before), "to": masked(after) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_keeps_the_first_letter_and_the_domain() {
        assert_eq!(mask_address("ada@example.org"), "a…@example.org");
        assert_eq!(mask_address("\"a@b\"@example.org"), "\"…@example.org");
        assert_eq!(mask_address("ada"), "a…");
        assert_eq!(mask_name("Ада"), "А…");
        assert_eq!(mask_name(""), "…");
    }
}
