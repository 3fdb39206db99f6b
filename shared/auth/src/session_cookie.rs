//! What the sealed cookies say: a session, a known browser, the name of a
//! refused sign-in. The first two prove identity only; what an account may do
//! is read from its row on every request.

use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::cookies::{CookieClaims, CookieKind};
use crate::keys::SealingFailed;
use crate::username::MAX_CHARS;

const ID_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// Fills an array with random bytes.
fn random<const N: usize>() -> Result<[u8; N], SealingFailed> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| SealingFailed::NoRandomness)?;
    Ok(bytes)
}

/// The random id of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId([u8; ID_BYTES]);

/// A session, as its cookie says it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionClaims {
    /// Which session it is; the database knows its hash only.
    pub sid: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// The account's epoch when it was issued; an older one is over.
    pub epoch: i64,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for SessionClaims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionClaims(user {}, epoch {})", self.user, self.epoch)
    }
}

impl SessionClaims {
    /// A new session that lasts as long as its cookie.
    ///
    /// # Errors
    /// [`SealingFailed::NoRandomness`].
    pub fn start(user: UserId, epoch: i64, now: Timestamp) -> Result<Self, SealingFailed> {
        let expires_at = CookieKind::Session.expiry(now);
        Ok(Self { sid: SessionId(random()?), user, epoch, issued_at: now, expires_at })
    }

    /// The name of the session's row: SHA-256 of its id.
    #[must_use]
    pub fn sid_hash(&self) -> [u8; HASH_BYTES] {
        Sha256::digest(self.sid.0).into()
    }
}

impl CookieClaims for SessionClaims {
    const KIND: CookieKind = CookieKind::Session;

    fn encode(&self) -> Vec<u8> {
        let numbers = [self.user.get(), self.epoch, self.issued_at.millis(), self.expires_at.millis()];
        self.sid.0.into_iter().chain(numbers.into_iter().flat_map(i64::to_be_bytes)).collect()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let claims = Self {
            sid: SessionId(bytes.array()?),
            user: UserId(bytes.number()?),
            epoch: bytes.number()?,
            issued_at: Timestamp(bytes.number()?),
            expires_at: Timestamp(bytes.number()?),
        };
        bytes.0.is_empty().then_some(claims)
    }

    fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

/// A browser that an account has signed in from. Wrong guesses of strangers
/// do not lock it out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DeviceClaims {
    device: [u8; ID_BYTES],
    user: UserId,
    expires_at: Timestamp,
}

impl std::fmt::Debug for DeviceClaims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceClaims(user {})", self.user)
    }
}

impl DeviceClaims {
    /// A browser not seen before.
    ///
    /// # Errors
    /// [`SealingFailed::NoRandomness`].
    pub fn start(user: UserId, now: Timestamp) -> Result<Self, SealingFailed> {
        Ok(Self { device: random()?, user, expires_at: CookieKind::Device.expiry(now) })
    }

    /// The browser's id, for the account it signed in to and for no other.
    #[must_use]
    pub fn session_for(&self, user: UserId) -> Option<&[u8; ID_BYTES]> {
        (self.user == user).then_some(&self.device)
    }
}

impl CookieClaims for DeviceClaims {
    const KIND: CookieKind = CookieKind::Device;

    fn encode(&self) -> Vec<u8> {
        let numbers = [self.user.get(), self.expires_at.millis()];
        self.device.into_iter().chain(numbers.into_iter().flat_map(i64::to_be_bytes)).collect()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let claims = Self {
            device: bytes.array()?,
            user: UserId(bytes.number()?),
            expires_at: Timestamp(bytes.number()?),
        };
        bytes.0.is_empty().then_some(claims)
    }

    fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

/// The name that was typed into a sign-in that was refused: the form that is
/// shown again has it, and no address does. It proves nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct RefusedName {
    name: String,
    expires_at: Timestamp,
}

impl std::fmt::Debug for RefusedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RefusedName")
    }
}

impl RefusedName {
    /// What was typed; nothing for what is longer than any name.
    #[must_use]
    pub fn typed(name: &str, now: Timestamp) -> Option<Self> {
        let fits = !name.is_empty() && name.chars().count() <= MAX_CHARS;
        fits.then(|| Self { name: name.to_owned(), expires_at: CookieKind::RefusedName.expiry(now) })
    }

    /// What was typed.
    #[must_use]
    pub fn into_name(self) -> String {
        self.name
    }
}

impl CookieClaims for RefusedName {
    const KIND: CookieKind = CookieKind::RefusedName;

