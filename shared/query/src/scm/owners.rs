//! Owners of tests by the CODEOWNERS file of the default branch. They are
//! written to the tests, so that lists can be filtered by them; nothing is
//! matched when somebody reads.

use std::collections::BTreeMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::text::{clean, cut};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{CodeOwners, CommitQuery, code_owners_paths};
use callboard_store::code_owners;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::access::Access;
use super::cache::{Entry, Freshness};
use super::commits::page;
use super::error::SourceControlError;
use super::files::text_at;
use super::host::Host;
use crate::Context;

/// Tests that are matched in one transaction.
const BATCH: i64 = 1_000;
/// Characters of an owner's name that are kept.
const MAX_OWNER_CHARS: usize = 200;

/// What the tests of a project were matched with. Where it is lost, all of them
/// are matched again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Matched {
    /// Hash of the file's place and text.
    digest: String,
    /// Newest test that was matched.
    last_test: i64,
}

/// Matches the tests of a project with the CODEOWNERS file of its default
/// branch: all of them when the file changed, else those that are new. Stops
/// when `has_time` says so; returns whether tests are left.
///
/// # Errors
/// [`SourceControlError`].
pub async fn refresh_owners(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    has_time: impl Fn() -> bool,
    now: Timestamp,
) -> Result<bool, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let (digest, owners) = read(ctx, &host, now).await?;
    let entry = || async {
        let key = host.key("owners", &())?;
        Entry::<Matched>::look_up(ctx, host.project, key, now).await
    };
    let known = entry().await?.take_any().unwrap_or_default();
    let mut last_test = if known.digest == digest { known.last_test } else { 0 };
    loop {
        let tests =
            code_owners::tests(&mut ctx.store.db().read().await?, host.project, last_test, BATCH).await?;
        let Some(last) = tests.last() else { break };
        last_test = last.id.get();
        let mut by_owner: BTreeMap<Option<String>, Vec<i64>> = BTreeMap::new();
        for test in &tests {
            let owner = owners.owner_of(&test.file_path);
            let owner = owner.map(|owner| cut(clean(owner).into_owned(), MAX_OWNER_CHARS));
            by_owner.entry(owner).or_default().push(test.id.get());
        }
        let mut session = ctx.store.db().begin().await?;
        for (owner, tests) in by_owner {
            code_owners::assign(&mut session, host.project, tests, owner.as_deref()).await?;
        }
        session.commit().await?;
        let matched = Matched { digest: digest.clone(), last_test };
        entry().await?.store(ctx, matched, None, Freshness::COMMIT, now).await?;
        if !has_time() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The rules of the default branch, with a hash of what they were read from.
async fn read(
    ctx: &Context,
    host: &Host,
    now: Timestamp,
) -> Result<(String, CodeOwners), SourceControlError> {
    let query = CommitQuery { start: host.default_branch.clone(), base: None, limit: 1, page: None };
    let head = page(ctx, host, &query, now).await?.commits.into_iter().next();
    let mut found = None;
    if let Some(head) = head {
        for path in code_owners_paths(host.provider) {
            if let Some(text) = text_at(ctx, host, &head.sha, path, now).await? {
                found = Some((*path, text));
                break;
            }
        }
    }
    let (path, text) = found.unwrap_or_default();
    let place = format!("{} {} {path}\n{text}", host.provider.as_str(), host.url);
    let digest = hex::encode(Sha256::digest(place));
    Ok((digest, CodeOwners::parse(&text, host.provider)))
}
