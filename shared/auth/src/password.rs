//! Passwords: rules for new ones, hashes for the database, and checking with
//! the same work for accounts that do not exist.
//!
//! Hashes are PHC strings `$scrypt$ln=15,r=8,p=3$salt$hash`: 32 MiB and about
//! a fifth of a second. Callers run this on a thread that may block.

use scrypt::Params;
use scrypt::phc::{Output, PasswordHash, Salt};

use crate::keys::SealingFailed;
use crate::password_blocklist;

/// Longest password, bytes. It bounds the work of reading one.
pub const MAX_BYTES: usize = 1024;
/// Shortest password that can be asked for, characters.
pub const MIN_CHARS: usize = 8;

const LOG_N: u8 = 15;
const BLOCK_SIZE: u32 = 8;
const PARALLELISM: u32 = 3;
const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
/// Stored parameters outside of these are damage, or an attack on the memory.
const LOG_N_BOUNDS: std::ops::RangeInclusive<u32> = 14..=18;
const PARALLELISM_BOUNDS: std::ops::RangeInclusive<u32> = 1..=10;

/// What is done about passwords from lists (`SERVICE_PASSWORD_BLOCKLIST`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blocklist {
    /// Nothing.
    Off,
    /// They are accepted, and the answer says so.
    #[default]
    Warn,
    /// They are refused.
    Enforce,
}

impl Blocklist {
    /// The word of the setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        }
    }
}

/// What a new password must be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordRules {
    /// Fewest characters.
    pub min_chars: usize,
    /// What is done about well-known ones.
    pub blocklist: Blocklist,
}

/// Why a password cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordRefused {
    /// Too few characters.
    #[error("password must have at least {0} characters.")]
    TooShort(usize),
    /// Too many bytes.
    #[error("password must have at most {MAX_BYTES} bytes.")]
    TooLong,
    /// It has a control character. Of a trailing NUL nothing would reach the
    /// hash: HMAC pads short keys with NULs (RFC 2104).
    #[error("password must not contain control characters such as NUL, tabs or line breaks.")]
    ControlCharacter,
    /// It stands in lists that attackers try first.
    #[error("password is one of the most common ones; choose another.")]
    Common,
}

/// What should be said about a password that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordRemark {
    /// It stands in lists that attackers try first.
    Common,
}

impl PasswordRemark {
    /// The remark as answers show it.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Common => {
                "This password stands in lists of common ones, which attackers try first; a longer one is safer."
            }
        }
    }
}

impl PasswordRules {
    /// Judges a new password. It is taken exactly as it came: nothing is
    /// trimmed or normalised, no kind of character is required, and only
    /// control characters are refused.
    ///
    /// # Errors
    /// [`PasswordRefused`].
    pub fn judge(&self, password: &str) -> Result<Option<PasswordRemark>, PasswordRefused> {
        if password.len() > MAX_BYTES {
            return Err(PasswordRefused::TooLong);
        }
        if password.chars().any(char::is_control) {
            return Err(PasswordRefused::ControlCharacter);
        }
        if password.chars().count() < self.min_chars {
            return Err(PasswordRefused::TooShort(self.min_chars));
        }
        match self.blocklist {
            Blocklist::Off => Ok(None),
            _ if !password_blocklist::contains(password) => Ok(None),
            Blocklist::Warn => Ok(Some(PasswordRemark::Common)),
            Blocklist::Enforce => Err(PasswordRefused::Common),
        }
    }
}

/// What checking a password found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is not the account's.
    Wrong,
    /// It is the account's.
    Right {
        /// Whether the stored hash costs less than a new one would: store a
        /// new one.
        needs_rehash: bool,
    },
}

