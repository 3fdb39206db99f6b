//! Tests that are the same under two paths: which histories were joined, and which
//! people are asked about.

use std::collections::{BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{HistoryJoinId, ProjectId, TestCaseId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::accounts::users;
use callboard_store::db::Session;
use callboard_store::history_joins::{self as store, HistoryJoin};
use callboard_store::{boxed, test_cases};
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::page::{Slice, fetch};
use crate::shapes::UserRef;
use crate::{Context, Entity, QueryError, Result};

pub use callboard_store::history_joins::JoinState;

/// One of two tests.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistorySide {
    /// Id of the test.
    #[schema(example = 9)]
    pub test_case_id: i64,
    /// The path under which its results come.
    #[schema(example = "tests/pay.spec.ts")]
    pub file_path: String,
}

/// Two tests whose histories are one, or may be.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinedHistory {
    /// Id.
    #[schema(example = 4)]
    pub id: i64,
    /// `proposed`, `joining`, `joined`, `undoing`, `undone` or `dismissed`.
    #[schema(example = "joined")]
    pub status: String,
    /// Why it was joined, proposed or undone.
    pub reason: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Title.
    pub title: String,
    /// The path of both.
    #[schema(example = "packages/web/tests/pay.spec.ts")]
    pub file_path: String,
    /// The test that keeps its id.
    pub kept: HistorySide,
    /// The test that leads to it.
    pub joined: HistorySide,
    /// When it was joined or proposed.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last decided about.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub decided_at: Option<Timestamp>,
    /// Who decided; null for the service itself.
    pub decided_by: Option<UserRef>,
}

/// Joins of a project in some states, the newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    states: &[JoinState],
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<JoinedHistory, i64>> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let before = before.map(HistoryJoinId);
    let rows = store::list(&mut session, project, states, before, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| row.id.get());
    let items = shown(&mut session, project, &rows.items).await?;
    Ok(Slice { items, next: rows.next })
}

/// Joins two histories (`joined`), leaves them two (`dismissed`), or makes them two again
/// (`undone`).
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::NotPending`] when that is not possible any
/// more.
pub async fn decide(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: HistoryJoinId,
    wanted: JoinState,
) -> Result<JoinedHistory> {
    let join = match wanted {
        JoinState::Joined => callboard_ingest::accept_join(ctx, acting, project, id).await?,
        JoinState::Dismissed => callboard_ingest::dismiss_join(ctx, acting, project, id).await?,
        JoinState::Undone => callboard_ingest::undo_join(ctx, acting, project, id).await?,
        _ => return Err(AdministrationRule::NotPending.into()),
    };
    let mut session = ctx.store.db().read().await?;
    let shown = shown(&mut session, project.get(), &[join]).await?.pop();
    shown.ok_or_else(|| QueryError::not_found(Entity::HistoryJoin, id))
}

async fn shown(
    session: &mut Session,
    project: ProjectId,
    rows: &[HistoryJoin],
) -> Result<Vec<JoinedHistory>> {
    let kept = rows.iter().map(|row| row.kept.get()).collect();
    let tests = test_cases::get_many(session, project, kept).await?;
    let deciders: BTreeSet<UserId> = rows.iter().filter_map(|row| row.decided_by).collect();
    let mut people: HashMap<UserId, UserRef> = HashMap::new();
    for user in deciders {
        if let Some(found) = users::get(session, user).await? {
            people.insert(user, UserRef::from_row(&found));
        }
    }
    let side =
        |test: TestCaseId, path: &str| HistorySide { test_case_id: test.get(), file_path: path.to_owned() };
    let items = rows.iter().filter_map(|row| {
        let test = tests.get(&row.kept)?;
        Some(JoinedHistory {
            id: row.id.get(),
            status: row.state.as_str().to_owned(),
            reason: row.reason.clone(),
            suite_path: test.suite_path.clone(),
            title: test.title.clone(),
            file_path: row.path.clone(),
            kept: side(row.kept, &row.kept_path),
            joined: side(row.joined, &row.joined_path),
            created_at: row.created_at,
            decided_at: row.decided_at,
            decided_by: row.decided_by.and_then(|user| people.get(&user).cloned()),
        })
    });
    Ok(items.collect())
}
