//! The retention policy as a form: of the installation, where an empty number of
//! days means never, or of a project, where it means what the installation does.
//! It shows what people set, whether it is in force yet or not.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::retention::{MAX_DAYS, Overrides, Policy};
use serde_json::Value;

/// One number.
struct Number {
    key: &'static str,
    label: &'static str,
    hint: &'static str,
    /// What it is called where its label is a row and a column; empty elsewhere.
    spoken: String,
    value: String,
    /// What holds while the field is empty; nothing when it may not be.
    instead: String,
    bounds: (i64, i64),
    is_locked: bool,
}

/// Days for one kind of thing, by how the test ended.
struct Ages {
    label: &'static str,
    /// For tests that passed, were flaky, failed.
    days: [Number; 3],
}

/// A yes or no.
struct Flag {
    key: &'static str,
    label: &'static str,
    /// What is set here.
    is_set: Option<bool>,
    /// What holds.
    holds: bool,
    is_locked: bool,
}

/// Inputs of `components/retention_form.html`.
#[derive(Template)]
#[template(path = "components/retention_form.html")]
pub(crate) struct RetentionForm {
    call: String,
    /// The path of the policy in the API.
    path: String,
    is_of_project: bool,
    runs: [Number; 3],
    ages: [Ages; 5],
    reports: Number,
    flags: [Flag; 2],
    samples: Number,
    rollups: [Number; 2],
}

impl HtmlSafe for RetentionForm {}

impl RetentionForm {
    /// The form of the installation; keys that are locked cannot be changed.
    pub(crate) fn of_instance(settings: &Policy, locked: &[&'static str]) -> Self {
        let fields = Fields { holds: settings, set: None, locked };
        fields.form("/api/settings/retention".to_owned())
    }

    /// The form of a project: what is set for it, beside what holds
    /// everywhere.
    pub(crate) fn of_project(id: i64, set: &Overrides, everywhere: &Policy) -> Self {
        let fields = Fields { holds: everywhere, set: Some(set), locked: &[] };
        fields.form(format!("/api/projects/{id}/retention"))
    }
}

struct Fields<'p> {
    /// What holds while nothing is set.
    holds: &'p Policy,
    /// What is set, for a project.
    set: Option<&'p Overrides>,
    locked: &'p [&'static str],
}

/// What an empty number of days means where nothing else is set.
const NEVER: &str = "Never";

fn days(value: &Value) -> String {
    value.as_i64().map_or_else(|| NEVER.to_owned(), |days| days.to_string())
}

impl Fields<'_> {
    fn number(
        &self,
        key: &'static str,
        label: &'static str,
        hint: &'static str,
        bounds: (i64, i64),
    ) -> Number {
        let holds = self.holds.at(key);
        let (shown, instead) = match self.set {
            Some(set) => (set.get(key).cloned().unwrap_or_default(), days(&holds)),
            None => (holds, NEVER.to_owned()),
        };
        let value = shown.as_i64().map(|number| number.to_string()).unwrap_or_default();
        let spoken = String::new();
        Number { key, label, hint, spoken, value, instead, bounds, is_locked: self.locked.contains(&key) }
    }

    fn days(&self, key: &'static str, label: &'static str, hint: &'static str) -> Number {
        self.number(key, label, hint, (1, MAX_DAYS))
    }

    /// A number there always is.
    fn count(
        &self,
        key: &'static str,
        label: &'static str,
        hint: &'static str,
        bounds: (i64, i64),
    ) -> Number {
        let number = self.number(key, label, hint, bounds);
        if self.set.is_some() { number } else { Number { instead: String::new(), ..number } }
    }

    fn ages(&self, label: &'static str, keys: [&'static str; 3]) -> Ages {
        let days = keys.map(|key| {
            let outcome = key.rsplit('.').next().unwrap_or_default().trim_end_matches("Days");
            Number { spoken: format!("{label}, {outcome}: days"), ..self.days(key, label, "") }
        });
        Ages { label, days }
    }

    fn flag(&self, key: &'static str, label: &'static str) -> Flag {
        let holds = self.holds.at(key).as_bool().unwrap_or_default();
        let is_set = self.set.and_then(|set| set.get(key)).and_then(Value::as_bool);
        Flag { key, label, is_set, holds, is_locked: self.locked.contains(&key) }
    }

    fn form(&self, path: String) -> RetentionForm {
        let other_branches = self.days(
            "runs.untrackedBranchDays",
            "Delete runs of other branches after (days)",
            "Branches that are neither the default branch nor tracked.",
        );
        // Without a number of their own they go with the others.
        let is_own = other_branches.instead != NEVER;
        let instead = if is_own { other_branches.instead } else { "Same as all runs".to_owned() };
        let other_branches = Number { instead, ..other_branches };
        RetentionForm {
            call: format!("PATCH {path}"),
            path,
            is_of_project: self.set.is_some(),
            runs: [
                self.days(
                    "runs.days",
                    "Delete runs after (days)",
                    "Older runs are deleted with all their files.",
                ),
                other_branches,
                self.count(
                    "runs.keepLast",
                    "Always keep the latest",
                    if self.set.is_some() {
                        "Number of runs to keep, however old."
                    } else {
                        "Number of runs to keep per project, however old."
                    },
                    (0, 1_000),
                ),
            ],
            ages: [
                self.ages(
                    "Steps, console and requests",
                    ["evidence.passedDays", "evidence.flakyDays", "evidence.failedDays"],
                ),
                self.ages(
                    "Traces",
                    ["files.trace.passedDays", "files.trace.flakyDays", "files.trace.failedDays"],
                ),
                self.ages(
                    "Videos",
                    ["files.video.passedDays", "files.video.flakyDays", "files.video.failedDays"],
                ),
                self.ages(
                    "Screenshots",
                    [
                        "files.screenshot.passedDays",
                        "files.screenshot.flakyDays",
                        "files.screenshot.failedDays",
                    ],
                ),
                self.ages(
                    "Other attachments",
                    [
                        "files.attachment.passedDays",
                        "files.attachment.flakyDays",
                        "files.attachment.failedDays",
                    ],
                ),
            ],
            reports: self.days(
                "files.reportDays",
                "Delete HTML reports after (days)",
                "Reports of whole runs.",
            ),
            flags: [
                self.flag("keep.lastGreen", "Latest green run of every tracked branch"),
                self.flag("keep.firstFailure", "First failure of every cluster"),
            ],
            samples: self.count(
                "keep.clusterSamples",
                "Latest failures to keep per open cluster",
                "",
                (0, 10),
            ),
            rollups: [
                self.days(
                    "rollups.dailyDays",
                    "Delete daily data after (days)",
                    "How far trends reach back, even after runs are deleted.",
                ),
                self.days(
                    "rollups.untrackedBranchDays",
                    "Delete data of other branches after (days)",
                    "Counted from the last run of an untracked branch.",
                ),
            ],
        }
    }
}

impl Number {
    fn id(&self) -> String {
        format!("retention-{}", self.key.replace('.', "-"))
    }

    /// Whether the field may be empty.
    fn may_be_empty(&self) -> bool {
        !self.instead.is_empty()
    }
}

impl Flag {
    fn says_nothing(&self) -> bool {
        self.is_set.is_none()
    }

    fn says_yes(&self) -> bool {
        self.is_set == Some(true)
    }

    fn says_no(&self) -> bool {
        self.is_set == Some(false)
    }

    fn id(&self) -> String {
        format!("retention-{}", self.key.replace('.', "-"))
    }
}
