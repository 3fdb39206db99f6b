//! Text hygiene of everything a tool answers. Titles, errors and logs come
//! from the code under test: terminal sequences and control characters are
//! removed, credentials masked, cuts made between graphemes. Keys that say
//! nothing (null, empty, false) are left out.

use std::borrow::Cow;

use callboard_domain::text::strip_ansi;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

/// What a masked credential reads as.
const MASK: &str = "***";
/// Characters of a caller's own words that an error message repeats.
const QUOTED_CHARS: usize = 80;
/// Longest scheme of an address and longest head of a key, bytes: every word is
/// looked at, so none of them may be read to the end of the text.
const MAX_NAME: usize = 64;
/// Longest first part of a web token, bytes; for the same reason.
const MAX_TOKEN_HEAD: usize = 1_024;
/// Fields that hold code of the suite, made to be changed or replaced. What is a
/// secret by its name alone stays in it: whoever has the code has that too, and
/// with `***` the change could not be made.
const CODE: [&str; 6] =
    ["currentLine", "oldLine", "newLine", "sourceLine", "failingLocator", "suggestedLocator"];
/// The field that holds a patch of such code.
const PATCH: &str = "unifiedDiff";
/// Lists that are shown even when they are empty.
const KEPT_LISTS: [&str; 4] = ["items", "runs", "cases", "projects"];
/// Flags that are shown even when they are false.
const KEPT_FLAGS: [&str; 4] = ["hasBaseline", "ok", "authRequired", "truncated"];

/// An answer without what says nothing, and with clean text.
pub(crate) fn tidy(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(&text).into_owned()),
        Value::Array(list) => Value::Array(list.into_iter().map(tidy).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                let value = match value {
                    Value::String(text) if key == PATCH => patch(&text).map_or(Value::Null, Value::String),
                    Value::String(text) if CODE.contains(&&*key) => cleaned(&text, Secrets::ByForm).into(),
                    value => tidy(value),
                };
                (key, value)
            });
            Value::Object(fields.filter(|(key, value)| says_something(key, value)).collect())
        }
        other => other,
    }
}

/// A patch without what does not belong into text. The carriage returns at the
/// ends of its lines are part of them, and with a masked credential it would not
/// apply any more: then there is none.
fn patch(text: &str) -> Option<String> {
    let lines = text.split('\n').map(|line| {
        let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
        format!("{}{end}", printable(line))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    masked(&text, Secrets::ByForm).is_none().then_some(text)
}

fn says_something(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => key == "nextCursor",
        Value::Bool(false) => KEPT_FLAGS.contains(&key),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty() || KEPT_LISTS.contains(&key),
        _ => true,
    }
}

/// Text without terminal sequences, control characters and credentials; line
/// breaks and tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    cleaned(text, Secrets::All)
}

fn cleaned(text: &str, secrets: Secrets) -> Cow<'_, str> {
    let text = printable(text);
    match masked(&text, secrets) {
        Some(masked) => Cow::Owned(masked),
        None => text,
    }
}

/// The text without terminal sequences and control characters.
fn printable(text: &str) -> Cow<'_, str> {
    let text = strip_ansi(text);
    let is_unwanted = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if text.contains(is_unwanted) {
        return Cow::Owned(text.chars().filter(|character| !is_unwanted(*character)).collect());
    }
    text
}

/// Which secrets are masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrets {
    /// Whatever seems to be one.
    All,
    /// Those known by their form, and headers that hold one.
    ByForm,
}

/// The first `max_chars` characters, cut between graphemes and marked.
pub(crate) fn shortened(text: &str, max_chars: usize) -> Cow<'_, str> {
    if text.len() <= max_chars || text.chars().nth(max_chars).is_none() {
        return Cow::Borrowed(text);
    }
    let mut left = max_chars.saturating_sub(1);
    let mut end = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let Some(rest) = left.checked_sub(grapheme.chars().count()) else { break };
        left = rest;
        end = at + grapheme.len();
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

