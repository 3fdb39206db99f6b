//! The sentence that names a cluster: `Could not click getByTestId('pay'):
//! covered by another element`. It is made of the fields of a fingerprint, so
//! it is the same for every failure with them; data is left out as `…`.

use std::sync::LazyLock;

use regex::Regex;

use super::segment::pattern;
use super::{Kind, Signature};
use crate::text::cut_str;

/// Characters of a title.
const MAX_CHARS: usize = 200;
/// What stands for data, for readers.
const DATA: &str = "…";

/// Marks that masks leave, with what says nothing before them.
static MARK: LazyLock<Regex> = LazyLock::new(|| pattern(r"<(?:\*|[A-Z]+)>"));

/// What an element or value is expected to be or to have, behind "is" and "is not".
const STATES: [(&str, &str); 16] = [
    ("toBeVisible", "visible"),
    ("toBeHidden", "hidden"),
    ("toBeEnabled", "enabled"),
    ("toBeDisabled", "disabled"),
    ("toBeChecked", "checked"),
    ("toBeEditable", "editable"),
    ("toBeEmpty", "empty"),
    ("toBeFocused", "focused"),
    ("toBeAttached", "attached to the page"),
    ("toBeInViewport", "in the viewport"),
    ("toBeOK", "OK"),
    ("toBeTruthy", "truthy"),
    ("toBeFalsy", "falsy"),
    ("toBeDefined", "defined"),
    ("toBeNull", "null"),
    ("toBeUndefined", "undefined"),
];

/// What it is expected to have: `does not have the expected …`.
const PROPERTIES: [(&str, &str); 17] = [
    ("toHaveText", "text"),
    ("toHaveCount", "count"),
    ("toHaveValue", "value"),
    ("toHaveValues", "values"),
    ("toHaveClass", "class"),
    ("toHaveId", "id"),
    ("toHaveRole", "role"),
    ("toHaveURL", "URL"),
    ("toHaveTitle", "title"),
    ("toHaveLength", "length"),
    ("toHaveProperty", "property"),
    ("toHaveAttribute", "attribute"),
    ("toHaveCSS", "style"),
    ("toHaveJSProperty", "property"),
    ("toHaveAccessibleName", "accessible name"),
    ("toHaveAccessibleDescription", "accessible description"),
    ("toHaveAccessibleErrorMessage", "accessible error message"),
];

impl Signature {
    /// The sentence that names failures like this one, ≤ 200 characters.
    #[must_use]
    pub fn title(&self) -> String {
        let target = element(&self.target);
        let (said, mut because) = match self.kind {
            Kind::Assert => self.unmet(&target),
            Kind::Timeout => self.out_of_time(&target),
            Kind::TestTimeout => (self.test_timeout(), String::new()),
            Kind::Strict => (format!("{target} matches several elements"), String::new()),
            Kind::Closed => (self.closed(&target), String::new()),
            Kind::Navigation => ("Page could not be loaded".to_owned(), self.codes_in_words()),
            Kind::Script | Kind::App => self.thrown(&target),
        };
        if self.in_hook && self.kind != Kind::TestTimeout {
            because = join(&[&because, "in a hook"], ", ");
        }
        let tail = if because.is_empty() { String::new() } else { format!(": {because}") };
        let tail = cut_str(&tail, MAX_CHARS / 2);
        let said = readable(&said);
        let room = MAX_CHARS - tail.chars().count();
        let kept = cut_str(&said, room);
        if kept.len() < said.len() {
            format!("{}{DATA}{tail}", cut_str(kept, room - 1).trim_end())
        } else {
            format!("{kept}{tail}")
        }
    }

    fn unmet(&self, target: &str) -> (String, String) {
        let codes = self.codes_in_words();
        if !self.template.is_empty() && self.is_free_text {
            return (self.template.clone(), join(&[target, self.reason_in_words(), &codes], ", "));
        }
        let compared = self.template.strip_prefix("src:").map(|code| self.compared(code));
        let (subject, argument) = match &compared {
            Some((subject, argument)) => (subject.as_str(), argument.as_str()),
            None if !target.is_empty() => (target, self.template.as_str()),
            None => (self.subject(), ""),
        };
        if !target.is_empty() && self.reason == "not-found" {
            return (format!("{target} not found ({})", self.api), codes);
        }
        let status = |mark: &str| self.codes.iter().find_map(|code| code.strip_prefix(mark));
        if let (Some(expected), Some(got)) =
            (status("exp"), status("got").filter(|got| !got.starts_with(':')))
        {
            let of = if subject == "Value" { String::new() } else { format!("{subject}: ") };
            return (format!("{of}expected {expected}, received {got}"), String::new());
        }
        (format!("{subject} {}", self.predicate(argument)), codes)
    }

