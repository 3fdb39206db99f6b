//! Secrets in what applications, suites and their tools write: the one set of
//! rules by which they are replaced, in traces, steps and answers to agents.
//!
//! A secret is known by its form (keys of widespread services, web tokens,
//! private keys), by the name it stands behind (`password="…"`, headers,
//! parameters of addresses), or by looking random in a parameter. What is known
//! by none of them stays: `/orders?page=3` reads the same afterwards. Every
//! word is read once, so the time is linear in the text; most of them are
//! ruled out by their first three letters ([`candidates`]).

mod candidates;
mod patterns;

use std::borrow::Cow;

use candidates::Candidates;
use patterns::{BEGINNINGS, FIELDS, HEADERS, MAX_NAME, MIN_HEX, is_of_scheme};

/// What a masked secret reads as.
pub const MASK: &str = "***";
/// Characters in a row from which a parameter that mixes letters and digits is
/// taken for a token.
const MIN_RANDOM: usize = 20;
/// Longest first part of a web token, bytes; for the same reason.
const MAX_TOKEN_HEAD: usize = 1_024;
/// Headers and parameters that carry credentials.
const SECRET_NAMES: [&str; 17] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-csrf",
    "auth",
    "jwt",
    "otp",
    "pass",
    "pwd",
    "session",
    "session_id",
    "sessionid",
    "sid",
    "sig",
    "signature",
    "x-amz-signature",
];
/// Parts of names whose values are secrets.
const SECRET_WORDS: [&str; 6] = ["token", "key", "secret", "password", "passwd", "credential"];
/// Names with such a part that name no secret.
const HARMLESS_WORDS: [&str; 2] = ["keyword", "keyboard"];
/// Where a text comes from, which decides what in it is taken for a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An application, a browser or a test wrote it: all rules.
    Application,
    /// Callboard wrote it around such texts: all rules, except that what only
    /// looks random is a hash of a commit or a file, or a link of its own.
    Service,
    /// Code of the suite, made to be changed: secrets by their form, and headers
    /// that hold one. Whoever has the code has the others too, and with a mask in
    /// it a change could not be made.
    Code,
}

/// Whether the value of a header, parameter or field of this name is masked.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let mut name = name.to_ascii_lowercase();
    for harmless in HARMLESS_WORDS {
        if name.contains(harmless) {
            name = name.replace(harmless, "");
        }
    }
    SECRET_NAMES.contains(&name.as_str()) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// What an application wrote, without its secrets.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    masked_from(text, Source::Application)
}

/// The text without its secrets. Borrowed when there are none.
#[must_use]
pub fn masked_from(text: &str, source: Source) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut candidates = Candidates::from_bytes(bytes);
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let begins_word = at == copied || !is_word(bytes[at - 1]);
        let may_begin = begins_word && candidates.contains(at);
        match may_begin.then(|| secret_at(bytes, at, source)).flatten() {
            Some((start, end)) => {
                out.push_str(&text[copied..start]);
                out.push_str(MASK);
                (copied, at) = (end, end);
            }
            None => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// An address with the values of its query masked where they or their names
/// look like secrets; user names and fragments go.
#[must_use]
pub fn masked_url(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let address = crate::evidence::url_text::strip_user_info(address.to_owned());
    let mut out = masked(&address).into_owned();
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, value)) if is_secret_name(name) || looks_random(value.as_bytes()) => {
                out.push_str(name);
                out.push('=');
                out.push_str(MASK);
            }
            None if looks_random(pair.as_bytes()) => out.push_str(MASK),
            _ => out.push_str(&masked(pair)),
        }
    }
    out
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const fn is_token(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b':')
}

