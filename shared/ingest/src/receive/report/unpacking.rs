//! Taking report archives apart into objects.

use std::io::Write as _;

use bytes::Bytes;
use callboard_playwright::report_archive::{ArchiveError, ArchiveEvent, ArchiveLimits, ArchiveReader};
use callboard_store::blobs::StagedBlob;
use callboard_store::objects::ObjectWriter;
use callboard_store::{Store, StoreError};
use flate2::write::MultiGzDecoder;
use futures::StreamExt as _;
use futures::stream::BoxStream;
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
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) size: u64,
}

/// What an archive holds.
pub(crate) struct Contents {
    /// Its files, as far as it was read.
    pub(crate) entries: Vec<Entry>,
    /// How many of them, from the first on, are objects now.
    pub(crate) written: usize,
}

impl Contents {
    /// Whether every file that was met is an object.
    pub(crate) fn is_written(&self) -> bool {
        self.written == self.entries.len()
    }
}

/// Contents, or why the archive was refused.
pub(crate) type Unpacked = Result<Contents, String>;

/// What is done with the next file of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is written.
    Write,
    /// It and those behind it are only looked at.
    Check,
    /// The archive is not read any further.
    Stop,
}

/// Decides that by the size of the file, in bytes.
pub(crate) type Priority<'p> = &'p mut (dyn FnMut(u32) -> Next + Send);

/// Stores an archive as the one file that it is.
pub(crate) async fn copy(
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
    Ok(Ok(Contents { entries: vec![Entry { path, size: staged.size }], written: 1 }))
}

/// Unpacks an archive; what was written of one that is refused, or that the
/// store did not take, is removed again.
pub(crate) async fn unpack(
    ctx: &Context,
    staged: &StagedBlob,
    prefix: &str,
    pace: Priority<'_>,
) -> Result<Unpacked> {
    let most_bytes = RATIO_FREE_BYTES.max(MAX_RATIO * staged.size);
    let mut unpacking = Unpacking::begin(&ctx.store, prefix, most_bytes, 0, pace);
    let unpacked = match staged.open(&ctx.store).await {
        Ok(bytes) => unpacking.read(bytes).await,
        Err(error) => Err(error.into()),
    };
    let contents = unpacking.end().await;
    let refused = match unpacked {
        Ok(None) => return Ok(Ok(contents)),
        refused => refused,
    };
    let removed = remove(&ctx.store, prefix, &contents.entries[..contents.written]).await;
    let why = refused.inspect_err(|_| {
        if let Err(error) = &removed {
            tracing::warn!(%error, prefix, "files of a report that was not stored remain");
        }
    })?;
    removed?;
    Ok(Err(why.unwrap_or_default()))
}

/// Writes files of an archive that was looked through, which lies under a key,
/// from one on.
pub(crate) async fn unpack_from(
    ctx: &Context,
    archive: &str,
    prefix: &str,
    from: usize,
    pace: Priority<'_>,
) -> Result<Unpacked> {
    let bytes = ctx.store.objects().stream(archive, None).await?;
    let mut unpacking = Unpacking::begin(&ctx.store, prefix, u64::MAX, from, pace);
    let unpacked = unpacking.read(bytes).await;
    let contents = unpacking.end().await;
    Ok(unpacked?.map_or(Ok(contents), Err))
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
    most_bytes: u64,
    pace: Priority<'a>,
    next: Next,
    reader: ArchiveReader,
    entries: Vec<Entry>,
    /// Files from the first on that are objects, or on their way.
    written: usize,
    open: Option<Open>,
    /// Small files on their way.
    puts: JoinSet<std::result::Result<(), StoreError>>,
}

/// The file whose content is being read.
enum Open {
    /// Put immediately when it is complete, beside others.
    Small { key: String, content: Vec<u8> },
    /// Written as it comes.
    Large(ObjectWriter),
}

impl<'a> Unpacking<'a> {
    fn begin(store: &'a Store, prefix: &'a str, most_bytes: u64, written: usize, pace: Priority<'a>) -> Self {
        Self {
            store,
            prefix,
            most_bytes,
            pace,
            next: Next::Write,
            reader: ArchiveReader::new(ArchiveLimits::default()),
            entries: Vec::new(),
            written,
            open: None,
            puts: JoinSet::new(),
        }
    }

    /// What came of it. Nothing is written any more.
    async fn end(mut self) -> Contents {
        if let Some(Open::Large(object)) = self.open {
            object.abort().await;
        }
        while self.puts.join_next().await.is_some() {}
        Contents { entries: self.entries, written: self.written }
    }

    /// Reads the archive and waits until its files are stored; why it is
    /// refused, when it is.
    async fn read(
        &mut self,
        mut bytes: BoxStream<'static, Result<Bytes, StoreError>>,
    ) -> Result<Option<String>> {
        let mut inflater = MultiGzDecoder::new(Vec::new());
        let mut inflated_bytes = 0;
        while let Some(chunk) = bytes.next().await {
            for step in chunk?.chunks(INFLATE_STEP) {
                if inflater.write_all(step).is_err() {
                    return Ok(Some("it is not a gzip".to_owned()));
                }
                let inflated = std::mem::take(inflater.get_mut());
                inflated_bytes += inflated.len() as u64;
                if inflated_bytes > self.most_bytes {
                    return Ok(Some(format!("it inflates to more than {MAX_RATIO} times its size")));
                }
                if let Err(why) = self.take(&inflated).await? {
                    return Ok(Some(why.to_string()));
                }
                if self.next == Next::Stop {
                    return self.stored().await.map(|()| None);
                }
            }
        }
        let Ok(rest) = inflater.finish() else {
            return Ok(Some("it ends in the middle of the gzip".to_owned()));
        };
        if let Err(why) = self.take(&rest).await? {
            return Ok(Some(why.to_string()));
        }
        self.stored().await?;
        if self.next == Next::Stop {
            return Ok(None);
        }
        Ok(match self.reader.finish() {
            Ok(0) => Some("it holds no file".to_owned()),
            Ok(_) => None,
            Err(why) => Some(why.to_string()),
        })
    }

    /// Waits for the files on their way.
    async fn stored(&mut self) -> Result<()> {
        while let Some(put) = self.puts.join_next().await {
            done(put)?;
        }
        Ok(())
    }

    /// Writes what some inflated bytes tell, until the pace says to stop.
    async fn take(&mut self, mut bytes: &[u8]) -> Result<std::result::Result<(), ArchiveError>> {
        while self.next != Next::Stop {
            let event = match self.reader.next_event(&mut bytes) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(why) => return Ok(Err(why)),
            };
            match event {
                ArchiveEvent::Entry { path, size } => {
                    if self.entries.len() == self.written && self.next == Next::Write {
                        self.next = (self.pace)(size);
                        if self.next == Next::Write {
                            self.open = Some(self.object(&path, size)?);
                            self.written += 1;
                        }
                    }
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
        Ok(Ok(()))
    }

    fn object(&self, path: &str, size: u32) -> Result<Open> {
        let key = format!("{}/{path}", self.prefix);
        let is_small = usize::try_from(size).is_ok_and(|size| size <= SMALL_FILE_BYTES);
        Ok(if is_small {
            Open::Small { key, content: Vec::new() }
        } else {
            Open::Large(self.store.objects().writer(&key)?)
        })
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
