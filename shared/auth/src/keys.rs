//! Keys out of secrets: every key of the service is derived here, for one
//! purpose each, and everything that is sealed is sealed here.
//!
//! A sealed value is `0x01 ‖ kid ‖ nonce ‖ AES-256-GCM(plain)`. Purpose and
//! kid are authenticated with it, so a value of one kind never opens as
//! another. The first secret of a list seals, all open.

use aes_gcm::aead::{Aead, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64ct::{Base64UrlUnpadded, Encoding};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

const SALT: &[u8] = b"svc-kdf-v1";
const VERSION: u8 = 1;
/// Length of the kid, the name a sealed value carries of its key.
pub const KEY_ID_BYTES: usize = 4;
/// Length of the random nonce.
pub const NONCE_BYTES: usize = 12;
/// Bytes from which a secret is taken as random enough to be used as it is.
pub const FULL_SECRET_BYTES: usize = 32;
/// A whole block of SHA-256, so that HMAC takes the key as it is.
const MAC_KEY_BYTES: usize = 64;
/// log2 of the work that stretches a shorter secret: 32 MiB, as a password's.
const STRETCH_LOG_N: u8 = 15;

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose(&'static str);

impl Purpose {
    /// Session cookies.
    pub const SESSION: Self = Self("session/v1");
    /// The cookie between the start and the callback of a sign-in elsewhere.
    pub const OAUTH: Self = Self("oauth-tx/v1");
    /// The cookie that tells a known browser.
    pub const DEVICE: Self = Self("device/v1");
    /// The cookie that keeps the name of a refused sign-in for its form.
    pub const REFUSED_NAME: Self = Self("refused-name/v1");
    /// File grants.
    pub const FILE_GRANT: Self = Self("file-grant/v1");
    /// Keys of rate limit rows, and hashes of addresses.
    pub const RATE: Self = Self("rate/v1");
    /// Answers kept for requests that are sent again.
    pub const KEPT_ANSWER: Self = Self("kept-answer/v1");
    /// Secrets in the database.
    pub const STORED_SECRET: Self = Self("db-secret/v1");
    /// Calls of the schedule.
    pub const TICK: Self = Self("tick/v1");
}

/// The configured secrets, the sealing one first. Short ones are stretched
/// when this is made, which takes about a fifth of a second each.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Zeroizing<Vec<u8>>>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Takes secrets as configured.
    #[must_use]
    pub fn new<S: AsRef<[u8]>>(secrets: &[S]) -> Self {
        Self(secrets.iter().map(|secret| stretched(secret.as_ref())).collect())
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn stretched(secret: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut material = Zeroizing::new(vec![0_u8; FULL_SECRET_BYTES]);
    if secret.len() < FULL_SECRET_BYTES
        && let Ok(params) = scrypt::Params::new(STRETCH_LOG_N, 8, 3)
        && scrypt::scrypt(secret, SALT, &params, &mut material).is_ok()
    {
        return material;
    }
    Zeroizing::new(secret.to_vec())
}

/// Why nothing could be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealingFailed {
    /// No secret is configured.
    #[error("cannot seal: no secret is configured")]
    NoSecret,
    /// The system gave no random bytes.
    #[error("cannot seal: the system gives no random bytes")]
    NoRandomness,
    /// More bytes than the cipher takes.
    #[error("cannot seal: the value is too long")]
    TooLong,
}

/// The keys of one purpose.
#[derive(Clone)]
pub struct KeyRing {
    purpose: Purpose,
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: [u8; KEY_ID_BYTES],
    cipher: Aes256Gcm,
}

/// An opened value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened<T> {
    /// What was sealed.
    pub value: T,
    /// Whether a key that no longer seals opened it: seal it again.
    pub by_old_key: bool,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyRing({}, {} keys)", self.purpose.0, self.keys.len())
    }
}

impl KeyRing {
    /// Derives the keys of a purpose.
    #[must_use]
    pub fn derive(secrets: &Secrets, purpose: Purpose) -> Self {
        let keys = secrets
            .0
            .iter()
            .map(|secret| {
                let key = Zeroizing::new(derived::<32>(secret, purpose.0));
                let id = derived(secret, &format!("kid/{}", purpose.0));
                Key { id, cipher: Aes256Gcm::new((&*key).into()) }
            })
            .collect();
        Self { purpose, keys }
    }

