//! Transactions that the database ends in favour of others.

use crate::{QueryError, Result};

/// How often a transaction is tried that gives way to others.
pub const ATTEMPTS: u32 = 5;

/// Runs a transaction, again when the database ends it in favour of another: nothing
/// of it is written then.
///
/// # Errors
/// That of the last attempt.
pub async fn repeated<T, F>(transaction: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut attempt = 1;
    loop {
        match transaction().await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < ATTEMPTS => {
                tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                attempt += 1;
            }
            done => return done,
        }
    }
}
