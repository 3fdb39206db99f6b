//! Test cases of a body that is too large for memory. The body lies in a file;
//! what is held is where each of its test cases lies there and which test it is
//! about. A test case is read when its turn comes, and as often as needed.

mod outline;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde_json::{Map, Value, from_str};
use sha2::{Digest as _, Sha256};

use super::attempt_limit::{AttemptSize, Excess, strip_details};
use super::body::{BodyError, LIST, MAX_DEPTH, MAX_TEST_CASES, TestCases, invalid, read_leniently};
use super::bounded::{Room, bounded_value, bounded_value_in};
use super::caps::Caps;
use super::events::{EventsBody, SINGLE, TOKEN};
use super::identity::{IdentityHash, LineNumbers};
use super::test_case::TestCaseEntry;
use super::test_case_input::{Sent, TestCaseInput};
use super::warnings::{Warnings, quoted as text_shown};
use outline::{Malformed, Outline, Outliner, Span, quoted};

/// Most bytes of one test case, as many as of a whole body in memory: what its caps
/// let through is a fraction of it, and reading it takes several times as much.
const MAX_ENTRY_BYTES: u64 = 8 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;
/// Most bytes of a field beside the test cases.
const MAX_FIELD_BYTES: u64 = 8 * 1024 * 1024;
/// How much of the file is looked at together.
const PIECE_BYTES: usize = 128 * 1024;

/// Test cases in a file.
#[derive(Debug)]
pub struct StoredCases {
    file: File,
    caps: Caps,
    places: Vec<Place>,
    /// Earliest start and latest end, epoch milliseconds.
    span: Option<(i64, i64)>,
}

/// Where a test case lies, and what has to be known of it before it is read.
#[derive(Debug, Clone, Copy)]
struct Place {
    index: usize,
    at: Span,
    /// The same for entries of one test in one browser project.
    group: [u8; 32],
    /// What tells tests of one title apart: the place of their line.
    number: Option<usize>,
    /// Smaller is worse.
    severity: u8,
    /// Whether it is kept without its details.
    is_bare: bool,
}

/// What is needed of an entry besides its place until all are known.
#[derive(Debug)]
struct Draft {
    place: Place,
    identity: IdentityHash,
    /// Of one without a describe path.
    line: Option<u32>,
}

/// The body of a submission that lies in a file.
#[derive(Debug)]
pub struct StoredSubmit {
    /// Everything but the test cases.
    pub fields: Map<String, Value>,
    /// The test cases; `None` when the body has no such list.
    pub test_cases: Option<StoredCases>,
    /// What was skipped or left out.
    pub warnings: Warnings,
}

/// Reads a submission that lies in a file.
///
/// # Errors
/// As [`SubmitBody::parse`](super::SubmitBody::parse).
pub fn read_stored_submit(mut file: File, caps: &Caps) -> Result<StoredSubmit, BodyError> {
    let mut outline = outline_of(&mut file, Outliner::of_object(LIST, MAX_DEPTH - 1))?;
    let mut warnings = Warnings::default();
    let fields = read_fields(&mut file, &outline, &mut warnings)?;
    if outline.is_too_long {
        return Err(BodyError::TooMany { limit: MAX_TEST_CASES });
    }
    let test_cases = match outline.entries.take() {
        Some(entries) => {
            let (cases, found) = StoredCases::new(file, entries, caps)?;
            warnings.extend(found);
            Some(cases)
        }
        None if has_other_list(&mut file, &outline)? => return Err(BodyError::NotAList),
        None => None,
    };
    Ok(StoredSubmit { fields, test_cases, warnings })
}

/// A file that is the list of test cases itself.
///
/// # Errors
/// As [`parse_test_cases`](super::parse_test_cases).
pub fn read_stored_cases(mut file: File, caps: &Caps) -> Result<(StoredCases, Warnings), BodyError> {
    let outline = outline_of(&mut file, Outliner::of_list(MAX_DEPTH - 1))?;
    if outline.is_too_long {
        return Err(BodyError::TooMany { limit: MAX_TEST_CASES });
    }
    StoredCases::new(file, outline.entries.unwrap_or_default(), caps)
}

