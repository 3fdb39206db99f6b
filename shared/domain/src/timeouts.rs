//! Whether the timeout of a test fits how long it takes, and what may be set
//! about that judgement.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::durations::Spread;
use crate::setting::{SettingsGroup, UnusableSetting, number, whole};

/// When a timeout is too generous, and what to set instead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutRules {
    /// Fewest passed runs to judge by.
    pub min_runs: i64,
    /// How many times the longest run a timeout may be.
    pub factor: f64,
    /// Timeouts below this are left alone, ms.
    pub floor_ms: i64,
    /// How many times the 95 % quantile is recommended.
    pub safety: f64,
    /// The least that is recommended, ms.
    pub recommended_floor_ms: i64,
    /// Below this 95 % quantile a test is not slow any more, ms.
    pub slow_stale_p95_ms: i64,
}

impl Default for TimeoutRules {
    fn default() -> Self {
        Self {
            min_runs: 5,
            factor: 3.0,
            floor_ms: 20_000,
            safety: 2.0,
            recommended_floor_ms: 5_000,
            slow_stale_p95_ms: 10_000,
        }
    }
}

/// What is set of [`TimeoutRules`], by the names of the wire; `None` where
/// nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the rules")]
pub struct TimeoutOverrides {
    pub min_runs: Option<i64>,
    pub factor: Option<f64>,
    pub floor_ms: Option<i64>,
    pub safety: Option<f64>,
    pub recommended_floor_ms: Option<i64>,
    #[serde(rename = "slowStaleP95Ms")]
    pub slow_stale_p95_ms: Option<i64>,
}

/// The keys.
pub const TIMEOUT_KEYS: [&str; 6] =
    ["minRuns", "factor", "floorMs", "safety", "recommendedFloorMs", "slowStaleP95Ms"];

/// The longest time that can be set.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl TimeoutOverrides {
    /// What holds on top of other rules.
    #[must_use]
    pub fn over(&self, base: &TimeoutRules) -> TimeoutRules {
        TimeoutRules {
            min_runs: self.min_runs.unwrap_or(base.min_runs),
            factor: self.factor.unwrap_or(base.factor),
            floor_ms: self.floor_ms.unwrap_or(base.floor_ms),
            safety: self.safety.unwrap_or(base.safety),
            recommended_floor_ms: self.recommended_floor_ms.unwrap_or(base.recommended_floor_ms),
            slow_stale_p95_ms: self.slow_stale_p95_ms.unwrap_or(base.slow_stale_p95_ms),
        }
    }

    /// Everything that holds, as if it was set.
    #[must_use]
    pub const fn all_of(rules: &TimeoutRules) -> Self {
        Self {
            min_runs: Some(rules.min_runs),
            factor: Some(rules.factor),
            floor_ms: Some(rules.floor_ms),
            safety: Some(rules.safety),
            recommended_floor_ms: Some(rules.recommended_floor_ms),
            slow_stale_p95_ms: Some(rules.slow_stale_p95_ms),
        }
    }
}

impl SettingsGroup for TimeoutOverrides {
    const NAME: &'static str = "timeout-hygiene";

    fn apply(&mut self, body: &Map<String, Value>) -> Result<(), UnusableSetting> {
        let mut changed = *self;
        whole(body, "minRuns", 1..=200, &mut changed.min_runs)?;
        number(body, ("factor", "a number"), 1.0..=100.0, &mut changed.factor)?;
        whole(body, "floorMs", 0..=DAY_MS, &mut changed.floor_ms)?;
        number(body, ("safety", "a number"), 1.0..=100.0, &mut changed.safety)?;
        whole(body, "recommendedFloorMs", 0..=DAY_MS, &mut changed.recommended_floor_ms)?;
        whole(body, "slowStaleP95Ms", 0..=DAY_MS, &mut changed.slow_stale_p95_ms)?;
        *self = changed;
        Ok(())
    }
}

/// What is odd about a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// Far longer than the test ever takes.
    Oversized,
    /// The test is marked slow and is not.
    StaleSlow,
}

impl TimeoutKind {
    /// The spelling in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oversized => "oversized-timeout",
            Self::StaleSlow => "stale-slow",
        }
    }
}

impl Serialize for TimeoutKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A timeout that could be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutOpportunity {
    /// What is odd.
    pub kind: TimeoutKind,
    /// Whole seconds that leave room for what the rules call safe, ms.
    pub recommended_ms: i64,
    /// What the timeouts of the window would have cost less, ms.
    pub saving_ms: i64,
    /// For ordering, the greater the more it is worth.
    pub impact: i64,
}

/// So many times a duration, ms.
fn times(factor: f64, ms: i64) -> i64 {
    (factor * ms as f64).round() as i64
}

