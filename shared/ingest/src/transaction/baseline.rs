//! What a run is measured against: the one definition that insights,
//! comparison, gate and regression context share.
//!
//! Two baselines, for two questions. The *run's* baseline is the newest green
//! run before it: of its own branch and environment; else of the default
//! branch in that environment; else of the default branch anywhere. The
//! baseline of a *series* (one test in one browser project) is its last
//! decided outcome, which the flags of each execution remember; it needs no
//! green run, so a project with a test that is always red still learns of the
//! next one that breaks.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::ExecutionFlags as Flags;
use callboard_store::db::Session;
use callboard_store::executions::brief::{self, FlagGroup};
use callboard_store::runs::RunRow;
use callboard_store::runs::compared::{self, Compared};
use callboard_store::{lanes, projects};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Result;

/// Where a baseline was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// On the run's own branch, in its own environment.
    SameBranch,
    /// On the default branch.
    DefaultBranch,
}

/// A baseline with its row.
#[derive(Debug, Clone)]
pub struct BaselineRun {
    /// Its row.
    pub row: RunRow,
    /// Where it was found.
    pub fallback: Fallback,
}

/// The green run that `run` is measured against.
pub async fn of_run(session: &mut Session, run: &RunRow) -> Result<Option<BaselineRun>> {
    if let Some(row) = compared::green_before(session, run, run.lane_id).await? {
        return Ok(Some(BaselineRun { row, fallback: Fallback::SameBranch }));
    }
    let Some(branch) = default_branch(session, run.project).await? else { return Ok(None) };
    let branches = [branch];
    for environments in environments_of(run) {
        let mut newest: Option<RunRow> = None;
        for lane in lanes::specific(session, run.project, &branches, &environments).await? {
            let found = compared::green_before(session, run, lane).await?;
            let key = |run: &RunRow| (run.order_at, run.id);
            if found.as_ref().map(key) > newest.as_ref().map(key) {
                newest = found;
            }
        }
        if let Some(row) = newest {
            return Ok(Some(BaselineRun { row, fallback: Fallback::DefaultBranch }));
        }
    }
    Ok(None)
}

/// Where on the default branch something to measure a run against is looked
/// for: in its own environment first, then in any.
pub fn environments_of(run: &RunRow) -> [Vec<String>; 2] {
    [vec![run.environment.clone()], Vec::new()]
}

/// The default branch of a project, as far as it is known.
pub async fn default_branch(session: &mut Session, project: ProjectId) -> Result<Option<String>> {
    let project = projects::get(session, project).await?;
    Ok(project.and_then(|project| project.default_branch).filter(|branch| !branch.is_empty()))
}

/// Whether a branch is the default branch of a project.
pub async fn is_default_branch(session: &mut Session, project: ProjectId, branch: &str) -> Result<bool> {
    Ok(default_branch(session, project).await?.is_some_and(|default| default == branch))
}

/// The lanes besides its own in which the last outcome of a run's tests is
/// looked for, nearest first: the default branch in the run's environment,
/// then the default branch anywhere.
pub async fn other_lanes(session: &mut Session, run: &RunRow) -> Result<Vec<i64>> {
    let found = lanes::of_default_branch(session, run.project, &run.environment).await?;
    Ok(found.into_iter().filter(|lane| *lane != run.lane_id).collect())
}

/// How the tests of a run compare with what each of them did before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether anything was known of any of them.
    pub is_known: bool,
    /// Without tests in quarantine.
    pub compared: Compared,
    /// Failing tests in quarantine.
    pub quarantined_failed: i64,
    /// Flaky tests in quarantine.
    pub quarantined_flaky: i64,
    /// Tests in quarantine.
    pub quarantined: i64,
}

/// Reads how the tests of a run compare from their flags.
pub async fn facts(session: &mut Session, project: ProjectId, run: RunId) -> Result<Facts> {
    Ok(facts_of(&brief::by_flags(session, project, run).await?))
}

fn facts_of(groups: &[FlagGroup]) -> Facts {
    let mut facts = Facts::default();
    for group in groups {
        let has = |flag: Flags| if group.flags.contains(flag) { group.count } else { 0 };
        facts.is_known |= group.flags.contains(Flags::BASELINE_KNOWN);
        facts.quarantined += has(Flags::QUARANTINED);
        if group.flags.contains(Flags::QUARANTINED) {
            match group.outcome {
                Outcome::Failed | Outcome::TimedOut => facts.quarantined_failed += group.count,
                Outcome::Flaky => facts.quarantined_flaky += group.count,
                _ => {}
            }
            continue;
        }
        facts.compared.new_regressions += has(Flags::NEW_REGRESSION);
        facts.compared.new_flaky += has(Flags::NEW_FLAKY);
        facts.compared.fixed += has(Flags::FIXED);
    }
    facts
}

/// Notes on a locked run which clusters it was the first to show, and how its
/// tests compare when there is something to compare them with; nothing as long as
/// it is not final.
pub async fn note(session: &mut Session, run: &mut RunRow) -> Result<()> {
    if !run.status.is_final() {
        run.compared = None;
        return Ok(compared::note(session, run, 0).await?);
    }
    let (groups, new_clusters) = brief::by_flags_with_new_clusters(session, run.project, run.id).await?;
    let facts = facts_of(&groups);
    run.new_clusters = Some(new_clusters);
    run.compared = compared_of(session, run, &facts).await?;
    Ok(compared::note(session, run, facts.quarantined_failed).await?)
}

/// Whether how the tests of a final run compare is what is noted of it.
pub async fn is_noted(session: &mut Session, run: &RunRow) -> Result<bool> {
    let facts = facts(session, run.project, run.id).await?;
    Ok(run.compared == compared_of(session, run, &facts).await?)
}

async fn compared_of(session: &mut Session, run: &RunRow, facts: &Facts) -> Result<Option<Compared>> {
    let is_comparable = facts.is_known || of_run(session, run).await?.is_some();
    Ok(is_comparable.then_some(facts.compared))
}
