//! Who a run token makes its bearer: a client of one slot of one run, whatever
//! else it says about itself.

use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::run_life::EndReason;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::ids::{self, Listed};
use callboard_store::runs;
use callboard_store::runs::tokens::{self, Minter, TokenHash, TokenKind};

use crate::{Context, Entity, LifeRefusal, QueryError, Result, TokenRefusal};

/// The client that sent a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bearer {
    pub(super) project: ProjectId,
    pub(super) slot: SlotId,
    pub(super) hash: TokenHash,
}

impl Bearer {
    /// Who the token was minted for: what it is exchanged for is minted for
    /// the same.
    pub(super) async fn minter(&self, session: &mut Session) -> Result<Minter> {
        Ok(tokens::minter(session, self.project, self.hash).await?)
    }
}

/// Recognises a client of a run by its token, in the order of the contract:
/// sent at all, a run at all, minted for this.
pub(super) async fn recognise(
    ctx: &Context,
    run: RunId,
    token: Option<&str>,
    kind: TokenKind,
    now: Timestamp,
) -> Result<Bearer> {
    let token = token.filter(|token| !token.is_empty()).ok_or(TokenRefusal::Missing)?;
    let mut session = ctx.store.db().read().await?;
    let project = ids::project_of(&mut session, Listed::Run, run.get()).await?;
    let project = project.ok_or_else(|| QueryError::not_found(Entity::Run, run))?;
    let hash = TokenHash::of(token);
    let found = tokens::check(&mut session, project, run, hash, now).await?;
    let found = found.ok_or_else(|| QueryError::not_found(Entity::Run, run))?;
    let row = found.filter(|row| row.kind == kind).ok_or(TokenRefusal::Invalid)?;
    if row.revoked {
        // A run that was cancelled says so: its client did nothing wrong.
        let run = runs::get(&mut session, project, run).await?;
        let is_cancelled = run.is_some_and(|run| run.end_reason == Some(EndReason::User));
        return Err(if is_cancelled { LifeRefusal::Cancelled.into() } else { TokenRefusal::Revoked.into() });
    }
    match kind {
        // 409 is what makes clients start afresh.
        TokenKind::Setup if row.used || row.expired => Err(LifeRefusal::CannotBegin.into()),
        TokenKind::Stream if row.expired => Err(TokenRefusal::Expired.into()),
        _ => Ok(Bearer { project, slot: row.slot, hash }),
    }
}

/// The project of a run whose stream token this is: its bearer may read what
/// it feeds.
pub(crate) async fn holds_token(ctx: &Context, run: RunId, token: &str, now: Timestamp) -> Result<ProjectId> {
    Ok(recognise(ctx, run, Some(token), TokenKind::Stream, now).await?.project)
}
