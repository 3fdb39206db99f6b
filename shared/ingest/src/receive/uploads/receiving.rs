//! The bytes of one planned file, on their way through the service.

use bytes::Bytes;
use callboard_domain::time::Timestamp;
use callboard_store::runs::{self, slots};
use callboard_store::upload_tickets::{self, TicketState, UploadTicket, UploadTicketHash};
use callboard_store::{StoreError, boxed, projects};
use futures::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};

use crate::{Context, QueryError, Result};

/// A ticket that accepts bytes.
///
/// # Errors
/// [`QueryError::TicketNotFound`] for one that is unknown or has expired, or
/// whose run or project is deleted.
#[boxed]
pub async fn open_upload_ticket(ctx: &Context, ticket: &str, now: Timestamp) -> Result<UploadTicket> {
    let hash = UploadTicketHash::read(ticket).ok_or(QueryError::TicketNotFound)?;
    let mut session = ctx.store.db().read().await?;
    let found = upload_tickets::get(&mut session, hash).await?;
    let ticket = found
        .filter(|ticket| ticket.state != TicketState::Revoked && now < ticket.usable_until)
        .ok_or(QueryError::TicketNotFound)?;
    let is_there = match ticket.run {
        Some(run) => runs::get(&mut session, ticket.project, run).await?.is_some(),
        None => projects::get(&mut session, ticket.project).await?.is_some(),
    };
    if is_there { Ok(ticket) } else { Err(QueryError::TicketNotFound) }
}

/// Notes that a client of a run is sending: a long upload is a sign of life.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn is_uploading(ctx: &Context, ticket: &UploadTicket, now: Timestamp) -> Result<()> {
    let Some(run) = ticket.run else { return Ok(()) };
    let mut session = ctx.store.db().begin().await?;
    runs::touch(&mut session, ticket.project, run, now).await?;
    if let Some(slot) = ticket.slot {
        slots::touch(&mut session, ticket.project, slot, now).await?;
    }
    Ok(session.commit().await?)
}

/// Stages the bytes of a ticket. They become an object only when they are what
/// was announced; the same bytes again change nothing.
///
/// # Errors
/// [`QueryError::TicketUsed`] for other bytes than those that came before,
/// [`QueryError::HashMismatch`], [`QueryError::TicketNotFound`] when it was
/// revoked meanwhile; [`StoreError::Upload`] when the stream breaks off. Nothing
/// of the bytes is kept then.
pub async fn receive_upload<S>(ctx: &Context, ticket: &UploadTicket, body: S) -> Result<()>
where
    S: Stream<Item = std::io::Result<Bytes>> + Unpin + Send,
{
    match ticket.state {
        TicketState::Open => write(ctx, ticket, body).await,
        // It was sent to the bucket with other bytes later, and those were removed.
        TicketState::Received if ctx.store.objects().size(&ticket.staging_key).await?.is_none() => {
            write(ctx, ticket, body).await
        }
        TicketState::Revoked => Err(QueryError::TicketNotFound),
        // What was received, or verified, is what the ticket announces.
        _ if is_announced(ticket, body).await? => Ok(()),
        _ => Err(QueryError::TicketUsed),
    }
}

async fn is_announced<S>(ticket: &UploadTicket, mut body: S) -> Result<bool>
where
    S: Stream<Item = std::io::Result<Bytes>> + Unpin + Send,
{
    let mut hasher = Sha256::new();
    while let Some(chunk) = body.next().await {
        hasher.update(chunk.map_err(StoreError::from)?);
    }
    let is_kept = !matches!(ticket.state, TicketState::WrongSize | TicketState::WrongHash);
    Ok(is_kept && <[u8; 32]>::from(hasher.finalize()) == ticket.sha256)
}

async fn write<S>(ctx: &Context, ticket: &UploadTicket, mut body: S) -> Result<()>
where
    S: Stream<Item = std::io::Result<Bytes>> + Unpin + Send,
{
    let mut object = ctx.store.objects().writer(&ticket.staging_key)?;
    let received = async {
        let (mut hasher, mut size) = (Sha256::new(), 0_u64);
        while let Some(chunk) = body.next().await {
            let chunk = chunk?;
            hasher.update(&chunk);
            size += chunk.len() as u64;
            object.write(&chunk).await?;
        }
        let is_announced = size == ticket.size && <[u8; 32]>::from(hasher.finalize()) == ticket.sha256;
        if is_announced {
            object.finish().await?;
        }
        Ok::<_, StoreError>(is_announced)
    }
    .await;
    match received {
        Ok(true) => {}
        Ok(false) => {
            object.abort().await;
            return Err(QueryError::HashMismatch { part: "the upload".to_owned() });
        }
        Err(error) => {
            object.abort().await;
            return Err(error.into());
        }
    }
    let mut session = ctx.store.db().begin().await?;
    upload_tickets::mark_received(&mut session, ticket.hash).await?;
    let now = upload_tickets::get(&mut session, ticket.hash).await?;
    session.commit().await?;
    if now.is_some_and(|now| now.state != TicketState::Revoked) {
        return Ok(());
    }
    // What it was for was deleted while the bytes came.
    ctx.store.objects().delete(&ticket.staging_key).await?;
    Err(QueryError::TicketNotFound)
}