/// A caller's own words for an error message: short and on one line.
pub(crate) fn quoted(text: &str) -> String {
    let line: String =
        text.chars().take(QUOTED_CHARS * 2).map(|c| if c.is_control() { ' ' } else { c }).collect();
    shortened(&line, QUOTED_CHARS).into_owned()
}

/// The text with credentials masked; `None` when there are none.
fn masked(text: &str, secrets: Secrets) -> Option<String> {
    let bytes = text.as_bytes();
    let mut masked = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let begins_word = at == copied || !is_word(bytes[at - 1]);
        match begins_word.then(|| secret_at(bytes, at, secrets)).flatten() {
            Some((start, end)) => {
                masked.push_str(&text[copied..start]);
                masked.push_str(MASK);
                (copied, at) = (end, end);
            }
            None => at += 1,
        }
    }
    (copied > 0).then(|| masked + &text[copied..])
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const fn is_token(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b':')
}

/// The credential that begins with the word at `at`, or in the value that this
/// word names. Both ends lie beside ASCII characters.
fn secret_at(bytes: &[u8], at: usize, secrets: Secrets) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    if let Some((start, end)) = known_token(rest) {
        return Some((at + start, at + end));
    }
    let in_header = match rest[0].to_ascii_lowercase() {
        b'a' => after_word(rest, b"authorization").and_then(|end| authorization(bytes, at + end)),
        b'c' => after_word(rest, b"cookie").and_then(|end| cookies(bytes, at + end)),
        _ => None,
    };
    if in_header.is_some() || secrets == Secrets::ByForm {
        return in_header;
    }
    named_secret(bytes, at).or_else(|| password_of_address(bytes, at))
}

/// What is a credential by its form alone: our own keys, web tokens, and those
/// of widespread services, by their documented beginnings.
fn known_token(rest: &[u8]) -> Option<(usize, usize)> {
    const BEGINNINGS: [(&[u8], usize); 15] = [
        (b"ghp_", 20),
        (b"gho_", 20),
        (b"ghu_", 20),
        (b"ghs_", 20),
        (b"ghr_", 20),
        (b"github_pat_", 20),
        (b"glpat-", 16),
        (b"npm_", 30),
        (b"xoxb-", 10),
        (b"xoxp-", 10),
        (b"xapp-", 10),
        (b"sk_live_", 10),
        (b"sk_test_", 10),
        (b"AKIA", 16),
        (b"ASIA", 16),
    ];
    match rest[0] {
        b'p' | b'P' => {
            if let Some(length) = api_key(rest) {
                return Some((0, length));
            }
        }
        b'e' => {
            if let Some(length) = web_token(rest) {
                return Some((0, length));
            }
        }
        b'b' | b'B' => {
            let start = after_word(rest, b"bearer ")?;
            let token = &rest[start..][..run(&rest[start..], is_token)];
            let is_secret = token.len() >= 16 || (token.len() >= 6 && token.iter().any(u8::is_ascii_digit));
            return is_secret.then_some((start, start + token.len()));
        }
        b'-' => return private_key(rest),
        _ => {}
    }
    BEGINNINGS.iter().find_map(|(beginning, least)| {
        let length = run(rest.strip_prefix(*beginning)?, |byte| is_word(byte) || byte == b'-');
        (length >= *least).then_some((0, beginning.len() + length))
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
    const HEADERS: [&[u8]; 3] = [b"x-api-key", b"x-auth-token", b"x-csrf-token"];
    const FIELDS: [&[u8]; 12] = [
        b"password",
        b"passwd",
        b"client_secret",
        b"clientsecret",
        b"access_token",
        b"accesstoken",
        b"refresh_token",
        b"refreshtoken",
        b"id_token",
        b"api_key",
        b"apikey",
        b"secret",
    ];
    let rest = &bytes[at..];
    let header = HEADERS.iter().find_map(|name| after_word(rest, name));
    let length = header.or_else(|| FIELDS.iter().find_map(|name| after_word(rest, name)))?;
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
    let scheme = run(&rest[..rest.len().min(MAX_NAME)], |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-')
    });
    let user = after_word(&rest[scheme..], b"://").filter(|_| scheme > 0)? + scheme;
    let is_part =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'`' | b'\\');
    let info = &rest[user..][..run(&rest[user..], is_part)];
    let colon = info.iter().position(|byte| *byte == b':')?;
    let is_told = rest.get(user + info.len()) == Some(&b'@') && colon + 1 < info.len();
    is_told.then_some((at + user + colon + 1, at + user + info.len()))
}