/// The secret that begins with the word at `at`, or in the value that this word
/// names. Both ends lie beside ASCII characters.
fn secret_at(bytes: &[u8], at: usize, source: Source) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    if source != Source::Code
        && let Some(found) = parameter(bytes, at, source)
    {
        return Some(found);
    }
    if let Some((start, end)) = known_by_form(rest) {
        return Some((at + start, at + end));
    }
    let in_header = match rest[0].to_ascii_lowercase() {
        b'a' => after_word(rest, b"authorization").and_then(|end| authorization(bytes, at + end)),
        b'c' => after_word(rest, b"cookie").and_then(|end| cookies(bytes, at + end)),
        _ => None,
    };
    if in_header.is_some() || source == Source::Code {
        return in_header;
    }
    if source == Source::Application
        && let Some(length) = long_hex(rest)
    {
        return Some((at, at + length));
    }
    named_secret(bytes, at)
        .or_else(|| password_of_address(bytes, at))
        .or_else(|| data_address(rest).map(|(start, end)| (at + start, at + end)))
}

/// What is a secret by its form alone: our own keys, web tokens, keys of
/// widespread services by their documented beginnings, private keys.
fn known_by_form(rest: &[u8]) -> Option<(usize, usize)> {
    match rest[0] {
        b'p' => {
            if let Some(length) = api_key(rest) {
                return Some((0, length));
            }
        }
        b'e' => return web_token(rest).map(|length| (0, length)),
        b'b' | b'B' => {
            let start = after_word(rest, b"bearer ")?;
            let token = &rest[start..][..run(&rest[start..], is_token)];
            let is_secret = token.len() >= 12 || (token.len() >= 6 && token.iter().any(u8::is_ascii_digit));
            return is_secret.then_some((start, start + token.len()));
        }
        b'-' => return private_key(rest),
        _ => {}
    }
    BEGINNINGS.iter().filter(|(beginning, _)| beginning[0] == rest[0]).find_map(|(beginning, least)| {
        let length = run(rest.strip_prefix(*beginning)?, |byte| {
            is_word(byte) || byte == b'-' || (byte == b'.' && beginning.ends_with(b"."))
        });
        let key = &rest[..beginning.len() + length];
        // The end of a sentence is no part of it.
        let dots = key.iter().rev().take_while(|byte| **byte == b'.').count();
        (length - dots.min(length) >= *least).then_some((0, key.len() - dots))
    })
}

/// Hexadecimal digits that are a whole word.
fn long_hex(rest: &[u8]) -> Option<usize> {
    let digits = run(rest, |byte| byte.is_ascii_hexdigit());
    let ends = rest.get(digits).is_none_or(|byte| !is_word(*byte) && *byte != b'-');
    (digits >= MIN_HEX && ends).then_some(digits)
}

/// The payload of a `data:` address.
fn data_address(rest: &[u8]) -> Option<(usize, usize)> {
    let after_scheme = rest.strip_prefix(b"data:")?;
    let comma = 5 + after_scheme.iter().take(200).position(|byte| *byte == b',')?;
    let payload = run(&rest[comma + 1..], |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'%' | b'-' | b'_' | b'.')
    });
    (payload >= MIN_HEX).then_some((comma + 1, comma + 1 + payload))
}

/// The value of a parameter of an address, behind `?`, `&` or `#`, when its name
/// or it itself looks like a secret.
fn parameter(bytes: &[u8], at: usize, source: Source) -> Option<(usize, usize)> {
    let before = at.checked_sub(1).map(|before| bytes[before])?;
    if !matches!(before, b'?' | b'&' | b'#') {
        return None;
    }
    let rest = &bytes[at..];
    let name = run(&rest[..rest.len().min(MAX_NAME)], |byte| {
        is_word(byte) || matches!(byte, b'-' | b'.' | b'[' | b']' | b'%')
    });
    let is_named = rest.get(name) == Some(&b'=');
    let start = if is_named { at + name + 1 } else { at };
    let ends = |offset: usize| {
        let byte = bytes[start + offset];
        let next = bytes.get(start + offset + 1);
        !byte.is_ascii_graphic() && byte.is_ascii()
            || matches!(byte, b'?' | b'&' | b'#' | b'"' | b'\'' | b'`' | b'(' | b')' | b'<' | b'>' | b'\\')
            || (byte == b',' && next.is_none_or(u8::is_ascii_whitespace))
    };
    let length = (0..bytes.len() - start).position(ends).unwrap_or(bytes.len() - start);
    let is_secret = is_named && std::str::from_utf8(&rest[..name]).is_ok_and(is_secret_name);
    let value = &bytes[start..start + length];
    let is_masked = length > 0 && (is_secret || (source == Source::Application && looks_random(value)));
    // A key in the place of a name goes with its value.
    let is_key = is_named && known_by_form(rest).is_some_and(|(from, to)| from == 0 && to <= name);
    is_masked.then_some((if is_key { at } else { start }, start + length))
}

