//! What a policy would let go of a project right now, counted without letting
//! it go. Runs are looked at from the oldest, as long as there is time.

use std::time::{Duration, Instant};

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::retention::{Ages, Edit, OutcomeClass, Policy, end_of};
use callboard_domain::time::Timestamp;
use callboard_store::files::FileKind;
use callboard_store::projects::ProjectRow;
use callboard_store::retention::exempt::is_among_newest;
use callboard_store::retention::{counting, runs_after};
use callboard_store::runs::RunRow;
use callboard_store::{Session, StoreError, boxed, runs};
use serde::Serialize;
use utoipa::ToSchema;

use super::dating::{follows, policy_of};
use super::exempt::{Exempt, Whole};
use crate::{Context, Result};

/// How long is counted at most.
const PATIENCE: Duration = Duration::from_secs(2);
/// Runs read together.
const RUNS: i64 = 100;

/// What is kept although its time is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exemptions {
    /// Runs that somebody pinned.
    pub pinned: i64,
    /// Runs that are the last green ones of a tracked branch.
    pub last_green: i64,
    /// Executions in which clusters were first seen.
    pub first_failure: i64,
    /// Executions that are among the newest of an open cluster.
    pub cluster_sample: i64,
}

/// What would go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Runs.
    pub runs: i64,
    /// Their executions.
    pub executions: i64,
    /// Files, of those runs and of others.
    pub files: i64,
    /// Executions that lose their evidence.
    pub evidence_slices: i64,
    /// Bytes of all of it; content that several runs share counts in each.
    pub bytes: i64,
    /// What is kept although its time is over.
    pub exempt: Exemptions,
    /// Whether there was no time to count everything: it is at least so much.
    pub partial: bool,
}

/// Counts what the policy of a project, with an edit, would let go now.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn preview(
    ctx: &Context,
    project: Authorized<ProjectId>,
    edit: Option<&Edit>,
    now: Timestamp,
) -> Result<Preview> {
    let begun = Instant::now();
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let mut preview = Preview::default();
    let Some((row, policy)) = policy_of(&mut session, ctx, project).await? else { return Ok(preview) };
    let policy = match edit {
        Some(edit) => super::settings::edited(&mut session, ctx, project, edit).await?,
        None => policy,
    };
    let counting = Counting { policy: &policy, project: &row, now };
    let mut after = (i64::MIN, 0);
    loop {
        let placed = runs_after(&mut session, Some(project), after, RUNS).await?;
        let Some(last) = placed.last() else { return Ok(preview) };
        after = (last.order_at.millis(), last.run.get());
        for place in placed {
            if !counting.may_be_due(place.order_at) {
                return Ok(preview);
            }
            if begun.elapsed() > PATIENCE {
                preview.partial = true;
                return Ok(preview);
            }
            if let Some(run) = runs::get(&mut session, project, place.run).await? {
                counting.count(&mut session, &run, &mut preview).await?;
            }
        }
    }
}

struct Counting<'p> {
    policy: &'p Policy,
    project: &'p ProjectRow,
    now: Timestamp,
}

impl Counting<'_> {
    /// Whether anything of a run of that age can be due.
    fn may_be_due(&self, from: Timestamp) -> bool {
        let files = &self.policy.files;
        let ages = [self.policy.evidence, files.trace, files.video, files.screenshot, files.attachment];
        let runs = &self.policy.runs;
        let ends = [runs.end(from, true), runs.end(from, false), end_of(from, files.report_days)];
        let of_ages = ages.into_iter().flat_map(|ages| OutcomeClass::ALL.map(|class| ages.end(class, from)));
        ends.into_iter().chain(of_ages).any(|end| self.is_due(end))
    }

    fn is_due(&self, end: Option<Timestamp>) -> bool {
        end.is_some_and(|end| end <= self.now)
    }

    async fn count(&self, session: &mut Session, run: &RunRow, preview: &mut Preview) -> Result<()> {
        let exempt = Exempt::of(session, self.policy, self.project, run).await?;
        match exempt.whole {
            Some(Whole::Pinned) => preview.exempt.pinned += 1,
            Some(Whole::LastGreen) => preview.exempt.last_green += 1,
            Some(Whole::Open) | None => {}
        }
        if exempt.whole.is_some() {
            return Ok(());
        }
        preview.exempt.first_failure += i64::try_from(exempt.first_failures.len()).unwrap_or(i64::MAX);
        preview.exempt.cluster_sample += i64::try_from(exempt.samples.len()).unwrap_or(i64::MAX);
        let place = (run.order_at, run.id);
        let goes = self.is_due(self.policy.runs.end(run.order_at, follows(self.project, &run.branch)))
            && !exempt.holds_run()
            && !is_among_newest(session, run.project, place, self.policy.runs.keep_last).await?;
        if goes {
            preview.runs += 1;
            preview.executions += run.totals.total_tests;
        }
        let due = |ages: Ages, class| goes || self.is_due(ages.end(class, run.order_at));
        let kept = exempt.executions();
        for file in counting::files(session, run.project, run.id, kept.clone()).await? {
            let class = class(file.outcome)?;
            if due(self.ages(file.kind), class) {
                preview.files += file.count;
                preview.bytes += file.bytes;
            }
        }
        for evidence in counting::evidence(session, run.project, run.id, kept).await? {
            if due(self.policy.evidence, class(evidence.outcome)?) {
                preview.evidence_slices += evidence.count;
                preview.bytes += evidence.bytes;
            }
        }
        if goes || self.is_due(end_of(run.order_at, self.policy.files.report_days)) {
            let reports = counting::reports(session, run.project, run.id).await?;
            preview.files += reports.0;
            preview.bytes += reports.1;
        }
        Ok(())
    }

    const fn ages(&self, kind: FileKind) -> Ages {
        let files = &self.policy.files;
        match kind {
            FileKind::Trace => files.trace,
            FileKind::Screenshot => files.screenshot,
            FileKind::Video => files.video,
            FileKind::Attachment => files.attachment,
        }
    }
}

fn class(outcome: i64) -> Result<OutcomeClass> {
    let outcome = callboard_domain::status::Outcome::from_code(outcome);
    Ok(OutcomeClass::of(outcome.ok_or(StoreError::Damaged("an unknown outcome"))?))
}