/// Hashes a password with a fresh salt.
///
/// # Errors
/// [`SealingFailed::NoRandomness`]; [`SealingFailed::TooLong`] for more than
/// [`MAX_BYTES`].
pub fn hash(password: &str) -> Result<String, SealingFailed> {
    if password.len() > MAX_BYTES {
        return Err(SealingFailed::TooLong);
    }
    let mut salt = [0_u8; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|_| SealingFailed::NoRandomness)?;
    let cost = Cost { log_n: LOG_N, parallelism: PARALLELISM };
    let text = Salt::new(&salt)
        .ok()
        .zip(derived(password, &salt, cost))
        .map(|(salt, key)| format!("$scrypt${cost}${salt}${key}"));
    text.ok_or(SealingFailed::TooLong)
}

/// Checks a password against the stored hash. Without one (no such account,
/// an account without a password, a disabled account) and for a damaged one
/// the same work is done for nothing; so it is for a password with a NUL, which
/// scrypt cannot tell from the one without its trailing NULs.
#[must_use]
pub fn verify(password: &str, stored: Option<&str>) -> Verdict {
    let can_match = password.len() <= MAX_BYTES && !password.contains('\0');
    let stored = stored.filter(|_| can_match).and_then(Stored::parse);
    let Some(Stored { cost, salt, key }) = stored else {
        let cost = Cost { log_n: LOG_N, parallelism: PARALLELISM };
        let short = if password.len() <= MAX_BYTES { password } else { "" };
        std::hint::black_box(derived(short, &[0; SALT_BYTES], cost));
        return Verdict::Wrong;
    };
    // `Output` compares in constant time.
    if derived(password, &salt, cost).is_some_and(|derived| derived == key) {
        let is_short = salt.len() < SALT_BYTES || key.len() < KEY_BYTES;
        let is_cheap = cost.work() < Cost { log_n: LOG_N, parallelism: PARALLELISM }.work();
        Verdict::Right { needs_rehash: is_short || is_cheap }
    } else {
        Verdict::Wrong
    }
}

/// The parameters that vary.
#[derive(Clone, Copy)]
struct Cost {
    log_n: u8,
    parallelism: u32,
}

impl Cost {
    const fn work(self) -> u64 {
        (1 << self.log_n) * self.parallelism as u64
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ln={},r={BLOCK_SIZE},p={}", self.log_n, self.parallelism)
    }
}

struct Stored {
    cost: Cost,
    salt: Salt,
    key: Output,
}

impl Stored {
    fn parse(text: &str) -> Option<Self> {
        let phc = PasswordHash::new(text).ok()?;
        let number = |name: &str| phc.params.get_decimal(name);
        let cost = Cost {
            log_n: number("ln").filter(|ln| LOG_N_BOUNDS.contains(ln))?.try_into().ok()?,
            parallelism: number("p").filter(|p| PARALLELISM_BOUNDS.contains(p))?,
        };
        let is_ours = phc.algorithm.as_str() == "scrypt" && number("r") == Some(BLOCK_SIZE);
        // Keys of another length than the one derived here never compare equal.
        (is_ours && phc.version.is_none()).then(|| phc.salt.zip(phc.hash)).flatten().map(|(salt, key)| Self {
            cost,
            salt,
            key,
        })
    }
}

