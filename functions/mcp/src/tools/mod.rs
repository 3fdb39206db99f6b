//! The tools, one file each, and a line in [`TOOLS`] at its place in the order
//! of the contract.

mod create_test_function;
mod explain_failure;
mod get_case_screenshots;
mod get_cluster;
mod get_cluster_context;
mod get_cluster_diagnosis;
mod get_failure_groups;
mod get_fix_plan;
mod get_instance_stats;
mod get_locator_healing;
mod get_network_requests;
mod get_performance_trend;
mod get_project;
mod get_project_test_catalog;
mod get_repo_commits;
mod get_repo_diff;
mod get_run;
mod get_run_insights;
mod get_slow_tests;
mod get_spec_health;
mod get_test_case;
mod get_test_case_context;
mod get_test_run_case;
mod get_test_stability_trend;
mod list_case_traces;
mod list_clusters;
mod list_failed_cases;
mod list_flaky_tests;
mod list_links;
mod list_open_clusters;
mod list_projects;
mod list_recent_activity;
mod list_runs;
mod list_tags;
mod run_cluster_diagnosis;
mod search;
mod search_test_cases;
mod set_cluster_base_commit;
mod set_cluster_status;
mod submit_diagnosis_feedback;

use crate::tool::Tool;

/// Every tool, in the order they are listed.
#[rustfmt::skip]
pub(crate) static TOOLS: &[&Tool] = &[
    &list_projects::TOOL,
    &get_project::TOOL,
    &list_runs::TOOL,
    &get_run::TOOL,
    &list_failed_cases::TOOL,
    &list_flaky_tests::TOOL,
    &get_test_case::TOOL,
    &list_clusters::TOOL,
    &get_cluster::TOOL,
    &get_fix_plan::TOOL,
    &get_cluster_diagnosis::TOOL,
    &get_test_case_context::TOOL,
    &get_case_screenshots::TOOL,
    &get_cluster_context::TOOL,
    &search_test_cases::TOOL,
    &get_test_run_case::TOOL,
    &list_recent_activity::TOOL,
    &get_repo_commits::TOOL,
    &get_repo_diff::TOOL,
    &get_run_insights::TOOL,
    &get_spec_health::TOOL,
    &get_slow_tests::TOOL,
    &get_performance_trend::TOOL,
    &get_test_stability_trend::TOOL,
    &get_network_requests::TOOL,
    &get_failure_groups::TOOL,
    &get_locator_healing::TOOL,
    &search::TOOL,
    &list_case_traces::TOOL,
    &list_links::TOOL,
    &list_tags::TOOL,
    &get_project_test_catalog::TOOL,
    &list_open_clusters::TOOL,
    &get_instance_stats::TOOL,
    &explain_failure::TOOL,
    &set_cluster_status::TOOL,
    &set_cluster_base_commit::TOOL,
    &submit_diagnosis_feedback::TOOL,
    &run_cluster_diagnosis::TOOL,
    &create_test_function::TOOL,
];

/// The tool of a name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().copied().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests;
