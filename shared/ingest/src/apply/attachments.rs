//! Files of an attempt: the link between their bytes and the attempt they belong to.

use std::collections::BTreeSet;

use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_store::blobs::{self, BlobRow};
use callboard_store::db::Session;
use callboard_store::executions::{self, RunPlace};
use callboard_store::files::{self, Dimensions, FileKind, NewFile};

use crate::Result;

/// A file whose bytes are in the object store.
#[derive(Debug, Clone)]
pub(crate) struct PublishedFile {
    pub(crate) entry: usize,
    pub(crate) kind: FileKind,
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) original_name: Option<String>,
    pub(crate) size: u64,
    pub(crate) dimensions: Option<Dimensions>,
    pub(crate) blob: BlobRow,
}

impl PublishedFile {
    /// A trace that was sent before, for an entry that only named it.
    pub(crate) fn stored_trace(entry: usize, title: &str, blob: BlobRow) -> Self {
        Self {
            entry,
            kind: FileKind::Trace,
            name: "trace".to_owned(),
            content_type: "application/zip".to_owned(),
            original_name: Some(format!("{title}.zip")),
            size: blob.size,
            dimensions: None,
            blob,
        }
    }
}

/// Files that were new to their attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    pub(crate) traces: i64,
    pub(crate) others: i64,
}

/// Locks the contents of files that are linked next, so that calls with the same
/// files in another order do not lock each other out.
pub(crate) async fn lock_contents(
    session: &mut Session,
    project: ProjectId,
    files: &[&PublishedFile],
) -> Result<()> {
    let contents: BTreeSet<i64> = files.iter().map(|file| file.blob.id.get()).collect();
    Ok(blobs::lock(session, project, contents.into_iter().collect()).await?)
}

/// Links files to an attempt, given as repetition and retry, and counts them
/// on its execution.
pub(crate) async fn link_all(
    session: &mut Session,
    place: RunPlace,
    execution: ExecutionId,
    (repetition, retry): (i64, i64),
    published: &[PublishedFile],
    now: Timestamp,
) -> Result<Linked> {
    let mut linked = Linked::default();
    for file in published {
        let new = NewFile {
            run: place.run,
            execution,
            repetition,
            retry,
            kind: file.kind,
            name: file.name.clone(),
            content_type: file.content_type.clone(),
            original_name: file.original_name.clone(),
            size: file.size,
            dimensions: file.dimensions,
            blob: file.blob.id,
        };
        match files::link(session, place.project, &new, now).await? {
            Some(FileKind::Trace) => linked.traces += 1,
            Some(_) => linked.others += 1,
            None => {}
        }
    }
    if linked != Linked::default() {
        executions::count_files(session, place.project, execution, linked.traces, linked.others).await?;
    }
    Ok(linked)
}
