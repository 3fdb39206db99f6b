//! Where a failing call stands, and the lines of the test around it.

use callboard_domain::healing::rewrite::{Lines, end_of_file, numbered_lines, unified_diff};
use callboard_domain::ids::RunId;
use callboard_domain::ingest::Location;
use callboard_store::locators::LocatorRow;

use super::HealingEdit;
use crate::failures::subject::Subject;

/// Where the failing call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::failures) struct Site {
    /// Path as the client of this run would write it.
    pub(in crate::failures) file: String,
    pub(in crate::failures) line: u32,
    pub(in crate::failures) column: Option<u32>,
}

impl Site {
    /// From the stack of the error, else from the step that failed, else from
    /// the stored source.
    pub(in crate::failures) fn of(subject: &Subject) -> Option<Self> {
        let frame = subject.evidence.test_source_frames.first();
        let error = subject.error().unwrap_or_default();
        let step = subject.evidence.steps.iter().rev().find(|step| step.failed && step.location.is_some());
        let from_step = step.and_then(|step| step.location.clone());
        let from_stack = error.lines().find_map(|line| {
            let place = line.trim().strip_prefix("at ")?;
            let place = place.rsplit_once('(').map_or(place, |(_, place)| place).trim_end_matches(')');
            (!place.contains("node_modules") && place.contains(':')).then(|| place.to_owned())
        });
        let parsed = from_stack.or(from_step).map(|place| Location::parse(&place));
        let place = parsed.filter(|place| place.line.is_some_and(|line| line > 0));
        match (frame, place) {
            (Some(frame), Some(place)) if is_same_file(&place.path, &frame.file) => {
                Some(Self { file: frame.file.clone(), line: place.line?, column: place.column })
            }
            (Some(frame), _) => {
                Some(Self { file: frame.file.clone(), line: u32::try_from(frame.line?).ok()?, column: None })
            }
            (None, Some(place)) if is_same_file(&place.path, &subject.case.file_path) => {
                Some(Self { file: subject.case.file_path.clone(), line: place.line?, column: place.column })
            }
            (None, Some(place)) => Some(Self { file: place.path, line: place.line?, column: place.column }),
            (None, None) => None,
        }
    }

    pub(in crate::failures) fn written(&self) -> String {
        match self.column {
            Some(column) => format!("{}:{}:{column}", self.file, self.line),
            None => format!("{}:{}", self.file, self.line),
        }
    }

    /// How well a stored call site fits: its column too, or its line only.
    fn fits(&self, location: &str) -> Option<bool> {
        let place = Location::parse(location);
        let is_here = is_same_file(&place.path, &self.file) && place.line == Some(self.line);
        is_here.then(|| place.column == self.column)
    }
}

/// Whether one path names the same file as another that is relative to some
/// folder of it.
pub(super) fn is_same_file(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    !short.is_empty() && (long == short || long.ends_with(&format!("/{short}")))
}

/// The call site at which the failing locator was stored before, or, when a
/// later run used another one on that line, the locator that came after it.
pub(in crate::failures) fn row_at<'r>(
    rows: &'r [LocatorRow],
    site: &Site,
    failing: [u8; 32],
    failed_in: RunId,
) -> Option<&'r LocatorRow> {
    let at = |exact: bool| rows.iter().filter(move |row| site.fits(&row.location) == Some(exact));
    let is_known = |row: &&LocatorRow| row.args_fp == failing || row.since_run > failed_in;
    at(true).next().or_else(|| at(false).find(is_known))
}

/// What is known of the source around a place.
#[derive(Debug, Default)]
pub(super) struct KnownSource {
    /// Lines with their numbers, in order.
    pub(super) lines: Vec<(u32, String)>,
    /// Whether the file is known to end with the last of them, without a line
    /// break.
    is_end_open: bool,
}

/// The longest stored piece of source that holds a place.
pub(super) fn source_around(subject: &Subject, site: &Site) -> KnownSource {
    let all = &subject.evidence.test_source_frames;
    let frames = || all.iter().filter(|frame| is_same_file(&frame.file, &site.file));
    let mut pieces: Vec<&str> = frames().map(|frame| frame.snippet.as_str()).collect();
    if is_same_file(&subject.case.file_path, &site.file) {
        pieces.extend(subject.evidence.test_source.as_deref());
    }
    let lines = pieces.into_iter().map(numbered_lines);
    let around = lines.filter(|lines| lines.iter().any(|(number, _)| *number == site.line));
    let lines = around.max_by_key(Vec::len).unwrap_or_default().into_iter();
    let mut lines: Vec<(u32, String)> =
        lines.map(|(number, text)| (number, text.trim_end_matches('\r').to_owned())).collect();
    let end = frames().find_map(|frame| end_of_file(&frame.snippet, u32::try_from(frame.line?).ok()?));
    let has_end = end.is_some() && lines.last().map(|(number, _)| *number) == end;
    let is_end_open = has_end && lines.last().is_some_and(|(_, text)| !text.is_empty());
    if has_end && !is_end_open {
        // What stands behind the last line break is no line.
        lines.pop();
    }
    KnownSource { lines, is_end_open }
}

pub(super) fn edit_of(
    site: &Site,
    source: &KnownSource,
    edited: impl FnOnce(&str) -> Option<String>,
) -> Option<HealingEdit> {
    let KnownSource { lines, is_end_open } = source;
    let at = lines.iter().position(|(number, _)| *number == site.line)?;
    let old = &lines[at].1;
    let new = edited(old)?;
    let is_next = |(one, other): (&(u32, String), &(u32, String))| one.0 + 1 == other.0;
    // Only lines without a gap in between are context.
    let before = (0..at).rev().take_while(|&index| is_next((&lines[index], &lines[index + 1]))).count();
    let after =
        (at + 1..lines.len()).take_while(|&index| is_next((&lines[index - 1], &lines[index]))).count();
    let texts = |range: std::ops::Range<usize>| -> Vec<&str> {
        lines[range].iter().map(|(_, text)| text.as_str()).collect()
    };
    let (before, after) = (texts(at - before..at), texts(at + 1..at + 1 + after));
    let is_end_open = *is_end_open && at + 1 + after.len() == lines.len();
    let place = Lines { path: &site.file, line: site.line, before: &before, after: &after, is_end_open };
    Some(HealingEdit {
        file_path: site.file.clone(),
        line: site.line,
        old_line: old.clone(),
        unified_diff: unified_diff(place, old, &new)?,
        new_line: new,
    })
}
