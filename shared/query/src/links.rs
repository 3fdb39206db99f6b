//! Links: what a person knows outside that belongs to a run, an execution, a
//! test case or a failure cluster.

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::annotations::{Destination, LinkTarget, destination};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ClusterId, ExecutionId, LinkId, ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::executions;
use callboard_store::ids::Listed;
use callboard_store::jobs::{self, Payload};
use callboard_store::links::{self, LinkRow, NewLink};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::page::{Slice, fetch};
use crate::shapes::UserRef;
use crate::{Change, Context, Entity, QueryError, Result, resolve};

/// A link.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Link id.
    pub id: i64,
    /// `test_run`, `execution`, `test_case` or `failure_cluster`.
    #[schema(example = "test_run")]
    pub entity_type: &'static str,
    /// Id of what it hangs on.
    pub entity_id: i64,
    /// The address.
    #[schema(example = "https://github.com/acme/shop/issues/8")]
    pub url: String,
    /// Where it leads, such as `github-issue`, `jira` or `generic`.
    #[schema(example = "github-issue")]
    pub provider: &'static str,
    /// What it is called there.
    #[schema(example = "#8")]
    pub key: Option<String>,
    /// What a person calls it; else what the address calls itself.
    pub title: Option<String>,
    /// How an issue or request of the project's own repository stands: open, draft, merged or closed; null where that
    /// was not read yet, for other addresses, and where links come with what they hang on.
    pub status_text: Option<String>,
    /// Colour of that, as tags have them.
    pub status_color: Option<String>,
    /// Who made it.
    pub created_by: Option<UserRef>,
    /// When the address was looked at; null before, and where it did not answer.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub unfurled_at: Option<Timestamp>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl Link {
    fn from_row(row: LinkRow) -> Self {
        let created_by = row.created_by.map(|(id, username, name)| UserRef { id: id.get(), username, name });
        Self {
            id: row.id.get(),
            entity_type: row.target.as_str(),
            entity_id: row.entity,
            url: row.url,
            provider: row.provider.as_str(),
            key: row.key,
            title: row.title.or(row.told_title),
            status_text: None,
            status_color: None,
            created_by,
            unfurled_at: row.unfurled_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// What links hang on.
#[derive(Debug, Clone, Copy)]
pub struct Hook {
    /// Its kind.
    pub target: LinkTarget,
    /// Its id.
    pub id: i64,
}

/// The project of what a link hangs on.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::Denied`].
#[boxed]
pub async fn resolve_hook(ctx: &Context, scope: &Scope, hook: Hook) -> Result<Authorized<ProjectId>> {
    match hook.target {
        LinkTarget::Run => resolve::run(ctx, scope, RunId(hook.id)).await,
        LinkTarget::TestCase => resolve::test_case(ctx, scope, TestCaseId(hook.id)).await,
        LinkTarget::Cluster => resolve::cluster(ctx, scope, ClusterId(hook.id)).await,
        LinkTarget::Execution => {
            let id = ExecutionId(hook.id);
            let project = resolve::execution(ctx, scope, id).await?;
            let found = executions::get(&mut ctx.store.db().read().await?, project.get(), id).await?;
            found.map(|_| project).ok_or_else(|| QueryError::not_found(Entity::Execution, id))
        }
    }
}

/// The project of a link.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::Denied`].
#[boxed]
pub async fn resolve_link(ctx: &Context, scope: &Scope, id: LinkId) -> Result<Authorized<ProjectId>> {
    resolve::listed(ctx, scope, Listed::Link, id.get(), Entity::Link, id.get()).await
}

/// Links of something, in the order they were made; the key of a page is the
/// id of its last link.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    hook: Hook,
    after: Option<i64>,
    limit: usize,
) -> Result<Slice<Link, i64>> {
    let mut session = ctx.store.db().read().await?;
    let after = after.unwrap_or_default();
    let rows = links::list(&mut session, project.get(), hook.target, hook.id, after, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row: &LinkRow| row.id.get()).map(Link::from_row))
}

/// Most links that come with what they hang on.
const LINKS_SHOWN: i64 = 50;

