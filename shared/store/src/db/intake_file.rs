//! The file beside the other in which SQLite keeps what running clients sent.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions};

use super::pool::{Beside, Connections, Sqlite};
use super::{WRITTEN_TEXTS, log};
use crate::Result;

/// What is added to the name of the other file.
const SUFFIX: &str = "-intake";
/// Calls are small, and each transaction writes whole pages.
const PAGE_BYTES: u32 = 4_096;
/// How often it is looked whether its log is gone, and how long there is between.
const LAST_LOOKS: usize = 25;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Connections to the file. Reading needs none: whoever reads the other file sees
/// this one.
#[derive(Debug, Clone)]
pub struct IntakeFile {
    /// The only connection that writes it; it sees the other file.
    pub writer: Connections<Sqlite>,
    /// Moves its log, meanwhile.
    movers: Connections<Sqlite>,
    log: PathBuf,
}

/// Where the file is: beside the other one, which is made if it is not there, by
/// whatever name that is called.
pub(super) fn beside(file: &Path) -> PathBuf {
    // What is wrong with it is told by who opens it as a database.
    let _made = OpenOptions::new().append(true).create(true).open(file);
    let mut name = OsString::from(file.canonicalize().as_deref().unwrap_or(file));
    name.push(SUFFIX);
    name.into()
}

impl IntakeFile {
    /// Makes the file, or tells what is wrong with it. The other one is looked for at
    /// the first use of the writer.
    pub(super) async fn open(options: SqliteConnectOptions, file: &Path, beside: &Path) -> Result<Self> {
        let options = options.filename(beside).page_size(PAGE_BYTES).pragma("cache_size", "-4000");
        let making = options.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        let movers = Connections::new(Sqlite::new(making), 1)?;
        drop(Box::pin(movers.get()).await?);
        let options = options.statement_cache_capacity(WRITTEN_TEXTS);
        let writer = Connections::new(Sqlite::beside(options, Beside::runs(file)?), 1)?;
        // Who writes to runs looks at this file as it is when that begins, without a pause between them.
        log::keep_short(&writer, &movers, log::Rest::Whole);
        let mut log = OsString::from(beside);
        log.push("-wal");
        Ok(Self { writer, movers, log: log.into() })
    }

    /// Closes the file after all that see it. Those that are still in use leave its log
    /// when they close, as they must not write, so that is tried for a moment.
    pub(super) async fn close(&self) {
        for _ in 0..LAST_LOOKS {
            match self.movers.get().await {
                Ok(mover) => mover.close().await,
                Err(_) => break,
            }
            if !self.log.exists() {
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.movers.close().await;
    }
}
