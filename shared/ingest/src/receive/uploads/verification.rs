//! Finding out whether staged bytes are what was announced, within a request as
//! far as that is quick, else by a job.

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_store::blobs::staged_copy::{self, Hashed, SMALL_BYTES};
use callboard_store::blobs::{Room, StagedBlob, random_secret};
use callboard_store::db::Session;
use callboard_store::jobs::{self, Payload};
use callboard_store::upload_tickets::{self, TicketState, UploadTicket, UploadTicketHash};
use callboard_store::{boxed, outbox, unclaimed};
use serde::{Deserialize, Serialize};

use crate::{Context, Result};

/// Bytes that one request hashes: a few seconds of work.
const BYTES_PER_REQUEST: u64 = 256 * 1024 * 1024;
/// For how long a job that is queued stands for all commits that ask for it, ms.
const JOB_PERIOD_MS: i64 = 10 * 60 * 1000;

/// What the staged bytes of a ticket are.
#[derive(Debug)]
pub(super) enum Verified {
    /// What was announced.
    Good(StagedBlob),
    /// Not known yet; a job finds out.
    Pending,
    /// Not there.
    Missing,
    /// Of another size.
    WrongSize,
    /// Of this size, and others than announced.
    WrongHash,
}

/// Verifies staged bytes for one request.
#[derive(Debug, Default)]
pub(super) struct Verifier {
    hashed: u64,
}

impl Verifier {
    /// Verifies the bytes of a ticket. The ticket and its staged object stay.
    pub(super) async fn verify(
        &mut self,
        ctx: &Context,
        ticket: &UploadTicket,
        now: Timestamp,
    ) -> Result<Verified> {
        match (ticket.state, &ticket.verified_key) {
            (TicketState::Verified, Some(key)) => return checked_before(ctx, ticket, key, now).await,
            (TicketState::WrongSize, _) => return Ok(Verified::WrongSize),
            (TicketState::WrongHash, _) => return Ok(Verified::WrongHash),
            _ => {}
        }
        let Some(size) = ctx.store.objects().size(&ticket.staging_key).await? else {
            return Ok(Verified::Missing);
        };
        if size == ticket.size && size <= SMALL_BYTES {
            let room = ctx.store.memory().room(usize::try_from(size).unwrap_or(usize::MAX));
            // Without room for it, it is copied like a large one.
            if room.bytes() as u64 >= size {
                return small(ctx, ticket, room).await;
            }
        }
        if !ticket.is_direct {
            // The service wrote it, after it had compared all of it.
            return checked_before(ctx, ticket, &ticket.staging_key, now).await;
        }
        if size != ticket.size {
            // As long as its address is valid, the client may send the right bytes.
            ctx.store.objects().delete(&ticket.staging_key).await?;
            return Ok(Verified::WrongSize);
        }
        if self.hashed + size > BYTES_PER_REQUEST {
            let mut session = ctx.store.db().begin().await?;
            VerifyUpload::enqueue(&mut session, ticket, now).await?;
            session.commit().await?;
            return Ok(Verified::Pending);
        }
        let copy = staged_copy::copy(&ctx.store, ticket.project, &ticket.staging_key, now).await?;
        let Some(copy) = copy else { return Ok(Verified::Missing) };
        let blob = copy.hashed(&ctx.store, ticket.size).await?;
        self.hashed += blob.size;
        if blob.size == ticket.size && blob.sha256 == ticket.sha256 {
            return Ok(Verified::Good(blob));
        }
        let is_wrong_size = blob.size != ticket.size;
        blob.discard(&ctx.store).await?;
        ctx.store.objects().delete(&ticket.staging_key).await?;
        Ok(if is_wrong_size { Verified::WrongSize } else { Verified::WrongHash })
    }
}

/// Verifies bytes that fit into memory: for small files, requests to the bucket are what takes time.
async fn small(ctx: &Context, ticket: &UploadTicket, room: Room) -> Result<Verified> {
    let read = staged_copy::read(&ctx.store, &ticket.staging_key, ticket.size, room).await?;
    let Some(blob) = read else { return Ok(Verified::Missing) };
    if blob.sha256 == ticket.sha256 {
        return Ok(Verified::Good(blob));
    }
    // As long as its address is valid, the client may send the right bytes.
    ctx.store.objects().delete(&ticket.staging_key).await?;
    Ok(Verified::WrongHash)
}

