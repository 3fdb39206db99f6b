//! Whole copies of content that is put together of parts, for a client that can only be
//! sent to one object. A copy is a staged object: a row names it before its first byte,
//! and the sweep of staged uploads removes both a day after it was last asked for.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};

use super::STAGING_LIFE_MS;
use super::content::Content;
use crate::db::{args, statements};
use crate::{Result, Store};

statements! {
    /// A copy is about to be written, or is asked for again. PK
    KEEP = "INSERT INTO upload_tickets AS t (ticket_hash, project_id, staging_key, created_at, expires_at) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (ticket_hash) DO UPDATE SET expires_at = excluded.expires_at WHERE t.state IS NULL";
}

/// The key of an object that holds the content whole. `name` changes with its bytes.
///
/// # Errors
/// [`StoreError`](crate::StoreError) when the database or the object store refuses.
pub async fn key(
    store: &Store,
    project: ProjectId,
    content: &Content,
    name: &str,
    now: Timestamp,
) -> Result<String> {
    if let Some(key) = content.object() {
        return Ok(key.to_owned());
    }
    // No ticket of a client hashes to it: those are 32 random bytes.
    let hash: [u8; 32] = Sha256::digest(format!("assembled {project} {name}")).into();
    let key = format!("staging/{project}/{}", hex::encode(hash));
    let mut session = store.db().begin().await?;
    session.execute(&KEEP, args![hash, project, &key, now, now.millis() + STAGING_LIFE_MS]).await?;
    session.commit().await?;
    if store.objects().size(&key).await? == Some(content.size()) {
        return Ok(key);
    }
    let mut bytes = content.stream(store, None).await?;
    let mut object = store.objects().writer(&key)?;
    let written = async {
        while let Some(chunk) = bytes.next().await {
            object.write(&chunk?).await?;
        }
        object.finish().await
    }
    .await;
    if let Err(error) = written {
        object.abort().await;
        return Err(error);
    }
    Ok(key)
}
