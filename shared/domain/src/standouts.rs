//! What stands out in a project between two windows of equal length: rules
//! with fixed thresholds, so that the same numbers always say the same.
//!
//! Invariant: a rule that compares speaks only when both windows have
//! [`LEAST_RUNS`] runs; every message carries its numbers and what they are
//! measured against.

use std::cmp::Reverse;

use serde::Serialize;

use crate::human::duration;

/// Runs both windows need before they are compared.
pub const LEAST_RUNS: i64 = 8;
/// z of a two-sided test at p = 0.01.
const SURE_Z: f64 = 2.576;
/// Points by which a pass rate has to fall.
const FALL: f64 = 0.05;
/// Points from which a fall is critical.
const CRITICAL_FALL: f64 = 0.15;
/// Points by which a pass rate has to rise.
const RISE: f64 = 0.10;
/// Failing full runs in a row that are critical.
const STREAK: i64 = 3;
/// Days and occurrences from which an open cluster is old.
const OLD_DAYS: i64 = 14;
/// See [`OLD_DAYS`].
const OLD_OCCURRENCES: i64 = 10;
/// Growth of the time of runs, and by how much at least, ms.
const TIME_GROWTH: f64 = 0.25;
/// See [`TIME_GROWTH`].
const TIME_MS: i64 = 30 * MINUTE_MS;
/// Wasted time, ms.
const WASTE_MS: i64 = 60 * MINUTE_MS;
/// Time that shorter timeouts would save in a run, ms.
const SAVING_MS: i64 = 15_000;
/// Regressions, and their growth.
const REGRESSIONS: i64 = 5;
/// See [`REGRESSIONS`].
const REGRESSION_GROWTH: f64 = 0.5;
/// p90 of an endpoint that several projects call, ms.
const SLOW_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60_000;

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Somebody should look now.
    Critical,
    /// It got worse.
    Warning,
    /// It got better.
    Good,
}

/// What the runs of a window add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowSums {
    /// Runs.
    pub runs: i64,
    /// Tests that passed.
    pub passed: i64,
    /// Tests that failed.
    pub failed: i64,
    /// Wall clock of the runs, ms.
    pub run_ms: i64,
    /// Fixed waits and attempts that did not decide, ms.
    pub wasted_ms: i64,
    /// Tests that passed before and failed.
    pub regressions: i64,
}

/// What is known of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFacts {
    /// The window asked for.
    pub now: WindowSums,
    /// The equal window before.
    pub before: WindowSums,
    /// Newest full runs of the default branch in a row that failed.
    pub failing_streak: i64,
    /// Wall clock of these runs, ms.
    pub streak_ms: i64,
    /// What shorter timeouts would save in a run, ms.
    pub timeout_saving_ms: i64,
}

/// An open cluster of failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    /// What it is called.
    pub name: String,
    /// Days since it was first seen.
    pub age_days: i64,
    /// Executions that failed for it.
    pub occurrences: i64,
}

/// An endpoint that tests call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointFacts {
    /// Method and route.
    pub name: String,
    /// Requests.
    pub requests: i64,
    /// Nine in ten took at most this long, ms.
    pub p90_ms: i64,
    /// Projects that call it.
    pub projects: i64,
}

/// Something that stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standout {
    /// The rule that says so.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence with its numbers.
    pub message: String,
    /// What they are measured against.
    pub detail: Option<String>,
    /// How much time it concerns, minutes; what concerns more comes first.
    pub minutes: i64,
}

impl WindowSums {
    #[expect(clippy::cast_precision_loss, reason = "counts of tests")]
    fn pass_rate(&self) -> Option<f64> {
        let decided = self.passed + self.failed;
        (decided > 0).then(|| self.passed as f64 / decided as f64)
    }
}

