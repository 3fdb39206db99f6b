//! The writer of a submission: one transaction for every so many entries, the
//! run held in `running` until the last of them.

use std::collections::HashMap;

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::ingest::RunFields;
use callboard_domain::lane::lanes_of;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;
use callboard_store::db::Session;
use callboard_store::evidence::{self, WrittenPack};
use callboard_store::ids::{self, Kind};
use callboard_store::projects::{self, Growth};
use callboard_store::rollups::{self, RunContribution};
use callboard_store::runs::{self, NewRun, RunDetails, RunRow};
use callboard_store::{StoreError, executions, lanes};

use super::chunk::{self, Folded, Group, Target};
use super::files::PublishedFile;
use super::outcome::{final_status, mean_and_p90};
use crate::{Context, QueryError, Result};

/// Most entries one transaction takes; a larger submission is written in
/// several, with the run held in `running` until the last.
const ENTRIES_PER_TRANSACTION: usize = 2_000;
/// Times a transaction is tried when the database ends it in favour of another.
const CONFLICT_ATTEMPTS: u32 = 5;

/// One submission on its way into the database.
pub(super) struct Writer<'a> {
    pub(super) ctx: &'a Context,
    pub(super) project: ProjectId,
    pub(super) fields: &'a RunFields,
    pub(super) start: Timestamp,
    pub(super) key: Option<[u8; 32]>,
    pub(super) span: Option<i64>,
    pub(super) now: Timestamp,
    pub(super) reserved: Option<RunId>,
    pub(super) files: HashMap<usize, Vec<PublishedFile>>,
    pub(super) slices: HashMap<usize, EvidenceSlice>,
    pub(super) pack: Option<&'a WrittenPack>,
    /// Whether committed rows point at the pack.
    pub(super) is_recorded: bool,
    /// The run this submission made, once a part of it is committed.
    pub(super) begun: Option<RunId>,
}

pub(super) type Written = (RunRow, bool, Vec<(usize, ExecutionId)>);

/// The lanes a run counts in.
struct Lanes {
    /// Branch, empty when none was told.
    branch: String,
    /// Environment, empty when none was told.
    environment: String,
    /// Ids, ascending.
    ids: Vec<i64>,
    /// The most specific of them.
    own: i64,
}

/// What one transaction wrote.
struct Step {
    run: RunRow,
    folded: Folded,
}

