//! File grants: sealed values in the path of `/f/<grant>/…` that open one
//! file or everything below one storage prefix, for at most an hour. They
//! carry no name and no cookie, so relative links inside a report work on an
//! origin that knows nobody.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64ct::{Base64UrlUnpadded, Encoding};
use callboard_domain::ids::{FileId, ProjectId};
use callboard_domain::time::Timestamp;
use hkdf::Hkdf;
use sha2::Sha256;

use crate::scope::Authorized;

/// Longest life of a grant, milliseconds.
pub const MAX_LIFETIME_MS: i64 = 60 * 60 * 1000;

const PURPOSE: &str = "file-grant/v1";
const SALT: &[u8] = b"svc-kdf-v1";
const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 12;
/// A prefix is a storage key of ours; nothing longer is a grant.
const MAX_TOKEN_CHARS: usize = 2048;
const KIND_FILE: u8 = 1;
const KIND_PREFIX: u8 = 2;

/// What a grant opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantTarget {
    /// One file.
    File(FileId),
    /// Every object whose key starts with this; it ends in `/`.
    Prefix(String),
}

/// An opened grant: valid, and for this installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    project: ProjectId,
    target: GrantTarget,
    expires: Timestamp,
}

impl Grant {
    /// Proof of access to the project the grant was sealed for.
    #[must_use]
    pub const fn project(&self) -> Authorized<ProjectId> {
        Authorized::grant(self.project)
    }

    /// What it opens.
    #[must_use]
    pub const fn target(&self) -> &GrantTarget {
        &self.target
    }

    /// The moment it stops opening anything.
    #[must_use]
    pub const fn expires(&self) -> Timestamp {
        self.expires
    }
}

/// Why a grant opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// Not a grant of this installation, or altered.
    #[error("This file link is not valid.")]
    Invalid,
    /// Its time is over.
    #[error("This file link has expired; open the file from its page again.")]
    Expired,
}

/// Seals and opens grants.
#[derive(Clone)]
pub struct FileGrants {
    keys: Vec<GrantKey>,
}

#[derive(Clone)]
struct GrantKey {
    id: [u8; KEY_ID_BYTES],
    cipher: Aes256Gcm,
}

impl std::fmt::Debug for FileGrants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileGrants({} keys)", self.keys.len())
    }
}

