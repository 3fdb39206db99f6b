//! Tokens in links: `<kind>_<30 letters>_<checksum>`. The checksum tells a
//! mistyped or cut link apart before the database is asked; what is stored is
//! a hash.

use sha2::{Digest, Sha256};

use crate::keys::SealingFailed;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LETTERS: usize = 30;
const CHECK_LETTERS: usize = 6;

/// What a token opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Setting a new password.
    Reset,
    /// Proving an e-mail address.
    Verify,
    /// Setting the first password of an invited account.
    Invite,
    /// The badge of a project, for anybody who has the link.
    Badge,
}

impl TokenKind {
    const ALL: [Self; 4] = [Self::Reset, Self::Verify, Self::Invite, Self::Badge];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Reset => "srp",
            Self::Verify => "sve",
            Self::Invite => "siv",
            Self::Badge => "sbg",
        }
    }
}

/// A token that was just made.
#[derive(Clone)]
pub struct NewToken {
    /// The token. It leaves in a link and is never stored.
    pub text: String,
    /// What is stored in its place.
    pub hash: [u8; 32],
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NewToken")
    }
}

/// Makes a token.
///
/// # Errors
/// [`SealingFailed::NoRandomness`].
pub fn mint(kind: TokenKind) -> Result<NewToken, SealingFailed> {
    let mut body = format!("{}_", kind.prefix());
    let length = body.len() + LETTERS;
    while body.len() < length {
        let mut bytes = [0_u8; LETTERS];
        getrandom::fill(&mut bytes).map_err(|_| SealingFailed::NoRandomness)?;
        // Bytes above the last whole round of the alphabet would prefer its beginning.
        let fair = bytes.into_iter().filter(|byte| *byte < 62 * 4);
        let wanted = length - body.len();
        body.extend(fair.take(wanted).map(|byte| char::from(ALPHABET[usize::from(byte % 62)])));
    }
    let text = format!("{body}_{}", checksum(&body));
    Ok(NewToken { hash: Sha256::digest(&text).into(), text })
}

/// Kind and stored form of a token; `None` when it is not one of ours, or
/// was mistyped.
#[must_use]
pub fn read(text: &str) -> Option<(TokenKind, [u8; 32])> {
    let (body, check) = text.rsplit_once('_')?;
    let (prefix, letters) = body.split_once('_')?;
    let kind = TokenKind::ALL.into_iter().find(|kind| kind.prefix() == prefix)?;
    let is_ours = letters.len() == LETTERS
        && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && check == checksum(body);
    is_ours.then(|| (kind, Sha256::digest(text).into()))
}

/// CRC-32 as six digits of base 62, the highest first.
fn checksum(body: &str) -> String {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECK_LETTERS];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_is_read_back_as_its_kind() {
        for kind in TokenKind::ALL {
            let token = mint(kind).unwrap();
            assert_eq!(token.text.len(), 3 + 1 + 30 + 1 + 6);
            assert_eq!(read(&token.text), Some((kind, token.hash)));
        }
        assert_ne!(mint(TokenKind::Reset).unwrap().text, mint(TokenKind::Reset).unwrap().text);
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        // CRC-32 of "123456789" is 0xCBF43926 = 3,421,780,262.
        assert_eq!(checksum("123456789"), "3jZRME");
    }

    #[test]
    fn a_changed_letter_is_noticed() {
        let token = mint(TokenKind::Verify).unwrap().text;
        for at in 0..token.len() {
            for letter in ['A', 'b', '_', ' ', 'é'] {
                let mut altered: Vec<char> = token.chars().collect();
                if altered[at] == letter {
                    continue;
                }
                altered[at] = letter;
                assert_eq!(read(&altered.into_iter().collect::<String>()), None);
            }
            assert_eq!(read(&token[..at]), None);
        }
        assert_eq!(read(&token.replacen("sve", "srp", 1)), None);
        assert_eq!(read(&format!("{token}\n")), None);
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_a_panic(text in "(srp|sve|siv|sbg)?_?[0-9A-Za-z]{0,32}_?\\PC{0,8}") {
            prop_assert!(read(&text).is_none());
        }
    }
}