    /// Seals a value. `bound_to` must be given again to open it.
    ///
    /// # Errors
    /// [`SealingFailed`].
    pub fn seal(&self, plain: &[u8], bound_to: &[u8]) -> Result<Vec<u8>, SealingFailed> {
        let key = self.keys.first().ok_or(SealingFailed::NoSecret)?;
        let mut nonce = [0_u8; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SealingFailed::NoRandomness)?;
        let aad = self.associated_data(key, bound_to);
        let sealed = key
            .cipher
            .encrypt(&Nonce::from(nonce), Payload { msg: plain, aad: &aad })
            .map_err(|_| SealingFailed::TooLong)?;
        Ok([&[VERSION][..], &key.id, &nonce, &sealed].concat())
    }

    /// Opens a value; `None` when it was not sealed by these keys for this
    /// purpose and `bound_to`, or was altered.
    #[must_use]
    pub fn open(&self, sealed: &[u8], bound_to: &[u8]) -> Option<Opened<Vec<u8>>> {
        let rest = sealed.strip_prefix(&[VERSION])?;
        let (id, rest) = rest.split_first_chunk::<KEY_ID_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        self.keys.iter().enumerate().filter(|(_, key)| key.id == *id).find_map(|(at, key)| {
            let aad = self.associated_data(key, bound_to);
            let value = key.cipher.decrypt(&Nonce::from(*nonce), Payload { msg: sealed, aad: &aad }).ok()?;
            Some(Opened { value, by_old_key: at > 0 })
        })
    }

    /// Seals a value as text that fits into cookies and paths.
    ///
    /// # Errors
    /// [`SealingFailed`].
    pub fn seal_text(&self, plain: &[u8], bound_to: &[u8]) -> Result<String, SealingFailed> {
        Ok(Base64UrlUnpadded::encode_string(&self.seal(plain, bound_to)?))
    }

    /// Opens what [`KeyRing::seal_text`] made; longer texts than `max_chars`
    /// are not looked at.
    #[must_use]
    pub fn open_text(&self, text: &str, bound_to: &[u8], max_chars: usize) -> Option<Opened<Vec<u8>>> {
        if text.len() > max_chars {
            return None;
        }
        self.open(&Base64UrlUnpadded::decode_vec(text).ok()?, bound_to)
    }

    /// The purpose is fixed for a ring and the kid has one length, so nothing
    /// in front of `bound_to` can be taken for a part of it.
    fn associated_data(&self, key: &Key, bound_to: &[u8]) -> Vec<u8> {
        [b"svc/", self.purpose.0.as_bytes(), &key.id, bound_to].concat()
    }
}

/// A key that turns values into names nobody else can compute.
#[derive(Clone)]
pub struct MacKey(Zeroizing<[u8; MAC_KEY_BYTES]>);

impl std::fmt::Debug for MacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MacKey")
    }
}

impl MacKey {
    /// The key of a purpose, of the sealing secret; `None` without one.
    #[must_use]
    pub fn derive(secrets: &Secrets, purpose: Purpose) -> Option<Self> {
        Some(Self(derived(secrets.0.first()?, purpose.0).into()))
    }

    /// The keys of a purpose, of every secret.
    #[must_use]
    pub fn derive_all(secrets: &Secrets, purpose: Purpose) -> Vec<Self> {
        secrets.0.iter().map(|secret| Self(derived(secret, purpose.0).into())).collect()
    }

    /// Whether `tag` is the HMAC-SHA256 of a message as it is; takes the same
    /// time whatever differs.
    #[must_use]
    pub fn verifies(&self, message: &[u8], tag: &[u8]) -> bool {
        let mut mac = Hmac::<Sha256>::new((&*self.0).into());
        mac.update(message);
        mac.verify_slice(tag).is_ok()
    }

