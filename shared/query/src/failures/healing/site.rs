//! Where a failing call stands, and the lines of the test around it.

use callboard_domain::ids::RunId;
use callboard_domain::ingest::Location;
use callboard_playwright::healing::rewrite::{Lines, end_of_file, source_lines, unified_diff};
use callboard_playwright::healing::{Finder, is_like};
use callboard_store::locators::LocatorRow;

use super::{HealingEdit, element_of};
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
    pub(in crate::failures) fn from_subject(subject: &Subject) -> Option<Self> {
        let frame = subject.evidence.test_source_frames.first();
        let error = subject.error().unwrap_or_default();
        let step = subject.evidence.steps.iter().rev().find(|step| step.failed && step.location.is_some());
        let from_step = step.and_then(|step| step.location.clone());
        let from_stack = error.lines().find_map(|line| {
            let place = place_in_frame(line)?;
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
pub(in crate::failures) fn is_same_file(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    !short.is_empty() && (long == short || long.ends_with(&format!("/{short}")))
}

/// The place a line of a stack names. Folders may have parentheses in their
/// names; only a line that ends with one has its place in parentheses.
fn place_in_frame(line: &str) -> Option<&str> {
    let frame = line.trim().strip_prefix("at ")?;
    match frame.strip_suffix(')').and_then(|frame| frame.split_once(" (")) {
        Some((_, place)) => Some(place),
        None => Some(frame.strip_prefix("async ").unwrap_or(frame)),
    }
}

/// The call site at which the failing locator was stored. Lines move, so what
/// else stands there may be another call; only when the test has the failing
/// locator nowhere any more, and a later run found something like it there, is
/// that what came after it.
pub(in crate::failures) fn row_at<'r>(
    rows: &'r [LocatorRow],
    site: &Site,
    failing: &Finder,
    test_id_attribute: &str,
    failed_in: RunId,
) -> Option<&'r LocatorRow> {
    let fingerprint = failing.fingerprint();
    let at = |exact: bool| rows.iter().filter(move |row| site.fits(&row.location) == Some(exact));
    let here = || at(true).chain(at(false));
    if rows.iter().any(|row| row.args_fp == fingerprint) {
        return here().find(|row| row.args_fp == fingerprint);
    }
    let target = failing.target();
    let came_after = |row: &&LocatorRow| {
        let element = element_of(row, test_id_attribute);
        row.since_run > failed_in && element.is_some_and(|element| is_like(&target, &element))
    };
    here().find(came_after)
}

/// The run after a failure in which the recommended locator was first seen to
/// work in the same file. One that the test used before is seen anew whenever
/// its line moves: it tells something only when the failing one is gone.
pub(super) fn healed_in(
    rows: &[LocatorRow],
    site: &Site,
    failed_in: RunId,
    failing: [u8; 32],
    recommended: [u8; 32],
) -> Option<RunId> {
    let of_recommended = || rows.iter().filter(|row| row.args_fp == recommended);
    let was_used_before = of_recommended().any(|row| row.since_run <= failed_in);
    if was_used_before && rows.iter().any(|row| row.args_fp == failing) {
        return None;
    }
    let is_here = |row: &&LocatorRow| is_same_file(&Location::parse(&row.location).path, &site.file);
    of_recommended().filter(is_here).map(|row| row.since_run).filter(|since| *since > failed_in).min()
}

/// What is known of the source around a place.
#[derive(Debug, Default)]
pub(super) struct KnownSource {
    /// Lines with their numbers, in order; of a file whose lines end with a
    /// carriage return too, that is part of them.
    lines: Vec<(u32, String)>,
    /// Whether the file is known to end with the last of them, without a line
    /// break.
    is_end_open: bool,
}

impl KnownSource {
    /// A line, when it is known.
    pub(super) fn line(&self, number: u32) -> Option<&str> {
        let (_, text) = self.lines.iter().find(|(known, _)| *known == number)?;
        Some(text.trim_end_matches('\r'))
    }
}

/// The longest stored piece of source that holds a place.
pub(super) fn source_around(subject: &Subject, site: &Site) -> KnownSource {
    let all = &subject.evidence.test_source_frames;
    let frames = || all.iter().filter(|frame| is_same_file(&frame.file, &site.file));
    let mut pieces: Vec<&str> = frames().map(|frame| frame.snippet.as_str()).collect();
    if is_same_file(&subject.case.file_path, &site.file) {
        pieces.extend(subject.evidence.test_source.as_deref());
    }
    let lines = pieces.into_iter().map(source_lines);
    let around = lines.filter(|lines| lines.iter().any(|(number, _)| *number == site.line));
    let lines = around.max_by_key(Vec::len).unwrap_or_default().into_iter();
    let mut lines: Vec<(u32, String)> = lines.map(|(number, text)| (number, text.to_owned())).collect();
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
    let as_stored = lines[at].1.as_str();
    let old = as_stored.trim_end_matches('\r');
    let new = edited(old)?;
    // A patch only applies where it ends its lines as the file does.
    let new_as_stored = format!("{new}{}", &as_stored[old.len()..]);
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
        old_line: old.to_owned(),
        unified_diff: unified_diff(place, as_stored, &new_as_stored)?,
        new_line: new,
    })
}

