//! Secrets at rest: `sk1:<kid>:<nonce>:<ciphertext and tag>`, bound to the
//! place they are stored in, so that one moved to another row does not open.

use base64ct::{Base64UrlUnpadded, Encoding};
use zeroize::Zeroizing;

use crate::keys::{KEY_ID_BYTES, KeyRing, NONCE_BYTES, Opened, Purpose, SealingFailed, Secrets};

const FORM: &str = "sk1";
/// The first byte of what a key ring seals, which the form stands for here.
const VERSION_BYTES: usize = 1;

/// Where a secret is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(String);

impl Place {
    /// A column of a row. Names of tables and columns hold no `|`.
    #[must_use]
    pub fn new(table: &'static str, column: &'static str, row: impl std::fmt::Display) -> Self {
        Self(format!("{table}|{column}|{row}"))
    }
}

/// Why a secret cannot be stored or used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretUnusable {
    /// `SERVICE_SECRET_KEY` is not set (503 `secret_key_not_configured`).
    #[error("Secrets cannot be stored: SERVICE_SECRET_KEY is not set.")]
    NotConfigured,
    /// It is not in the form of a stored secret. It is never taken as plain
    /// text.
    #[error("A stored secret is not in a form this version knows.")]
    UnknownForm,
    /// The key is not among the configured ones, or the value was altered or
    /// moved.
    #[error("A stored secret does not open; is its key missing from SERVICE_SECRET_KEY?")]
    DoesNotOpen,
    /// It could not be sealed.
    #[error(transparent)]
    Sealing(SealingFailed),
}

/// Seals secrets for the database and opens them.
#[derive(Debug, Clone)]
pub struct StoredSecrets(Option<KeyRing>);

impl StoredSecrets {
    /// With the keys of `SERVICE_SECRET_KEY`, which may be none.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self((!secrets.is_empty()).then(|| KeyRing::derive(secrets, Purpose::STORED_SECRET)))
    }

    fn ring(&self) -> Result<&KeyRing, SecretUnusable> {
        self.0.as_ref().ok_or(SecretUnusable::NotConfigured)
    }

    /// Fails when there is no key to seal with.
    ///
    /// # Errors
    /// [`SecretUnusable::NotConfigured`].
    pub fn require_key(&self) -> Result<(), SecretUnusable> {
        self.ring().map(|_| ())
    }

    /// Seals a secret for a place.
    ///
    /// # Errors
    /// [`SecretUnusable::NotConfigured`] without a key.
    pub fn seal(&self, place: &Place, plain: &str) -> Result<String, SecretUnusable> {
        let sealed =
            self.ring()?.seal(plain.as_bytes(), place.0.as_bytes()).map_err(SecretUnusable::Sealing)?;
        let (head, rest) = sealed.split_at(VERSION_BYTES + KEY_ID_BYTES);
        let (nonce, rest) = rest.split_at(NONCE_BYTES);
        let [kid, nonce, rest] = [&head[VERSION_BYTES..], nonce, rest].map(Base64UrlUnpadded::encode_string);
        Ok(format!("{FORM}:{kid}:{nonce}:{rest}"))
    }

    /// Opens the secret of a place.
    ///
    /// # Errors
    /// [`SecretUnusable`].
    pub fn open(&self, place: &Place, stored: &str) -> Result<Zeroizing<String>, SecretUnusable> {
        Ok(self.opened(place, stored)?.value)
    }

    /// The secret sealed with the newest key, when an older one sealed it;
    /// `None` when it is as it should be.
    ///
    /// # Errors
    /// [`SecretUnusable`].
    pub fn reseal(&self, place: &Place, stored: &str) -> Result<Option<String>, SecretUnusable> {
        let opened = self.opened(place, stored)?;
        opened.by_old_key.then(|| self.seal(place, &opened.value)).transpose()
    }

    fn opened(&self, place: &Place, stored: &str) -> Result<Opened<Zeroizing<String>>, SecretUnusable> {
        let ring = self.ring()?;
        let sealed = parse(stored).ok_or(SecretUnusable::UnknownForm)?;
        let Opened { value, by_old_key } =
            ring.open(&sealed, place.0.as_bytes()).ok_or(SecretUnusable::DoesNotOpen)?;
        let value = String::from_utf8(value).map_err(|_| SecretUnusable::DoesNotOpen)?;
        Ok(Opened { value: Zeroizing::new(value), by_old_key })
    }
}

/// The bytes a key ring opens.
fn parse(stored: &str) -> Option<Vec<u8>> {
    let mut parts = stored.split(':');
    if parts.next() != Some(FORM) {
        return None;
    }
    let mut sealed = vec![1];
    for length in [Some(KEY_ID_BYTES), Some(NONCE_BYTES), None] {
        let part = Base64UrlUnpadded::decode_vec(parts.next()?).ok()?;
        if length.is_some_and(|length| length != part.len()) {
            return None;
        }
        sealed.extend(part);
    }
    parts.next().is_none().then_some(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &[u8] = b"a secret of thirty-two bytes!!!!";
    const NEWER: &[u8] = b"another secret of this length!!!";

    fn stored_secrets(secrets: &[&[u8]]) -> StoredSecrets {
        StoredSecrets::new(&Secrets::new(secrets))
    }

    fn place(row: i64) -> Place {
        Place::new("channels", "secret", row)
    }

    #[test]
    fn a_secret_opens_in_its_place_and_nowhere_else() {
        let secrets = stored_secrets(&[SECRET]);
        let stored = secrets.seal(&place(7), "hunter2").unwrap();
        assert!(stored.starts_with("sk1:") && !stored.contains("hunter2"), "{stored}");
        assert_eq!(secrets.open(&place(7), &stored).unwrap().as_str(), "hunter2");
        for other in [place(8), Place::new("channels", "token", 7), Place::new("settings", "secret", 7)] {
            assert_eq!(secrets.open(&other, &stored), Err(SecretUnusable::DoesNotOpen));
        }
        assert_eq!(stored_secrets(&[NEWER]).open(&place(7), &stored), Err(SecretUnusable::DoesNotOpen));
    }

    #[test]
    fn nothing_is_stored_without_a_key_and_plain_text_is_no_secret() {
        let none = stored_secrets(&[]);
        assert_eq!(none.seal(&place(7), "hunter2"), Err(SecretUnusable::NotConfigured));
        let secrets = stored_secrets(&[SECRET]);
        let stored = secrets.seal(&place(7), "hunter2").unwrap();
        for unknown in [
            "hunter2",
            "",
            "sk1:",
            "sk1:::",
            &stored.replace("sk1", "sk2"),
            &format!("{stored}:"),
            &stored[1..],
        ] {
            assert_eq!(secrets.open(&place(7), unknown), Err(SecretUnusable::UnknownForm), "{unknown}");
        }
    }

    #[test]
    fn sealing_again_brings_old_secrets_to_the_newest_key_once() {
        let old = stored_secrets(&[SECRET]).seal(&place(7), "hunter2").unwrap();
        let both = stored_secrets(&[NEWER, SECRET]);
        let again = both.reseal(&place(7), &old).unwrap().unwrap();
        assert_eq!(both.reseal(&place(7), &again), Ok(None));
        assert_eq!(stored_secrets(&[NEWER]).open(&place(7), &again).unwrap().as_str(), "hunter2");
    }

    proptest! {
        #[test]
        fn any_stored_text_is_judged_without_a_panic(text in "(sk1:)?[-_:0-9A-Za-z]{0,60}") {
            prop_assert!(stored_secrets(&[SECRET]).open(&place(1), &text).is_err());
        }
    }
}
