//! How a request to a route is written: its path, and a body that its handler
//! accepts.

use callboard_auth::{Route, RouteId};
use serde_json::{Value, json};

use super::Holding;

/// Routes about an account: the caller's own, or anybody's for administrators.
pub(super) fn is_about_an_account(route: &Route) -> bool {
    route.pattern.starts_with("/api/users/{id}") || route.pattern.starts_with("/settings/users/{id}")
}

/// The path, and where it takes one the query, that names something of what
/// a project holds, or an account.
#[must_use]
pub fn address(route: &Route, holding: &Holding, account: i64) -> String {
    let pattern = route.pattern;
    let id = if is_about_an_account(route) {
        account
    } else if pattern.contains("/test-run-cases/{id}") {
        holding.execution
    } else if pattern.contains("/test-runs/{id}") {
        holding.run
    } else if pattern.contains("/test-cases/{id}") {
        holding.test_case
    } else if pattern.contains("/failure-clusters/{id}") {
        holding.cluster
    } else if pattern.contains("/cluster-merge-suggestions/{id}") {
        holding.suggestion
    } else if pattern.contains("/failure-diagnoses/{id}") {
        holding.diagnosis
    } else if pattern.contains("/links/{id}") {
        holding.link
    } else if pattern.contains("/markers/{id}") {
        holding.marker
    } else if pattern.contains("/test-functions/{id}") {
        holding.function
    } else if pattern.contains("/exports/{id}") {
        holding.export
    } else if pattern.contains("/gate-policies/{id}") {
        holding.policy
    } else if pattern.contains("/projects/{id}") {
        holding.project
    } else {
        Holding::MISSING
    };
    let rest = if route.id == RouteId::GetFile { holding.file.to_string() } else { "index.html".to_owned() };
    let of_execution = format!("?executionId={}", holding.execution);
    let query = match route.id {
        RouteId::RunCulprit => of_execution.as_str(),
        RouteId::ExportRun => "?format=ndjson",
        RouteId::TraceNetworkBody | RouteId::RunExecutionNetworkBody => "?sha1=0",
        _ => "",
    };
    pattern
        .replace("{id}", &id.to_string())
        .replace("{keyId}", "1")
        .replace("{caseId}", &holding.execution.to_string())
        .replace("{testCaseId}", &holding.test_case.to_string())
        .replace("{sessionId}", &"0".repeat(32))
        .replace("{provider}", "idp")
        .replace("{sha}", "0a1b2c3d")
        .replace("{grant}", "AAAA")
        .replace("{ticket}", &"0".repeat(64))
        .replace("{file}", "sbg_nothing.svg")
        .replace("{*path}", &rest)
        + query
}

/// A body that the handler accepts, so that nothing but access decides.
pub(super) fn fields(route: &Route, holding: &Holding) -> Value {
    match route.id {
        RouteId::PlanUploads => {
            let file = json!({ "sha256": "0".repeat(64), "size": 1, "kind": "trace" });
            json!({ "projectName": holding.name, "files": [file] })
        }
        RouteId::CommitUploads => json!({ "projectName": holding.name, "items": [] }),
        RouteId::GateRun => json!({ "maxFailed": 0 }),
        RouteId::EditRun | RouteId::PutRun => json!({ "label": "a label" }),
        RouteId::CreateGatePolicy => json!({ "name": "a policy", "policy": { "maxFailed": 0 } }),
        RouteId::EditGatePolicy | RouteId::PutGatePolicy => json!({ "isDefault": true }),
        RouteId::EditUser | RouteId::PutUser => json!({ "name": "Another" }),
        RouteId::SetProjectMembers => json!({ "userIds": [] }),
        RouteId::SetUserProjects => json!({ "isGlobal": false, "projectIds": [] }),
        RouteId::CreateApiKey => json!({ "name": "a key" }),
        RouteId::SetAside | RouteId::ClassifyFlaky => json!({ "testCaseId": holding.test_case }),
        RouteId::CreateMarker | RouteId::EditMarker | RouteId::PutMarker => {
            json!({ "label": "Release", "occurredAt": "2026-01-01T10:00:00.000Z", "category": "release" })
        }
        RouteId::DeleteProject => json!({ "confirm": "not its name" }),
        RouteId::LocatorPick | RouteId::RunExecutionPick => {
            json!({ "pickedLocator": { "locator": "getByText('x')", "method": "getByText", "args": ["x"], "score": 90 } })
        }
        RouteId::BulkClusters => json!({ "ids": [], "note": "known" }),
        RouteId::EditCluster | RouteId::PutCluster => json!({ "title": "Another" }),
        RouteId::SetClusterStatus => json!({ "status": "ignored" }),
        RouteId::SetClusterBaseCommit => json!({ "commit": null }),
        RouteId::DiagnosisFeedback => json!({ "feedback": "up" }),
        RouteId::FindCulprit => json!({ "executionId": holding.execution }),
        RouteId::MergeCluster => json!({ "intoId": holding.cluster }),
        RouteId::ExtractCases => json!({ "testCaseIds": [holding.test_case] }),
        RouteId::EditLink | RouteId::PutLink => json!({ "title": "Another" }),
        RouteId::EditProject | RouteId::PutProject => json!({ "label": "Another" }),
        RouteId::EditProjectRetention | RouteId::PutProjectRetention => json!({ "runs": { "days": 90 } }),
        RouteId::EditProjectFlakiness | RouteId::PutProjectFlakiness => json!({ "minRuns": 30 }),
        RouteId::CreateTestFunction => json!({
            "name": "pay", "kind": "helper", "module": "./pages/checkout",
            "steps": [{ "action": "goto", "value": "/" }],
        }),
        RouteId::EditTestFunction | RouteId::PutTestFunction => json!({ "name": "pay" }),
        _ => json!({
            "projectName": holding.name, "status": "passed", "startTime": "2026-01-01T10:00:00.000Z",
            "duration": 1, "testCases": [],
        }),
    }
}
