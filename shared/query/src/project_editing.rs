//! Creating and changing projects, by administrators. What is not named stays;
//! everything is checked before the first row is written. The token of the
//! code host is sealed on its way in, and there is no way out for it.

use std::collections::BTreeSet;

use callboard_auth::scope::Authorized;
use callboard_auth::sealed::StoredSecrets;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, TagId};
use callboard_domain::run_life::Reruns;
use callboard_store::projects::edit::{self, EditableProject, SealedToken};
use callboard_store::{Session, Store, boxed, code_owners, projects, scm_cache, tags};
use serde_json::json;

use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::retention::branches;
use crate::scm::Provider;
use crate::scm::editing::{self, RepositoryEdit, scm_token_place};
use crate::{Change, Context, Entity, QueryError, Result};

/// Tokens sealed anew in one transaction.
const RESEALED_AT_ONCE: i64 = 100;

/// A project to create.
#[derive(Debug, Clone, Default)]
pub struct NewProject {
    /// Unique name.
    pub name: String,
    /// What else is known of it.
    pub edit: ProjectEdit,
}

/// What changes of a project.
#[derive(Debug, Clone, Default)]
pub struct ProjectEdit {
    /// Unique name; it is never cleared.
    pub name: Option<String>,
    /// Name to show.
    pub label: Change<String>,
    /// Free text.
    pub description: Change<String>,
    /// What a diagnosis should know.
    pub diagnosis_instructions: Change<String>,
    /// Default branch.
    pub default_branch: Change<String>,
    /// Patterns of branches that are followed like the default one.
    pub tracked_branches: Change<Vec<String>>,
    /// Address of the repository.
    pub repository_url: Change<String>,
    /// What kind of code host it is at; cleared, its name decides.
    pub repository_provider: Change<Provider>,
    /// Token of the code host, in clear text.
    pub scm_token: Change<String>,
    /// What becomes of re-runs from now on.
    pub reruns: Option<Reruns>,
    /// Exactly these tags.
    pub tags: Change<BTreeSet<TagId>>,
}

impl ProjectEdit {
    /// Applies it to what is stored and tells the names of what it changes.
    fn apply(self, stored: &mut EditableProject, secrets: &StoredSecrets) -> Result<Vec<&'static str>> {
        let before = stored.clone();
        if let Some(name) = self.name {
            stored.name = name;
        }
        stored.label = self.label.applied_to(stored.label.take());
        stored.description = self.description.applied_to(stored.description.take());
        stored.diagnosis_instructions =
            self.diagnosis_instructions.applied_to(stored.diagnosis_instructions.take());
        stored.default_branch = self.default_branch.applied_to(stored.default_branch.take());
        stored.tracked_branches = self
            .tracked_branches
            .applied_to(Some(std::mem::take(&mut stored.tracked_branches)))
            .unwrap_or_default();
        if let Some(reruns) = self.reruns {
            stored.joins_reruns = reruns == Reruns::Join;
        }
        let repository = RepositoryEdit {
            url: self.repository_url,
            provider: self.repository_provider,
            token: self.scm_token,
        };
        editing::apply(repository, stored, secrets)?;
        let named = [
            ("name", before.name != stored.name),
            ("label", before.label != stored.label),
            ("description", before.description != stored.description),
            ("diagnosisInstructions", before.diagnosis_instructions != stored.diagnosis_instructions),
            ("defaultBranch", before.default_branch != stored.default_branch),
            ("trackedBranches", before.tracked_branches != stored.tracked_branches),
            ("repositoryUrl", before.repository_url != stored.repository_url),
            ("repositoryProvider", before.repository_provider != stored.repository_provider),
            ("reruns", before.joins_reruns != stored.joins_reruns),
        ];
        Ok(named.into_iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| name).collect())
    }
}

async fn known_tags(session: &mut Session, wanted: &BTreeSet<TagId>) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let found = tags::get_many(session, wanted.iter().map(|id| id.get()).collect()).await?;
    match wanted.iter().find(|id| !found.iter().any(|tag| tag.id == **id)) {
        Some(unknown) => Err(QueryError::not_found(Entity::Tag, unknown)),
        None => Ok(()),
    }
}

/// Creates a project.
///
/// # Errors
/// [`AdministrationRule::ProjectNameTaken`]; [`QueryError::NotFound`] for a
/// tag; [`QueryError::Secret`] when no token can be kept.
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    new: NewProject,
) -> Result<ProjectId> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    if let Change::Set(wanted) = &new.edit.tags {
        known_tags(&mut session, wanted).await?;
    }
    let id = projects::create(&mut session, &new.name, None, acting.now).await?;
    let id = id.ok_or(AdministrationRule::ProjectNameTaken)?;
    let detail = json!({ "name": new.name });
    let recorded = acting
        .record(&mut session, AuditAction::ProjectCreated, ("project", id.get()), Some(id), detail)
        .await?;
    change(&mut session, acting, secrets, id, new.edit, false).await?;
    session.commit().await?;
    recorded.committed();
    Ok(id)
}

