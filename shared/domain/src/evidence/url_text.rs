//! Addresses without secrets: what remains of a URL is scheme, host and path;
//! user names, passwords, query values and fragments never get past here.

use url::Url;

use crate::secrets::is_secret_name;
use crate::text;

const MAX_URL_CHARS: usize = 2_000;
/// Query keys named in a normalised address.
const MAX_QUERY_KEYS: usize = 50;

/// `scheme://host/path`. What is no absolute URL stays as it is, except that
/// everything from the first `?` or `#` goes, and so does the payload of a
/// `data:` address. At most 2,000 characters.
#[must_use]
pub fn strip_url(address: String) -> String {
    let address = text::cut(address, MAX_URL_CHARS);
    let Some(parts) = Parts::from_address(&address) else {
        return strip_unusual(address);
    };
    if parts.user_info.is_empty() && parts.rest.len() == parts.path.len() {
        return address;
    }
    format!("{}://{}{}", parts.scheme, parts.host, parts.path)
}

/// The form in which requests of different tests are the same request: path
/// with UUID segments as `:uuid` and numeric segments as `:id`, and the names
/// of the query keys, each once, with `<redacted>` as value. No host.
#[must_use]
pub fn normalise_url(address: &str) -> String {
    let address = text::cut_str(address, MAX_URL_CHARS);
    let rest = Parts::from_address(address).map_or(address, |parts| parts.rest);
    let without_fragment = rest.split('#').next().unwrap_or_default();
    let (path, query) = without_fragment.split_once('?').unwrap_or((without_fragment, ""));
    let mut normalised = String::with_capacity(rest.len());
    if path.is_empty() {
        normalised.push('/');
    }
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            normalised.push('/');
        }
        normalised.push_str(segment_template(segment));
    }
    let mut keys: Vec<&str> = Vec::new();
    // A bare word in a query may be a token: it is no key.
    for (key, _) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        if !key.is_empty() && keys.len() < MAX_QUERY_KEYS && !keys.contains(&key) {
            normalised.push(if keys.is_empty() { '?' } else { '&' });
            normalised.push_str(key);
            normalised.push_str("=<redacted>");
            keys.push(key);
        }
    }
    text::cut(normalised, MAX_URL_CHARS)
}

/// A sentence in which addresses lose the query values that look like secrets:
/// `Navigate to /login?token=<redacted>&page=2`. What stands behind a `?`
/// belongs to an address when a `/` stands before it in the same word; a
/// pattern of a test that escapes it does not.
#[must_use]
pub fn redact_queries(sentence: String) -> String {
    if !sentence.contains('?') {
        return sentence;
    }
    let ends_word = |character: char| {
        character.is_whitespace() || matches!(character, '"' | '\'' | '`' | '(' | ')' | '…')
    };
    let mut redacted = String::with_capacity(sentence.len());
    let mut rest = sentence.as_str();
    while let Some(at) = rest.find('?') {
        let (before, behind) = (&rest[..at], &rest[at + 1..]);
        redacted.push_str(before);
        redacted.push('?');
        let word = before.rsplit(ends_word).next().unwrap_or_default();
        let query = &behind[..behind.find(ends_word).unwrap_or(behind.len())];
        rest = behind;
        if word.contains('/') && !word.ends_with('\\') {
            redact_values(query, &mut redacted);
            rest = &behind[query.len()..];
        }
    }
    redacted.push_str(rest);
    redacted
}

/// Writes a query and a fragment behind it, without what looks like a secret.
fn redact_values(query: &str, redacted: &mut String) {
    let mut rest = query;
    loop {
        let end = rest.find(['&', '#']).unwrap_or(rest.len());
        match rest[..end].split_once('=') {
            Some((name, value)) if !is_secret(name, value) => redacted.push_str(&rest[..end]),
            Some((name, _)) => {
                redacted.push_str(name);
                redacted.push_str("=<redacted>");
            }
            None if end == 0 => {}
            // A bare word may be a token: it is no name.
            None => redacted.push_str("<redacted>"),
        }
        if end == rest.len() {
            return;
        }
        redacted.push_str(&rest[end..=end]);
        rest = &rest[end + 1..];
    }
}

/// Parts of names of parameters whose values lead to somebody's account, beside
/// those that are secrets everywhere.
const ACCOUNT_PARTS: [&str; 8] =
    ["auth", "session", "signature", "jwt", "assertion", "nonce", "ticket", "mail"];