impl Writer<'_> {
    /// Writes everything; `None` when another caller took the start key first
    /// and nothing was written.
    pub(super) async fn write(&mut self, known: Option<RunId>, groups: &[Group]) -> Result<Option<Written>> {
        let lanes = self.open_lanes(known).await?;
        chunk::open_browsers(self.ctx, self.project, groups).await?;
        let chunks = chunks(groups);
        let mut run_id = known;
        let mut executions = Vec::new();
        let mut run = None;
        for (number, groups) in chunks.iter().enumerate() {
            let is_last = number + 1 == chunks.len();
            let Some(step) = self.step_or_retry(run_id, &lanes, groups, is_last).await? else {
                return Ok(None);
            };
            self.is_recorded |= step.folded.uses_evidence;
            if known.is_none() {
                self.begun = Some(step.run.id);
            }
            run_id = Some(step.run.id);
            executions.extend(step.folded.executions);
            run = Some(step.run);
        }
        Ok(run.map(|run| (run, known.is_some(), executions)))
    }

    async fn step_or_retry(
        &self,
        run: Option<RunId>,
        lanes: &Lanes,
        groups: &[Group],
        is_last: bool,
    ) -> Result<Option<Step>> {
        let mut attempt = 1;
        loop {
            match self.step(run, lanes, groups, is_last).await {
                Err(QueryError::Store(error)) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                    tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    /// One transaction: some groups, and the end of the run after the last.
    async fn step(
        &self,
        run: Option<RunId>,
        lanes: &Lanes,
        groups: &[Group],
        is_last: bool,
    ) -> Result<Option<Step>> {
        let mut session = self.ctx.store.db().begin().await?;
        let is_fresh = run.is_none();
        let id = match run {
            Some(id) => id,
            None => match self.create(&mut session, lanes).await? {
                Some(id) => id,
                None => return Ok(None),
            },
        };
        let mut run = runs::lock(&mut session, self.project, id).await?;
        let before = contribution(&run);
        let mut target = Target {
            run: &mut run,
            lanes: &lanes.ids,
            is_fresh,
            evidence: &self.slices,
            files: &self.files,
            now: self.now,
        };
        let folded = chunk::fold(&mut session, &mut target, groups).await?;
        if folded.uses_evidence
            && !self.is_recorded
            && let Some(pack) = self.pack
        {
            evidence::record(&mut session, self.project, id, pack, self.now).await?;
        }
        if is_last {
            self.finish(&mut session, &mut run).await?;
        }
        self.count(&mut session, &run, &lanes.ids, &folded, is_fresh, &before).await?;
        run.updated_at = self.now;
        runs::update(&mut session, &run).await?;
        lanes::touch(&mut session, self.project, &lanes.ids, run.order_at).await?;
        session.commit().await?;
        Ok(Some(Step { run, folded }))
    }

    /// The lanes of the run, made beforehand where they are missing: a lane
    /// that is being made holds up everyone who makes another.
    async fn open_lanes(&self, known: Option<RunId>) -> Result<Lanes> {
        let (branch, environment, at) = match known {
            Some(run) => {
                let row = runs::get(&mut self.ctx.store.db().read().await?, self.project, run).await?;
                let row = row.ok_or(StoreError::Damaged("a start key without a run"))?;
                (row.branch, row.environment, row.order_at)
            }
            None => {
                let branch = self.fields.origin.branch.clone().unwrap_or_default();
                (branch, self.fields.environment.clone().unwrap_or_default(), self.start)
            }
        };
        let word = |text: &String| (!text.is_empty()).then(|| text.clone());
        let mut ids = Vec::with_capacity(4);
        let mut own = 0;
        for key in lanes_of(word(&branch).as_deref(), word(&environment).as_deref()) {
            let found = lanes::find_lane(&mut self.ctx.store.db().read().await?, self.project, &key).await?;
            // The most specific lane comes last.
            own = match found {
                Some(id) => id,
                None => {
                    let mut session = self.ctx.store.db().begin().await?;
                    let id = lanes::lane(&mut session, self.project, &key, at).await?;
                    session.commit().await?;
                    id
                }
            };
            ids.push(own);
        }
        ids.sort_unstable();
        Ok(Lanes { branch, environment, ids, own })
    }

    /// Removes what nothing points at, and ends a run that cannot go on. What
    /// fails here is logged: the submission's own outcome is what counts.
    pub(super) async fn clean_up(&self, failure: Option<&QueryError>) {
        // A connection that broke may have broken after the commit: then rows
        // point at the pack, and an object too many is better than one too few.
        let may_be_committed = matches!(failure,
            Some(QueryError::Store(error)) if error.is_unavailable() && !error.is_conflict());
        if let Some(pack) = self.pack.filter(|_| !self.is_recorded && !may_be_committed)
            && let Err(error) = evidence::discard(&self.ctx.store, pack).await
        {
            tracing::warn!(%error, "an evidence pack that nothing points at could not be removed");
        }
        if let Some(run) = self.begun.filter(|_| failure.is_some())
            && let Err(error) = self.interrupt(run).await
        {
            tracing::warn!(%error, %run, "a run that broke off could not be ended");
        }
    }

    async fn interrupt(&self, id: RunId) -> Result<()> {
        let lanes = self.open_lanes(Some(id)).await?;
        let mut session = self.ctx.store.db().begin().await?;
        let mut run = runs::lock(&mut session, self.project, id).await?;
        if !run.status.is_final() {
            let before = contribution(&run);
            run.status = RunStatus::Interrupted;
            run.finished_at = Some(self.now);
            run.updated_at = self.now;
            // A final run counts on its day; what completes it later starts from that.
            self.count(&mut session, &run, &lanes.ids, &Folded::default(), false, &before).await?;
            runs::update(&mut session, &run).await?;
        }
        Ok(session.commit().await?)
    }

    /// Makes the run and its slot; `None` when the start key is taken.
    async fn create(&self, session: &mut Session, lanes: &Lanes) -> Result<Option<RunId>> {
        let f = self.fields;
        let id = match self.reserved {
            Some(id) => id,
            None => RunId(ids::allocate_one(session, Kind::Run).await?),
        };
        let taken =
            runs::add_finished_slot(session, self.project, id, self.key, f.status, f.duration_ms).await?;
        if !taken {
            return Ok(None);
        }
        let new = NewRun {
            lane_id: lanes.own,
            branch: lanes.branch.clone(),
            environment: lanes.environment.clone(),
            start_time: self.start,
            is_full: f.is_full_run,
            label: f.label.clone(),
            commit_sha: f.origin.commit_sha.clone(),
            commit_message: f.origin.commit_message.clone(),
            author: f.origin.author.clone(),
            pull_request: f.origin.pull_request.clone(),
            ci_provider: f.origin.ci_provider.clone(),
            build_url: f.origin.build_url.clone(),
            planned_tests: f.planned_tests,
            playwright_version: f.playwright_version.clone(),
            reporter_version: f.reporter_version.clone(),
            instance_id: f.instance_id.clone(),
            claimed: f.claimed_totals.as_ref().map(|claimed| claimed.totals()).unwrap_or_default(),
            details: RunDetails {
                metadata: f.metadata.as_ref().and_then(json).unwrap_or_else(|| "{}".to_owned()),
                filter_details: f.filter_details.as_ref().and_then(json),
                setup_steps: (!f.setup_steps.is_empty()).then(|| json(&f.setup_steps)).flatten(),
                claimed_totals: f.claimed_totals.as_ref().and_then(json),
            },
        };
        runs::create(session, self.project, id, &new, self.now).await?;
        if let Some(branch) = default_branch(f) {
            projects::adopt_default_branch(session, self.project, branch).await?;
        }
        Ok(Some(id))
    }

    /// Gives the run its final status and timing.
    async fn finish(&self, session: &mut Session, run: &mut RunRow) -> Result<()> {
        // The first claim counts, so that parts of one run give the same status
        // in whatever order they come.
        let claimed = runs::claimed_status(session, self.project, run.id).await?;
        // Totals that were only claimed say nothing about how the run ended.
        let counted = if run.totals_from_rows { run.totals } else { Totals::default() };
        run.status = final_status(claimed, &counted);
        run.duration_ms = run.duration_ms.or(self.fields.duration_ms).or(self.span);
        if run.finished_at.is_none() {
            let end =
                run.duration_ms.map(|duration| Timestamp(run.start_time.millis().saturating_add(duration)));
            run.finished_at = Some(end.unwrap_or(self.now));
        }
        if run.totals_from_rows {
            let durations = executions::durations(session, self.project, run.id).await?;
            (run.avg_ms, run.p90_ms) = mean_and_p90(durations);
        }
        Ok(())
    }

    /// Brings the counters of the project up to date.
    async fn count(
        &self,
        session: &mut Session,
        run: &RunRow,
        lanes: &[i64],
        folded: &Folded,
        is_fresh: bool,
        before: &RunContribution,
    ) -> Result<()> {
        let after = contribution(run);
        let day = run.order_at.day();
        rollups::add_project_day(session, self.project, lanes, day, run.is_full, before, &after).await?;
        let growth = Growth {
            runs: i64::from(is_fresh),
            test_cases: folded.new_test_cases,
            executions: folded.new_executions,
            new_run: is_fresh.then_some((run.id, run.order_at)),
        };
        projects::count(session, self.project, growth).await?;
        if run.is_full && run.status.is_final() {
            projects::set_latest_full(session, self.project, run.id, run.order_at).await?;
        }
        Ok(())
    }
}

/// Values made of strings, numbers and lists have a JSON text.
fn json<T: serde::Serialize>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// What a run contributes to its day: nothing before it is final.
fn contribution(run: &RunRow) -> RunContribution {
    if !run.status.is_final() {
        return RunContribution::default();
    }
    RunContribution { runs: 1, runs_passed: i64::from(run.status == RunStatus::Passed), totals: run.totals }
}

fn default_branch(fields: &RunFields) -> Option<&str> {
    fields.metadata.as_ref()?.get("scm")?.get("defaultBranch")?.as_str().filter(|branch| !branch.is_empty())
}

/// Splits groups so that one transaction takes at most
/// [`ENTRIES_PER_TRANSACTION`] entries; all entries of one execution stay
/// together. There is always one chunk, even for a run without tests.
fn chunks(groups: &[Group]) -> Vec<&[Group]> {
    let mut chunks = Vec::new();
    let (mut start, mut entries) = (0, 0);
    for (at, group) in groups.iter().enumerate() {
        if entries > 0 && entries + group.entries.len() > ENTRIES_PER_TRANSACTION {
            chunks.push(&groups[start..at]);
            (start, entries) = (at, 0);
        }
        entries += group.entries.len();
    }
    chunks.push(&groups[start..]);
    chunks
}
