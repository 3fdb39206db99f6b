//! How long things are kept: the policy of an installation, what a project
//! sets instead, and the dates that follow from them.
//!
//! Invariant: a policy is complete. What is stored is only what differs
//! ([`Overrides`]), checked key by key when it came in, so that a new key gets
//! its default everywhere.

mod change;
mod preset;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::status::Outcome;
use crate::time::{Day, Timestamp};

pub use change::{Split, shortened, split};
pub use preset::Preset;

/// Longest time that can be set, days: a hundred years.
pub const MAX_DAYS: i64 = 36_500;
/// How much further the date of something goes that is kept as an exception
/// when its time is over, days.
pub const EXEMPT_DAYS: i64 = 7;

/// How long everything is kept. Ages count from the start of the run; where
/// there is no number, things are kept until somebody deletes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Whole runs.
    pub runs: RunRules,
    /// What explains an attempt: steps, console, requests, sources.
    pub evidence: Ages,
    /// Files of tests, and reports.
    pub files: FileRules,
    /// What is kept whatever its age.
    pub keep: KeepRules,
    /// Numbers that outlive the runs they were counted from.
    pub rollups: RollupRules,
}

/// Whole runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRules {
    /// Days.
    pub days: Option<i64>,
    /// So many of the newest runs of a project stay whatever their age.
    pub keep_last: i64,
    /// Days on branches that are not tracked; not set, [`RunRules::days`].
    pub untracked_branch_days: Option<i64>,
}

impl Policy {
    /// The value of a key by its path; null for what is kept for ever.
    #[must_use]
    pub fn at(&self, key: &str) -> Value {
        json!(self).pointer(&format!("/{}", key.replace('.', "/"))).cloned().unwrap_or_default()
    }
}

/// Days by how the test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ages {
    /// It passed on the first attempt, or did not run.
    pub passed_days: Option<i64>,
    /// It passed after it had failed.
    pub flaky_days: Option<i64>,
    /// It failed, timed out or was interrupted.
    pub failed_days: Option<i64>,
}

/// Files of tests, and reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileRules {
    /// Traces.
    pub trace: Ages,
    /// Videos.
    pub video: Ages,
    /// Screenshots.
    pub screenshot: Ages,
    /// Other attachments.
    pub attachment: Ages,
    /// Reports of whole runs, days.
    pub report_days: Option<i64>,
}

/// What is kept whatever its age. Pinned runs always are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeepRules {
    /// The last green run of every tracked branch in every environment.
    pub last_green: bool,
    /// The first failure of every cluster.
    pub first_failure: bool,
    /// So many of the newest failures of every open cluster.
    pub cluster_samples: i64,
}

/// Numbers that outlive the runs they were counted from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollupRules {
    /// Days of numbers by the day.
    pub daily_days: Option<i64>,
    /// Days after the last run of a branch that is not tracked until its own
    /// numbers go; they stay part of those of all branches.
    pub untracked_branch_days: Option<i64>,
}

/// The default keeps everything. [`Preset::Lean`] is a proposal for less.
impl Default for Policy {
    fn default() -> Self {
        const KEEP: Ages = Ages { passed_days: None, flaky_days: None, failed_days: None };
        Self {
            runs: RunRules { days: None, keep_last: 0, untracked_branch_days: None },
            evidence: KEEP,
            files: FileRules {
                trace: KEEP,
                video: KEEP,
                screenshot: KEEP,
                attachment: KEEP,
                report_days: None,
            },
            keep: KeepRules { last_green: true, first_failure: true, cluster_samples: 3 },
            rollups: RollupRules { daily_days: None, untracked_branch_days: None },
        }
    }
}

/// How a test ended, as far as it matters for how long its traces are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutcomeClass {
    /// It passed on the first attempt, or did not run.
    Passed,
    /// It passed after it had failed.
    Flaky,
    /// It failed, timed out or was interrupted: what it left behind explains it.
    Failed,
}

impl OutcomeClass {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Passed, Self::Flaky, Self::Failed];

    /// The class of an outcome.
    #[must_use]
    pub const fn from_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Passed | Outcome::Skipped | Outcome::DidNotRun => Self::Passed,
            Outcome::Flaky => Self::Flaky,
            Outcome::Failed | Outcome::TimedOut | Outcome::Interrupted => Self::Failed,
        }
    }
}

impl Ages {
    /// The days of a class.
    #[must_use]
    pub const fn days(self, class: OutcomeClass) -> Option<i64> {
        match class {
            OutcomeClass::Passed => self.passed_days,
            OutcomeClass::Flaky => self.flaky_days,
            OutcomeClass::Failed => self.failed_days,
        }
    }

    /// When the time of something of a class is over.
    #[must_use]
    pub fn end(self, class: OutcomeClass, from: Timestamp) -> Option<Timestamp> {
        end_of(from, self.days(class))
    }
}

