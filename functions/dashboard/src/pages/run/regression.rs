//! What lies between a run and the last green one before it.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_query::run_views::{self, RegressionContext, Rerun, RerunSelect, TestedCommits};

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
}

/// What changed since green.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
) -> Result<Response, ApiError> {
    let again = |select| run_views::rerun(&visit.ctx, project, run, select, IN_COMMAND);
    let context = run_views::regression_context(&visit.ctx, project, run).await?;
    let (tested, unset_default) = match &context.green {
        Some(green) => (run_views::tested_since(&visit.ctx, project, RunId(green.run_id), run).await?, None),
        None => (TestedCommits::default(), UnsetDefault::of(&visit, project).await?),
    };
    answer(&RegressionTab {
        context,
        unset_default,
        tested,
        failed: again(RerunSelect::Failed).await?.0,
        fresh: again(RerunSelect::New).await?.0,
        shell,
        head,
    })
}
