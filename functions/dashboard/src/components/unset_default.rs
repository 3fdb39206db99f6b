//! Says that a project has no default branch, where that keeps a run from
//! being measured.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_query::projects;

use crate::visit::Visit;

/// Inputs of `components/unset_default.html`.
#[derive(Template)]
#[template(path = "components/unset_default.html")]
pub(crate) struct UnsetDefault {
    project: i64,
    /// Whether the reader may set it.
    may_set: bool,
}

impl HtmlSafe for UnsetDefault {}

impl UnsetDefault {
    /// Nothing for a project whose default branch is known.
    pub(crate) async fn load(
        visit: &Visit,
        project: Authorized<ProjectId>,
    ) -> Result<Option<Self>, ApiError> {
        let set = projects::get(&visit.ctx, project).await?.default_branch;
        Ok(set
            .is_none_or(|branch| branch.is_empty())
            .then(|| Self { project: project.get().get(), may_set: visit.caller.is_administrator() }))
    }
}
