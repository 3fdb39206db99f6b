//! Who a run token makes its bearer: a client of one slot of one run, whatever
//! else it says about itself.

use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::runs::tokens::{self, CheckedToken, Feeder, Minter, TokenHash, TokenKind};

use crate::{Context, Entity, LifeRefusal, QueryError, Result, TokenRefusal};

/// The client that sent a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bearer {
    pub(super) project: ProjectId,
    pub(super) slot: SlotId,
    pub(super) hash: TokenHash,
    /// Where its run stood when the token was checked, and why.
    stood: (RunStatus, Option<EndReason>),
}

impl Bearer {
    /// Who the token was minted for: what it is exchanged for is minted for
    /// the same.
    pub(super) async fn minter(&self, session: &mut Session) -> Result<Minter> {
        Ok(tokens::minter(session, self.project, self.hash).await?)
    }

    /// Whether its run was going on when the token was checked.
    pub(super) const fn goes_on(&self) -> bool {
        matches!(self.stood.0, RunStatus::Running | RunStatus::Finalizing)
    }

    /// Turns a client of a run that is over away before anything it sends is
    /// written. What the run's lock says later counts.
    pub(super) fn refuse_early(&self) -> Result<()> {
        match self.stood {
            (_, Some(reason)) if reason.is_guess() => Ok(()),
            (RunStatus::Cancelled, _) => Err(LifeRefusal::Cancelled.into()),
            (status, _) if status.is_final() => Err(LifeRefusal::Finished.into()),
            _ => Ok(()),
        }
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
    recognise_in(&mut ctx.store.db().read().await?, run, token, kind, now).await
}

/// [`recognise`] on a connection that is read from further.
pub(super) async fn recognise_in(
    session: &mut Session,
    run: RunId,
    token: Option<&str>,
    kind: TokenKind,
    now: Timestamp,
) -> Result<Bearer> {
    let hash = hash_of(token)?;
    let checked = tokens::check(session, run, hash, now).await?;
    admitted(run, hash, checked, kind)
}

/// [`recognise`] for who sends results, with those of its attempts that were sent
/// before.
pub(super) async fn recognise_feeder(
    ctx: &Context,
    run: RunId,
    token: Option<&str>,
    keys: Vec<i64>,
    now: Timestamp,
) -> Result<(Bearer, Vec<i64>)> {
    let hash = hash_of(token)?;
    let mut session = ctx.store.db().read().await?;
    let Feeder { token, known } = tokens::check_feeder(&mut session, run, hash, keys, now).await?;
    Ok((admitted(run, hash, token, TokenKind::Stream)?, known))
}

fn hash_of(token: Option<&str>) -> Result<TokenHash> {
    Ok(TokenHash::of(token.filter(|token| !token.is_empty()).ok_or(TokenRefusal::Missing)?))
}

/// The bearer of a token, when it opens the run.
fn admitted(run: RunId, hash: TokenHash, checked: Option<CheckedToken>, kind: TokenKind) -> Result<Bearer> {
    let CheckedToken { project, status, end_reason, token } =
        checked.ok_or_else(|| QueryError::not_found(Entity::Run, run))?;
    let row = token.filter(|row| row.kind == kind).ok_or(TokenRefusal::Invalid)?;
    if row.revoked {
        // A run that was cancelled says so: its client did nothing wrong.
        return Err(match (end_reason, kind) {
            (Some(EndReason::User), TokenKind::Setup) => LifeRefusal::CannotBegin.into(),
            (Some(EndReason::User), TokenKind::Stream) => LifeRefusal::Cancelled.into(),
            _ => TokenRefusal::Revoked.into(),
        });
    }
    match kind {
        // 409 is what makes clients start afresh.
        TokenKind::Setup if row.used || row.expired => Err(LifeRefusal::CannotBegin.into()),
        TokenKind::Stream if row.expired => Err(TokenRefusal::Expired.into()),
        _ => Ok(Bearer { project, slot: row.slot, hash, stood: (status, end_reason) }),
    }
}

/// The project of a run whose stream token this is: its bearer may read what
/// it feeds.
pub(crate) async fn holds_token(ctx: &Context, run: RunId, token: &str, now: Timestamp) -> Result<ProjectId> {
    Ok(recognise(ctx, run, Some(token), TokenKind::Stream, now).await?.project)
}
