//! Passwords that stand on top of every published list. They are kept in
//! lower case, with at least eight characters: shorter ones are refused
//! anyway.

use std::collections::HashSet;
use std::sync::LazyLock;

static COMMON: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| include_str!("common_passwords.txt").split_whitespace().collect());

/// Whether a password is a common one, whatever its case, or one character
/// over and over.
#[must_use]
pub fn contains(password: &str) -> bool {
    let lower = password.to_lowercase();
    let is_one_character = lower.chars().next().is_some_and(|first| lower.chars().all(|char| char == first));
    is_one_character || COMMON.contains(lower.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_holds_what_can_be_asked() {
        assert!(COMMON.len() >= 300, "{}", COMMON.len());
        for entry in COMMON.iter() {
            assert!(entry.len() >= 8 && *entry == entry.to_lowercase(), "{entry}");
        }
        assert!(contains("PASSWORD1") && contains("zzzzzzzzzzzz"));
        assert!(!contains("a sentence that nobody else has"));
    }
}
