//! Named policies that an administrator can choose instead of setting every
//! key by hand.

use serde_json::{Value, json};

use super::{Edit, Level};

/// A named policy. Keys it does not decide on stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Keeps runs and trends, and deletes evidence and files after some weeks
    /// or months: failures last.
    Lean,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 1] = [Self::Lean];

    /// Its name in requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lean => "lean",
        }
    }

    /// The preset of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// What it sets, group by group, as a request would.
    #[must_use]
    pub fn settings(self) -> Value {
        let ages = |passed: i64, flaky: i64, failed: i64| json!({ "passedDays": passed, "flakyDays": flaky, "failedDays": failed });
        match self {
            Self::Lean => json!({
                "evidence": ages(30, 90, 180),
                "files": {
                    "trace": ages(7, 30, 90),
                    "video": ages(3, 14, 30),
                    "screenshot": ages(14, 60, 180),
                    "attachment": ages(30, 60, 180),
                    "reportDays": 90,
                },
                "keep": { "lastGreen": true, "firstFailure": true, "clusterSamples": 3 },
                "rollups": { "untrackedBranchDays": 30 },
            }),
        }
    }

    /// The edit that chooses it.
    #[must_use]
    pub fn edit(self) -> Edit {
        let Value::Object(settings) = self.settings() else { return Edit::default() };
        // A test reads every preset.
        Edit::read(&settings, Level::Instance).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::{Overrides, Policy};
    use super::*;

    #[test]
    fn every_preset_can_be_read_and_lean_is_what_the_defaults_once_were() {
        for preset in Preset::ALL {
            let Value::Object(settings) = preset.settings() else { unreachable!("an object was written") };
            assert!(Edit::read(&settings, Level::Instance).is_ok_and(|edit| !edit.is_empty()));
            assert_eq!(Preset::from_name(preset.name()), Some(preset));
        }
        let lean = Overrides::default().with(&Preset::Lean.edit()).over(&Policy::default());
        assert_eq!((lean.runs.days, lean.rollups.daily_days), (None, None));
        assert_eq!((lean.evidence.passed_days, lean.files.trace.failed_days), (Some(30), Some(90)));
        assert_eq!((lean.files.report_days, lean.rollups.untracked_branch_days), (Some(90), Some(30)));
    }

    #[test]
    fn a_preset_is_chosen_by_name_and_keys_beside_it_win() {
        let read = |body: Value| {
            let body: Map<String, Value> = body.as_object().unwrap().clone();
            Edit::read(&body, Level::Instance)
        };
        let edit = read(json!({ "preset": "lean", "evidence": { "passedDays": 9 } })).unwrap();
        let policy = Overrides::default().with(&edit).over(&Policy::default());
        assert_eq!((policy.evidence.passed_days, policy.evidence.flaky_days), (Some(9), Some(90)));
        let wrong = read(json!({ "preset": "tiny" })).unwrap_err().to_string();
        assert_eq!(wrong, "preset must be \"lean\", got \"tiny\".");
    }
}
