//! What a policy deletes, counted without deleting it: of a project or of all
//! projects. Runs are read from the oldest on, within a time limit.

use std::time::{Duration, Instant};

pub use callboard_core::retention::{Exemptions, Preview};
use callboard_domain::ids::ProjectId;
use callboard_domain::retention::{Ages, OutcomeClass, Policy, end_of};
use callboard_domain::time::Timestamp;
use callboard_store::projects::ProjectRow;
use callboard_store::retention::exempt::is_among_newest;
use callboard_store::retention::{counting, lanes, runs_after};
use callboard_store::runs::RunRow;
use callboard_store::{Session, StoreError, projects, runs};

use super::dating::{ages_of, follows};
use super::exempt::{Exempt, Whole};
use crate::Result;

/// How long counting takes at most.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// Runs read together.
const RUNS: i64 = 100;

/// Counts what a policy of one project deletes by `at`.
pub(super) async fn of_project(
    session: &mut Session,
    project: ProjectId,
    policy: &Policy,
    at: Timestamp,
) -> Result<Preview> {
    match projects::get(session, project).await? {
        Some(row) => of_row(session, &row, policy, at).await,
        None => Ok(Preview::default()),
    }
}

/// Counts what a policy deletes by `at` of a project with the branches of `row`.
pub(super) async fn of_row(
    session: &mut Session,
    row: &ProjectRow,
    policy: &Policy,
    at: Timestamp,
) -> Result<Preview> {
    let mut preview = Preview::default();
    let counting = Counting { policy, project: row, at, begun: Instant::now() };
    preview.partial = !counting.count_runs(session, &mut preview).await?;
    Ok(preview)
}

/// Counts what a policy of the installation deletes by `at`, over all projects:
/// each with what it sets itself.
pub(super) async fn of_all_projects(
    session: &mut Session,
    policy: &Policy,
    at: Timestamp,
) -> Result<Preview> {
    let (begun, mut preview) = (Instant::now(), Preview::default());
    let mut after = None;
    while let Some(project) = lanes::next_project(session, after).await? {
        after = Some(project);
        let Some(row) = projects::get(session, project).await? else { continue };
        let policy = super::settings::set_of_project(session, project).await?.over(policy);
        let counting = Counting { policy: &policy, project: &row, at, begun };
        if !counting.count_runs(session, &mut preview).await? {
            preview.partial = true;
            break;
        }
    }
    Ok(preview)
}

struct Counting<'p> {
    policy: &'p Policy,
    project: &'p ProjectRow,
    at: Timestamp,
    begun: Instant,
}

impl Counting<'_> {
    /// Counts runs from the oldest on; `false` when the time was not enough.
    async fn count_runs(&self, session: &mut Session, preview: &mut Preview) -> Result<bool> {
        let mut after = (i64::MIN, 0);
        loop {
            if self.begun.elapsed() > TIME_LIMIT {
                return Ok(false);
            }
            let placed = runs_after(session, Some(self.project.id), after, RUNS).await?;
            let Some(last) = placed.last() else { return Ok(true) };
            after = (last.order_at.millis(), last.run.get());
            for place in placed {
                if !self.may_be_due(place.order_at) {
                    return Ok(true);
                }
                if self.begun.elapsed() > TIME_LIMIT {
                    return Ok(false);
                }
                if let Some(run) = runs::get(session, self.project.id, place.run).await? {
                    self.count(session, &run, preview).await?;
                }
            }
        }
    }

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
        end.is_some_and(|end| end <= self.at)
    }

    async fn count(&self, session: &mut Session, run: &RunRow, preview: &mut Preview) -> Result<()> {
        let exempt = Exempt::load(session, self.policy, self.project, run).await?;
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
            if due(ages_of(&self.policy.files, file.kind), class) {
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
}

fn class(outcome: i64) -> Result<OutcomeClass> {
    let outcome = callboard_domain::status::Outcome::from_code(outcome);
    Ok(OutcomeClass::from_outcome(outcome.ok_or(StoreError::Damaged("an unknown outcome"))?))
}
