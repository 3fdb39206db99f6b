//! The line that stands for an error in lists, exports and messages. It keeps
//! Playwright's name of the call and adds the facts that the rest of the text
//! holds: locator, expected and received values, obstacle, request, hook,
//! cause. Values are shown as they are; fingerprints are made elsewhere.

mod difference;

use std::sync::LazyLock;

use regex::Regex;

use difference::{difference_of_node, first_difference};

use super::expectation::Expectation;
use super::fields::{self, Matcher};
use super::segment::{self, Segments, pattern};
use super::{ErrorText, SourceText};
use crate::text::cut_str;

/// What stands for a subject that is not known by name.
const VALUE: &str = "value";
/// Characters of what a plain expectation is about.
const MAX_SUBJECT_CHARS: usize = 60;
/// Causes behind each other.
const MAX_CAUSES: usize = 3;
/// Characters of one value, locator or message of a person.
const MAX_PART_CHARS: usize = 110;

static ACTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:\w*Error: )*([a-z]\w*\.[a-z_$]\w*: .*)$"));
static STRICT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"strict mode violation: (.*) resolved to (\d+) elements"));
static CALL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:Error: )?([a-z]\w*\.\w+): "));
static POLL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"Timeout (\d+)\s?ms exceeded while waiting on the predicate"));
static HOOK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#""(?:before|after)(?:Each|All)" hook|(?:Fixture|Tearing down|Worker teardown|Setting up) "[^"]+""#,
    )
});
static INTERCEPTED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(<[^>]*>)(?:[^<]*</\w+>)?(?: from .* subtree)? intercepts pointer events"));

/// Says in one line of at most `max_chars` characters what failed. The text
/// may hold several errors, separated as [`ErrorText::split`] reads them: the
/// one that says most is shown, the others are counted. Empty for a text that
/// says nothing.
///
/// `Error: expect(locator).toHaveText(expected) failed …` becomes
/// `expect(getByTestId('total')).toHaveText: expected "12.00", received "12.50"`.
/// From the lines of `source`, when they are known, it takes what a plain
/// expectation is about: `expect(res.status()).toBe: expected 200, received 401`.
#[must_use]
pub fn error_line(text: &str, source: &[SourceText<'_>], max_chars: usize) -> String {
    let cleaned: Vec<String> =
        ErrorText::split(text).iter().map(|error| segment::clean(error.message)).collect();
    let parts: Vec<Segments<'_>> =
        cleaned.iter().filter(|text| !text.trim().is_empty()).map(|text| Segments::from_text(text)).collect();
    let Some(primary) = fields::primary(&parts) else { return String::new() };
    let written = source.iter().find_map(SourceText::expectation);
    let mut line = describe(&parts[primary], written.as_ref().map(|written| written.code.as_str()));
    let (hooks, others): (Vec<_>, Vec<_>) = parts
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != primary)
        .map(|(_, part)| part)
        .partition(|part| hook_of(part).is_some());
    // A bare timeout of the test follows from the error that used up its time.
    let others = others.iter().filter(|part| !fields::is_bare_timeout(part)).count();
    if let Some(hook) = hooks.iter().find_map(|part| hook_of(part)).filter(|hook| !line.contains(hook)) {
        line = format!("{line} (in {hook})");
    }
    let more = match others {
        0 => String::new(),
        1 => " (+1 more error)".to_owned(),
        count => format!(" (+{count} more errors)"),
    };
    let kept = cut_str(line.trim(), max_chars.saturating_sub(more.len()));
    format!("{kept}{more}").chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

fn describe(part: &Segments<'_>, code: Option<&str>) -> String {
    let first = part.said().next().unwrap_or_default();
    let head = part.head.join("\n");
    let matcher = Matcher::from_head(&head, part);
    let mut line = if let Some(found) = STRICT.captures(&head) {
        let call = match &matcher {
            Some(matcher) => format!("expect({}).{}", short(&found[1]), matcher.name),
            None => CALL.captures(first).map_or_else(|| "locator".to_owned(), |call| call[1].to_owned()),
        };
        format!("{call}: strict mode violation: {} resolved to {} elements", short(&found[1]), &found[2])
    } else if let Some(matcher) = matcher.as_ref().filter(|_| ACTION.captures(first).is_none_or(is_expect)) {
        expectation(matcher, part, code)
    } else if let Some(found) = ACTION.captures(first) {
        action(&found[1], part)
    } else {
        thrown(part)
    };
    if let Some(cause) = cause(part).filter(|cause| !line.contains(cause.as_str())) {
        line = format!("{line} — caused by {cause}");
    }
    line
}

/// `expect.toBeVisible: …` of older versions.
fn is_expect(found: regex::Captures<'_>) -> bool {
    found[1].starts_with("expect.")
}

/// A hook or fixture that an error names as what took too long.
fn hook_of<'a>(part: &Segments<'a>) -> Option<&'a str> {
    HOOK.find(part.said().next()?).map(|found| found.as_str())
}