/// Test cases of which the places are being collected.
#[derive(Debug, Default)]
struct Collected {
    drafts: Vec<Draft>,
    span: Option<(i64, i64)>,
}

impl Collected {
    fn add(&mut self, entry: &TestCaseEntry, at: Span) {
        if let Some(start) = entry.started_at.map(|start| start.millis()) {
            let end = start + entry.duration_ms;
            self.span =
                Some(self.span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        }
        let group = Sha256::new_with_prefix(entry.identity).chain_update(&entry.browser_project);
        let place = Place {
            index: entry.index,
            at,
            group: group.finalize().into(),
            number: None,
            severity: entry.status.severity(),
            is_bare: false,
        };
        let line = entry.line.filter(|_| entry.suite_path.is_none());
        self.drafts.push(Draft { place, identity: entry.identity, line });
    }

    fn finish(self, file: File, caps: &Caps, warnings: &mut Warnings) -> StoredCases {
        let lines = self.drafts.iter().filter_map(|draft| Some((draft.identity, draft.line?)));
        let numbers = LineNumbers::from_lines(lines);
        let places = self.drafts.into_iter().map(|Draft { mut place, identity, line }| {
            place.number = line.and_then(|line| numbers.number(identity, line));
            if let Some(number) = place.number {
                let group = Sha256::new_with_prefix(place.group).chain_update(number.to_le_bytes());
                place.group = group.finalize().into();
            }
            place
        });
        let places: Vec<Place> = places.collect();
        let size = |place: &Place| AttemptSize {
            test: place.group,
            index: place.index,
            severity: place.severity,
            bytes: place.at.length(),
        };
        let sizes: Vec<_> = places.iter().map(size).collect();
        let excess = Excess::from_attempts(&sizes, warnings);
        let kept = places.into_iter().enumerate().filter(|(position, _)| !excess.dropped.contains(position));
        let places = kept
            .map(|(position, place)| Place { is_bare: excess.bare.contains(&position), ..place })
            .collect();
        StoredCases { file, caps: caps.clone(), places, span: self.span }
    }
}

/// Whether an entry is small enough to be read.
fn fits(at: Span, index: usize, warnings: &mut Warnings) -> bool {
    let fits = at.length() <= MAX_ENTRY_BYTES;
    if !fits {
        warnings.add("entry_too_large", Some(index), || {
            format!(
                "testCases[{index}] was skipped: it has {}.{} MiB, and a test case may have {} MiB.",
                at.length() >> 20,
                (at.length() % MIB) * 10 / MIB,
                MAX_ENTRY_BYTES >> 20
            )
        });
    }
    fits
}

/// The body of an events call that lies in a file: its results are read when
/// their turn comes, everything else is small.
#[derive(Debug)]
pub struct StoredEvents {
    /// All but the results; how many of them count is counted.
    pub events: EventsBody,
    /// Attempts that are over.
    pub completes: StoredCases,
}

/// Reads the events of a body that lies in a file.
///
/// # Errors
/// As [`EventsBody::parse`].
pub fn read_stored_events(mut file: File, caps: &Caps) -> Result<StoredEvents, BodyError> {
    let outline = outline_of(&mut file, Outliner::of_object(LIST, MAX_DEPTH - 1))?;
    if outline.is_too_long {
        return Err(BodyError::TooMany { limit: MAX_TEST_CASES });
    }
    if outline.entries.is_none() && has_other_list(&mut file, &outline)? {
        return Err(BodyError::NotAList);
    }
    let span = |name: &str| outline.fields.get(&quoted(name)).copied();
    let token = match span(TOKEN).filter(|span| span.length() <= MAX_ENTRY_BYTES) {
        Some(span) => Some(read_at(&mut file, span)?),
        None => None,
    };
    let single = match span(SINGLE) {
        Some(span) if !is_null(&mut file, span)? => Some(span),
        _ => None,
    };
    let mut events = EventsBody::with_token(token.and_then(|token| {
        read_leniently(token, |text| from_str(text).map_err(|error| invalid(&error))).ok()
    }));
    let mut collected = Collected::default();
    for (index, at) in outline.entries.unwrap_or_default().into_iter().chain(single).enumerate() {
        if !fits(at, index, events.warnings_mut()) {
            events.ignored += 1;
            continue;
        }
        let read = read_leniently(read_at(&mut file, at)?, |text| {
            let mut read = EventsBody::default();
            read.add(read_input(text)?, index, caps);
            Ok(read)
        })?;
        events.absorb(read).iter().for_each(|entry| collected.add(entry, at));
    }
    events.steps.sort_by_key(|step| step.is_end);
    let completes = collected.finish(file, caps, events.warnings_mut());
    Ok(StoredEvents { events, completes })
}

impl StoredCases {
    /// Looks at every entry once, one after the other.
    fn new(mut file: File, entries: Vec<Span>, caps: &Caps) -> Result<(Self, Warnings), BodyError> {
        let mut warnings = Warnings::default();
        let mut collected = Collected::default();
        for (index, at) in entries.into_iter().enumerate() {
            if fits(at, index, &mut warnings) {
                let read = read_entry(&mut file, at, index, caps)?;
                warnings.extend(read.warnings);
                read.entries.iter().for_each(|entry| collected.add(entry, at));
            }
        }
        Ok((collected.finish(file, caps, &mut warnings), warnings))
    }

