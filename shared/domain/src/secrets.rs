//! Secrets in what applications log, send and show: they are replaced before
//! anything of a trace leaves the reader.

use std::borrow::Cow;

/// What a masked secret reads as.
pub const MASK: &str = "***";
/// Hexadecimal digits in a row from which a text is taken for a key.
const MIN_HEX: usize = 32;
/// Headers that carry credentials.
const SECRET_HEADERS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-csrf"];
/// Parts of names whose values are secrets.
const SECRET_WORDS: [&str; 4] = ["token", "key", "secret", "password"];

/// Whether the value of a header, parameter or field of this name is masked.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_HEADERS.contains(&name.as_str()) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// The text without tokens, long keys and data addresses.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let begins = at == 0 || !is_word(bytes[at - 1]);
        let length = if begins { secret_length(&bytes[at..]) } else { None };
        match length {
            Some((kept, length)) => {
                out.push_str(&text[copied..at + kept]);
                out.push_str(MASK);
                at += length;
                copied = at;
            }
            // To the end of the word: only its beginning can be one of a secret.
            None => {
                at += 1;
                while begins && at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
            }
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// An address with the values of its query masked where their names say so;
/// user names and fragments go.
#[must_use]
pub fn masked_url(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let address = crate::evidence::url_text::strip_user_info(address.to_owned());
    let mut out = masked(&address).into_owned();
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if is_secret_name(name) => {
                out.push_str(name);
                out.push('=');
                out.push_str(MASK);
            }
            _ => out.push_str(&masked(pair)),
        }
    }
    out
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn run(bytes: &[u8], allowed: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| allowed(**byte)).count()
}

/// Bytes kept and bytes taken of a secret that begins here.
fn secret_length(bytes: &[u8]) -> Option<(usize, usize)> {
    if bytes.starts_with(b"eyJ") {
        let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let length = run(bytes, part);
        let dots = bytes[..length].iter().filter(|byte| **byte == b'.').count();
        return (dots >= 2 && length >= 20).then_some((0, length));
    }
    if bytes.starts_with(b"pd_") {
        let length = run(bytes, is_word);
        return (length >= 20).then_some((0, length));
    }
    if bytes.starts_with(b"data:") {
        let comma = bytes.iter().take(200).position(|byte| *byte == b',')?;
        let payload = run(&bytes[comma + 1..], |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'%' | b'-' | b'_' | b'.')
        });
        return (payload >= MIN_HEX).then_some((comma + 1, comma + 1 + payload));
    }
    let bearer = bytes.len() > 7 && bytes[..7].eq_ignore_ascii_case(b"bearer ");
    if bearer {
        let length =
            run(&bytes[7..], |byte| is_word(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'='));
        return (length >= 12).then_some((7, 7 + length));
    }
    let hex = run(bytes, |byte| byte.is_ascii_hexdigit());
    (hex >= MIN_HEX && bytes.get(hex).is_none_or(|byte| !is_word(*byte))).then_some((0, hex))
}
