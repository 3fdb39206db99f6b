//! Markers: deployments, incidents and other events on the time line of a
//! project.

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::annotations::MarkerCategory;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{MarkerId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::ids::{self, Listed};
use callboard_store::markers::{self, MarkerFilter, MarkerRow};
use callboard_store::runs::RunRow;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::page::{Slice, fetch};
use crate::{Change, Context, Entity, QueryError, Result, resolve};

/// A marker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// Marker id.
    pub id: i64,
    /// Project id.
    pub project_id: i64,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Timestamp,
    /// What it is called.
    #[schema(example = "Release 2.4")]
    pub label: String,
    /// More about it.
    pub description: Option<String>,
    /// `deploy`, `config`, `infra`, `incident`, `release` or `event`.
    #[schema(example = "deploy")]
    pub category: &'static str,
    /// Where; null is everywhere.
    #[schema(example = "staging")]
    pub environment: Option<String>,
    /// `manual` or `auto`.
    #[schema(example = "manual")]
    pub source: String,
    /// The run it goes with.
    pub run_id: Option<i64>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl Marker {
    fn from_row(row: MarkerRow) -> Self {
        Self {
            id: row.id.get(),
            project_id: row.project.get(),
            occurred_at: row.occurred_at,
            label: row.label,
            description: row.description,
            category: row.category.as_str(),
            environment: row.environment,
            source: row.source,
            run_id: row.run.map(RunId::get),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// What is said about a marker; a new one takes `occurred_at`, `label` and
/// `category`.
#[derive(Debug, Clone, Default)]
pub struct MarkerEdit {
    /// When it happened.
    pub occurred_at: Option<Timestamp>,
    /// What it is called.
    pub label: Option<String>,
    /// More about it.
    pub description: Change<String>,
    /// What kind of thing happened.
    pub category: Option<MarkerCategory>,
    /// Where.
    pub environment: Change<String>,
    /// The run it goes with.
    pub run: Change<RunId>,
}

impl MarkerEdit {
    fn apply(self, row: &mut MarkerRow) {
        row.occurred_at = self.occurred_at.unwrap_or(row.occurred_at);
        row.label = self.label.unwrap_or_else(|| std::mem::take(&mut row.label));
        row.description = self.description.applied_to(row.description.take());
        row.category = self.category.unwrap_or(row.category);
        row.environment = self.environment.applied_to(row.environment.take());
        row.run = self.run.applied_to(row.run);
    }

    /// Fails for a run that does not exist or belongs to another project.
    async fn check_run(&self, session: &mut callboard_store::Session, project: ProjectId) -> Result<()> {
        let Some(run) = self.run.value() else { return Ok(()) };
        match ids::project_of(session, Listed::Run, run.get()).await? {
            Some(found) if found == project => Ok(()),
            _ => Err(QueryError::not_found(Entity::Run, run)),
        }
    }
}

/// Markers before a run that are looked at for one of its environment.
const PRECEDING_READ: i64 = 50;

/// The newest marker before a run, of its environment or of all.
pub(crate) async fn preceding(
    session: &mut callboard_store::Session,
    run: &RunRow,
) -> Result<Option<Marker>> {
    let before = MarkerFilter { to: Some(run.start_time), ..MarkerFilter::default() };
    let rows = markers::list(session, run.project, &before, PRECEDING_READ).await?;
    let fits =
        |row: &MarkerRow| row.environment.as_ref().is_none_or(|environment| *environment == run.environment);
    Ok(rows.into_iter().find(fits).map(Marker::from_row))
}

/// Which markers a list shows.
#[derive(Debug, Clone, Default)]
pub struct MarkerFilters {
    /// At this moment or later.
    pub from: Option<Timestamp>,
    /// At this moment or earlier.
    pub to: Option<Timestamp>,
    /// Only of this kind.
    pub category: Option<MarkerCategory>,
    /// Only in this environment.
    pub environment: Option<String>,
}

/// Key of a page: when the last marker happened, and its id.
pub type MarkerKey = (i64, i64);

/// The project of a marker.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::Denied`].
#[boxed]
pub async fn resolve_marker(ctx: &Context, scope: &Scope, id: MarkerId) -> Result<Authorized<ProjectId>> {
    resolve::listed(ctx, scope, Listed::Marker, id.get(), Entity::Marker, id.get()).await
}

/// Markers of a project, newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    filters: MarkerFilters,
    after: Option<MarkerKey>,
    limit: usize,
) -> Result<Slice<Marker, MarkerKey>> {
    let mut session = ctx.store.db().read().await?;
    let MarkerFilters { from, to, category, environment } = filters;
    let wanted = MarkerFilter { from, to, category, environment, after };
    let rows = markers::list(&mut session, project.get(), &wanted, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row: &MarkerRow| (row.occurred_at.millis(), row.id.get()))
        .map(Marker::from_row))
}

/// Creates a marker.
///
/// # Errors
/// [`QueryError::NotFound`] for the run.
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    wanted: MarkerEdit,
) -> Result<Marker> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    wanted.check_run(&mut session, project).await?;
    let mut row = MarkerRow {
        id: markers::new_id(&mut session).await?,
        project,
        occurred_at: acting.now,
        label: String::new(),
        description: None,
        category: MarkerCategory::Event,
        environment: None,
        source: "manual".to_owned(),
        run: None,
        created_at: acting.now,
        updated_at: acting.now,
    };
    wanted.apply(&mut row);
    markers::insert(&mut session, &row).await?;
    note(session, acting, AuditAction::MarkerCreated, &row).await?;
    Ok(Marker::from_row(row))
}

/// Changes a marker.
///
/// # Errors
/// [`QueryError::NotFound`] for the marker or the run.
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: MarkerId,
    wanted: MarkerEdit,
) -> Result<Marker> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    wanted.check_run(&mut session, project).await?;
    let mut row = required(&mut session, project, id).await?;
    wanted.apply(&mut row);
    row.updated_at = acting.now;
    markers::save(&mut session, &row).await?;
    note(session, acting, AuditAction::MarkerChanged, &row).await?;
    Ok(Marker::from_row(row))
}

/// Deletes a marker.
///
/// # Errors
/// [`QueryError::NotFound`] when it is gone.
pub async fn delete(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: MarkerId,
) -> Result<()> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let row = required(&mut session, project, id).await?;
    markers::delete(&mut session, project, id).await?;
    note(session, acting, AuditAction::MarkerDeleted, &row).await
}

async fn required(
    session: &mut callboard_store::Session,
    project: ProjectId,
    id: MarkerId,
) -> Result<MarkerRow> {
    markers::get(session, project, id).await?.ok_or_else(|| QueryError::not_found(Entity::Marker, id))
}

async fn note(
    mut session: callboard_store::Session,
    acting: Acting<'_>,
    action: AuditAction,
    row: &MarkerRow,
) -> Result<()> {
    let detail = json!({ "label": row.label });
    let target = ("marker", row.id.get());
    let recorded = acting.record(&mut session, action, target, Some(row.project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
