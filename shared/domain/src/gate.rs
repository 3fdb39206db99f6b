//! The quality gate: whether a run may pass, by a policy and the facts of the
//! run.
//!
//! The run itself comes first: one with errors outside of its tests, one that
//! stopped early and one without results never passes, whatever the policy
//! asks of its tests.
//!
//! Invariant: a rule that needs a comparison and has none is never taken for
//! zero; it violates `no-baseline` when the policy demands a baseline and says
//! nothing otherwise. Tests in quarantine count neither as failed nor as flaky
//! nor as regressions.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// Most tags a policy names.
const MAX_TAGS: usize = 50;
/// Most characters of a tag.
const MAX_TAG_CHARS: usize = 200;

/// What a run has to satisfy. Each rule that is absent is not asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Tags none of whose tests may fail, without `@`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require_tags: Vec<String>,
    /// Most failed tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failed: Option<i64>,
    /// Most tests that passed before and fail now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_new_regressions: Option<i64>,
    /// Most tests that were stable before and are flaky now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_new_flaky: Option<i64>,
    /// Most tests in quarantine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_quarantined: Option<i64>,
    /// Whether a failure nobody has seen before violates.
    #[serde(skip_serializing_if = "is_false")]
    pub fail_on_new_cluster: bool,
    /// Whether any flaky test violates.
    #[serde(skip_serializing_if = "is_false")]
    pub fail_on_flaky: bool,
    /// Least part of the decided tests that has to pass, 0..1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_pass_rate: Option<f64>,
    /// Whether there has to be something to compare with.
    #[serde(skip_serializing_if = "is_false")]
    pub require_baseline: bool,
    /// Whether a run may have errors outside of its tests, or have failed
    /// although no test did.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_run_errors: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A policy that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A key has a value of the wrong type.
    #[error("{key} must be {expected}.")]
    Field {
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// It asks nothing.
    #[error("The policy asks nothing; it may hold {}.", KEYS.join(", "))]
    Empty,
}

/// The keys of a policy.
pub const KEYS: [&str; 10] = [
    "requireTags",
    "maxFailed",
    "maxNewRegressions",
    "maxNewFlaky",
    "maxQuarantined",
    "failOnNewCluster",
    "failOnFlaky",
    "minPassRate",
    "requireBaseline",
    "allowRunErrors",
];

impl Policy {
    /// Reads a policy out of a JSON object; other keys are ignored, null is
    /// the same as absent.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn read(fields: &Map<String, Value>) -> Result<Self, PolicyError> {
        let policy = Self {
            require_tags: tags(fields)?,
            max_failed: count(fields, "maxFailed")?,
            max_new_regressions: count(fields, "maxNewRegressions")?,
            max_new_flaky: count(fields, "maxNewFlaky")?,
            max_quarantined: count(fields, "maxQuarantined")?,
            fail_on_new_cluster: flag(fields, "failOnNewCluster")?,
            fail_on_flaky: flag(fields, "failOnFlaky")?,
            min_pass_rate: rate(fields, "minPassRate")?,
            require_baseline: flag(fields, "requireBaseline")?,
            allow_run_errors: flag(fields, "allowRunErrors")?,
        };
        // What only allows asks nothing.
        let asks = Self { allow_run_errors: false, ..policy.clone() };
        if asks == Self::default() { Err(PolicyError::Empty) } else { Ok(policy) }
    }

    /// Whether an object holds any rule, whatever its value.
    #[must_use]
    pub fn is_in(fields: &Map<String, Value>) -> bool {
        KEYS.iter().any(|key| given(fields, key).is_some())
    }
}

fn given<'f>(fields: &'f Map<String, Value>, key: &str) -> Option<&'f Value> {
    fields.get(key).filter(|value| !value.is_null())
}

fn count(fields: &Map<String, Value>, key: &'static str) -> Result<Option<i64>, PolicyError> {
    let wrong = PolicyError::Field { key, expected: "a whole number from 0 up" };
    let Some(value) = given(fields, key) else { return Ok(None) };
    value.as_i64().filter(|count| *count >= 0).map(Some).ok_or(wrong)
}

