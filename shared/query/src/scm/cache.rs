//! Stored answers of code hosts.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::scm_cache::{self, Lifetime};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::{Context, Result};

pub(super) const MINUTE_MS: i64 = 60_000;
pub(super) const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// How long an answer is good for, milliseconds from when it came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Freshness {
    /// Nobody asks again for so long.
    pub(super) fresh_ms: i64,
    /// It is kept for so long, to be confirmed by its ETag.
    pub(super) kept_ms: i64,
}

impl Freshness {
    /// What a branch has may change at any time.
    pub(super) const BRANCH: Self = Self { fresh_ms: MINUTE_MS, kept_ms: DAY_MS };
    /// What begins at a whole hash stays as it is; nobody reads on for longer.
    pub(super) const PAGE: Self = Self { fresh_ms: DAY_MS, kept_ms: DAY_MS };
    /// What is named by whole hashes stays as it is.
    pub(super) const COMMIT: Self = Self { fresh_ms: 30 * DAY_MS, kept_ms: 30 * DAY_MS };
    /// How an issue stands changes by the hour, and is better known late than not.
    pub(super) const TICKET: Self = Self { fresh_ms: 5 * MINUTE_MS, kept_ms: 30 * DAY_MS };

    /// What was made of such answers, and better made again of newer ones.
    pub(super) const DAY: Self = Self { fresh_ms: DAY_MS, kept_ms: 30 * DAY_MS };
    /// What lacks some of its parts is made again soon.
    pub(super) const INCOMPLETE: Self = Self { fresh_ms: 2 * MINUTE_MS, kept_ms: 30 * DAY_MS };

    fn from(self, now: Timestamp) -> Lifetime {
        Lifetime {
            fresh_until: Timestamp(now.millis().saturating_add(self.fresh_ms)),
            expires_at: Timestamp(now.millis().saturating_add(self.kept_ms)),
        }
    }
}

/// The place of an answer, with what is stored there.
#[derive(Debug)]
pub(super) struct Entry<T> {
    project: ProjectId,
    key: String,
    stored: Option<Stored<T>>,
}

#[derive(Debug)]
struct Stored<T> {
    value: T,
    etag: Option<String>,
    is_fresh: bool,
}

/// A value as the table holds it.
pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(|_| StoreError::Damaged("an answer of a code host"))?)
}

/// The key of a question: what is asked for, of which repository.
pub(super) fn key(kind: &str, repository: &str, question: &impl Serialize) -> Result<String> {
    let question = to_json(&(repository, question))?;
    Ok(format!("{kind}:{}", hex::encode(Sha256::digest(question))))
}

impl<T: Serialize + DeserializeOwned> Entry<T> {
    /// Looks a key up. What another version of the service stored in another
    /// form counts as not stored.
    pub(super) async fn look_up(
        ctx: &Context,
        project: ProjectId,
        key: String,
        now: Timestamp,
    ) -> Result<Self> {
        let found = scm_cache::get(&mut ctx.store.db().read().await?, project, &key, now).await?;
        let stored = found.and_then(|found| {
            Some(Stored {
                value: serde_json::from_str(&found.value).ok()?,
                is_fresh: found.fresh_until > now,
                etag: found.etag,
            })
        });
        Ok(Self { project, key, stored })
    }

    /// The stored answer, while nobody has to ask again.
    pub(super) fn take_fresh(&mut self) -> Option<T> {
        self.stored.take_if(|stored| stored.is_fresh).map(|stored| stored.value)
    }

    /// Whether the stored answer is fresh and fulfils a condition.
    pub(super) fn is_fresh_and(&self, condition: impl Fn(&T) -> bool) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.is_fresh && condition(&stored.value))
    }

    /// The stored answer, however old.
    pub(super) fn take_any(&mut self) -> Option<T> {
        self.stored.take().map(|stored| stored.value)
    }

    /// What lets the provider confirm the stored answer.
    pub(super) fn etag(&self) -> Option<&str> {
        self.stored.as_ref()?.etag.as_deref()
    }

    /// Stores an answer in this place and returns it.
    pub(super) async fn store(
        self,
        ctx: &Context,
        value: T,
        etag: Option<String>,
        freshness: Freshness,
        now: Timestamp,
    ) -> Result<T> {
        let json = to_json(&value)?;
        let lifetime = freshness.from(now);
        let mut session = ctx.store.db().begin().await?;
        scm_cache::put(&mut session, self.project, &self.key, &json, etag.as_deref(), lifetime).await?;
        session.commit().await?;
        Ok(value)
    }

    /// Prolongs the stored answer, which its provider confirmed, and returns it;
    /// `None` when nothing was stored that could be confirmed.
    pub(super) async fn confirm(
        self,
        ctx: &Context,
        freshness: Freshness,
        now: Timestamp,
    ) -> Result<Option<T>> {
        let Some(Stored { value, etag: Some(etag), .. }) = self.stored else { return Ok(None) };
        let mut session = ctx.store.db().begin().await?;
        scm_cache::confirm(&mut session, self.project, &self.key, &etag, freshness.from(now)).await?;
        session.commit().await?;
        Ok(Some(value))
    }
}
