//! The job that makes a diagnosis: collect, pack, pay, ask, read, check, store.
//!
//! It may be run again after a crash: the row says whether it still runs, and a
//! worker that stopped before the answer was stored leaves it to the next one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use callboard_auth::scope::Authorized;
use callboard_domain::diagnosis::{
    DiagnosisSettings, DiagnosisStatus, ModelAnswer, ModelSettings, PROMPT_VERSION, answer_schema,
    check_patch, parse_answer, patched_files,
};
use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_integrations::model::{ModelError, ModelReply, ModelRequest, Turn};
use callboard_store::diagnoses::{self, DiagnosisRow, Progress};
use callboard_store::{projects, runs};

use super::budget::{self, Outcome};
use super::context::{ClusterContext, cluster_context};
use super::packing::{Packed, bytes_of_tokens, token_estimate};
use super::payload::Diagnose;
use super::prompt::{ANSWER_NAME, context_hash, instructions, question};
use super::settings::{self, ModelAccess};
use super::shapes::Details;
use crate::scm::{self, ClusterRange, SuspectsOf};
use crate::{Context, QueryError, Result, events};

/// Workers that may begin one: after that it is not the machine that fails.
const MAX_STARTS: i64 = 5;
/// Tokens of an answer.
const MAX_OUTPUT_TOKENS: u32 = 8_192;
/// How often the job looks whether somebody cancelled.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The longest wait before the one retry of a request.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(20);
/// The wait where the endpoint names none.
const RETRY_WAIT: Duration = Duration::from_secs(2);
/// Characters of a bad answer that go back to the model.
const MAX_RETURNED_CHARS: usize = 20_000;

/// How the job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// The diagnosis has ended, well or not.
    Done,
    /// The process stops; another one goes on.
    Interrupted,
}

/// Why there is no answer: a word and a sentence.
struct Failed {
    code: &'static str,
    error: String,
}

impl Failed {
    fn new(code: &'static str, error: impl Into<String>) -> Self {
        Self { code, error: error.into() }
    }
}

/// Why the work ends without an answer.
enum Ended {
    /// It is stored as failed.
    Failed(Failed),
    /// Somebody cancelled it.
    Cancelled,
    /// The process stops.
    Interrupted,
}

