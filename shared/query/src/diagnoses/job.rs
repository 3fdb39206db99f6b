//! The job that makes a diagnosis: collect, pack, pay, ask, read, check, store.
//!
//! It may be run again after a crash: the row says whether it still runs, and a
//! worker that stopped before the answer was stored leaves it to the next one.

use std::time::Instant;

use callboard_domain::diagnosis::{
    Category, DiagnosisStatus, ModelAnswer, answer_schema, check_patch, parse_answer,
};
use callboard_domain::events::DomainEvent;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_integrations::model::{ModelRequest, Turn};
use callboard_store::diagnoses::{self, DiagnosisRow};

use super::asking::Stage;
use super::payload::Diagnose;
use super::prompt::{ANSWER_NAME, question};
use super::question::Question;
use super::settings::{self, ModelAccess};
use super::shapes::Details;
use super::work::{Ended, Failed, Work};
use crate::{Context, QueryError, Result, events};

/// Workers that may begin one: after that it is not the machine that fails.
const MAX_STARTS: i64 = 5;
/// Tokens of an answer.
const MAX_OUTPUT_TOKENS: u32 = 8_192;
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

impl Work<'_> {
    async fn diagnose(&mut self, project: ProjectId) -> Result<std::result::Result<(), Ended>> {
        let settings = settings::read(&mut self.ctx.store.db().read().await?).await?;
        if settings.active_model().is_none() {
            let error = "Diagnoses were switched off before this one began.";
            return Ok(Err(Failed::new("not_configured", error).into()));
        }
        let Some(question) = self.question(settings).await? else {
            return Ok(Err(Failed::new("not_configured", "No model is configured.").into()));
        };
        if !self.row.is_forced {
            let mut session = self.ctx.store.db().read().await?;
            let known = diagnoses::by_hash(&mut session, project, self.row.subject, question.hash).await?;
            drop(session);
            if let Some(known) = known {
                self.copy(&question, known).await?;
                return Ok(Ok(()));
            }
        }
        let answer = match self.first_answer(&question).await? {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => self.answer(&question).await?,
            Err(ended) => Err(ended),
        };
        match answer {
            Ok(answer) => self.complete(&question, answer).await.map(Ok),
            Err(ended) => Ok(Err(ended)),
        }
    }

    /// The answer of the model that is asked first, when there is one and it is sure enough. A person who asks again
    /// wants the other model.
    async fn first_answer(
        &mut self,
        asked: &Question,
    ) -> Result<std::result::Result<Option<ModelAnswer>, Ended>> {
        let Some(model) = asked.first_pass.as_ref().filter(|_| !self.row.is_forced) else {
            return Ok(Ok(None));
        };
        let request = request(asked, self.row.note.as_deref());
        let reply = match self.ask(asked, model, &request, Stage::FirstPass).await? {
            Ok(reply) => reply,
            Err(Ended::Failed(Failed { code, error })) => {
                tracing::info!(
                    diagnosis = self.row.id.get(),
                    code,
                    error,
                    "the first pass brought no answer"
                );
                return Ok(Ok(None));
            }
            Err(ended) => return Ok(Err(ended)),
        };
        let least = asked.settings.limits.first_pass_confidence;
        let is_sure = |answer: &ModelAnswer| {
            answer.category != Category::Unknown && i64::from(answer.confidence_score) >= least
        };
        Ok(Ok(parse_answer(&reply.text, &asked.packed.ids()).ok().filter(is_sure)))
    }

    /// Asks, and once more when the answer cannot be read.
    async fn answer(&mut self, asked: &Question) -> Result<std::result::Result<ModelAnswer, Ended>> {
        let mut request = request(asked, self.row.note.as_deref());
        let ids = asked.packed.ids();
        for stage in [Stage::Asking, Stage::Repairing] {
            let reply = match self.ask(asked, &asked.model, &request, stage).await? {
                Ok(reply) => reply,
                Err(ended) => return Ok(Err(ended)),
            };
            match parse_answer(&reply.text, &ids) {
                Ok(answer) => return Ok(Ok(answer)),
                Err(error) if stage == Stage::Asking => {
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

    async fn complete(&mut self, asked: &Question, answer: ModelAnswer) -> Result<()> {
        let patch = match answer.suggested_fix.as_ref().and_then(|fix| fix.patch.as_deref()) {
            Some(patch) => Some(check_patch(patch, &self.patched_sources(asked, patch).await)),
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
        self.finish().await
    }

    /// The same evidence was answered before: the answer is taken over, and
    /// nothing is paid.
    async fn copy(&mut self, asked: &Question, known: DiagnosisRow) -> Result<()> {
        let model = match (&asked.first_pass, &known.model) {
            (Some(first), Some(name)) if *name == first.settings.model => first,
            _ => &asked.model,
        };
        self.begin_stage(asked, model, Stage::Asking).await?;
        let row = &mut self.row;
        row.status = DiagnosisStatus::Completed;
        row.category = known.category;
        row.confidence_score = known.confidence_score;
        row.severity = known.severity;
        row.summary = known.summary;
        row.details = known.details;
        self.finish().await
    }

    async fn fail(&mut self, failed: Failed) -> Result<()> {
        let Failed { code, error } = failed;
        tracing::info!(diagnosis = self.row.id.get(), code, error, "a diagnosis failed");
        self.row.status = DiagnosisStatus::Failed;
        self.row.error_code = Some(code.to_owned());
        self.row.error = Some(error);
        self.finish().await
    }

    async fn finish(&mut self) -> Result<()> {
        self.row.duration_ms = i64::try_from(self.started.elapsed().as_millis()).ok();
        let mut session = self.ctx.store.db().begin().await?;
        let now = (self.now)();
        let has_ended = diagnoses::finish(&mut session, self.project, &self.row, now).await?;
        // Who requests a diagnosis of one execution watches it; a cluster concerns everybody.
        if let Some(cluster) = self.row.subject.cluster()
            && has_ended
            && self.row.status == DiagnosisStatus::Completed
        {
            let event = DomainEvent::DiagnosisCompleted { diagnosis: self.row.id, cluster };
            events::emit(&mut session, self.project, &[event], now).await?;
        }
        Ok(session.commit().await?)
    }
}

/// What a model is asked.
fn request(asked: &Question, note: Option<&str>) -> ModelRequest {
    ModelRequest {
        instructions: asked.instructions.clone(),
        turns: vec![Turn::User(question(&asked.packed, note, !asked.pictures.is_empty()))],
        pictures: asked.pictures.clone(),
        schema: Some((ANSWER_NAME, answer_schema())),
        max_output_tokens: MAX_OUTPUT_TOKENS,
    }
}
