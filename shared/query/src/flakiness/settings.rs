//! What is set about judging tests. What holds for a project: what it sets,
//! else what is set for the installation, else the default.
//!
//! Lists and proposals follow a change immediately. Runs that have ended keep what
//! they were judged by until something of them changes.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::flakiness::{FlakinessOverrides, FlakinessSettings};
use callboard_domain::ids::ProjectId;
use callboard_domain::setting::SettingsGroup as _;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::settings;
use serde_json::{Map, Value};

use crate::accounts::Acting;
use crate::settings::{Edited, read, stored, write};
use crate::{Context, Result};

/// What is set for a project.
#[derive(Debug, Clone, Copy)]
pub struct ProjectFlakiness {
    /// What is set for it.
    pub settings: FlakinessOverrides,
    /// What holds.
    pub effective: FlakinessSettings,
}

/// What holds for a project.
pub(crate) async fn effective(session: &mut Session, project: ProjectId) -> Result<FlakinessSettings> {
    let of_all: FlakinessOverrides = stored(session, None).await?;
    let of_project: FlakinessOverrides = stored(session, Some(project)).await?;
    Ok(of_project.over(&of_all.over(&FlakinessSettings::default())))
}

/// What holds for each of some projects.
pub(crate) async fn effective_of(
    session: &mut Session,
    projects: &[ProjectId],
) -> Result<HashMap<ProjectId, FlakinessSettings>> {
    let of_all: FlakinessOverrides = stored(session, None).await?;
    let of_all = of_all.over(&FlakinessSettings::default());
    let ids = projects.iter().map(|project| project.get()).collect();
    let set = settings::of_projects(session, ids, FlakinessOverrides::NAME).await?;
    let held = |project| read::<FlakinessOverrides>(set.get(project)).map(|set| set.over(&of_all));
    projects.iter().map(|project| Ok((*project, held(project)?))).collect()
}

/// What is set for a project.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn of_project(ctx: &Context, project: Authorized<ProjectId>) -> Result<ProjectFlakiness> {
    let mut session = ctx.store.db().read().await?;
    let settings = stored(&mut session, Some(project.get())).await?;
    Ok(ProjectFlakiness { settings, effective: effective(&mut session, project.get()).await? })
}

/// Changes what is set for a project.
///
/// # Errors
/// [`crate::QueryError::Store`]; the answer says which value cannot be set.
pub async fn edit_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    body: &Map<String, Value>,
) -> Result<Edited> {
    write::<FlakinessOverrides>(ctx, acting, Some(project.get()), body).await
}