    /// What an expectation without a known element or source is about.
    fn subject(&self) -> &str {
        match self.api.as_str() {
            "toHaveURL" | "toHaveTitle" | "toHaveScreenshot" => "page",
            "toBeOK" if self.template.is_empty() => "Response",
            "toBeOK" => &self.template,
            _ => "Value",
        }
    }

    /// Subject and expected value in `expect(subject).toBe(expected)`.
    fn compared(&self, code: &str) -> (String, String) {
        let matcher = format!(").{}(", self.api);
        let inside = code.strip_prefix("expect(").and_then(|rest| rest.rsplit_once(&matcher));
        let (subject, expected) = inside.unwrap_or((code, ""));
        let subject =
            match subject.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?))) {
                Some((before, (target, behind))) if target.contains('=') => {
                    format!("{before}{}{behind}", element(target))
                }
                _ => subject.to_owned(),
            };
        let expected = expected.strip_suffix(')').unwrap_or(expected);
        let subject = match subject.as_str() {
            known if known.starts_with("()=>") || known.starts_with("async()=>") => "A computed value",
            known if known.starts_with('[') => "A list",
            known if known.starts_with('{') => "An object",
            "S" => "A text",
            "N" => "A number",
            "R" => "A pattern",
            known => known,
        };
        (
            subject.to_owned(),
            if expected.starts_with(['\'', '/']) { expected.to_owned() } else { String::new() },
        )
    }

    /// The rest of the sentence: what the subject is not, or is not to be.
    fn predicate(&self, argument: &str) -> String {
        let find = |table: &[(&str, &'static str)]| {
            table.iter().find(|(api, _)| *api == self.api).map(|(_, word)| *word)
        };
        let argument = if argument.is_empty() { String::new() } else { format!(" {argument}") };
        let not = self.negated;
        if let Some(state) = find(&STATES) {
            return format!("is {}{state}", if not { "" } else { "not " });
        }
        if let Some(property) = find(&PROPERTIES) {
            let verb = if not { "has the unexpected" } else { "does not have the expected" };
            return format!("{verb} {property}{argument}");
        }
        match self.api.as_str() {
            "toHaveScreenshot" | "toMatchSnapshot" => {
                format!("{} its snapshot{argument}", if not { "matches" } else { "does not match" })
            }
            "toMatchAriaSnapshot" => {
                format!("{} its accessibility snapshot", if not { "matches" } else { "does not match" })
            }
            "toContain" | "toContainText" | "toContainEqual" | "toContainClass" => {
                format!(
                    "{} the {} value{argument}",
                    if not { "contains" } else { "does not contain" },
                    expected(not)
                )
            }
            "toMatch" => format!("{} the pattern{argument}", if not { "matches" } else { "does not match" }),
            "toMatchObject" => {
                format!("{} the {} object", if not { "matches" } else { "does not match" }, expected(not))
            }
            "toThrow" | "toThrowError" => {
                if not {
                    "throws an error".to_owned()
                } else {
                    format!("does not throw the expected error{argument}")
                }
            }
            "toBeInstanceOf" => {
                format!("is {}an instance of the expected class", if not { "" } else { "not " })
            }
            "toBeCloseTo" => format!("is {}close to the expected number", if not { "" } else { "not " }),
            "toBeGreaterThan" | "toBeGreaterThanOrEqual" => {
                format!("is {}as great as expected", if not { "" } else { "not " })
            }
            "toBeLessThan" | "toBeLessThanOrEqual" => {
                format!("is {}as small as expected", if not { "" } else { "not " })
            }
            "toPass" => "does not pass".to_owned(),
            _ => format!("is {} value{argument}", if not { "the unexpected" } else { "not the expected" }),
        }
    }

    fn out_of_time(&self, target: &str) -> (String, String) {
        let api = &self.api;
        if target.is_empty() {
            let what = if self.template.is_empty() {
                String::new()
            } else {
                format!(" waiting for {}", self.template)
            };
            return match api.as_str() {
                "goto" | "reload" | "goBack" | "goForward" if !self.template.is_empty() => {
                    (format!("Loading {} timed out", self.template), String::new())
                }
                "get" | "post" | "put" | "patch" | "delete" | "head" | "fetch"
                    if !self.template.is_empty() =>
                {
                    (format!("{} timed out", self.template), String::new())
                }
                "" => (format!("Timed out{what}"), String::new()),
                _ => (format!("{api} timed out{what}"), String::new()),
            };
        }
        let reason = self.reason_in_words().to_owned();
        let verb = match api.as_str() {
            "" => return (format!("Timed out waiting for {target}"), reason),
            "waitFor" | "waitForSelector" | "waitForElementState" => {
                return (format!("Timed out waiting for {target}"), reason);
            }
            "dblclick" => "double-click",
            "fill" | "clear" | "press" | "type" | "tap" | "hover" | "check" | "uncheck" | "click"
            | "focus" | "blur" => api,
            "pressSequentially" => "type into",
            "selectOption" => "select an option of",
            "setInputFiles" => "set the files of",
            "dragTo" | "dragAndDrop" => "drag: waiting for",
            "scrollIntoViewIfNeeded" => "scroll to",
            "screenshot" => "take a screenshot of",
            _ => return (format!("{api} of {target} timed out"), reason),
        };
        (
            format!("Could not {verb} {target}"),
            if reason.is_empty() { "timed out".to_owned() } else { reason },
        )
    }

    fn test_timeout(&self) -> String {
        match self.template.as_str() {
            "" if self.in_hook => "Test timed out in a hook".to_owned(),
            "" => "Test timed out".to_owned(),
            part => format!("Test timed out in {part}"),
        }
    }

    fn closed(&self, target: &str) -> String {
        match (self.api.as_str(), target) {
            ("", _) => "Page or browser was closed".to_owned(),
            (api, "") => format!("Page or browser was closed during {api}"),
            (api, target) => format!("Page or browser was closed during {api} of {target}"),
        }
    }

    fn thrown(&self, target: &str) -> (String, String) {
        let text = if self.template.is_empty() { "Error without a message" } else { &self.template };
        if !target.is_empty() {
            return (format!("Could not {} {target}: {text}", self.api), String::new());
        }
        let class = if self.class.is_empty() || text.contains(&self.class) { "" } else { &self.class };
        let place = if self.api.is_empty() { String::new() } else { format!(" (in {})", self.api) };
        (format!("{}{place}", join(&[class, text], ": ")), String::new())
    }

    fn reason_in_words(&self) -> &str {
        match &*self.reason {
            "intercepted" => "covered by another element",
            "unstable" => "kept moving",
            "not-visible" => "not visible",
            "outside" => "outside of the viewport",
            "detached" => "detached from the page",
            "readonly" => "read only",
            "not-found" => "not found",
            other => other,
        }
    }

    fn codes_in_words(&self) -> String {
        let words: Vec<String> = self.codes.iter().map(|code| code_in_words(code)).collect();
        words.join(", ")
    }
}

