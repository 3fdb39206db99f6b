use proptest::prelude::*;

use super::*;

/// What is masked wherever it stands: text, and the text without its secret.
fn secrets_by_form() -> Vec<(&'static str, String, &'static str)> {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
    let jwe = "eyJhbGciOiJkaXIifQ..aXZpdml2aXY.Y2lwaGVydGV4dA.dGFndGFn";
    let long = "a1B2".repeat(10);
    vec![
        ("own key", format!("key pd_{}, cut pd_0a1b2c3d", "0a".repeat(32)), "key ***, cut ***"),
        ("GitHub", format!("ghp_{long} gho_{long} ghs_{long}"), "*** *** ***"),
        ("GitHub, fine-grained", format!("github_pat_{long}"), "***"),
        ("GitLab", format!("glpat-{long}, glrt-{long}"), "***, ***"),
        ("Slack", "xoxb-1234567890-abc xoxs-1234567890 xapp-1-A0123456789.".to_owned(), "*** *** ***."),
        ("AWS", format!("AKIA{} ASIA{}", "A1".repeat(8), "A1".repeat(8)), "*** ***"),
        ("Google", format!("AIza{}", &long[..35]), "***"),
        ("npm and PyPI", format!("npm_{long} pypi-{long}"), "*** ***"),
        ("Stripe", "sk_live_0123456789ab rk_test_0123456789ab".to_owned(), "*** ***"),
        ("SendGrid", format!("SG.{}.{long}.", &long[..22]), "***."),
        ("JWT", format!("at {jwt}."), "at ***."),
        ("JWE", format!("at {jwe}, then"), "at ***, then"),
        ("bearer", "sent Bearer 0123456789abcdef!".to_owned(), "sent Bearer ***!"),
        ("basic header", "Authorization: Basic dXNlcjpwYXNz".to_owned(), "Authorization: Basic ***"),
        ("cookies", "> Cookie: a=1; b=2\n> Accept: */*".to_owned(), "> Cookie: ***\n> Accept: */*"),
        (
            "private key",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----",
        ),
        ("cut private key", "-----BEGIN PRIVATE KEY-----\nMIIE".to_owned(), "-----BEGIN PRIVATE KEY-----***"),
    ]
}

