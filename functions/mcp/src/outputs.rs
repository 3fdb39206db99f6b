//! The shape of every tool's result, for clients that asked for structured
//! content: shallow and open. Fields are left out when they say nothing, so
//! only `items` is required; `nextCursor` can be null and is not described.

use serde_json::{Map, Value, json};

/// Fields of a run in a list.
const RUN: &str = "runId:int id:int projectId:int status:text startedAt:text duration:int total:int passed:int \
    failed:int flaky:int skipped:int didNotRun:int interrupted:int environment:text label:text branch:text \
    commit:text url:text";
/// Fields of a failure cluster in a list.
const CLUSTER: &str = "clusterId:int id:int signature:text title:text errorType:text selector:text status:text \
    occurrences:int affectedTests:int firstSeenRunId:int lastSeenRunId:int lastSeenStatus:text lastSeenAt:text \
    sampleError:text url:text";

/// The fields of a result, as `name:kind`, for every tool that answers more
/// than a page.
const RESULTS: &[(&str, &[&str])] = &[
    (
        "get_project",
        &["projectId:int id:int name:text label:text description:text defaultBranch:text repository:object \
           hasSourceControl:flag tags:list url:text runs:list"],
    ),
    (
        "get_run",
        &[RUN, "projectName:text playwrightVersion:text reporterVersion:text filter:text cases:list"],
    ),
    (
        "get_test_case",
        &[
            "testCaseId:int id:int title:text filePath:text describePath:list project:object tags:list owner:text \
           priority:text stats:object clusters:list recentExecutions:object url:text",
        ],
    ),
    (
        "get_cluster",
        &[
            CLUSTER,
            "note:text baseCommit:text project:object diagnosis:object affectedTestCases:list locatorHealing:list",
        ],
    ),
    (
        "get_fix_plan",
        &["cluster:object diagnosis:object edits:list failingTests:list ownership:object verify:object"],
    ),
    ("get_cluster_diagnosis", &["clusterId:int baseCommit:text next:list"]),
    (
        "get_test_case_context",
        &[
            "executionId:int text:text sections:list tokenEstimate:int cluster:object rawExecution:object url:text",
        ],
    ),
    (
        "get_cluster_context",
        &["clusterId:int text:text sections:list tokenEstimate:int coverage:object url:text"],
    ),
    (
        "get_test_run_case",
        &[
            "executionId:int testCaseId:int runId:int projectId:int title:text filePath:text line:int column:int \
           status:text flaky:flag duration:int retries:int attempts:list error:text clusterId:int workerIndex:int \
           browser:text annotations:list startedAt:text slowestStep:text slowestStepDuration:int \
           isNewRegression:flag isNewFlaky:flag steps:list console:list stdout:list stderr:list network:list \
           webVitals:object ariaSnapshot:text available:object url:text",
        ],
    ),
    ("get_repo_commits", &["items:list repository:text branch:text"]),
    ("get_repo_diff", &["items:list commit:object patchesOmitted:int"]),
    (
        "get_run_insights",
        &[
            "runId:int hasBaseline:flag baseline:object totalTests:int passedTests:int failedTests:int flakyTests:int \
           passRate:number baselinePassRate:number passRateDelta:number avgDurationDelta:number newRegressions:list \
           recurrences:list recovered:list newFlaky:list slowestTests:list mostImproved:list mostRegressed:list \
           workerImbalance:list workerImbalanceWarning:text flakyOnRetry:list clusterNew:list url:text",
        ],
    ),
    ("get_test_stability_trend", &["testCaseId:int items:list"]),
    ("get_failure_groups", &["items:list failedTests:int"]),
    (
        "get_locator_healing",
        &[
            "executionId:int source:text capturedAt:text failingLocator:text target:text sourceLine:text edit:object \
           healedInRunId:int recommendation:object fromPriorSuccess:list fromElementMatch:list fromAriaSnapshot:list \
           priorNameMayBeStale:flag",
        ],
    ),
    ("search", &["projects:list runs:list cases:list hint:text"]),
    ("get_project_test_catalog", &["total:int items:list offset:int nextOffset:int"]),
    (
        "get_instance_stats",
        &[
            "totalProjects:int totalRuns:int totalTestCases:int totalExecutions:int totalFiles:int totalFileSize:int",
        ],
    ),
    (
        "explain_failure",
        &[
            "executionId:int testCaseId:int runId:int title:text filePath:text status:text headline:text verdict:text \
           confidence:number changed:list error:text failingStep:object sourceLine:text locatorFix:object isNewRegression:flag isNewFlaky:flag \
           lastPassed:object cluster:object diagnosis:object console:list network:list ariaExcerpt:text \
           screenshotCount:int traceCount:int next:list url:text",
        ],
    ),
    ("set_cluster_status", &["ok:flag clusterId:int id:int status:text note:text previousStatus:text"]),
    ("set_cluster_base_commit", &["ok:flag clusterId:int id:int baseCommit:text"]),
    ("submit_diagnosis_feedback", &["ok:flag diagnosisId:int id:int feedback:text note:text"]),
    (
        "run_cluster_diagnosis",
        &[
            "clusterId:int diagnosisId:int status:text category:text confidence:text summary:text rootCause:text \
           suggestedFix:object retryAfterSeconds:int",
        ],
    ),
    (
        "create_test_function",
        &["ok:flag functionId:int id:int projectId:int name:text kind:text module:text source:text"],
    ),
];

/// The JSON schema of a tool's result.
pub(crate) fn schema(tool: &str) -> Value {
    let listed =
        RESULTS.iter().find(|(name, _)| *name == tool).map_or(&["items:list"][..], |(_, fields)| *fields);
    let fields = listed.iter().flat_map(|fields| fields.split_whitespace());
    let properties: Map<String, Value> = fields
        .filter_map(|field| field.split_once(':'))
        .map(|(name, kind)| (name.to_owned(), json!({"type": json_type(kind)})))
        .collect();
    let is_page = properties.contains_key("items");
    let mut schema = json!({"type": "object", "properties": properties});
    if is_page {
        schema["required"] = json!(["items"]);
    }
    schema
}

fn json_type(kind: &str) -> &'static str {
    match kind {
        "int" => "integer",
        "number" => "number",
        "flag" => "boolean",
        "list" => "array",
        "object" => "object",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::TOOLS;

    #[test]
    fn every_row_is_of_a_tool_and_every_field_has_a_kind() {
        for (tool, fields) in RESULTS {
            for field in fields.iter().flat_map(|fields| fields.split_whitespace()) {
                let kind = field.split_once(':').unwrap_or_else(|| panic!("{tool}: {field}")).1;
                assert!(
                    ["int", "number", "flag", "list", "object", "text"].contains(&kind),
                    "{tool}: {field}"
                );
            }
        }
        for tool in TOOLS {
            assert_eq!(schema(tool.name)["type"], "object");
        }
        assert_eq!(
            schema("list_runs"),
            json!({
                "type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"],
            })
        );
    }
}