/// The system gave no randomness, or no secret was configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot seal a file grant: {0}")]
pub struct SealingFailed(&'static str);

impl FileGrants {
    /// Derives the grant keys of these secrets: the first seals, all open.
    #[must_use]
    pub fn new<S: AsRef<[u8]>>(secrets: &[S]) -> Self {
        Self::with_purpose(secrets, PURPOSE)
    }

    fn with_purpose<S: AsRef<[u8]>>(secrets: &[S], purpose: &str) -> Self {
        Self {
            keys: secrets.iter().filter_map(|secret| GrantKey::derive(secret.as_ref(), purpose)).collect(),
        }
    }

    /// Seals a grant for a project the caller has proven access to. The life
    /// is cut to [`MAX_LIFETIME_MS`].
    ///
    /// # Errors
    /// [`SealingFailed`] without a key or randomness.
    pub fn seal(
        &self,
        project: Authorized<ProjectId>,
        target: &GrantTarget,
        now: Timestamp,
        lifetime_ms: i64,
    ) -> Result<String, SealingFailed> {
        let key = self.keys.first().ok_or(SealingFailed("no secret"))?;
        let expires = Timestamp(now.millis() + lifetime_ms.clamp(0, MAX_LIFETIME_MS));
        let plain = encode(project.get(), target, expires);
        let mut nonce = [0_u8; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SealingFailed("no randomness"))?;
        let sealed = key
            .cipher
            .encrypt(&Nonce::from(nonce), Payload { msg: &plain, aad: &key.associated_data() })
            .map_err(|_| SealingFailed("the value is too long"))?;
        let token = [&[VERSION][..], &key.id, &nonce, &sealed].concat();
        Ok(Base64UrlUnpadded::encode_string(&token))
    }

    /// Opens a grant.
    ///
    /// # Errors
    /// [`GrantRefusal`].
    pub fn open(&self, token: &str, now: Timestamp) -> Result<Grant, GrantRefusal> {
        let grant = self.unseal(token).ok_or(GrantRefusal::Invalid)?;
        if grant.expires <= now { Err(GrantRefusal::Expired) } else { Ok(grant) }
    }

    fn unseal(&self, token: &str) -> Option<Grant> {
        if token.len() > MAX_TOKEN_CHARS {
            return None;
        }
        let token = Base64UrlUnpadded::decode_vec(token).ok()?;
        let rest = token.strip_prefix(&[VERSION])?;
        let (id, rest) = rest.split_first_chunk::<KEY_ID_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let key = self.keys.iter().find(|key| key.id == *id)?;
        let plain = key
            .cipher
            .decrypt(&Nonce::from(*nonce), Payload { msg: sealed, aad: &key.associated_data() })
            .ok()?;
        decode(&plain)
    }
}

impl GrantKey {
    fn derive(secret: &[u8], purpose: &str) -> Option<Self> {
        let kdf = Hkdf::<Sha256>::new(Some(SALT), secret);
        let mut key = [0_u8; 32];
        kdf.expand(purpose.as_bytes(), &mut key).ok()?;
        let mut id = [0_u8; KEY_ID_BYTES];
        kdf.expand(format!("kid/{purpose}").as_bytes(), &mut id).ok()?;
        Some(Self { id, cipher: Aes256Gcm::new(&key.into()) })
    }

    /// Binds a value to its kind and key, so one of another kind never opens.
    fn associated_data(&self) -> Vec<u8> {
        [b"svc/", PURPOSE.as_bytes(), &self.id].concat()
    }
}

fn encode(project: ProjectId, target: &GrantTarget, expires: Timestamp) -> Vec<u8> {
    let mut plain = Vec::with_capacity(64);
    plain.extend(project.get().to_be_bytes());
    plain.extend(expires.millis().to_be_bytes());
    match target {
        GrantTarget::File(file) => {
            plain.push(KIND_FILE);
            plain.extend(file.get().to_be_bytes());
        }
        GrantTarget::Prefix(prefix) => {
            plain.push(KIND_PREFIX);
            plain.extend(prefix.as_bytes());
        }
    }
    plain
}

fn decode(plain: &[u8]) -> Option<Grant> {
    let (project, rest) = plain.split_first_chunk()?;
    let (expires, rest) = rest.split_first_chunk()?;
    let (kind, rest) = rest.split_first()?;
    let target = match *kind {
        KIND_FILE => GrantTarget::File(FileId(i64::from_be_bytes(rest.try_into().ok()?))),
        KIND_PREFIX => GrantTarget::Prefix(String::from_utf8(rest.to_vec()).ok()?),
        _ => return None,
    };
    Some(Grant {
        project: ProjectId(i64::from_be_bytes(*project)),
        target,
        expires: Timestamp(i64::from_be_bytes(*expires)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Scope;

    const NOW: Timestamp = Timestamp(1_767_261_600_000);
    const SECRET: &[u8] = b"a secret of thirty-two bytes!!!!";

    fn seal(grants: &FileGrants, target: &GrantTarget) -> String {
        let project = Scope::All.authorize(ProjectId(3)).unwrap();
        grants.seal(project, target, NOW, MAX_LIFETIME_MS * 9).unwrap()
    }

    fn report() -> GrantTarget {
        GrantTarget::Prefix("project-3/reports/42/7/".to_owned())
    }

    #[test]
    fn a_grant_opens_what_it_was_sealed_for_within_the_hour() {
        let grants = FileGrants::new(&[SECRET]);
        for target in [report(), GrantTarget::File(FileId(9))] {
            let grant = grants.open(&seal(&grants, &target), NOW).unwrap();
            assert_eq!(grant.target(), &target);
            assert_eq!(grant.project().get(), ProjectId(3));
            assert_eq!(grant.expires(), Timestamp(NOW.millis() + MAX_LIFETIME_MS));
        }
        let token = seal(&grants, &report());
        let end = Timestamp(NOW.millis() + MAX_LIFETIME_MS);
        assert!(grants.open(&token, Timestamp(end.millis() - 1)).is_ok());
        assert_eq!(grants.open(&token, end), Err(GrantRefusal::Expired));
    }

    #[test]
    fn one_flipped_bit_anywhere_closes_it() {
        let grants = FileGrants::new(&[SECRET]);
        let token = Base64UrlUnpadded::decode_vec(&seal(&grants, &report())).unwrap();
        for bit in 0..token.len() * 8 {
            let mut altered = token.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let altered = Base64UrlUnpadded::encode_string(&altered);
            assert_eq!(grants.open(&altered, NOW), Err(GrantRefusal::Invalid), "bit {bit}");
        }
    }

    #[test]
    fn a_value_sealed_for_another_purpose_or_with_another_secret_does_not_open() {
        let grants = FileGrants::new(&[SECRET]);
        let session = FileGrants::with_purpose(&[SECRET], "session/v1");
        let stranger = FileGrants::new(&[b"another secret of this length!!!"]);
        for other in [session, stranger] {
            assert_eq!(grants.open(&seal(&other, &report()), NOW), Err(GrantRefusal::Invalid));
        }
        for nonsense in ["", "AA", "not base64!", &"A".repeat(5000)] {
            assert_eq!(grants.open(nonsense, NOW), Err(GrantRefusal::Invalid));
        }
    }

    #[test]
    fn grants_survive_a_rotation_while_the_old_secret_is_listed() {
        let old = FileGrants::new(&[SECRET]);
        let token = seal(&old, &report());
        let rotated = FileGrants::new(&[&b"the new secret, thirty-two bytes"[..], SECRET]);
        assert!(rotated.open(&token, NOW).is_ok());
        assert_eq!(old.open(&seal(&rotated, &report()), NOW), Err(GrantRefusal::Invalid));
    }
}
