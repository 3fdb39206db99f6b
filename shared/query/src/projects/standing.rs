//! How projects stand: by the newest full runs of their default branch, also
//! by those whose details retention deleted.

use std::collections::HashMap;

use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::projects::{self, ProjectRow};
use callboard_store::runs::{self, BriefRow, Newest, expired};

use super::RECENT_RUNS;
use crate::Result;
use crate::shapes::{RunBrief, Tendency};

/// Full runs that decide the tendency.
const TENDENCY_RUNS: usize = 5;
/// Full runs among which failing ones in a row are counted.
const STREAK_RUNS: usize = 20;

/// Full runs of one branch in a row that failed, up to the newest. A run that
/// somebody or something ended before it was through says neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailingStreak {
    /// How many.
    pub runs: i64,
    /// How long they took together, ms.
    pub ms: i64,
    /// When the first of them began; none when there is none.
    pub since: Option<Timestamp>,
    /// Whether there may be older ones that were not looked at.
    pub is_cut: bool,
}

impl FailingStreak {
    /// That of the branch of the newest of some full runs, newest first, as if
    /// there were older ones.
    fn from_runs(runs: &[BriefRow]) -> Self {
        let branch = runs.first().map(|run| &run.branch);
        let of_branch = runs.iter().filter(|run| Some(&run.branch) == branch);
        let mut streak = Self { is_cut: true, ..Self::default() };
        for run in of_branch {
            match run.status {
                RunStatus::Passed => {
                    streak.is_cut = false;
                    break;
                }
                RunStatus::Failed | RunStatus::TimedOut => {
                    streak.runs += 1;
                    streak.ms += run.duration_ms.unwrap_or(0);
                    streak.since = Some(run.start_time);
                }
                _ => {}
            }
        }
        streak
    }
}

/// How a project stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub(crate) tendency: Tendency,
    /// The newest of the runs that tell it.
    pub(crate) run: Option<RunBrief>,
    pub(crate) streak: FailingStreak,
}

impl Told {
    /// By the full runs that tell it, newest first.
    fn by(telling: &[BriefRow]) -> Self {
        let mut streak = FailingStreak::from_runs(telling);
        streak.is_cut &= telling.len() >= STREAK_RUNS;
        Self { tendency: tendency(telling), run: telling.first().map(RunBrief::from), streak }
    }
}

/// When the newest full run began that retention deleted, of the projects that
/// have one.
struct Expired(HashMap<ProjectId, Timestamp>);

impl Expired {
    fn of_rows(rows: &[ProjectRow]) -> Self {
        Self(rows.iter().filter_map(|row| Some((row.id, row.last_expired_at?))).collect())
    }

    /// Those of some projects whose newest `limit` full runs may include some
    /// that retention deleted.
    fn incomplete(
        &self,
        projects: &[i64],
        found: &HashMap<ProjectId, Vec<BriefRow>>,
        limit: usize,
    ) -> Vec<i64> {
        let may_include = |id: &&i64| {
            let project = ProjectId(**id);
            let Some(newest_expired) = self.0.get(&project) else { return false };
            let oldest = found.get(&project).filter(|runs| runs.len() >= limit).and_then(|runs| runs.last());
            oldest.is_none_or(|oldest| oldest.order_at <= *newest_expired)
        };
        projects.iter().filter(may_include).copied().collect()
    }

    /// How the newest run ended of projects none of whose runs is kept.
    async fn latest(
        &self,
        session: &mut Session,
        rows: &[ProjectRow],
    ) -> Result<HashMap<ProjectId, RunBrief>> {
        let without = rows.iter().filter(|row| row.latest_run.is_none() && row.expired_runs > 0);
        let found = expired::latest_of(session, without.map(|row| row.id.get()).collect()).await?;
        Ok(found.iter().map(|run| (run.project, RunBrief::from(run))).collect())
    }
}

/// The runs that tell how projects stand, newest first.
pub(super) struct Telling {
    runs: HashMap<ProjectId, Vec<BriefRow>>,
    /// How the newest run ended of projects none of whose runs is kept.
    latest: HashMap<ProjectId, RunBrief>,
}

impl Telling {
    /// The newest full runs of the default branch of each. What somebody tries
    /// on a branch of his own says nothing about the project, unless there is
    /// nothing else.
    pub(super) async fn load(
        session: &mut Session,
        rows: &[ProjectRow],
        environment: Option<&str>,
    ) -> Result<Self> {
        let (named, unnamed): (Vec<&ProjectRow>, Vec<&ProjectRow>) =
            rows.iter().partition(|row| row.default_branch.is_some());
        let expired = Expired::of_rows(rows);
        let named: Vec<i64> = named.iter().map(|row| row.id.get()).collect();
        let which = Newest::FullOfDefaultBranch;
        let mut found = full(session, named.clone(), which, environment, &expired).await?;
        let silent = named.into_iter().filter(|id| !found.contains_key(&ProjectId(*id)));
        let others = silent.chain(unnamed.iter().map(|row| row.id.get())).collect();
        found.extend(full(session, others, Newest::Full, environment, &expired).await?);
        Ok(Self { runs: found, latest: expired.latest(session, rows).await? })
    }

