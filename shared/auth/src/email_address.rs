//! E-mail addresses: which may be an account's. Whether one receives mail is
//! proven by mail; this only keeps out what cannot be one, and what would be
//! more than one.

/// Longest address (RFC 5321: a path of 256 octets without its brackets).
const MAX_BYTES: usize = 254;
/// Longest part before the `@` (RFC 5321).
const MAX_LOCAL_BYTES: usize = 64;

/// It is no e-mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("email must be one address such as ada@example.org, of at most {MAX_BYTES} bytes.")]
pub struct NotAnAddress;

/// Judges an address: one `@` between a local part and a domain, nothing that
/// separates addresses, and no character that a mail header must not hold.
///
/// # Errors
/// [`NotAnAddress`].
pub fn judge_address(address: &str) -> Result<(), NotAnAddress> {
    let (local, domain) = address.rsplit_once('@').ok_or(NotAnAddress)?;
    let is_plain = |char: char| {
        !char.is_control()
            && !char.is_whitespace()
            && !matches!(char, '@' | ',' | ';' | ':' | '<' | '>' | '(' | ')' | '"' | '\\')
    };
    let labels_are_filled = domain.split('.').all(|label| !label.is_empty() && !label.starts_with('-'));
    let is_one = address.len() <= MAX_BYTES
        && (1..=MAX_LOCAL_BYTES).contains(&local.len())
        && labels_are_filled
        && local.chars().all(is_plain)
        && domain.chars().all(|char| is_plain(char) && !matches!(char, '[' | ']' | '/'));
    if is_one { Ok(()) } else { Err(NotAnAddress) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_told_from_none_and_from_several() {
        for address in ["ada@example.org", "a.b+c@sub.example.org", "ada@localhost", "зоя@пример.рф"]
        {
            assert_eq!(judge_address(address), Ok(()), "{address}");
        }
        let long = format!("{}@example.org", "a".repeat(65));
        for text in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@@example.org",
            "ada@exa mple.org",
            "ada @example.org",
            "ada@example.org,bob@example.org",
            "Ada <ada@example.org>",
            "ada@example..org",
            "ada@.example.org",
            "ada@example.org\r\nBcc: all@example.org",
            "ada\0@example.org",
            "a@x@corp.example",
            "ada@[127.0.0.1]",
            &long,
        ] {
            assert_eq!(judge_address(text), Err(NotAnAddress), "{text:?}");
        }
    }
}