/// Whole names of such values.
const ACCOUNT_NAMES: [&str; 5] = ["code", "state", "pin", "hash", "user"];
/// Random values are at least this long; words and numbers of tests are shorter.
const RANDOM_CHARS: usize = 24;

/// Whether a query value is taken for a secret, by its name, by a secret name
/// inside of an address it holds, or because it is long and looks random.
fn is_secret(name: &str, value: &str) -> bool {
    if value.is_empty() {
        return false;
    }
    let (name, inside) = (name.to_ascii_lowercase(), value.to_ascii_lowercase());
    let leads_to_account = |text: &str| ACCOUNT_PARTS.iter().any(|part| text.contains(part));
    is_secret_name(&name)
        || ACCOUNT_NAMES.contains(&name.as_str())
        || leads_to_account(&name)
        || inside.contains("%3d") && (is_secret_name(&inside) || leads_to_account(&inside))
        || inside.contains('=')
        || value.len() >= RANDOM_CHARS && value.contains(|character: char| character.is_ascii_digit())
}

/// Removes `user:password@` from a remote address, in URLs as well as in the
/// short form `user:password@host:path`. The `git@host:path` form of SSH names
/// no secret and stays.
#[must_use]
pub fn strip_user_info(address: String) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, address.as_str()),
    };
    let authority_end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let Some(at) = rest[..authority_end].rfind('@') else {
        return address;
    };
    match scheme {
        Some(scheme) => format!("{scheme}://{}", &rest[at + 1..]),
        None if rest[..at].contains(':') => rest[at + 1..].to_owned(),
        None => address,
    }
}

/// An absolute http or https URL without user name and password, of at most
/// `max_chars` characters.
#[must_use]
pub fn is_web_url(address: &str, max_chars: usize) -> bool {
    address.chars().take(max_chars + 1).count() <= max_chars
        && !address.chars().any(|character| character.is_control() || character.is_whitespace())
        && Url::parse(address).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
        })
        && address.contains("://")
}

/// The parts of `scheme://user@host/path?query#fragment`, borrowed. Browsers
/// send addresses in this form, so the exact parser is not needed for them.
struct Parts<'a> {
    scheme: &'a str,
    user_info: &'a str,
    host: &'a str,
    path: &'a str,
    /// Path with query and fragment.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn from_address(address: &'a str) -> Option<Self> {
        let (scheme, behind) = address.split_once("://")?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        if !is_scheme {
            return None;
        }
        let authority_end = behind.find(['/', '\\', '?', '#']).unwrap_or(behind.len());
        let (authority, rest) = behind.split_at(authority_end);
        let (user_info, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
        Some(Self { scheme, user_info, host, path, rest })
    }
}

fn strip_unusual(address: String) -> String {
    if address.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
        return address.split([',', '?', '#']).next().unwrap_or_default().to_owned();
    }
    if let Ok(url) = Url::parse(&address)
        && let Some(host) = url.host_str()
    {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        return format!("{}://{host}{port}{}", url.scheme(), url.path());
    }
    match address.find(['?', '#']) {
        Some(position) => address[..position].to_owned(),
        None => address,
    }
}

