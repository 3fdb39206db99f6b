//! Upload tickets of clients: each lets its bearer write one staged object,
//! whose size and hash were announced before.
//!
//! The row exists before the object and outlives it: whatever arrives late,
//! after a commit or a deletion, is named by it until the sweep of staged
//! uploads takes both. `expires_at` is when that happens, `usable_until` when
//! the ticket stops accepting bytes.

use callboard_domain::ids::{DeletionId, ProjectId, RunId, SlotId};
use callboard_domain::time::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError, unclaimed};

/// How long staged bytes wait for their commit, ms.
pub const STAGING_LIFE_MS: i64 = 24 * 60 * 60 * 1000;

macro_rules! select_ticket {
    ($tail:literal) => {
        concat!(
            "SELECT ticket_hash, project_id, run_id, slot_id, kind, sha256, size, name, content_type, is_direct, state, \
             staging_key, verified_key, usable_until FROM upload_tickets ",
            $tail
        )
    };
}

statements! {
    /// A ticket of a client.
    INSERT = "INSERT INTO upload_tickets (ticket_hash, project_id, staging_key, created_at, expires_at, run_id, slot_id, kind, sha256, \
        size, name, content_type, is_direct, state, usable_until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'open', $14)";
    /// A ticket of a client. PK
    BY_HASH = select_ticket!("WHERE ticket_hash = $1 AND state IS NOT NULL");
    /// Bytes that the service received and compared are staged. PK
    RECEIVED = "UPDATE upload_tickets SET state = 'received' WHERE ticket_hash = $1 AND state = 'open'";
    /// A verified copy is there; no row when the ticket is past that. PK
    VERIFIED = "UPDATE upload_tickets SET state = 'verified', verified_key = $2 WHERE ticket_hash = $1 AND state IN ('open', 'received')";
    /// The staged bytes were others than announced. PK
    REJECTED = "UPDATE upload_tickets SET state = $2 WHERE ticket_hash = $1 AND state IN ('open', 'received')";
    /// The bytes are where their content lies. PK
    STORED = "UPDATE upload_tickets SET state = 'stored' WHERE ticket_hash = $1 AND state <> 'revoked'";
    /// Objects of tickets of a run. ix: upload_tickets_of_run
    OF_RUN = "SELECT staging_key, verified_key FROM upload_tickets WHERE project_id = $1 AND run_id = $2 AND state IS NOT NULL";
    /// Tickets of a run that take nothing more; the sweep looks after them once more. ix: upload_tickets_of_run
    REVOKE_OF_RUN = "UPDATE upload_tickets SET state = 'revoked', expires_at = $3 WHERE project_id = $1 AND run_id = $2 AND state IS NOT NULL";
    /// Objects of tickets of a project. ix: upload_tickets_of_run
    OF_PROJECT = "SELECT staging_key, verified_key FROM upload_tickets WHERE project_id = $1 AND state IS NOT NULL AND state <> 'revoked'";
    /// Tickets of a project that take nothing more. ix: upload_tickets_of_run
    REVOKE_OF_PROJECT = "UPDATE upload_tickets SET state = 'revoked', expires_at = $2 WHERE project_id = $1 AND state IS NOT NULL \
        AND state <> 'revoked'";
}

/// What an uploaded file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadKind {
    /// The trace of an attempt.
    Trace,
    /// An attachment of an attempt.
    Attachment,
    /// The archive of a report.
    Report,
    /// An archive to import.
    Import,
}

impl UploadKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Trace, Self::Attachment, Self::Report, Self::Import];

    /// The spelling in SQL and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Attachment => "attachment",
            Self::Report => "report",
            Self::Import => "import",
        }
    }

    /// Reads a spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// How far the bytes of a ticket have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketState {
    /// None have come through the service. A client may have written to the bucket.
    Open,
    /// The service received them, and they are what was announced.
    Received,
    /// A copy of them was verified.
    Verified,
    /// They have another size than announced.
    WrongSize,
    /// They have another hash than announced.
    WrongHash,
    /// They lie where their content does.
    Stored,
    /// The run or the project is deleted.
    Revoked,
}

