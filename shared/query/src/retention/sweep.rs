//! The sweep: what is due goes, a batch at a time, the oldest first. Each
//! batch is one transaction per run, so that a run that is fed or deleted at
//! the same moment is found as it is. A date in a row only says where to look:
//! data is deleted when the policy in force says so as well. Where the two
//! differ, the run is dated again and nothing of it is deleted.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{BlobId, ExecutionId, ProjectId, RunId};
use callboard_domain::retention::{EXEMPT_DAYS, OutcomeClass, Policy, end_of};
use callboard_domain::status::Outcome;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::blobs::freeing;
use callboard_store::deletions::ReceiptRow;
use callboard_store::evidence::joining;
use callboard_store::files::FileKind;
use callboard_store::projects::ProjectRow;
use callboard_store::retention::due::{self, DueFile, DueReport};
use callboard_store::retention::exempt::is_among_newest;
use callboard_store::runs::RunRow;
use callboard_store::{Session, StoreError, boxed, deletions, executions, runs, storage, unclaimed};

use super::dating::{ages_of, date_by, follows, policy_of};
use super::exempt::Exempt;
use super::{redating, trimming};
use crate::deletions::aged;
use crate::{Context, QueryError, Result};

/// Runs of one batch.
const RUNS: i64 = 50;
/// Files of one batch.
const FILES: i64 = 500;
/// Reports of one batch.
const REPORTS: i64 = 50;

/// What a batch of the sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Runs that were hidden.
    pub runs: i64,
    /// Files that went.
    pub files: i64,
    /// Reports that went.
    pub reports: i64,
    /// Runs whose evidence was trimmed.
    pub trimmed: i64,
    /// What is kept as an exception for now or whose date was out of date, and
    /// what was gone already.
    pub kept: i64,
}

impl Swept {
    /// Whether nothing is due any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self == Self::default()
    }
}

/// Lets a batch go of what is due. Objects are freed `grace_ms` later, so that
/// whoever reads one comes to the end.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn sweep(ctx: &Context, grace_ms: i64, now: Timestamp) -> Result<Swept> {
    redating::begin(&ctx.store, now).await?;
    let work = Work { ctx, now, free_at: Timestamp(now.millis() + grace_ms) };
    let mut swept = Swept::default();
    work.runs(&mut swept).await?;
    work.files(&mut swept).await?;
    work.reports(&mut swept).await?;
    work.evidence(&mut swept).await?;
    Ok(swept)
}

/// Until when what is kept as an exception is left alone.
fn later(now: Timestamp) -> Timestamp {
    Day(now.day().0 + EXEMPT_DAYS).start()
}

struct Work<'c> {
    ctx: &'c Context,
    now: Timestamp,
    free_at: Timestamp,
}

/// A run under the hands of the sweep: locked, with what is kept of it.
pub(super) struct Held {
    pub(super) run: RunRow,
    pub(super) exempt: Exempt,
    project: ProjectRow,
    policy: Policy,
}

impl Held {
    /// Whether the policy says that all of these files are due.
    async fn are_due(&self, session: &mut Session, files: &[DueFile], now: Timestamp) -> Result<bool> {
        let executions: BTreeSet<i64> = files.iter().map(|file| file.execution.get()).collect();
        let executions = executions.into_iter().collect();
        let outcomes = due::outcomes(session, self.run.project, self.run.id, executions).await?;
        Ok(files.iter().all(|file| {
            let outcome = outcomes.get(&file.execution).copied().and_then(Outcome::from_code);
            let class = outcome.map_or(OutcomeClass::Failed, OutcomeClass::from_outcome);
            let ages = ages_of(&self.policy.files, file.kind);
            ages.end(class, self.run.order_at).is_some_and(|end| end <= now)
        }))
    }

    /// Whether the policy says that the reports of the run are due.
    fn reports_are_due(&self, now: Timestamp) -> bool {
        end_of(self.run.order_at, self.policy.files.report_days).is_some_and(|end| end <= now)
    }

    /// Writes the dates that follow from the policy.
    async fn date_again(&self, session: &mut Session) -> Result<()> {
        date_by(session, &self.policy, &self.project, &self.run).await
    }
}

