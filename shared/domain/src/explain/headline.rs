//! One line that says what happened, made of facts.

use super::wrong_page::OtherPage;
use crate::evidence::NetworkRequest;
use crate::failure::{Kind, Signature};
use crate::human::duration;
use crate::secrets::masked;
use crate::text::{clean, cut_str};

/// Characters of a part that comes from the test or the page.
const MAX_PART_CHARS: usize = 160;

/// What lay over an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// Its tag and id, such as `div#overlay`.
    pub by: String,
}

/// The element an error says lies over another.
#[must_use]
pub fn covered_by(error: &str) -> Option<Covered> {
    let line = error.lines().find(|line| line.contains("intercepts pointer events"))?;
    let element = line[line.find('<')? + 1..].split('>').next()?;
    let (tag, attributes) = element.split_once(char::is_whitespace).unwrap_or((element, ""));
    let id = attributes
        .split_once("id=\"")
        .and_then(|(_, rest)| rest.split('"').next())
        .filter(|id| !id.is_empty());
    let by = id.map_or_else(|| tag.to_owned(), |id| format!("{tag}#{id}"));
    Some(Covered { by: quoted(&by) })
}

/// What an assertion expected and what it got, as the error says.
#[must_use]
pub fn received(error: &str) -> Option<(Option<String>, String)> {
    let value = |word: &str| {
        error.lines().find_map(|line| {
            let rest = line.trim().strip_prefix(word)?;
            let (label, value) = rest.split_once(':')?;
            let is_label = label.chars().all(|char| char.is_ascii_alphabetic() || char == ' ');
            is_label.then(|| quoted(value.trim()))
        })
    };
    Some((value("Expected"), value("Received")?))
}

/// The newest run in which a test passed, of all runs on the same branch and in
/// the same environment as this one: those of the failure, or others.
#[derive(Debug, Clone, Copy)]
pub struct PassedIn<'a> {
    /// The run.
    pub run: i64,
    /// Its branch, where it has one.
    pub branch: Option<&'a str>,
    /// Its environment, where it has one.
    pub environment: Option<&'a str>,
}

impl PassedIn<'_> {
    /// Names the place too: the test may have passed elsewhere since.
    fn told(&self) -> String {
        let places: Vec<String> = [self.branch, self.environment]
            .into_iter()
            .flatten()
            .map(|name| format!("`{}`", quoted(name)))
            .collect();
        let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
        format!("Last passed in run {}{places}", self.run)
    }
}

/// The facts of a headline.
#[derive(Debug, Clone, Copy)]
pub struct Headline<'a> {
    /// Kind and fields of the failure.
    pub signature: &'a Signature,
    /// The error.
    pub error: &'a str,
    /// The locator, as written.
    pub locator: Option<&'a str>,
    /// The page it failed on, when that is not the one it was to be on.
    pub other_page: Option<&'a OtherPage>,
    /// Where the test passed last.
    pub last_passed: Option<PassedIn<'a>>,
    /// The first request that failed, with its name as `METHOD path`; `None`
    /// inside when none did, outside when requests were not recorded.
    pub failed_request: Option<Option<(&'a str, &'a NetworkRequest)>>,
}

/// Writes the line.
#[must_use]
pub fn headline(facts: &Headline<'_>) -> String {
    let mut parts = vec![what_happened(facts)];
    // The failed request is named below.
    let page = facts.other_page.filter(|page| !matches!(page, OtherPage::BrokenRequest(..)));
    parts.extend(page.map(ToString::to_string));
    parts.push(match facts.last_passed {
        Some(last) => last.told(),
        None => "No earlier pass is known".to_owned(),
    });
    match facts.failed_request {
        Some(None) => parts.push("No failed requests".to_owned()),
        Some(Some((name, request))) => parts.push(request_result(name, request)),
        None => {}
    }
    format!("{}.", parts.join(". "))
}

fn request_result(name: &str, request: &NetworkRequest) -> String {
    let name = quoted(name);
    match &request.failure_text {
        Some(text) => format!("`{name}` failed (`{}`)", quoted(text)),
        None if request.pending => format!("`{name}` had no response after {}", duration(request.duration)),
        None if request.status == 0 => format!("`{name}` got no response"),
        None => format!("`{name}` answered {}", request.status),
    }
}

