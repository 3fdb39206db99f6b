//! Evidence as the page shows it: source with its failing line, console
//! entries with their weight, and the command that runs the test again.

use callboard_domain::evidence::url_text::is_web_url;
use callboard_domain::evidence::{Annotation, ConsoleEntry, Evidence};
use callboard_domain::rerun::{self, Target};
use callboard_query::shapes::{ExecutionDetail, ExecutionItem};

/// Characters up to which an address is made a link.
const MAX_LINK_CHARS: usize = 2_000;

/// A line of source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    /// Line number, as the client counted.
    pub number: String,
    /// The line itself.
    pub text: String,
    /// Whether the test failed here.
    pub is_failing: bool,
}

/// Reads source that a client numbered: two characters of marker, the number,
/// a bar, the line. Lines of another form are kept as they are.
pub(crate) fn source_lines(text: &str) -> Vec<SourceLine> {
    text.lines().map(source_line).collect()
}

fn source_line(line: &str) -> SourceLine {
    let numbered = line.split_once('|').and_then(|(head, text)| {
        let number = head.trim_start_matches(['>', '*']).trim();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| (head.starts_with('>'), number, text.strip_prefix(' ').unwrap_or(text)))
    });
    match numbered {
        Some((is_failing, number, text)) => {
            SourceLine { number: number.to_owned(), text: text.to_owned(), is_failing }
        }
        None => SourceLine { number: String::new(), text: line.to_owned(), is_failing: false },
    }
}

/// Source around one frame of the stack.
pub(crate) struct Frame {
    /// `file:line`.
    pub place: String,
    /// Its lines.
    pub lines: Vec<SourceLine>,
}

/// The frames of the stack inside of the project, innermost first. The first
/// one is left out when it is the test's own source, which has its place.
pub(crate) fn frames(evidence: &Evidence) -> Vec<Frame> {
    let shown = evidence.test_source_frames.iter().map(|frame| Frame {
        place: frame.line.map_or_else(|| frame.file.clone(), |line| format!("{}:{line}", frame.file)),
        lines: source_lines(&frame.snippet),
    });
    shown.collect()
}

/// A console entry with its look.
pub(crate) struct ConsoleRow {
    /// Class of its weight: `failed`, `flaky` or `quiet`.
    pub weight: &'static str,
    /// The word the browser gave it.
    pub kind: String,
    /// What was written.
    pub text: String,
    /// Where in the page.
    pub location: Option<String>,
}

/// Console entries in their order.
pub(crate) fn console(entries: &[ConsoleEntry]) -> Vec<ConsoleRow> {
    entries.iter().map(|entry| console_row(&entry.kind, &entry.text, entry.location.as_deref())).collect()
}

/// A console entry by what the browser says of it.
pub(crate) fn console_row(kind: &str, text: &str, location: Option<&str>) -> ConsoleRow {
    ConsoleRow {
        weight: match kind {
            "error" | "pageerror" | "assert" => "failed",
            "warning" | "warn" => "flaky",
            _ => "quiet",
        },
        kind: kind.to_owned(),
        text: text.to_owned(),
        location: location.map(str::to_owned),
    }
}

/// What the author of a test noted about it.
pub(crate) struct Note {
    /// Its type, such as `issue`.
    pub kind: String,
    /// What it says.
    pub text: Option<String>,
    /// Whether that is an address to go to.
    pub is_link: bool,
}

/// The notes of a test, without those that set a property of it, which has a
/// place of its own, and without those that tools left for each other.
pub(crate) fn notes(detail: &ExecutionDetail) -> Vec<Note> {
    let told: Vec<Annotation> =
        detail.annotations.clone().and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default();
    let is_note = |told: &Annotation| {
        !told.is_locator_suggestion() && !told.kind.to_lowercase().starts_with("callboard:")
    };
    let note = |told: Annotation| Note {
        is_link: told.description.as_ref().is_some_and(|text| is_web_url(text, MAX_LINK_CHARS)),
        kind: told.kind,
        text: told.description,
    };
    told.into_iter().filter(is_note).map(note).collect()
}

/// The arguments of `playwright test` that run exactly this test again.
pub(crate) fn arguments_of(item: &ExecutionItem) -> Vec<String> {
    rerun::words(&[Target {
        file_path: item.file_path.clone(),
        line: item.line,
        browser_project: item.browser_project.clone(),
    }])
}

/// `project/engine` as one word when both are the same.
pub(crate) fn once(label: &str) -> String {
    match label.split_once('/') {
        Some((project, engine)) if project == engine => engine.to_owned(),
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_source_is_taken_apart_and_the_failing_line_found() {
        let lines = source_lines(">   12 | await a || b;\n*    9 | test('x', () => {\nplain | text");
        let as_tuples: Vec<_> =
            lines.iter().map(|l| (l.number.as_str(), l.text.as_str(), l.is_failing)).collect();
        assert_eq!(
            as_tuples,
            [("12", "await a || b;", true), ("9", "test('x', () => {", false), ("", "plain | text", false)]
        );
    }
}