/// What is masked by the name it stands behind.
fn secrets_by_name() -> [(&'static str, &'static str, &'static str); 12] {
    [
        ("basic in an address", "postgres://bob:hunter2@db/x", "postgres://bob:***@db/x"),
        ("field in JSON", "{\"password\":\"hunter 4\",\"a\":1}", "{\"password\":\"***\",\"a\":1}"),
        ("field of AWS", "aws_secret_access_key=abc/def+1 x", "aws_secret_access_key=*** x"),
        ("header", "X-API-Key: mykey12345\nx-auth-token: t", "X-API-Key: ***\nx-auth-token: ***"),
        ("parameters", "?access_token=abc&password=p%21w, x", "?access_token=***&password=***, x"),
        (
            "parameter",
            "Navigate to \"/in?next=a&resetToken=b!c\"",
            "Navigate to \"/in?next=a&resetToken=***\"",
        ),
        ("parameter, encoded", "GET /a?authorization=Bearer%20abc", "GET /a?authorization=***"),
        ("parameter of a session", "/a?sid=7&c=3", "/a?sid=***&c=3"),
        ("parameter behind another address", "/a?next=/b?token=x", "/a?next=/b?token=***"),
        ("fragment", "/cb#access_token=abc&scope=all", "/cb#access_token=***&scope=all"),
        ("signed address", "/o?X-Amz-Signature=ab12&size=2", "/o?X-Amz-Signature=***&size=2"),
        ("list of headers", "[\"Cookie\", \"sid=x\"]", "[\"Cookie\", \"***\"]"),
    ]
}

/// What only an application's text is taken for.
const LOOKS_RANDOM: [(&str, &str); 4] = [
    ("digest 0123456789abcdef0123456789abcdef.", "digest ***."),
    ("/cb?code=4a0AX4XfWhabcdefghij12&page=2", "/cb?code=***&page=2"),
    ("/in?0aX4XfWhabcdefghij1234", "/in?***"),
    ("/in#state=0aX4XfWhabcdefghij1234", "/in#state=***"),
];

const HARMLESS: [&str; 17] = [
    "/visual?c=3",
    "/orders?page=3&sort=created_at&q=red%20shoes",
    "/search?keyword=shoes&keyboard=qwerty",
    "/day?from=2026-11-30T06:38:04Z&id=0d8f7a52-1c1f-4d6e-9d8a-0a4c8a5b7c11",
    "Expect \"toHaveURL\" /\\/list\\?page=2/",
    "is it red? or blue? a & b #1",
    "password: string, input[name=password] 'password'",
    "http://localhost:3000/a@b secret, secrets",
    "git@git.test:org/shop.git",
    "Authorization: an admin may delete",
    "Cookie: the banner is shown",
    "pd_module, pd_module_with_a_long_name, Bearer of news, eyJhbGc.x",
    "ghp_ and AKIA are beginnings, xoxb- too",
    "getByRole('button', { name: 'Reset password' })",
    "tests/checkout/token-refresh.spec.ts:12:3",
    "commit 1a2b3c4, 16 px, #0d8f7a",
    "data:text/html,<p>hello",
];

#[test]
fn every_kind_of_secret_is_masked_and_told_apart_from_sentences_about_it() {
    for (kind, text, expected) in secrets_by_form() {
        for source in [Source::Application, Source::Service, Source::Code] {
            assert_eq!(masked_from(&text, source), expected, "{kind} from {source:?}");
        }
    }
    for (kind, text, expected) in secrets_by_name() {
        for source in [Source::Application, Source::Service] {
            assert_eq!(masked_from(text, source), expected, "{kind} from {source:?}");
        }
    }
    for (text, expected) in LOOKS_RANDOM {
        assert_eq!(masked(text), expected);
        assert_eq!(masked_from(text, Source::Service), text, "a hash or a link of the service");
    }
    for text in HARMLESS {
        assert_eq!(masked(text), text);
        assert_eq!(masked_from(text, Source::Service), text);
    }
    let code = "fill({ password: 'hunter2' }, '/in?token=abc')";
    assert_eq!(masked_from(code, Source::Code), code);
}

#[test]
fn addresses_lose_people_fragments_and_secret_values() {
    for (address, expected) in [
        ("https://bob:hunter2@shop.test/visual?c=3#top", "https://shop.test/visual?c=3"),
        ("https://shop.test/a?Api-Key=a'b,c&b=1", "https://shop.test/a?Api-Key=***&b=1"),
        ("https://shop.test/cb?code=4a0AX4XfWhabcdefghij12", "https://shop.test/cb?code=***"),
        ("/a?b=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "/a?b=***"),
    ] {
        assert_eq!(masked_url(address), expected);
    }
}

#[test]
fn names_say_whether_their_values_are_secrets() {
    for name in ["Authorization", "set-cookie", "X-Api-Key", "refreshToken", "PASSWORD", "sid", "sig"] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in ["page", "keyword", "keyboardLayout", "author", "passed", "session-count", "size"] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn text_that_might_hold_a_secret_at_every_word_is_read_once() {
    // Read to its end at every word, these would not come to an end.
    for part in ["eyJ-", "?a=", "a://b:", "-----BEGIN ", "#a"] {
        let hostile = part.repeat(30_000);
        assert_eq!(masked(&hostile), hostile, "{part}");
    }
}

/// What [`masked_from`] does, without ruling out any word beforehand.
fn masked_word_by_word(text: &str, source: Source) -> String {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let begins_word = at == copied || !is_word(bytes[at - 1]);
        match begins_word.then(|| secret_at(bytes, at, source)).flatten() {
            Some((start, end)) => {
                out.push_str(&text[copied..start]);
                out.push_str(MASK);
                (copied, at) = (end, end);
            }
            None => at += 1,
        }
    }
    out + &text[copied..]
}

#[test]
fn every_secret_is_found_behind_any_text() {
    let by_form = secrets_by_form().into_iter().map(|(_, text, _)| text);
    let by_name = secrets_by_name().map(|(_, text, _)| text.to_owned());
    let texts = LOOKS_RANDOM.map(|(text, _)| text.to_owned());
    for text in by_form.chain(by_name).chain(texts) {
        for before in ["", " ", "a ", "Fill \"", "https://shop.test/a ", "?", "a=", "://", "/", "ä"] {
            let text = format!("{before}{text} and then {text}");
            for source in [Source::Application, Source::Service, Source::Code] {
                assert_eq!(masked_from(&text, source), masked_word_by_word(&text, source), "{text}");
            }
        }
    }
}

proptest! {
    #[test]
    fn ruling_words_out_changes_nothing(
        text in "(?s)(.|[a-z]{1,3}|AUTHORIZATION|Cookie|password|X-Api-Key|client_secret|value|[:=\"', @?&#/.+-]|://|postgres://u:|Bearer |ghp_0123456789012345678901|SG.0123456789012345678901|pd_0123456789|eyJhbGciOiJ9.e30.c2ln|0123456789abcdef|data:a,|-----BEGIN PRIVATE KEY-----){0,24}",
    ) {
        for source in [Source::Application, Source::Service, Source::Code] {
            prop_assert_eq!(masked_from(&text, source), masked_word_by_word(&text, source));
        }
    }

    #[test]
    fn masking_twice_changes_nothing_more(
        text in "(?s)(.|authorization|cookie|password|x-api-key|token|value|[:=\"', @?&#]|://|Bearer |ghp_0123456789012345678901|pd_0123456789|eyJhbGciOiJ9|data:a,|-----BEGIN PRIVATE KEY-----){0,20}",
    ) {
        let once = masked(&text).into_owned();
        let again = masked(&once);
        prop_assert_eq!(again, once.as_str());
    }

    #[test]
    fn words_without_digits_stay(text in "[a-z .:/_-]{0,60}") {
        let is_suspicious = ["eyj", "data:", "bearer", "://", "authorization", "xox", "xapp-", "sk-", "dop_"]
            .iter()
            .any(|beginning| text.contains(beginning));
        if !is_suspicious && text.split(|letter: char| !letter.is_ascii_hexdigit()).all(|run| run.len() < 8) {
            prop_assert_eq!(masked(&text), text.as_str());
        }
    }
}
