//! Names of projects alone, for what only suggests them.

use callboard_auth::scope::Scope;
use callboard_store::boxed;
use callboard_store::projects::{self, ProjectOrder};

use crate::page::fetch;
use crate::projects::visible;
use crate::{Context, Result};

/// Projects one question looks at.
const LOOKED_AT: usize = 1_000;

/// Names of projects.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The names.
    pub names: Vec<String>,
    /// How many there are; `None` when there are more than were looked at.
    pub total: Option<usize>,
}

/// The caller's projects by last activity, at most `limit` of them.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn recent(ctx: &Context, scope: &Scope, limit: usize) -> Result<Names> {
    let mut found = names(ctx, scope, &ProjectOrder::Updated(None)).await?;
    found.names.truncate(limit);
    Ok(found)
}

/// The caller's projects whose name contains this, whatever the case; those
/// that begin with it first, then by name.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn matching(ctx: &Context, scope: &Scope, text: &str) -> Result<Names> {
    let text = text.to_lowercase();
    let all = names(ctx, scope, &ProjectOrder::Name(None)).await?;
    let mut names = all.names;
    names.retain(|name| name.to_lowercase().contains(&text));
    // The sort is stable, so names stay in order on both sides.
    names.sort_by_key(|name| !name.to_lowercase().starts_with(&text));
    let total = all.total.map(|_| names.len());
    Ok(Names { names, total })
}

/// A project that can be chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Project id.
    pub id: i64,
    /// Its name.
    pub name: String,
}

/// The caller's projects by name, at most 1,000 of them, to choose one.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn choices(ctx: &Context, scope: &Scope) -> Result<Vec<Choice>> {
    let mut session = ctx.store.db().read().await?;
    let order = ProjectOrder::Name(None);
    let rows = projects::list(&mut session, &visible(scope), None, &order, fetch(LOOKED_AT)).await?;
    Ok(rows.into_iter().map(|row| Choice { id: row.id.get(), name: row.name }).collect())
}

async fn names(ctx: &Context, scope: &Scope, order: &ProjectOrder) -> Result<Names> {
    let mut session = ctx.store.db().read().await?;
    let rows = projects::list(&mut session, &visible(scope), None, order, fetch(LOOKED_AT)).await?;
    let total = (rows.len() <= LOOKED_AT).then_some(rows.len());
    Ok(Names { names: rows.into_iter().take(LOOKED_AT).map(|row| row.name).collect(), total })
}
