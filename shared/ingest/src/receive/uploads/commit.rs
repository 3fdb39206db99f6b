//! Files that were uploaded become content of the project and files of a run.

use std::time::{Duration, Instant};

use callboard_domain::ids::{FileId, ReportId, RunId, SlotId};
use callboard_domain::ingest::CaseRef;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::blobs::{self, BlobRow, StagedBlob};
use callboard_store::boxed;
use callboard_store::executions::RunPlace;
use callboard_store::reports::{self, ReportRow};
use callboard_store::upload_tickets::{self, TicketState, UploadKind, UploadTicket, UploadTicketHash};

use super::UploadTarget;
use super::verification::{Verified, Verifier};
use crate::receive::case_files::{UploadedBytes, UploadedFile, has_attempt, link_uploaded, place_of};
use crate::receive::files::{FileKindHint, recognise};
use crate::receive::pending_files::end_wait_of;
use crate::receive::report::{AtOnce, IncomingReport, ReportOutcome, attach_uploaded_report};
use crate::{Context, QueryError, Result};

/// A file to commit.
#[derive(Debug, Clone)]
pub struct CommitItem {
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// What it is for.
    pub kind: UploadKind,
    /// Its ticket; none when the project has its bytes.
    pub ticket: Option<String>,
    /// What it belongs to.
    pub link: Option<UploadLink>,
}

/// What an uploaded file belongs to.
#[derive(Debug, Clone)]
pub enum UploadLink {
    /// An attempt of a test.
    Attempt {
        /// Which one.
        case: CaseRef,
        /// Name the test gave the file.
        name: Option<String>,
        /// Type the client told.
        content_type: Option<String>,
        /// Name of the client's file.
        original_name: Option<String>,
    },
    /// The run, as a report.
    Report {
        /// Type word, e.g. `html`.
        report_type: String,
        /// Label the client gave it.
        label: Option<String>,
    },
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStatus {
    /// Its bytes are content of the project.
    Stored,
    /// Everything was there before.
    Duplicate,
    /// It belongs to the run now.
    Linked,
    /// Its bytes are being verified; commit it again.
    Pending,
    /// Its bytes have not come.
    NotUploaded,
    /// Its bytes are others.
    HashMismatch,
    /// Its bytes are of another size than planned.
    SizeMismatch,
    /// The attempt is not stored yet; commit it again.
    CaseNotFound,
    /// It cannot be committed.
    Invalid,
}

impl CommitStatus {
    /// The spelling on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Duplicate => "duplicate",
            Self::Linked => "linked",
            Self::Pending => "pending",
            Self::NotUploaded => "not_uploaded",
            Self::HashMismatch => "hash_mismatch",
            Self::SizeMismatch => "size_mismatch",
            Self::CaseNotFound => "case_not_found",
            Self::Invalid => "invalid",
        }
    }
}

/// A file after its commit.
#[derive(Debug, Clone)]
pub struct CommittedItem {
    /// What became of it.
    pub status: CommitStatus,
    /// The file of the attempt.
    pub file: Option<FileId>,
    /// The report of the run.
    pub report: Option<ReportId>,
    /// What to do about it.
    pub message: Option<String>,
}

impl CommittedItem {
    fn new(status: CommitStatus) -> Self {
        Self { status, file: None, report: None, message: None }
    }

    fn told(status: CommitStatus, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new(status) }
    }
}

/// Whose files are complete after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadsComplete {
    /// Nobody's.
    No,
    /// Those of the client that commits, or of this one, or of the one that has waited longest.
    Yes(Option<SlotId>),
}

/// A commit.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Its files, in their order.
    pub items: Vec<CommittedItem>,
    /// Where the run stands, when it was said that its files are complete.
    pub status: Option<RunStatus>,
}

