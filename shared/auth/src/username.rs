//! Names to sign in with: which are allowed, and when two are the same.

use unicode_normalization::UnicodeNormalization;

const MIN_CHARS: usize = 3;
pub(crate) const MAX_CHARS: usize = 64;

/// Why a name cannot be an account's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UsernameRefused {
    /// Too short or too long.
    #[error("username must have {MIN_CHARS} to {MAX_CHARS} characters.")]
    Length,
    /// Space at an end.
    #[error("username must not begin or end with a space.")]
    OuterSpace,
    /// Characters that nobody sees.
    #[error("username must not contain control or formatting characters.")]
    Invisible,
}

/// Judges the name of a new account, or a new name of an old one.
///
/// # Errors
/// [`UsernameRefused`].
pub fn judge_username(name: &str) -> Result<(), UsernameRefused> {
    if name.chars().any(|char| char.is_control() || is_format(char)) {
        return Err(UsernameRefused::Invisible);
    }
    if name.trim() != name {
        return Err(UsernameRefused::OuterSpace);
    }
    // The bound on bytes keeps the count short.
    if name.len() > MAX_CHARS * 4 || !(MIN_CHARS..=MAX_CHARS).contains(&name.chars().count()) {
        return Err(UsernameRefused::Length);
    }
    Ok(())
}

/// What a name is found by: names that look alike in case or width are the
/// same name. Compatibility composition around a full case fold; folding can
/// uncompose and composing can bring new letters, so both are repeated until
/// nothing changes.
#[must_use]
pub fn username_key(name: &str) -> String {
    const ROUNDS: usize = 4;
    let mut key: String = name.nfkc().collect();
    for _ in 0..ROUNDS {
        // Upper and lower again: the two lower forms of sigma, and ß and ss, meet.
        let folded: String =
            key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect();
        if folded == key {
            break;
        }
        key = folded;
    }
    key
}

/// Unicode's category Cf, and the separators of lines and paragraphs.
const fn is_format(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_judged_by_what_can_be_seen() {
        for name in ["ada", "Ada Lovelace", "ada@example.org", "зоя", &"a".repeat(64)] {
            assert_eq!(judge_username(name), Ok(()), "{name}");
        }
        for (name, why) in [
            ("ad", UsernameRefused::Length),
            ("", UsernameRefused::Length),
            (&"a".repeat(65), UsernameRefused::Length),
            (" ada", UsernameRefused::OuterSpace),
            ("ada\u{a0}", UsernameRefused::OuterSpace),
            ("a\nda", UsernameRefused::Invisible),
            ("ada\0", UsernameRefused::Invisible),
            ("a\u{200b}da", UsernameRefused::Invisible),
            ("\u{202e}ada", UsernameRefused::Invisible),
        ] {
            assert_eq!(judge_username(name), Err(why), "{name:?}");
        }
    }

    #[test]
    fn names_that_differ_in_case_or_width_are_one_name() {
        for (one, other) in [
            ("Ada", "aDA"),
            ("ａｄａ", "ada"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("ﬁn", "FIN"),
            ("e\u{301}a", "Éa"),
        ] {
            assert_eq!(username_key(one), username_key(other), "{one} {other}");
        }
        assert_ne!(username_key("ada"), username_key("adа"));
    }

    proptest! {
        #[test]
        fn the_key_of_a_key_is_itself(name in "\\PC{0,12}") {
            let key = username_key(&name);
            prop_assert_eq!(username_key(&key), key);
        }

        #[test]
        fn the_case_of_a_name_does_not_matter(name in "[a-zA-Zß-ÿÀ-ÖΑ-ΡΣ-Ωα-ωА-Яа-я]{1,12}") {
            prop_assert_eq!(username_key(&name.to_uppercase()), username_key(&name));
        }
    }
}
