//! Opening a run that is fed: set-up and start answer with a token, begin
//! turns the one into the other.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ApiKeyId, ProjectId, RunId};
use callboard_domain::ingest::RunFields;
use callboard_domain::run_life::{EndReason, SlotState};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::audit::{self, Actor, AuditEvent, Recorded, Target};
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::runs::slots;
use callboard_store::runs::tokens::{self, Minter, TokenHash, TokenKind};

use crate::resolve::run_metadata::{self, Plan};
use crate::resolve::run_resolution::{OpenKind, Opened, Opening};
use crate::resolve::start_keys::{setup_keys, slot_keys};
use crate::stage::run_token::{self, Bearer};
use crate::transaction::run_events;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, LifeRefusal, QueryError, Result};

/// Times an opening is tried when another one was faster.
const ATTEMPTS: usize = 16;

/// What a client feeds its run with.
#[derive(Debug)]
pub struct Ticket {
    /// The run.
    pub run: RunId,
    /// Its project.
    pub project: ProjectId,
    /// The token; its clear text exists only here.
    pub token: String,
    /// Page of the run.
    pub url: String,
}

/// Who a token is minted for.
fn minter(actor: &Actor) -> Minter {
    Minter { user: actor.user, key: actor.key.map(ApiKeyId) }
}

/// Notes that a token was given out, in the transaction that does it.
async fn note_minted(
    session: &mut Session,
    actor: Actor,
    (project, run): (ProjectId, RunId),
    kind: TokenKind,
    now: Timestamp,
) -> Result<Recorded> {
    let detail = serde_json::Map::from_iter([("kind".to_owned(), kind.as_str().into())]);
    let target = Some(Target { kind: "run", id: run.get() });
    let action = AuditAction::TokenMinted;
    let event = AuditEvent { at: now, actor, action, target, project: Some(project), detail };
    Ok(audit::record(session, event).await?)
}

/// Registers a run before its global set-up.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn setup(
    ctx: &Context,
    project: Authorized<ProjectId>,
    fields: &RunFields,
    actor: Actor,
    now: Timestamp,
) -> Result<Ticket> {
    open(ctx, project, fields, OpenKind::Setup, actor, now).await
}

/// Opens a run that results are sent to while it goes on.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn start(
    ctx: &Context,
    project: Authorized<ProjectId>,
    fields: &RunFields,
    actor: Actor,
    now: Timestamp,
) -> Result<Ticket> {
    open(ctx, project, fields, OpenKind::Start, actor, now).await
}

async fn open(
    ctx: &Context,
    project: Authorized<ProjectId>,
    fields: &RunFields,
    purpose: OpenKind,
    actor: Actor,
    now: Timestamp,
) -> Result<Ticket> {
    let start = fields.start_time.unwrap_or(now);
    let keys = if purpose == OpenKind::Setup { setup_keys(fields) } else { slot_keys(fields, start) };
    let opening = Opening { ctx, project: project.get(), fields, start, keys, purpose, now };
    for _ in 0..ATTEMPTS {
        match try_open(&opening, actor).await {
            Ok(Some(ticket)) => return Ok(ticket),
            Ok(None) => {}
            Err(QueryError::Store(error)) if error.is_conflict() => {
                tracing::info!(%error, "an opening gave way to another and is repeated");
            }
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Damaged("a run that could not be opened").into())
}

async fn try_open(opening: &Opening<'_>, actor: Actor) -> Result<Option<Ticket>> {
    let Opening { ctx, project, fields, purpose, now, .. } = *opening;
    let place = opening.look(&mut ctx.store.db().read().await?).await?;
    let lanes = opening.lanes(place).await?;
    let better = match place.run() {
        Some(run) => run_metadata::better_lanes(ctx, project, run, fields).await?,
        None => None,
    };
    let mut session = ctx.store.db().begin().await?;
    let Some(opened) = opening.enter(&mut session, place, &lanes, None).await? else { return Ok(None) };
    let Opened { mut locked, slot, is_known } = opened;
    if !locked.is_fresh {
        let plan = if is_known { Plan::Told } else { Plan::Another };
        run_metadata::describe(&mut session, &mut locked, slot, fields, plan, better, now).await?;
        locked.recompute_status(now, None, &ctx.patience);
        locked.note(run_events::run_progress(&locked.run));
    }
    let run = locked.run.id;
    let kind = if purpose == OpenKind::Setup { TokenKind::Setup } else { TokenKind::Stream };
    let token = tokens::mint(&mut session, project, run, slot, kind, minter(&actor), now).await?;
    let noted = note_minted(&mut session, actor, (project, run), kind, now).await?;
    locked.close(session, now).await?;
    noted.committed();
    if kind == TokenKind::Stream {
        ctx.write_coalescer.remember_client((run, TokenHash::from_token(&token)), true);
    }
    Ok(Some(Ticket { run, project, token, url: ctx.links.run(run.get()) }))
}

/// The set-up is over: the run begins. The set-up token is used up.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`], and
/// [`LifeRefusal::CannotBegin`] when a fresh start would help.
#[boxed]
pub async fn begin(
    ctx: &Context,
    run: RunId,
    token: Option<&str>,
    fields: &RunFields,
    now: Timestamp,
) -> Result<Ticket> {
    let bearer = run_token::recognise(&ctx.store, run, token, TokenKind::Setup, now).await?;
    let Bearer { project, slot, .. } = bearer;
    let lanes = run_metadata::better_lanes(ctx, project, run, fields).await?;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    let minter = bearer.minter(&mut session).await?;
    let is_sharded = locked.run.shard_total.is_some();
    let may_begin = match (locked.run.status, locked.run.end_reason) {
        (RunStatus::Initializing | RunStatus::Running, _) => true,
        (RunStatus::Interrupted, Some(EndReason::SetupTimeout))
        | (RunStatus::Cancelled, Some(EndReason::Superseded)) => !is_sharded,
        _ => false,
    };
    if !may_begin || !tokens::use_up(&mut session, project, bearer.hash, now).await? {
        return Err(LifeRefusal::CannotBegin.into());
    }
    if locked.run.status == RunStatus::Initializing {
        locked.run.status = RunStatus::Running;
        locked.note(run_events::run_status(&locked.run, "started"));
        locked.announce("run-started");
    } else if locked.run.status != RunStatus::Running {
        locked.reopen("revived");
    }
    let row = locked.slot_mut(slot)?;
    if row.slot.state != SlotState::Finished {
        row.slot.state = SlotState::Live;
    }
    row.slot.begun_at = Some(row.slot.begun_at.unwrap_or(now));
    locked.touch(slot, now)?;
    if let Some(key) = setup_keys(fields).start {
        slots::name(&mut session, project, slot, key).await?;
    }
    run_metadata::describe(&mut session, &mut locked, slot, fields, Plan::Another, lanes, now).await?;
    locked.note(run_events::run_progress(&locked.run));
    let kind = TokenKind::Stream;
    let token = tokens::mint(&mut session, project, run, slot, kind, minter, now).await?;
    let actor = Actor { user: minter.user, key: minter.key.map(ApiKeyId::get), address_hash: None };
    let noted = note_minted(&mut session, actor, (project, run), kind, now).await?;
    locked.close(session, now).await?;
    noted.committed();
    ctx.write_coalescer.remember_client((run, TokenHash::from_token(&token)), true);
    Ok(Ticket { run, project, token, url: ctx.links.run(run.get()) })
}
