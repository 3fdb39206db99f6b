//! Which commits between a green run and a later one were tested: the runs of
//! the later one's branch know them, with their messages.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::clusters::{self, reads};
use callboard_store::db::Session;
use callboard_store::runs::{self, RunFilter, RunRow};

use crate::runs::required_run;
use crate::shapes::RunBrief;
use crate::{Context, Result};

/// Runs that are looked at, the newest ones.
const RUNS: i64 = 60;
/// Commits that are told.
const COMMITS: usize = 12;
/// Causes of the later run that are looked at.
const CAUSES: i64 = 200;

/// A commit that was tested.
#[derive(Debug, Clone)]
pub struct TestedCommit {
    /// The commit.
    pub commit: String,
    /// First line of its message.
    pub message: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// The newest of its runs.
    pub run: RunBrief,
    /// Failures of the later run that are known since a run of this commit.
    pub began: i64,
    /// The first of these runs.
    pub began_in: Option<RunId>,
}

impl TestedCommit {
    /// Counts what began in one of its runs, the newest run first.
    fn add(&mut self, run: RunId, began: i64) {
        self.began += began;
        if began > 0 {
            self.began_in = Some(run);
        }
    }
}

/// The commits of the runs after a green one, newest first.
#[derive(Debug, Clone, Default)]
pub struct TestedCommits {
    /// The commits; a run without one tells nothing.
    pub commits: Vec<TestedCommit>,
    /// Whether there are older ones.
    pub goes_on: bool,
}

/// The commits that were tested after a green run, up to and with that of a
/// later run, on its branch, wherever they ran.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn tested_since(
    ctx: &Context,
    project: Authorized<ProjectId>,
    green: RunId,
    run: RunId,
) -> Result<TestedCommits> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let green = required_run(&mut session, project, green).await?;
    let run = required_run(&mut session, project, run).await?;
    let between = RunFilter {
        branch: Some(run.branch.clone()),
        from: Some(green.order_at),
        before: Some(Timestamp(run.order_at.millis() + 1)),
        ..RunFilter::default()
    };
    let rows = runs::list(&mut session, Some(project), &between, RUNS).await?;
    let goes_on = i64::try_from(rows.len()).is_ok_and(|rows| rows >= RUNS);
    let began = if rows.is_empty() { HashMap::new() } else { beginnings(&mut session, &run).await? };
    Ok(of_runs(&rows, green.commit_sha.as_deref(), goes_on, &began))
}

/// The failures of a run by the run that showed their cause first; of the
/// causes those that most of its tests fail for.
async fn beginnings(session: &mut Session, run: &RunRow) -> Result<HashMap<RunId, i64>> {
    let causes = reads::of_run(session, run.project, run.id, None, CAUSES).await?;
    let ids = causes.iter().map(|cause| cause.cluster.get()).collect();
    let mut began: HashMap<RunId, i64> = HashMap::new();
    for cluster in clusters::get_many(session, run.project, ids).await? {
        let failures = causes.iter().filter(|cause| cause.cluster == cluster.id);
        *began.entry(cluster.first_run).or_default() +=
            failures.map(|cause| cause.n - cause.flaky).sum::<i64>();
    }
    Ok(began)
}

/// The commits of runs, newest first, but for the one that was green.
fn of_runs(
    runs: &[RunRow],
    green: Option<&str>,
    goes_on: bool,
    began: &HashMap<RunId, i64>,
) -> TestedCommits {
    let mut tested = TestedCommits { commits: Vec::new(), goes_on };
    for run in runs {
        let began = began.get(&run.id).copied().unwrap_or(0);
        let Some(commit) = run.commit_sha.as_deref().filter(|commit| Some(*commit) != green) else {
            continue;
        };
        if let Some(known) = tested.commits.iter_mut().find(|known| known.commit == commit) {
            known.add(run.id, began);
            continue;
        }
        if tested.commits.len() == COMMITS {
            tested.goes_on = true;
            continue;
        }
        let message = run.commit_message.as_deref().and_then(|text| text.lines().next());
        let mut newest = TestedCommit {
            commit: commit.to_owned(),
            message: message.map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned),
            author: run.author.clone(),
            run: RunBrief::from_row(run),
            began: 0,
            began_in: None,
        };
        newest.add(run.id, began);
        tested.commits.push(newest);
    }
    tested
}