/// Commits files one by one. Each is done or left as it was, so that the same
/// commit may be sent again; only files that are not linked yet are. The wait of
/// a run for its files does not end as long as some are being verified.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Life`], [`QueryError::Store`].
#[boxed]
pub async fn commit_uploads(
    ctx: &Context,
    target: UploadTarget,
    items: Vec<CommitItem>,
    complete: UploadsComplete,
    now: Timestamp,
) -> Result<Committed> {
    let place = match target.run {
        Some(run) => Some(place_of(ctx, target.project, run).await?),
        None => None,
    };
    let mut commit =
        Commit { ctx, target, place, verifier: Verifier::default(), at_once: AtOnce::default(), now };
    let began = Instant::now();
    let mut done = Vec::with_capacity(items.len());
    for item in items {
        if began.elapsed() >= TIME_PER_REQUEST {
            done.push(CommittedItem::told(CommitStatus::Pending, OUT_OF_TIME));
        } else {
            done.push(commit.item(item).await?);
        }
    }
    let is_pending = done.iter().any(|item| item.status == CommitStatus::Pending);
    let status = match (complete, target.run) {
        (UploadsComplete::Yes(of), Some(run)) if !is_pending => {
            Some(end_wait_of(ctx, (target.project, run), target.slot().or(of), now).await?)
        }
        _ => None,
    };
    Ok(Committed { items: done, status })
}

struct Commit<'c> {
    ctx: &'c Context,
    target: UploadTarget,
    place: Option<RunPlace>,
    verifier: Verifier,
    at_once: AtOnce,
    now: Timestamp,
}

/// Where the bytes of an item are.
enum Source {
    Staged(Box<UploadTicket>, StagedBlob),
    Stored(BlobRow),
    None(CommittedItem),
}

/// How long a request begins with further items: clients give up an answer that takes 30 s.
const TIME_PER_REQUEST: Duration = Duration::from_secs(12);
const OUT_OF_TIME: &str = "The request took long enough; send the same commit again for the rest.";
const NO_TICKET: &str = "The upload ticket is unknown here or has expired; plan the file again.";
const NOT_SENT: &str = "The bytes have not arrived; send them to the address of the plan, then commit again.";
const NOT_KEPT: &str = "The project does not have these bytes; plan the file again.";