/// Whether a value is like a token: many characters in a row that mix letters
/// and digits. Dates, UUIDs and titles in addresses are not.
fn looks_random(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).any(|part| {
        part.len() >= MIN_RANDOM
            && part.iter().any(u8::is_ascii_digit)
            && part.iter().any(u8::is_ascii_alphabetic)
    })
}

/// The inside of a private key in PEM, also of one that was cut.
fn private_key(rest: &[u8]) -> Option<(usize, usize)> {
    const END_OF_HEAD: &[u8] = b"PRIVATE KEY-----";
    if !rest.starts_with(b"-----BEGIN ") {
        return None;
    }
    let line = &rest[..rest.len().min(MAX_NAME)];
    let head = line.windows(END_OF_HEAD.len()).position(|part| part == END_OF_HEAD)? + END_OF_HEAD.len();
    let end =
        rest[head..].windows(9).position(|part| part == b"-----END ").map_or(rest.len(), |at| head + at);
    (end > head && !rest[head..end].trim_ascii().eq(MASK.as_bytes())).then_some((head, end))
}

/// The value of a field that is a secret by its name: in quotes, behind `=`
/// without a space, or of a header. `password: string` is code and stays.
fn named_secret(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    let first = rest[0].to_ascii_lowercase();
    let named = |name: &&[u8]| if name[0] == first { after_word(rest, name) } else { None };
    let header = HEADERS.iter().find_map(named);
    let length = header.or_else(|| FIELDS.iter().find_map(named))?;
    let start = value_start(bytes, at + length)?;
    let before = bytes[start - 1];
    if matches!(before, b'"' | b'\'' | b'`') {
        let end = start + run(&bytes[start..], |byte| byte != before && !matches!(byte, b'\n' | b'\\'));
        return (end > start).then_some((start, end));
    }
    let is_bare = header.is_some() || before == b'=';
    let end =
        start + run(&bytes[start..], |byte| is_token(byte) || matches!(byte, b'%' | b'!' | b'*' | b'$'));
    (is_bare && end > start).then_some((start, end))
}

/// The password of `scheme://name:password@host`.
fn password_of_address(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    let scheme = run(&rest[..rest.len().min(MAX_NAME)], is_of_scheme);
    let user = after_word(&rest[scheme..], b"://").filter(|_| scheme > 0)? + scheme;
    let is_part =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'`' | b'\\');
    let info = &rest[user..][..run(&rest[user..], is_part)];
    let colon = info.iter().position(|byte| *byte == b':')?;
    let is_given = rest.get(user + info.len()) == Some(&b'@') && colon + 1 < info.len();
    is_given.then_some((at + user + colon + 1, at + user + info.len()))
}

/// Length of `word` when `bytes` begin with it, whatever the case.
fn after_word(bytes: &[u8], word: &[u8]) -> Option<usize> {
    let begins = bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    begins.then_some(word.len())
}

fn run(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(*byte)).unwrap_or(bytes.len())
}

