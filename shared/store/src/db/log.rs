//! The log of SQLite, emptied beside those who write.
//!
//! What is committed goes to a log first and is moved into the file later. By
//! itself SQLite moves it at the end of the commit that makes the log long, and
//! everyone who writes waits for the disk meanwhile. Here it is moved while
//! others write. They are kept waiting only for the rest of a log that has
//! become very long, and until the disk has all of it: it begins anew once
//! nothing of it is left to be moved.

use std::time::Duration;

use sqlx::sqlite::SqliteRow;
use sqlx::{Executor as _, Row as _};

use super::pool::{Connections, Held, Sqlite};
use crate::Result;

/// How long commits are gathered before the log is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Pages that are moved together. Most are written again and again, and go
/// into the file once.
const MANY: i64 = 2_000;
/// Pages of a log that has to begin anew.
const LONG: i64 = 8_192;
/// Pages at which SQLite moves them by itself, should nobody else do it.
pub(super) const LAST_RESORT: &str = "32768";
/// Bytes that a log keeps on the disk when it begins anew.
pub(super) const KEPT: &str = "67108864";

/// How far a log is moved, in pages.
struct Log {
    length: i64,
    moved: i64,
}

/// How the rest of a log is moved that has to begin anew, while nobody writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// As far as those allow it who read: some do so for long, and come to an end at
    /// some time.
    AsFarAsItGoes,
    /// Those who read are waited for: they do so for moments, but one after the other.
    Whole,
}

/// Moves the log whenever it has grown, for as long as the writer is there.
pub(super) fn keep_short(writer: &Connections<Sqlite>, readers: &Connections<Sqlite>, rest: Rest) {
    let mut commits = writer.manager().commits();
    let (writer, readers) = (writer.weak(), readers.weak());
    tokio::spawn(async move {
        while commits.changed().await.is_ok() {
            tokio::time::sleep(LOOK).await;
            let (Some(writer), Some(readers)) = (writer.upgrade(), readers.upgrade()) else { return };
            let _at_work = writer.manager().log.lock().await;
            if writer.is_closed() {
                return;
            }
            if let Err(error) = shorten(&writer, &readers, rest).await {
                tracing::warn!(%error, "the log of the database was not moved into its file");
            }
        }
    });
}

async fn shorten(writer: &Connections<Sqlite>, readers: &Connections<Sqlite>, rest: Rest) -> Result<()> {
    let mut connection = Box::pin(readers.get()).await?;
    let Log { length, moved } = ask(&mut connection, "PRAGMA main.wal_checkpoint(NOOP)").await?;
    if length - moved < MANY && length < LONG {
        return Ok(());
    }
    shift(&mut connection).await?;
    if length < LONG {
        return Ok(());
    }
    // What was committed meanwhile is less, and what is left then has to be waited for.
    shift(&mut connection).await?;
    // Who holds the writer may be about to read.
    drop(connection);
    let mut writer = Box::pin(writer.get()).await?;
    match rest {
        Rest::AsFarAsItGoes => shift(&mut writer).await,
        Rest::Whole => ask(&mut writer, "PRAGMA main.wal_checkpoint(RESTART)").await.map(drop),
    }
}

async fn shift(connection: &mut Held<Sqlite>) -> Result<()> {
    ask(connection, "PRAGMA main.wal_checkpoint(PASSIVE)").await.map(drop)
}

async fn ask(connection: &mut Held<Sqlite>, pragma: &'static str) -> Result<Log> {
    let row = connection.ask().fetch_one(pragma).await;
    let row: SqliteRow = connection.answered(row)?;
    Ok(Log { length: row.try_get(1)?, moved: row.try_get(2)? })
}