/// The first links of something, as its page shows them.
pub(crate) async fn shown(
    session: &mut callboard_store::Session,
    project: ProjectId,
    target: LinkTarget,
    id: i64,
) -> Result<Vec<Link>> {
    let rows = links::list(session, project, target, id, 0, LINKS_SHOWN).await?;
    Ok(rows.into_iter().map(Link::from_row).collect())
}

/// Where an address leads, by its looks.
fn judged(url: &str) -> Destination {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    destination(&host, path.split(['?', '#']).next().unwrap_or_default())
}

/// Creates a link.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    hook: Hook,
    url: String,
    title: Option<String>,
) -> Result<Link> {
    let project = project.get();
    let Destination { provider, key } = judged(&url);
    let created_by = acting.caller.user_id();
    let new = NewLink { target: hook.target, entity: hook.id, url, provider, key, title, created_by };
    let mut session = ctx.store.db().begin().await?;
    let id = links::create(&mut session, project, &new, acting.now).await?;
    let link = required(&mut session, project, id).await?;
    enqueue(&mut session, project, &link, acting.now).await?;
    note(session, acting, AuditAction::LinkCreated, project, &link).await?;
    Ok(Link::from_row(link))
}

/// Changes a link: the address stays when it is `None`.
///
/// # Errors
/// [`QueryError::NotFound`] when it is gone.
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: LinkId,
    url: Option<String>,
    title: Change<String>,
) -> Result<Link> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let mut link = required(&mut session, project, id).await?;
    if let Some(url) = url {
        let Destination { provider, key } = judged(&url);
        if link.url != url {
            (link.told_title, link.unfurled_at) = (None, None);
        }
        (link.url, link.provider, link.key) = (url, provider, key);
        enqueue(&mut session, project, &link, acting.now).await?;
    }
    link.title = title.applied_to(link.title.take());
    link.updated_at = acting.now;
    links::save(&mut session, project, &link).await?;
    note(session, acting, AuditAction::LinkChanged, project, &link).await?;
    Ok(Link::from_row(link))
}

/// A look at the address of a link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unfurl {
    /// Project.
    pub project: ProjectId,
    /// Link.
    pub link: i64,
    /// Its address.
    pub url: String,
}

impl Payload for Unfurl {
    const KIND: &'static str = "unfurl_link";
}

async fn enqueue(
    session: &mut callboard_store::Session,
    project: ProjectId,
    link: &LinkRow,
    now: Timestamp,
) -> Result<()> {
    let job = Unfurl { project, link: link.id.get(), url: link.url.clone() };
    let key = format!("link:{}:unfurl:{}", link.id, now.millis());
    jobs::enqueue(session, &key, Some(project), &job, now).await?;
    Ok(())
}

/// Has the address of a link looked at again.
///
/// # Errors
/// [`QueryError::NotFound`] when it is gone.
pub async fn refresh(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: LinkId,
) -> Result<Link> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let link = required(&mut session, project, id).await?;
    enqueue(&mut session, project, &link, acting.now).await?;
    note(session, acting, AuditAction::LinkChanged, project, &link).await?;
    Ok(Link::from_row(link))
}

/// Notes what the address of a link told. A title that a person gave stays.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn told(ctx: &Context, job: &Unfurl, title: Option<String>, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    links::set_told(&mut session, job.project, LinkId(job.link), &job.url, title, now).await?;
    Ok(session.commit().await?)
}

/// Deletes a link.
///
/// # Errors
/// [`QueryError::NotFound`] when it is gone.
pub async fn delete(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: LinkId,
) -> Result<()> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let link = required(&mut session, project, id).await?;
    links::delete(&mut session, project, id).await?;
    note(session, acting, AuditAction::LinkDeleted, project, &link).await
}

async fn required(session: &mut callboard_store::Session, project: ProjectId, id: LinkId) -> Result<LinkRow> {
    links::get(session, project, id).await?.ok_or_else(|| QueryError::not_found(Entity::Link, id))
}

async fn note(
    mut session: callboard_store::Session,
    acting: Acting<'_>,
    action: AuditAction,
    project: ProjectId,
    link: &LinkRow,
) -> Result<()> {
    let detail = json!({ "entityType": link.target.as_str(), "entityId": link.entity });
    let recorded =
        acting.record(&mut session, action, ("link", link.id.get()), Some(project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
