//! One request to a model: paid for, retried once, shown while it is answered, and abandoned when somebody cancels.

use std::time::{Duration, Instant};

use callboard_domain::diagnosis::{PROMPT_VERSION, PartialAnswer};
use callboard_domain::time::Timestamp;
use callboard_integrations::model::{Draft, ModelError, ModelReply, ModelRequest, Turn};
use callboard_store::diagnoses::{self, Progress};

use super::budget::{self, Outcome};
use super::packing::token_estimate;
use super::question::{AskedModel, Question};
use super::settings;
use super::work::{Ended, Failed, Work};
use crate::Result;

/// How often the job looks whether somebody cancelled, and writes what the model has written.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The longest wait before the one retry of a request.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(20);
/// The wait where the endpoint names none.
const RETRY_WAIT: Duration = Duration::from_secs(2);
/// Tokens that an image is counted as before the endpoint counts them.
const PICTURE_TOKENS: usize = 1_600;

/// What the job is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The model of the first pass is asked.
    FirstPass,
    /// The model is asked.
    Asking,
    /// It is asked for an answer that can be used.
    Repairing,
}

impl Stage {
    const fn as_str(self) -> &'static str {
        match self {
            Self::FirstPass => "first-pass",
            Self::Asking => "asking",
            Self::Repairing => "repairing",
        }
    }

    /// What a request is counted as.
    const fn purpose(self) -> &'static str {
        match self {
            Self::FirstPass => "first-pass",
            Self::Asking | Self::Repairing => "diagnosis",
        }
    }
}

impl Work<'_> {
    /// Stores what the job is at; returns whether the diagnosis still runs.
    pub(super) async fn begin_stage(
        &self,
        asked: &Question,
        model: &AskedModel,
        stage: Stage,
    ) -> Result<bool> {
        let progress = Progress {
            stage: stage.as_str(),
            provider: model.settings.provider.as_str(),
            model: &model.settings.model,
            prompt_version: PROMPT_VERSION,
            context_hash: asked.hash,
        };
        let mut session = self.ctx.store.db().begin().await?;
        let is_running =
            diagnoses::save_progress(&mut session, self.project, self.row.id, &progress, (self.now)())
                .await?;
        session.commit().await?;
        Ok(is_running)
    }

    /// One request that is paid for, and a second one after a passing failure.
    pub(super) async fn ask(
        &mut self,
        asked: &Question,
        model: &AskedModel,
        request: &ModelRequest,
        stage: Stage,
    ) -> Result<std::result::Result<ModelReply, Ended>> {
        if !self.begin_stage(asked, model, stage).await? {
            return Ok(Err(Ended::Cancelled));
        }
        let limits = asked.settings.limits;
        let timeout = Duration::from_secs(u64::try_from(limits.timeout_seconds).unwrap_or(120));
        let client =
            match settings::client(self.access, (&model.settings, model.key_role), timeout, (self.now)()) {
                Ok(client) => client,
                Err(missing) => return Ok(Err(Failed::new("not_configured", missing.to_string()).into())),
            };
        let estimate = estimated_tokens(request);
        let draft = Draft::default();
        let mut wait = None;
        loop {
            if let Some(wait) = wait
                && let Err(ended) = self.unless_ended(&draft, tokio::time::sleep(wait)).await?
            {
                return Ok(Err(ended));
            }
            let budget = (&model.settings, &limits);
            let paid =
                budget::reserve(self.ctx, self.project, budget, stage.purpose(), estimate, (self.now)())
                    .await?;
            let paid = match paid {
                Ok(paid) => paid,
                Err(exceeded) => return Ok(Err(Failed::new("budget_exceeded", exceeded.to_string()).into())),
            };
            let begun = Instant::now();
            let replied = self.unless_ended(&draft, client.ask(request, &draft)).await?;
            let ms = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
            let replied = match replied {
                Ok(replied) => replied,
                Err(ended) => {
                    // What an abandoned request costs is not known: what was reserved stays.
                    paid.settle(self.ctx, Outcome { calls: 1, has_failed: true, ms, ..Outcome::default() })
                        .await?;
                    return Ok(Err(ended));
                }
            };
            self.row.calls += replied.as_ref().map_or(1, |reply| reply.calls);
            match replied {
                Ok(reply) => {
                    let counted = if reply.input_tokens > 0 { reply.input_tokens } else { estimate };
                    let outcome = Outcome {
                        calls: reply.calls,
                        input_tokens: Some(counted),
                        output_tokens: reply.output_tokens,
                        has_failed: false,
                        ms,
                    };
                    paid.settle(self.ctx, outcome).await?;
                    self.row.input_tokens += counted;
                    self.row.output_tokens += reply.output_tokens;
                    return Ok(Ok(reply));
                }
                Err(error) => {
                    // Nothing was read by the model when the endpoint refused or was not reached.
                    let input_tokens = Some(0);
                    let outcome = Outcome { calls: 1, input_tokens, output_tokens: 0, has_failed: true, ms };
                    paid.settle(self.ctx, outcome).await?;
                    match retry_wait(&error, (self.now)()).filter(|_| wait.is_none()) {
                        Some(next) => wait = Some(next),
                        None => return Ok(Err(error.into())),
                    }
                }
            }
        }
    }

    /// Waits for something, unless somebody cancels or the process stops. What the model has written in the meantime is
    /// stored once a second, for everybody who watches.
    async fn unless_ended<T>(
        &self,
        draft: &Draft,
        waited: impl Future<Output = T>,
    ) -> Result<std::result::Result<T, Ended>> {
        let mut waited = std::pin::pin!(waited);
        let mut stored = 0;
        loop {
            tokio::select! {
                done = &mut waited => return Ok(Ok(done)),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if (self.is_stopping)() {
                return Ok(Err(Ended::Interrupted));
            }
            let size = draft.size();
            let is_running = if size == stored {
                let row =
                    diagnoses::get(&mut self.ctx.store.db().read().await?, self.project, self.row.id).await?;
                row.is_some_and(|row| row.status.is_running())
            } else {
                stored = size;
                self.store_draft(&draft.text()).await?
            };
            if !is_running {
                return Ok(Err(Ended::Cancelled));
            }
        }
    }

    /// Stores what can be read of an answer that is being written; returns whether the diagnosis still runs.
    async fn store_draft(&self, written: &str) -> Result<bool> {
        let text = PartialAnswer::from_text(written).text();
        let received = i64::try_from(written.len()).unwrap_or(i64::MAX);
        let mut session = self.ctx.store.db().begin().await?;
        let is_running =
            diagnoses::save_draft(&mut session, self.project, self.row.id, text, received, (self.now)())
                .await?;
        session.commit().await?;
        Ok(is_running)
    }
}

fn estimated_tokens(request: &ModelRequest) -> i64 {
    let length: usize = request
        .turns
        .iter()
        .map(|turn| match turn {
            Turn::User(text) | Turn::Model(text) => text.len(),
        })
        .sum();
    let text = token_estimate(length + request.instructions.len());
    i64::try_from(text + request.pictures.len() * PICTURE_TOKENS).unwrap_or(i64::MAX)
}

/// How long to wait before a request is made again; none where that cannot help
/// soon.
fn retry_wait(error: &ModelError, now: Timestamp) -> Option<Duration> {
    if !error.is_passing() {
        return None;
    }
    let ModelError::RateLimited { until: Some(until), .. } = error else { return Some(RETRY_WAIT) };
    let wait = u64::try_from(until.millis() - now.millis()).unwrap_or(0);
    Some(Duration::from_millis(wait)).filter(|wait| *wait <= MAX_RETRY_WAIT)
}