const fn expected(negated: bool) -> &'static str {
    if negated { "unexpected" } else { "expected" }
}

fn join(parts: &[&str], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(between)
}

/// A text without the marks of masks.
fn readable(text: &str) -> String {
    let text = text.replace("<URL>/", "/").replace("<URL>", DATA).replace("<PATH>/", "");
    let text = text.replace(" [cause]: Error:", ", caused by").replace(" [cause]:", ", caused by");
    MARK.replace_all(&text, DATA).into_owned()
}

/// A code as people read it: `exp200` as `expected 200`.
fn code_in_words(code: &str) -> String {
    for (mark, word) in [("exp", "expected"), ("got:", "received"), ("got", "received"), ("http", "HTTP")] {
        if let Some(value) = code.strip_prefix(mark)
            && (mark == "got:" || value.bytes().all(|byte| byte.is_ascii_digit()))
        {
            return format!("{word} {value}");
        }
    }
    code.to_owned()
}

/// A canonical locator as Playwright writes it.
fn element(target: &str) -> String {
    let parts: Vec<String> = target.split(" >> ").filter(|part| !part.is_empty()).map(call).collect();
    parts.join(".")
}

fn call(part: &str) -> String {
    let (key, value) = part.split_once('=').unwrap_or((part, ""));
    let method = match key {
        "role" => {
            return match value.split_once('[') {
                Some((role, name)) => match name.trim_end_matches(']') {
                    "<*>" => format!("getByRole('{role}')"),
                    name => format!("getByRole('{role}', {{ name: '{name}' }})"),
                },
                None => format!("getByRole('{value}')"),
            };
        }
        "testid" => "getByTestId",
        "text" => "getByText",
        "label" => "getByLabel",
        "ph" => "getByPlaceholder",
        "alt" => "getByAltText",
        "title" => "getByTitle",
        "css" => "locator",
        "frame" if value.is_empty() => return "contentFrame()".to_owned(),
        "first" | "last" if value.is_empty() => return format!("{key}()"),
        "nth" => return format!("nth({DATA})"),
        _ if part.starts_with("filter") => return "filter()".to_owned(),
        _ if value.is_empty() || part.starts_with("and[") || part.starts_with("or[") => {
            return part.to_owned();
        }
        _ => return format!("locator('{part}')"),
    };
    format!("{method}('{value}')")
}
