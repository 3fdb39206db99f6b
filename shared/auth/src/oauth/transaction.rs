//! A sign-in that has begun: what the browser keeps, sealed, while the person
//! is at the provider.

use base64ct::{Base64UrlUnpadded, Encoding};
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use sha2::{Digest, Sha256};

use super::Provider;
use crate::cookies::{CookieClaims, CookieKind};
use crate::keys::SealingFailed;

const RANDOM_BYTES: usize = 32;
const HASH_BYTES: usize = 32;

/// Who wants to link a provider account, and in which session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The account.
    pub user: UserId,
    /// SHA-256 of the id of the session that began it; the same one has to
    /// end it.
    pub sid_hash: [u8; HASH_BYTES],
}

/// A sign-in that has begun.
#[derive(Clone, PartialEq, Eq)]
pub struct OauthTransaction {
    provider: Provider,
    state: [u8; RANDOM_BYTES],
    verifier: [u8; RANDOM_BYTES],
    link: Option<Link>,
    begun_at: Timestamp,
}

impl std::fmt::Debug for OauthTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OauthTransaction({}, link: {})", self.provider.as_str(), self.link.is_some())
    }
}

impl OauthTransaction {
    /// Begins a sign-in at a provider, or with `link` the linking of an
    /// account there.
    ///
    /// # Errors
    /// [`SealingFailed::NoRandomness`].
    pub fn begin(provider: Provider, link: Option<Link>, now: Timestamp) -> Result<Self, SealingFailed> {
        let (mut state, mut verifier) = ([0; RANDOM_BYTES], [0; RANDOM_BYTES]);
        for bytes in [&mut state, &mut verifier] {
            getrandom::fill(bytes).map_err(|_| SealingFailed::NoRandomness)?;
        }
        Ok(Self { provider, state, verifier, link, begun_at: now })
    }

    /// The provider it was begun at.
    #[must_use]
    pub const fn provider(&self) -> Provider {
        self.provider
    }

    /// The account to link, when it is not a sign-in.
    #[must_use]
    pub const fn link(&self) -> Option<Link> {
        self.link
    }

    /// The `state` parameter: 256 random bits.
    #[must_use]
    pub fn state(&self) -> String {
        Base64UrlUnpadded::encode_string(&self.state)
    }

    /// The PKCE verifier, 43 characters (RFC 7636 §4.1).
    #[must_use]
    pub fn verifier(&self) -> String {
        Base64UrlUnpadded::encode_string(&self.verifier)
    }

    /// Whether a callback's `state` is ours. Hashes are compared, so the time
    /// it takes tells nothing about the value.
    #[must_use]
    pub fn is_state(&self, given: &str) -> bool {
        Sha256::digest(given.as_bytes()) == Sha256::digest(self.state().as_bytes())
    }

    /// What is remembered so that it ends once.
    #[must_use]
    pub fn state_hash(&self) -> [u8; HASH_BYTES] {
        Sha256::digest(self.state).into()
    }
}

impl CookieClaims for OauthTransaction {
    const KIND: CookieKind = CookieKind::OAuth;

    fn encode(&self) -> Vec<u8> {
        let provider: &[u8] = match self.provider {
            Provider::Idp => b"i",
            Provider::Codehost => b"c",
        };
        let begun_at = self.begun_at.millis().to_be_bytes();
        let mut bytes = [provider, &self.state, &self.verifier, &begun_at].concat();
        if let Some(link) = self.link {
            bytes.extend(link.user.get().to_be_bytes());
            bytes.extend(link.sid_hash);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (provider, rest) = bytes.split_first()?;
        let provider = match provider {
            b'i' => Provider::Idp,
            b'c' => Provider::Codehost,
            _ => return None,
        };
        let (state, rest) = rest.split_first_chunk::<RANDOM_BYTES>()?;
        let (verifier, rest) = rest.split_first_chunk::<RANDOM_BYTES>()?;
        let (begun_at, rest) = rest.split_first_chunk::<8>()?;
        let link = if rest.is_empty() {
            None
        } else {
            let (user, rest) = rest.split_first_chunk::<8>()?;
            let (sid_hash, rest) = rest.split_first_chunk::<HASH_BYTES>()?;
            rest.is_empty().then_some(())?;
            Some(Link { user: UserId(i64::from_be_bytes(*user)), sid_hash: *sid_hash })
        };
        Some(Self {
            provider,
            state: *state,
            verifier: *verifier,
            link,
            begun_at: Timestamp(i64::from_be_bytes(*begun_at)),
        })
    }

    fn expires_at(&self) -> Timestamp {
        CookieKind::OAuth.expiry(self.begun_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_read_back() {
        let link = Link { user: UserId(7), sid_hash: [9; HASH_BYTES] };
        for link in [None, Some(link)] {
            let begun = OauthTransaction::begin(Provider::Codehost, link, Timestamp(5)).unwrap();
            assert_eq!(OauthTransaction::decode(&begun.encode()), Some(begun.clone()));
            assert_eq!(begun.verifier().len(), 43);
            assert!(begun.is_state(&begun.state()));
            assert!(!begun.is_state("") && !begun.is_state(&begun.verifier()));
        }
        assert_eq!(OauthTransaction::decode(b"x"), None);
    }
}