    /// How many entries there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Indices of the entries in the list that was sent.
    pub fn indices(&self) -> impl Iterator<Item = usize> {
        self.places.iter().map(|place| place.index)
    }

    /// From the earliest start to the latest end, milliseconds.
    #[must_use]
    pub fn span_ms(&self) -> Option<i64> {
        self.span.map(|(first, last)| (last - first).max(0))
    }

    /// Splits the entries, by position, into parts with a limit on entries and
    /// bytes. Entries of one test in one browser project stay in one part, even
    /// above the limit. There is always a part.
    #[must_use]
    pub fn parts(&self, max_entries: usize, max_bytes: u64) -> Vec<Vec<usize>> {
        let mut places: HashMap<[u8; 32], usize> = HashMap::new();
        let mut groups: Vec<(Vec<usize>, u64)> = Vec::new();
        for (position, place) in self.places.iter().enumerate() {
            let group = *places.entry(place.group).or_insert_with(|| {
                groups.push((Vec::with_capacity(1), 0));
                groups.len() - 1
            });
            groups[group].0.push(position);
            groups[group].1 += place.at.length();
        }
        let mut parts = Vec::new();
        let (mut part, mut taken) = (Vec::new(), 0);
        for (group, bytes) in groups {
            if !part.is_empty() && (part.len() + group.len() > max_entries || taken + bytes > max_bytes) {
                parts.push(std::mem::take(&mut part));
                taken = 0;
            }
            part.extend(group);
            taken += bytes;
        }
        parts.push(part);
        parts
    }

    /// Reads the entry at a position.
    ///
    /// # Errors
    /// [`BodyError`] when the file cannot be read any more.
    pub fn read(&mut self, position: usize) -> Result<TestCaseEntry, BodyError> {
        let gone = || BodyError::Unreadable("a test case is not where it was".to_owned());
        let place = *self.places.get(position).ok_or_else(gone)?;
        let mut read = read_entry(&mut self.file, place.at, place.index, &self.caps)?;
        let mut entry = read.entries.pop().ok_or_else(gone)?;
        if let Some(number) = place.number {
            entry.set_suite_path(vec![format!("#{number}")]);
        }
        if place.is_bare {
            strip_details(&mut entry);
        }
        Ok(entry)
    }