fn rate(fields: &Map<String, Value>, key: &'static str) -> Result<Option<f64>, PolicyError> {
    let wrong = PolicyError::Field { key, expected: "a number from 0 to 1" };
    let Some(value) = given(fields, key) else { return Ok(None) };
    value.as_f64().filter(|rate| (0.0..=1.0).contains(rate)).map(Some).ok_or(wrong)
}

fn flag(fields: &Map<String, Value>, key: &'static str) -> Result<bool, PolicyError> {
    let wrong = PolicyError::Field { key, expected: "true or false" };
    given(fields, key).map_or(Ok(false), |value| value.as_bool().ok_or(wrong))
}

fn tags(fields: &Map<String, Value>) -> Result<Vec<String>, PolicyError> {
    let wrong = PolicyError::Field { key: "requireTags", expected: "a list of at most 50 tags" };
    let Some(value) = given(fields, "requireTags") else { return Ok(Vec::new()) };
    let list = value.as_array().filter(|list| list.len() <= MAX_TAGS).ok_or_else(|| wrong.clone())?;
    let mut tags = Vec::with_capacity(list.len());
    for tag in list {
        let tag = tag.as_str().map(|tag| tag.trim().trim_start_matches('@')).unwrap_or_default();
        if tag.is_empty() || tag.chars().count() > MAX_TAG_CHARS {
            return Err(wrong);
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}

/// What a gate knows about a run. Counts are tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The run itself, beside its tests.
    pub run: RunFacts,
    /// Passed, flaky ones included.
    pub passed: i64,
    /// Failed, timed out ones included, without those in quarantine.
    pub failed: i64,
    /// Passed before and fail now, without those in quarantine; `None` when
    /// nothing was known before.
    pub new_regressions: Option<i64>,
    /// Stable before and flaky now; `None` likewise.
    pub new_flaky: Option<i64>,
    /// Failures nobody had seen before, without those that only tests in
    /// quarantine have.
    pub new_clusters: i64,
    /// Flaky, without those in quarantine.
    pub flaky: i64,
    /// In quarantine.
    pub quarantined: i64,
    /// Failing tests by required tag; every required tag that a test of the
    /// run has is here.
    pub failing_by_tag: BTreeMap<String, i64>,
    /// Required tags that no test of the run has.
    pub unmatched_tags: Vec<String>,
}

/// Reasons for which tests did not run because the whole run stopped, as
/// opposed to those behind a failed test.
pub const STOPPED: [&str; 4] = ["global-timeout", "max-failures", "interrupted", "setup-failed"];

/// What a gate knows about a run beside its tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Why it is not green beyond its failed tests, without a full stop.
    pub reason: Option<String>,
    /// Number of its errors that belong to no test.
    pub errors: i64,
    /// Whether it was interrupted, cancelled or lost.
    pub ended_early: bool,
    /// Shards without a result, in a run that has all of them to wait for.
    pub missing_shards: i64,
    /// Tests without a result because the whole run stopped.
    pub cut_off: i64,
    /// Tests that passed, failed or were skipped, with their results stored.
    pub with_result: i64,
}

/// A rule that was not satisfied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// In words.
    pub message: String,
    /// What the run has; null when it has nothing to tell.
    pub actual: Option<f64>,
    /// What the policy allows.
    pub limit: Option<f64>,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The run stopped before all tests had a result.
    IncompleteRun,
    /// The run has errors that belong to no test.
    RunErrors,
    /// The run failed and no test explains it.
    RunStatus,
    /// No test has a result.
    NoResults,
    /// A test with a required tag fails.
    RequiredTag,
    /// No test has a required tag.
    UnmatchedTag,
    /// Too many failed tests.
    MaxFailed,
    /// Too many new regressions.
    MaxNewRegressions,
    /// Too many newly flaky tests.
    MaxNewFlaky,
    /// A failure nobody had seen before.
    NewCluster,
    /// Too many tests in quarantine.
    MaxQuarantined,
    /// A flaky test.
    Flaky,
    /// Too few tests pass.
    MinPassRate,
    /// There is nothing to compare with.
    NoBaseline,
}