/// Judges the timeout of a test. `fails` counts its timed out executions in
/// the window.
#[must_use]
pub fn timeout_opportunity(
    durations: &Spread,
    timeout_ms: Option<i64>,
    fails: i64,
    is_marked_slow: bool,
    rules: &TimeoutRules,
) -> Option<TimeoutOpportunity> {
    let enough = rules.recommended_floor_ms.max(times(rules.safety, durations.p95));
    let enough = enough.max(durations.max.saturating_mul(6).saturating_add(4) / 5);
    let recommended_ms = enough.saturating_add(999) / 1000 * 1000;
    // 0 means that the test may take for ever.
    let timeout = timeout_ms.filter(|&timeout| timeout > 0);
    // How long a test may take at most is not known from a few runs; a mark is stale by any of them.
    let is_known = durations.count >= rules.min_runs;
    let is_oversized = timeout
        .filter(|_| is_known)
        .is_some_and(|timeout| timeout >= rules.floor_ms && timeout >= times(rules.factor, durations.max));
    let kind = if is_oversized {
        TimeoutKind::Oversized
    } else if is_marked_slow && durations.p95 < rules.slow_stale_p95_ms {
        TimeoutKind::StaleSlow
    } else {
        return None;
    };
    let less = match timeout {
        Some(timeout) if timeout <= recommended_ms => return None,
        Some(timeout) => timeout - recommended_ms,
        None => 0,
    };
    let saving_ms = fails.saturating_mul(less);
    let impact = saving_ms.saturating_mul(fails + 1).saturating_add(less / 1000);
    Some(TimeoutOpportunity { kind, recommended_ms, saving_ms, impact })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn opportunity(durations: &[i64], timeout: i64, fails: i64, slow: bool) -> Option<TimeoutOpportunity> {
        let spread = Spread::from_durations(durations).unwrap();
        timeout_opportunity(&spread, Some(timeout), fails, slow, &TimeoutRules::default())
    }

    #[test]
    fn a_timeout_far_above_the_longest_run_could_be_shorter() {
        let found = opportunity(&[2_000, 2_100, 2_200, 2_300, 4_000], 30_000, 2, false).unwrap();
        assert_eq!((found.kind, found.recommended_ms), (TimeoutKind::Oversized, 8_000));
        assert_eq!((found.saving_ms, found.impact), (44_000, 132_022));
        assert_eq!(opportunity(&[2_000; 4], 30_000, 0, false), None, "too few runs");
        assert_eq!(opportunity(&[11_000; 5], 30_000, 0, false), None, "less than three times");
        assert_eq!(opportunity(&[100; 5], 19_000, 0, false), None, "below the floor");
        assert_eq!(opportunity(&[100; 5], 0, 3, false), None, "no timeout at all");
    }

    #[test]
    fn a_test_marked_slow_that_is_not_slow_is_stale() {
        let found = opportunity(&[9_000; 5], 20_000, 1, true).unwrap();
        assert_eq!(
            (found.kind, found.recommended_ms, found.saving_ms),
            (TimeoutKind::StaleSlow, 18_000, 2_000)
        );
        assert_eq!(opportunity(&[10_000; 5], 20_000, 1, true), None);
        assert_eq!(opportunity(&[9_000; 5], 15_000, 1, true), None, "it needs more than it has");
        assert_eq!(opportunity(&[9_000; 5], 18_000, 1, true), None, "it has what it needs");
        assert_eq!(
            opportunity(&[100], 60_000, 0, true).map(|found| found.kind),
            Some(TimeoutKind::StaleSlow)
        );
    }

    #[test]
    fn what_is_set_is_judged_by_and_what_cannot_be_set_changes_nothing() {
        let body = |body: Value| body.as_object().cloned().unwrap_or_default();
        let mut set = TimeoutOverrides::default();
        let asked =
            json!({ "factor": 1.5, "minRuns": 2, "safety": 1.2, "recommendedFloorMs": 0, "other": 1 });
        set.apply(&body(asked)).unwrap();
        let rules = set.over(&TimeoutRules::default());
        let spread = Spread::from_durations(&[10_000, 12_000]).unwrap();
        let found = timeout_opportunity(&spread, Some(20_000), 0, false, &rules).unwrap();
        assert_eq!((found.kind, found.recommended_ms), (TimeoutKind::Oversized, 15_000));
        assert_eq!(timeout_opportunity(&spread, Some(20_000), 0, false, &TimeoutRules::default()), None);
        assert_eq!(TimeoutOverrides::all_of(&rules).over(&TimeoutRules::default()), rules);
        for (asked, key) in
            [(json!({ "floorMs": 1, "factor": 0.5 }), "factor"), (json!({ "minRuns": 2.5 }), "minRuns")]
        {
            let before = set;
            assert_eq!((set.apply(&body(asked)).unwrap_err().key, set), (key, before));
        }
        set.apply(&body(json!({ "factor": null }))).unwrap();
        assert_eq!(set.factor, None);
        let named: Vec<String> = json!(set).as_object().unwrap().keys().cloned().collect();
        assert!(
            named.len() == TIMEOUT_KEYS.len()
                && TIMEOUT_KEYS.iter().all(|key| named.iter().any(|name| name == key))
        );
    }
}
