//! After the end of a run its traces are looked through for parts that they
//! share with each other or with earlier ones: those are stored once. Every
//! trace is read as it was sent, whatever became of its parts; one that is no
//! sound archive is left alone.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::{Buf as _, Bytes};
use callboard_domain::ids::{BlobId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_playwright::trace::pool::{Candidate, HEADER_BYTES, Layout, Member, candidates, is_worth_it};
use callboard_playwright::trace::{Archive, ByteRanges, Limits};
use callboard_store::blobs::content::Content;
use callboard_store::blobs::pool::{self, WholeTrace};
use callboard_store::jobs::{self, Payload};
use callboard_store::{Store, StoreError, boxed};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Context, QueryError, Result};

/// Traces that are compared at the same time.
const BATCH: usize = 16;

/// Traces of a run whose parts have not been looked at.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct PoolTraces {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Traces up to this one are done.
    pub after: BlobId,
}

impl Payload for PoolTraces {
    const KIND: &'static str = "pool_traces";
}

/// Queues the work, when the run has traces it could be worth for.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn queue_trace_pool(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    let job = PoolTraces { project, run, after: BlobId(0) };
    let any = pool::whole_traces(&mut ctx.store.db().read().await?, project, run, job.after, 1).await?;
    if any.is_empty() {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    let key = format!("run:{run}:traces:{now}", now = now.millis());
    jobs::enqueue(&mut session, &key, Some(project), &job, now).await?;
    session.commit().await?;
    Ok(())
}

/// Does a batch of it. Answers what is left.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn pool_traces(ctx: &Context, job: PoolTraces, now: Timestamp) -> Result<Option<PoolTraces>> {
    let PoolTraces { project, run, after } = job;
    let mut session = ctx.store.db().read().await?;
    let traces = pool::whole_traces(&mut session, project, run, after, BATCH as i64).await?;
    drop(session);
    let mut looked_into = Vec::with_capacity(traces.len());
    for trace in &traces {
        match parts_of(ctx, project, trace).await {
            Ok((size, parts)) => looked_into.push(LookedInto { trace, size, parts }),
            Err(error) => pass_over(ctx, run, trace, error).await?,
        }
    }
    let met = met_elsewhere(ctx, project, &looked_into).await?;
    for LookedInto { trace, size, parts } in looked_into {
        let members: Vec<Member> = parts
            .into_iter()
            .filter(|(member, hash)| is_worth_it(member.length, met.contains(hash)))
            .map(|(member, _)| member)
            .collect();
        if !Layout::new(size, members.clone()).is_some_and(|layout| layout.pays()) {
            continue;
        }
        match pool::take_apart(&ctx.store, project, trace, members, now).await {
            Ok(true) => {
                tracing::debug!(%run, trace = trace.blob.get(), "a trace shares its parts from now on");
            }
            Ok(false) => {}
            Err(error) => pass_over(ctx, run, trace, error.into()).await?,
        }
    }
    let last = traces.last().filter(|_| traces.len() == BATCH);
    Ok(last.map(|trace| PoolTraces { after: trace.blob, ..job }))
}

/// Goes on without a trace whose bytes are missing or damaged: it would fail
/// the same way each time, and keep the others waiting. While the store does
/// not answer no trace is at fault, and the work is tried again.
async fn pass_over(ctx: &Context, run: RunId, trace: &WholeTrace, error: QueryError) -> Result<()> {
    let is_about_bytes = matches!(
        error,
        QueryError::Store(StoreError::Storage(_) | StoreError::Damaged(_) | StoreError::Upload(_))
    );
    if !is_about_bytes || ctx.store.objects().check().await.is_err() {
        return Err(error);
    }
    tracing::warn!(%run, trace = trace.blob.get(), %error, "a trace cannot share its parts");
    Ok(())
}

type Part = (Member, [u8; 32]);

/// A trace with the parts that could be kept apart.
struct LookedInto<'a> {
    trace: &'a WholeTrace,
    size: u64,
    parts: Vec<Part>,
}

