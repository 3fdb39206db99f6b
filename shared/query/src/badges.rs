//! Tokens that open the badge of a project, for pages outside. One at a time:
//! a new one takes the place of the old one.

use callboard_auth::scope::Authorized;
use callboard_auth::token::{self, TokenKind};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::ProjectId;
use callboard_store::boxed;
use callboard_store::projects::edit;
use serde_json::json;

use crate::accounts::Acting;
use crate::{Context, Entity, QueryError, Result};

/// Makes a token; the one before it opens nothing any more.
///
/// # Errors
/// [`QueryError::NotFound`] when the project is gone.
pub async fn make_token(ctx: &Context, acting: Acting<'_>, project: Authorized<ProjectId>) -> Result<String> {
    let made = token::mint(TokenKind::Badge)?;
    set(ctx, acting, project.get(), Some(made.hash), AuditAction::SecretSet).await?;
    Ok(made.text)
}

/// Takes the token away.
///
/// # Errors
/// [`QueryError::NotFound`] when the project is gone.
pub async fn take_token(ctx: &Context, acting: Acting<'_>, project: Authorized<ProjectId>) -> Result<()> {
    set(ctx, acting, project.get(), None, AuditAction::SecretCleared).await
}

async fn set(
    ctx: &Context,
    acting: Acting<'_>,
    project: ProjectId,
    hash: Option<[u8; 32]>,
    action: AuditAction,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let found = edit::lock(&mut session, project).await?;
    found.ok_or_else(|| QueryError::not_found(Entity::Project, project))?;
    edit::set_badge(&mut session, project, hash).await?;
    let (target, detail) = (("project", project.get()), json!({ "secret": "badgeToken" }));
    let recorded = acting.record(&mut session, action, target, Some(project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}

/// The project whose badge a token opens.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn opened_by(ctx: &Context, text: &str) -> Result<Option<Authorized<ProjectId>>> {
    let Some((TokenKind::Badge, hash)) = token::read(text) else { return Ok(None) };
    let project = edit::of_badge(&mut ctx.store.db().read().await?, hash).await?;
    Ok(project.map(Authorized::of_badge))
}