/// When a number of days after a moment are over: at the end of that UTC day,
/// so that all that a day brought goes together.
#[must_use]
pub fn end_of(from: Timestamp, days: Option<i64>) -> Option<Timestamp> {
    days.map(|days| Day(from.day().0.saturating_add(days).saturating_add(1)).start())
}

impl RunRules {
    /// When the time of a run is over that began at `from`.
    #[must_use]
    pub fn end(&self, from: Timestamp, is_tracked: bool) -> Option<Timestamp> {
        let days = if is_tracked { self.days } else { self.untracked_branch_days.or(self.days) };
        end_of(from, days)
    }
}

/// Whether a branch is kept as long as the default one: it is that, or fits a
/// pattern, in which `*` stands for any text. As long as no default branch is
/// known, every branch is tracked, and so are runs that name none.
#[must_use]
pub fn is_tracked(branch: &str, default_branch: Option<&str>, patterns: &[String]) -> bool {
    let Some(default_branch) = default_branch else { return true };
    branch.is_empty() || branch == default_branch || patterns.iter().any(|pattern| fits(branch, pattern))
}

fn fits(text: &str, pattern: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return text == pattern };
    let (between, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = text.strip_prefix(head).and_then(|text| text.strip_suffix(tail));
    let Some(mut inner) = inner else { return false };
    // The first place where a part is found leaves the most for those behind it.
    between.split('*').all(|part| match inner.find(part) {
        Some(at) => {
            inner = &inner[at + part.len()..];
            true
        }
        None => false,
    })
}

/// What a key takes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Takes {
    /// Days, or none for ever.
    Days,
    /// A whole number.
    Number(RangeInclusive<i64>),
    /// Yes or no.
    Flag,
}

const fn number(from: i64, to: i64) -> Takes {
    Takes::Number(RangeInclusive::new(from, to))
}

/// Every key by its path.
const KEYS: [(&str, Takes); 24] = [
    ("runs.days", Takes::Days),
    ("runs.keepLast", number(0, 1_000)),
    ("runs.untrackedBranchDays", Takes::Days),
    ("evidence.passedDays", Takes::Days),
    ("evidence.flakyDays", Takes::Days),
    ("evidence.failedDays", Takes::Days),
    ("files.trace.passedDays", Takes::Days),
    ("files.trace.flakyDays", Takes::Days),
    ("files.trace.failedDays", Takes::Days),
    ("files.video.passedDays", Takes::Days),
    ("files.video.flakyDays", Takes::Days),
    ("files.video.failedDays", Takes::Days),
    ("files.screenshot.passedDays", Takes::Days),
    ("files.screenshot.flakyDays", Takes::Days),
    ("files.screenshot.failedDays", Takes::Days),
    ("files.attachment.passedDays", Takes::Days),
    ("files.attachment.flakyDays", Takes::Days),
    ("files.attachment.failedDays", Takes::Days),
    ("files.reportDays", Takes::Days),
    ("keep.lastGreen", Takes::Flag),
    ("keep.firstFailure", Takes::Flag),
    ("keep.clusterSamples", number(0, 10)),
    ("rollups.dailyDays", Takes::Days),
    ("rollups.untrackedBranchDays", Takes::Days),
];

impl Takes {
    fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::Days => value.as_i64().is_some_and(|days| (1..=MAX_DAYS).contains(&days)),
            Self::Number(bounds) => value.as_i64().is_some_and(|number| bounds.contains(&number)),
            Self::Flag => value.is_boolean(),
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::Days => format!("a whole number of days from 1 to {MAX_DAYS}, or null"),
            Self::Number(bounds) => format!("a whole number from {} to {}", bounds.start(), bounds.end()),
            Self::Flag => "true or false".to_owned(),
        }
    }
}

/// A value a policy cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} must be {expected}, got {got}.")]
pub struct Unusable {
    /// The path of the key.
    pub key: String,
    expected: String,
    got: String,
}

/// For whom a policy is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the installation: no number of days means for ever.
    Instance,
    /// For one project: null means that it does as the installation does.
    Project,
}

/// What somebody wants to be different: a value for each key, none where what
/// is set is taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit(BTreeMap<&'static str, Option<Value>>);

impl Edit {
    /// Reads an edit out of a body: what is absent stays; null is for ever for
    /// days of the installation, and takes back what was set otherwise; null
    /// for a group takes back the group. `preset` names a [`Preset`]; keys
    /// beside it win over it. Other keys are ignored.
    ///
    /// # Errors
    /// [`Unusable`] for the first value that cannot be.
    pub fn read(body: &Map<String, Value>, level: Level) -> Result<Self, Unusable> {
        let mut edit = preset_of(body)?.map_or_else(BTreeMap::new, |preset| preset.edit().0);
        for (key, takes) in &KEYS {
            match at(body, key)? {
                None => {}
                Some(At::Group) => drop(edit.insert(*key, None)),
                Some(At::Value(Value::Null)) => {
                    let is_for_ever = *takes == Takes::Days && level == Level::Instance;
                    edit.insert(*key, is_for_ever.then_some(Value::Null));
                }
                Some(At::Value(value)) if takes.accepts(value) => {
                    drop(edit.insert(*key, Some(value.clone())))
                }
                Some(At::Value(value)) => {
                    return Err(Unusable {
                        key: (*key).to_owned(),
                        expected: takes.expected(),
                        got: shown(value),
                    });
                }
            }
        }
        Ok(Self(edit))
    }

