//! Budgets of a day: what a request may cost is reserved before it is sent, and
//! corrected afterwards. The lock of the settings row makes two processes
//! decide one after the other.

use callboard_domain::diagnosis::{DiagnosisLimits, DiagnosisSettings, ModelSettings};
use callboard_domain::ids::ProjectId;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::model_usage::{self, Spent, Usage, UsageKey};
use callboard_store::settings;

use crate::{Context, Result};

/// A request that is paid for.
#[derive(Debug, Clone)]
pub(super) struct Reserved {
    day: Day,
    project: ProjectId,
    provider: &'static str,
    model: String,
    purpose: &'static str,
    input_tokens: i64,
}

/// Which budget is used up. The text is one sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BudgetExceeded {
    #[error("The budget of {0} requests per day is used up; it is counted anew at 00:00 UTC.")]
    Calls(i64),
    #[error("The budget of {0} tokens per day is used up; it is counted anew at 00:00 UTC.")]
    Tokens(i64),
    #[error("The project's budget of {0} requests per day is used up; it is counted anew at 00:00 UTC.")]
    ProjectCalls(i64),
    #[error("The project's budget of {0} tokens per day is used up; it is counted anew at 00:00 UTC.")]
    ProjectTokens(i64),
}

fn check(
    limits: &DiagnosisLimits,
    tokens: i64,
    all: Spent,
    own: Spent,
) -> std::result::Result<(), BudgetExceeded> {
    if all.calls >= limits.calls_per_day {
        return Err(BudgetExceeded::Calls(limits.calls_per_day));
    }
    if all.tokens + tokens > limits.tokens_per_day {
        return Err(BudgetExceeded::Tokens(limits.tokens_per_day));
    }
    if own.calls >= limits.project_calls_per_day {
        return Err(BudgetExceeded::ProjectCalls(limits.project_calls_per_day));
    }
    if own.tokens + tokens > limits.project_tokens_per_day {
        return Err(BudgetExceeded::ProjectTokens(limits.project_tokens_per_day));
    }
    Ok(())
}

/// Pays for a request of about `input_tokens` tokens.
pub(super) async fn reserve(
    ctx: &Context,
    project: ProjectId,
    (model, limits): (&ModelSettings, &DiagnosisLimits),
    purpose: &'static str,
    input_tokens: i64,
    now: Timestamp,
) -> Result<std::result::Result<Reserved, BudgetExceeded>> {
    let mut session = ctx.store.db().begin().await?;
    settings::lock(&mut session, None, DiagnosisSettings::NAME, now).await?;
    let (all, own) = model_usage::of_day(&mut session, now.day(), project).await?;
    if let Err(exceeded) = check(limits, input_tokens, all, own) {
        return Ok(Err(exceeded));
    }
    let reserved = Reserved {
        day: now.day(),
        project,
        provider: model.provider.as_str(),
        model: model.model.clone(),
        purpose,
        input_tokens,
    };
    let usage = Usage { calls: 1, input_tokens, ..Usage::default() };
    model_usage::add(&mut session, reserved.key(), usage).await?;
    session.commit().await?;
    Ok(Ok(reserved))
}

/// What a request came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    /// Requests it took; 1 when nothing is known.
    pub(super) calls: i64,
    /// Tokens the endpoint counted; `None` keeps what was reserved.
    pub(super) input_tokens: Option<i64>,
    pub(super) output_tokens: i64,
    pub(super) has_failed: bool,
    pub(super) ms: i64,
}

impl Reserved {
    fn key(&self) -> UsageKey<'_> {
        let Self { day, project, provider, model, purpose, .. } = self;
        UsageKey { project: *project, day: *day, provider, model, purpose }
    }

    /// Replaces what was reserved by what it came to.
    pub(super) async fn settle(&self, ctx: &Context, outcome: Outcome) -> Result<()> {
        let usage = Usage {
            calls: outcome.calls.max(1) - 1,
            failed: i64::from(outcome.has_failed),
            input_tokens: outcome.input_tokens.map_or(0, |tokens| tokens - self.input_tokens),
            output_tokens: outcome.output_tokens,
            ms: outcome.ms,
        };
        let mut session = ctx.store.db().begin().await?;
        model_usage::add(&mut session, self.key(), usage).await?;
        Ok(session.commit().await?)
    }
}

/// Counts a test of the settings.
pub(super) async fn count_test(
    ctx: &Context,
    model: &ModelSettings,
    outcome: Outcome,
    now: Timestamp,
) -> Result<()> {
    let key = UsageKey {
        project: ProjectId(0),
        day: now.day(),
        provider: model.provider.as_str(),
        model: &model.model,
        purpose: "test",
    };
    let usage = Usage {
        calls: outcome.calls.max(1),
        failed: i64::from(outcome.has_failed),
        input_tokens: outcome.input_tokens.unwrap_or(0),
        output_tokens: outcome.output_tokens,
        ms: outcome.ms,
    };
    let mut session = ctx.store.db().begin().await?;
    model_usage::add(&mut session, key, usage).await?;
    Ok(session.commit().await?)
}
