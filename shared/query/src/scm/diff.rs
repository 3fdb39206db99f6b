//! What one commit changed.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::text::{clean, cut_str};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{ChangedFile, CommitChanges, FileStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Access;
use super::cache::{Entry, Freshness, to_json};
use super::commits::{RepositoryCommit, is_whole_sha};
use super::error::SourceControlError;
use super::host::Host;
use crate::Context;
use crate::page::Slice;

/// Files of a page.
const FILES_PER_PAGE: usize = 30;
/// Characters of one patch that are stored.
const MAX_PATCH_CHARS: usize = 30_000;
/// Bytes of all patches of a commit that are stored.
const MAX_PATCHES_BYTES: usize = 200_000;

/// A file that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffFile {
    /// Path; the old one when it was removed.
    #[schema(example = "src/cart.ts")]
    pub filename: String,
    /// Path before it was renamed.
    pub previous_filename: Option<String>,
    /// `added`, `modified`, `removed` or `renamed`.
    #[schema(value_type = String, example = "modified")]
    pub status: FileStatus,
    /// Added lines; null when the provider does not say.
    pub additions: Option<u64>,
    /// Removed lines; null when the provider does not say.
    pub deletions: Option<u64>,
    /// Hunks of the unified diff; null for binary files, and for patches that are left out.
    pub patch: Option<String>,
}

impl DiffFile {
    /// Whether the file has changed lines that are not shown.
    #[must_use]
    pub fn lacks_patch(&self) -> bool {
        let is_without_lines = self.additions == Some(0) && self.deletions == Some(0);
        self.patch.is_none() && !is_without_lines
    }
}

/// Which part of a diff to show.
#[derive(Debug, Clone, Default)]
pub struct DiffParams {
    /// Commit, 7 to 64 hexadecimal digits.
    pub sha: String,
    /// Only this file.
    pub file: Option<String>,
    /// Files to leave out from the beginning.
    pub after: Option<usize>,
    /// Characters of a patch that are shown.
    pub patch_chars: usize,
    /// Bytes of a page as JSON; a page has at least one file.
    pub page_bytes: usize,
}

/// A page of the files that a commit changed.
#[derive(Debug, Clone)]
pub struct DiffPage {
    /// The commit.
    pub commit: RepositoryCommit,
    /// Files, and how many to leave out for the next page.
    pub files: Slice<DiffFile, usize>,
    /// Files of the page whose patch is left out.
    pub patches_omitted: usize,
    /// Whether the commit changed more files than the provider lists.
    pub is_cut: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredDiff {
    commit: RepositoryCommit,
    pub(super) files: Vec<DiffFile>,
    is_cut: bool,
}

/// Shortens a patch at the end of a line.
fn cut_patch(patch: &str, max_chars: usize) -> String {
    let kept = cut_str(patch, max_chars);
    if kept.len() == patch.len() {
        return patch.to_owned();
    }
    let end = kept.rfind('\n').unwrap_or(kept.len());
    format!("{}\n…", &kept[..end])
}

impl From<CommitChanges> for StoredDiff {
    fn from(changes: CommitChanges) -> Self {
        let mut room = MAX_PATCHES_BYTES;
        let files = changes.files.into_iter().map(|file: ChangedFile| {
            let patch = file.patch.map(|patch| cut_patch(&clean(&patch), MAX_PATCH_CHARS));
            let patch = patch.filter(|patch| patch.len() <= room);
            room -= patch.as_ref().map_or(0, String::len);
            DiffFile {
                filename: clean(&file.path).into_owned(),
                previous_filename: file.previous_path.map(|path| clean(&path).into_owned()),
                status: file.status,
                additions: file.additions,
                deletions: file.deletions,
                patch,
            }
        });
        let files = files.collect();
        Self { files, commit: changes.commit.into(), is_cut: changes.is_cut }
    }
}

/// Files that a commit changed against its first parent.
///
/// # Errors
/// [`SourceControlError`].
pub async fn commit_diff(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    params: &DiffParams,
    now: Timestamp,
) -> Result<DiffPage, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let StoredDiff { commit, files, is_cut } =
        stored(ctx, &host, &params.sha.to_ascii_lowercase(), now).await?;
    let is_wanted = |file: &DiffFile| match &params.file {
        Some(wanted) => file.filename == *wanted || file.previous_filename.as_ref() == Some(wanted),
        None => true,
    };
    let files = page(files.into_iter().filter(is_wanted), params)?;
    let patches_omitted = files.items.iter().filter(|file| file.lacks_patch()).count();
    Ok(DiffPage { commit, files, patches_omitted, is_cut })
}

/// As many files as fit on a page.
fn page(
    files: impl Iterator<Item = DiffFile>,
    params: &DiffParams,
) -> Result<Slice<DiffFile, usize>, SourceControlError> {
    let before = params.after.unwrap_or_default();
    let mut items = Vec::new();
    let mut bytes = 0usize;
    for mut file in files.skip(before) {
        file.patch = file.patch.map(|patch| cut_patch(&patch, params.patch_chars));
        bytes = bytes.saturating_add(to_json(&file)?.len());
        let is_full = items.len() == FILES_PER_PAGE || (bytes > params.page_bytes && !items.is_empty());
        if is_full {
            return Ok(Slice { next: Some(before + items.len()), items });
        }
        items.push(file);
    }
    Ok(Slice { items, next: None })
}

/// The diff of a commit; the beginning of a hash stands for the same commit for
/// a minute, and for another one maybe after that.
pub(super) async fn stored(
    ctx: &Context,
    host: &Host,
    sha: &str,
    now: Timestamp,
) -> Result<StoredDiff, SourceControlError> {
    let is_whole = is_whole_sha(sha);
    let mut known: Entry<String> = Entry::look_up(ctx, host.project, host.key("sha", &sha)?, now).await?;
    let whole = if is_whole { Some(sha.to_owned()) } else { known.take_fresh() };
    if let Some(whole) = &whole {
        let mut entry: Entry<StoredDiff> =
            Entry::look_up(ctx, host.project, host.key("diff", whole)?, now).await?;
        if let Some(diff) = entry.take_fresh() {
            return Ok(diff);
        }
    }
    let wanted = whole.as_deref().unwrap_or(sha);
    let diff = StoredDiff::from(host.ask(ctx, now, |client| client.commit_diff(wanted)).await?);
    let found = diff.commit.sha.clone();
    let entry: Entry<StoredDiff> = Entry::look_up(ctx, host.project, host.key("diff", &found)?, now).await?;
    let diff = entry.store(ctx, diff, None, Freshness::COMMIT, now).await?;
    if !is_whole {
        known.store(ctx, found, None, Freshness::BRANCH, now).await?;
    }
    Ok(diff)
}