fn segment_template(segment: &str) -> &str {
    if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
        return ":id";
    }
    let is_uuid = segment.len() == 36
        && segment.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_uuid { ":uuid" } else { segment }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_remains_of_a_url_is_scheme_host_and_path() {
        for (address, expected) in [
            ("https://shop.test/cart/1?token=s3cret#top", "https://shop.test/cart/1"),
            ("https://shop.test:8443/", "https://shop.test:8443/"),
            ("https://user:s3cret@shop.test/a@b", "https://shop.test/a@b"),
            ("https://shop.test?token=s3cret", "https://shop.test"),
            ("ws://shop.test/live#s3cret", "ws://shop.test/live"),
            ("https:/user:s3cret@shop.test/x?s3cret", "https://shop.test/x"),
            ("about:blank", "about:blank"),
            ("data:text/html,<p>s3cret", "data:text/html"),
            ("/relative?token=s3cret", "/relative"),
            ("not an address", "not an address"),
        ] {
            assert_eq!(strip_url(address.into()), expected, "{address}");
        }
    }

    #[test]
    fn requests_of_different_tests_get_one_name() {
        for (address, expected) in [
            ("https://shop.test/api/users/42/orders", "/api/users/:id/orders"),
            ("https://shop.test/f/0d8f7a52-1c1f-4d6e-9d8a-0a4c8a5b7c11?v=1", "/f/:uuid?v=<redacted>"),
            ("https://shop.test/s?q=s3cret&page=2&q=x#s3cret", "/s?q=<redacted>&page=<redacted>"),
            ("https://shop.test/s?s3cret", "/s"),
            ("https://shop.test", "/"),
            ("/api/7", "/api/:id"),
        ] {
            assert_eq!(normalise_url(address), expected, "{address}");
        }
    }

    #[test]
    fn sentences_lose_what_looks_like_a_secret() {
        for (sentence, expected) in [
            ("Navigate to \"/login?token=s3cret&next=a\"", "Navigate to \"/login?token=<redacted>&next=a\""),
            ("Navigate to \"/visual?c=3\"", "Navigate to \"/visual?c=3\""),
            ("goto /a?page=2&&empty=#top=1", "goto /a?page=2&&empty=#top=1"),
            ("goto /a?next=%2Fb%3FaccessToken%3Dx&c=1", "goto /a?next=<redacted>&c=1"),
            ("goto /a?v=9f86d081884c7d659a2feaa0c55ad015", "goto /a?v=<redacted>"),
            (
                "goto /a?apiKey=x&SESSION_ID=y&code=z",
                "goto /a?apiKey=<redacted>&SESSION_ID=<redacted>&code=<redacted>",
            ),
            ("page.goto(http://a.test/?s3cret)", "page.goto(http://a.test/?<redacted>)"),
            (
                "GET a.test/x?auth=s3cret#id_token=s3cret is answered?",
                "GET a.test/x?auth=<redacted>#id_token=<redacted> is answered?",
            ),
            ("Expect \"toHaveURL\" /\\/list\\?page=2/", "Expect \"toHaveURL\" /\\/list\\?page=2/"),
            ("is it red? or blue?", "is it red? or blue?"),
            ("a/b?", "a/b?"),
        ] {
            assert_eq!(redact_queries(sentence.into()), expected);
        }
    }

    #[test]
    fn remotes_lose_their_credentials() {
        for (remote, expected) in [
            ("https://bot:s3cret@git.test/shop.git", "https://git.test/shop.git"),
            ("https://s3cret@git.test/shop.git", "https://git.test/shop.git"),
            ("git@git.test:org/shop.git", "git@git.test:org/shop.git"),
            ("bot:s3cret@git.test:shop.git", "git.test:shop.git"),
            ("https://git.test/a@b", "https://git.test/a@b"),
        ] {
            assert_eq!(strip_user_info(remote.into()), expected, "{remote}");
        }
    }

    #[test]
    fn links_are_absolute_web_addresses() {
        assert!(is_web_url("https://ci.test/builds/1?x=1", 500));
        for bad in [
            "javascript:alert(1)",
            "ci.test/x",
            "https://u:p@ci.test/",
            "ftp://ci.test/",
            "https://",
            "https://a b",
        ] {
            assert!(!is_web_url(bad, 500), "{bad}");
        }
        assert!(!is_web_url(&format!("https://ci.test/{}", "x".repeat(500)), 500));
    }

    proptest! {
        #[test]
        fn no_query_no_fragment_and_no_password_survive(
            scheme in "(https|http|ws|HTTPS)", user in "(u:s3cret@)?", host in "[a-z]{1,8}(:[0-9]{1,4})?",
            path in "(/[a-z0-9@:%]{0,6}){0,3}", query in "(\\?(k=)?s3cret(&s3cret)?)?", fragment in "(#s3cret)?",
        ) {
            let address = format!("{scheme}://{user}{host}{path}{query}{fragment}");
            prop_assert!(!strip_url(address.clone()).contains("s3cret"));
            prop_assert!(!normalise_url(&address).contains("s3cret"));
        }

        #[test]
        fn any_text_is_stripped_without_panic(address in any::<String>()) {
            let stripped = strip_url(address.clone());
            prop_assert!(!stripped.contains('?') && !stripped.contains('#'));
            let _ = (normalise_url(&address), strip_user_info(address.clone()), is_web_url(&address, 10));
            let redacted = redact_queries(address.clone());
            prop_assert_eq!(redact_queries(redacted.clone()), redacted);
        }
    }
}
