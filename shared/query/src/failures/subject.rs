//! The execution a question is about, with the evidence of the attempt that
//! failed, and the last time its test passed before.

use callboard_auth::scope::Authorized;
use callboard_domain::attempts::{AttemptView, EvidenceSlice};
use callboard_domain::evidence::Evidence;
use callboard_domain::failure::{ErrorText, Signature, SourceText, signature};
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::lane::LaneKey;
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::time::{Day, Timestamp};
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionRow, HistoryFilter, Walk};
use callboard_store::runs::RunRow;
use callboard_store::test_cases::{self, TestCaseRow};
use callboard_store::{StoreError, evidence, lanes, rollups};
use tokio::sync::OnceCell;

use crate::baseline;
use crate::runs::required_run;
use crate::{Context, Entity, QueryError, Result};
use callboard_ingest::{read_session_with_fresh_aggregates, stored_attempts};

/// How far back a pass is looked for, days.
const MAX_DAYS: i64 = 595;

/// An execution and what is known of it.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) row: ExecutionRow,
    pub(super) run: RunRow,
    pub(super) case: TestCaseRow,
    /// Retry and repetition of the attempt that is spoken of.
    pub(super) attempt: (u32, u32),
    pub(super) status: TestStatus,
    /// Of that attempt; empty when it brought none.
    pub(super) evidence: Evidence,
    /// Asked once, however many of those who look at the execution want it.
    last: OnceCell<Option<LastPass>>,
}

/// The last time a test passed before an execution.
#[derive(Debug)]
pub(super) struct LastPass {
    pub(super) row: ExecutionRow,
    pub(super) run: RunRow,
    evidence: OnceCell<Evidence>,
}

impl LastPass {
    /// Evidence of its deciding attempt; empty when it has none. Read once.
    pub(super) async fn evidence(&self, ctx: &Context) -> Result<&Evidence> {
        self.evidence
            .get_or_try_init(async || match self.row.evidence {
                Some(slice) => Ok(evidence::read(&ctx.store, self.row.project, &slice).await?),
                None => Ok(Evidence::default()),
            })
            .await
    }

    /// Source of the test as it was then. Clients send it with attempts that
    /// fail: of one that passed on the first attempt there is mostly none, but an attempt that
    /// failed before it passed in the same run had the same source.
    pub(super) async fn test_source(&self, ctx: &Context) -> Result<Option<String>> {
        let own = self.evidence(ctx).await?.test_source.clone();
        if own.is_some() || self.row.outcome != Outcome::Flaky {
            return Ok(own);
        }
        let decision = stored_attempts(&self.row)?.decide();
        let attempts = decision.iter().flat_map(|decision| decision.attempts.iter().rev());
        let failed = attempts.filter(|view| has_failed(view)).find_map(|view| view.attempt.evidence.as_ref());
        let Some(slice) = failed else { return Ok(None) };
        Ok(evidence::read(&ctx.store, self.row.project, slice).await?.test_source)
    }
}

/// Whether an attempt counts as failed.
fn has_failed(view: &AttemptView) -> bool {
    matches!(view.attempt.status, TestStatus::Failed | TestStatus::TimedOut) && !view.superseded
}

/// The attempt of an execution that is spoken of: of a flaky test, what failed
/// is of interest, not what passed in the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpokenOf {
    /// Its retry and repetition.
    attempt: (u32, u32),
    status: TestStatus,
    /// Where its evidence lies.
    pub(super) evidence: Option<EvidenceSlice>,
}

impl SpokenOf {
    pub(super) fn from_row(row: &ExecutionRow) -> Result<Self> {
        let decision =
            stored_attempts(row)?.decide().ok_or(StoreError::Damaged("an execution without attempts"))?;
        let has_evidence = |view: &&AttemptView| view.attempt.evidence.is_some();
        let mut failed = decision.attempts.iter().rev().filter(|view| has_failed(view));
        let spoken_of = decision
            .failed_attempt()
            .filter(has_evidence)
            .or_else(|| failed.find(has_evidence))
            .or_else(|| decision.attempts.iter().find(|view| view.deciding));
        let view = spoken_of
            .or(decision.attempts.last())
            .ok_or(StoreError::Damaged("an execution without attempts"))?;
        Ok(Self {
            attempt: (view.attempt.retry, view.repetition),
            status: view.attempt.status,
            evidence: view.attempt.evidence,
        })
    }
}

/// Whether an outcome is a pass.
const PASSES: [Outcome; 2] = [Outcome::Passed, Outcome::Flaky];

impl Subject {
    /// Reads an execution: one ranged read of one object.
    pub(super) async fn read(ctx: &Context, project: Authorized<ProjectId>, id: ExecutionId) -> Result<Self> {
        let project = project.get();
        let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
        let row = executions::get(&mut session, project, id).await?;
        let row = row.ok_or_else(|| QueryError::not_found(Entity::Execution, id))?;
        let run = required_run(&mut session, project, row.run).await?;
        let case = test_cases::get(&mut session, project, row.test_case).await?;
        let case = case.ok_or(StoreError::Damaged("an execution without a test case"))?;
        drop(session);
        let spoken_of = SpokenOf::from_row(&row)?;
        let evidence = match spoken_of.evidence {
            Some(slice) => evidence::read(&ctx.store, project, &slice).await?,
            None => Evidence::default(),
        };
        Ok(Self::from_row((row, run, case), spoken_of, evidence))
    }

