//! Reports: an archive becomes a directory of objects of its own, visible only
//! when it is complete. An unsafe archive is refused without harming its run.
//!
//! One upload of an archive does it: it says in the report's row that it is
//! still at it, and whoever sends the same archive meanwhile waits for it. What
//! is more than a client waits for is left to a job, once the archive is known
//! to be sound.

pub(crate) mod report_job;
mod unpacking;

use std::pin::pin;
use std::time::Duration;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::blobs::StagedBlob;
use callboard_store::reports::{self, BegunReport, ReportRow};
use callboard_store::{Session, StoreError, boxed, jobs, storage};
use tokio::time::{Instant, sleep};

use self::report_job::UnpackReport;
use self::unpacking::{Contents, Entry, Next, Unpacked, copy, unpack};
use crate::complete::expiry::date_run;
use crate::receive::pending_files::touch_waiting;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, Result};
use callboard_core::retry::repeated;

/// Longest label of a report, in characters.
const MAX_LABEL_CHARS: usize = 100;
/// How often the upload of a report says that it is still at it: several of
/// these may fail before others take it for silent.
const HOLD_EVERY: Duration = Duration::from_secs(10);
/// How long an upload waits for another one of the same archive: clients give
/// up an answer that takes 30 s.
const JOIN_TIME: Duration = Duration::from_secs(20);
/// How often it looks whether that one is done.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a call writes of the archives that it is sent, before the rest is left to
/// jobs: some seconds of work, also where each file is a request to a bucket.
#[derive(Debug)]
pub struct AtOnce {
    files: u32,
    bytes: u32,
}

impl Default for AtOnce {
    fn default() -> Self {
        Self { files: 2_000, bytes: 128 << 20 }
    }
}

impl AtOnce {
    /// What a job writes behind the first file, however late it gets to them:
    /// little, as its process may soon be stopped.
    fn least() -> Self {
        Self { files: 31, bytes: 16 << 20 }
    }

    /// Takes a file of a size out of it, as long as it lasts.
    fn take(&mut self, size: u32) -> Next {
        match (self.files.checked_sub(1), self.bytes.checked_sub(size)) {
            (Some(files), Some(bytes)) => {
                *self = Self { files, bytes };
                Next::Write
            }
            _ => Next::Check,
        }
    }
}

/// What the bytes of a report are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archive {
    /// A gzip of path and content records.
    Records,
    /// One file, stored as it is.
    File,
}

/// A report received for a run.
#[derive(Debug)]
pub struct IncomingReport {
    /// Type word, e.g. `html`.
    pub kind: String,
    /// Label the client gave it.
    pub label: Option<String>,
    /// Name of the client's file.
    pub file_name: String,
    /// The bytes.
    pub staged: StagedBlob,
}

