//! What is set for a project; for administrators.

use askama::Template;
use axum::response::Response;
use callboard_auth::Denied;
use callboard_domain::ids::ProjectId;
use callboard_http::{ApiError, AppState};
use callboard_query::histories::{self, JoinState, JoinedHistory};
use callboard_query::scm::{self, Provider};
use callboard_query::shapes::Project;
use callboard_query::{gates, retention, storage, storage_quota, tags};

use super::Head;
use crate::components::{ChoiceRow, DeletionChoice, GatePolicies, RetentionForm, RetentionPending};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{OFFERED, Visit, answer};

/// Tags one can choose from.
const TAGS: usize = 200;

/// Pairs of paths that are shown, of those to decide about and of the others.
const HISTORIES: usize = 50;

/// Inputs of `pages/project_settings.html`.
#[derive(Template)]
#[template(path = "pages/project_settings.html")]
struct SettingsTab {
    shell: Shell,
    head: Head,
    tracked_branches: String,
    /// Branches to choose from, newest first.
    branches: Vec<String>,
    /// Whether no run of the default branch is known: a name with a slip of the pen looks like this.
    is_default_unseen: bool,
    tags: Vec<ChoiceRow>,
    /// Kinds of code hosts, with the one that an administrator chose.
    providers: Vec<ProviderOption>,
    /// Whether a token can be kept at all.
    keeps_secrets: bool,
    /// Whether there is a token for the repository: its own, or the shared one.
    has_token: bool,
    gates: GatePolicies,
    retention: RetentionForm,
    /// A change of its own policy that is not in force yet.
    pending_retention: Option<RetentionPending>,
    /// Branches that are no longer tracked and still kept as before.
    pending_branches: Option<RetentionPending>,
    /// Whether the policy of the installation changes soon.
    is_instance_pending: bool,
    /// Tests that may be the same under two paths: proposed, or split before.
    separate_histories: Vec<JoinedHistory>,
    /// Tests that are.
    joined_histories: Vec<JoinedHistory>,
    choice: DeletionChoice,
    /// What the project stores.
    bytes: i64,
    /// Its quota, bytes.
    quota: Option<i64>,
}

/// A kind of code host to choose.
struct ProviderOption {
    word: &'static str,
    label: &'static str,
    is_chosen: bool,
}

impl ProviderOption {
    /// All of them. What the address tells by itself counts as not chosen.
    fn all(project: &Project) -> Vec<Self> {
        let host = project.repository_url.as_deref().and_then(host_of);
        let told = host.as_deref().and_then(Provider::guess);
        let chosen = project.repository_provider.as_deref().and_then(Provider::parse);
        let chosen = chosen.filter(|chosen| Some(*chosen) != told);
        let option = |provider: Provider| Self {
            word: provider.as_str(),
            label: if provider == Provider::Bitbucket { "Bitbucket Cloud" } else { provider.label() },
            is_chosen: chosen == Some(provider),
        };
        Provider::ALL.map(option).into()
    }
}

fn host_of(address: &str) -> Option<String> {
    address.parse::<http::Uri>().ok()?.host().map(str::to_owned)
}

/// The settings of a project.
pub(super) async fn tab(
    state: &AppState,
    visit: &Visit,
    head: Head,
    shell: Shell,
) -> Result<Response, ApiError> {
    if !visit.caller.is_administrator() {
        return Err(Denied::InsufficientRole.into());
    }
    let carried = |id: i64| head.project.tags.iter().any(|tag| tag.id == id);
    let mut known = tags::list(&visit.ctx, None, None, TAGS).await?.items;
    // What the form does not hold would be taken from the project when it is saved.
    let are_beyond = head.project.tags.iter().filter(|tag| known.iter().all(|each| each.id != tag.id));
    let beyond: Vec<_> = are_beyond.cloned().collect();
    known.extend(beyond);
    let known = known.into_iter().map(|tag| ChoiceRow {
        is_chosen: carried(tag.id),
        id: tag.id,
        name: tag.text,
        second: None,
    });
    let project = visit.scope().authorize(ProjectId(head.project.reference.id))?;
    let facets = visit.places(project).await?;
    let branches: Vec<String> = facets.branches.into_iter().map(|branch| branch.name).collect();
    let default = head.project.default_branch.as_ref().filter(|name| !name.is_empty());
    let is_default_unseen = default.is_some_and(|name| branches.len() < OFFERED && !branches.contains(name));
    let own = retention::of_project(&visit.ctx, project).await?;
    let everywhere = retention::of_instance(&visit.ctx).await?;
    let undo = format!("DELETE /api/projects/{}/retention/pending", project.get().get());
    let stored = storage::of_project(&visit.ctx, project, 1, visit.now).await?;
    let policies = gates::policies(&visit.ctx, project).await?;
    let joined = [JoinState::Joining, JoinState::Joined];
    let joined = histories::list(&visit.ctx, project, &joined, None, HISTORIES).await?;
    let separate = [JoinState::Proposed, JoinState::Undone];
    let separate = histories::list(&visit.ctx, project, &separate, None, HISTORIES).await?;
    let origin = visit.site.origin().to_string();
    answer(&SettingsTab {
        gates: GatePolicies::of_project(project.get().get(), policies, origin),
        retention: RetentionForm::of_project(project.get().get(), &own.wanted, &everywhere.settings),
        pending_branches: own.pending_branches.map(|change| RetentionPending::of_branches(change, visit.now)),
        pending_retention: own.pending.map(|change| RetentionPending::undoable(change, undo, visit.now)),
        is_instance_pending: everywhere.pending.is_some() || everywhere.pending_environment.is_some(),
        separate_histories: separate.items,
        joined_histories: joined.items,
        choice: DeletionChoice::new(visit),
        bytes: stored.totals.bytes,
        quota: storage_quota::of_project(&visit.ctx, project).await?.quota_bytes,
        tags: known.collect(),
        branches,
        is_default_unseen,
        tracked_branches: head.project.tracked_branches.join("\n"),
        providers: ProviderOption::all(&head.project),
        keeps_secrets: !state.config().secret_keys.is_empty(),
        has_token: scm::has_repository(&visit.ctx, project).await?,
        shell,
        head,
    })
}