/// Hashes that occur in several of these traces, or in the pool.
async fn met_elsewhere(
    ctx: &Context,
    project: ProjectId,
    traces: &[LookedInto<'_>],
) -> Result<HashSet<[u8; 32]>> {
    let mut times = HashMap::<[u8; 32], usize>::new();
    for trace in traces {
        for hash in trace.parts.iter().map(|(_, hash)| *hash).collect::<HashSet<_>>() {
            *times.entry(hash).or_default() += 1;
        }
    }
    let hashes: Vec<[u8; 32]> = times.keys().copied().collect();
    let known = pool::known(&mut ctx.store.db().read().await?, project, &hashes).await?;
    Ok(times.into_iter().filter(|(_, times)| *times > 1).map(|(hash, _)| hash).chain(known).collect())
}

/// Size of a trace, and its entries that could be kept apart, with the hash of
/// their compressed bytes; none of an archive that cannot be read.
async fn parts_of(ctx: &Context, project: ProjectId, trace: &WholeTrace) -> Result<(u64, Vec<Part>)> {
    let content = Content::load(&mut ctx.store.db().read().await?, project, trace.blob).await?;
    let stored = StoredFile { store: &ctx.store, content: &content };
    let found = match Archive::open(&stored, Limits::DEFAULT).await {
        Ok(archive) => candidates(&archive, content.size()),
        Err(callboard_playwright::trace::TraceError::Source(error)) => return Err(error.into()),
        Err(_) => Vec::new(),
    };
    let parts = if found.is_empty() { Vec::new() } else { hashed(&ctx.store, &content, &found).await? };
    Ok((content.size(), parts))
}

/// Reads a file once from its start and hashes the bytes of these entries.
async fn hashed(store: &Store, content: &Content, found: &[Candidate]) -> Result<Vec<Part>> {
    let mut reader = Forward { pieces: content.stream(store, None).await?, piece: Bytes::new(), at: 0 };
    let mut parts = Vec::with_capacity(found.len());
    for candidate in found {
        // An entry whose header is longer than it seemed reaches into the next one.
        if candidate.header_at < reader.at || !reader.skip_to(candidate.header_at).await? {
            continue;
        }
        let mut header = [0_u8; HEADER_BYTES];
        if !reader.fill(&mut header).await? {
            break;
        }
        let Some(between) = Candidate::bytes_between(&header) else { continue };
        let at = reader.at + between;
        if !reader.skip_to(at).await? {
            break;
        }
        let Some(hash) = reader.hash(candidate.length).await? else { break };
        parts.push((Member { at, length: candidate.length }, hash));
    }
    Ok(parts)
}

/// A file that is read from front to back.
struct Forward {
    pieces: BoxStream<'static, Result<Bytes, StoreError>>,
    piece: Bytes,
    at: u64,
}

impl Forward {
    /// The next bytes, at most `most`; none at the end.
    async fn next(&mut self, most: u64) -> Result<Option<Bytes>> {
        while self.piece.is_empty() {
            match self.pieces.next().await {
                Some(piece) => self.piece = piece?,
                None => return Ok(None),
            }
        }
        let length = self.piece.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        self.at += length as u64;
        Ok(Some(self.piece.split_to(length)))
    }

    async fn skip_to(&mut self, at: u64) -> Result<bool> {
        while self.at < at {
            if self.next(at - self.at).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn fill(&mut self, mut target: &mut [u8]) -> Result<bool> {
        while !target.is_empty() {
            let Some(mut bytes) = self.next(target.len() as u64).await? else { return Ok(false) };
            let (filled, rest) = target.split_at_mut(bytes.len());
            bytes.copy_to_slice(filled);
            target = rest;
        }
        Ok(true)
    }

    async fn hash(&mut self, length: u64) -> Result<Option<[u8; 32]>> {
        let mut hasher = Sha256::new();
        let end = self.at + length;
        while self.at < end {
            let Some(bytes) = self.next(end - self.at).await? else { return Ok(None) };
            hasher.update(&bytes);
        }
        Ok(Some(hasher.finalize().into()))
    }
}

/// A stored file as the reader of archives asks for it.
struct StoredFile<'a> {
    store: &'a Store,
    content: &'a Content,
}

impl ByteRanges for StoredFile<'_> {
    type Error = StoreError;

    fn size(&self) -> u64 {
        self.content.size()
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        Ok(self.content.read(self.store, range).await?.to_vec())
    }
}
