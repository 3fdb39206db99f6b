//! Who a run token makes its bearer: a client of one slot of one run, whatever
//! else it says about itself.

use std::collections::HashSet;

use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::db::Session;
use callboard_store::intake::Admitted;
use callboard_store::runs::tokens::{self, CheckedToken, Feeder, Minter, TokenHash, TokenKind};

use crate::{Entity, LifeRefusal, QueryError, Result, TokenRefusal};

/// The client that sent a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bearer {
    pub(crate) project: ProjectId,
    pub(crate) slot: SlotId,
    pub(crate) hash: TokenHash,
    /// Where its run stood when the token was checked, and why.
    stood: (RunStatus, Option<EndReason>),
}

impl Bearer {
    /// Who the token was minted for: what it is exchanged for is minted for
    /// the same.
    pub(crate) async fn minter(&self, session: &mut Session) -> Result<Minter> {
        Ok(tokens::minter(session, self.project, self.hash).await?)
    }

    /// Whether its run was going on when the token was checked.
    const fn goes_on(&self) -> bool {
        matches!(self.stood.0, RunStatus::Running | RunStatus::Finalizing)
    }

    /// WriteCoalescer a client of a run that is over away before anything it sends is
    /// written. What the run's lock says later counts.
    pub(crate) fn refuse_early(&self) -> Result<()> {
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
pub(crate) async fn recognise(
    store: &Store,
    run: RunId,
    token: Option<&str>,
    kind: TokenKind,
    now: Timestamp,
) -> Result<Bearer> {
    recognise_in(&mut store.db().read().await?, run, token, kind, now).await
}

/// [`recognise`] on a connection that is read from further.
pub(crate) async fn recognise_in(
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

/// Who says to be a client of a run, and brings results.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) run: RunId,
    pub(crate) token: TokenHash,
    /// Names of the attempts it brings.
    pub(crate) keys: Vec<i64>,
    /// When it came.
    pub(crate) at: Timestamp,
}

/// A run and the token somebody sends to it.
pub(crate) type Sender = (RunId, TokenHash);

/// A client that may bring results to its run.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) project: ProjectId,
    pub(crate) slot: SlotId,
    /// Whether its run was going on when the token was checked.
    pub(crate) goes_on: bool,
    /// How many of its attempts nobody knew of.
    pub(crate) inserted: usize,
}

impl Producer {
    /// Of somebody who was seen immediately to be a client of a run that goes on.
    pub(crate) const fn from_admitted(admitted: Admitted) -> Self {
        let Admitted { project, slot, inserted } = admitted;
        Self { project, slot, goes_on: true, inserted }
    }
}

impl Claim {
    pub(crate) fn new(run: RunId, token: Option<&str>, keys: Vec<i64>, at: Timestamp) -> Result<Self> {
        Ok(Self { run, token: hash_of(token)?, keys, at })
    }

    /// By what it is known again.
    pub(crate) const fn sender(&self) -> Sender {
        (self.run, self.token)
    }
}

/// [`recognise`] for somebody who brings results.
pub(crate) async fn recognise_producer(store: &Store, claim: &Claim) -> Result<Producer> {
    let Claim { run, token, keys, at } = claim;
    let mut session = store.db().read().await?;
    let Feeder { token: checked, known } =
        tokens::check_feeder(&mut session, *run, *token, keys.clone(), *at).await?;
    let bearer = admitted(*run, *token, checked, TokenKind::Stream)?;
    bearer.refuse_early()?;
    let mut known: HashSet<i64> = known.into_iter().collect();
    let inserted = keys.iter().filter(|key| known.insert(**key)).count();
    Ok(Producer { project: bearer.project, slot: bearer.slot, goes_on: bearer.goes_on(), inserted })
}

fn hash_of(token: Option<&str>) -> Result<TokenHash> {
    Ok(TokenHash::from_token(token.filter(|token| !token.is_empty()).ok_or(TokenRefusal::Missing)?))
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
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn holds_token(store: &Store, run: RunId, token: &str, now: Timestamp) -> Result<ProjectId> {
    Ok(recognise(store, run, Some(token), TokenKind::Stream, now).await?.project)
}
