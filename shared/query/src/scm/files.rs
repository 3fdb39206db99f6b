//! Contents of files at a commit.

use std::collections::BTreeMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use super::access::Access;
use super::cache::{Entry, Freshness};
use super::commits::is_whole_sha;
use super::error::SourceControlError;
use super::host::Host;
use crate::Context;

/// Bytes of a file that are stored; a longer one counts as one that is not there.
const MAX_FILE_BYTES: usize = 3_000_000;

/// The text of a file at a commit or branch; `None` where there is no such file,
/// and for one that is too long or no text.
///
/// # Errors
/// [`SourceControlError::Upstream`].
pub(super) async fn text_at(
    ctx: &Context,
    host: &Host,
    reference: &str,
    path: &str,
    now: Timestamp,
) -> Result<Option<String>, SourceControlError> {
    let key = host.key("file", &(reference, path))?;
    let mut entry: Entry<Option<String>> = Entry::look_up(ctx, host.project, key, now).await?;
    if let Some(text) = entry.take_fresh() {
        return Ok(text);
    }
    let found = host.ask(ctx, now, |client| client.file_at(reference, path)).await?;
    let found = found.filter(|bytes| bytes.len() <= MAX_FILE_BYTES && !bytes.contains(&0));
    let text = found.and_then(|bytes| String::from_utf8(bytes).ok());
    let freshness = if is_whole_sha(reference) { Freshness::COMMIT } else { Freshness::BRANCH };
    Ok(entry.store(ctx, text, None, freshness, now).await?)
}

/// Texts of some files at a commit, by their paths; those without one are left
/// out.
///
/// # Errors
/// [`SourceControlError`].
pub(crate) async fn texts_at(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    commit: &str,
    paths: Vec<String>,
    now: Timestamp,
) -> Result<BTreeMap<String, String>, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let mut texts = BTreeMap::new();
    for path in paths {
        if let Some(text) = text_at(ctx, &host, commit, &path, now).await? {
            texts.insert(path, text);
        }
    }
    Ok(texts)
}
