//! Requests to models, counted by day. Budgets are decided on these rows, under
//! the lock of the settings row, so that two processes never overspend together.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;

use crate::Result;
use crate::db::{Row, Session, args, statements};

statements! {
    /// What a day took. ix: model_usage_by_day
    OF_DAY = "SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT), CAST(COALESCE(SUM(input_tokens + output_tokens), 0) AS BIGINT) FROM model_usage WHERE day = $1";
    /// What a day took of a project. PK
    OF_PROJECT = "SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT), CAST(COALESCE(SUM(input_tokens + output_tokens), 0) AS BIGINT) FROM model_usage \
        WHERE project_id = $1 AND day = $2";
    /// Adds to a day. PK
    ADD = "INSERT INTO model_usage (project_id, day, provider, model, purpose, calls, failed, input_tokens, output_tokens, ms) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (project_id, day, provider, model, purpose) DO UPDATE SET \
        calls = model_usage.calls + excluded.calls, failed = model_usage.failed + excluded.failed, \
        input_tokens = model_usage.input_tokens + excluded.input_tokens, \
        output_tokens = model_usage.output_tokens + excluded.output_tokens, ms = model_usage.ms + excluded.ms";
    /// What the days from one on took, by model. ix: model_usage_by_day
    BY_MODEL = "SELECT provider, model, purpose, CAST(SUM(calls) AS BIGINT), CAST(SUM(failed) AS BIGINT), CAST(SUM(input_tokens) AS BIGINT), \
        CAST(SUM(output_tokens) AS BIGINT), CAST(SUM(ms) AS BIGINT) \
        FROM model_usage WHERE day >= $1 GROUP BY provider, model, purpose ORDER BY provider, model, purpose LIMIT $2";
}

/// Calls and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Requests.
    pub calls: i64,
    /// Tokens in both directions.
    pub tokens: i64,
}

/// What is counted of requests; negative to correct an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests.
    pub calls: i64,
    /// Those without a usable answer.
    pub failed: i64,
    /// Tokens sent.
    pub input_tokens: i64,
    /// Tokens received.
    pub output_tokens: i64,
    /// Time they took, ms.
    pub ms: i64,
}

/// Whose usage it is.
#[derive(Debug, Clone, Copy)]
pub struct UsageKey<'k> {
    /// Project; 0 for tests of the settings.
    pub project: ProjectId,
    /// UTC day.
    pub day: Day,
    /// How the model is spoken to.
    pub provider: &'k str,
    /// Name of the model.
    pub model: &'k str,
    /// What the requests are for.
    pub purpose: &'static str,
}

/// Usage of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelUsage {
    /// How the model is spoken to.
    pub provider: String,
    /// Name of the model.
    pub model: String,
    /// What the requests were for.
    pub purpose: String,
    /// Counters.
    pub usage: Usage,
}

fn spent(row: Option<&Row>) -> Result<Spent> {
    let Some(row) = row else { return Ok(Spent::default()) };
    let mut r = row.reader();
    Ok(Spent { calls: r.int()?, tokens: r.int()? })
}

/// What a day took: over all projects, and of one of them.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_day(session: &mut Session, day: Day, project: ProjectId) -> Result<(Spent, Spent)> {
    let all = session.first(&OF_DAY, args![day.0]).await?;
    let own = session.first(&OF_PROJECT, args![project, day.0]).await?;
    Ok((spent(all.as_ref())?, spent(own.as_ref())?))
}

/// Adds to what a day took.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn add(session: &mut Session, key: UsageKey<'_>, usage: Usage) -> Result<()> {
    let UsageKey { project, day, provider, model, purpose } = key;
    let Usage { calls, failed, input_tokens, output_tokens, ms } = usage;
    let (provider, model) = (provider.to_owned(), model.to_owned());
    let values =
        args![project, day.0, provider, model, purpose, calls, failed, input_tokens, output_tokens, ms];
    session.execute(&ADD, values).await?;
    Ok(())
}

/// What the days from `from` on took, by model and purpose.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn by_model(session: &mut Session, from: Day, limit: i64) -> Result<Vec<ModelUsage>> {
    let rows = session.all(&BY_MODEL, args![from.0, limit]).await?;
    let read = |row: &Row| {
        let mut r = row.reader();
        Ok(ModelUsage {
            provider: r.text()?,
            model: r.text()?,
            purpose: r.text()?,
            usage: Usage {
                calls: r.int()?,
                failed: r.int()?,
                input_tokens: r.int()?,
                output_tokens: r.int()?,
                ms: r.int()?,
            },
        })
    };
    rows.iter().map(read).collect()
}