    /// An execution of which everything is read already.
    pub(super) fn from_row(
        (row, run, case): (ExecutionRow, RunRow, TestCaseRow),
        spoken_of: SpokenOf,
        evidence: Evidence,
    ) -> Self {
        let SpokenOf { attempt, status, .. } = spoken_of;
        Self { last: OnceCell::new(), attempt, status, evidence, row, run, case }
    }

    /// Whether the attempt that is spoken of failed.
    pub(super) const fn has_failed(&self) -> bool {
        matches!(self.status, TestStatus::Failed | TestStatus::TimedOut)
    }

    /// The whole error as text, without colours.
    pub(super) fn error(&self) -> Option<String> {
        let error = self.evidence.error.as_deref().or(self.row.facts.error_summary.as_deref())?;
        Some(callboard_domain::text::strip_ansi(error).into_owned())
    }

    /// What kind of failure it is.
    pub(super) fn signature(&self) -> Option<Signature> {
        let error = self.error()?;
        let source = self.evidence.test_source_frames.first().map(|frame| SourceText {
            text: &frame.snippet,
            first_line: 1,
            line: None,
        });
        signature(&ErrorText::split(&error), source.as_slice())
    }

    /// The last time the test passed before: [`last_passed`].
    pub(super) async fn last_passed(&self, ctx: &Context) -> Result<Option<&LastPass>> {
        let last = self.last.get_or_try_init(async || {
            let found = last_passed(&mut ctx.store.db().read().await?, &self.row, &self.run).await?;
            Ok::<_, QueryError>(found.map(|(row, run)| LastPass { row, run, evidence: OnceCell::new() }))
        });
        Ok(last.await?.as_ref())
    }
}

/// The last time a test passed in the browser project of `row`, in a run
/// before `run`: on the same branch and in the same environment, else on the
/// default branch in that environment, else there in any; anywhere, as long as
/// no default branch is known. The ladder of a run's baseline.
pub(super) async fn last_passed(
    session: &mut Session,
    row: &ExecutionRow,
    run: &RunRow,
) -> Result<Option<(ExecutionRow, RunRow)>> {
    let project = row.project;
    if let Some(found) = newest_pass(session, row, run, Some(vec![row.lane_id]), Some(row.lane_id)).await? {
        return Ok(Some(found));
    }
    let Some(branch) = baseline::default_branch(session, project).await? else {
        let lane = lanes::find_lane(session, project, &LaneKey::asked(None, None)).await?;
        return newest_pass(session, row, run, None, lane).await;
    };
    let whole = lanes::find_lane(session, project, &LaneKey::asked(Some(&branch), None)).await?;
    let mut seen = vec![row.lane_id];
    for environments in baseline::environments_of(run) {
        let mut lanes =
            lanes::specific(session, project, std::slice::from_ref(&branch), &environments).await?;
        lanes.retain(|lane| !seen.contains(lane));
        seen.extend(&lanes);
        let lane = if let [only] = lanes[..] { Some(only) } else { whole };
        if !lanes.is_empty()
            && let Some(found) = newest_pass(session, row, run, Some(lanes), lane).await?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The newest pass before `run` in some lanes; `lane` is the one that counts
/// what happens in all of them.
async fn newest_pass(
    session: &mut Session,
    row: &ExecutionRow,
    run: &RunRow,
    lanes: Option<Vec<i64>>,
    lane: Option<i64>,
) -> Result<Option<(ExecutionRow, RunRow)>> {
    let project = row.project;
    let mut newest = run.order_at.day();
    let mut first_seen = Day(newest.0 - MAX_DAYS);
    // What is counted of the test tells where to begin, and of many that fail that they never passed.
    let state = match lane {
        Some(lane) => rollups::state(session, project, lane, row.test_case).await?,
        None => None,
    };
    if let Some(state) = state {
        match state.last_passed() {
            Some((passed_at, _)) => newest = newest.min(passed_at.day()),
            None if state.counts().passed_tests == 0 => return Ok(None),
            None => {}
        }
        first_seen = first_seen.max(state.first_seen_at().day());
    }
    let wanted = HistoryFilter {
        lanes,
        browser: Some(row.browser_id),
        outcomes: Some(PASSES.map(Outcome::code).to_vec()),
        to: Some(Timestamp(run.order_at.millis() - 1)),
        ..HistoryFilter::default()
    };
    let walk = Walk { project, test_case: row.test_case, wanted: &wanted, newest, first_seen, limit: 1 };
    let found = walk.executions(session).await?.rows.into_iter().next();
    let Some((_, row)) = found else { return Ok(None) };
    let run = required_run(session, project, row.run).await?;
    Ok(Some((row, run)))
}
