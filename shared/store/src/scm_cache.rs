//! Answers of code hosts, by project and key. The query layer decides what a
//! key is and how long an answer is fresh.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// A stored answer. PK
    GET = "SELECT value, etag, fresh_until FROM scm_cache WHERE project_id = $1 AND key = $2 AND expires_at > $3";
    /// Stores an answer in the place of an older one.
    PUT = "INSERT INTO scm_cache (project_id, key, value, etag, fresh_until, expires_at) VALUES ($1, $2, $3, $4, $5, $6) \
        ON CONFLICT (project_id, key) DO UPDATE SET value = excluded.value, etag = excluded.etag, \
        fresh_until = excluded.fresh_until, expires_at = excluded.expires_at";
    /// Prolongs an answer that its provider confirmed, unless another one took its place. PK
    CONFIRM = "UPDATE scm_cache SET fresh_until = $4, expires_at = $5 WHERE project_id = $1 AND key = $2 AND etag = $3";
    /// Forgets the answers about a project. PK
    CLEAR = "DELETE FROM scm_cache WHERE project_id = $1";
    /// Some answers whose time is over. ix: scm_cache_by_expiry
    PURGE = "DELETE FROM scm_cache WHERE (project_id, key) IN \
        (SELECT c.project_id, c.key FROM scm_cache c WHERE c.expires_at <= $1 ORDER BY c.expires_at LIMIT $2)";
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedAnswer {
    /// JSON.
    pub value: String,
    /// Lets the provider confirm it.
    pub etag: Option<String>,
    /// Until when nobody has to ask again.
    pub fresh_until: Timestamp,
}

/// How long an answer is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Until when nobody has to ask again.
    pub fresh_until: Timestamp,
    /// When it is deleted.
    pub expires_at: Timestamp,
}

/// A stored answer that has not expired.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn get(
    session: &mut Session,
    project: ProjectId,
    key: &str,
    now: Timestamp,
) -> Result<Option<CachedAnswer>> {
    let row = session.first(&GET, args![project, key, now]).await?;
    row.map(|row| {
        let mut r = row.reader();
        Ok(CachedAnswer { value: r.text()?, etag: r.opt_text()?, fresh_until: r.time()? })
    })
    .transpose()
}

/// Stores an answer.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn put(
    session: &mut Session,
    project: ProjectId,
    key: &str,
    value: &str,
    etag: Option<&str>,
    lifetime: Lifetime,
) -> Result<()> {
    let etag = etag.map(str::to_owned);
    session
        .execute(&PUT, args![project, key, value, etag, lifetime.fresh_until, lifetime.expires_at])
        .await?;
    Ok(())
}

/// Prolongs an answer that its provider confirmed by its ETag.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn confirm(
    session: &mut Session,
    project: ProjectId,
    key: &str,
    etag: &str,
    lifetime: Lifetime,
) -> Result<()> {
    session.execute(&CONFIRM, args![project, key, etag, lifetime.fresh_until, lifetime.expires_at]).await?;
    Ok(())
}

/// Forgets all answers about a project.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn clear(session: &mut Session, project: ProjectId) -> Result<()> {
    session.execute(&CLEAR, args![project]).await?;
    Ok(())
}

/// Deletes at most `limit` answers whose time is over; returns how many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn purge(session: &mut Session, now: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![now, limit]).await
}
