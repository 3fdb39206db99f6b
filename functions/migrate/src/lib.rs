//! Brings the database up to date, as `callboard migrate` does.
//!
//! A deployment invokes this function as a resource of its stack, after the
//! function itself was replaced and before the others are: their previous version
//! works on the new schema. It serves no route, so no client reaches it.

mod stack;

use callboard_http::Clock;
use callboard_platform::config::{Config, ConfigErrors};
use callboard_platform::egress::EgressError;
use callboard_query::QueryError;
use callboard_query::accounts::enabling;
use callboard_store::{Store, StoreError, newest_step};
use serde_json::{Value, json};

use stack::StackRequest;

/// Why the database is not up to date, or the stack could not be notified.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The settings of the function cannot be used.
    #[error("{0}")]
    Configuration(#[from] ConfigErrors),
    /// The database did not let itself be migrated.
    #[error("cannot bring the database up to date: {0}")]
    Store(#[from] StoreError),
    /// The database is migrated and refused what follows.
    #[error("cannot note the deployment in the database: {0}")]
    Deployment(#[from] QueryError),
    /// The stack waits for an answer and got none.
    #[error("cannot answer the stack: {0}")]
    Answer(#[from] EgressError),
    /// The same, because its request is not one.
    #[error("cannot answer the stack: {0}")]
    Request(#[from] http::Error),
}

/// Answers an event: that of a stack, or any other by which somebody asks for the migrations.
///
/// # Errors
/// [`MigrateError`]; a stack hears of a failed migration in its own answer.
pub async fn invoked(event: Value) -> Result<Value, MigrateError> {
    let Some(request) = StackRequest::read(&event) else {
        return Ok(json!({ "status": "migrated", "schema": migrate().await? }));
    };
    if request.is_removal() {
        request.answer(Ok(newest_step())).await?;
        return Ok(json!({ "status": "kept" }));
    }
    let migrated = migrate().await;
    if let Err(error) = &migrated {
        tracing::error!("{error}");
    }
    let status = if migrated.is_ok() { "migrated" } else { "failed" };
    request.answer(migrated).await?;
    // An error would have the platform invoke the function again, when the stack has its answer.
    Ok(json!({ "status": status }))
}

/// Applies what is missing; the newest step.
async fn migrate() -> Result<i64, MigrateError> {
    let config = Config::from_process_env()?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let store = Store::connect(&config.store()).await?;
    store.migrate().await?;
    enabling::deploy(&store, config.auth_enabled, Clock::system().now()).await?;
    store.db().close().await;
    Ok(newest_step())
}