    /// How one of them stands.
    pub(super) fn told(&self, project: ProjectId) -> Told {
        let mut told = Told::by(self.runs.get(&project).map_or(&[], Vec::as_slice));
        told.run = told.run.or_else(|| self.latest.get(&project).cloned());
        told
    }
}

/// As many as decide the tendency; of a project where none of them passed, as
/// many as tell since when.
async fn full(
    session: &mut Session,
    projects: Vec<i64>,
    which: Newest<'_>,
    environment: Option<&str>,
    expired: &Expired,
) -> Result<HashMap<ProjectId, Vec<BriefRow>>> {
    let mut found = newest(session, projects, which, environment, expired, TENDENCY_RUNS).await?;
    let is_longer = |runs: &[BriefRow]| runs.len() >= TENDENCY_RUNS && FailingStreak::from_runs(runs).is_cut;
    let longer = found.iter().filter(|(_, runs)| is_longer(runs)).map(|(project, _)| project.get());
    let longer = longer.collect();
    found.extend(newest(session, longer, which, environment, expired, STREAK_RUNS).await?);
    Ok(found)
}

/// The newest full runs of each, whether their details are kept or not.
async fn newest(
    session: &mut Session,
    projects: Vec<i64>,
    which: Newest<'_>,
    environment: Option<&str>,
    expired: &Expired,
    limit: usize,
) -> Result<HashMap<ProjectId, Vec<BriefRow>>> {
    let mut found = runs::newest_of(session, projects.clone(), which, environment, limit).await?;
    let incomplete = expired.incomplete(&projects, &found, limit);
    expired::complete(session, &mut found, incomplete, which, environment, limit).await?;
    Ok(found)
}

/// How each of some projects stands; of one without a full run its latest one
/// tells.
pub(super) async fn of_each(session: &mut Session, rows: &[ProjectRow]) -> Result<HashMap<ProjectId, Told>> {
    let telling = Telling::load(session, rows, None).await?;
    let silent =
        rows.iter().filter(|row| !telling.runs.contains_key(&row.id)).map(|row| row.id.get()).collect();
    let latest = runs::latest_of(session, silent).await?;
    let mut latest: HashMap<ProjectId, RunBrief> =
        latest.iter().map(|run| (run.project, RunBrief::from(run))).collect();
    let standing = rows.iter().map(|row| {
        let mut told = telling.told(row.id);
        told.run = told.run.or_else(|| latest.remove(&row.id));
        told.tendency = told.tendency.standing(told.run.as_ref().map(|run| run.status));
        (row.id, told)
    });
    Ok(standing.collect())
}

/// The newest runs of a branch of some projects, oldest first, with how each
/// stands by them; projects without one are left out.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub(crate) async fn of_branch(
    session: &mut Session,
    projects: Vec<i64>,
    branch: &str,
    environment: Option<&str>,
) -> Result<HashMap<ProjectId, (Told, Vec<RunBrief>)>> {
    let expired = Expired(projects::last_expired(session, projects.clone()).await?);
    let runs = full(session, projects.clone(), Newest::FullOfBranch(branch), environment, &expired).await?;
    let telling = Telling { runs, latest: HashMap::new() };
    let mut found =
        runs::newest_of(session, projects, Newest::OfBranch(branch), environment, RECENT_RUNS).await?;
    // A branch none of whose runs is kept stands as they ended.
    for project in telling.runs.keys() {
        found.entry(*project).or_default();
    }
    let each = found.into_iter().map(|(project, runs)| {
        (project, (telling.told(project), runs.iter().rev().map(RunBrief::from).collect()))
    });
    Ok(each.collect())
}

/// How a project has been doing, from the runs that tell it (newest first).
fn tendency(telling: &[BriefRow]) -> Tendency {
    let [latest, _, ..] = telling else {
        return Tendency::Unknown;
    };
    if latest.status != RunStatus::Passed {
        return Tendency::Failing;
    }
    let mut deciding = telling.iter().take(TENDENCY_RUNS);
    let unsteady = deciding.any(|run| run.status != RunStatus::Passed || run.totals.flaky_tests > 0);
    if unsteady { Tendency::Flaky } else { Tendency::Passing }
}