    /// The keys it names.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }

    /// Whether it names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As it is stored: `set` with values by key, `clear` with the keys that
    /// are taken back.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let set: Map<String, Value> =
            self.0.iter().filter_map(|(key, value)| Some(((*key).to_owned(), value.clone()?))).collect();
        let clear: Vec<&str> =
            self.0.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| *key).collect();
        json!({ "set": set, "clear": clear })
    }

    /// Reads what [`Edit::to_json`] wrote; keys that are no longer known are
    /// left out.
    #[must_use]
    pub fn from_json(stored: &Value) -> Self {
        let clear = |key: &str| stored["clear"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
        let value_of = |key: &'static str| match stored["set"].get(key) {
            Some(value) => Some((key, Some(value.clone()))),
            None => clear(key).then_some((key, None)),
        };
        Self(KEYS.iter().filter_map(|(key, _)| value_of(key)).collect())
    }
}

fn preset_of(body: &Map<String, Value>) -> Result<Option<Preset>, Unusable> {
    let Some(value) = body.get("preset") else { return Ok(None) };
    let preset = value.as_str().and_then(Preset::from_name);
    preset.map(Some).ok_or_else(|| Unusable {
        key: "preset".to_owned(),
        expected: Preset::ALL.map(|preset| format!("\"{}\"", preset.name())).join(" or "),
        got: shown(value),
    })
}

enum At<'v> {
    /// A group around it is null.
    Group,
    /// It is there.
    Value(&'v Value),
}

fn at<'v>(body: &'v Map<String, Value>, key: &str) -> Result<Option<At<'v>>, Unusable> {
    let mut group = body;
    let mut walked = 0;
    for part in key.split('.') {
        walked += part.len() + 1;
        let is_last = walked > key.len();
        match group.get(part) {
            None => return Ok(None),
            Some(value) if is_last => return Ok(Some(At::Value(value))),
            Some(Value::Null) => return Ok(Some(At::Group)),
            Some(Value::Object(inner)) => group = inner,
            Some(other) => {
                let key = key[..walked - 1].to_owned();
                return Err(Unusable { key, expected: "an object".to_owned(), got: shown(other) });
            }
        }
    }
    Ok(None)
}

fn shown(value: &Value) -> String {
    const MAX_CHARS: usize = 40;
    let text = value.to_string();
    if text.chars().count() <= MAX_CHARS {
        text
    } else {
        text.chars().take(MAX_CHARS).collect::<String>() + "…"
    }
}

/// What is set instead of what would hold otherwise. Stored as JSON with the
/// paths of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Overrides(BTreeMap<&'static str, Value>);

impl Overrides {
    /// Reads what [`Overrides`] was stored as. Keys that are no longer known
    /// are forgotten.
    ///
    /// # Errors
    /// When the text is not a JSON object.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let mut stored: Map<String, Value> = serde_json::from_str(text)?;
        let known = KEYS.iter().filter_map(|(key, _)| Some((*key, stored.remove(*key)?)));
        Ok(Self(known.collect()))
    }

    /// These with an edit applied.
    #[must_use]
    pub fn with(&self, edit: &Edit) -> Self {
        let mut changed = self.clone();
        changed.apply(edit);
        changed
    }

    /// Applies an edit; answers the keys whose value changed.
    pub fn apply(&mut self, edit: &Edit) -> Vec<&'static str> {
        let mut changed = Vec::new();
        for (key, value) in &edit.0 {
            let before = match value {
                Some(value) => self.0.insert(key, value.clone()),
                None => self.0.remove(key),
            };
            if before.as_ref() != value.as_ref() {
                changed.push(*key);
            }
        }
        changed
    }

    /// Whether a key is set.
    #[must_use]
    pub fn holds(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// What a key is set to.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The keys that are set.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }

    /// The keys that are not set.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> + '_ {
        KEYS.iter().map(|(key, _)| *key).filter(|key| !self.holds(key))
    }

    /// The policy with these values in it.
    #[must_use]
    pub fn over(&self, base: &Policy) -> Policy {
        let mut policy = json!(base);
        for (key, value) in &self.0 {
            set(&mut policy, key, value.clone());
        }
        // Every value was checked on its way in.
        serde_json::from_value(policy).unwrap_or_else(|_| base.clone())
    }

    /// As a body has it: group by group, with null for what is not set.
    #[must_use]
    pub fn nested(&self) -> Value {
        let mut nested = json!({});
        for (key, _) in &KEYS {
            set(&mut nested, key, self.0.get(key).cloned().unwrap_or_default());
        }
        nested
    }
}

fn set(into: &mut Value, path: &str, value: Value) {
    let mut place = into;
    for part in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}

#[cfg(test)]
mod tests;
