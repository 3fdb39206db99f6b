//! The tools, one file each. A new tool is a new file and a line in [`TOOLS`],
//! at its place in the order of the contract.

mod get_instance_stats;
mod get_project;
mod get_project_test_catalog;
mod get_run;
mod get_test_case;
mod get_test_run_case;
mod get_test_stability_trend;
mod list_case_traces;
mod list_failed_cases;
mod list_projects;
mod list_recent_activity;
mod list_runs;
mod search_test_cases;

use crate::tool::Tool;

/// Every tool, in the order they are listed.
pub(crate) static TOOLS: [&Tool; 13] = [
    &list_projects::TOOL,
    &get_project::TOOL,
    &list_runs::TOOL,
    &get_run::TOOL,
    &list_failed_cases::TOOL,
    &get_test_case::TOOL,
    &search_test_cases::TOOL,
    &get_test_run_case::TOOL,
    &list_recent_activity::TOOL,
    &get_test_stability_trend::TOOL,
    &list_case_traces::TOOL,
    &get_project_test_catalog::TOOL,
    &get_instance_stats::TOOL,
];

/// The tool of a name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.into_iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests;
