//! Why the flaky tests of a run are flaky: gathers what is stored of their
//! newest executions for the method that judges it.
//!
//! Evidence is read while no session is held: a job must not keep the others
//! from the database while it waits for objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::attempts::{Attempt, EvidenceSlice};
use callboard_domain::audit::AuditAction;
use callboard_domain::evidence::Evidence;
use callboard_domain::explain::received;
use callboard_domain::failure::{ErrorText, Fingerprint, Signature, signature};
use callboard_domain::flakiness::{
    self, Beside, DEFAULT_WINDOW, FailingAttempt, Place, RootCause, assess, categorise,
};
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::TestState;
use callboard_domain::text::strip_ansi;
use callboard_ingest::{read_session_with_fresh_aggregates, stored_attempts};
use callboard_store::db::Session;
use callboard_store::evidence::{self, Located};
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, ExecutionRow, HistoryFilter, Walk};
use callboard_store::runs::{self, RunRow};
use callboard_store::{lanes, rollups, test_cases};
use serde::Deserialize;
use serde_json::{Value, json};

use super::exact::Series;
use super::{JudgedLane, judged_lane};
use crate::accounts::Acting;
use crate::test_cases::LaneQuery;
use crate::{Context, Entity, QueryError, Result};

/// Failed and flaky tests of a run whose causes are looked for.
const MOST_TESTS: i64 = 200;
/// How often tests are judged that run again meanwhile.
const ROUNDS: usize = 3;
/// Newest decided executions of a test that are read for its cause.
const ROWS: i64 = 50;
/// Failing attempts whose evidence is read; of older ones the first line of the
/// error has to do.
const LOOKED_INTO: usize = 20;
/// Passes whose evidence is read: of so many one is the twentieth part that
/// may show an error that failures show.
const PASSES: usize = 20;

/// What was read and told of executions so far: tests of one run share most of it.
#[derive(Default)]
struct Learned {
    browsers: Option<HashMap<i64, String>>,
    /// By lane.
    environments: HashMap<i64, Option<String>>,
    hosts: HashMap<RunId, Option<String>>,
    /// What errors say, by their fingerprint, and whether they were read whole.
    failures: HashMap<(Fingerprint, bool), Option<Signature>>,
}

impl Learned {
    /// Reads what is not known of some executions.
    async fn learn(
        &mut self,
        session: &mut Session,
        project: ProjectId,
        rows: &[ExecutionRow],
    ) -> Result<()> {
        if self.browsers.is_none() {
            let browsers = lanes::browsers(session, project).await?;
            self.browsers = Some(browsers.into_iter().map(|browser| (browser.id, browser.name)).collect());
        }
        let unknown: BTreeSet<i64> = rows.iter().map(|row| row.lane_id).collect();
        let unknown: Vec<i64> =
            unknown.into_iter().filter(|lane| !self.environments.contains_key(lane)).collect();
        if !unknown.is_empty() {
            self.environments.extend(unknown.iter().map(|lane| (*lane, None)));
            let told = lanes::environments_of(session, project, unknown).await?;
            self.environments.extend(told.into_iter().map(|(lane, environment)| (lane, Some(environment))));
        }
        let unknown: BTreeSet<RunId> = rows.iter().map(|row| row.run).collect();
        let unknown: Vec<RunId> = unknown.into_iter().filter(|run| !self.hosts.contains_key(run)).collect();
        if !unknown.is_empty() {
            let ids = unknown.iter().map(|run| run.get()).collect();
            self.hosts.extend(unknown.into_iter().map(|run| (run, None)));
            let told = runs::metadata_of(session, project, ids).await?;
            self.hosts.extend(told.into_iter().map(|(run, metadata)| (run, host(&metadata))));
        }
        Ok(())
    }

