//! What holds for all tools.

mod lenient;

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::parameter::Need;
use crate::tool::Group;

/// The order of the contract.
const CONTRACT: [&str; 40] = [
    "list_projects",
    "get_project",
    "list_runs",
    "get_run",
    "list_failed_cases",
    "list_flaky_tests",
    "get_test_case",
    "list_clusters",
    "get_cluster",
    "get_fix_plan",
    "get_cluster_diagnosis",
    "get_test_case_context",
    "get_case_screenshots",
    "get_cluster_context",
    "search_test_cases",
    "get_test_run_case",
    "list_recent_activity",
    "get_repo_commits",
    "get_repo_diff",
    "get_run_insights",
    "get_spec_health",
    "get_slow_tests",
    "get_performance_trend",
    "get_test_stability_trend",
    "get_network_requests",
    "get_failure_groups",
    "get_locator_healing",
    "search",
    "list_case_traces",
    "list_links",
    "list_tags",
    "get_project_test_catalog",
    "list_open_clusters",
    "get_instance_stats",
    "explain_failure",
    "set_cluster_status",
    "set_cluster_base_commit",
    "submit_diagnosis_feedback",
    "run_cluster_diagnosis",
    "create_test_function",
];

fn tokens(value: &Value) -> usize {
    value.to_string().chars().count().div_ceil(4)
}

#[test]
fn every_tool_of_the_contract_stands_in_its_place() {
    let here: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    assert_eq!(here, CONTRACT);
}

#[test]
fn the_document_says_what_the_tools_say() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/mcp-tools.json");
    let described: Vec<Value> = TOOLS.iter().map(|tool| tool.described()).collect();
    let expected = format!("{}\n", serde_json::to_string_pretty(&described).unwrap());
    if std::env::var_os("UPDATE_ROUTES").is_some() {
        std::fs::write(file, &expected).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == expected, "infra/mcp-tools.json is not what the tools say; `make routes` writes it");
}

/// What a result can be made of: one type each, and nothing that refers elsewhere.
fn lint_result(schema: &Value, path: &str) {
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{path} has no single type"));
    match kind {
        "object" => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields.for_each(|(name, field)| lint_result(field, &format!("{path}.{name}")));
        }
        "array" => lint_result(&schema["items"], &format!("{path}[]")),
        _ => assert!(["integer", "number", "boolean", "string"].contains(&kind), "{path} is a {kind}"),
    }
}

#[test]
fn every_result_says_what_it_is_made_of() {
    for tool in TOOLS {
        let shape = (tool.result)();
        lint_result(&shape, tool.name);
        let is_page = shape["properties"].get("items").is_some();
        assert_eq!(is_page, shape.get("required").is_some(), "{}", tool.name);
    }
}

#[test]
fn the_list_stays_within_its_budget() {
    let listed: Vec<Value> = TOOLS.iter().map(|tool| tool.listed()).collect();
    for (tool, listed) in TOOLS.iter().zip(&listed) {
        let most = if tool.name == "create_test_function" { 500 } else { 300 };
        assert!(tokens(listed) <= most, "{}: {}", tool.name, tokens(listed));
        assert!(tool.description.chars().count() <= 300, "{}", tool.name);
        assert!(!tool.title.is_empty() && !tool.description.contains("  "), "{}", tool.name);
    }
    let sum: usize = listed.iter().map(tokens).sum();
    assert!(sum <= 8_000, "{sum}");
}

/// What clients of every kind understand: flat, bounded, without unions.
fn lint(schema: &Value, path: &str) {
    let schema = schema.as_object().unwrap_or_else(|| panic!("{path} is no object"));
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{path} has no single type"));
    let keys: BTreeSet<&str> = schema.keys().map(String::as_str).collect();
    let allowed: &[&str] = match kind {
        "object" => &["type", "properties", "required", "description"],
        "integer" => &["type", "minimum", "maximum", "default", "description"],
        "string" => &["type", "enum", "maxLength", "default", "description"],
        "boolean" => &["type", "description"],
        "array" => &["type", "items", "description"],
        other => panic!("{path} is a {other}"),
    };
    assert!(keys.iter().all(|key| allowed.contains(key)), "{path}: {keys:?}");
    match kind {
        "object" => {
            let properties = schema["properties"].as_object().unwrap();
            properties.iter().for_each(|(name, schema)| lint(schema, &format!("{path}.{name}")));
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            assert!(
                required.into_iter().all(|name| properties.contains_key(name.as_str().unwrap())),
                "{path}"
            );
        }
        "integer" => {
            let (low, high) = (schema["minimum"].as_i64().unwrap(), schema["maximum"].as_i64().unwrap());
            assert!(low < high, "{path}");
            assert!(
                schema.get("default").is_none_or(|number| (low..=high).contains(&number.as_i64().unwrap())),
                "{path}"
            );
        }
        "array" => lint(&schema["items"], &format!("{path}[]")),
        _ => {}
    }
}

#[test]
fn every_schema_is_flat_and_bounded() {
    for tool in TOOLS {
        let listed = tool.listed();
        lint(&listed["inputSchema"], tool.name);
        for property in listed["inputSchema"]["properties"].as_object().unwrap().values() {
            assert_ne!(property["type"], "object", "{}", tool.name);
        }
    }
}

#[test]
fn every_tool_says_all_four_hints() {
    for tool in TOOLS {
        let hints = tool.listed()["annotations"].clone();
        let names: Vec<&String> = hints.as_object().unwrap().keys().collect();
        let expected = ["destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint"];
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(sorted, expected.iter().collect::<Vec<_>>(), "{}", tool.name);
        assert!(!tool.hints.destructive, "{}", tool.name);
        assert_eq!(tool.hints.read_only, tool.group != Group::Triage, "{}", tool.name);
    }
}

#[test]
fn names_of_parameters_and_their_aliases_do_not_collide() {
    for tool in TOOLS {
        let mut seen = BTreeSet::new();
        for parameter in tool.parameters {
            for name in std::iter::once(&parameter.name).chain(parameter.also) {
                assert!(seen.insert(*name), "{}: {name}", tool.name);
            }
            let other = match parameter.need {
                Need::RequiredWithout(other) => other,
                _ => parameter.name,
            };
            assert!(
                tool.parameters.iter().any(|parameter| parameter.name == other),
                "{}: {other}",
                tool.name
            );
        }
    }
}