/// z of the difference between two shares, each of its own number of tests.
#[expect(clippy::cast_precision_loss, reason = "counts of tests")]
fn z_of(now: &WindowSums, before: &WindowSums) -> Option<f64> {
    let (n, m) = ((now.passed + now.failed) as f64, (before.passed + before.failed) as f64);
    let difference = now.pass_rate()? - before.pass_rate()?;
    let pooled = (now.passed + before.passed) as f64 / (n + m);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    (deviation > 0.0).then(|| difference / deviation)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

const fn minutes(ms: i64) -> i64 {
    ms / MINUTE_MS
}

#[expect(clippy::cast_precision_loss, reason = "whole minutes")]
fn growth(now: i64, before: i64) -> Option<f64> {
    (before > 0).then(|| (now - before) as f64 / before as f64)
}

/// What stands out in a project called `name`.
#[must_use]
pub fn of_project(name: &str, facts: &ProjectFacts) -> Vec<Standout> {
    let ProjectFacts { now, before, failing_streak, streak_ms, timeout_saving_ms } = facts;
    let mut found = Vec::new();
    let is_comparable = now.runs >= LEAST_RUNS && before.runs >= LEAST_RUNS;
    if *failing_streak >= STREAK {
        found.push(Standout {
            rule: "failing-streak",
            severity: Severity::Critical,
            message: format!("The last {failing_streak} full runs of {name} on its default branch failed."),
            detail: None,
            minutes: minutes(*streak_ms),
        });
    }
    if now.wasted_ms >= WASTE_MS {
        found.push(Standout {
            rule: "wasted-time",
            severity: Severity::Warning,
            message: format!(
                "{name} spent {} on fixed waits and on attempts that did not decide.",
                duration(now.wasted_ms)
            ),
            detail: Some(format!("{} in as many days before.", duration(before.wasted_ms))),
            minutes: minutes(now.wasted_ms),
        });
    }
    if *timeout_saving_ms >= SAVING_MS {
        found.push(Standout {
            rule: "timeout-saving",
            severity: Severity::Warning,
            message: format!("Shorter timeouts would save {name} {} per run.", duration(*timeout_saving_ms)),
            detail: Some(format!("{} runs in this time.", now.runs)),
            minutes: minutes(timeout_saving_ms.saturating_mul(now.runs)),
        });
    }
    if !is_comparable {
        return found;
    }
    if let (Some(rate), Some(earlier), Some(z)) = (now.pass_rate(), before.pass_rate(), z_of(now, before)) {
        let change = rate - earlier;
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "whole minutes")]
        let concerned = (change.abs() * minutes(now.run_ms) as f64).round() as i64;
        let detail = Some(format!("{} in the {} runs before.", percent(earlier), before.runs));
        if z <= -SURE_Z && change <= -FALL {
            let is_critical = change <= -CRITICAL_FALL;
            found.push(Standout {
                rule: "pass-rate-drop",
                severity: if is_critical { Severity::Critical } else { Severity::Warning },
                message: format!("The pass rate of {name} fell to {} in {} runs.", percent(rate), now.runs),
                detail,
                minutes: concerned,
            });
        } else if z >= SURE_Z && change >= RISE {
            found.push(Standout {
                rule: "pass-rate-recovery",
                severity: Severity::Good,
                message: format!("The pass rate of {name} rose to {} in {} runs.", percent(rate), now.runs),
                detail,
                minutes: concerned,
            });
        }
    }
    let more_ms = now.run_ms - before.run_ms;
    if more_ms >= TIME_MS && growth(now.run_ms, before.run_ms).is_some_and(|growth| growth >= TIME_GROWTH) {
        found.push(Standout {
            rule: "ci-time-growth",
            severity: Severity::Warning,
            message: format!("The runs of {name} took {} more than before.", duration(more_ms)),
            detail: Some(format!(
                "{} in {} runs, {} in the {} before.",
                duration(now.run_ms),
                now.runs,
                duration(before.run_ms),
                before.runs
            )),
            minutes: minutes(more_ms),
        });
    }
    let has_grown = growth(now.regressions, before.regressions)
        .map_or(before.regressions == 0, |growth| growth >= REGRESSION_GROWTH);
    if now.regressions >= REGRESSIONS && has_grown {
        found.push(Standout {
            rule: "regressions",
            severity: Severity::Warning,
            message: format!("{} new failures in {name}, of tests that had passed.", now.regressions),
            detail: Some(format!("{} in as many days before.", before.regressions)),
            minutes: minutes(now.run_ms / now.runs.max(1)) * now.regressions,
        });
    }
    found
}

/// Whether an open cluster is old, and how that is said. `mean_ms` is what one
/// failing test costs.
#[must_use]
pub fn of_cluster(facts: &ClusterFacts, mean_ms: i64) -> Option<Standout> {
    let is_old = facts.age_days >= OLD_DAYS && facts.occurrences >= OLD_OCCURRENCES;
    is_old.then(|| Standout {
        rule: "old-cluster",
        severity: Severity::Warning,
        message: format!("“{}” has been open for {} days.", facts.name, facts.age_days),
        detail: Some(format!("It occurred {} times.", facts.occurrences)),
        minutes: minutes(facts.occurrences.saturating_mul(mean_ms)),
    })
}

