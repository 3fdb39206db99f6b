//! Replaces data in text by what kind of data it is. The order matters: what
//! an earlier mask has taken no later one sees.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::segment::pattern;

static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:status|http(?:/\d(?:\.\d)?)?|failed with|responded with|returned)(?:\s+(?:code|status|was|of))*\s*[:=]?\s*(\d{3})\b",
    )
});
// Servers' own words behind a number say that it is a status.
static REASON: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b([45]\d\d)\s+(?:bad request|unauthori[sz]ed|payment required|forbidden|not found|method not allowed|not acceptable|request timeout|conflict|gone|precondition failed|(?:payload|content) too large|unsupported media type|unprocessable (?:entity|content)|locked|too early|too many requests|internal server error|not implemented|bad gateway|service unavailable|gateway time-?out)\b",
    )
});
static JWT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"));
static URL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?i)\b(?:https?|wss?|ftp)://[^\s"'`<>()\[\]{}]+"#));
static EMAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"));
static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b",
    )
});
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?::\d{1,5})?\b"));
// A `file:` address, a drive, segments, and the last segment.
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(^|[\s'"`(=:,\[])((?i:file:(?://[\w.-]*)?/?)?(?:[A-Za-z]:)?(?:(?:/|\\{1,2})[\w.@%+~-]+)+(?:/|\\{1,2})([\w.@%+~-]+))"#,
    )
});
// Between quotes names of folders may hold blanks: those of users do.
static QUOTED_PATH: LazyLock<Regex> = LazyLock::new(|| {
    let within = |quote: char| {
        let segment = format!(r"[^\s{quote}/\\:,;|?*][^{quote}/\\\n:,;|?*]*");
        format!(
            r"{quote}((?i:file:(?://[\w.-]*)?/?)?(?:[A-Za-z]:)?(?:(?:/|\\{{1,2}}){segment})+(?:/|\\{{1,2}})({segment})){quote}"
        )
    };
    pattern(&QUOTES.map(within).join("|"))
});
static FILE_ROOT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?i:file:)|^[A-Za-z]:|\\|^/(?:Applications|Library|Users|Volumes|__w|bin|dev|etc|home|lib|mnt|opt|private|proc|root|srv|sys|tmp|usr|var|workspace)/",
    )
});
static EXTENSION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.[A-Za-z]\w{0,7}$"));
// The system names the path it was asked for: `open '/data/uploads/7'`.
static FILE_ERROR: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\bE(?:ACCES|BUSY|EXIST|ISDIR|MFILE|NOENT|NOSPC|NOTDIR|NOTEMPTY|PERM|ROFS)\b"));
const VERBS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const QUOTES: [char; 3] = ['\'', '"', '`'];
static REQUEST: LazyLock<Regex> = LazyLock::new(|| {
    let verbs = VERBS.join("|");
    pattern(&format!(r#"\b((?:{verbs})\s+["'`]?)(/[^\s"'`<>()\[\]{{}}]+)"#))
});
static HEX: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(?:0x[0-9a-fA-F]+|[0-9a-fA-F]{6,})\b"));
static AMOUNT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)[$€£¥]\s?\d[\d.,]*\d|[$€£¥]\s?\d|\b\d+(?:[.,]\d+)*\s?(?:ms|s|secs?|seconds?|mins?|minutes?|hours?|h|days?|px|[kmgt]i?b|bytes?|usd|eur|gbp)\b|\b\d+(?:[.,]\d+)*\s?[%€]",
    )
});
static DIGITS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d+(?:[.,]\d+)*"));
static WORD_NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\p{L})\d{3,}"));
static NUMBERS: LazyLock<Regex> = LazyLock::new(|| pattern(r"<NUM>(?:[,;\s]+<NUM>)+"));
static JSON_EXCERPT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"["'`].*["'`](?:\.\.\.)?\s+is not valid JSON"#));

/// Digits that have to stay are moved out of the way, to private characters.
const SHELTER: u32 = 0xe000;

/// Masks free text.
pub(super) fn text(text: &str) -> String {
    let text = STATUS.replace_all(text, |found: &Captures<'_>| {
        let (all, status) = (&found[0], &found[1]);
        format!("{}{}", &all[..all.len() - status.len()], sheltered(status))
    });
    let text = REASON.replace_all(&text, |found: &Captures<'_>| {
        format!("{}{}", sheltered(&found[1]), &found[0][found[1].len()..])
    });
    let text = JWT.replace_all(&text, "<JWT>");
    let text = URL.replace_all(&text, |found: &Captures<'_>| address(&found[0]));
    let text = REQUEST.replace_all(&text, |found: &Captures<'_>| {
        let (path, tail) = without_punctuation(&found[2]);
        format!("{}{}{tail}", &found[1], segments(path))
    });
    let text = EMAIL.replace_all(&text, "<EMAIL>");
    let text = UUID.replace_all(&text, "<UUID>");
    let text = TIME.replace_all(&text, "<TIME>");
    let text = ADDRESS.replace_all(&text, |found: &Captures<'_>| {
        let is_address = (1..=4).all(|octet| found[octet].parse::<u16>().is_ok_and(|octet| octet <= 255));
        if is_address { "<IP>".to_owned() } else { found[0].to_owned() }
    });
    let text = paths(&text);
    let text = hex(&text);
    let text = AMOUNT.replace_all(&text, "<NUM>");
    let text = numbers(&text);
    let text = NUMBERS.replace_all(&text, "<NUM>");
    unsheltered(&text)
}

/// Masks an identifier: a selector, a test id. Paths and units are left, they
/// are not data there.
pub(super) fn identifier(text: &str) -> String {
    let text = UUID.replace_all(text, "<UUID>");
    let text = hex(&text);
    numbers(&text)
}

/// Leaves out the excerpt of what could not be parsed.
pub(super) fn json_excerpt(text: &str) -> Cow<'_, str> {
    JSON_EXCERPT.replace_all(text, "<STR> is not valid JSON")
}

/// HTTP statuses that a text names as such.
pub(super) fn statuses(text: &str) -> impl Iterator<Item = u16> {
    STATUS
        .captures_iter(text)
        .chain(REASON.captures_iter(text))
        .filter_map(|found| found[1].parse().ok())
        .filter(|status| (100..600).contains(status))
}

fn hex(text: &str) -> Cow<'_, str> {
    HEX.replace_all(text, |found: &Captures<'_>| {
        let run = &found[0];
        // Digits alone are a number, letters alone a word.
        let is_mixed = run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic());
        if is_mixed { "<HEX>".to_owned() } else { run.to_owned() }
    })
}

fn numbers(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut taken = 0;
    for found in DIGITS.find_iter(text) {
        let before = text[..found.start()].chars().next_back();
        let after = text[found.end()..].chars().next();
        if !before.is_some_and(char::is_alphabetic) && !after.is_some_and(char::is_alphabetic) {
            masked.push_str(&text[taken..found.start()]);
            masked.push_str("<NUM>");
            taken = found.end();
        }
    }
    masked.push_str(&text[taken..]);
    WORD_NUMBER.replace_all(&masked, "$1<NUM>").into_owned()
}

/// Files by their names alone. Paths of addresses keep their words: they say
/// what was asked for.
fn paths(text: &str) -> String {
    let is_about_files = FILE_ERROR.is_match(text);
    let file = |name: &str| format!("<PATH>/{}", DIGITS.replace_all(name, "<N>"));
    let text = QUOTED_PATH.replace_all(text, |found: &Captures<'_>| {
        let parts = (1..found.len()).step_by(2).find_map(|at| found.get(at).zip(found.get(at + 1)));
        match parts {
            Some((path, name)) if is_about_files || is_file(path.as_str()) => {
                let quote = &found[0][..1];
                format!("{quote}{}{quote}", file(name.as_str()))
            }
            _ => found[0].to_owned(),
        }
    });
    let text = PATH.replace_all(&text, |found: &Captures<'_>| {
        let (path, tail) = without_punctuation(&found[2]);
        let before = found.get(2).map_or("", |path| &text[..path.start()]);
        if !is_after_verb(before) && (is_about_files || is_file(path)) {
            format!("{}{}", &found[1], file(&found[3]))
        } else {
            format!("{}{}{tail}", &found[1], segments(path))
        }
    });
    text.into_owned()
}

fn is_after_verb(before: &str) -> bool {
    let before = before.trim_end_matches(QUOTES).trim_end();
    VERBS.iter().any(|verb| before.ends_with(verb))
}

/// Whether a path is one of the file system rather than of an address.
fn is_file(path: &str) -> bool {
    FILE_ROOT.is_match(path) || EXTENSION.is_match(path)
}

/// An address, masked, or whatever else a page was asked to go to.
pub(super) fn location(text: &str) -> String {
    if URL.find(text).is_some_and(|found| found.start() == 0) { address(text) } else { self::text(text) }
}

/// A URL without origin, query and fragment; parts that hold data are masked.
fn address(url: &str) -> String {
    let (url, tail) = without_punctuation(url);
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let path = rest.find(['/', '?', '#']).map_or("", |end| &rest[end..]);
    format!("<URL>{}{tail}", segments(path))
}

/// The path of an address without query and fragment; segments that hold data
/// are masked.
fn segments(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut masked = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let is_data = part.chars().count() > 24 || part.chars().any(|one| one.is_ascii_digit());
        masked.push('/');
        masked.push_str(if is_data { "<*>" } else { part });
    }
    masked
}

/// What ends a sentence is no part of the address before it.
fn without_punctuation(address: &str) -> (&str, &str) {
    address.split_at(address.trim_end_matches(['.', ',', ';', ':', '!', '?']).len())
}

fn sheltered(digits: &str) -> String {
    let moved = |digit: char| digit.to_digit(10).and_then(|value| char::from_u32(SHELTER + value));
    digits.chars().map(|digit| moved(digit).unwrap_or(digit)).collect()
}

fn unsheltered(text: &str) -> String {
    let back = |one: char| u32::from(one).checked_sub(SHELTER).and_then(|value| char::from_digit(value, 10));
    text.chars().map(|one| back(one).unwrap_or(one)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn data_is_replaced_by_its_kind_and_words_stay() {
        for (given, expected) in [
            (
                "POST https://api.example.com/v1/orders/55028?x=1 failed with 503 Service Unavailable (req 43ca755349329a82)",
                "POST <URL>/<*>/orders/<*> failed with 503 Service Unavailable (req <HEX>)",
            ),
            (
                "Order f0feab6e-7399-49e3-a26d-ea9875a1c358 not found after 7 attempts",
                "Order <UUID> not found after <NUM> attempts",
            ),
            (
                "User carol+1490@example.com exists (created 2024-07-02T00:02:20.942Z)",
                "User <EMAIL> exists (created <TIME>)",
            ),
            ("open '/tmp/run-57096854/fixtures/14.json'", "open '<PATH>/<N>.json'"),
            ("connect 10.0.0.255:5432 and 999.1.1.1", "connect <IP> and <NUM>"),
            (
                "took 1.5 s, 30% of $1,204.50, 0xdeadbeef, deadbeef, user1234, v1, 1, 2, 3",
                "took <NUM> of <NUM>, <HEX>, deadbeef, user<NUM>, v1, <NUM>",
            ),
            ("token eyJhbGciOi.eyJzdWIiOi.abc at 12:30:01", "token <JWT> at <TIME>"),
            ("status: 404 of 404", "status: 404 of <NUM>"),
            ("GET /a -> 403 Forbidden of 500 rows", "GET /a -> 403 Forbidden of <NUM> rows"),
            ("a/b and /x are no paths", "a/b and /x are no paths"),
        ] {
            assert_eq!(super::text(given), expected);
        }
    }

    #[test]
    fn paths_of_addresses_keep_their_words_and_files_only_their_names() {
        for (given, expected) in [
            ("GET /api/users/123 failed with 500", "GET /api/users/<*> failed with 500"),
            ("GET /api/orders/77 failed with 500", "GET /api/orders/<*> failed with 500"),
            (
                "DELETE '/api/carts/f0feab6e-7399-49e3-a26d-ea9875a1c358/lines?force=1': 409",
                "DELETE '/api/carts/<*>/lines': <NUM>",
            ),
            (
                "PUT /home/settings/theme and GET /files/a1.json?v=2.",
                "PUT /home/settings/theme and GET /files/<*>.",
            ),
            (
                "expected /shop/orders/77/items, got /shop/cart.",
                "expected /shop/orders/<*>/items, got /shop/cart.",
            ),
            ("cannot read /home/jane/x7/cache", "cannot read <PATH>/cache"),
            ("wrote /reports/2024/summary7.json", "wrote <PATH>/summary<N>.json"),
            (
                "EACCES: permission denied, mkdir '/data/uploads/77'",
                "EACCES: permission denied, mkdir '<PATH>/<N>'",
            ),
        ] {
            assert_eq!(super::text(given), expected);
        }
    }

    #[test]
    fn folders_of_users_leave_no_name_behind() {
        for (given, expected) in [
            ("Cannot find module 'file:///home/runner/work/a/b.js'", "Cannot find module '<PATH>/b.js'"),
            ("import file:///C:/Users/jane/shop/b7.mjs failed", "import <PATH>/b<N>.mjs failed"),
            (r"cannot open 'C:\Users\John Doe\proj\x.json' now", "cannot open '<PATH>/x.json' now"),
            (r#"{"path":"C:\\Users\\John Doe\\my proj\\x.json"}"#, r#"{"path":"<PATH>/x.json"}"#),
            (r"at C:\\Users\\jane\\x.json", "at <PATH>/x.json"),
            ("open `/Users/John Doe/file 3.txt`", "open `<PATH>/file <N>.txt`"),
            ("'/shop/new order/confirm it'", "'/shop/new order/confirm it'"),
        ] {
            assert_eq!(super::text(given), expected);
        }
    }

    #[test]
    fn excerpts_and_identifiers_are_masked_in_ways_of_their_own() {
        assert_eq!(
            super::json_excerpt("Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON"),
            "Unexpected token <STR> is not valid JSON"
        );
        assert_eq!(super::identifier("#user-26338 .row12 li.i4a2b1c"), "#user-<NUM> .row12 li.i4a2b1c");
    }
}
