//! Calls of the schedule: `POST /internal/tick` is open to whoever can sign
//! the current time with a key of this installation, and to nobody else.
//!
//! `X-Tick-Signature: t=<unix seconds>,v1=<hex>` where `<hex>` is the
//! HMAC-SHA256 of `"tick\n" + t`. Its key is 64 bytes of HKDF-SHA256 over the
//! secret, with the salt `svc-kdf-v1` and the purpose `tick/v1`.

use callboard_domain::time::Timestamp;

use crate::keys::{MacKey, Purpose, Secrets};

/// Name of the header.
pub const HEADER: &str = "x-tick-signature";
/// How far the clock of the caller may be off, seconds.
pub const MAX_SKEW_SECONDS: u64 = 300;
/// A signature is shorter than this.
const MAX_HEADER_CHARS: usize = 200;

/// Checks signatures, with every configured secret.
#[derive(Debug, Clone)]
pub struct TickKeys(Vec<MacKey>);

/// The call was not signed by this installation's schedule, or too long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a signature of this installation's schedule, or too old")]
pub struct NotSigned;

impl TickKeys {
    /// Derives the keys.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self(MacKey::derive_all(secrets, Purpose::TICK))
    }

    /// Whether there is a secret to sign with at all.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        !self.0.is_empty()
    }

    /// Checks the value of the header.
    ///
    /// # Errors
    /// [`NotSigned`]; always without a configured secret.
    pub fn check(&self, header: &str, now: Timestamp) -> Result<(), NotSigned> {
        let (time, tag) = read(header).ok_or(NotSigned)?;
        let message = format!("tick\n{time}");
        let time: i64 = time.parse().map_err(|_| NotSigned)?;
        let is_signed = self.0.iter().any(|key| key.verifies(message.as_bytes(), &tag));
        let is_fresh = now.millis().div_euclid(1000).abs_diff(time) <= MAX_SKEW_SECONDS;
        if is_signed && is_fresh { Ok(()) } else { Err(NotSigned) }
    }
}

/// The time as it was signed, and the tag.
fn read(header: &str) -> Option<(&str, Vec<u8>)> {
    if header.len() > MAX_HEADER_CHARS {
        return None;
    }
    let (time, tag) = header.split_once(',')?;
    let time = time.trim().strip_prefix("t=")?;
    let tag = hex::decode(tag.trim().strip_prefix("v1=")?).ok()?;
    Some((time, tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signed outside of this code: Node's `crypto.hkdfSync` and `createHmac`.
    const SECRET: &[u8] = b"a secret of thirty-two bytes!!!!";
    const TIME: i64 = 1_767_261_600;
    const SIGNED: &str = "t=1767261600,v1=9f70311774034cd15fca9538bdd2171a1e895fb93734fb32cdbe6d16285a25aa";

    fn keys(secrets: &[&[u8]]) -> TickKeys {
        TickKeys::new(&Secrets::new(secrets))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    #[test]
    fn a_signature_counts_for_five_minutes_around_its_time() {
        let keys = keys(&[b"another secret of this length!!!", SECRET]);
        for offset in [-300, 0, 300] {
            assert_eq!(keys.check(SIGNED, at(TIME + offset)), Ok(()), "{offset}");
        }
        for offset in [-301, 301] {
            assert_eq!(keys.check(SIGNED, at(TIME + offset)), Err(NotSigned), "{offset}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let now = at(TIME);
        let later = SIGNED.replace("t=1767261600", "t=1767261601");
        let altered =
            format!("{}{}", &SIGNED[..SIGNED.len() - 1], if SIGNED.ends_with('0') { '1' } else { '0' });
        let shortened = &SIGNED[..SIGNED.len() - 2];
        for header in [&later, &altered, shortened, "", "t=,v1=", "t=1767261600,v1=", "t=1767261600"] {
            assert_eq!(keys(&[SECRET]).check(header, now), Err(NotSigned), "{header}");
        }
        assert_eq!(keys(&[b"another secret of this length!!!"]).check(SIGNED, now), Err(NotSigned));
        assert_eq!(keys(&[]).check(SIGNED, now), Err(NotSigned));
    }
}