#[cfg(test)]
mod tests {
    use callboard_domain::ids::TestCaseId;
    use callboard_domain::time::Timestamp;
    use serde_json::json;

    use super::*;

    const FAILED_IN: RunId = RunId(5);

    fn finder(raw: &str) -> Finder {
        Finder::of_text(raw).expect("is a locator")
    }

    fn row(location: &str, raw: &str, since: i64) -> LocatorRow {
        let name = finder(raw).target().name;
        LocatorRow {
            test_case: TestCaseId(1),
            location: location.into(),
            method: "getByLabel".into(),
            raw: raw.into(),
            args: "[]".into(),
            args_fp: finder(raw).fingerprint(),
            element: json!({ "tagName": "input", "accessibleName": name }).to_string(),
            alternatives: "[]".into(),
            picked: None,
            since_run: RunId(since),
            last_run: RunId(since),
            last_seen_at: Timestamp(0),
        }
    }

    fn site(line: u32, column: u32) -> Site {
        Site { file: "e2e/form.spec.ts".into(), line, column: Some(column) }
    }

    fn location_of<'r>(rows: &'r [LocatorRow], site: &Site, failing: &str) -> Option<&'r str> {
        let row = row_at(rows, site, &finder(failing), "data-testid", FAILED_IN)?;
        Some(&row.location)
    }

    #[test]
    fn another_locator_at_the_place_of_the_failing_one_is_not_its_call_site() {
        let mut rows = vec![
            row("e2e/form.spec.ts:10:30", "getByLabel('Name')", 1),
            row("e2e/form.spec.ts:11:30", "getByLabel('City')", 1),
        ];
        // A line was inserted above both.
        assert_eq!(location_of(&rows, &site(11, 30), "getByLabel('Name')"), None);
        assert_eq!(location_of(&rows, &site(10, 12), "getByLabel('Name')"), Some("e2e/form.spec.ts:10:30"));
        // The test has it nowhere any more: only something like it came after it.
        rows.remove(0);
        rows[0].since_run = RunId(6);
        assert_eq!(location_of(&rows, &site(11, 30), "getByLabel('Name')"), None);
        rows.push(row("e2e/form.spec.ts:11:42", "getByLabel('First name')", 6));
        assert_eq!(location_of(&rows, &site(11, 30), "getByLabel('Name')"), Some("e2e/form.spec.ts:11:42"));
        rows[1].since_run = RunId(5);
        assert_eq!(location_of(&rows, &site(11, 30), "getByLabel('Name')"), None);
    }

    #[test]
    fn a_moved_line_is_no_repair() {
        let (lost, found) =
            (finder("getByLabel('Name')").fingerprint(), finder("getByLabel('Nom')").fingerprint());
        let healed = |rows: &[LocatorRow]| healed_in(rows, &site(10, 30), FAILED_IN, lost, found);
        let mut rows = vec![
            row("e2e/form.spec.ts:10:30", "getByLabel('Name')", 1),
            row("e2e/form.spec.ts:20:30", "getByLabel('Nom')", 1),
            row("e2e/form.spec.ts:21:30", "getByLabel('Nom')", 7),
        ];
        assert_eq!(healed(&rows), None);
        let only_since = rows.split_off(1);
        assert_eq!(healed(&only_since), Some(RunId(7)), "the lost one is gone");
        rows.push(only_since[1].clone());
        assert_eq!(healed(&rows), Some(RunId(7)), "the test did not use it before");
        rows[1].location = "e2e/other.spec.ts:21:30".into();
        assert_eq!(healed(&rows), None);
    }

    #[test]
    fn parentheses_in_a_path_belong_to_it() {
        let place = "/repo/e2e/(shop)/pay.spec.ts:10:5";
        for frame in [
            format!("    at {place}"),
            format!("at async {place}"),
            format!("at Pay.open ({place})"),
            format!("at async Object.<anonymous> ({place})"),
        ] {
            assert_eq!(place_in_frame(&frame), Some(place), "{frame}");
        }
        assert_eq!(place_in_frame("waiting for getByText('x')"), None);
    }
}