    /// HMAC-SHA256 of parts. Each part is preceded by its length, so moving
    /// a boundary changes the result.
    #[must_use]
    pub fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new((&*self.0).into());
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// HKDF-SHA256. It only fails for outputs of more than 8,160 bytes.
fn derived<const N: usize>(secret: &[u8], info: &str) -> [u8; N] {
    let mut out = [0_u8; N];
    let expanded = Hkdf::<Sha256>::new(Some(SALT), secret).expand(info.as_bytes(), &mut out);
    debug_assert!(expanded.is_ok());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"a secret of thirty-two bytes!!!!";
    const OTHER: &[u8] = b"another secret of this length!!!";

    fn ring(secrets: &[&[u8]], purpose: Purpose) -> KeyRing {
        KeyRing::derive(&Secrets::new(secrets), purpose)
    }

    #[test]
    fn what_was_sealed_opens_and_one_flipped_bit_closes_it() {
        let ring = ring(&[SECRET], Purpose::SESSION);
        let sealed = ring.seal(b"value", b"name").unwrap();
        let opened = ring.open(&sealed, b"name").unwrap();
        assert_eq!((opened.value.as_slice(), opened.by_old_key), (&b"value"[..], false));
        for bit in 0..sealed.len() * 8 {
            let mut altered = sealed.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ring.open(&altered, b"name"), None, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(ring.open(&sealed[..length], b"name"), None, "cut to {length}");
        }
    }

    #[test]
    fn another_secret_purpose_or_binding_does_not_open_it() {
        let session = ring(&[SECRET], Purpose::SESSION);
        let sealed = session.seal(b"value", b"name").unwrap();
        assert_eq!(session.open(&sealed, b"other name"), None);
        assert_eq!(ring(&[OTHER], Purpose::SESSION).open(&sealed, b"name"), None);
        assert_eq!(ring(&[], Purpose::SESSION).open(&sealed, b"name"), None);
        // The kid differs by purpose; with the other purpose's kid in its place the cipher refuses.
        let device = ring(&[SECRET], Purpose::DEVICE);
        assert_eq!(device.open(&sealed, b"name"), None);
        let theirs = device.seal(b"value", b"name").unwrap();
        let mut grafted = sealed;
        grafted[1..=KEY_ID_BYTES].copy_from_slice(&theirs[1..=KEY_ID_BYTES]);
        assert_eq!(device.open(&grafted, b"name"), None);
    }

    #[test]
    fn an_old_secret_opens_and_says_so() {
        let sealed = ring(&[SECRET], Purpose::SESSION).seal(b"value", b"").unwrap();
        let rotated = ring(&[OTHER, SECRET], Purpose::SESSION);
        assert!(rotated.open(&sealed, b"").unwrap().by_old_key);
        let again = rotated.seal(b"value", b"").unwrap();
        assert!(!rotated.open(&again, b"").unwrap().by_old_key);
        assert_eq!(ring(&[SECRET], Purpose::SESSION).open(&again, b""), None);
    }

    #[test]
    fn a_short_secret_is_stretched_and_still_one_secret() {
        let short: &[u8] = b"0123456789abcdef";
        let sealed = ring(&[short], Purpose::SESSION).seal(b"value", b"").unwrap();
        assert!(ring(&[short], Purpose::SESSION).open(&sealed, b"").is_some());
        assert_ne!(Secrets::new(&[short]).0[0].as_slice(), short);
        assert_eq!(Secrets::new(&[SECRET]).0[0].as_slice(), SECRET);
    }

    #[test]
    fn without_a_secret_nothing_is_sealed() {
        assert_eq!(ring(&[], Purpose::SESSION).seal(b"", b""), Err(SealingFailed::NoSecret));
        assert!(MacKey::derive(&Secrets::default(), Purpose::RATE).is_none());
    }

    #[test]
    fn the_parts_of_a_mac_keep_their_boundaries() {
        let key = MacKey::derive(&Secrets::new(&[SECRET]), Purpose::RATE).unwrap();
        assert_eq!(key.mac(&[b"login", b"name"]), key.mac(&[b"login", b"name"]));
        assert_ne!(key.mac(&[b"login", b"name"]), key.mac(&[b"loginn", b"ame"]));
        let other = MacKey::derive(&Secrets::new(&[OTHER]), Purpose::RATE).unwrap();
        assert_ne!(key.mac(&[b"login"]), other.mac(&[b"login"]));
    }
}