impl Commit<'_> {
    #[boxed]
    async fn item(&mut self, item: CommitItem) -> Result<CommittedItem> {
        match (item.link.clone(), self.place) {
            (None, _) => self.store(&item).await,
            (Some(UploadLink::Attempt { case, name, content_type, original_name }), Some(place)) => {
                let hint = match item.kind {
                    UploadKind::Trace => FileKindHint::Trace,
                    _ => FileKindHint::Attachment,
                };
                let default_type = if hint == FileKindHint::Trace { "application/zip" } else { "" };
                let file = UploadedFile {
                    name: match hint {
                        FileKindHint::Trace => "trace".to_owned(),
                        FileKindHint::Attachment => name.unwrap_or_else(|| "attachment".to_owned()),
                    },
                    content_type: content_type.unwrap_or_else(|| default_type.to_owned()),
                    original_name,
                    sha256: item.sha256,
                    case,
                    hint,
                };
                self.link(&item, place, file).await
            }
            (Some(UploadLink::Report { report_type, label }), Some(place)) => {
                self.attach(&item, place.run, &report_type, label).await
            }
            (Some(_), None) => {
                Ok(CommittedItem::told(CommitStatus::Invalid, "A link needs runId beside the items."))
            }
        }
    }

    /// Makes bytes content of the project; they wait a day for a row that refers to them.
    async fn store(&mut self, item: &CommitItem) -> Result<CommittedItem> {
        match self.source(item).await? {
            Source::None(item) => Ok(item),
            Source::Stored(_) => Ok(CommittedItem::new(CommitStatus::Duplicate)),
            Source::Staged(ticket, staged) => {
                let name = ticket.name.as_deref().unwrap_or_default();
                let told = ticket.content_type.as_deref().unwrap_or_default();
                let content_type = recognise(&staged.head, name, told);
                staged.publish(&self.ctx.store, self.target.project, &content_type, self.now).await?;
                self.done(&ticket).await?;
                Ok(CommittedItem::new(CommitStatus::Stored))
            }
        }
    }

    #[boxed]
    async fn link(
        &mut self,
        item: &CommitItem,
        place: RunPlace,
        file: UploadedFile,
    ) -> Result<CommittedItem> {
        // Bytes of a test that is not there are not verified again and again.
        if !has_attempt(self.ctx, place, &file).await? {
            return Ok(case_not_found());
        }
        let (ticket, bytes) = match self.source(item).await? {
            Source::None(item) => return Ok(item),
            Source::Stored(blob) => (None, UploadedBytes::Stored(blob)),
            Source::Staged(ticket, staged) => (Some(ticket), UploadedBytes::Staged(staged)),
        };
        let taken = match link_uploaded(self.ctx, place, self.target.sender, file, bytes, self.now).await {
            Err(QueryError::CaseNotFound) => return Ok(case_not_found()),
            taken => taken?,
        };
        if let Some(ticket) = ticket {
            self.done(&ticket).await?;
        }
        Ok(match taken.file {
            None => CommittedItem::told(
                CommitStatus::Invalid,
                "The attempt has as many attachments as it may have; the file was not linked.",
            ),
            file if taken.traces + taken.attachments == 0 => {
                CommittedItem { file, ..CommittedItem::new(CommitStatus::Duplicate) }
            }
            file => CommittedItem { file, ..CommittedItem::new(CommitStatus::Linked) },
        })
    }

    async fn attach(
        &mut self,
        item: &CommitItem,
        run: RunId,
        report_type: &str,
        label: Option<String>,
    ) -> Result<CommittedItem> {
        let mut session = self.ctx.store.db().read().await?;
        let known =
            reports::by_archive(&mut session, self.target.project, run, report_type, &item.sha256).await?;
        drop(session);
        if let Some(known) = known {
            return Ok(attached(CommitStatus::Duplicate, &known));
        }
        let (ticket, staged) = match self.source(item).await? {
            Source::None(item) => return Ok(item),
            // An archive is not content of the project.
            Source::Stored(_) => return Ok(CommittedItem::told(CommitStatus::NotUploaded, NOT_KEPT)),
            Source::Staged(ticket, staged) => (ticket, staged),
        };
        let file_name = match &ticket.name {
            Some(name) => name.clone(),
            None if staged.head.starts_with(&GZIP) => "report.gz".to_owned(),
            None => "report.zip".to_owned(),
        };
        let report = IncomingReport { kind: report_type.to_owned(), label, file_name, staged };
        let project = self.target.project;
        let outcome =
            attach_uploaded_report(self.ctx, (project, run), report, &mut self.at_once, self.now).await?;
        Ok(match outcome {
            ReportOutcome::Stored(report) => {
                self.done(&ticket).await?;
                attached(CommitStatus::Linked, &report)
            }
            ReportOutcome::Known(report) => {
                self.done(&ticket).await?;
                attached(CommitStatus::Duplicate, &report)
            }
            ReportOutcome::Refused(why) => {
                self.done(&ticket).await?;
                CommittedItem::told(CommitStatus::Invalid, why)
            }
            ReportOutcome::InProgress => {
                CommittedItem::told(CommitStatus::Pending, QueryError::ReportInProgress.to_string())
            }
        })
    }

    /// Finds the bytes of an item. What rows of the project refer to needs no ticket.
    async fn source(&mut self, item: &CommitItem) -> Result<Source> {
        let not_uploaded = |why| Ok(Source::None(CommittedItem::told(CommitStatus::NotUploaded, why)));
        let project = self.target.project;
        let may_be_shared = matches!(item.kind, UploadKind::Trace | UploadKind::Attachment);
        let mut session = self.ctx.store.db().read().await?;
        if may_be_shared && let Some(stored) = blobs::stored(&mut session, project, &item.sha256).await? {
            return Ok(Source::Stored(stored));
        }
        let Some(ticket) = &item.ticket else { return not_uploaded(NOT_KEPT) };
        let ticket = match UploadTicketHash::read(ticket) {
            Some(hash) => upload_tickets::get(&mut session, hash).await?,
            None => None,
        };
        drop(session);
        let is_ours = |ticket: &UploadTicket| {
            ticket.project == project
                && ticket.state != TicketState::Revoked
                && ticket.run.is_none_or(|run| self.target.run == Some(run))
        };
        let Some(ticket) = ticket.filter(is_ours) else { return not_uploaded(NO_TICKET) };
        if ticket.sha256 != item.sha256 || ticket.kind != item.kind {
            return Ok(Source::None(CommittedItem::told(
                CommitStatus::Invalid,
                "The ticket was planned for another file: sha256 and kind must be those of the plan.",
            )));
        }
        let told = |status, why: &str| Ok(Source::None(CommittedItem::told(status, why)));
        let verified = match ticket.state {
            TicketState::Stored => Verified::Missing,
            _ => self.verifier.verify(self.ctx, &ticket, self.now).await?,
        };
        match verified {
            Verified::Good(staged) => Ok(Source::Staged(Box::new(ticket), staged)),
            Verified::Missing => self.stored_meanwhile(&ticket).await,
            Verified::Pending => told(
                CommitStatus::Pending,
                "The bytes are being verified; send the same commit again in some seconds.",
            ),
            Verified::WrongSize => told(
                CommitStatus::SizeMismatch,
                "The bytes that were sent are of another size than planned; plan the file again and send it whole.",
            ),
            Verified::WrongHash => told(
                CommitStatus::HashMismatch,
                "The bytes that were sent do not have the SHA-256 of the plan; plan the file again and send it anew.",
            ),
        }
    }

    /// The content of a ticket whose staged bytes are gone: another commit, or an earlier one, stored them.
    async fn stored_meanwhile(&self, ticket: &UploadTicket) -> Result<Source> {
        let mut session = self.ctx.store.db().read().await?;
        let now = upload_tickets::get(&mut session, ticket.hash).await?;
        let is_stored = now.is_some_and(|now| now.state == TicketState::Stored);
        let found = match is_stored && ticket.kind != UploadKind::Report {
            true => blobs::arrived(&mut session, ticket.project, &ticket.sha256).await?,
            false => None,
        };
        Ok(match found {
            Some(blob) => Source::Stored(blob),
            None => {
                let why = if is_stored { NOT_KEPT } else { NOT_SENT };
                Source::None(CommittedItem::told(CommitStatus::NotUploaded, why))
            }
        })
    }

    /// Notes that the bytes of a ticket are stored. What is staged of them goes; its row names it until the sweep.
    async fn done(&self, ticket: &UploadTicket) -> Result<()> {
        let mut session = self.ctx.store.db().begin().await?;
        upload_tickets::mark_stored(&mut session, ticket.hash).await?;
        session.commit().await?;
        for key in [Some(&ticket.staging_key), ticket.verified_key.as_ref()].into_iter().flatten() {
            if let Err(error) = self.ctx.store.objects().delete(key).await {
                tracing::warn!(%error, key, "a staged file could not be removed; its ticket names it");
            }
        }
        Ok(())
    }
}

/// How gzip files begin.
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn case_not_found() -> CommittedItem {
    CommittedItem::told(CommitStatus::CaseNotFound, QueryError::CaseNotFound.to_string())
}

fn attached(status: CommitStatus, report: &ReportRow) -> CommittedItem {
    CommittedItem { report: Some(report.id), ..CommittedItem::new(status) }
}
