//! Why the flaky tests of a run are flaky: gathers what is stored of their
//! newest executions for the method that judges it.
//!
//! Evidence is read while no session is held: a job must not keep the others
//! from the database while it waits for objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::attempts::{Attempt, EvidenceSlice};
use callboard_domain::evidence::Evidence;
use callboard_domain::explain::received;
use callboard_domain::failure::{ErrorText, signature};
use callboard_domain::flakiness::{
    self, Beside, DEFAULT_WINDOW, FailingAttempt, Place, RootCause, assess, categorise,
};
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::TestState;
use callboard_domain::text::strip_ansi;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, ExecutionRow, HistoryFilter, Walk};
use callboard_store::runs::{self, RunRow};
use callboard_store::{evidence, lanes, rollups, test_cases};
use serde::Deserialize;
use serde_json::Value;

use super::chunk::stored_attempts;
use super::counting::counted;
use crate::flakiness::exact::Series;
use crate::flakiness::{JudgedLane, judged_lane};
use crate::test_cases::LaneQuery;
use crate::{Context, Entity, QueryError, Result};

/// Failed and flaky tests of a run whose causes are looked for.
const MOST_TESTS: i64 = 200;
/// Newest decided executions of a test that are read for its cause.
const ROWS: i64 = 50;
/// Failing attempts whose evidence is read; of older ones the first line of the
/// error has to do.
const LOOKED_INTO: usize = 20;
/// Passes whose evidence is read: of so many one is the twentieth part that
/// may show an error that failures show.
const PASSES: usize = 20;

/// Hosts of runs, read once for all tests of a run.
type Hosts = HashMap<RunId, Option<String>>;

/// Finds out why those tests are flaky that failed or flaked in the run.
pub(super) async fn find_causes(ctx: &Context, run: RunRow) -> Result<()> {
    let (project, id, totals) = (run.project, run.id, &run.totals);
    let troubled = totals.failed_tests + totals.timed_out_tests + totals.flaky_tests;
    if !run.status.is_final() || run.totals_from_rows && troubled == 0 {
        return Ok(());
    }
    let mut session = ctx.store.db().read().await?;
    let filter = ExecutionFilter {
        outcomes: Some([Outcome::Failed, Outcome::TimedOut, Outcome::Flaky].map(Outcome::code).to_vec()),
        ..ExecutionFilter::default()
    };
    let order = ExecutionOrder::Trouble(None);
    let rows = executions::list(&mut session, project, id, &filter, &order, MOST_TESTS).await?;
    let cases: BTreeSet<i64> = rows.iter().map(|row| row.test_case.get()).collect();
    if cases.is_empty() {
        return Ok(());
    }
    let Some(lane) = judged_lane(&mut session, project, &LaneQuery::default()).await? else {
        return Ok(());
    };
    let states =
        rollups::scores::states_of(&mut session, project, lane.id, cases.into_iter().collect()).await?;
    let mut flaky = Vec::new();
    for (case, state) in states {
        let is_listed = flakiness::class_of(&state, lane.believes_failures).is_listed();
        if is_listed || is_flaky_without_retries(&mut session, &run, lane, case, &state, &rows).await? {
            flaky.push((case, state));
        }
    }
    drop(session);
    let (mut found, mut hosts) = (BTreeMap::new(), Hosts::new());
    for (case, state) in flaky {
        found.insert(case, cause_of(ctx, project, case, &state, &mut hosts).await?);
    }
    let mut session = ctx.store.db().begin().await?;
    for (case, cause) in found {
        test_cases::set_root_cause(&mut session, project, case, cause.as_str()).await?;
    }
    session.commit().await?;
    Ok(())
}

