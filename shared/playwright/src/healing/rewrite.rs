//! Puts a locator into a source line. Only the failing chain of calls is
//! replaced; quotes, blanks and everything else stay as they are. A line that
//! could be meant in two ways is left alone.

use super::candidates::Locator;
use callboard_domain::locator::{self, Argument, Call, Chain, Value};

/// The line with `replacement` instead of the chain `failing`. `None` when
/// the line does not hold exactly one such chain.
#[must_use]
pub fn rewrite(line: &str, failing: &str, replacement: &Locator) -> Option<String> {
    rewrite_with(line, failing, |quote| replacement.written(quote))
}

/// [`rewrite`] with a text that is written as it is, when it is nothing but a
/// locator.
#[must_use]
pub fn rewrite_as_is(line: &str, failing: &str, replacement: &str) -> Option<String> {
    is_locator(replacement).then(|| rewrite_with(line, failing, |_| replacement.to_owned()))?
}

/// Whether a text is a locator and nothing else.
#[must_use]
pub fn is_locator(text: &str) -> bool {
    locator::is_only_locator(text) && locator::parse(text).is_some_and(|chain| chain.root.is_empty())
}

fn rewrite_with(line: &str, failing: &str, write: impl FnOnce(char) -> String) -> Option<String> {
    let lost = locator::parse(failing)?;
    let is_failing =
        |chain: &Chain| same_calls((line, chain.locator_calls()), (failing, lost.locator_calls()));
    let mut places = locator::chains(line).into_iter().filter(is_failing);
    let (place, None) = (places.next()?, places.next()) else { return None };
    let range = place.locator_range()?;
    let written = write(quote_of(line, &place));
    let edited = [&line[..range.start], &written, &line[range.end..]].concat();
    // Read again: what is written must be the chain that was meant.
    let meant = locator::parse(&written)?;
    let is_meant = |chain: &Chain| {
        chain.range.start == place.range.start
            && same_calls((&edited, chain.locator_calls()), (&written, &meant.calls))
    };
    let is_safe = !written.contains('\n') && edited != line;
    (is_safe && locator::chains(&edited).iter().any(is_meant)).then_some(edited)
}

/// The quotes the chain is written with.
fn quote_of(line: &str, chain: &Chain) -> char {
    let arguments = chain.locator_calls().iter().flat_map(|call| &call.arguments);
    let is_text = |argument: &&Argument| matches!(argument.value, Value::Text(_) | Value::Object(_));
    arguments
        .filter(is_text)
        .find_map(|argument| {
            line[argument.range.clone()].chars().find(|char| matches!(char, '\'' | '"' | '`'))
        })
        .unwrap_or('\'')
}

/// Whether two chains say the same, however they are written. Each comes with
/// the text it was read from.
fn same_calls((text, one): (&str, &[Call]), (text2, other): (&str, &[Call])) -> bool {
    !one.is_empty()
        && one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.name == other.name
                && one.arguments.len() == other.arguments.len()
                && one
                    .arguments
                    .iter()
                    .zip(&other.arguments)
                    .all(|(one, other)| same_value((text, one), (text2, other)))
        })
}

fn same_value((text, one): (&str, &Argument), (text2, other): (&str, &Argument)) -> bool {
    match (&one.value, &other.value) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|property| {
                    let same = other.iter().find(|candidate| candidate.name == property.name);
                    same.is_some_and(|same| same_value((text, &property.value), (text2, &same.value)))
                })
        }
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same_value((text, one), (text2, other)))
        }
        (Value::Chain(one), Value::Chain(other)) => same_calls((text, &one.calls), (text2, &other.calls)),
        // What a variable holds is not known.
        (Value::Expression, Value::Expression) => {
            let (one, other) = (text.get(one.range.clone()), text2.get(other.range.clone()));
            one == other && matches!(one, Some("true" | "false"))
        }
        (one, other) => one == other,
    }
}