impl From<Failed> for Ended {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

impl From<ModelError> for Ended {
    fn from(error: ModelError) -> Self {
        Self::Failed(Failed::new(error.code(), error.to_string()))
    }
}

/// Makes a diagnosis. `is_stopping` says whether the process is to stop, `now`
/// the time.
///
/// # Errors
/// [`QueryError::Store`]: doing it again may help, unless `is_last`.
pub async fn run(
    ctx: &Context,
    access: &ModelAccess<'_>,
    job: &Diagnose,
    is_last: bool,
    is_stopping: impl Fn() -> bool + Send + Sync,
    now: impl Fn() -> Timestamp + Send + Sync,
) -> Result<JobEnd> {
    let mut session = ctx.store.db().begin().await?;
    let is_running = diagnoses::begin(&mut session, job.project, job.diagnosis, now()).await?;
    let row = diagnoses::get(&mut session, job.project, job.diagnosis).await?;
    session.commit().await?;
    let Some(row) = row.filter(|_| is_running) else { return Ok(JobEnd::Done) };
    let project = job.project;
    let mut work =
        Work { project, ctx, access, row, is_stopping: &is_stopping, now: &now, started: Instant::now() };
    if work.row.starts > MAX_STARTS {
        let error = "The service stopped again and again while the model was asked.";
        work.fail(Failed::new("interrupted", error)).await?;
        return Ok(JobEnd::Done);
    }
    match work.diagnose(job.project).await {
        Ok(Ok(()) | Err(Ended::Cancelled)) => Ok(JobEnd::Done),
        Ok(Err(Ended::Interrupted)) => Ok(JobEnd::Interrupted),
        Ok(Err(Ended::Failed(failed))) => {
            work.fail(failed).await?;
            Ok(JobEnd::Done)
        }
        Err(QueryError::NotFound { .. }) => {
            work.fail(Failed::new("cluster_gone", "The failure cluster was deleted.")).await?;
            Ok(JobEnd::Done)
        }
        Err(error) if is_last => {
            let sentence = "The database or the object store did not answer.";
            work.fail(Failed::new("storage", sentence)).await?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

struct Work<'w> {
    project: ProjectId,
    ctx: &'w Context,
    access: &'w ModelAccess<'w>,
    row: DiagnosisRow,
    is_stopping: &'w (dyn Fn() -> bool + Send + Sync),
    now: &'w (dyn Fn() -> Timestamp + Send + Sync),
    started: Instant,
}

/// A model and what it is asked with.
struct Question {
    model: ModelSettings,
    settings: DiagnosisSettings,
    instructions: String,
    packed: Packed,
    hash: [u8; 32],
    /// Stored source files by path: what a patch is checked against.
    sources: BTreeMap<String, String>,
    /// The commit of the newest run that shows the cluster.
    commit: Option<String>,
}

impl Work<'_> {
    async fn diagnose(&mut self, project: ProjectId) -> Result<std::result::Result<(), Ended>> {
        let settings = settings::read(&mut self.ctx.store.db().read().await?).await?;
        let Some(model) = settings.active_model().cloned() else {
            let error = "Diagnoses were switched off before this one began.";
            return Ok(Err(Failed::new("not_configured", error).into()));
        };
        let question = self.question(project, settings, model).await?;
        if !self.row.is_forced {
            let mut session = self.ctx.store.db().read().await?;
            let known = diagnoses::by_hash(&mut session, project, self.row.cluster, question.hash).await?;
            drop(session);
            if let Some(known) = known {
                self.copy(project, &question, known).await?;
                return Ok(Ok(()));
            }
        }
        let answer = match self.answer(project, &question).await? {
            Ok(answer) => answer,
            Err(ended) => return Ok(Err(ended)),
        };
        self.complete(project, &question, answer).await?;
        Ok(Ok(()))
    }

    async fn question(
        &self,
        project: ProjectId,
        settings: DiagnosisSettings,
        model: ModelSettings,
    ) -> Result<Question> {
        let access = Authorized::of_job(project);
        let mut context = cluster_context(self.ctx, access, self.row.cluster, None, &[]).await?;
        self.add_suspects(&mut context, access).await;
        let of_project = projects::get(&mut self.ctx.store.db().read().await?, project).await?;
        let of_project = of_project.and_then(|project| project.diagnosis_instructions);
        let instructions = instructions(settings.instructions.as_deref(), of_project.as_deref());
        let tokens = usize::try_from(settings.limits.max_input_tokens).unwrap_or(usize::MAX);
        let packed = context.packed(bytes_of_tokens(tokens))?;
        let endpoint = (model.provider.as_str(), model.base_url.as_str(), model.model.as_str());
        let hash = context_hash(&packed, &instructions, self.row.note.as_deref(), endpoint);
        let sources = context.sources.into_iter().collect();
        let run = RunId(context.cluster.item.last_seen_run_id);
        let run = runs::get(&mut self.ctx.store.db().read().await?, project, run).await?;
        let commit = run.and_then(|run| run.commit_sha).filter(|commit| scm::is_sha(commit));
        Ok(Question { model, settings, instructions, packed, hash, sources, commit })
    }

    /// What a patch is checked against: stored sources, and from the repository the
    /// files that are not stored.
    async fn patched_sources(
        &self,
        project: ProjectId,
        asked: &Question,
        patch: &str,
    ) -> BTreeMap<String, String> {
        let mut sources = asked.sources.clone();
        let Some(commit) = &asked.commit else { return sources };
        let files = patched_files(patch).unwrap_or_default().into_iter().filter_map(|file| file.before);
        let missing: Vec<String> = files.filter(|path| !sources.contains_key(path)).collect();
        if missing.is_empty() {
            return sources;
        }
        let access = scm::Access { secrets: self.access.secrets, client: self.access.client.clone() };
        let project = Authorized::of_job(project);
        match scm::texts_at(self.ctx, &access, project, commit, missing, (self.now)()).await {
            Ok(texts) => sources.extend(texts),
            // The check then says that the files are not there.
            Err(error) => tracing::debug!(%error, "a patch is checked without the repository"),
        }
        sources
    }

    /// Adds the commits before the cluster and what is suspicious among them, where
    /// source control is configured. Without them the rest is as good.
    async fn add_suspects(&self, context: &mut ClusterContext, project: Authorized<ProjectId>) {
        let access = scm::Access { secrets: self.access.secrets, client: self.access.client.clone() };
        let wanted = SuspectsOf { cluster: self.row.cluster, base: None };
        let found = scm::suspects(self.ctx, &access, project, wanted, (self.now)()).await;
        if let Ok(ClusterRange::Suspects(found)) = found {
            context.add_suspects(&found);
        }
    }

    /// Asks, and once more when the answer cannot be read.
    async fn answer(
        &mut self,
        project: ProjectId,
        asked: &Question,
    ) -> Result<std::result::Result<ModelAnswer, Ended>> {
        let mut request = ModelRequest {
            instructions: asked.instructions.clone(),
            turns: vec![Turn::User(question(&asked.packed, self.row.note.as_deref()))],
            schema: Some((ANSWER_NAME, answer_schema())),
            max_output_tokens: MAX_OUTPUT_TOKENS,
        };
        let ids = asked.packed.ids();
        for stage in ["asking", "repairing"] {
            let reply = match self.ask(project, asked, &request, stage).await? {
                Ok(reply) => reply,
                Err(ended) => return Ok(Err(ended)),
            };
            match parse_answer(&reply.text, &ids) {
                Ok(answer) => return Ok(Ok(answer)),
                Err(error) if stage == "asking" => {
                    let said = callboard_domain::text::cut(reply.text, MAX_RETURNED_CHARS);
                    request.turns.push(Turn::Model(said));
                    request.turns.push(Turn::User(format!(
                        "This cannot be used: {error}. Answer again, with the JSON object alone."
                    )));
                }
                Err(error) => {
                    let sentence =
                        format!("The model's answer cannot be used, also after a second try: {error}.");
                    return Ok(Err(Failed::new("answer_invalid", sentence).into()));
                }
            }
        }
        Ok(Err(Failed::new("answer_invalid", "The model's answer cannot be used.").into()))
    }

    /// One request that is paid for, and a second one after a passing failure.
    async fn ask(
        &mut self,
        project: ProjectId,
        asked: &Question,
        request: &ModelRequest,
        stage: &'static str,
    ) -> Result<std::result::Result<ModelReply, Ended>> {
        let progress = Progress {
            stage,
            provider: asked.model.provider.as_str(),
            model: &asked.model.model,
            prompt_version: PROMPT_VERSION,
            context_hash: asked.hash,
        };
        let mut session = self.ctx.store.db().begin().await?;
        let is_running =
            diagnoses::save_progress(&mut session, project, self.row.id, &progress, (self.now)()).await?;
        session.commit().await?;
        if !is_running {
            return Ok(Err(Ended::Cancelled));
        }
        let limits = asked.settings.limits;
        let timeout = Duration::from_secs(u64::try_from(limits.timeout_seconds).unwrap_or(120));
        let client = match settings::client(self.access, &asked.model, timeout, (self.now)()) {
            Ok(client) => client,
            Err(missing) => return Ok(Err(Failed::new("not_configured", missing.to_string()).into())),
        };
        let length: usize = request
            .turns
            .iter()
            .map(|turn| match turn {
                Turn::User(text) | Turn::Model(text) => text.len(),
            })
            .sum();
        let estimate = token_estimate(length + request.instructions.len());
        let estimate = i64::try_from(estimate).unwrap_or(i64::MAX);
        let mut wait = None;
        loop {
            if let Some(wait) = wait
                && let Err(ended) = self.unless_ended(project, tokio::time::sleep(wait)).await?
            {
                return Ok(Err(ended));
            }
            let paid =
                budget::reserve(self.ctx, project, (&asked.model, &limits), estimate, (self.now)()).await?;
            let paid = match paid {
                Ok(paid) => paid,
                Err(exceeded) => return Ok(Err(Failed::new("budget_exceeded", exceeded.to_string()).into())),
            };
            let begun = Instant::now();
            let replied = self.unless_ended(project, client.ask(request)).await?;
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

    /// Waits for something, unless somebody cancels or the process stops.
    async fn unless_ended<T>(
        &self,
        project: ProjectId,
        waited: impl Future<Output = T>,
    ) -> Result<std::result::Result<T, Ended>> {
        let mut waited = std::pin::pin!(waited);
        loop {
            tokio::select! {
                done = &mut waited => return Ok(Ok(done)),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if (self.is_stopping)() {
                return Ok(Err(Ended::Interrupted));
            }
            let row = diagnoses::get(&mut self.ctx.store.db().read().await?, project, self.row.id).await?;
            if !row.is_some_and(|row| row.status.is_running()) {
                return Ok(Err(Ended::Cancelled));
            }
        }
    }

    async fn complete(&mut self, project: ProjectId, asked: &Question, answer: ModelAnswer) -> Result<()> {
        let patch = match answer.suggested_fix.as_ref().and_then(|fix| fix.patch.as_deref()) {
            Some(patch) => Some(check_patch(patch, &self.patched_sources(project, asked, patch).await)),
            None => None,
        };
        let row = &mut self.row;
        row.status = DiagnosisStatus::Completed;
        row.category = Some(answer.category.as_str().to_owned());
        row.confidence_score = Some(i64::from(answer.confidence_score));
        row.severity = Some(answer.severity.as_str().to_owned());
        row.summary = Some(answer.summary.clone());
        let details = Details { answer, patch };
        row.details = serde_json::to_string(&details).ok();
        self.finish(project).await
    }

    /// The same evidence was answered before: the answer is taken over, and
    /// nothing is paid.
    async fn copy(&mut self, project: ProjectId, asked: &Question, known: DiagnosisRow) -> Result<()> {
        let progress = Progress {
            stage: "asking",
            provider: asked.model.provider.as_str(),
            model: &asked.model.model,
            prompt_version: PROMPT_VERSION,
            context_hash: asked.hash,
        };
        let mut session = self.ctx.store.db().begin().await?;
        diagnoses::save_progress(&mut session, project, self.row.id, &progress, (self.now)()).await?;
        session.commit().await?;
        let row = &mut self.row;
        row.status = DiagnosisStatus::Completed;
        row.category = known.category;
        row.confidence_score = known.confidence_score;
        row.severity = known.severity;
        row.summary = known.summary;
        row.details = known.details;
        self.finish(project).await
    }

    async fn fail(&mut self, failed: Failed) -> Result<()> {
        let Failed { code, error } = failed;
        tracing::info!(diagnosis = self.row.id.get(), code, error, "a diagnosis failed");
        self.row.status = DiagnosisStatus::Failed;
        self.row.error_code = Some(code.to_owned());
        self.row.error = Some(error);
        let project = self.project;
        self.finish(project).await
    }

    async fn finish(&mut self, project: ProjectId) -> Result<()> {
        self.row.duration_ms = i64::try_from(self.started.elapsed().as_millis()).ok();
        let mut session = self.ctx.store.db().begin().await?;
        let now = (self.now)();
        diagnoses::finish(&mut session, project, &self.row, now).await?;
        if self.row.status == DiagnosisStatus::Completed {
            let event = DomainEvent::DiagnosisCompleted { diagnosis: self.row.id, cluster: self.row.cluster };
            events::emit(&mut session, project, &[event], now).await?;
        }
        Ok(session.commit().await?)
    }
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
