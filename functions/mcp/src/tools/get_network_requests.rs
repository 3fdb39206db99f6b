//! `get_network_requests`: the endpoints that the tests of a run called.

use callboard_auth::routes::Roles;
use callboard_domain::ids::RunId;
use callboard_query::network::{self, NetworkRequests, RequestKey, RequestSort};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::clean::shortened;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

/// Characters of an entry of a backend's log.
const LOG_CHARS: usize = 300;

pub(super) static TOOL: Tool = Tool {
    name: "get_network_requests",
    title: "Network requests",
    description: "Endpoints the tests of a run called, the least reliable first: counts by status, error rate, \
                  durations, tests and backend logs. Only captured requests count: failing and slow ones. Status 0: \
                  no response.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("runId", "list_runs or list_recent_activity").also(&["id"]),
        Parameter::page_size(50, 30),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    method: String,
    route: String,
    count: i64,
    status_codes: String,
    error_rate: f64,
    avg_duration: i64,
    max_duration: i64,
    min_duration: i64,
    p90_duration: i64,
    test_cases: Vec<String>,
    server_logs: Vec<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let run_id: RunId = asked.argument("runId")?;
    let after: Option<RequestKey> = asked.after()?;
    let context = asked.context;
    let project = context.run(run_id).await?;
    let (sort, rows) = (RequestSort::ErrorRate, asked.page_size());
    let (found, _) = network::requests_of_run(&context.query, project, run_id, sort, after, rows).await?;
    asked.page(found.map(Row::from))
}

impl From<NetworkRequests> for Row {
    fn from(requests: NetworkRequests) -> Self {
        let codes: Vec<String> =
            requests.status_codes.iter().map(|(code, count)| format!("{code}×{count}")).collect();
        let logs = requests.server_logs.iter().map(|log| shortened(log, LOG_CHARS).into_owned());
        Self {
            count: requests.count,
            status_codes: codes.join(" "),
            error_rate: requests.error_rate,
            avg_duration: requests.avg_duration,
            max_duration: requests.max_duration,
            min_duration: requests.min_duration,
            p90_duration: requests.p90_duration,
            test_cases: requests.test_cases.into_iter().map(|test| test.title).collect(),
            server_logs: logs.collect(),
            method: requests.method,
            route: requests.route,
        }
    }
}
