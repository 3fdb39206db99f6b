//! What lies between a run and the last green one before it.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_query::run_views::{self, RegressionContext, Rerun, RerunSelect, TestedCommits};
use callboard_query::scm::{
    self, Access, CommitList, RepositoryCommit, SinceGreenCommits, SourceControlError,
};

use super::Head;
use crate::components::UnsetDefault;
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Tests a command names; more do not fit into one line of a shell.
const IN_COMMAND: usize = 200;

/// Inputs of `pages/run_regression.html`.
#[derive(Template)]
#[template(path = "pages/run_regression.html")]
struct RegressionTab {
    shell: Shell,
    head: Head,
    context: RegressionContext,
    /// Why no green run is known, where it is this.
    unset_default: Option<UnsetDefault>,
    /// The commits in between that were tested.
    tested: TestedCommits,
    failed: Rerun,
    fresh: Rerun,
    /// Commits of the repository since the green run; `None` until they are asked for.
    commits: Option<CommitsSinceGreen>,
}

/// Commits of the repository since the green run, or why there are none.
#[derive(Default)]
struct CommitsSinceGreen {
    commits: Vec<CommitLine>,
    /// Files and lines that changed.
    changed: Option<Changed>,
    /// Whether there are more commits than these.
    goes_on: bool,
    /// Why there are none, as a sentence.
    nothing: Option<String>,
    /// Whether somebody has to configure something first.
    is_to_configure: bool,
}

/// What the commits changed together.
struct Changed {
    files: i64,
    added: i64,
    removed: i64,
}

/// A commit with the address of its page.
struct CommitLine {
    commit: RepositoryCommit,
    page: String,
}

impl CommitsSinceGreen {
    /// Asks the code host, unless its answer is stored.
    async fn read(
        visit: &Visit,
        access: &Access<'_>,
        project: Authorized<ProjectId>,
        run: RunId,
    ) -> Result<Self, ApiError> {
        let none = |nothing: String| Self { nothing: Some(nothing), ..Self::default() };
        match scm::commits_since_green(&visit.ctx, access, project, run, visit.now).await {
            Ok(SinceGreenCommits::Commits(list)) => Ok(Self::from(list)),
            Ok(SinceGreenCommits::None(reason)) => Ok(none(reason.to_string())),
            Err(SourceControlError::NotConfigured(missing)) => {
                Ok(Self { is_to_configure: true, ..none(missing.to_string()) })
            }
            Err(SourceControlError::Upstream { error, .. }) => Ok(none(error.to_string())),
            Err(SourceControlError::Query(error)) => Err(error.into()),
        }
    }
}

impl From<CommitList> for CommitsSinceGreen {
    fn from(list: CommitList) -> Self {
        let CommitList { commits, repository_url, provider, aggregate, .. } = list;
        let line = |commit: RepositoryCommit| CommitLine {
            page: provider.commit_page(&repository_url, &commit.sha),
            commit,
        };
        Self {
            goes_on: commits.next.is_some(),
            commits: commits.items.into_iter().map(line).collect(),
            changed: aggregate.map(|sum| Changed {
                files: sum.files_changed.cast_signed(),
                added: sum.lines_added.cast_signed(),
                removed: sum.lines_removed.cast_signed(),
            }),
            ..Self::default()
        }
    }
}

/// What changed since green.
pub(super) async fn tab(
    visit: Visit,
    access: Option<Access<'_>>,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
) -> Result<Response, ApiError> {
    let again = |select| run_views::rerun(&visit.ctx, project, run, select, IN_COMMAND);
    let context = run_views::regression_context(&visit.ctx, project, run).await?;
    let (tested, unset_default) = match &context.green {
        Some(green) => (run_views::tested_since(&visit.ctx, project, RunId(green.run_id), run).await?, None),
        None => (TestedCommits::default(), UnsetDefault::load(&visit, project).await?),
    };
    let commits = match &access {
        Some(access) => Some(CommitsSinceGreen::read(&visit, access, project, run).await?),
        None => None,
    };
    answer(&RegressionTab {
        commits,
        context,
        unset_default,
        tested,
        failed: again(RerunSelect::Failed).await?.0,
        fresh: again(RerunSelect::New).await?.0,
        shell,
        head,
    })
}