    fn encode(&self) -> Vec<u8> {
        [&self.expires_at.millis().to_be_bytes(), self.name.as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let expires_at = Timestamp(bytes.number()?);
        Some(Self { name: String::from_utf8(bytes.0.to_vec()).ok()?, expires_at })
    }

    fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

/// Reads fixed fields one after the other.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::cookies::{CookieForm, SealedCookies};
    use crate::keys::Secrets;

    const NOW: Timestamp = Timestamp(1_767_261_600_000);
    const USER: UserId = UserId(7);
    const SECRET: &[u8] = b"a secret of thirty-two bytes!!!!";
    const OTHER: &[u8] = b"another secret of this length!!!";

    fn cookies(secrets: &[&[u8]]) -> SealedCookies {
        SealedCookies::new(&Secrets::new(secrets))
    }

    /// What a browser sends after it was told to keep a cookie.
    fn sent_back(set: &HeaderValue) -> String {
        set.to_str().unwrap().split_once(';').unwrap().0.to_owned()
    }

    fn request(cookie: &str) -> HeaderMap {
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(cookie).unwrap())])
    }

    #[test]
    fn a_session_is_read_back_until_it_ends() {
        let ours = cookies(&[SECRET]);
        let session = SessionClaims::start(USER, 3, NOW).unwrap();
        let request = request(&sent_back(&ours.set(&session, CookieForm::Secure).unwrap()));
        let open = |now| ours.open::<SessionClaims>(&request, CookieForm::Secure, now);
        let opened = open(NOW).unwrap();
        assert!(opened.value == session && !opened.by_old_key);
        assert!(open(Timestamp(session.expires_at.millis() - 1)).is_some());
        assert!(open(session.expires_at).is_none());
        assert_ne!(session.sid_hash(), SessionClaims::start(USER, 3, NOW).unwrap().sid_hash());
    }

    #[test]
    fn a_refused_name_is_kept_for_a_minute_if_it_can_be_one() {
        let ours = cookies(&[SECRET]);
        let longest = "𝔞".repeat(MAX_CHARS);
        let typed = RefusedName::typed(&longest, NOW).unwrap();
        let request = request(&sent_back(&ours.set(&typed, CookieForm::Secure).unwrap()));
        let open = |now| ours.open::<RefusedName>(&request, CookieForm::Secure, now);
        assert_eq!(open(NOW).unwrap().value.into_name(), longest);
        assert!(open(Timestamp(NOW.millis() + 59_999)).is_some());
        assert!(open(Timestamp(NOW.millis() + 60_000)).is_none());
        for unfit in [String::new(), "a".repeat(MAX_CHARS + 1)] {
            assert!(RefusedName::typed(&unfit, NOW).is_none(), "{unfit}");
        }
    }

    #[test]
    fn a_value_with_any_letter_changed_opens_nothing() {
        let ours = cookies(&[SECRET]);
        let set = ours.set(&SessionClaims::start(USER, 0, NOW).unwrap(), CookieForm::Plain).unwrap();
        let (name, value) =
            sent_back(&set).split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).unwrap();
        assert!(value.len() <= 512);
        for at in 0..value.len() {
            let mut altered = value.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'Q' } else { b'A' };
            let cookie = format!("{name}={}", String::from_utf8(altered).unwrap());
            assert!(ours.open::<SessionClaims>(&request(&cookie), CookieForm::Plain, NOW).is_none(), "{at}");
        }
    }

    #[test]
    fn a_value_of_another_secret_name_or_kind_opens_nothing() {
        let ours = cookies(&[SECRET]);
        let session = SessionClaims::start(USER, 0, NOW).unwrap();
        let sealed = sent_back(&ours.set(&session, CookieForm::Secure).unwrap());
        let open = |by: &SealedCookies, cookie: &str, form| {
            by.open::<SessionClaims>(&request(cookie), form, NOW).is_some()
        };
        assert!(open(&ours, &sealed, CookieForm::Secure));
        assert!(!open(&cookies(&[OTHER]), &sealed, CookieForm::Secure));
        assert!(!open(&ours, sealed.strip_prefix("__Host-").unwrap(), CookieForm::Plain));
        let device = DeviceClaims::start(USER, NOW).unwrap();
        let device = sent_back(&ours.set(&device, CookieForm::Secure).unwrap());
        assert!(!open(&ours, &device.replace("svc_device", "svc_session"), CookieForm::Secure));
        assert!(!open(&ours, &format!("__Host-svc_session={}", "A".repeat(513)), CookieForm::Secure));
        assert!(!open(&ours, &format!("{sealed}; {sealed}"), CookieForm::Secure));
    }

    #[test]
    fn an_old_secret_opens_and_says_so() {
        let session = SessionClaims::start(USER, 0, NOW).unwrap();
        let sealed = sent_back(&cookies(&[SECRET]).set(&session, CookieForm::Plain).unwrap());
        let rotated = cookies(&[OTHER, SECRET]);
        let opened = rotated.open::<SessionClaims>(&request(&sealed), CookieForm::Plain, NOW).unwrap();
        assert!(opened.by_old_key);
    }

    #[test]
    fn a_known_browser_is_known_to_its_account_only() {
        let ours = cookies(&[SECRET]);
        let device = DeviceClaims::start(USER, NOW).unwrap();
        let request = request(&sent_back(&ours.set(&device, CookieForm::Plain).unwrap()));
        let opened = ours.open::<DeviceClaims>(&request, CookieForm::Plain, NOW).unwrap().value;
        assert!(opened.session_for(USER).is_some());
        assert!(opened.session_for(UserId(8)).is_none());
    }
}
