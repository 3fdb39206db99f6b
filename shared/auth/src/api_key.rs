//! API keys: `pd_` and 64 hexadecimal digits, shown once, kept as a hash.

use sha2::{Digest, Sha256};

use crate::keys::SealingFailed;

const PREFIX: &str = "pd_";
const KEY_BYTES: usize = 32;
/// Digits of a key that lists show.
const SHOWN_DIGITS: usize = 8;

/// A key that was just made.
#[derive(Clone)]
pub struct NewApiKey {
    /// The key. It is shown once and never stored.
    pub text: String,
    /// What is stored in its place.
    pub hash: [u8; 32],
    /// What lists show: the prefix and the first digits.
    pub shown: String,
}

impl std::fmt::Debug for NewApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewApiKey({}…)", self.shown)
    }
}

/// Makes a key.
///
/// # Errors
/// [`SealingFailed::NoRandomness`].
pub fn mint() -> Result<NewApiKey, SealingFailed> {
    let mut bytes = [0_u8; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|_| SealingFailed::NoRandomness)?;
    let text = format!("{PREFIX}{}", hex::encode(bytes));
    let shown = text[..PREFIX.len() + SHOWN_DIGITS].to_owned();
    Ok(NewApiKey { hash: Sha256::digest(&text).into(), shown, text })
}

/// The stored form of what was presented as a key; `None` when it does not
/// have the exact form of one, so that no statement runs for it.
#[must_use]
pub fn hash_of(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(PREFIX)?;
    let is_key = digits.len() == KEY_BYTES * 2
        && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    is_key.then(|| Sha256::digest(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_found_by_its_hash_and_shown_by_its_beginning() {
        let key = mint().unwrap();
        assert_eq!(hash_of(&key.text), Some(key.hash));
        assert_eq!(key.text.len(), 67);
        assert!(key.shown.len() == 11 && key.text.starts_with(&key.shown));
        assert_ne!(key.text, mint().unwrap().text);
        assert!(!format!("{key:?}").contains(&key.text));
    }

    #[test]
    fn what_only_looks_like_a_key_is_none() {
        let digits = "0123456789abcdef".repeat(4);
        assert!(hash_of(&format!("pd_{digits}")).is_some());
        for text in [
            format!("pd_{}", digits.to_uppercase()),
            format!("pd_{}", &digits[1..]),
            format!("pd_{digits}0"),
            format!("PD_{digits}"),
            format!("pd_{digits}\n"),
            format!(" pd_{digits}"),
            format!("pd-{digits}"),
            digits.clone(),
            String::new(),
        ] {
            assert_eq!(hash_of(&text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text in "(pd_)?\\PC{0,80}") {
            let is_key = text.len() == 67 && text.starts_with("pd_")
                && text[3..].chars().all(|char| matches!(char, '0'..='9' | 'a'..='f'));
            prop_assert_eq!(hash_of(&text).is_some(), is_key);
        }
    }
}
