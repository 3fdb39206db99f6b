//! Reports: an archive becomes a directory of objects of its own, visible only
//! when it is complete. An unsafe archive is refused without harming its run.

use std::io::Write as _;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::report_archive::{ArchiveError, ArchiveEvent, ArchiveLimits, ArchiveReader};
use callboard_domain::time::Timestamp;
use callboard_store::blobs::StagedBlob;
use callboard_store::objects::ObjectWriter;
use callboard_store::reports;
use callboard_store::{Store, StoreError, runs, storage};
use flate2::write::MultiGzDecoder;
use futures::StreamExt as _;
use tokio::task::{JoinError, JoinSet};

use crate::shapes::Report;
use crate::{Context, Result, retention};

/// Compressed bytes inflated at a time: bounds what one step can grow to.
const INFLATE_STEP: usize = 8 * 1024;
/// How many times larger than its file a report may be, from
/// [`RATIO_FREE_BYTES`] on: what is more is made to fill a disk.
const MAX_RATIO: u64 = 200;
/// Inflated bytes of which the ratio says nothing.
const RATIO_FREE_BYTES: u64 = 1 << 20;
/// Files of a report that are written at the same time: a bucket takes tens of
/// milliseconds for each, whatever its size.
const PARALLEL_PUTS: usize = 16;
/// Most bytes of a file that is held in memory until it is written. With
/// [`PARALLEL_PUTS`] it bounds what unpacking takes: 17 MiB and two parts of a
/// large file.
const SMALL_FILE_BYTES: usize = 1024 * 1024;
/// Longest label of a report, in characters.
const MAX_LABEL_CHARS: usize = 100;

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

/// What became of a report.
#[derive(Debug)]
pub enum ReportOutcome {
    /// Stored, and by this call.
    Stored(Report),
    /// Stored before; nothing was added.
    Known(Report),
    /// Refused: why.
    Refused(String),
}

