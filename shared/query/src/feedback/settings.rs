//! Whether the runs of a project comment and set a status.

use callboard_auth::scope::Authorized;
use callboard_domain::feedback::{FeedbackSettings, default_context};
use callboard_domain::ids::ProjectId;
use callboard_store::boxed;
use serde_json::{Map, Value};

use crate::accounts::Acting;
use crate::projects::required;
use crate::settings::{self, Edited};
use crate::{Context, Result};

/// The settings of a project.
#[derive(Debug, Clone)]
pub struct ProjectFeedback {
    /// What is set.
    pub settings: FeedbackSettings,
    /// Name of the status unless one is set.
    pub default_context: String,
}

/// What is set for a project.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn of_project(ctx: &Context, project: Authorized<ProjectId>) -> Result<ProjectFeedback> {
    let mut session = ctx.store.db().read().await?;
    let row = required(&mut session, project.get()).await?;
    let settings = settings::stored(&mut session, Some(project.get())).await?;
    Ok(ProjectFeedback { settings, default_context: default_context(row.id, &row.name) })
}

/// Changes what is set for a project. Runs that ended before say nothing later.
///
/// # Errors
/// [`crate::QueryError::Store`]; the answer says which value cannot be set.
pub async fn edit_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    body: &Map<String, Value>,
) -> Result<Edited> {
    settings::write::<FeedbackSettings>(ctx, acting, Some(project.get()), body).await
}