    /// Counts executions by everything that is known of where they ran.
    fn places(&self, rows: &[ExecutionRow]) -> Vec<Place> {
        let browser = |row: &ExecutionRow| self.browsers.as_ref()?.get(&row.browser_id).cloned();
        let mut places = places(rows, "browser project", browser);
        places.extend(self::places(rows, "environment", |row| {
            self.environments.get(&row.lane_id).cloned().flatten()
        }));
        places
            .extend(self::places(rows, "shard", |row| row.facts.shard_index.map(|shard| shard.to_string())));
        places.extend(self::places(rows, "host", |row| self.hosts.get(&row.run).cloned().flatten()));
        places
    }
}

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
            flaky.push(case);
        }
    }
    let all = lanes::find_lane(&mut session, project, &LaneQuery::default().key()).await?;
    drop(session);
    let Some(all) = all else { return Ok(()) };
    let mut learned = Learned::default();
    for round in 1..=ROUNDS {
        let judged = judge(ctx, (project, all), flaky, &mut learned).await?;
        flaky = note(ctx, (project, all), judged, round == ROUNDS).await?;
    }
    Ok(())
}

/// What was found of a test that ran so.
struct Judged {
    state: TestState,
    cause: RootCause,
}

/// Judges tests by how they ran in a lane up to now.
async fn judge(
    ctx: &Context,
    (project, lane): (ProjectId, i64),
    cases: Vec<TestCaseId>,
    learned: &mut Learned,
) -> Result<BTreeMap<TestCaseId, Judged>> {
    let mut judged = BTreeMap::new();
    if cases.is_empty() {
        return Ok(judged);
    }
    let mut session = ctx.store.db().read().await?;
    let ids = cases.into_iter().map(TestCaseId::get).collect();
    let states = rollups::scores::states_of(&mut session, project, lane, ids).await?;
    drop(session);
    for (case, state) in states {
        let cause = cause_of(ctx, project, case, &state, learned).await?;
        judged.insert(case, Judged { state, cause });
    }
    Ok(judged)
}

