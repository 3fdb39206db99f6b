//! What may be set about judging tests: for the installation, and for a
//! project, which does as the installation where it sets nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::QuarantineSettings;
use crate::setting::{SettingsGroup, UnusableSetting, number, whole};

/// What holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlakinessSettings {
    /// Decided runs a test needs within the window before it is called flaky
    /// or proposed for quarantine.
    pub min_runs: i64,
    /// When a test is proposed for quarantine, and when it may leave.
    pub quarantine: QuarantineSettings,
    /// Share of failed tests from which a run says nothing about its tests.
    pub mass_failure_rate: f64,
}

impl Default for FlakinessSettings {
    fn default() -> Self {
        Self { min_runs: 1, quarantine: QuarantineSettings::default(), mass_failure_rate: 0.8 }
    }
}

/// What is set at one level, by the names of the wire; `None` where nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FlakinessOverrides {
    /// See [`FlakinessSettings::min_runs`].
    pub min_runs: Option<i64>,
    /// Least flaky score of a proposal.
    pub quarantine_score: Option<i64>,
    /// Least time a proposed test has wasted within the window, ms.
    pub quarantine_waste_ms: Option<i64>,
    /// Fewest clean runs before a release is proposed.
    pub release_after_passes: Option<i64>,
    /// See [`FlakinessSettings::mass_failure_rate`].
    pub mass_failure_rate: Option<f64>,
}

/// The keys.
pub const FLAKINESS_KEYS: [&str; 5] =
    ["minRuns", "quarantineScore", "quarantineWasteMs", "releaseAfterPasses", "massFailureRate"];

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl FlakinessOverrides {
    /// What holds on top of another level.
    #[must_use]
    pub fn over(&self, base: &FlakinessSettings) -> FlakinessSettings {
        FlakinessSettings {
            min_runs: self.min_runs.unwrap_or(base.min_runs),
            quarantine: QuarantineSettings {
                score: self.quarantine_score.unwrap_or(base.quarantine.score),
                waste_ms: self.quarantine_waste_ms.unwrap_or(base.quarantine.waste_ms),
                release_after: self.release_after_passes.unwrap_or(base.quarantine.release_after),
            },
            mass_failure_rate: self.mass_failure_rate.unwrap_or(base.mass_failure_rate),
        }
    }

    /// Everything that holds, as if it was set.
    #[must_use]
    pub const fn all_of(settings: &FlakinessSettings) -> Self {
        Self {
            min_runs: Some(settings.min_runs),
            quarantine_score: Some(settings.quarantine.score),
            quarantine_waste_ms: Some(settings.quarantine.waste_ms),
            release_after_passes: Some(settings.quarantine.release_after),
            mass_failure_rate: Some(settings.mass_failure_rate),
        }
    }
}

impl SettingsGroup for FlakinessOverrides {
    const NAME: &'static str = "flakiness";

    fn apply(&mut self, body: &Map<String, Value>) -> Result<(), UnusableSetting> {
        let mut changed = *self;
        whole(body, "minRuns", 1..=200, &mut changed.min_runs)?;
        whole(body, "quarantineScore", 0..=100, &mut changed.quarantine_score)?;
        whole(body, "quarantineWasteMs", 0..=30 * DAY_MS, &mut changed.quarantine_waste_ms)?;
        whole(body, "releaseAfterPasses", 1..=200, &mut changed.release_after_passes)?;
        number(body, ("massFailureRate", "a share"), 0.1..=1.0, &mut changed.mass_failure_rate)?;
        *self = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_project_does_as_the_installation_where_it_sets_nothing() {
        let body = |body: Value| body.as_object().cloned().unwrap_or_default();
        let mut instance = FlakinessOverrides::default();
        instance.apply(&body(json!({ "quarantineScore": 60, "massFailureRate": 1 }))).unwrap();
        let mut project = FlakinessOverrides::default();
        project.apply(&body(json!({ "quarantineScore": 70, "minRuns": 5, "other": "x" }))).unwrap();
        let of_all = instance.over(&FlakinessSettings::default());
        let held = project.over(&of_all);
        assert_eq!((held.quarantine.score, held.min_runs, held.mass_failure_rate), (70, 5, 1.0));
        assert_eq!(held.quarantine.release_after, FlakinessSettings::default().quarantine.release_after);
        project.apply(&body(json!({ "quarantineScore": null }))).unwrap();
        assert_eq!(project.over(&of_all).quarantine.score, 60);
        assert_eq!(FlakinessOverrides::all_of(&held).over(&FlakinessSettings::default()), held);
    }

    #[test]
    fn what_cannot_be_set_changes_nothing() {
        for (body, key) in [
            (json!({ "minRuns": 3, "quarantineScore": 101 }), "quarantineScore"),
            (json!({ "minRuns": 0 }), "minRuns"),
            (json!({ "releaseAfterPasses": 1.5 }), "releaseAfterPasses"),
            (json!({ "massFailureRate": "0.8" }), "massFailureRate"),
            (json!({ "massFailureRate": 0 }), "massFailureRate"),
        ] {
            let mut set = FlakinessOverrides::default();
            let refused = set.apply(body.as_object().unwrap()).unwrap_err();
            assert_eq!((refused.key, set), (key, FlakinessOverrides::default()));
        }
    }
}
