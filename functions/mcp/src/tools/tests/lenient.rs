//! Arguments as models write them: whatever the spelling, every tool reads
//! what was meant.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use crate::arguments::{Arguments, names};
use crate::parameter::{Kind, Need, Parameter};
use crate::tools::{TOOLS, find};

/// Names of the contract besides those that follow from a rule: tool,
/// advertised name, and what else it is called.
const ALIASES: &[(&str, &str, &[&str])] = &[
    ("get_project", "projectId", &["id", "project"]),
    ("list_runs", "projectId", &["id", "project"]),
    ("get_run", "runId", &["id"]),
    ("get_run", "statusFilter", &["status_filter", "filter", "status"]),
    ("list_failed_cases", "projectId", &["id", "project"]),
    ("list_flaky_tests", "projectId", &["id", "project"]),
    ("get_test_case", "testCaseId", &["id", "caseId"]),
    ("list_clusters", "projectId", &["id", "project"]),
    ("get_cluster", "clusterId", &["id"]),
    ("get_fix_plan", "clusterId", &["id"]),
    ("get_cluster_diagnosis", "clusterId", &["id"]),
    ("get_test_case_context", "executionId", &["id", "caseId"]),
    ("get_case_screenshots", "executionId", &["id", "caseId"]),
    ("get_cluster_context", "clusterId", &["id"]),
    ("search_test_cases", "projectId", &["id", "project"]),
    ("search_test_cases", "query", &["q"]),
    ("get_test_run_case", "executionId", &["id", "caseId", "testRunCaseId", "testRunsCaseId"]),
    ("get_repo_commits", "projectId", &["id", "project"]),
    ("get_repo_diff", "projectId", &["id", "project"]),
    ("get_repo_diff", "sha", &["commit"]),
    ("get_run_insights", "runId", &["id"]),
    ("get_spec_health", "projectId", &["id", "project"]),
    ("get_slow_tests", "projectId", &["id", "project"]),
    ("get_performance_trend", "projectId", &["id", "project"]),
    ("get_performance_trend", "limit", &["pageSize"]),
    ("get_test_stability_trend", "testCaseId", &["id", "caseId"]),
    ("get_network_requests", "runId", &["id"]),
    ("get_failure_groups", "runId", &["id"]),
    ("get_locator_healing", "executionId", &["id", "caseId"]),
    ("search", "query", &["q"]),
    ("list_case_traces", "executionId", &["id", "caseId"]),
    ("list_links", "entityId", &["id"]),
    ("get_project_test_catalog", "projectId", &["id", "project"]),
    ("get_project_test_catalog", "query", &["q", "search"]),
    ("explain_failure", "executionId", &["id", "caseId"]),
    ("set_cluster_status", "clusterId", &["id"]),
    ("set_cluster_status", "note", &["triageNote"]),
    ("set_cluster_base_commit", "clusterId", &["id"]),
    ("set_cluster_base_commit", "commit", &["sha", "baseCommit"]),
    ("submit_diagnosis_feedback", "diagnosisId", &["id"]),
    ("submit_diagnosis_feedback", "note", &["feedbackNote"]),
    ("run_cluster_diagnosis", "clusterId", &["id"]),
    ("create_test_function", "projectId", &["id", "project"]),
];

#[test]
fn every_name_of_the_contract_is_known() {
    let parameter = |tool: &str, name: &str| {
        let tool = find(tool).unwrap_or_else(|| panic!("{tool}"));
        tool.parameters.iter().find(|parameter| parameter.name == name).unwrap_or_else(|| panic!("{name}"))
    };
    for (tool, name, also) in ALIASES {
        let known: Vec<String> = names(parameter(tool, name)).collect();
        for alias in *also {
            assert!(known.iter().any(|name| name == alias), "{tool}.{name} is not known as {alias}");
        }
    }
    for tool in TOOLS {
        for parameter in tool.parameters.iter().filter(|parameter| parameter.name == "pageSize") {
            let known: Vec<String> = names(parameter).collect();
            assert!(["limit", "page_size"].iter().all(|alias| known.contains(&(*alias).to_owned())));
        }
    }
}

/// Values of a kind as the schema advertises them.
fn advertised(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Id { .. } => (1_i64..1 << 53).prop_map(Value::from).boxed(),
        Kind::Count { min, max, .. } => (min..=max).prop_map(Value::from).boxed(),
        Kind::Place(last) => (0..=last).prop_map(Value::from).boxed(),
        Kind::Text(_) | Kind::Branch | Kind::Cursor => "[a-z]{1,9}".prop_map(Value::from).boxed(),
        Kind::Commit => "[0-9a-f]{7,40}".prop_map(Value::from).boxed(),
        Kind::Choice { words, .. } => select(words).prop_map(Value::from).boxed(),
        Kind::Choices(words) => subsequence(words, 1..=words.len()).prop_map(Value::from).boxed(),
        Kind::Texts(_) => prop::collection::vec("[a-z]{1,5}", 1..4).prop_map(Value::from).boxed(),
        Kind::Flag => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Objects { fields, .. } => {
            prop::collection::vec(complete(fields), 1..3).prop_map(Value::from_iter).boxed()
        }
    }
}