/// `expect(getByTestId('total')).not.toHaveText`.
fn matcher_call(matcher: &Matcher, part: &Segments<'_>, code: Option<&Subject<'_>>) -> String {
    let not = if matcher.negated { "not." } else { "" };
    let name = &matcher.name;
    let subject = match locator_of(part) {
        Some(locator) => short(locator),
        None if matches!(&**name, "toHaveURL" | "toHaveTitle" | "toHaveScreenshot") => "page".to_owned(),
        None if name == fields::IS_OK => "response".to_owned(),
        None => code.map_or_else(|| VALUE.to_owned(), |code| code.subject.clone()),
    };
    let argument =
        code.and_then(|code| code.name).map(|argument| format!("({argument})")).unwrap_or_default();
    format!("expect({subject}).{not}{name}{argument}")
}

/// The locator an expectation is about, as the error names it. The root of the
/// page stands for the page.
fn locator_of<'a>(part: &Segments<'a>) -> Option<&'a str> {
    let locator = part.said().find_map(|line| line.strip_prefix("Locator:"))?.trim();
    (locator != "locator(':root')").then_some(locator)
}

/// What the source says of an expectation.
struct Subject<'a> {
    /// What stands between the parentheses of `expect`, without a message.
    subject: String,
    /// The quoted name that the matcher is about, such as `'href'`.
    name: Option<&'a str>,
}

impl<'a> Subject<'a> {
    fn from_code(code: &'a str, matcher: &str) -> Option<Self> {
        let read = Expectation::find(code, matcher)?;
        let name = read.property().and(read.arguments.first().copied());
        let subject = read.subject.split_whitespace().collect::<Vec<_>>().join(" ");
        // A value or a function that is written there says less than what was received.
        let is_named = subject.starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '$'))
            && !subject.contains("=>")
            && subject.chars().count() <= MAX_SUBJECT_CHARS;
        Some(Self { subject: if is_named { subject } else { VALUE.to_owned() }, name })
    }
}

fn expectation(matcher: &Matcher, part: &Segments<'_>, code: Option<&str>) -> String {
    let own = fields::own_message(part, Some(matcher));
    let code = code.and_then(|code| Subject::from_code(code, &matcher.name));
    let call = matcher_call(matcher, part, code.as_ref());
    let facts = expectation_facts(matcher, part).unwrap_or_default();
    let facts = match part.log.iter().chain(&part.head).find_map(|line| POLL.captures(line)) {
        Some(polled) => format!("{facts} (polled for {} ms)", &polled[1]),
        None => facts,
    };
    match (own.is_empty(), facts.is_empty()) {
        (true, true) => format!("{call} failed"),
        (true, false) => format!("{call}: {facts}"),
        (false, true) => format!("{} — {call} failed", short(&own)),
        (false, false) => format!("{} — {call}: {facts}", short(&own)),
    }
}

fn expectation_facts(matcher: &Matcher, part: &Segments<'_>) -> Option<String> {
    if matcher.name == fields::IS_OK {
        return request(part);
    }
    if let Some(settled) = settled(part).or_else(|| unexpected_throw(matcher, part)) {
        return Some(settled);
    }
    let expected = labelled(part, "Expected");
    let received = labelled(part, "Received");
    if locator_of(part).is_some() && fields::is_missing_element(part) {
        let values = matches!(&*matcher.name, "toHaveText" | "toContainText" | "toHaveValue" | "toHaveCount");
        return Some(match expected.filter(|_| values) {
            Some(expected) => format!("element not found, expected {expected}"),
            None => "element not found".to_owned(),
        });
    }
    match (expected, received) {
        (Some(expected), Some(received)) => Some(format!("expected {expected}, received {received}")),
        (None, Some(received)) => Some(format!("received {received}")),
        (Some(expected), None) => {
            let said = remark(part);
            Some(said.map_or_else(
                || format!("expected {expected}"),
                |said| format!("expected {expected}, {said}"),
            ))
        }
        (None, None) => first_difference(part).or_else(|| remark(part)),
    }
}

/// What a promise became that was to become the other.
fn settled(part: &Segments<'_>) -> Option<String> {
    let value = |word: &str| part.said().find_map(|line| line.strip_prefix(word)).map(short);
    let rejected = value("Rejected to value:").map(|value| format!("promise was rejected: {value}"));
    rejected.or_else(|| value("Resolved to value:").map(|value| format!("promise was resolved: {value}")))
}

/// What a function threw that was to throw nothing.
fn unexpected_throw(matcher: &Matcher, part: &Segments<'_>) -> Option<String> {
    let value = |word: &str| {
        part.said().find_map(|line| line.strip_prefix(word)).map(|value| value.trim().trim_matches('"'))
    };
    let message = value("Error message:").filter(|_| matcher.negated)?;
    Some(short(&format!("threw {}: {message}", value("Error name:").unwrap_or("Error"))))
}