/// `pd_` and hexadecimal digits, also of a key that was cut somewhere; or a long
/// word with a digit.
fn api_key(bytes: &[u8]) -> Option<usize> {
    let behind = bytes.strip_prefix(b"pd_")?;
    let word = &behind[..run(behind, |byte| is_word(byte) || byte == b'-')];
    if word.len() + 3 >= MIN_RANDOM && word.iter().any(u8::is_ascii_digit) {
        return Some(3 + word.len());
    }
    let digits = run(word, |byte| byte.is_ascii_hexdigit());
    (digits >= 8).then_some(3 + digits)
}

/// Parts of base64url with dots between them, the first a JSON object: a signed
/// token has three parts, an encrypted one five, of which one may be empty.
fn web_token(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(b"eyJ") {
        return None;
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let head = run(&bytes[..bytes.len().min(MAX_TOKEN_HEAD)], is_part);
    if bytes.get(head) != Some(&b'.') {
        return None;
    }
    let whole = &bytes[..run(bytes, |byte| is_part(byte) || byte == b'.')];
    let dots = whole.iter().filter(|byte| **byte == b'.').count();
    // The end of a sentence is no part of it.
    let length = whole.len() - whole.iter().rev().take_while(|byte| **byte == b'.').count();
    (dots >= 2 && length >= 20).then_some(length)
}

/// Where the value of `name: value` begins, seen from behind the name; quotes
/// as in JSON are allowed around both. Lists of headers tell them as
/// `"name", "value"` or `"name": …, "value": "…"`.
fn value_start(bytes: &[u8], mut at: usize) -> Option<usize> {
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n');
    let quotes = run(&bytes[at..], is_quote);
    at += quotes;
    at += run(&bytes[at..], is_space);
    if quotes > 0 && bytes.get(at) == Some(&b',') {
        at += 1;
        at += run(&bytes[at..], is_space);
        let quotes = run(&bytes[at..], is_quote);
        at += quotes;
        return match after_word(&bytes[at..], b"value") {
            Some(length) => named_value(bytes, at + length),
            None => (quotes > 0).then_some(at),
        };
    }
    named_value(bytes, at)
}

/// [`value_start`] from behind the name and its quote.
fn named_value(bytes: &[u8], mut at: usize) -> Option<usize> {
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t');
    at += run(&bytes[at..], is_quote);
    at += run(&bytes[at..], is_space);
    if !matches!(bytes.get(at), Some(b':' | b'=')) {
        return None;
    }
    at += 1;
    at += run(&bytes[at..], is_space);
    Some(at + run(&bytes[at..], is_quote))
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    start + run(&bytes[start..], |byte| !matches!(byte, b'\n' | b'"' | b'\'' | b'`' | b'\\'))
}

/// What follows a scheme name, or one long token. Plain sentences that begin
/// with "Authorization:" are titles of tests and stay.
fn authorization(bytes: &[u8], after_name: usize) -> Option<(usize, usize)> {
    const SCHEMES: [&[u8]; 10] = [
        b"basic ",
        b"bearer ",
        b"basic%20",
        b"bearer%20",
        b"digest ",
        b"token ",
        b"negotiate ",
        b"ntlm ",
        b"apikey ",
        b"aws4-hmac-sha256 ",
    ];
    let start = value_start(bytes, after_name)?;
    let scheme = SCHEMES.iter().find_map(|scheme| after_word(&bytes[start..], scheme));
    if let Some(length) = scheme {
        let end = value_end(bytes, start + length);
        return (end > start + length).then_some((start + length, end));
    }
    let length = run(&bytes[start..], is_token);
    (length >= 16).then_some((start, start + length))
}

/// A list of cookies: the value begins with `name=`.
fn cookies(bytes: &[u8], after_name: usize) -> Option<(usize, usize)> {
    let start = value_start(bytes, after_name)?;
    let name = run(&bytes[start..], |byte| is_word(byte) || matches!(byte, b'-' | b'.'));
    let is_cookie = name > 0 && bytes.get(start + name) == Some(&b'=');
    is_cookie.then(|| (start, value_end(bytes, start)))
}

#[cfg(test)]
mod tests;