/// Changes a project. Runs of branches that are no longer tracked are kept as
/// before until the grace of a shortened policy is over.
///
/// # Errors
/// As [`create`]; [`QueryError::NotFound`] when it is gone.
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    project: Authorized<ProjectId>,
    wanted: ProjectEdit,
) -> Result<()> {
    let (default_branch, tracked_branches) = (&wanted.default_branch, &wanted.tracked_branches);
    let held = branches::plan(ctx, acting, project, default_branch, tracked_branches).await?;
    let mut session = ctx.store.db().begin().await?;
    if let Change::Set(tags) = &wanted.tags {
        known_tags(&mut session, tags).await?;
    }
    let mut recorded = change(&mut session, acting, secrets, project.get(), wanted, true).await?;
    if let Some(held) = held {
        recorded.push(branches::hold(&mut session, acting, project.get(), held).await?);
    }
    session.commit().await?;
    for entry in recorded {
        entry.committed();
    }
    Ok(())
}

async fn change(
    session: &mut Session,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    project: ProjectId,
    wanted: ProjectEdit,
    is_told: bool,
) -> Result<Vec<callboard_store::audit::Recorded>> {
    let stored = edit::lock(session, project).await?;
    let mut stored = stored.ok_or_else(|| QueryError::not_found(Entity::Project, project))?;
    let tags_wanted = match wanted.tags.clone() {
        Change::Keep => None,
        Change::Clear => Some(BTreeSet::new()),
        Change::Set(tags) => Some(tags),
    };
    let before = stored.clone();
    let mut named = wanted.apply(&mut stored, secrets)?;
    let about_secret = match (&before.scm_token, &stored.scm_token) {
        (Some(_), None) => Some(AuditAction::SecretCleared),
        (before, Some(after)) if before.as_ref() != Some(after) => Some(AuditAction::SecretSet),
        _ => None,
    };
    let reads_another = before.repository_url != stored.repository_url
        || before.repository_provider != stored.repository_provider
        || about_secret.is_some();
    if is_told && reads_another {
        scm_cache::clear(session, project).await?;
    }
    // Who owns a file of one repository owns nothing of another; a job reads the new owners.
    let is_disconnected = before.scm_token.is_some() && stored.scm_token.is_none();
    if before.repository_url != stored.repository_url || is_disconnected {
        code_owners::clear(session, project).await?;
    }
    if !edit::save(session, &stored, acting.now).await? {
        return Err(AdministrationRule::ProjectNameTaken.into());
    }
    if let Some(wanted) = tags_wanted {
        let present = tags::of_projects(session, vec![project.get()]).await?.remove(&project);
        let present: BTreeSet<TagId> = present.unwrap_or_default().iter().map(|tag| tag.id).collect();
        if present != wanted {
            tags::assign(session, project, &wanted).await?;
            named.push("tagIds");
        }
    }
    if is_told && stored.default_branch != before.default_branch {
        callboard_ingest::queue_project(session, project, acting.now).await?;
    }
    let target = ("project", project.get());
    let mut recorded = Vec::new();
    if is_told && !named.is_empty() {
        let detail = json!({ "fields": named });
        recorded
            .push(acting.record(session, AuditAction::ProjectChanged, target, Some(project), detail).await?);
    }
    if let Some(action) = about_secret {
        let detail = json!({ "secret": "scmToken" });
        recorded.push(acting.record(session, action, target, Some(project), detail).await?);
    }
    Ok(recorded)
}

/// The outcome of sealing all stored secrets anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotated {
    /// Secrets that are stored.
    pub secrets: u64,
    /// Of these, sealed anew under the first key.
    pub resealed: u64,
    /// Of these, opened by none of the keys; they stay as they are.
    pub unopened: u64,
}

/// Seals every stored secret under the first key, in batches. Doing it again
/// changes nothing.
///
/// # Errors
/// [`QueryError::Secret`] without a key; [`QueryError::Store`].
#[boxed]
pub async fn rotate_secrets(store: &Store, secrets: &StoredSecrets) -> Result<Rotated> {
    secrets.require_key()?;
    let mut rotated = Rotated::default();
    let mut after = ProjectId(0);
    loop {
        let mut session = store.db().begin().await?;
        let batch = edit::sealed_tokens(&mut session, after, RESEALED_AT_ONCE).await?;
        let Some(last) = batch.last() else { break };
        after = last.project;
        for token in &batch {
            rotate(&mut session, secrets, token, &mut rotated).await?;
        }
        session.commit().await?;
    }
    let others = [
        crate::notifications::rotate(store, secrets).await?,
        crate::diagnoses::rotate(store, secrets).await?,
        crate::mail_settings::rotate(store, secrets).await?,
        crate::scm::shared_token::rotate(store, secrets).await?,
    ];
    for (found, resealed, unopened) in others {
        rotated.secrets += found;
        rotated.resealed += resealed;
        rotated.unopened += unopened;
    }
    Ok(rotated)
}

async fn rotate(
    session: &mut Session,
    secrets: &StoredSecrets,
    token: &SealedToken,
    rotated: &mut Rotated,
) -> Result<()> {
    rotated.secrets += 1;
    match secrets.reseal(&scm_token_place(token.project), &token.sealed) {
        Ok(None) => {}
        Ok(Some(sealed)) => {
            // A token that was set meanwhile is sealed under the first key already.
            if edit::replace_sealed(session, token, &sealed).await? {
                rotated.resealed += 1;
            }
        }
        Err(unusable) => {
            tracing::error!(project = %token.project, %unusable, "a stored secret was not sealed anew");
            rotated.unopened += 1;
        }
    }
    Ok(())
}
