//! Clusters that may be one: what is suggested, and what people say to it.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ClusterSuggestionId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::clusters::suggestions::{self as store, SuggestionRow};
use callboard_store::clusters::{self, routes};
use callboard_store::db::Session;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::editing::merge_within;
use super::reading::required_cluster;
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::page::{Slice, fetch};
use crate::shapes::{ClusterBrief, ClusterItem};
use crate::{Context, Entity, QueryError, Result};

pub use callboard_store::clusters::suggestions::SuggestionStatus;

/// Two clusters that may be one.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeSuggestion {
    /// Id.
    #[schema(example = 4)]
    pub id: i64,
    /// How alike they are, 0 to 1; null where the method has no measure.
    pub score: Option<f64>,
    /// `fingerprint`: newer rules read the same failure in both. `wording`: what is read of them is nearly the same.
    #[schema(example = "fingerprint")]
    pub method: String,
    /// Why they may be one.
    pub reason: Option<String>,
    /// `pending`, `approved` or `rejected`.
    #[schema(example = "pending")]
    pub status: String,
    /// The older cluster, which would stay.
    pub cluster_a: ClusterBrief,
    /// The newer cluster, which would become part of it.
    pub cluster_b: ClusterBrief,
    /// When it was suggested.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// Suggestions of a project, the newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn suggestions(
    ctx: &Context,
    project: Authorized<ProjectId>,
    status: SuggestionStatus,
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<MergeSuggestion, i64>> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let rows = store::list(&mut session, project, status, before, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| row.id.get());
    let items = shown(&mut session, project, &rows.items).await?;
    Ok(Slice { items, next: rows.next })
}

async fn shown(
    session: &mut Session,
    project: ProjectId,
    rows: &[SuggestionRow],
) -> Result<Vec<MergeSuggestion>> {
    let ids = rows.iter().flat_map(|row| [row.a.get(), row.b.get()]).collect();
    let found = clusters::get_many(session, project, ids).await?;
    let brief = |id: i64| found.iter().find(|row| row.id.get() == id).map(ClusterBrief::from_row);
    let items = rows.iter().filter_map(|row| {
        Some(MergeSuggestion {
            id: row.id.get(),
            score: row.score,
            method: row.method.clone(),
            reason: row.reason.clone(),
            status: row.status.as_str().to_owned(),
            cluster_a: brief(row.a.get())?,
            cluster_b: brief(row.b.get())?,
            created_at: row.created_at,
        })
    });
    Ok(items.collect())
}

/// Makes the newer cluster of a suggestion part of the older one, which is the
/// answer.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::NotPending`] when somebody
/// has decided, or the two are one already.
pub async fn approve(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ClusterSuggestionId,
) -> Result<ClusterItem> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    routes::hold_shape(&mut session, project).await?;
    let row = pending(&mut session, project, id).await?;
    let from = required_cluster(&mut session, project, row.b).await?.id;
    let into = required_cluster(&mut session, project, row.a).await?.id;
    if from == into {
        return Err(AdministrationRule::NotPending.into());
    }
    store::decide(&mut session, project, id, SuggestionStatus::Approved, acting.now).await?;
    merge_within(ctx, acting, session, project, from, into).await
}

/// Keeps the two clusters of a suggestion apart; they are not suggested again.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::NotPending`] when somebody
/// has decided.
pub async fn reject(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ClusterSuggestionId,
) -> Result<MergeSuggestion> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let mut row = pending(&mut session, project, id).await?;
    store::decide(&mut session, project, id, SuggestionStatus::Rejected, acting.now).await?;
    let detail = json!({ "suggestion": "rejected", "notPartOf": row.a });
    let target = ("cluster", row.b.get());
    let noted =
        acting.record(&mut session, AuditAction::ClusterChanged, target, Some(project), detail).await?;
    row.status = SuggestionStatus::Rejected;
    let shown = shown(&mut session, project, &[row]).await?.pop();
    session.commit().await?;
    noted.committed();
    shown.ok_or_else(|| QueryError::not_found(Entity::Suggestion, id))
}

async fn pending(
    session: &mut Session,
    project: ProjectId,
    id: ClusterSuggestionId,
) -> Result<SuggestionRow> {
    let row = store::lock(session, project, id).await?;
    let row = row.ok_or_else(|| QueryError::not_found(Entity::Suggestion, id))?;
    if row.status != SuggestionStatus::Pending {
        return Err(AdministrationRule::NotPending.into());
    }
    Ok(row)
}