/// `Expected substring: "a"` as `substring "a"`, `Expected: 5` as `5`.
fn labelled(part: &Segments<'_>, word: &str) -> Option<String> {
    let (label, value) = fields::labelled_value(part, word)?;
    let value = short(value);
    Some(match label {
        "" | "string" | "value" => value,
        label => format!("{label} {value}"),
    })
}

/// What the error says behind the name of its matcher and before its log:
/// `1,204 pixels (ratio 0.02 of all image pixels) are different.`
fn remark(part: &Segments<'_>) -> Option<String> {
    let is_label = |line: &&str| {
        let is_value = ["Expected", "Received"]
            .iter()
            .any(|word| line.strip_prefix(word).is_some_and(|rest| rest.contains(':')));
        is_value
            || ["Locator:", "Timeout:", "Call log", "Call Log", "- ", "+ ", "@@", "Snapshot:"]
                .iter()
                .any(|label| line.starts_with(label))
    };
    let said = part.said().skip_while(|line| !line.contains("expect")).skip(1);
    let line = said.filter(|line| !is_label(line)).find(|line| line.contains(' '))?;
    let line = line.trim_start_matches("Error: ").trim_end_matches('.');
    Some(short(&line.replacen("Received function", "received function", 1)))
}

/// A call such as `locator.click: Timeout 400ms exceeded.`, with what stood in its way.
fn action(said: &str, part: &Segments<'_>) -> String {
    let said = said.trim_end_matches(['.', ':']);
    match awaited(said, part) {
        Some(fact) => format!("{} — {fact}", cut_str(said, 2 * MAX_PART_CHARS)),
        None => said.to_owned(),
    }
}

/// What a call waited for, as its log says.
fn awaited(said: &str, part: &Segments<'_>) -> Option<String> {
    let api = said.split_once(": ").and_then(|(call, _)| call.rsplit_once('.')).map_or("", |(_, api)| api);
    let log = fields::log_of_last_wait(part, api);
    let element = log.iter().find_map(|line| {
        let chain = line.split_once("waiting for ")?.1;
        let is_locator =
            ["getBy", "locator(", "frameLocator(", "selector "].iter().any(|it| chain.starts_with(it));
        is_locator.then(|| chain.trim_end_matches(" to be visible").trim())
    });
    let Some(element) = element else {
        return request(part).or_else(|| {
            part.log.iter().find_map(|line| {
                let line = line.trim_start_matches("- ");
                let is_wait = line.starts_with("waiting for ") || line.starts_with("navigating to ");
                let line = line.split(", waiting until").next().filter(|_| is_wait)?;
                // A failed navigation names its address already.
                let address = line.split('"').nth(1);
                address.is_none_or(|address| !said.contains(address)).then(|| short(line))
            })
        });
    };
    let element = short(element);
    if let Some(over) = log.iter().find_map(|line| INTERCEPTED.captures(line)) {
        return Some(format!("{element} is covered by {}", short(&over[1])));
    }
    let state = match fields::obstacle(log) {
        "disabled" => "is disabled",
        "unstable" => "kept moving",
        "not-visible" => "is not visible",
        "outside" => "is outside of the viewport",
        "detached" => "was detached from the DOM",
        "readonly" => "is not editable",
        "not-found" => "not found",
        _ => return Some(element),
    };
    Some(format!("{element} {state}"))
}

/// The last request in a log and its answer: `GET http://shop/api/cart → 503 Service Unavailable`.
fn request(part: &Segments<'_>) -> Option<String> {
    let told = |mark: &str| {
        part.log.iter().rev().find_map(|line| line.trim_start_matches("- ").strip_prefix(mark)).map(short)
    };
    let request = told("→ ")?;
    Some(match told("← ") {
        Some(answer) => format!("{request} → {answer}"),
        None => request,
    })
}

/// What was thrown: its first line, with the next where the first announces it.
fn thrown(part: &Segments<'_>) -> String {
    if let Some(difference) = difference_of_node(part) {
        let first = part.said().next().unwrap_or_default();
        return format!("{first} {difference}");
    }
    let mut said = part.said();
    let first = said.next().unwrap_or_default();
    let is_announced =
        first.ends_with(':') || first.strip_suffix("Error").is_some_and(|rest| !rest.contains(' '));
    match said.next().filter(|next| is_announced && !next.starts_with("[cause]")) {
        Some(next) => format!("{first} {next}"),
        None => first.to_owned(),
    }
}

/// The errors that an error names as its cause, and the cause of that.
fn cause(part: &Segments<'_>) -> Option<String> {
    let causes = part.head.iter().filter_map(|line| line.trim().strip_prefix("[cause]: "));
    let causes: Vec<String> = causes
        .take(MAX_CAUSES)
        .map(|cause| short(cause.trim_start_matches("Error: ").trim_end_matches('{')))
        .collect();
    (!causes.is_empty()).then(|| causes.join(", caused by "))
}

fn short(text: &str) -> String {
    let text = text.trim();
    let kept = cut_str(text, MAX_PART_CHARS);
    if kept.len() < text.len() { format!("{}…", kept.trim_end()) } else { kept.to_owned() }
}

#[cfg(test)]
mod tests;