async fn checked_before(ctx: &Context, ticket: &UploadTicket, key: &str, now: Timestamp) -> Result<Verified> {
    match staged_copy::copy(&ctx.store, ticket.project, key, now).await? {
        Some(copy) => {
            let blob = copy.checked_before(&ctx.store, ticket.sha256, ticket.size).await?;
            Ok(Verified::Good(blob))
        }
        None => Ok(Verified::Missing),
    }
}

/// A large upload whose bytes are to be verified.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VerifyUpload {
    /// SHA-256 of its ticket, in hex.
    ticket_hash: String,
}

impl Payload for VerifyUpload {
    const KIND: &'static str = "verify_upload";
}

impl VerifyUpload {
    async fn enqueue(session: &mut Session, ticket: &UploadTicket, now: Timestamp) -> Result<()> {
        let ticket_hash = hex::encode(ticket.hash.0);
        let period = now.millis().div_euclid(JOB_PERIOD_MS);
        let key = format!("upload:{ticket_hash}:verify:{period}");
        jobs::enqueue(session, &key, Some(ticket.project), &Self { ticket_hash }, now).await?;
        Ok(())
    }

    fn hash(&self) -> Option<UploadTicketHash> {
        let mut hash = [0; 32];
        hex::decode_to_slice(&self.ticket_hash, &mut hash).ok()?;
        Some(UploadTicketHash(hash))
    }
}

/// Verifies a copy of staged bytes, which the commit takes then.
///
/// # Errors
/// [`crate::QueryError::Store`]; the job may be done again.
#[boxed]
pub async fn verify_upload(ctx: &Context, job: &VerifyUpload, now: Timestamp) -> Result<()> {
    let Some(hash) = job.hash() else { return Ok(()) };
    let found = upload_tickets::get(&mut ctx.store.db().read().await?, hash).await?;
    let Some(ticket) = found else { return Ok(()) };
    if !matches!(ticket.state, TicketState::Open | TicketState::Received) {
        return Ok(());
    }
    let Some(key) = copy_announced(ctx, ticket.project, &ticket.staging_key, now).await? else {
        return Ok(());
    };
    let Hashed { sha256, size, .. } = staged_copy::hash(&ctx.store, &key, ticket.size).await?;
    let is_wrong_size = size != ticket.size;
    let is_right = !is_wrong_size && sha256 == ticket.sha256;
    let mut session = ctx.store.db().begin().await?;
    let is_taken = is_right && upload_tickets::mark_verified(&mut session, hash, &key).await?;
    if !is_right {
        upload_tickets::mark_rejected(&mut session, hash, is_wrong_size).await?;
        if let Some(run) = ticket.run {
            let what = if is_wrong_size { "another size" } else { "other content" };
            let name = ticket.name.as_deref().unwrap_or("A file");
            let reason = format!("{name} was refused: it arrived with {what} than announced.");
            let event = DomainEvent::EvidenceDropped { run, reason };
            outbox::append(&mut session, ticket.project, &[event], now).await?;
        }
    }
    session.commit().await?;
    if !is_right {
        ctx.store.objects().delete(&ticket.staging_key).await?;
    }
    if !is_taken {
        ctx.store.objects().delete(&key).await?;
    }
    Ok(())
}

/// Copies an object to a key that no client knows and that the sweep does; `None` when it is not there.
async fn copy_announced(
    ctx: &Context,
    project: ProjectId,
    from: &str,
    now: Timestamp,
) -> Result<Option<String>> {
    let key = format!("staging/{project}/{}", hex::encode(random_secret()?));
    let mut session = ctx.store.db().begin().await?;
    unclaimed::announce(&mut session, project, &key, now).await?;
    session.commit().await?;
    match ctx.store.objects().copy(from, &key).await {
        Ok(()) => Ok(Some(key)),
        Err(error) if error.is_missing_object() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