/// Notes what is not known of tests yet, but not of those that ran meanwhile:
/// these are given back, unless they are noted as well.
async fn note(
    ctx: &Context,
    (project, lane): (ProjectId, i64),
    mut judged: BTreeMap<TestCaseId, Judged>,
    is_last: bool,
) -> Result<Vec<TestCaseId>> {
    let ids = |judged: &BTreeMap<TestCaseId, Judged>| judged.keys().map(|case| case.get()).collect();
    if judged.is_empty() {
        return Ok(Vec::new());
    }
    // A transaction for what is known already would hold up those who write.
    let mut session = ctx.store.db().read().await?;
    let known = test_cases::root_causes(&mut session, vec![project.get()], ids(&judged)).await?;
    drop(session);
    judged.retain(|case, found| known.get(case).is_none_or(|known| known != found.cause.as_str()));
    if judged.is_empty() {
        return Ok(Vec::new());
    }
    let mut session = ctx.store.db().begin().await?;
    // Who judged later reads, and notes, behind this transaction.
    test_cases::lock(&mut session, project, ids(&judged)).await?;
    let now = rollups::scores::states_of(&mut session, project, lane, ids(&judged)).await?;
    let now: HashMap<TestCaseId, TestState> = now.into_iter().collect();
    let mut ran_meanwhile = Vec::new();
    for (case, found) in judged {
        if is_last || now.get(&case) == Some(&found.state) {
            test_cases::set_root_cause(&mut session, project, case, found.cause.as_str()).await?;
        } else {
            ran_meanwhile.push(case);
        }
    }
    session.commit().await?;
    Ok(ran_meanwhile)
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
pub async fn classify(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    case: TestCaseId,
) -> Result<RootCause> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let lane = lanes::find_lane(&mut session, project, &LaneQuery::default().key()).await?;
    let state = match lane {
        Some(lane) => rollups::state(&mut session, project, lane, case).await?,
        None => None,
    };
    drop(session);
    let state = state.ok_or_else(|| QueryError::not_found(Entity::TestCase, case))?;
    let cause = cause_of(ctx, project, case, &state, &mut Learned::default()).await?;
    let mut session = ctx.store.db().begin().await?;
    test_cases::set_root_cause(&mut session, project, case, cause.as_str()).await?;
    let detail = json!({ "rootCause": cause.as_str() });
    let target = ("test_case", case.get());
    let classified = AuditAction::TestClassified;
    let recorded = acting.record(&mut session, classified, target, Some(project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(cause)
}

async fn cause_of(
    ctx: &Context,
    project: ProjectId,
    case: TestCaseId,
    state: &TestState,
    learned: &mut Learned,
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
    learned.learn(&mut session, project, &rows).await?;
    let mut failures = Vec::new();
    for row in &rows {
        let all = stored_attempts(row)?.attempts();
        failures.extend(all.into_iter().rev().filter(|one| one.status.is_failing()).map(|one| (row, one)));
    }
    let passed: Vec<&ExecutionRow> =
        rows.iter().filter(|row| row.outcome == Outcome::Passed).take(PASSES).collect();
    let slices: Vec<EvidenceSlice> = failures
        .iter()
        .take(LOOKED_INTO)
        .filter_map(|(_, attempt)| attempt.evidence)
        .chain(passed.iter().filter_map(|row| row.evidence))
        .collect();
    let located = evidence::locate(&mut session, project, &slices).await?;
    drop(session);

    let mut attempts = Vec::with_capacity(failures.len());
    for (row, attempt) in failures {
        let slice = attempt.evidence.filter(|_| attempts.len() < LOOKED_INTO);
        let found = look_into(ctx, &located, slice).await;
        attempts.push(failing(row, &attempt, found.as_ref(), &mut learned.failures));
    }
    let mut passes = Vec::with_capacity(passed.len());
    for row in passed {
        passes.extend(match row.evidence {
            Some(_) => look_into(ctx, &located, row.evidence).await.as_ref().map(Beside::from_evidence),
            None => nothing_beside(row.facts.console, row.facts.network),
        });
    }
    let places = learned.places(&rows);
    Ok(categorise(&attempts, &passes, &places).cause)
}

/// What is stored of an attempt that failed, with its evidence if that was read.
fn failing(
    row: &ExecutionRow,
    attempt: &Attempt,
    found: Option<&Evidence>,
    known: &mut HashMap<(Fingerprint, bool), Option<Signature>>,
) -> FailingAttempt {
    let whole = found.and_then(|found| found.error.as_deref());
    let error = whole.or(attempt.facts.error_summary.as_deref()).map(strip_ansi);
    let read = || {
        error.as_deref().and_then(|error| match found {
            Some(found) => found.failure_of(error),
            None => signature(&ErrorText::split(error), &[]),
        })
    };
    let failure = match attempt.facts.fingerprint.filter(|_| error.is_some()) {
        Some(fingerprint) => known.entry((fingerprint, whole.is_some())).or_insert_with(read).clone(),
        None => read(),
    };
    FailingAttempt {
        failure,
        received: error.as_deref().and_then(received).map(|(_, received)| received),
        timed_out: attempt.status == TestStatus::TimedOut,
        duration_ms: attempt.duration_ms,
        timeout_ms: attempt.facts.timeout_ms.or(row.facts.timeout_ms),
        passed_on_retry: row.outcome == Outcome::Flaky,
        beside: match found {
            Some(found) => Some(Beside::from_evidence(found)),
            // Counted, but not looked into or not readable: nobody knows.
            None => nothing_beside(attempt.facts.console, attempt.facts.network),
        },
    }
}

/// Evidence of an attempt, if it has any. What is gone meanwhile, or damaged, is
/// not known; a job that could never end for it would keep the run from being
/// judged.
async fn look_into(ctx: &Context, located: &Located, slice: Option<EvidenceSlice>) -> Option<Evidence> {
    let slice = slice?;
    match located.read(&ctx.store, &slice).await {
        Ok(found) => Some(found),
        Err(error) => {
            tracing::warn!(pack = %slice.pack, %error, "evidence could not be read");
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