impl IncomingReport {
    /// Whether the run has it already.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    #[boxed]
    pub async fn is_stored(&self, ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<bool> {
        Ok(stored(ctx, project.get(), run, &self.kind, &self.staged).await?.is_some())
    }
}

/// What became of a report.
#[derive(Debug)]
pub enum ReportOutcome {
    /// Stored by this call, or left by it to a job.
    Stored(ReportRow),
    /// Received by another call; nothing was added.
    Known(ReportRow),
    /// Refused: why.
    Refused(String),
    /// Another call is still storing it.
    InProgress,
}

/// Stores a report of a run; what is not done `at_once` is left to a job. With
/// `ends_wait` it is the last of what was waited for: the transaction that makes
/// it visible, or queues the job, also ends the wait of the oldest slot that
/// waits, so that a call that breaks off does both or neither.
///
/// # Errors
/// [`crate::QueryError::Store`]; nothing of the report is visible then.
#[boxed]
pub async fn attach_report(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    report: IncomingReport,
    at_once: &mut AtOnce,
    ends_wait: bool,
    now: Timestamp,
) -> Result<ReportOutcome> {
    attach(ctx, (project.get(), run), report, at_once, ends_wait, now).await
}

/// [`attach_report`] for an archive that was uploaded on its own; no wait ends.
pub(crate) async fn attach_uploaded_report(
    ctx: &Context,
    run: (ProjectId, RunId),
    report: IncomingReport,
    at_once: &mut AtOnce,
    now: Timestamp,
) -> Result<ReportOutcome> {
    attach(ctx, run, report, at_once, false, now).await
}

#[boxed]
async fn attach(
    ctx: &Context,
    (project, run): (ProjectId, RunId),
    report: IncomingReport,
    at_once: &mut AtOnce,
    ends_wait: bool,
    now: Timestamp,
) -> Result<ReportOutcome> {
    let IncomingReport { kind, label, file_name, staged } = report;
    let label = label.filter(|label| !label.trim().is_empty()).unwrap_or_else(|| default_label(&kind));
    let label: String = label.trim().chars().take(MAX_LABEL_CHARS).collect();
    let clock = RunningClock { began: now, since: Instant::now() };
    let begun = loop {
        if let Some(known) = stored(ctx, project, run, &kind, &staged).await? {
            let_go(ctx, staged).await;
            return Ok(ReportOutcome::Known(known));
        }
        let mut session = ctx.store.db().begin().await?;
        let (sha256, now) = (&staged.sha256, clock.now());
        let begun = reports::begin(&mut session, project, run, &kind, &label, sha256, now).await?;
        session.commit().await?;
        if let Some(begun) = begun {
            break begun;
        }
        if clock.since.elapsed() >= JOIN_TIME {
            let_go(ctx, staged).await;
            return Ok(ReportOutcome::InProgress);
        }
        sleep(LOOK_AGAIN).await;
    };
    let upload = Upload { ctx, project, run, begun, clock };
    let unpacked = upload.unpack(&file_name, &staged, at_once).await;
    let stored = match unpacked {
        Ok(unpacked) => upload.store(&kind, staged, &unpacked, ends_wait).await,
        Err(error) => {
            let_go(ctx, staged).await;
            Err(error)
        }
    };
    if stored.is_err() {
        // The client will send it again; its row goes, so that it can.
        upload.give_up().await;
    }
    Ok(match stored? {
        Ok(row) => ReportOutcome::Stored(row),
        Err(why) => ReportOutcome::Refused(format!("The report \"{label}\" was not stored: {why}.")),
    })
}

/// The report that the run has from an archive.
async fn stored(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    kind: &str,
    staged: &StagedBlob,
) -> Result<Option<ReportRow>> {
    let mut session = ctx.store.db().read().await?;
    Ok(reports::by_archive(&mut session, project, run, kind, &staged.sha256).await?)
}

async fn let_go(ctx: &Context, staged: StagedBlob) {
    if let Err(error) = staged.discard(&ctx.store).await {
        tracing::warn!(%error, "a staged report could not be removed; its ticket names it");
    }
}

/// The time as it goes on during work that takes long.
struct RunningClock {
    began: Timestamp,
    since: Instant,
}

impl RunningClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.began.millis().saturating_add(passed))
    }
}

/// An upload that stores a report.
struct Upload<'u> {
    ctx: &'u Context,
    project: ProjectId,
    run: RunId,
    begun: BegunReport,
    clock: RunningClock,
}