impl Work<'_> {
    /// Locks a run and asks what is kept of it; `None` when it is on its way
    /// out.
    async fn hold(&self, session: &mut Session, project: ProjectId, run: RunId) -> Result<Option<Held>> {
        let run = match runs::lock(session, project, run).await {
            Err(StoreError::RunGone) => return Ok(None),
            run => run?,
        };
        let Some((project, policy)) = policy_of(session, project).await? else { return Ok(None) };
        let exempt = Exempt::load(session, &policy, &project, &run).await?;
        Ok(Some(Held { run, exempt, project, policy }))
    }

    async fn runs(&self, swept: &mut Swept) -> Result<()> {
        let due = due::runs(&mut self.ctx.store.db().read().await?, self.now, RUNS).await?;
        let mut of_project: BTreeMap<ProjectId, BTreeSet<RunId>> = BTreeMap::new();
        for (project, run) in due {
            of_project.entry(project).or_default().insert(run);
        }
        for (project, due) in of_project {
            let mut session = self.ctx.store.db().begin().await?;
            let Some((row, policy)) = policy_of(&mut session, project).await? else { continue };
            let mut goes = BTreeSet::new();
            for run in due {
                let Some(run) = runs::get(&mut session, project, run).await? else { continue };
                let end = policy.runs.end(run.order_at, follows(&row, &run.branch));
                if end.is_none_or(|end| end > self.now) {
                    date_by(&mut session, &policy, &row, &run).await?;
                    swept.kept += 1;
                    continue;
                }
                let place = (run.order_at, run.id);
                let is_new = is_among_newest(&mut session, project, place, policy.runs.keep_last).await?;
                if is_new || Exempt::load(&mut session, &policy, &row, &run).await?.holds_run() {
                    due::move_run(&mut session, project, run.id, Some(later(self.now))).await?;
                    swept.kept += 1;
                } else {
                    goes.insert(run.id);
                }
            }
            if !goes.is_empty() {
                swept.runs += aged::delete_runs(&mut session, project, &goes, self.now).await?;
            }
            session.commit().await?;
        }
        Ok(())
    }

    async fn files(&self, swept: &mut Swept) -> Result<()> {
        let due = due::files(&mut self.ctx.store.db().read().await?, self.now, FILES).await?;
        let mut of_run: BTreeMap<(ProjectId, RunId), Vec<DueFile>> = BTreeMap::new();
        for (project, run, file) in due {
            of_run.entry((project, run)).or_default().push(file);
        }
        for ((project, run), files) in of_run {
            let mut session = self.ctx.store.db().begin().await?;
            let all = || files.iter().map(|file| file.id).collect::<Vec<_>>();
            let Some(held) = self.hold(&mut session, project, run).await? else {
                // They go with their run.
                due::move_files(&mut session, project, all(), None).await?;
                session.commit().await?;
                swept.kept += 1;
                continue;
            };
            if !held.are_due(&mut session, &files, self.now).await? {
                held.date_again(&mut session).await?;
                session.commit().await?;
                swept.kept += 1;
                continue;
            }
            let (stay, go): (Vec<DueFile>, Vec<DueFile>) =
                files.iter().partition(|file| held.exempt.holds(file.execution));
            if !stay.is_empty() {
                swept.kept += 1;
                let ids = stay.iter().map(|file| file.id).collect();
                due::move_files(&mut session, project, ids, Some(later(self.now))).await?;
            }
            if !go.is_empty() {
                let receipt = self.receipt(&mut session, project).await?;
                let ids = go.iter().map(|file| file.id).collect();
                let gone = due::delete_files(&mut session, project, ids, self.now).await?;
                swept.files += self.release(&mut session, receipt, project, &gone).await?;
                storage::recount_run(&mut session, project, run, self.now).await?;
            }
            session.commit().await?;
        }
        Ok(())
    }

    /// The receipt that takes on what goes of a project.
    async fn receipt(&self, session: &mut Session, project: ProjectId) -> Result<ReceiptRow> {
        let id = aged::receipt_for_files(session, project, self.free_at, self.now).await?;
        let row = deletions::get(session, id).await?;
        row.ok_or_else(|| QueryError::from(StoreError::Damaged("a receipt vanished while it was written")))
    }

    /// Takes deleted files off their executions and lets go of their content.
    async fn release(
        &self,
        session: &mut Session,
        mut receipt: ReceiptRow,
        project: ProjectId,
        gone: &[DueFile],
    ) -> Result<i64> {
        let mut counts: BTreeMap<ExecutionId, (i64, i64)> = BTreeMap::new();
        let mut blobs: BTreeMap<BlobId, i64> = BTreeMap::new();
        for file in gone {
            let (traces, others) = counts.entry(file.execution).or_default();
            *(if file.kind == FileKind::Trace { traces } else { others }) -= 1;
            *blobs.entry(file.blob).or_default() += 1;
        }
        for (execution, (traces, others)) in counts {
            executions::count_files(session, project, execution, traces, others).await?;
        }
        // In the order of their ids, as all who let go of content.
        for (blob, count) in blobs {
            let released = freeing::release_for(session, project, blob, count, receipt.id, self.now).await?;
            let count = if released.is_shared { &mut receipt.kept_shared } else { &mut receipt.objects };
            count.add(1, released.bytes);
        }
        let count = i64::try_from(gone.len()).unwrap_or(i64::MAX);
        receipt.rows.files += count;
        save(session, receipt).await?;
        Ok(count)
    }

    async fn reports(&self, swept: &mut Swept) -> Result<()> {
        let due = due::reports(&mut self.ctx.store.db().read().await?, self.now, REPORTS).await?;
        for DueReport { project, run, id, prefix, entries, size } in due {
            let mut session = self.ctx.store.db().begin().await?;
            let held = self.hold(&mut session, project, run).await?;
            if held.as_ref().is_none_or(|held| held.exempt.whole.is_some()) {
                let until = held.map(|_| later(self.now));
                due::move_report(&mut session, project, id, until).await?;
                session.commit().await?;
                swept.kept += 1;
                continue;
            }
            if let Some(held) = held.as_ref().filter(|held| !held.reports_are_due(self.now)) {
                held.date_again(&mut session).await?;
                session.commit().await?;
                swept.kept += 1;
                continue;
            }
            let mut receipt = self.receipt(&mut session, project).await?;
            if due::delete_report(&mut session, project, id, self.now).await? {
                let below = format!("{prefix}/");
                unclaimed::abandon_to(&mut session, project, &below, receipt.id, self.now).await?;
                receipt.rows.files += 1;
                receipt.objects.add(entries, size);
                save(&mut session, receipt).await?;
                storage::recount_run(&mut session, project, run, self.now).await?;
            }
            session.commit().await?;
            swept.reports += 1;
        }
        Ok(())
    }

    /// Trims the evidence of one run. One whose evidence cannot be read is left
    /// for another day, so that the others have their turn.
    async fn evidence(&self, swept: &mut Swept) -> Result<()> {
        let due = due::evidence(&mut self.ctx.store.db().read().await?, self.now).await?;
        let Some((project, run)) = due else { return Ok(()) };
        if let Err(error) = self.trim(project, run, swept).await {
            tracing::warn!(run = run.get(), %error, "the evidence of a run could not be trimmed");
            let mut session = self.ctx.store.db().begin().await?;
            due::move_evidence(&mut session, project, run, Some(later(self.now))).await?;
            session.commit().await?;
            swept.kept += 1;
        }
        Ok(())
    }

    async fn trim(&self, project: ProjectId, run: RunId, swept: &mut Swept) -> Result<()> {
        // What lies beside the rows is trimmed in memory; more than a little of it goes into an object first.
        while joining::join(&self.ctx.store, project, run, self.now).await? {}
        let Some(plan) = trimming::plan(self.ctx, project, run, self.now, later(self.now)).await? else {
            let mut session = self.ctx.store.db().begin().await?;
            due::move_evidence(&mut session, project, run, None).await?;
            session.commit().await?;
            swept.kept += 1;
            return Ok(());
        };
        if plan.changes_nothing() {
            let mut session = self.ctx.store.db().begin().await?;
            due::move_evidence(&mut session, project, run, plan.next).await?;
            session.commit().await?;
            swept.kept += 1;
            return Ok(());
        }
        let plan = plan.write(self.ctx, self.now).await?;
        let mut session = self.ctx.store.db().begin().await?;
        let Some(held) = self.hold(&mut session, project, run).await? else { return Ok(()) };
        let receipt = self.receipt(&mut session, project).await?;
        let receipt = plan.apply(&mut session, &held, receipt, self.now).await?;
        save(&mut session, receipt).await?;
        storage::recount_run(&mut session, project, run, self.now).await?;
        session.commit().await?;
        swept.trimmed += 1;
        Ok(())
    }
}

async fn save(session: &mut Session, mut receipt: ReceiptRow) -> Result<()> {
    receipt.remaining = receipt.objects.count;
    Ok(deletions::save(session, &receipt).await?)
}