fn what_happened(facts: &Headline<'_>) -> String {
    let signature = facts.signature;
    let element = match facts.locator {
        Some(locator) => format!("`{}`", quoted(locator)),
        None => "The element".to_owned(),
    };
    let subject = if facts.locator.is_some() { format!(" of {element}") } else { String::new() };
    match (signature.kind, &*signature.reason) {
        (Kind::Strict, _) => format!("{element} matches several elements"),
        (Kind::Closed, _) => "Page or browser was closed".to_owned(),
        (Kind::Navigation, _) => match signature.codes.first() {
            Some(code) => format!("Page could not be loaded (`{}`)", quoted(code)),
            None => "Page could not be loaded".to_owned(),
        },
        (_, "intercepted") => match covered_by(facts.error) {
            Some(covered) => format!("{element} was covered by `{}`", covered.by),
            None => format!("{element} was covered by another element"),
        },
        (_, "disabled") => format!("{element} was disabled"),
        (_, "unstable") => format!("{element} kept moving"),
        (_, "not-visible") => format!("{element} was not visible"),
        (_, "outside") => format!("{element} was outside of the viewport"),
        (_, "detached") => format!("{element} was detached from the DOM"),
        (_, "readonly") => format!("{element} was read-only"),
        (_, "not-found") => format!("{element} was not found"),
        (Kind::Assert, _) => {
            let matcher = quoted(&signature.api);
            match received(facts.error) {
                Some((Some(expected), received)) => {
                    format!("`{matcher}`{subject} expected `{expected}`, received `{received}`")
                }
                Some((None, received)) => format!("`{matcher}`{subject} received `{received}`"),
                None => format!("`{matcher}`{subject} failed"),
            }
        }
        (Kind::Timeout, _) => format!("`{}`{subject} timed out", quoted(&signature.api)),
        (Kind::TestTimeout, _) => "Test timed out".to_owned(),
        (Kind::Script | Kind::App, _) => {
            let first =
                facts.error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("an error");
            format!("Threw `{}`", quoted(first))
        }
    }
}

/// A part that comes from outside: one line, bounded, without secrets and the
/// mark that ends it.
fn quoted(text: &str) -> String {
    let text = masked(&clean(text)).into_owned();
    let line: String = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .filter(|char| *char != '`')
        .collect();
    let kept = cut_str(line.trim(), MAX_PART_CHARS);
    if kept.len() < line.trim().len() { format!("{kept}…") } else { kept.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{ErrorText, signature};

    fn told(
        error: &str,
        locator: Option<&str>,
        failed_request: Option<Option<(&str, &NetworkRequest)>>,
    ) -> String {
        let signature = signature(&[ErrorText { message: error, stack: None }], &[]).expect("is read");
        headline(&Headline {
            signature: &signature,
            error,
            locator,
            other_page: None,
            last_passed: Some(PassedIn { run: 41, branch: None, environment: None }),
            failed_request,
        })
    }

    #[test]
    fn headlines_say_what_the_evidence_says() {
        let covered = "TimeoutError: locator.click: Timeout 900ms exceeded.\nCall log:\n  - waiting for getByRole('button', { name: 'Pay' })\n    - locator resolved to <button>Pay</button>\n      - <div id=\"overlay\"></div> intercepts pointer events\n";
        assert_eq!(
            told(covered, Some("getByRole('button', { name: 'Pay' })"), Some(None)),
            "`getByRole('button', { name: 'Pay' })` was covered by `div#overlay`. Last passed in run 41. No failed requests."
        );
        let wrong = "Error: expect(locator).toHaveText(expected) failed\n\nLocator:  getByTestId('total')\nExpected: \"Total: 13.00\"\nReceived: \"Total: 12.50\"\nTimeout:  600ms\n\nCall log:\n  - Expect \"toHaveText\" getByTestId('total') with timeout 600ms\n    3 × locator resolved to <p data-testid=\"total\">Total: 12.50</p>\n";
        let (boom, none) = ("Error: boom `x`\n    at a.ts:1:2", NetworkRequest::default());
        assert_eq!(
            told(wrong, Some("getByTestId('total')"), None),
            "`toHaveText` of `getByTestId('total')` expected `\"Total: 13.00\"`, received `\"Total: 12.50\"`. Last passed in run 41."
        );
        assert_eq!(
            told(boom, None, Some(Some(("POST /api/cart", &NetworkRequest { status: 503, ..none.clone() })))),
            "Threw `Error: boom x`. Last passed in run 41. `POST /api/cart` answered 503."
        );
        let refused =
            NetworkRequest { failure_text: Some("net::ERR_CONNECTION_REFUSED".to_owned()), ..none.clone() };
        assert_eq!(
            told(boom, None, Some(Some(("GET /vendor.js", &refused)))),
            "Threw `Error: boom x`. Last passed in run 41. `GET /vendor.js` failed (`net::ERR_CONNECTION_REFUSED`)."
        );
        let waiting = NetworkRequest { pending: true, duration: 5_012, ..none };
        assert_eq!(
            told(boom, None, Some(Some(("GET /cart", &waiting)))),
            "Threw `Error: boom x`. Last passed in run 41. `GET /cart` had no response after 5.0\u{a0}s."
        );
    }
}