/// Whether a run may pass: the rules it violates, those about the run itself
/// first, then in the order in which the policy lists them.
#[must_use]
pub fn gate(policy: &Policy, facts: &Facts) -> Vec<Violation> {
    let mut violations = of_run(&facts.run, policy.allow_run_errors);
    for tag in &policy.require_tags {
        let failing = facts.failing_by_tag.get(tag).copied().unwrap_or_default();
        if facts.unmatched_tags.contains(tag) {
            violations.push(unlimited(Rule::UnmatchedTag, format!("No test of the run has the tag {tag}.")));
        } else if failing > 0 {
            let message = format!("{} with the required tag {tag} failed.", tests(failing));
            violations.push(over(Rule::RequiredTag, message, failing, 0));
        }
    }
    let limits = [
        (Rule::MaxFailed, policy.max_failed, Some(facts.failed), ["failed"; 2]),
        (
            Rule::MaxNewRegressions,
            policy.max_new_regressions,
            facts.new_regressions,
            ["fails that passed before", "fail that passed before"],
        ),
        (Rule::MaxNewFlaky, policy.max_new_flaky, facts.new_flaky, ["became flaky"; 2]),
        (Rule::NewCluster, policy.fail_on_new_cluster.then_some(0), Some(facts.new_clusters), [""; 2]),
        (
            Rule::MaxQuarantined,
            policy.max_quarantined,
            Some(facts.quarantined),
            ["is in quarantine", "are in quarantine"],
        ),
        (Rule::Flaky, policy.fail_on_flaky.then_some(0), Some(facts.flaky), ["is flaky", "are flaky"]),
    ];
    for (rule, limit, actual, [one, several]) in limits {
        let (Some(limit), Some(actual)) = (limit, actual) else { continue };
        if actual <= limit {
            continue;
        }
        let message = if rule == Rule::NewCluster {
            match actual {
                1 => "1 failure was never seen before.".to_owned(),
                _ => format!("{actual} failures were never seen before."),
            }
        } else {
            let what = if actual == 1 { one } else { several };
            format!("{} {what}; at most {limit} may.", tests(actual))
        };
        violations.push(over(rule, message, actual, limit));
    }
    if let Some(least) = policy.min_pass_rate {
        let rate = exact_rate(facts);
        if rate.is_none_or(|rate| rate < least) {
            let rate = rate.map(|rate| shown_below(rate, least));
            let message = rate.map_or_else(
                || "No test of the run passed or failed.".to_owned(),
                |rate| {
                    let aside =
                        if facts.quarantined > 0 { ", without failed ones in quarantine" } else { "" };
                    format!(
                        "{:.2} % of the tests passed{aside}; at least {:.2} % have to.",
                        rate * 100.0,
                        least * 100.0
                    )
                },
            );
            violations.push(Violation { rule: Rule::MinPassRate, message, actual: rate, limit: Some(least) });
        }
    }
    if policy.require_baseline && facts.new_regressions.is_none() {
        let message = "There is no earlier run to compare with.".to_owned();
        violations.push(unlimited(Rule::NoBaseline, message));
    }
    violations
}

/// The rules that every run has to satisfy, whatever the policy asks.
fn of_run(run: &RunFacts, allow_run_errors: bool) -> Vec<Violation> {
    let reason = run.reason.as_deref().unwrap_or("The run is not green");
    let mut violations = Vec::new();
    if run.missing_shards > 0 {
        let shards = if run.missing_shards == 1 { "shard has" } else { "shards have" };
        let message = format!("{} {shards} no result. Run the missing shards again.", run.missing_shards);
        violations.push(over(Rule::IncompleteRun, message, run.missing_shards, 0));
    } else if run.ended_early {
        violations.push(unlimited(Rule::IncompleteRun, format!("{reason}. Run the tests again.")));
    } else if run.cut_off > 0 {
        let have = if run.cut_off == 1 { "has" } else { "have" };
        let message = format!(
            "{} {have} no result because the run stopped early. Run the tests again, or raise the limit that stopped it.",
            tests(run.cut_off)
        );
        violations.push(over(Rule::IncompleteRun, message, run.cut_off, 0));
    }
    if run.errors > 0 && !allow_run_errors {
        let message = format!("{reason}. Fix the error and run the tests again.");
        violations.push(over(Rule::RunErrors, message, run.errors, 0));
    } else if run.reason.is_some() && run.errors == 0 && !run.ended_early && !allow_run_errors {
        let message = format!("{reason}. See the output of the test runner.");
        violations.push(unlimited(Rule::RunStatus, message));
    }
    if run.with_result == 0 {
        let message = "No test of the run has a result. Check that the tests were found and ran.".to_owned();
        violations.push(over(Rule::NoResults, message, 0, 1));
    }
    violations
}