/// Stores a report of a run.
///
/// # Errors
/// [`crate::QueryError::Store`]; nothing of the report is visible then.
pub async fn attach_report(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    report: IncomingReport,
    now: Timestamp,
) -> Result<ReportOutcome> {
    let project = project.get();
    let IncomingReport { kind, label, file_name, staged } = report;
    let known =
        reports::by_archive(&mut ctx.store.db().read().await?, project, run, &kind, &staged.sha256).await?;
    if let Some(known) = known {
        staged.discard(&ctx.store).await?;
        return Ok(ReportOutcome::Known(Report::of(&known, &ctx.links)));
    }
    let label = label.filter(|label| !label.trim().is_empty()).unwrap_or_else(|| default_label(&kind));
    let label: String = label.trim().chars().take(MAX_LABEL_CHARS).collect();
    let mut session = ctx.store.db().begin().await?;
    let (id, prefix) = reports::begin(&mut session, project, run, &kind, &label, &staged.sha256, now).await?;
    session.commit().await?;

    let unpacked = match archive_of(&file_name) {
        Archive::Records => unpack(ctx, &staged, &prefix).await,
        Archive::File => copy(ctx, &staged, &prefix, &file_name).await,
    };
    staged.discard(&ctx.store).await?;
    let mut session = ctx.store.db().begin().await?;
    let unpacked = match unpacked {
        Ok(unpacked) => unpacked,
        Err(error) => {
            // The client will send it again; its row goes, so that it can.
            reports::discard(&mut session, project, id, now).await?;
            session.commit().await?;
            return Err(error);
        }
    };
    let outcome = match unpacked {
        Ok(entries) => {
            let entry = entry_page(&kind, &entries);
            let size = entries.iter().map(|entry| entry.size).sum::<u64>();
            let size = i64::try_from(size).map_err(|_| StoreError::Damaged("a size beyond 63 bits"))?;
            let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
            // A run that was deleted meanwhile takes nothing more.
            let locked = runs::lock(&mut session, project, run).await?;
            let row = reports::complete(&mut session, project, id, entry, size, count).await?;
            storage::recount_run(&mut session, project, run, now).await?;
            retention::date_run(&mut session, ctx, &locked).await?;
            ReportOutcome::Stored(Report::of(&row, &ctx.links))
        }
        Err(why) => {
            reports::discard(&mut session, project, id, now).await?;
            ReportOutcome::Refused(format!("The report \"{label}\" was not stored: {why}."))
        }
    };
    session.commit().await?;
    Ok(outcome)
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

struct Entry {
    path: String,
    size: u64,
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

/// Entries, or why the archive was refused.
type Unpacked = Result<Vec<Entry>, String>;

async fn copy(ctx: &Context, staged: &StagedBlob, prefix: &str, file_name: &str) -> Result<Unpacked> {
    let base = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    let name: String = base
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' })
        .take(100)
        .collect();
    let name = name.trim_matches(['.', '-']);
    let path = if name.is_empty() { "report" } else { name }.to_owned();
    let mut object = ctx.store.objects().writer(&format!("{prefix}/{path}"))?;
    let mut bytes = staged.open(&ctx.store).await?;
    while let Some(chunk) = bytes.next().await {
        object.write(&chunk?).await?;
    }
    object.finish().await?;
    Ok(Ok(vec![Entry { path, size: staged.size }]))
}

/// Unpacks an archive; what was written of one that is refused, or that the
/// store did not take, is removed again.
async fn unpack(ctx: &Context, staged: &StagedBlob, prefix: &str) -> Result<Unpacked> {
    let mut unpacking = Unpacking {
        store: &ctx.store,
        prefix,
        reader: ArchiveReader::new(ArchiveLimits::default()),
        entries: Vec::new(),
        open: None,
        puts: JoinSet::new(),
    };
    let unpacked = unpacking.read(staged).await;
    let (open, mut puts, entries) = (unpacking.open, unpacking.puts, unpacking.entries);
    if let Some(Open::Large(object)) = open {
        object.abort().await;
    }
    let refused = match unpacked {
        Ok(None) => return Ok(Ok(entries)),
        refused => refused,
    };
    // Nothing may be written any more when it is removed.
    while puts.join_next().await.is_some() {}
    let removed = remove(&ctx.store, prefix, &entries).await;
    let why = refused.inspect_err(|_| {
        if let Err(error) = &removed {
            tracing::warn!(%error, prefix, "files of a report that was not stored remain");
        }
    })?;
    removed?;
    Ok(Err(why.unwrap_or_default()))
}

async fn remove(store: &Store, prefix: &str, entries: &[Entry]) -> Result<()> {
    for some in entries.chunks(PARALLEL_PUTS) {
        let mut deletes = JoinSet::new();
        for entry in some {
            let (store, key) = (store.clone(), format!("{prefix}/{}", entry.path));
            deletes.spawn(async move { store.objects().delete(&key).await });
        }
        while let Some(deleted) = deletes.join_next().await {
            done(deleted)?;
        }
    }
    Ok(())
}

struct Unpacking<'a> {
    store: &'a Store,
    prefix: &'a str,
    reader: ArchiveReader,
    entries: Vec<Entry>,
    open: Option<Open>,
    /// Small files on their way.
    puts: JoinSet<std::result::Result<(), StoreError>>,
}

/// The file whose content is being read.
enum Open {
    /// Put at once when it is complete, beside others.
    Small { key: String, content: Vec<u8> },
    /// Written as it comes.
    Large(ObjectWriter),
}

impl Unpacking<'_> {
    /// Reads the whole archive and waits until its files are stored; why it is
    /// refused, when it is.
    async fn read(&mut self, staged: &StagedBlob) -> Result<Option<String>> {
        let mut inflater = MultiGzDecoder::new(Vec::new());
        let mut bytes = staged.open(self.store).await?;
        let (mut file_bytes, mut inflated_bytes) = (0, 0);
        while let Some(chunk) = bytes.next().await {
            for step in chunk?.chunks(INFLATE_STEP) {
                if inflater.write_all(step).is_err() {
                    return Ok(Some("it is not a gzip".to_owned()));
                }
                let inflated = std::mem::take(inflater.get_mut());
                file_bytes += step.len() as u64;
                inflated_bytes += inflated.len() as u64;
                if inflated_bytes > RATIO_FREE_BYTES && inflated_bytes > MAX_RATIO * file_bytes {
                    return Ok(Some(format!("it inflates to more than {MAX_RATIO} times its size")));
                }
                if let Err(why) = self.take(&inflated).await? {
                    return Ok(Some(why.to_string()));
                }
            }
        }
        let Ok(rest) = inflater.finish() else {
            return Ok(Some("it ends in the middle of the gzip".to_owned()));
        };
        if let Err(why) = self.take(&rest).await? {
            return Ok(Some(why.to_string()));
        }
        while let Some(put) = self.puts.join_next().await {
            done(put)?;
        }
        Ok(match self.reader.finish() {
            Ok(0) => Some("it holds no file".to_owned()),
            Ok(_) => None,
            Err(why) => Some(why.to_string()),
        })
    }

    /// Writes what some inflated bytes tell.
    async fn take(&mut self, mut bytes: &[u8]) -> Result<std::result::Result<(), ArchiveError>> {
        loop {
            let event = match self.reader.next_event(&mut bytes) {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Ok(())),
                Err(why) => return Ok(Err(why)),
            };
            match event {
                ArchiveEvent::Entry { path, size } => {
                    let key = format!("{}/{path}", self.prefix);
                    let is_small = usize::try_from(size).is_ok_and(|size| size <= SMALL_FILE_BYTES);
                    self.open = Some(if is_small {
                        Open::Small { key, content: Vec::new() }
                    } else {
                        Open::Large(self.store.objects().writer(&key)?)
                    });
                    self.entries.push(Entry { path, size: u64::from(size) });
                }
                ArchiveEvent::Data(data) => match &mut self.open {
                    Some(Open::Small { content, .. }) => content.extend_from_slice(data),
                    Some(Open::Large(object)) => object.write(data).await?,
                    None => {}
                },
                ArchiveEvent::End => match self.open.take() {
                    Some(Open::Small { key, content }) => self.put(key, content).await?,
                    Some(Open::Large(mut object)) => object.finish().await?,
                    None => {}
                },
            }
        }
    }

    /// Sends a small file on its way, after one of those before has arrived
    /// when there are many.
    async fn put(&mut self, key: String, content: Vec<u8>) -> Result<()> {
        if self.puts.len() >= PARALLEL_PUTS
            && let Some(put) = self.puts.join_next().await
        {
            done(put)?;
        }
        let store = self.store.clone();
        self.puts.spawn(async move { store.objects().put(&key, content.into()).await });
        Ok(())
    }
}

/// What one of the tasks beside came to.
fn done(task: std::result::Result<std::result::Result<(), StoreError>, JoinError>) -> Result<()> {
    Ok(task.map_err(|_| StoreError::Damaged("a file of a report was not written or removed"))??)
}
