//! Which commits between a green run and a later one were tested: the runs of
//! the later one's branch know them, with their messages.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::runs::{self, RunFilter, RunRow};

use crate::runs::required_run;
use crate::shapes::RunBrief;
use crate::{Context, Result};

/// Runs that are looked at, the newest ones.
const RUNS: i64 = 60;
/// Commits that are told.
const COMMITS: usize = 12;

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
    Ok(of_runs(&rows, green.commit_sha.as_deref(), goes_on))
}

/// The commits of runs, newest first, but for the one that was green.
fn of_runs(runs: &[RunRow], green: Option<&str>, goes_on: bool) -> TestedCommits {
    let mut tested = TestedCommits { commits: Vec::new(), goes_on };
    for run in runs {
        let Some(commit) = run.commit_sha.as_deref().filter(|commit| Some(*commit) != green) else {
            continue;
        };
        if tested.commits.iter().any(|known| known.commit == commit) {
            continue;
        }
        if tested.commits.len() == COMMITS {
            tested.goes_on = true;
            break;
        }
        let message = run.commit_message.as_deref().and_then(|text| text.lines().next());
        tested.commits.push(TestedCommit {
            commit: commit.to_owned(),
            message: message.map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned),
            author: run.author.clone(),
            run: RunBrief::of(run),
        });
    }
    tested
}