/// Whether a test that is never retried is flaky by its commits, which its
/// recent history does not hold. Of one that did not fail, pass and fail again
/// they say nothing, and most broken tests did not.
async fn is_flaky_without_retries(
    session: &mut Session,
    run: &RunRow,
    lane: JudgedLane,
    case: TestCaseId,
    state: &TestState,
    rows: &[ExecutionRow],
) -> Result<bool> {
    let Some(found) = assess(state.recent(), lane.window(DEFAULT_WINDOW)) else { return Ok(false) };
    if found.evidence.retry_passes > 0 || found.evidence.alternations < 3 {
        return Ok(false);
    }
    let branch = match lane.believes_failures {
        true => lanes::place_of(session, run.project, lane.id).await?.map(|(branch, _)| branch),
        false => None,
    };
    let lanes = match branch {
        Some(branch) => Some(lanes::specific(session, run.project, &[branch], &[]).await?),
        None => None,
    };
    for row in rows.iter().filter(|row| row.test_case == case) {
        let series = Series {
            project: run.project,
            test_case: case,
            browser: row.browser_id,
            lanes: lanes.clone(),
            until: (run.order_at, row.id),
            first_seen: state.first_seen_at().day(),
            failures: lane.believes_failures,
        };
        if series.posterior(session).await?.class.is_listed() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finds out why a test is flaky, and notes it.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn classify(ctx: &Context, project: Authorized<ProjectId>, case: TestCaseId) -> Result<RootCause> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
    let lane = lanes::find_lane(&mut session, project, &LaneQuery::default().key()).await?;
    let state = match lane {
        Some(lane) => rollups::state(&mut session, project, lane, case).await?,
        None => None,
    };
    drop(session);
    let state = state.ok_or_else(|| QueryError::not_found(Entity::TestCase, case))?;
    let cause = cause_of(ctx, project, case, &state, &mut Hosts::new()).await?;
    let mut session = ctx.store.db().begin().await?;
    test_cases::set_root_cause(&mut session, project, case, cause.as_str()).await?;
    session.commit().await?;
    Ok(cause)
}

async fn cause_of(
    ctx: &Context,
    project: ProjectId,
    case: TestCaseId,
    state: &TestState,
    hosts: &mut Hosts,
) -> Result<RootCause> {
    let mut session = ctx.store.db().read().await?;
    let decided = [Outcome::Failed, Outcome::TimedOut, Outcome::Flaky, Outcome::Passed];
    // A run that failed as a whole says nothing of its tests, as in their scores.
    let filter = HistoryFilter {
        outcomes: Some(decided.map(Outcome::code).to_vec()),
        without_mass_failures: true,
        ..HistoryFilter::default()
    };
    let walk = Walk {
        project,
        test_case: case,
        wanted: &filter,
        newest: state.last_day(),
        first_seen: state.first_seen_at().day(),
        limit: ROWS,
    };
    let rows = walk.executions(&mut session).await?.rows;
    let rows: Vec<ExecutionRow> = rows.into_iter().map(|(_, row)| row).collect();
    let browsers = lanes::browsers(&mut session, project).await?;
    let lane_ids: BTreeSet<i64> = rows.iter().map(|row| row.lane_id).collect();
    let environments: HashMap<i64, String> =
        lanes::environments_of(&mut session, project, lane_ids.into_iter().collect())
            .await?
            .into_iter()
            .collect();
    let unknown: BTreeSet<RunId> =
        rows.iter().map(|row| row.run).filter(|run| !hosts.contains_key(run)).collect();
    if !unknown.is_empty() {
        let ids = unknown.iter().map(|run| run.get()).collect();
        let told = runs::metadata_of(&mut session, project, ids).await?;
        hosts.extend(unknown.into_iter().map(|run| (run, None)));
        hosts.extend(told.into_iter().map(|(run, metadata)| (run, host(&metadata))));
    }
    drop(session);
    let mut places = places(&rows, "browser project", |row| {
        browsers.iter().find(|browser| browser.id == row.browser_id).map(|browser| browser.name.clone())
    });
    places.extend(self::places(&rows, "environment", |row| environments.get(&row.lane_id).cloned()));
    places.extend(self::places(&rows, "shard", |row| row.facts.shard_index.map(|shard| shard.to_string())));
    places.extend(self::places(&rows, "host", |row| hosts.get(&row.run).cloned().flatten()));

    let mut attempts = Vec::new();
    for row in &rows {
        let all = stored_attempts(row)?.attempts();
        for attempt in all.into_iter().rev().filter(|attempt| attempt.status.is_failing()) {
            let is_read = attempts.len() < LOOKED_INTO;
            attempts.push(failing(ctx, row, &attempt, is_read).await);
        }
    }
    let mut passes = Vec::new();
    for row in rows.iter().filter(|row| row.outcome == Outcome::Passed).take(PASSES) {
        let told = match row.evidence {
            Some(slice) => look_into(ctx, project, slice).await.as_ref().map(Beside::of),
            None => nothing_beside(row.facts.console, row.facts.network),
        };
        passes.extend(told);
    }
    Ok(categorise(&attempts, &passes, &places).cause)
}

/// What is stored of an attempt that failed.
async fn failing(ctx: &Context, row: &ExecutionRow, attempt: &Attempt, is_read: bool) -> FailingAttempt {
    let found = match attempt.evidence.filter(|_| is_read) {
        Some(slice) => look_into(ctx, row.project, slice).await,
        None => None,
    };
    let whole = found.as_ref().and_then(|found| found.error.as_deref());
    let error = whole.or(attempt.facts.error_summary.as_deref()).map(strip_ansi);
    let failure = error.as_deref().and_then(|error| match &found {
        Some(found) => found.failure_of(error),
        None => signature(&ErrorText::split(error), &[]),
    });
    FailingAttempt {
        failure,
        received: error.as_deref().and_then(received).map(|(_, received)| received),
        timed_out: attempt.status == TestStatus::TimedOut,
        duration_ms: attempt.duration_ms,
        timeout_ms: attempt.facts.timeout_ms.or(row.facts.timeout_ms),
        passed_on_retry: row.outcome == Outcome::Flaky,
        beside: match &found {
            Some(found) => Some(Beside::of(found)),
            // Counted, but not looked into or not readable: nobody knows.
            None => nothing_beside(attempt.facts.console, attempt.facts.network),
        },
    }
}

/// Evidence of an attempt. What is gone meanwhile, or damaged, is not known;
/// a job that could never end for it would keep the run from being judged.
async fn look_into(ctx: &Context, project: ProjectId, slice: EvidenceSlice) -> Option<Evidence> {
    match evidence::read(&ctx.store, project, &slice).await {
        Ok(found) => Some(found),
        Err(error) => {
            tracing::warn!(%project, pack = %slice.pack, %error, "evidence could not be read");
            None
        }
    }
}

/// What is known of an attempt without evidence: that nothing happened beside
/// it, when nothing was counted.
fn nothing_beside(console: i64, network: i64) -> Option<Beside> {
    (console == 0 && network == 0).then(Beside::default)
}

/// What the metadata of a run tells of the machine it ran on.
fn host(metadata: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Metadata {
        host: Value,
    }
    let metadata: Metadata = serde_json::from_str(metadata).ok()?;
    let host = match metadata.host {
        Value::String(name) => name,
        Value::Object(parts) => {
            let told = ["name", "hostname", "os", "arch"].map(|key| parts.get(key).and_then(Value::as_str));
            told.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        _ => return None,
    };
    (!host.is_empty()).then_some(host)
}

/// Counts executions by where they ran; those that do not say are left out.
fn places(
    rows: &[ExecutionRow],
    kind: &'static str,
    name: impl Fn(&ExecutionRow) -> Option<String>,
) -> Vec<Place> {
    let named = rows.iter().filter_map(|row| {
        let failed = usize::from(row.outcome != Outcome::Passed);
        Some((name(row)?, 1, failed))
    });
    Place::count(kind, named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_by_what_the_metadata_says() {
        let told = host(r#"{"host":{"os":"Linux 6.1","arch":"arm64","node":"v22"}}"#);
        assert_eq!(told.as_deref(), Some("Linux 6.1 arm64"));
        assert_eq!(host(r#"{"host":"runner-7"}"#).as_deref(), Some("runner-7"));
        assert_eq!((host(r#"{"host":{}}"#), host(r#"{"host":3}"#), host("{}")), (None, None, None));
    }
}
