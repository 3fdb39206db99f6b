//! The policies by which the runs of a project are judged: a form for each,
//! and one for another.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::gate::Policy;
use callboard_query::gates::GatePolicy;

use crate::filters;
use crate::text::percent;

/// A number above which a run is turned down.
struct Count {
    key: &'static str,
    label: &'static str,
    hint: &'static str,
    value: String,
}

/// Something that turns a run down, whatever its numbers.
struct Flag {
    key: &'static str,
    label: &'static str,
    is_set: bool,
}

/// A policy as a form.
struct PolicyForm {
    call: String,
    /// Tells the fields of one form from those of another.
    slug: String,
    id: Option<i64>,
    name: String,
    is_default: bool,
    /// Its rules in words.
    rules: Vec<String>,
    counts: [Count; 4],
    pass_rate: String,
    tags: String,
    flags: [Flag; 3],
    allows_run_errors: bool,
}

/// Inputs of `components/gate_policies.html`.
#[derive(Template)]
#[template(path = "components/gate_policies.html")]
pub(crate) struct GatePolicies {
    policies: Vec<PolicyForm>,
    fresh: PolicyForm,
    origin: String,
}

impl HtmlSafe for GatePolicies {}

impl GatePolicies {
    /// The policies of a project, for programs that reach this service at
    /// `origin`.
    pub(crate) fn of_project(project: i64, stored: Vec<GatePolicy>, origin: String) -> Self {
        // Nothing is as plain a start as this: no test may fail that passed before.
        let usual = Policy { max_new_regressions: Some(0), ..Policy::default() };
        let fresh = PolicyForm {
            call: format!("POST /api/projects/{project}/gate-policies"),
            is_default: stored.is_empty(),
            ..PolicyForm::new("new".to_owned(), &usual)
        };
        let form = |stored: GatePolicy| {
            PolicyForm {
                call: format!("PATCH /api/gate-policies/{}", stored.id),
                id: Some(stored.id),
                is_default: stored.is_default,
                rules: in_words(&stored.policy),
                ..PolicyForm::new(stored.id.to_string(), &stored.policy)
            }
            .named(stored.name)
        };
        Self { policies: stored.into_iter().map(form).collect(), fresh, origin }
    }

    /// The policy a pipeline is told to ask for.
    fn example(&self) -> &str {
        self.policies.first().map_or("release", |policy| policy.name.as_str())
    }
}

impl PolicyForm {
    fn new(slug: String, policy: &Policy) -> Self {
        let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        let count = |key, label, hint, value| Count { key, label, hint, value: number(value) };
        Self {
            call: String::new(),
            slug,
            id: None,
            name: String::new(),
            is_default: false,
            rules: Vec::new(),
            counts: [
                count("policy.maxFailed", "Failed tests", "Excluding quarantined tests.", policy.max_failed),
                count(
                    "policy.maxNewRegressions",
                    "New failures",
                    "Tests that passed in their last run.",
                    policy.max_new_regressions,
                ),
                count(
                    "policy.maxNewFlaky",
                    "Newly flaky tests",
                    "Tests that were stable before.",
                    policy.max_new_flaky,
                ),
                count(
                    "policy.maxQuarantined",
                    "Tests in quarantine",
                    "Limits how many tests can be quarantined.",
                    policy.max_quarantined,
                ),
            ],
            pass_rate: policy.min_pass_rate.map(shown_percent).unwrap_or_default(),
            tags: policy.require_tags.join("\n"),
            allows_run_errors: policy.allow_run_errors,
            flags: [
                Flag {
                    key: "policy.failOnNewCluster",
                    label: "A new failure cause",
                    is_set: policy.fail_on_new_cluster,
                },
                Flag { key: "policy.failOnFlaky", label: "Any flaky test", is_set: policy.fail_on_flaky },
                Flag {
                    key: "policy.requireBaseline",
                    label: "No passing baseline",
                    is_set: policy.require_baseline,
                },
            ],
        }
    }

    fn name_id(&self) -> String {
        format!("gate-name-{}", self.slug)
    }

    fn named(self, name: String) -> Self {
        Self { name, ..self }
    }
}

/// A share as the number of percent in a field.
fn shown_percent(share: f64) -> String {
    let written = format!("{:.3}", share * 100.0);
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What a policy turns a run down for.
fn in_words(policy: &Policy) -> Vec<String> {
    let above = |most: Option<i64>, one: &str, many: &str| {
        most.map(|most| match most {
            0 => format!("any {one}"),
            most => format!("more than {most} {many}"),
        })
    };
    let flag = |is_set: bool, words: &str| is_set.then(|| words.to_owned());
    let tags = policy.require_tags.iter().map(|tag| format!("a failed @{tag} test"));
    let rules = [
        flag(!policy.allow_run_errors, "an error outside tests"),
        above(policy.max_failed, "failed test", "failed tests"),
        above(policy.max_new_regressions, "new failure", "new failures"),
        above(policy.max_new_flaky, "newly flaky test", "newly flaky tests"),
        above(policy.max_quarantined, "test in quarantine", "tests in quarantine"),
        policy.min_pass_rate.map(|rate| format!("less than {} passed", percent(rate))),
        flag(policy.fail_on_new_cluster, "a new failure cause"),
        flag(policy.fail_on_flaky, "any flaky test"),
        flag(policy.require_baseline, "no passing baseline"),
    ];
    rules.into_iter().flatten().chain(tags).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_told_by_what_it_turns_down() {
        let policy = Policy {
            require_tags: vec!["smoke".to_owned()],
            max_failed: Some(3),
            max_new_regressions: Some(0),
            min_pass_rate: Some(0.985),
            ..Policy::default()
        };
        let words: Vec<String> = in_words(&policy).iter().map(|rule| rule.replace('\u{a0}', " ")).collect();
        assert_eq!(
            words,
            [
                "an error outside tests",
                "more than 3 failed tests",
                "any new failure",
                "less than 98.5% passed",
                "a failed @smoke test"
            ]
        );
        assert_eq!((shown_percent(0.985), shown_percent(1.0)), ("98.5".to_owned(), "100".to_owned()));
    }
}