/// Whether an endpoint is slow for several projects, and how that is said.
#[must_use]
pub fn of_endpoint(facts: &EndpointFacts) -> Option<Standout> {
    (facts.projects >= 2 && facts.p90_ms >= SLOW_MS).then(|| Standout {
        rule: "slow-endpoint",
        severity: Severity::Warning,
        message: format!("{} takes {} or more in one of ten requests.", facts.name, duration(facts.p90_ms)),
        detail: Some(format!("{} requests of {} projects.", facts.requests, facts.projects)),
        minutes: minutes(facts.requests.saturating_mul(facts.p90_ms)),
    })
}

/// In the order they are shown: what concerns more time first.
pub fn sort<T>(found: &mut [(Standout, T)]) {
    found.sort_by_key(|(standout, _)| (Reverse(standout.minutes), standout.severity));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(runs: i64, passed: i64, failed: i64) -> WindowSums {
        WindowSums { runs, passed, failed, run_ms: runs * 10 * MINUTE_MS, ..WindowSums::default() }
    }

    fn rules(facts: &ProjectFacts) -> Vec<(&'static str, Severity)> {
        of_project("shop", facts).into_iter().map(|found| (found.rule, found.severity)).collect()
    }

    #[test]
    fn a_fall_is_told_when_it_is_large_and_no_accident() {
        let before = window(10, 950, 50);
        let told = |now| rules(&ProjectFacts { now, before, ..ProjectFacts::default() });
        assert_eq!(told(window(10, 880, 120)), [("pass-rate-drop", Severity::Warning)]);
        assert_eq!(told(window(10, 700, 300)), [("pass-rate-drop", Severity::Critical)]);
        assert_eq!(told(window(10, 920, 80)), [], "three points");
        assert_eq!(told(window(7, 500, 500)), [], "too few runs");
        let few =
            ProjectFacts { now: window(10, 9, 1), before: window(10, 10, 0), ..ProjectFacts::default() };
        assert_eq!(rules(&few), [], "one test of ten says nothing");
        let better = ProjectFacts { now: before, before: window(10, 700, 300), ..ProjectFacts::default() };
        assert_eq!(rules(&better), [("pass-rate-recovery", Severity::Good)]);
    }

    #[test]
    fn time_waste_regressions_and_streaks_have_their_thresholds() {
        let before = WindowSums { regressions: 4, ..window(10, 100, 0) };
        let now = WindowSums { wasted_ms: WASTE_MS, regressions: 6, ..window(13, 130, 0) };
        let facts = ProjectFacts {
            now,
            before,
            failing_streak: 3,
            streak_ms: MINUTE_MS,
            timeout_saving_ms: SAVING_MS,
        };
        let expected = [
            ("failing-streak", Severity::Critical),
            ("wasted-time", Severity::Warning),
            ("timeout-saving", Severity::Warning),
            ("ci-time-growth", Severity::Warning),
            ("regressions", Severity::Warning),
        ];
        assert_eq!(rules(&facts), expected);
        let calm = WindowSums { wasted_ms: WASTE_MS - 1, regressions: 5, ..window(12, 120, 0) };
        assert_eq!(
            rules(&ProjectFacts {
                now: calm,
                before,
                failing_streak: 2,
                streak_ms: 0,
                timeout_saving_ms: SAVING_MS - 1
            }),
            []
        );
    }

    #[test]
    fn clusters_grow_old_and_endpoints_concern_several() {
        let cluster = ClusterFacts { name: "click".into(), age_days: 14, occurrences: 10 };
        assert_eq!(of_cluster(&cluster, 6_000).map(|found| found.minutes), Some(1));
        assert_eq!(of_cluster(&ClusterFacts { occurrences: 9, ..cluster }, 6_000), None);
        let endpoint = EndpointFacts { name: "GET /a".into(), requests: 60, p90_ms: 1_000, projects: 2 };
        let found = of_endpoint(&endpoint).unwrap();
        assert_eq!(found.minutes, 1);
        assert_eq!(found.message, "GET /a takes 1.0\u{a0}s or more in one of ten requests.");
        assert_eq!(of_endpoint(&EndpointFacts { projects: 1, ..endpoint }), None);
    }
}
