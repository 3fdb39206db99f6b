//! Reads the fields of a failure from the parts of its text.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::segment::{Segments, pattern, site};
use super::source::{Source, SourceText};
use super::{Kind, Signature, expectation, mask, target};
use crate::locator;
use crate::text::cut_str;

/// The expectation about an answer of a server; it shows the request as a log.
pub(super) const IS_OK: &str = "toBeOK";
/// Lines and characters of free text that count.
const TEMPLATE_LINES: usize = 3;
const MAX_RAW_CHARS: usize = 4_000;
const MAX_TEMPLATE_CHARS: usize = 400;

static TEST_TIMEOUT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:Error: )?(?:Test timeout of|Worker teardown timeout of|Tearing down .*exceeded the test timeout)",
    )
});
static ANY_TEST_TIMEOUT: LazyLock<Regex> = LazyLock::new(|| pattern(r"Test timeout of \d+\s?ms exceeded"));
static HOOK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#""(?:before|after)(?:Each|All)" hook|^(?:Error: )?(?:Tearing down |Fixture "|Worker teardown )"#,
    )
});
static MATCHER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\bexpect(?:\.\w+)?\((?:[^()]|\([^()]*\))*\)((?:\.(?:not|resolves|rejects))*)\.(to[A-Z]\w*)")
});
static NAMED_MATCHER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(?i)\bexpect(?:\.(?:soft|poll))?(?:\.| ")(?:soft )?(not )?(?-i:(to[A-Z]\w*))"#)
});
static ACTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:(?:\w*Error|Error): )*([a-z]\w*)\.([a-z_$]\w*): "));
static CLASS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^((?:[A-Z]\w*\.)*[A-Z]\w*(?:Error|Exception))(?: \[\w+\])?(?:: |$)"));
static CLOSED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:target|page|context|browser)(?:, (?:page|context)[^.\n]*)? (?:has been |was |is )?(?:closed|crashed)\b",
    )
});
static NETWORK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bnet::ERR_\w+|\bNS_ERROR_\w+"));
static ERRNO: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:E(?:ACCES|ADDRINUSE|AGAIN|BUSY|CONNABORTED|CONNREFUSED|CONNRESET|EXIST|HOSTUNREACH|INVAL|ISDIR|MFILE|NETUNREACH|NOENT|NOMEM|NOSPC|NOTDIR|NOTEMPTY|NOTFOUND|PERM|PIPE|PROTO|TIMEDOUT)|EAI_AGAIN)\b",
    )
});
static TIMEOUT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\btimeout:? (?:of )?\d+\s?ms exceeded"));
// What requests said before they said it like every other call.
static REQUEST_TIMEOUT: LazyLock<Regex> = LazyLock::new(|| pattern(r": Request timed out after \d+\s?ms"));
// What a person threw says first what was waited for, and stays free text.
static BARE_TIMEOUT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:(?:Timeout)?Error: )*Timeout:? (?:of )?\d+\s?ms exceeded"));
static SCRIPT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:Type|Reference|Range|Syntax)Error$"));
static PART: LazyLock<Regex> = LazyLock::new(|| pattern(r#""[\w$]+""#));
static SELECTOR: LazyLock<Regex> = LazyLock::new(|| pattern(r#"selector "([^"\n]+)""#));

/// Which of the errors says most about the cause. A test timeout says
/// nothing when something else failed, and what hooks and teardowns complain
/// of follows from the test.
pub(super) fn primary(parts: &[Segments<'_>]) -> Option<usize> {
    let rank = |part: &Segments<'_>| (is_bare_timeout(part), is_hook(part));
    (0..parts.len()).min_by_key(|&at| (rank(&parts[at]), at))
}

/// Whether an error says no more than that the time of the test was over.
pub(super) fn is_bare_timeout(part: &Segments<'_>) -> bool {
    part.said().next().is_none_or(|line| TEST_TIMEOUT.is_match(line)) && part.log.is_empty()
}

fn is_hook(part: &Segments<'_>) -> bool {
    part.said().next().is_some_and(|line| HOOK.is_match(line))
}

/// Reads the fields of one error; `all` are the errors of the attempt.
pub(super) fn read(part: &Segments<'_>, all: &[Segments<'_>], source: &[SourceText<'_>]) -> Signature {
    let source = Source::from_frames(source);
    let head = part.head.join("\n");
    let first = part.said().next().unwrap_or_default();
    let matcher = Matcher::from_head(&head, part);
    let action = ACTION.captures(first).map(|found| found[2].to_owned());
    let class = class(first);
    let is_closed = is_closed(part, &head, matcher.as_ref(), action.is_some(), &class);
    let kind = kind(&head, first, matcher.is_some(), action.is_some(), &class, is_closed);
    let timed_out_in_hook = ANY_TEST_TIMEOUT.is_match(&head) && all.iter().any(is_hook);
    let (api, negated) = match (&matcher, action) {
        (Some(matcher), _) if kind == Kind::Assert => (matcher.name.clone(), matcher.negated),
        (_, Some(action)) if action != "to" => (action, false),
        (Some(matcher), None) if kind != Kind::App => (matcher.name.clone(), matcher.negated),
        _ => (String::new(), false),
    };
    let target = match kind {
        // What an action says of an element in its own words: its log names the element.
        Kind::App if !api.is_empty() => awaited_target(part, &api, &source).unwrap_or_default(),
        Kind::Script | Kind::App | Kind::TestTimeout | Kind::Navigation => String::new(),
        _ => target(&head, part, &api, &source),
    };
    let (template, is_free_text) = template(kind, part, &target, &api, matcher.as_ref(), &source);
    Signature {
        kind,
        in_hook: is_hook(part) || timed_out_in_hook,
        reason: if target.is_empty() { "" } else { reason(kind, &head, part, &api) }.into(),
        codes: codes(kind, &head, part, &target, &api),
        site: site(part),
        api,
        negated,
        target,
        class,
        template,
        is_free_text,
    }
}

/// The matcher of an expectation.
pub(super) struct Matcher {
    /// Such as `toHaveText`.
    pub(super) name: String,
    /// Whether `.not` stands before it.
    pub(super) negated: bool,
    /// Where it stands in the head.
    line: Option<usize>,
}

impl Matcher {
    /// The matcher the error is about. Playwright names it in the head, older
    /// versions only in the log.
    pub(super) fn from_head(head: &str, part: &Segments<'_>) -> Option<Self> {
        if let Some(found) = MATCHER.captures(head) {
            let at = found.get(0).map_or(0, |all| all.start());
            return Some(Self {
                name: found[2].to_owned(),
                negated: found[1].contains("not"),
                line: Some(head[..at].matches('\n').count()),
            });
        }
        let log = part.log.first().copied().unwrap_or_default();
        [head, log].iter().find_map(|text| NAMED_MATCHER.captures(text)).map(|found| Self {
            name: found[2].to_owned(),
            negated: found.get(1).is_some(),
            line: None,
        })
    }
}

fn kind(head: &str, first: &str, has_matcher: bool, has_action: bool, class: &str, is_closed: bool) -> Kind {
    if head.contains("strict mode violation") {
        Kind::Strict
    } else if is_closed {
        Kind::Closed
    } else if has_matcher {
        Kind::Assert
    } else if NETWORK.is_match(head) {
        Kind::Navigation
    } else if has_action
        && [&TIMEOUT, &ANY_TEST_TIMEOUT, &REQUEST_TIMEOUT].iter().any(|timeout| timeout.is_match(head))
    {
        Kind::Timeout
    } else if TEST_TIMEOUT.is_match(first) || HOOK.is_match(first) && head.contains("timeout") {
        Kind::TestTimeout
    } else if BARE_TIMEOUT.is_match(first) || TIMEOUT.is_match(first) && class == "TimeoutError" {
        Kind::Timeout
    } else if SCRIPT.is_match(class) {
        Kind::Script
    } else {
        Kind::App
    }
}

/// Whether Playwright says that a page or browser went away. A person's own
/// words, and the values of an expectation, speak of that as well.
fn is_closed(
    part: &Segments<'_>,
    head: &str,
    matcher: Option<&Matcher>,
    has_action: bool,
    class: &str,
) -> bool {
    let said = match matcher {
        Some(matcher) => without_values(part, matcher),
        None => head.into(),
    };
    CLOSED.is_match(&said)
        && (has_action || !SCRIPT.is_match(class))
        && is_of_playwright(&said, has_action, matcher.is_some())
}

/// What an expectation says before it shows its locator and values.
fn without_values(part: &Segments<'_>, matcher: &Matcher) -> String {
    const LABELS: [&str; 5] = ["Locator:", "Expected", "Received", "Error name:", "Error message:"];
    let shows = |line: &str| {
        let line = line.trim_start_matches(['-', '+', ' ']);
        LABELS.iter().any(|label| line.starts_with(label))
    };
    let lines = match matcher.line {
        Some(_) => usize::MAX,
        // Named by the first line: what follows it may be anything.
        None => 1,
    };
    let said: Vec<&str> = part.said().take(lines).take_while(|line| !shows(line)).collect();
    said.join("\n")
}

/// A person's own words may also say that something was closed; Playwright's
/// name the call, or say nothing else. Above an expectation a person writes.
fn is_of_playwright(said: &str, has_action: bool, has_matcher: bool) -> bool {
    has_action
        || said.contains("Target ")
        || said.contains("Page crashed")
        || !has_matcher && said.contains("has been closed")
}

/// The class of the error: the innermost one that the first line names.
fn class(first: &str) -> String {
    let mut rest = first;
    let mut class = "";
    loop {
        if let Some(found) = CLASS.captures(rest) {
            class = found.get(1).map_or("", |name| name.as_str());
            rest = &rest[found[0].len()..];
        } else if let Some(found) = ACTION.captures(rest) {
            rest = &rest[found[0].len()..];
        } else if let Some(after) = rest.strip_prefix("Error: ") {
            rest = after;
        } else {
            break;
        }
    }
    // A wait that ran into its time has this class in some versions only when
    // it is Playwright's own; the kind says it already.
    if class == "Error" { String::new() } else { class.to_owned() }
}

fn chain_in(text: &str, source: &Source<'_>) -> Option<String> {
    let chain = locator::first_chain(text)?;
    Some(target::canonical(&chain, source)).filter(|target| !target.is_empty())
}

/// The element that the log of a call waited for.
fn awaited_target(part: &Segments<'_>, api: &str, source: &Source<'_>) -> Option<String> {
    log_of_last_wait(part, api).iter().find_map(|line| chain_in(line.split_once("waiting for ")?.1, source))
}

/// The log of a call from where it waited for the element that kept it: what
/// moves one element to another waits for the one after the other.
pub(super) fn log_of_last_wait<'p, 'a>(part: &'p Segments<'a>, api: &str) -> &'p [&'a str] {
    let is_wait = |line: &&str| {
        line.split_once("waiting for ")
            .is_some_and(|(_, what)| locator::first_chain(what).is_some_and(|chain| chain.range.start == 0))
    };
    let begin = match api {
        "dragTo" | "dragAndDrop" => part.log.iter().rposition(is_wait).unwrap_or(0),
        _ => 0,
    };
    &part.log[begin..]
}

fn target(head: &str, part: &Segments<'_>, api: &str, source: &Source<'_>) -> String {
    let chain_in = |text: &str| chain_in(text, source);
    let named = part.said().find_map(|line| chain_in(line.strip_prefix("Locator:")?));
    let awaited = || awaited_target(part, api, source);
    let selected = || {
        let text = part.log.iter().copied().chain([head]).find_map(|text| SELECTOR.captures(text))?;
        Some(target::selector(&text[1]))
    };
    let found = named.or_else(awaited).or_else(selected).or_else(|| chain_in(head)).unwrap_or_default();
    // Some versions write what the page itself is asked as a locator.
    let is_of_page = matches!(api, "toHaveURL" | "toHaveTitle");
    if is_of_page && found == "css=:root" { String::new() } else { found }
}

fn reason(kind: Kind, head: &str, part: &Segments<'_>, api: &str) -> &'static str {
    match kind {
        Kind::Timeout => obstacle(log_of_last_wait(part, api)),
        Kind::Assert if is_missing_element_of(head, part) => "not-found",
        _ => "",
    }
}

/// What kept an action from its element, as its log says: one of a few words,
/// empty when it says nothing.
pub(super) fn obstacle(log: &[&str]) -> &'static str {
    const OBSTACLES: [(&str, &str); 8] = [
        ("intercepts pointer events", "intercepted"),
        ("not enabled", "disabled"),
        ("not stable", "unstable"),
        ("not visible", "not-visible"),
        ("outside of the viewport", "outside"),
        ("detached from the DOM", "detached"),
        ("not attached", "detached"),
        ("not editable", "readonly"),
    ];
    let is_logged = |words: &str| log.iter().any(|line| line.contains(words));
    match OBSTACLES.iter().find(|(words, _)| is_logged(words)) {
        Some((_, reason)) => reason,
        None if !log.is_empty() && !is_logged("resolved to") => "not-found",
        None => "",
    }
}

/// Whether an expectation failed because its element was not there.
pub(super) fn is_missing_element(part: &Segments<'_>) -> bool {
    is_missing_element_of(&part.head.join("\n"), part)
}

fn is_missing_element_of(head: &str, part: &Segments<'_>) -> bool {
    let received = part.said().find_map(|line| line.strip_prefix("Received")?.split_once(':'));
    // Old versions call what is not there hidden.
    let is_empty = received.is_none_or(|(_, value)| matches!(value.trim(), "\"\"" | "hidden"));
    head.contains("element(s) not found")
        || (is_empty && !part.log.is_empty() && !part.log.iter().any(|line| line.contains("resolved to")))
}

/// What was expected or received, as written behind the word.
fn value<'a>(part: &Segments<'a>, word: &str) -> Option<&'a str> {
    labelled_value(part, word).map(|(_, value)| value)
}

/// The same with what stands between the word and its colon, such as `substring`.
pub(super) fn labelled_value<'a>(part: &Segments<'a>, word: &str) -> Option<(&'a str, &'a str)> {
    part.said().find_map(|line| {
        let (label, value) = line.strip_prefix(word)?.split_once(':')?;
        let is_label = label.chars().all(|one| one.is_ascii_alphabetic() || one == ' ');
        is_label.then_some((label.trim(), value.trim()))
    })
}

/// The status in a line of a log such as `← 503 Service Unavailable`.
fn answered(line: &str) -> Option<u16> {
    line.trim_start_matches("- ").strip_prefix("← ")?.split(' ').next().and_then(http_status)
}

fn codes(kind: Kind, head: &str, part: &Segments<'_>, target: &str, api: &str) -> Vec<String> {
    let mut codes = BTreeSet::new();
    codes.extend(NETWORK.find_iter(head).map(|code| code.as_str().to_owned()));
    codes.extend(ERRNO.find_iter(head).map(|code| code.as_str().to_owned()));
    if matches!(kind, Kind::App | Kind::Script | Kind::Assert) {
        codes.extend(mask::statuses(head).map(|status| format!("http{status}")));
    }
    if api == IS_OK {
        // Of several answers the last one: the others led to it.
        codes.extend(part.log.iter().rev().find_map(|line| answered(line)).map(|got| format!("http{got}")));
    }
    if kind == Kind::Assert && target.is_empty() {
        let (expected, received) = (value(part, "Expected"), value(part, "Received"));
        if let (Some(expected), Some(got)) = (expected.and_then(http_status), received.and_then(http_status))
        {
            codes.insert(format!("exp{expected}"));
            codes.insert(format!("got{got}"));
        }
        if let Some(nothing @ ("undefined" | "null" | "NaN" | "[]" | "{}" | "\"\"")) = received {
            codes.insert(format!("got:{nothing}"));
        }
    }
    codes.into_iter().collect()
}

/// A number that is a status servers answer with; other numbers of three
/// digits are data.
fn http_status(text: &str) -> Option<u16> {
    let is_plain = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let status = text.parse().ok().filter(|_| is_plain)?;
    matches!(
        status,
        200..=208 | 226 | 300..=308 | 400..=418 | 421..=426 | 428 | 429 | 431 | 451 | 500..=508 | 510 | 511
    )
    .then_some(status)
}

/// The text that tells causes apart, and whether a person wrote it.
fn template(
    kind: Kind,
    part: &Segments<'_>,
    target: &str,
    api: &str,
    matcher: Option<&Matcher>,
    source: &Source<'_>,
) -> (String, bool) {
    match kind {
        Kind::App => (said(part.said(), Kind::App), true),
        Kind::Script => (said(part.said(), Kind::Script), true),
        Kind::Assert => {
            let own = custom_message(part, matcher);
            if !own.is_empty() {
                return (own, true);
            }
            if !target.is_empty() {
                // What an element lacks that is not there is the element.
                let property =
                    (!is_missing_element(part)).then(|| expectation::property(source, api)).flatten();
                return (property.unwrap_or_default(), false);
            }
            let request = if api == IS_OK { awaited(part) } else { None };
            let compared = || expectation::compared(source, api).map(|code| format!("src:{code}"));
            (request.or_else(compared).unwrap_or_default(), false)
        }
        Kind::TestTimeout => (awaited_part(part).unwrap_or_default(), false),
        Kind::Timeout if target.is_empty() => (awaited(part).unwrap_or_default(), false),
        _ => (String::new(), false),
    }
}

/// The hook or fixture that used up the time of a test, as Playwright names
/// it: `"beforeEach" hook`, `"account" teardown`.
fn awaited_part(part: &Segments<'_>) -> Option<String> {
    let said = part.said().next()?.to_lowercase();
    let name = PART.captures(part.said().next()?)?.get(0)?.as_str();
    let phase = if said.contains("hook") {
        "hook"
    } else if said.contains("tearing down") || said.contains("teardown") {
        "teardown"
    } else {
        "setup"
    };
    Some(format!("{name} {phase}"))
}

/// What a call without an element took too long over, as its log says: an
/// event, an address, a request. Polling has no log and says it immediately.
fn awaited(part: &Segments<'_>) -> Option<String> {
    let waited_for = |line: &str| {
        let (_, what) = line.split_once("waiting for ")?;
        Some(mask::text(cut_str(what, MAX_RAW_CHARS)))
    };
    let logged = part.log.iter().find_map(|line| {
        if let Some((_, navigation)) = line.split_once("navigating to \"") {
            // Whether it waits for its load or for less, the address is the same.
            let address = navigation.split('"').next().unwrap_or_default();
            Some(mask::location(cut_str(address, MAX_RAW_CHARS)))
        } else if let Some((_, request)) = line.split_once("→ ") {
            let (verb, address) = request.split_once(' ')?;
            Some(format!("{verb} {}", mask::location(cut_str(address, MAX_RAW_CHARS))))
        } else {
            waited_for(line)
        }
    });
    logged.or_else(|| part.said().next().and_then(waited_for)).map(bounded)
}

/// What a person wrote before the expectation's own words, masked.
fn custom_message(part: &Segments<'_>, matcher: Option<&Matcher>) -> String {
    said(own_lines(part, matcher).into_iter(), Kind::Assert)
}

/// The same as it was written, on one line.
pub(super) fn own_message(part: &Segments<'_>, matcher: Option<&Matcher>) -> String {
    own_lines(part, matcher).join(" ")
}

fn own_lines<'a>(part: &Segments<'a>, matcher: Option<&Matcher>) -> Vec<&'a str> {
    let Some(line) = matcher.and_then(|matcher| matcher.line) else { return Vec::new() };
    let mut lines: Vec<&str> = Vec::new();
    for said in part.head[..line.min(part.head.len())].iter().map(|said| said.trim()) {
        let said = said.strip_prefix("Error: ").unwrap_or(said);
        let is_new = !said.is_empty() && !lines.contains(&said) && lines.len() < TEMPLATE_LINES;
        if is_new && !CLASS.is_match(said) {
            lines.push(said);
        }
    }
    lines
}

fn said<'a>(lines: impl Iterator<Item = &'a str>, kind: Kind) -> String {
    let text: Vec<&str> = lines.take(TEMPLATE_LINES).collect();
    let text = text.join("\n");
    let mut rest = cut_str(&text, MAX_RAW_CHARS);
    while let Some(after) = CLASS
        .find(rest)
        .or_else(|| ACTION.find(rest))
        .map(|prefix| prefix.end())
        .or_else(|| rest.starts_with("Error: ").then_some("Error: ".len()))
        .filter(|end| *end > 0 && *end < rest.len())
    {
        rest = &rest[after..];
    }
    let plain = if kind == Kind::Script { mask::json_excerpt(rest) } else { rest.into() };
    bounded(mask::text(&plain))
}

fn bounded(text: String) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    cut_str(&words.join(" "), MAX_TEMPLATE_CHARS).to_owned()
}