impl TicketState {
    const ALL: [Self; 7] = [
        Self::Open,
        Self::Received,
        Self::Verified,
        Self::WrongSize,
        Self::WrongHash,
        Self::Stored,
        Self::Revoked,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Received => "received",
            Self::Verified => "verified",
            Self::WrongSize => "wrong_size",
            Self::WrongHash => "wrong_hash",
            Self::Stored => "stored",
            Self::Revoked => "revoked",
        }
    }
}

/// The SHA-256 of a ticket: what is stored, and what the object is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UploadTicketHash(pub [u8; 32]);

impl UploadTicketHash {
    /// Of a ticket as a client sends it; `None` when it is not 64 hex digits.
    #[must_use]
    pub fn read(ticket: &str) -> Option<Self> {
        let mut secret = [0; 32];
        hex::decode_to_slice(ticket, &mut secret).ok()?;
        Some(Self::from_secret(&secret))
    }

    /// Of the bytes a ticket is written from.
    #[must_use]
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        Self(Sha256::digest(secret).into())
    }
}

/// A ticket about to be issued.
#[derive(Debug, Clone)]
pub struct NewUploadTicket {
    /// Its hash.
    pub hash: UploadTicketHash,
    /// Project.
    pub project: ProjectId,
    /// Run, when the plan named one.
    pub run: Option<RunId>,
    /// Client of the run, when it came with a token.
    pub slot: Option<SlotId>,
    /// What the file is for.
    pub kind: UploadKind,
    /// SHA-256 the bytes have to have.
    pub sha256: [u8; 32],
    /// Size the bytes have to have.
    pub size: u64,
    /// Name of the client's file.
    pub name: Option<String>,
    /// Type the client told.
    pub content_type: Option<String>,
    /// Whether the client was given an address of the bucket.
    pub is_direct: bool,
    /// Until when bytes are accepted.
    pub usable_until: Timestamp,
}

impl NewUploadTicket {
    /// Key of the staged object.
    #[must_use]
    pub fn staging_key(&self) -> String {
        format!("staging/{}/{}", self.project, hex::encode(self.hash.0))
    }
}

/// A ticket.
#[derive(Debug, Clone)]
pub struct UploadTicket {
    /// Its hash.
    pub hash: UploadTicketHash,
    /// Project.
    pub project: ProjectId,
    /// Run, when the plan named one.
    pub run: Option<RunId>,
    /// Client of the run, when it came with a token.
    pub slot: Option<SlotId>,
    /// What the file is for.
    pub kind: UploadKind,
    /// SHA-256 the bytes have to have.
    pub sha256: [u8; 32],
    /// Size the bytes have to have.
    pub size: u64,
    /// Name of the client's file.
    pub name: Option<String>,
    /// Type the client told.
    pub content_type: Option<String>,
    /// Whether the client was given an address of the bucket.
    pub is_direct: bool,
    /// How far its bytes have come.
    pub state: TicketState,
    /// Key of the staged object.
    pub staging_key: String,
    /// Key of the verified copy.
    pub verified_key: Option<String>,
    /// Until when bytes are accepted.
    pub usable_until: Timestamp,
}

fn read(row: &Row) -> Result<UploadTicket> {
    let damaged = || StoreError::Damaged("an upload ticket");
    let hash = |bytes: Vec<u8>| <[u8; 32]>::try_from(bytes).map_err(|_| damaged());
    let mut r = row.reader();
    Ok(UploadTicket {
        hash: UploadTicketHash(hash(r.bytes()?)?),
        project: ProjectId(r.int()?),
        run: r.opt_int()?.map(RunId),
        slot: r.opt_int()?.map(SlotId),
        kind: UploadKind::parse(&r.text()?).ok_or_else(damaged)?,
        sha256: hash(r.bytes()?)?,
        size: u64::try_from(r.int()?).map_err(|_| damaged())?,
        name: r.opt_text()?,
        content_type: r.opt_text()?,
        is_direct: r.flag()?,
        state: {
            let word = r.text()?;
            TicketState::ALL.into_iter().find(|state| state.as_str() == word).ok_or_else(damaged)?
        },
        staging_key: r.text()?,
        verified_key: r.opt_text()?,
        usable_until: r.time()?,
    })
}

