//! `get_run_insights`: what is remarkable about a run.

use callboard_auth::routes::Roles;
use callboard_domain::ids::RunId;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_query::insights::{self, InsightTest, KnownCause, NewCluster, WorkerLoad};
use callboard_query::runs;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::short_commit;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Most rows of a list.
const LISTED: usize = 15;
/// From how much more than the mean on a worker is told of.
const IMBALANCE: f64 = 0.5;

pub(super) static TOOL: Tool = Tool {
    name: "get_run_insights",
    title: "Run insights",
    description: "Highlights of a run: new regressions, recurrences, recovered, newly flaky, slow and \
                  changed tests, worker imbalance, new failure clusters and known causes. Without a baseline, comparison fields are absent.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::id("runId", "list_runs or list_recent_activity").also(&["id"])],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[schema(value_type = i64)]
    run_id: RunId,
    #[schema(value_type = String)]
    run_status: RunStatus,
    /// Why the run is not green beyond its failed tests.
    status_reason: Option<String>,
    has_baseline: bool,
    baseline: Option<Green>,
    total_tests: i64,
    passed_tests: i64,
    failed_tests: i64,
    flaky_tests: i64,
    pass_rate: Option<f64>,
    baseline_pass_rate: Option<f64>,
    pass_rate_delta: Option<f64>,
    avg_duration_delta: Option<i64>,
    new_regressions: Option<Vec<InsightTest>>,
    new_regressions_count: Option<i64>,
    recurrences: Option<Vec<InsightTest>>,
    recurrences_count: Option<i64>,
    recovered: Option<Vec<InsightTest>>,
    recovered_count: Option<i64>,
    new_flaky: Option<Vec<InsightTest>>,
    new_flaky_count: Option<i64>,
    flaky_on_retry: Option<Vec<InsightTest>>,
    flaky_on_retry_count: Option<i64>,
    slowest_tests: Vec<InsightTest>,
    most_improved: Option<Vec<InsightTest>>,
    most_regressed: Option<Vec<InsightTest>>,
    worker_imbalance: Vec<Worker>,
    worker_imbalance_count: Option<i64>,
    worker_imbalance_warning: Option<String>,
    cluster_new: Vec<NewCluster>,
    cluster_new_count: Option<i64>,
    known_causes: Vec<KnownCause>,
    known_causes_count: Option<i64>,
    url: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Green {
    run_id: i64,
    branch: Option<String>,
    commit: Option<String>,
    #[schema(value_type = String)]
    started_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Worker {
    worker_index: i64,
    count: i64,
}

impl From<WorkerLoad> for Worker {
    fn from(load: WorkerLoad) -> Self {
        Self { worker_index: load.worker_index, count: load.tests }
    }
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let run_id: RunId = asked.argument("runId")?;
    let context = asked.context;
    let project = context.run(run_id).await?;
    let found = insights::of_run(&context.query, project, run_id).await?;
    let run = runs::get(&context.query, project, run_id).await?.brief;
    let counts = found.counts;
    let (new_regressions, new_regressions_count) = head(found.new_regressions, counts.new_regressions);
    let (recurrences, recurrences_count) = head(found.recurrences, counts.recurrences);
    let (recovered, recovered_count) = head(found.recovered, counts.recovered);
    let (new_flaky, new_flaky_count) = head(found.new_flaky, counts.new_flaky);
    let (flaky_on_retry, flaky_on_retry_count) =
        head(Some(found.flaky_on_retry), Some(counts.flaky_on_retry));
    let (workers, worker_imbalance_count) = cut(found.workers, counts.workers);
    let (cluster_new, cluster_new_count) = cut(found.new_clusters, counts.new_clusters);
    let (known_causes, known_causes_count) = cut(found.known_causes, counts.known_causes);
    answer(&Output {
        run_id,
        run_status: run.status,
        status_reason: run.status_reason,
        has_baseline: found.has_baseline,
        baseline: found.baseline.map(|green| Green {
            run_id: green.run_id,
            branch: green.branch,
            commit: short_commit(green.commit),
            started_at: green.start_time,
        }),
        total_tests: found.totals.total_tests,
        passed_tests: found.totals.passed_tests,
        failed_tests: found.totals.failed_tests,
        flaky_tests: found.totals.flaky_tests,
        pass_rate: found.pass_rate,
        baseline_pass_rate: found.baseline_pass_rate,
        pass_rate_delta: found.pass_rate_delta,
        avg_duration_delta: found.avg_duration_delta,
        new_regressions,
        new_regressions_count,
        recurrences,
        recurrences_count,
        recovered,
        recovered_count,
        new_flaky,
        new_flaky_count,
        flaky_on_retry,
        flaky_on_retry_count,
        slowest_tests: found.slowest_tests,
        most_improved: found.most_improved,
        most_regressed: found.most_regressed,
        worker_imbalance_warning: warning(found.worker_imbalance),
        worker_imbalance: workers.into_iter().map(Worker::from).collect(),
        worker_imbalance_count,
        cluster_new,
        cluster_new_count,
        known_causes,
        known_causes_count,
        url: context.query.links.run(run_id.get()),
    })
}

/// The head of a list, and the length of the whole one when that is more.
fn head(list: Option<Vec<InsightTest>>, count: Option<i64>) -> (Option<Vec<InsightTest>>, Option<i64>) {
    let Some(list) = list else { return (None, None) };
    let (list, count) = cut(list, count.unwrap_or_default());
    (Some(list), count)
}

/// The same of a list that is always there.
fn cut<T>(mut list: Vec<T>, count: i64) -> (Vec<T>, Option<i64>) {
    list.truncate(LISTED);
    let shown = i64::try_from(list.len()).unwrap_or(i64::MAX);
    (list, Some(count).filter(|count| *count > shown))
}

fn warning(imbalance: Option<f64>) -> Option<String> {
    let more = imbalance.filter(|imbalance| *imbalance >= IMBALANCE)?;
    Some(format!("The busiest worker took {:.0} % longer than the mean of all.", more * 100.0))
}