/// Length of `word` when `bytes` begin with it, whatever the case.
fn after_word(bytes: &[u8], word: &[u8]) -> Option<usize> {
    let begins = bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    begins.then_some(word.len())
}

fn run(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(*byte)).unwrap_or(bytes.len())
}

/// `pd_` and hexadecimal digits; also a key that was cut somewhere.
fn api_key(bytes: &[u8]) -> Option<usize> {
    let digits = run(bytes.strip_prefix(b"pd_")?, |byte| byte.is_ascii_hexdigit());
    (digits >= 8).then_some(3 + digits)
}

/// Three base64url parts, the first a JSON object: a JWT.
fn web_token(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(b"eyJ") {
        return None;
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let part = |from: usize| run(&bytes[from..], is_part);
    let header = run(&bytes[..bytes.len().min(MAX_TOKEN_HEAD)], is_part);
    if header < 10 || bytes.get(header) != Some(&b'.') {
        return None;
    }
    let payload = part(header + 1);
    let second_dot = header + 1 + payload;
    (payload >= 4 && bytes.get(second_dot) == Some(&b'.')).then(|| second_dot + 1 + part(second_dot + 1))
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
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_are_masked_and_sentences_about_them_are_not() {
        let key = format!("pd_{}", "0a".repeat(32));
        let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
        let table = [
            (format!("key {key}, cut pd_0a1b2c3d"), "key ***, cut ***"),
            (format!("at {token}."), "at ***."),
            ("Authorization: Bearer abc".to_owned(), "Authorization: Bearer ***"),
            (
                "{\"authorization\":\"Basic dXNlcjpwYXNz\",\"a\":1}".to_owned(),
                "{\"authorization\":\"Basic ***\",\"a\":1}",
            ),
            ("proxy-authorization = 0123456789abcdef0".to_owned(), "proxy-authorization = ***"),
            ("sent Bearer 0123456789abcdef!".to_owned(), "sent Bearer ***!"),
            ("> Cookie: a=1; b=2\n> Accept: */*".to_owned(), "> Cookie: ***\n> Accept: */*"),
            ("'set-cookie': 'sid=x; Path=/', 'a': 1".to_owned(), "'set-cookie': '***', 'a': 1"),
            (
                "{\"name\":\"authorization\",\"value\":\"Bearer short1\"}".to_owned(),
                "{\"name\":\"authorization\",\"value\":\"Bearer ***\"}",
            ),
            ("[\"Cookie\", \"sid=x\"]".to_owned(), "[\"Cookie\", \"***\"]"),
            ("?authorization=Bearer%20abc".to_owned(), "?authorization=Bearer%20***"),
            ("X-API-Key: mykey12345\nx-auth-token: t".to_owned(), "X-API-Key: ***\nx-auth-token: ***"),
            (format!("ghp_{}, AKIA{}", "a1".repeat(18), "A1".repeat(8)), "***, ***"),
            ("postgres://bob:hunter2@db/x".to_owned(), "postgres://bob:***@db/x"),
            ("?access_token=abc&password=p%21w, x".to_owned(), "?access_token=***&password=***, x"),
            ("{\"password\":\"hunter 4\",\"a\":1}".to_owned(), "{\"password\":\"***\",\"a\":1}"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----".to_owned(),
                "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----",
            ),
            (
                "password: string, input[name=password] 'password'".to_owned(),
                "password: string, input[name=password] 'password'",
            ),
            (
                "http://localhost:3000/a@b secret, secrets".to_owned(),
                "http://localhost:3000/a@b secret, secrets",
            ),
            ("Authorization: an admin may delete".to_owned(), "Authorization: an admin may delete"),
            ("Cookie: the banner is shown".to_owned(), "Cookie: the banner is shown"),
            ("pd_module, Bearer of news, eyJhbGc.x".to_owned(), "pd_module, Bearer of news, eyJhbGc.x"),
        ];
        for (text, expected) in table {
            assert_eq!(plain(&text), expected, "{text}");
        }
    }

    #[test]
    fn text_loses_colours_and_control_characters_and_keeps_its_lines() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\r\n\tnext\u{0}\u{7}"), "red\n\tnext");
        assert_eq!(quoted("a\nb\u{1b}"), "a b ");
    }

    #[test]
    fn a_patch_stays_one_and_code_keeps_what_is_secret_by_its_name_alone() {
        let diff =
            "@@ -1,2 +1,2 @@\n const password = 'hunter2';\r\n-await \u{1b}[1mold();\r\n+await new();\r\n";
        let told = |diff: &str| {
            let line = "fill({ password: 'hunter2' })";
            tidy(json!({"unifiedDiff": diff, "newLine": line, "text": line}))
        };
        assert_eq!(
            told(diff),
            json!({
                "unifiedDiff": "@@ -1,2 +1,2 @@\n const password = 'hunter2';\r\n-await old();\r\n+await new();\r\n",
                "newLine": "fill({ password: 'hunter2' })", "text": "fill({ password: '***' })",
            })
        );
        let with_key = told(&format!("{diff} const key = 'pd_{}';\n", "0a".repeat(32)));
        assert!(with_key.get("unifiedDiff").is_none(), "it would not apply: {with_key}");
        let line = tidy(json!({"newLine": "set('Authorization', 'Bearer 0123456789abcdef')"}));
        assert_eq!(line["newLine"], "set('Authorization', 'Bearer ***')");
    }

    #[test]
    fn text_that_might_hold_a_token_at_every_word_is_read_once() {
        // Read to its end at every word, this would not come to an end.
        let hostile = "eyJ-".repeat(100_000);
        assert_eq!(plain(&hostile), hostile);
    }

    #[test]
    fn keys_that_say_nothing_are_left_out() {
        let answer = json!({
            "items": [{"a": null, "b": "", "c": [], "d": false, "e": 0, "f": {"g": null}}],
            "runs": [], "nextCursor": null, "ok": false, "hasBaseline": false,
        });
        let expected = json!({
            "items": [{"e": 0, "f": {}}], "runs": [], "nextCursor": null, "ok": false, "hasBaseline": false,
        });
        assert_eq!(tidy(answer), expected);
    }

    proptest! {
        #[test]
        fn cuts_never_exceed_the_limit_and_are_marked(text in "\\PC{0,60}", max in 1_usize..40) {
            let short = shortened(&text, max);
            prop_assert!(short.chars().count() <= max);
            if text.chars().count() > max {
                prop_assert!(short.ends_with('…'));
                prop_assert!(text.starts_with(short.trim_end_matches('…')));
            } else {
                prop_assert_eq!(&short, &text);
            }
        }

        #[test]
        fn cleaning_twice_changes_nothing_more(
            text in "(?s)(.|authorization|cookie|password|x-api-key|value|[:=\"', @]|://|Bearer |pd_0123456789|eyJhbGciOiJ9|\u{1b}\\[1m|-----BEGIN PRIVATE KEY-----){0,20}",
        ) {
            let once = plain(&text).into_owned();
            prop_assert_eq!(plain(&once), once.as_str());
        }
    }
}