/// A line of a file and its neighbours, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// Path from the root of the project.
    pub path: &'a str,
    /// Number of the line, from 1.
    pub line: u32,
    /// The lines before it that are known, at most three are shown.
    pub before: &'a [&'a str],
    /// The lines after it.
    pub after: &'a [&'a str],
    /// Whether the file is known to end with the last of them, without a line
    /// break.
    pub is_end_open: bool,
}

/// Lines shown around an edit.
const CONTEXT: usize = 3;
/// What a diff says below the last line of a file that ends without a line
/// break, after a backslash.
const NO_LINE_BREAK: &str = " No newline at end of file";

/// The replacement of one line as a unified diff. `None` for paths and lines
/// that no diff can hold.
#[must_use]
pub fn unified_diff(place: Lines<'_>, old: &str, new: &str) -> Option<String> {
    let texts = place.before.iter().chain(place.after).copied().chain([old, new]);
    // A carriage return at the end belongs to the line break.
    let is_line = |text: &str| !text.strip_suffix('\r').unwrap_or(text).contains(['\n', '\r']);
    if place.line == 0
        || place.path.is_empty()
        || place.path.contains(char::is_control)
        || !texts.into_iter().all(is_line)
    {
        return None;
    }
    let before = &place.before[place.before.len().saturating_sub(CONTEXT)..];
    let after = &place.after[..place.after.len().min(CONTEXT)];
    let start = place.line.checked_sub(u32::try_from(before.len()).ok()?).filter(|start| *start > 0)?;
    let count = before.len() + 1 + after.len();
    let path = place.path;
    let mut diff = format!("--- a/{path}\n+++ b/{path}\n@@ -{start},{count} +{start},{count} @@\n");
    let mut put = |sign: char, text: &str| {
        diff.push(sign);
        diff.push_str(text);
        diff.push('\n');
    };
    before.iter().for_each(|text| put(' ', text));
    // A patch only applies where it says that the break is missing.
    let is_open = place.is_end_open && after.len() == place.after.len();
    let is_last = is_open && after.is_empty();
    put('-', old);
    if is_last {
        put('\\', NO_LINE_BREAK);
    }
    put('+', new);
    after.iter().for_each(|text| put(' ', text));
    if is_open {
        put('\\', NO_LINE_BREAK);
    }
    Some(diff)
}

/// Lines of a stored piece of source, with their numbers: a mark of two
/// characters, the number, ` | ` and the text. Other lines are left out.
#[must_use]
pub fn numbered_lines(source: &str) -> Vec<(u32, &str)> {
    let lines = source_lines(source).into_iter();
    lines.map(|(number, text)| (number, text.strip_suffix('\r').unwrap_or(text))).collect()
}

/// [`numbered_lines`] as they are stored: with the carriage return where the
/// file has one before its line break.
#[must_use]
pub fn source_lines(source: &str) -> Vec<(u32, &str)> {
    let numbered = |line: &'_ str| -> Option<(u32, usize)> {
        let at = line.find(" | ").or_else(|| line.strip_suffix(" |").map(str::len))?;
        let number = line[..at].trim_start_matches(['>', '*', ' ']).trim();
        Some((number.parse().ok()?, (at + 3).min(line.len())))
    };
    source
        .split('\n')
        .filter_map(|line| numbered(line).map(|(number, text)| (number, &line[text..])))
        .collect()
}

/// The last line of a file, when a stored piece of its source ends with it:
/// pieces hold as many lines behind `middle` as before it, unless the file ends.
/// A file that ends with a line break has an empty line behind it.
#[must_use]
pub fn end_of_file(source: &str, middle: u32) -> Option<u32> {
    // What was cut for its length ends with a line that says so.
    let is_whole = !numbered_lines(source.lines().next_back()?).is_empty();
    let lines = numbered_lines(source);
    let (first, last) = (lines.first()?.0, lines.last()?.0);
    let (before, after) = (middle.checked_sub(first)?, last.checked_sub(middle)?);
    (is_whole && after < before).then_some(last)
}