/// Passed of those that passed or failed, without those in quarantine that
/// failed.
#[expect(clippy::cast_precision_loss, reason = "a run has far fewer tests than 2^52")]
fn exact_rate(facts: &Facts) -> Option<f64> {
    let decided = facts.passed + facts.failed;
    (decided > 0).then(|| facts.passed as f64 / decided as f64)
}

/// Four decimals of a rate, which do not read as if it reached the limit that
/// it is below.
fn shown_below(rate: f64, limit: f64) -> f64 {
    let rounded = (rate * 10_000.0).round() / 10_000.0;
    if rounded < limit { rounded } else { (rate * 10_000.0).floor() / 10_000.0 }
}

fn tests(count: i64) -> String {
    if count == 1 { "1 test".to_owned() } else { format!("{count} tests") }
}

const fn unlimited(rule: Rule, message: String) -> Violation {
    Violation { rule, message, actual: None, limit: None }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tests")]
const fn over(rule: Rule, message: String, actual: i64, limit: i64) -> Violation {
    Violation { rule, message, actual: Some(actual as f64), limit: Some(limit as f64) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn policy(value: Value) -> Result<Policy, PolicyError> {
        match value {
            Value::Object(fields) => Policy::read(&fields),
            _ => panic!("not an object"),
        }
    }

    /// Facts of a run of which nothing is to be said beside its tests.
    fn of_tests(facts: Facts) -> Facts {
        Facts { run: RunFacts { with_result: 1, ..RunFacts::default() }, ..facts }
    }

    fn rules(value: Value, facts: &Facts) -> Vec<Rule> {
        gate(&policy(value).unwrap(), facts).into_iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn a_policy_is_read_strictly_and_must_ask_something() {
        assert_eq!(policy(json!({})), Err(PolicyError::Empty));
        assert_eq!(
            policy(json!({"maxfailed": 1, "failOnFlaky": false, "maxFailed": null})),
            Err(PolicyError::Empty)
        );
        for wrong in [
            json!({"maxFailed": -1}),
            json!({"maxFailed": "1"}),
            json!({"maxFailed": 1.5}),
            json!({"minPassRate": 1.01}),
            json!({"failOnFlaky": 1}),
            json!({"requireTags": "smoke"}),
            json!({"requireTags": [""]}),
        ] {
            let key = wrong.as_object().unwrap().keys().next().unwrap().clone();
            assert!(
                matches!(policy(wrong), Err(PolicyError::Field { key: found, .. }) if found == key),
                "{key}"
            );
        }
        let read = policy(json!({"requireTags": ["@smoke", "smoke"], "maxFailed": 0, "unknown": 1})).unwrap();
        assert_eq!((read.require_tags.clone(), read.max_failed), (vec!["smoke".to_owned()], Some(0)));
        assert_eq!(serde_json::to_value(&read).unwrap(), json!({"requireTags": ["smoke"], "maxFailed": 0}));
    }

    #[test]
    fn limits_are_inclusive() {
        let facts = of_tests(Facts { passed: 9, failed: 1, flaky: 2, quarantined: 3, ..Facts::default() });
        assert_eq!(rules(json!({"maxFailed": 1, "maxQuarantined": 3, "minPassRate": 0.9}), &facts), []);
        assert_eq!(
            rules(
                json!({"maxFailed": 0, "maxQuarantined": 2, "minPassRate": 0.91, "failOnFlaky": true}),
                &facts
            ),
            [Rule::MaxFailed, Rule::MaxQuarantined, Rule::Flaky, Rule::MinPassRate]
        );
        let violation = &gate(&policy(json!({"minPassRate": 0.91})).unwrap(), &facts)[0];
        assert_eq!((violation.actual, violation.limit), (Some(0.9), Some(0.91)));
        assert_eq!(rules(json!({"minPassRate": 0}), &of_tests(Facts::default())), [Rule::MinPassRate]);
        let nearly = of_tests(Facts { passed: 29_999, failed: 1, ..Facts::default() });
        let violation = &gate(&policy(json!({"minPassRate": 1})).unwrap(), &nearly)[0];
        assert_eq!((violation.actual, violation.limit), (Some(0.9999), Some(1.0)));
    }

    #[test]
    fn without_a_comparison_its_rules_are_silent_unless_a_baseline_is_demanded() {
        let facts = of_tests(Facts { failed: 3, ..Facts::default() });
        assert_eq!(rules(json!({"maxNewRegressions": 0, "maxNewFlaky": 0}), &facts), []);
        assert_eq!(
            rules(json!({"maxNewRegressions": 0, "requireBaseline": true}), &facts),
            [Rule::NoBaseline]
        );
        let known = Facts { new_regressions: Some(0), new_flaky: Some(1), ..facts };
        assert_eq!(rules(json!({"maxNewFlaky": 0, "requireBaseline": true}), &known), [Rule::MaxNewFlaky]);
    }

    #[test]
    fn a_required_tag_fails_with_its_tests_and_without_any() {
        let facts = of_tests(Facts {
            failing_by_tag: BTreeMap::from([("smoke".to_owned(), 2), ("quick".to_owned(), 0)]),
            unmatched_tags: vec!["gone".to_owned()],
            ..Facts::default()
        });
        let asked = json!({"requireTags": ["quick", "smoke", "gone"]});
        assert_eq!(rules(asked, &facts), [Rule::RequiredTag, Rule::UnmatchedTag]);
    }

    #[test]
    fn the_run_itself_comes_first_whatever_the_policy_asks() {
        let red = |run: RunFacts| Facts { passed: 1, failed: 1, run, ..Facts::default() };
        let fine = RunFacts { with_result: 2, ..RunFacts::default() };
        let reason = Some("Global set-up failed: db is down".to_owned());
        for (run, expected) in [
            (fine.clone(), vec![]),
            (RunFacts { errors: 1, reason: reason.clone(), ..fine.clone() }, vec![Rule::RunErrors]),
            (RunFacts { reason: reason.clone(), ..fine.clone() }, vec![Rule::RunStatus]),
            (
                RunFacts { ended_early: true, reason: reason.clone(), ..fine.clone() },
                vec![Rule::IncompleteRun],
            ),
            (RunFacts { missing_shards: 2, ..fine.clone() }, vec![Rule::IncompleteRun]),
            (RunFacts { cut_off: 2, ..fine.clone() }, vec![Rule::IncompleteRun]),
            (
                RunFacts { errors: 1, cut_off: 1, reason: reason.clone(), ..RunFacts::default() },
                vec![Rule::IncompleteRun, Rule::RunErrors, Rule::NoResults],
            ),
        ] {
            let with_tests = [expected.clone(), vec![Rule::MaxFailed]].concat();
            assert_eq!(rules(json!({"maxFailed": 0}), &red(run.clone())), with_tests, "{run:?}");
            assert_eq!(rules(json!({"maxFailed": 9}), &red(run.clone())), expected, "{run:?}");
            // Only what is named may be allowed, and never that results are missing.
            let left: Vec<Rule> = expected
                .iter()
                .copied()
                .filter(|rule| !matches!(rule, Rule::RunErrors | Rule::RunStatus))
                .collect();
            assert_eq!(rules(json!({"maxFailed": 9, "allowRunErrors": true}), &red(run)), left);
        }
        assert_eq!(policy(json!({"allowRunErrors": true})), Err(PolicyError::Empty));
        let message = |run: RunFacts| gate(&Policy::default(), &red(run)).remove(0).message;
        assert_eq!(
            message(RunFacts { errors: 1, reason, ..fine.clone() }),
            "Global set-up failed: db is down. Fix the error and run the tests again."
        );
        assert_eq!(
            message(RunFacts { missing_shards: 1, ..fine }),
            "1 shard has no result. Run the missing shards again."
        );
    }

    proptest! {
        #[test]
        fn a_better_run_never_violates_more(
            failed in 0..50_i64, fewer in 0..50_i64, passed in 0..50_i64, most in 0..50_i64, rate in 0.0..1.0_f64,
        ) {
            let asked = Policy { max_failed: Some(most), min_pass_rate: Some(rate), ..Policy::default() };
            let worse = Facts { passed, failed: failed.max(fewer) + 1, ..Facts::default() };
            let better = Facts { passed: passed + 1, failed: failed.min(fewer), ..Facts::default() };
            prop_assert!(gate(&asked, &better).len() <= gate(&asked, &worse).len());
        }
    }
}
