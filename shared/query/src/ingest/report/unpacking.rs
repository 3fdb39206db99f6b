//! Taking report archives apart into objects.

use std::io::Write as _;

use callboard_domain::report_archive::{ArchiveError, ArchiveEvent, ArchiveLimits, ArchiveReader};
use callboard_store::blobs::StagedBlob;
use callboard_store::objects::ObjectWriter;
use callboard_store::{Store, StoreError};
use flate2::write::MultiGzDecoder;
use futures::StreamExt as _;
use tokio::task::{JoinError, JoinSet};

use crate::{Context, Result};

/// Compressed bytes inflated at a time: bounds what one step can grow to.
const INFLATE_STEP: usize = 8 * 1024;
/// How many times larger than its whole file a report may be, from
/// [`RATIO_FREE_BYTES`] on: what is more is made to fill a disk. A single log
/// in it may repeat itself as often as it likes.
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

/// A file of a report.
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) size: u64,
}

/// Entries, or why the archive was refused.
pub(super) type Unpacked = Result<Vec<Entry>, String>;

/// Stores an archive as the one file that it is.
pub(super) async fn copy(
    ctx: &Context,
    staged: &StagedBlob,
    prefix: &str,
    file_name: &str,
) -> Result<Unpacked> {
    let base = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    let name: String = base
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' })
        .take(100)
        .collect();
    let name = name.trim_matches(['.', '-']);
    let path = if name.is_empty() { "report" } else { name }.to_owned();
    let mut object = ctx.store.objects().writer(&format!("{prefix}/{path}"))?;
    let written = async {
        let mut bytes = staged.open(&ctx.store).await?;
        while let Some(chunk) = bytes.next().await {
            object.write(&chunk?).await?;
        }
        object.finish().await
    }
    .await;
    if let Err(error) = written {
        object.abort().await;
        return Err(error.into());
    }
    Ok(Ok(vec![Entry { path, size: staged.size }]))
}

/// Unpacks an archive; what was written of one that is refused, or that the
/// store did not take, is removed again.
pub(super) async fn unpack(ctx: &Context, staged: &StagedBlob, prefix: &str) -> Result<Unpacked> {
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
        let most_bytes = RATIO_FREE_BYTES.max(MAX_RATIO * staged.size);
        let mut inflated_bytes = 0;
        while let Some(chunk) = bytes.next().await {
            for step in chunk?.chunks(INFLATE_STEP) {
                if inflater.write_all(step).is_err() {
                    return Ok(Some("it is not a gzip".to_owned()));
                }
                let inflated = std::mem::take(inflater.get_mut());
                inflated_bytes += inflated.len() as u64;
                if inflated_bytes > most_bytes {
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
