//! Which files a client has to send, and where.

use std::collections::HashSet;
use std::time::Duration;

use callboard_domain::time::Timestamp;
use callboard_store::blobs::{self, random_secret};
use callboard_store::boxed;
use callboard_store::upload_tickets::{self, NewUploadTicket, UploadKind, UploadTicketHash};

use super::UploadTarget;
use crate::{Context, Result};

/// How long a ticket accepts bytes.
const LIFE: Duration = Duration::from_secs(15 * 60);
/// The same for files of more than [`LARGE_BYTES`].
const LIFE_OF_LARGE: Duration = Duration::from_secs(60 * 60);
const LARGE_BYTES: u64 = 100 * 1024 * 1024;

/// A file that a client wants to upload.
#[derive(Debug, Clone)]
pub struct PlannedFile {
    /// SHA-256 of its bytes, as the client computed it.
    pub sha256: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
    /// What it is for.
    pub kind: UploadKind,
    /// Name of the client's file.
    pub name: Option<String>,
    /// Type the client told.
    pub content_type: Option<String>,
}

/// What holds for all files of a plan.
#[derive(Debug, Clone, Copy)]
pub struct UploadRules {
    /// Largest file, bytes.
    pub max_bytes: u64,
    /// Whether clients write to the bucket themselves where it gives out addresses.
    pub is_direct: bool,
}

/// What a client has to do about a file.
#[derive(Debug, Clone)]
pub enum PlannedUpload {
    /// Nothing: the project has its bytes. It is committed without a ticket.
    Have,
    /// Send it.
    Missing(IssuedTicket),
    /// It is larger than files may be.
    TooLarge,
}

/// A ticket, for the client that planned the file.
#[derive(Debug, Clone)]
pub struct IssuedTicket {
    /// The ticket; it is not shown again.
    pub ticket: String,
    /// Address of the bucket to send the bytes to; through the service where there is none.
    pub direct_url: Option<String>,
    /// Until when bytes are accepted.
    pub usable_until: Timestamp,
}

/// Says of each file whether it has to be sent, and issues tickets for those
/// that have to be.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn plan_uploads(
    ctx: &Context,
    target: UploadTarget,
    files: Vec<PlannedFile>,
    rules: UploadRules,
    now: Timestamp,
) -> Result<Vec<PlannedUpload>> {
    // Archives of reports and imports are not kept as they are, so they are always sent.
    let shared: Vec<[u8; 32]> = files
        .iter()
        .filter(|file| matches!(file.kind, UploadKind::Trace | UploadKind::Attachment))
        .map(|file| file.sha256)
        .collect();
    let mut stored = HashSet::new();
    if !shared.is_empty() {
        let mut session = ctx.store.db().read().await?;
        stored.extend(blobs::stored_of(&mut session, target.project, &shared).await?);
    }
    let mut planned = Vec::with_capacity(files.len());
    let mut tickets = Vec::new();
    for file in files {
        let may_be_shared = matches!(file.kind, UploadKind::Trace | UploadKind::Attachment);
        if may_be_shared && stored.contains(&file.sha256) {
            planned.push(PlannedUpload::Have);
        } else if file.size > rules.max_bytes {
            planned.push(PlannedUpload::TooLarge);
        } else {
            let (ticket, issued) = new_ticket(ctx, target, file, rules, now).await?;
            planned.push(PlannedUpload::Missing(issued));
            tickets.push(ticket);
        }
    }
    if !tickets.is_empty() {
        let mut session = ctx.store.db().begin().await?;
        for ticket in &tickets {
            upload_tickets::issue(&mut session, ticket, now).await?;
        }
        session.commit().await?;
    }
    Ok(planned)
}

async fn new_ticket(
    ctx: &Context,
    target: UploadTarget,
    file: PlannedFile,
    rules: UploadRules,
    now: Timestamp,
) -> Result<(NewUploadTicket, IssuedTicket)> {
    let secret = random_secret()?;
    let life = if file.size > LARGE_BYTES { LIFE_OF_LARGE } else { LIFE };
    let usable_until = Timestamp(now.millis() + i64::try_from(life.as_millis()).unwrap_or(i64::MAX));
    let PlannedFile { sha256, size, kind, name, content_type } = file;
    let mut new = NewUploadTicket {
        hash: UploadTicketHash::from_secret(&secret),
        project: target.project,
        run: target.run,
        slot: target.slot(),
        kind,
        sha256,
        size,
        name,
        content_type,
        is_direct: false,
        usable_until,
    };
    let mut direct_url = None;
    if rules.is_direct {
        direct_url = ctx.store.objects().signed_put(&new.staging_key(), life).await?.map(String::from);
        new.is_direct = direct_url.is_some();
    }
    Ok((new, IssuedTicket { ticket: hex::encode(secret), direct_url, usable_until }))
}
