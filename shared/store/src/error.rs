//! What can go wrong below the query layer.

/// Result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A failure of the database, the object store, or of what they hold.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The configuration names something this build cannot use.
    #[error("{0}")]
    Configuration(String),
    /// The database refused or did not answer.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// A migration failed, or an applied one was changed afterwards.
    #[error("migration: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// The object store refused or did not answer.
    #[error("storage: {0}")]
    Storage(#[from] object_store::Error),
    /// A row or object does not have the form this build writes.
    #[error("stored data is damaged: {0}")]
    Damaged(&'static str),
    /// Stored content was collected between finding it and referring to it.
    #[error("the content was deleted meanwhile; send it again")]
    ContentGone,
    /// The project was deleted since it was found.
    #[error("the project was deleted meanwhile")]
    ProjectGone,
    /// The run was deleted since it was found.
    #[error("the run was deleted meanwhile")]
    RunGone,
    /// Something has to end first that goes on elsewhere.
    #[error("waits for {0}")]
    Busy(&'static str),
    /// A run is full: the executions of one run are numbered with 20 bits.
    #[error("a run holds at most 1,048,575 executions")]
    RunFull,
    /// Reading what a client sends failed before it was complete.
    #[error("upload: {0}")]
    Upload(#[from] std::io::Error),
}

impl StoreError {
    /// Whether the database ended the transaction in favour of another one:
    /// the same transaction again will do.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        // Deadlock detected, serialization failure.
        let codes = ["40P01", "40001"];
        matches!(self, Self::Database(sqlx::Error::Database(error))
            if error.code().is_some_and(|code| codes.contains(&code.as_ref())))
    }

    /// Whether the database could not write for want of room, because somebody else
    /// wrote for too long, or because its disk or its server is going away: nothing
    /// is wrong with what was asked.
    fn is_out_of_room(&self) -> bool {
        // SQLITE_BUSY, SQLITE_LOCKED, SQLITE_IOERR, SQLITE_FULL and their finer codes, whose low byte they are.
        let on_sqlite =
            |code: &str| code.parse::<i64>().is_ok_and(|code| [5, 6, 10, 13].contains(&(code & 0xff)));
        // Lost connection, no such database, insufficient resources, a lock that was not given in time, operator
        // intervention, of which a statement that took too long is one, system error.
        let on_postgres =
            |code: &str| ["08", "3D", "53", "55P03", "57", "58"].iter().any(|class| code.starts_with(class));
        matches!(self, Self::Database(sqlx::Error::Database(error))
            if error.code().is_some_and(|code| if code.len() == 5 { on_postgres(&code) } else { on_sqlite(&code) }))
    }

    /// Whether nobody knows if what was asked last was done: the connection broke over
    /// it.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Database(sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed))
    }

    /// Whether a unique index refused the row: another transaction wrote the
    /// same key first.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Database(sqlx::Error::Database(error)) if error.is_unique_violation())
    }

    /// Whether trying again later may help: the database or the object store
    /// could not be reached, as opposed to refusing what was asked.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Database(_) if self.is_conflict() || self.is_out_of_room() => true,
            Self::Database(error) => matches!(
                error,
                sqlx::Error::Io(_)
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::WorkerCrashed
            ),
            Self::ContentGone => true,
            Self::Storage(error) => !matches!(
                error,
                object_store::Error::NotFound { .. } | object_store::Error::AlreadyExists { .. }
            ),
            _ => false,
        }
    }

    /// Whether an object is not there, or only behind a symbolic link.
    #[must_use]
    pub const fn is_missing_object(&self) -> bool {
        matches!(self, Self::Storage(object_store::Error::NotFound { .. }))
    }

    /// Whether the object store is the part that failed.
    #[must_use]
    pub fn is_storage(&self) -> bool {
        matches!(self, Self::Storage(_))
    }
}