    /// The title of the entry with an index of the list.
    ///
    /// # Errors
    /// As [`StoredCases::read`].
    pub fn title(&mut self, index: usize) -> Result<Option<String>, BodyError> {
        match self.places.binary_search_by_key(&index, |place| place.index) {
            Ok(position) => self.read(position).map(|entry| Some(entry.title)),
            Err(_) => Ok(None),
        }
    }
}

/// The one entry that lies somewhere, or why it is skipped.
fn read_entry(file: &mut File, at: Span, index: usize, caps: &Caps) -> Result<TestCases, BodyError> {
    let bytes = read_at(file, at)?;
    read_leniently(bytes, |text| {
        let mut read = TestCases::default();
        read.add(read_input(text)?, index, caps);
        Ok(read)
    })
}

fn read_input(text: &str) -> Result<Option<TestCaseInput<'_>>, BodyError> {
    match from_str::<Sent<'_>>(text) {
        Ok(input) => Ok(input.0),
        // It repeats a key, which is settled by a tree; or it is no JSON.
        Err(_) => bounded_value(text).map(TestCaseInput::from_value).map_err(|error| invalid(&error)),
    }
}

/// The fields beside the list, as far as there is room for them.
fn read_fields(
    file: &mut File,
    outline: &Outline,
    warnings: &mut Warnings,
) -> Result<Map<String, Value>, BodyError> {
    let room = Room::new();
    let mut fields = Map::new();
    let mut spans: Vec<(&Vec<u8>, Span)> = outline.fields.iter().map(|(name, span)| (name, *span)).collect();
    // In the order of the text, which decides what there is room for.
    spans.sort_unstable_by_key(|(_, span)| span.from);
    let mut left = MAX_FIELD_BYTES;
    for (name, span) in spans {
        let name: String =
            read_leniently(name.clone(), |text| from_str(text).map_err(|error| invalid(&error)))?;
        if name == LIST {
            continue;
        }
        if span.length() > left {
            warnings.add("field_dropped", None, || {
                format!(
                    "{} was left out: the fields beside testCases take more than {} MiB.",
                    text_shown(&name),
                    MAX_FIELD_BYTES >> 20
                )
            });
            continue;
        }
        left -= span.length();
        let value = read_leniently(read_at(file, span)?, |text| {
            bounded_value_in(text, &room).map_err(|error| invalid(&error))
        })?;
        fields.insert(name, value);
    }
    Ok(fields)
}

/// Whether something else stands where the list should.
fn has_other_list(file: &mut File, outline: &Outline) -> Result<bool, BodyError> {
    match outline.fields.get(&quoted(LIST)) {
        Some(span) => Ok(!is_null(file, *span)?),
        None => Ok(false),
    }
}

fn is_null(file: &mut File, span: Span) -> Result<bool, BodyError> {
    const NULL: &[u8] = b"null";
    Ok(span.length() == NULL.len() as u64 && read_at(file, span)? == NULL)
}

fn outline_of(file: &mut File, mut outliner: Outliner) -> Result<Outline, BodyError> {
    let invalid = |Malformed(detail)| BodyError::InvalidJson { detail };
    file.rewind().map_err(unreadable)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece).map_err(unreadable)? {
            0 => return outliner.finish().map_err(invalid),
            length => outliner.feed(&piece[..length]).map_err(invalid)?,
        }
    }
}

fn read_at(file: &mut File, at: Span) -> Result<Vec<u8>, BodyError> {
    let mut bytes = vec![0; usize::try_from(at.length()).unwrap_or(usize::MAX)];
    file.seek(SeekFrom::Start(at.from)).map_err(unreadable)?;
    file.read_exact(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn unreadable(error: std::io::Error) -> BodyError {
    BodyError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests;