fn derived(password: &str, salt: &[u8], cost: Cost) -> Option<Output> {
    let params = Params::new(cost.log_n, BLOCK_SIZE, cost.parallelism).ok()?;
    let mut key = [0_u8; KEY_BYTES];
    scrypt::scrypt(password.as_bytes(), salt, &params, &mut key).ok()?;
    Output::new(&key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `password` as another implementation of scrypt hashed it (passlib's documentation).
    const FOREIGN: &str =
        "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E";

    #[test]
    fn a_password_is_its_own_and_no_other() {
        let stored = hash("correct horse battery").unwrap();
        assert!(stored.starts_with("$scrypt$ln=15,r=8,p=3$"), "{stored}");
        assert_eq!(verify("correct horse battery", Some(&stored)), Verdict::Right { needs_rehash: false });
        for wrong in ["correct horse batterz", "correct horse battery ", "Correct horse battery", ""] {
            assert_eq!(verify(wrong, Some(&stored)), Verdict::Wrong, "{wrong:?}");
        }
        assert_ne!(stored, hash("correct horse battery").unwrap());
    }

    #[test]
    fn a_cheaper_hash_is_accepted_and_replaced() {
        assert_eq!(verify("password", Some(FOREIGN)), Verdict::Right { needs_rehash: true });
    }

    #[test]
    fn damage_and_absence_match_nothing() {
        let swap = |from: &str, to: &str| FOREIGN.replace(from, to);
        for stored in [
            String::new(),
            "password".to_owned(),
            swap("ln=16", "ln=13"),
            swap("ln=16", "ln=19"),
            swap("ln=16", "ln=300"),
            swap("r=8", "r=9"),
            swap("p=1", "p=11"),
            swap("scrypt", "argon2id"),
            swap("s5E", ""),
        ] {
            assert_eq!(verify("password", Some(&stored)), Verdict::Wrong, "{stored}");
        }
        assert_eq!(verify("password", None), Verdict::Wrong);
        assert_eq!(verify(&"a".repeat(MAX_BYTES + 1), None), Verdict::Wrong);
        assert!(hash(&"a".repeat(MAX_BYTES + 1)).is_err());
    }

    #[test]
    fn a_password_with_a_nul_signs_nobody_in() {
        let stored = hash("correct horse").unwrap();
        for padded in ["correct horse\0", "correct horse\0\0\0\0\0", "correct\0horse", "\0"] {
            assert_eq!(verify(padded, Some(&stored)), Verdict::Wrong, "{padded:?}");
        }
        // Stored before NULs were refused: without its NULs it is what scrypt was given.
        let short = hash("abc\0\0\0\0\0").unwrap();
        assert_eq!(verify("abc\0\0\0\0\0", Some(&short)), Verdict::Wrong);
        assert_eq!(verify("abc", Some(&short)), Verdict::Right { needs_rehash: false });
        let long = "long enough to be hashed before it is a key: ".repeat(2);
        let stored = hash(&long).unwrap();
        assert_eq!(verify(&long, Some(&stored)), Verdict::Right { needs_rehash: false });
        assert_eq!(verify(&format!("{long}\0"), Some(&stored)), Verdict::Wrong);
    }

    #[test]
    fn control_characters_are_refused_in_new_passwords() {
        let rules = PasswordRules { min_chars: MIN_CHARS, blocklist: Blocklist::Off };
        for control in [
            "abc\0\0\0\0\0",
            "long enough\0",
            "\0long enough",
            "long\tenough",
            "long enough\r\n",
            "long\u{7f}enough",
            "long\u{85}enough",
        ] {
            assert_eq!(rules.judge(control), Err(PasswordRefused::ControlCharacter), "{control:?}");
        }
        assert_eq!(rules.judge("пароль 秘密 🔑"), Ok(None));
    }

    #[test]
    fn new_passwords_are_judged_by_length_and_by_the_list() {
        let rules = |blocklist| PasswordRules { min_chars: MIN_CHARS, blocklist };
        let warn = rules(Blocklist::Warn);
        assert_eq!(warn.judge("a long enough one"), Ok(None));
        assert_eq!(warn.judge("1234567"), Err(PasswordRefused::TooShort(8)));
        assert_eq!(warn.judge("пароль"), Err(PasswordRefused::TooShort(8)));
        assert_eq!(warn.judge(&"a".repeat(1025)), Err(PasswordRefused::TooLong));
        assert_eq!(warn.judge("Password123"), Ok(Some(PasswordRemark::Common)));
        assert_eq!(rules(Blocklist::Off).judge("Password123"), Ok(None));
        assert_eq!(rules(Blocklist::Enforce).judge("Password123"), Err(PasswordRefused::Common));
    }
}
