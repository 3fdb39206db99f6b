//! The line that stands for an error in lists, exports and messages. It keeps
//! Playwright's name of the call and adds the facts that the rest of the text
//! holds: locator, expected and received values, obstacle, request, hook,
//! cause. Values are shown as they are; fingerprints are made elsewhere.

use std::sync::LazyLock;

use regex::Regex;

use super::fields::{self, Matcher};
use super::segment::{self, Segments, pattern};
use super::{ErrorText, SourceText};
use crate::text::cut_str;

/// What stands for a subject that is not known by name.
const VALUE: &str = "value";
/// Characters of what a plain expectation is about.
const MAX_SUBJECT_CHARS: usize = 60;
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
static DIFF_LINE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^(\s*)(?:"?([^":]+?)"?: )?(.*?),?$"#));

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
        cleaned.iter().filter(|text| !text.trim().is_empty()).map(|text| Segments::of(text)).collect();
    let Some(primary) = fields::primary(&parts) else { return String::new() };
    let code = source.iter().find_map(SourceText::expectation);
    let mut line = describe(&parts[primary], code.as_deref());
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
    let matcher = Matcher::of(&head, part);
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
fn matcher_call(matcher: &Matcher, part: &Segments<'_>, code: Option<&Expectation<'_>>) -> String {
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

/// An expectation as it is written in the source.
struct Expectation<'a> {
    /// What stands between the parentheses of `expect`, without a message.
    subject: String,
    /// The quoted name that the matcher is about, such as `'href'`.
    name: Option<&'a str>,
}

impl<'a> Expectation<'a> {
    /// Matchers whose first argument says which property they look at.
    const NAMED: [&'static str; 3] = ["toHaveAttribute", "toHaveCSS", "toHaveJSProperty"];

    fn read(code: &'a str, matcher: &str) -> Option<Self> {
        let (before, behind) = code.split_once(&format!(".{matcher}("))?;
        let open = before.find("expect").and_then(|at| Some(at + before[at..].find('(')?))?;
        let subject = first_argument(&before[open + 1..])?.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_quoted = behind.starts_with(['\'', '"']) && Self::NAMED.contains(&matcher);
        let name = is_quoted.then(|| first_argument(behind)).flatten();
        // A value or a function that is written there says less than what was received.
        let is_named = subject.starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '$'))
            && !subject.contains("=>")
            && subject.chars().count() <= MAX_SUBJECT_CHARS;
        Some(Self { subject: if is_named { subject } else { VALUE.to_owned() }, name })
    }
}

/// The text up to the comma or parenthesis that ends the first argument of a call.
fn first_argument(code: &str) -> Option<&str> {
    let mut depth = 0_i32;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, char) in code.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if char == '\\' => is_escaped = true,
            Some(open) if char == open => quote = None,
            Some(_) => {}
            None => match char {
                '\'' | '"' | '`' => quote = Some(char),
                '(' | '[' | '{' => depth += 1,
                ')' | ',' if depth == 0 => return Some(code[..at].trim()).filter(|text| !text.is_empty()),
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            },
        }
    }
    None
}

fn expectation(matcher: &Matcher, part: &Segments<'_>, code: Option<&str>) -> String {
    let own = fields::own_message(part, Some(matcher));
    let code = code.and_then(|code| Expectation::read(code, &matcher.name));
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

/// The first difference in a comparison that is shown line by line, by the
/// path of its key.
fn first_difference(part: &Segments<'_>) -> Option<String> {
    let begins = part.head.iter().position(|line| line.trim_start().starts_with("- Expected"))?;
    let lines = &part.head[begins + 1..];
    let lines = lines.iter().filter(|line| !line.trim_start().starts_with("+ Received"));
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut missing: Option<Entry<'_>> = None;
    let mut added: Option<Entry<'_>> = None;
    let mut differences = 0_usize;
    for line in lines {
        let line = line.strip_prefix("    ").filter(|rest| rest.starts_with(['-', '+'])).unwrap_or(line);
        let Some(marker) = line.chars().next().filter(char::is_ascii) else { continue };
        let Some(entry) = Entry::of(&line[1..]) else { continue };
        match marker {
            '-' => {
                differences += 1;
                if missing.is_none() && added.is_none() {
                    missing = Some(entry.below(&path));
                }
            }
            '+' => {
                let is_other_side = missing.as_ref().is_some_and(|missing| missing.key == entry.key);
                if added.is_none() && (missing.is_none() || is_other_side) {
                    added = Some(entry.below(&path));
                }
                if missing.is_none() {
                    differences += 1;
                }
            }
            ' ' => {
                while path.last().is_some_and(|(depth, _)| *depth >= entry.depth) {
                    path.pop();
                }
                if entry.value.ends_with(['{', '[']) {
                    path.push((entry.depth, entry.key.unwrap_or_default().to_owned()));
                }
            }
            _ => {}
        }
    }
    let said = match (&missing, &added) {
        (Some(missing), Some(added)) => {
            format!("{}expected {}, received {}", missing.path, short(missing.value), short(added.value))
        }
        (Some(missing), None) => {
            format!("{}expected {}, which is missing", missing.path, short(missing.value))
        }
        (None, Some(added)) => {
            format!("{}received {}, which was not expected", added.path, short(added.value))
        }
        (None, None) => return None,
    };
    Some(if differences > 1 { format!("{said} (+{} more)", differences - 1) } else { said })
}

/// One line of a comparison.
struct Entry<'a> {
    depth: usize,
    key: Option<&'a str>,
    value: &'a str,
    /// Keys that lead to it, as `customer.address.city: `.
    path: String,
}

impl<'a> Entry<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let found = DIFF_LINE.captures(line)?;
        let value = found.get(3)?.as_str();
        if value.is_empty() {
            return None;
        }
        let key = found.get(2).map(|key| key.as_str()).filter(|key| key.len() <= MAX_PART_CHARS);
        let value = if key.is_some() { value } else { line.trim().trim_end_matches(',') };
        Some(Self { depth: found[1].len(), key, value, path: String::new() })
    }

    fn below(mut self, path: &[(usize, String)]) -> Self {
        let above = path.iter().filter(|(depth, _)| *depth < self.depth).map(|(_, key)| key.as_str());
        let keys: Vec<&str> = above.chain(self.key).filter(|key| !key.is_empty()).collect();
        if !keys.is_empty() {
            self.path = format!("{}: ", short(&keys.join(".")));
        }
        self
    }
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
    let element = part.log.iter().find_map(|line| {
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
    if let Some(over) = part.log.iter().find_map(|line| INTERCEPTED.captures(line)) {
        return Some(format!("{element} is covered by {}", short(&over[1])));
    }
    let state = match fields::obstacle(part) {
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
    let mut said = part.said();
    let first = said.next().unwrap_or_default();
    let is_announced =
        first.ends_with(':') || first.strip_suffix("Error").is_some_and(|rest| !rest.contains(' '));
    match said.next().filter(|next| is_announced && !next.starts_with("[cause]")) {
        Some(next) => format!("{first} {next}"),
        None => first.to_owned(),
    }
}

/// The error that an error names as its cause.
fn cause(part: &Segments<'_>) -> Option<String> {
    let cause = part.head.iter().find_map(|line| line.trim().strip_prefix("[cause]: "))?;
    Some(short(cause.trim_start_matches("Error: ").trim_end_matches('{')))
}

fn short(text: &str) -> String {
    let text = text.trim();
    let kept = cut_str(text, MAX_PART_CHARS);
    if kept.len() < text.len() { format!("{}…", kept.trim_end()) } else { kept.to_owned() }
}

#[cfg(test)]
mod tests;