/// Every parameter that is advertised, with a value each.
fn complete(parameters: &'static [Parameter]) -> BoxedStrategy<Map<String, Value>> {
    let shown = parameters.iter().filter(|parameter| parameter.is_advertised);
    let values: Vec<_> = shown
        .map(|parameter| advertised(parameter.kind).prop_map(move |value| (parameter.name.to_owned(), value)))
        .collect();
    values.prop_map(Map::from_iter).boxed()
}

/// Other ways to write a value of a kind.
fn spellings(kind: Kind, value: &Value) -> Vec<Value> {
    let mut ways = vec![value.clone()];
    match (kind, value) {
        (Kind::Id { .. } | Kind::Count { .. } | Kind::Place(_), Value::Number(number)) => {
            ways.extend([
                json!(number.to_string()),
                json!(format!(" {number} ")),
                json!(format!("{number}.0")),
            ]);
            ways.push(json!(number.as_f64()));
        }
        (Kind::Choice { .. }, Value::String(word)) => {
            ways.extend([word.to_uppercase(), format!(" {word} ")].map(Value::from));
        }
        (Kind::Commit, Value::String(digits)) => {
            ways.extend([digits.to_uppercase(), format!(" {digits}\n")].map(Value::from));
        }
        (Kind::Choices(_) | Kind::Texts(_), Value::Array(list)) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            ways.extend([words.join(","), words.join(" , "), value.to_string()].map(Value::from));
        }
        (Kind::Flag, Value::Bool(flag)) => {
            ways.extend([flag.to_string(), flag.to_string().to_uppercase()].map(Value::from));
        }
        (Kind::Objects { fields, .. }, Value::Array(list)) => {
            ways.push(value.to_string().into());
            let snake = list.iter().filter_map(Value::as_object).map(|object| {
                let renamed = object.iter().map(|(name, value)| {
                    let field = fields.iter().find(|field| field.name == name).unwrap();
                    (names(field).last().unwrap(), spellings(field.kind, value).pop().unwrap())
                });
                Value::Object(renamed.collect())
            });
            ways.push(snake.collect());
        }
        _ => {}
    }
    ways
}

/// A tool, arguments as advertised, and the same as a model may write them.
fn calls() -> impl Strategy<Value = (usize, Map<String, Value>, Map<String, Value>)> {
    (0..TOOLS.len()).prop_flat_map(|tool| {
        let parameters = TOOLS[tool].parameters;
        (complete(parameters), prop::collection::vec(any::<prop::sample::Index>(), 3 * parameters.len()))
            .prop_map(move |(mut strict, choices)| {
                let mut loose = Map::new();
                for (parameter, choices) in parameters.iter().zip(choices.chunks(3)) {
                    let Some(value) = strict.get(parameter.name).cloned() else { continue };
                    let is_left_out = parameter.need == Need::Optional && choices[2].index(4) == 0;
                    let name = choices[0].get(&names(parameter).collect::<Vec<_>>()).clone();
                    if !is_left_out {
                        loose.insert(name, choices[1].get(&spellings(parameter.kind, &value)).clone());
                        continue;
                    }
                    strict.remove(parameter.name);
                    if parameter.null_is.is_none() {
                        loose.insert(name, Value::Null);
                    }
                }
                loose.insert("unheardOf".to_owned(), json!({"a": 1}));
                (tool, strict, loose)
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn every_tool_reads_what_was_meant((tool, strict, loose) in calls()) {
        let parameters = TOOLS[tool].parameters;
        let meant = Arguments::read(Some(strict.into()), parameters);
        prop_assert!(meant.is_ok(), "{}: {meant:?}", TOOLS[tool].name);
        let read = Arguments::read(Some(Value::Object(loose.clone())), parameters);
        prop_assert_eq!(&read, &meant, "{}: {:?}", TOOLS[tool].name, loose);
        // Where two names disagree, the advertised one counts.
        if let Some(own) = parameters.iter().find(|parameter| parameter.also.contains(&"id"))
            && let Some(id) = meant.as_ref().ok().and_then(|meant| meant.values().get(own.name))
        {
            let mut both = loose;
            both.insert("id".to_owned(), json!(7));
            both.insert(own.name.to_owned(), id.clone());
            prop_assert_eq!(&Arguments::read(Some(both.into()), parameters), &meant);
        }
    }
}