impl Upload<'_> {
    /// The report, or why it was refused.
    async fn store(
        &self,
        kind: &str,
        staged: StagedBlob,
        unpacked: &Unpacked,
        ends_wait: bool,
    ) -> Result<std::result::Result<ReportRow, String>> {
        if matches!(unpacked, Ok(contents) if !contents.is_written()) {
            self.keep_archive(staged).await?;
        } else {
            let_go(self.ctx, staged).await;
        }
        repeated(|| self.end(kind, unpacked, ends_wait)).await
    }

    /// Puts the archive where its job finds it.
    async fn keep_archive(&self, staged: StagedBlob) -> Result<()> {
        let mut session = self.ctx.store.db().begin().await?;
        reports::announce_archive(&mut session, self.project, &self.begun, self.clock.now()).await?;
        session.commit().await?;
        let key = self.begun.archive_key();
        self.held(async { Ok(staged.move_to(&self.ctx.store, &key).await?) }).await
    }

    /// Makes the report visible, leaves it to a job, or forgets one that is
    /// refused.
    async fn end(
        &self,
        kind: &str,
        unpacked: &Unpacked,
        ends_wait: bool,
    ) -> Result<std::result::Result<ReportRow, String>> {
        let (ctx, project, run, begun) = (self.ctx, self.project, self.run, &self.begun);
        let now = self.clock.now();
        let mut session = ctx.store.db().begin().await?;
        // A run that was deleted meanwhile takes nothing more.
        let mut locked = LockedRun::lock(&mut session, project, run).await?;
        let ended = match unpacked {
            Ok(contents) if contents.is_written() => {
                let report = Complete {
                    begun,
                    entry: entry_page(kind, &contents.entries),
                    size: size_of(contents)?,
                    entries: contents.entries.len(),
                };
                Ok(report.show(&mut session, &locked, now).await?)
            }
            Ok(contents) => {
                let row =
                    reports::leave(&mut session, project, begun, entry_page(kind, &contents.entries), now)
                        .await?;
                let job = UnpackReport {
                    project,
                    run,
                    report: begun.id,
                    entries: contents.entries.len(),
                    size: size_of(contents)?,
                    written: contents.written,
                };
                jobs::enqueue(&mut session, &format!("report:{}:unpack", begun.id), Some(project), &job, now)
                    .await?;
                Ok(row)
            }
            Err(why) => {
                reports::discard(&mut session, project, begun, now).await?;
                Err(why.clone())
            }
        };
        if ends_wait && locked.end_wait(None, now, &ctx.patience)? {
            locked.close(session, now).await?;
        } else {
            session.commit().await?;
        }
        Ok(ended)
    }

    /// Writes the objects of the report.
    async fn unpack(&self, file_name: &str, staged: &StagedBlob, at_once: &mut AtOnce) -> Result<Unpacked> {
        let prefix = &self.begun.prefix;
        let mut pace = |size| at_once.take(size);
        let unpacking = async {
            match archive_of(file_name) {
                Archive::Records => unpack(self.ctx, staged, prefix, &mut pace).await,
                Archive::File => copy(self.ctx, staged, prefix, file_name).await,
            }
        };
        self.held(unpacking).await
    }

    /// Does work and keeps the report meanwhile.
    async fn held<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = sleep(HOLD_EVERY) => match self.hold().await {
                    Ok(true) => {}
                    Ok(false) => return Err(StoreError::ContentGone.into()),
                    Err(error) => {
                        tracing::warn!(%error, prefix = self.begun.prefix, "a report on its way could not be held");
                    }
                },
            }
        }
    }

    /// Whether the report is still this upload's own; its run is not given up
    /// meanwhile.
    async fn hold(&self) -> Result<bool> {
        let (project, now) = (self.project, self.clock.now());
        let mut session = self.ctx.store.db().begin().await?;
        let is_own = reports::hold(&mut session, project, self.begun.id, now).await?;
        session.commit().await?;
        touch_waiting(self.ctx, (project, self.run), now).await?;
        Ok(is_own)
    }

    /// Forgets the report, which was not stored.
    async fn give_up(&self) {
        let forgotten = async {
            let mut session = self.ctx.store.db().begin().await?;
            reports::discard(&mut session, self.project, &self.begun, self.clock.now()).await?;
            session.commit().await
        };
        if let Err(error) = forgotten.await {
            // It ends by itself: the row is taken for silent, and its directory is swept.
            tracing::warn!(%error, prefix = self.begun.prefix, "a report that was not stored is still noted");
        }
    }
}

/// A report whose objects are all there.
struct Complete<'r> {
    begun: &'r BegunReport,
    /// Entry page.
    entry: &'r str,
    /// Bytes.
    size: i64,
    entries: usize,
}

impl Complete<'_> {
    /// Makes it visible.
    async fn show(&self, session: &mut Session, locked: &LockedRun, now: Timestamp) -> Result<ReportRow> {
        let (project, run) = (locked.run.project, locked.run.id);
        let count = i64::try_from(self.entries).unwrap_or(i64::MAX);
        let row = reports::complete(session, project, self.begun, self.entry, self.size, count, now).await?;
        storage::recount_run(session, project, run, now).await?;
        date_run(session, &locked.run).await?;
        Ok(row)
    }
}

fn size_of(contents: &Contents) -> Result<i64> {
    let size = contents.entries.iter().map(|entry| entry.size).sum::<u64>();
    Ok(i64::try_from(size).map_err(|_| StoreError::Damaged("a size beyond 63 bits"))?)
}

fn default_label(kind: &str) -> String {
    if kind == "html" {
        return "HTML Report".to_owned();
    }
    let mut letters = kind.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    format!("{}{} Report", first.map(String::from).unwrap_or_default(), letters.as_str())
}

fn archive_of(file_name: &str) -> Archive {
    let is_records = file_name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("gz"));
    if is_records { Archive::Records } else { Archive::File }
}

/// `index.html`; for a blob report the first ZIP at the top; else the first
/// file there is.
fn entry_page<'e>(kind: &str, entries: &'e [Entry]) -> &'e str {
    let is_root_zip = |entry: &&Entry| !entry.path.contains('/') && entry.path.ends_with(".zip");
    let wanted = if kind == "blob" {
        entries.iter().find(is_root_zip)
    } else {
        entries.iter().find(|entry| entry.path == "index.html")
    };
    wanted.or(entries.first()).map(|entry| entry.path.as_str()).unwrap_or_default()
}
