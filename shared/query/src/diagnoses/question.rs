//! What a diagnosis asks: the evidence, the models, and what a patch is checked against.

use std::collections::BTreeMap;

use base64ct::{Base64, Encoding as _};
use callboard_auth::scope::Authorized;
use callboard_domain::diagnosis::{DiagnosisSettings, ModelRole, ModelSettings, patched_files};
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_integrations::model::Picture;
use callboard_store::diagnoses::Subject;
use callboard_store::{projects, runs};

use super::context::{EvidenceContext, cluster_context, execution_context};
use super::packing::{Packed, bytes_of_tokens};
use super::prompt::{context_hash, instructions};
use super::work::Work;
use crate::scm::{self, ClusterRange, SuspectsOf};
use crate::{Result, failures};

/// Screenshots that go along.
const MAX_PICTURES: usize = 2;
/// Bytes of one of them; a larger one stays here.
const MAX_PICTURE_BYTES: u64 = 1_500_000;
/// Media types that both protocols take.
const PICTURE_TYPES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

/// A model that is asked.
pub(super) struct AskedModel {
    pub(super) settings: ModelSettings,
    /// The role whose key it takes.
    pub(super) key_role: ModelRole,
}

impl AskedModel {
    fn from_settings(settings: &DiagnosisSettings, role: ModelRole) -> Option<Self> {
        settings.resolved(role).map(|(settings, key_role)| Self { settings, key_role })
    }
}

/// Models and what they are asked with.
pub(super) struct Question {
    pub(super) model: AskedModel,
    /// The cheap model, which is requested first.
    pub(super) first_pass: Option<AskedModel>,
    pub(super) settings: DiagnosisSettings,
    pub(super) instructions: String,
    pub(super) packed: Packed,
    pub(super) pictures: Vec<Picture>,
    pub(super) hash: [u8; 32],
    /// Stored source files by path: what a patch is checked against.
    sources: BTreeMap<String, String>,
    /// The commit of the run that shows the failure.
    commit: Option<String>,
}

impl Work<'_> {
    /// Collects what the model is asked; `None` without a model.
    pub(super) async fn question(&self, settings: DiagnosisSettings) -> Result<Option<Question>> {
        let Some(model) = AskedModel::from_settings(&settings, ModelRole::Diagnosis) else { return Ok(None) };
        let first_pass = AskedModel::from_settings(&settings, ModelRole::FirstPass);
        let access = Authorized::of_job(self.project);
        let mut context = match self.row.subject {
            Subject::Cluster(cluster) => {
                cluster_context(self.ctx, access, cluster, &self.row.grounds).await?.evidence
            }
            Subject::Execution(execution) => {
                execution_context(self.ctx, access, execution, &self.row.grounds).await?
            }
        };
        self.add_suspects(&mut context, access).await;
        let of_project = projects::get(&mut self.ctx.store.db().read().await?, self.project).await?;
        let of_project = of_project.and_then(|project| project.diagnosis_instructions);
        let instructions = instructions(settings.instructions.as_deref(), of_project.as_deref());
        let tokens = usize::try_from(settings.limits.max_input_tokens).unwrap_or(usize::MAX);
        let packed = context.packed(bytes_of_tokens(tokens))?;
        let pictures = match context.execution.filter(|_| settings.send_screenshots) {
            Some(execution) => self.pictures(access, execution).await,
            None => Vec::new(),
        };
        let mut models: Vec<&str> = Vec::new();
        for asked in [Some(&model), first_pass.as_ref()].into_iter().flatten() {
            let ModelSettings { provider, base_url, model, .. } = &asked.settings;
            models.extend([provider.as_str(), base_url, model]);
        }
        if !pictures.is_empty() {
            models.push("screenshots");
        }
        let hash = context_hash(&packed, &instructions, self.row.note.as_deref(), &models);
        let sources = context.sources.into_iter().collect();
        let run = runs::get(&mut self.ctx.store.db().read().await?, self.project, context.run).await?;
        let commit = run.and_then(|run| run.commit_sha).filter(|commit| scm::is_sha(commit));
        Ok(Some(Question {
            model,
            first_pass,
            settings,
            instructions,
            packed,
            pictures,
            hash,
            sources,
            commit,
        }))
    }

    /// Screenshots of the failure, the newest first. One that cannot be read is left out.
    async fn pictures(&self, project: Authorized<ProjectId>, execution: ExecutionId) -> Vec<Picture> {
        let files = failures::screenshots(self.ctx, project, execution, MAX_PICTURES).await;
        let mut pictures = Vec::new();
        for file in files.unwrap_or_default() {
            let bytes = match failures::screenshot_bytes(self.ctx, project, file.id, MAX_PICTURE_BYTES).await
            {
                Ok(bytes) => bytes.unwrap_or_default(),
                Err(error) => {
                    tracing::debug!(%error, file = file.id, "a screenshot is not sent");
                    continue;
                }
            };
            let kind = infer::get(&bytes).map(|kind| kind.mime_type());
            if let Some(media_type) = PICTURE_TYPES.into_iter().find(|known| kind == Some(*known)) {
                pictures.push(Picture { media_type, base64: Base64::encode_string(&bytes) });
            }
        }
        pictures
    }

    /// Adds the commits before the cluster and what is suspicious among them, where
    /// source control is configured. Without them the rest is as good.
    async fn add_suspects(&self, context: &mut EvidenceContext, project: Authorized<ProjectId>) {
        let Some(cluster) = self.row.subject.cluster().or(context.cluster) else { return };
        let access = scm::Access { secrets: self.access.secrets, client: self.access.client.clone() };
        let wanted = SuspectsOf { cluster, base: self.row.grounds.base_commit.as_deref() };
        let found = scm::suspects(self.ctx, &access, project, wanted, (self.now)()).await;
        if let Ok(ClusterRange::Suspects(found)) = found {
            context.add_suspects(&found);
        }
    }

    /// What a patch is checked against: stored sources, and from the repository the
    /// files that are not stored.
    pub(super) async fn patched_sources(&self, asked: &Question, patch: &str) -> BTreeMap<String, String> {
        let mut sources = asked.sources.clone();
        let Some(commit) = &asked.commit else { return sources };
        let files = patched_files(patch).unwrap_or_default().into_iter().filter_map(|file| file.before);
        let missing: Vec<String> = files.filter(|path| !sources.contains_key(path)).collect();
        if missing.is_empty() {
            return sources;
        }
        let access = scm::Access { secrets: self.access.secrets, client: self.access.client.clone() };
        let project = Authorized::of_job(self.project);
        match scm::texts_at(self.ctx, &access, project, commit, missing, (self.now)()).await {
            Ok(texts) => sources.extend(texts),
            // The check then says that the files are not there.
            Err(error) => tracing::debug!(%error, "a patch is checked without the repository"),
        }
        sources
    }
}