/// Issues a ticket.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn issue(session: &mut Session, new: &NewUploadTicket, now: Timestamp) -> Result<()> {
    let size = i64::try_from(new.size).map_err(|_| StoreError::Damaged("a size beyond 63 bits"))?;
    let values = args![
        new.hash.0,
        new.project,
        new.staging_key(),
        now,
        now.millis() + STAGING_LIFE_MS,
        new.run,
        new.slot.map(SlotId::get),
        new.kind.as_str(),
        new.sha256,
        size,
        new.name.clone(),
        new.content_type.clone(),
        new.is_direct,
        new.usable_until
    ];
    session.execute(&INSERT, values).await?;
    Ok(())
}

/// A ticket of a client.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, hash: UploadTicketHash) -> Result<Option<UploadTicket>> {
    session.first(&BY_HASH, args![hash.0]).await?.as_ref().map(read).transpose()
}

/// Notes that the service received the bytes and that they are what was
/// announced.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn mark_received(session: &mut Session, hash: UploadTicketHash) -> Result<()> {
    session.execute(&RECEIVED, args![hash.0]).await?;
    Ok(())
}

/// Notes a verified copy, which was announced to the sweep before. Answers
/// whether the ticket takes it: not when another copy was faster.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn mark_verified(session: &mut Session, hash: UploadTicketHash, key: &str) -> Result<bool> {
    Ok(session.execute(&VERIFIED, args![hash.0, key]).await? == 1)
}

/// Notes that the staged bytes have another size, or another hash, than
/// announced.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn mark_rejected(
    session: &mut Session,
    hash: UploadTicketHash,
    has_wrong_size: bool,
) -> Result<()> {
    let state = if has_wrong_size { TicketState::WrongSize } else { TicketState::WrongHash };
    session.execute(&REJECTED, args![hash.0, state.as_str()]).await?;
    Ok(())
}

/// Notes that the bytes lie where their content does, and leaves what is
/// staged of them to the sweep.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn mark_stored(session: &mut Session, hash: UploadTicketHash) -> Result<()> {
    session.execute(&STORED, args![hash.0]).await?;
    Ok(())
}

/// Revokes the tickets of a run that is deleted, and leaves what is staged
/// under them to the deletion.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn revoke_of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    receipt: DeletionId,
    now: Timestamp,
) -> Result<()> {
    let rows = session.all(&OF_RUN, args![project, run]).await?;
    abandon(session, &rows, project, receipt, now).await?;
    if !rows.is_empty() {
        session.execute(&REVOKE_OF_RUN, args![project, run, now]).await?;
    }
    Ok(())
}

/// Revokes the tickets of a project that is deleted, and leaves what is staged
/// under them to the deletion. Answers whether there were any.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn revoke_of_project(
    session: &mut Session,
    project: ProjectId,
    receipt: DeletionId,
    now: Timestamp,
) -> Result<bool> {
    let rows = session.all(&OF_PROJECT, args![project]).await?;
    abandon(session, &rows, project, receipt, now).await?;
    Ok(!rows.is_empty() && session.execute(&REVOKE_OF_PROJECT, args![project, now]).await? > 0)
}

async fn abandon(
    session: &mut Session,
    rows: &[Row],
    project: ProjectId,
    receipt: DeletionId,
    now: Timestamp,
) -> Result<()> {
    for row in rows {
        let mut r = row.reader();
        let keys = [Some(r.text()?), r.opt_text()?];
        for key in keys.into_iter().flatten() {
            unclaimed::abandon_to(session, project, &key, receipt, now).await?;
        }
    }
    Ok(())
}
