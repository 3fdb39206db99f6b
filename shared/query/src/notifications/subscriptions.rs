//! Subscriptions: which events go to which channel.

use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ChannelId, ProjectId, SubscriptionId};
use callboard_domain::notifications::NotificationEvent;
use callboard_domain::time::Timestamp;
use callboard_store::Session;
use callboard_store::boxed;
use callboard_store::notifications::subscriptions::{self, SubscriptionRow};
use callboard_store::projects;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::channels;
use crate::accounts::Acting;
use crate::page::{Slice, fetch};
use crate::{Change, Context, Entity, QueryError, Result};

/// Which branches and environments a subscription is about.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilters {
    /// Only these branches; empty for all.
    pub branches: Vec<String>,
    /// Only these environments; empty for all.
    pub environments: Vec<String>,
    /// Only the default branch of each project.
    pub default_branch_only: bool,
}

/// A subscription.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// Subscription id.
    pub id: i64,
    /// Channel that gets the messages.
    pub channel_id: i64,
    /// Only this project; null for all.
    pub project_id: Option<i64>,
    /// Events.
    #[schema(example = json!(["run.failed.default_branch", "run.recovered"]))]
    pub events: Vec<String>,
    /// Branches and environments.
    pub filters: SubscriptionFilters,
    /// `realtime`: a message follows its event immediately.
    #[schema(example = "realtime")]
    pub mode: &'static str,
    /// Silent until then.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub muted_until: Option<Timestamp>,
    /// Whether it sends anything.
    pub active: bool,
    /// Creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl Subscription {
    fn from_row(row: SubscriptionRow) -> Self {
        Self {
            id: row.id.get(),
            channel_id: row.channel.get(),
            project_id: row.project.map(ProjectId::get),
            events: row.events,
            filters: SubscriptionFilters {
                branches: row.branches,
                environments: row.environments,
                default_branch_only: row.default_branch_only,
            },
            mode: "realtime",
            muted_until: row.muted_until,
            active: row.is_active,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Changes of a subscription; what is `None` or kept stays.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionEdit {
    /// Channel that gets the messages.
    pub channel: Option<ChannelId>,
    /// Only this project; cleared for all.
    pub project: Change<ProjectId>,
    /// Events.
    pub events: Option<Vec<NotificationEvent>>,
    /// Only these branches.
    pub branches: Change<Vec<String>>,
    /// Only these environments.
    pub environments: Change<Vec<String>>,
    /// Only the default branch of each project.
    pub default_branch_only: Option<bool>,
    /// Silent until then.
    pub muted_until: Change<Timestamp>,
    /// Whether it sends anything.
    pub active: Option<bool>,
}

impl SubscriptionEdit {
    async fn apply(self, session: &mut Session, row: &mut SubscriptionRow) -> Result<()> {
        if let Some(channel) = self.channel {
            row.channel = channels::required(session, channel).await?.id;
        }
        if let Some(project) = self.project.value()
            && projects::get(session, *project).await?.is_none()
        {
            return Err(QueryError::not_found(Entity::Project, *project));
        }
        row.project = self.project.applied_to(row.project);
        if let Some(events) = self.events {
            row.events = events.into_iter().map(|event| event.as_str().to_owned()).collect();
        }
        row.branches = self.branches.applied_to(Some(std::mem::take(&mut row.branches))).unwrap_or_default();
        row.environments =
            self.environments.applied_to(Some(std::mem::take(&mut row.environments))).unwrap_or_default();
        row.default_branch_only = self.default_branch_only.unwrap_or(row.default_branch_only);
        row.muted_until = self.muted_until.applied_to(row.muted_until);
        row.is_active = self.active.unwrap_or(row.is_active);
        Ok(())
    }
}

/// Subscriptions, oldest first; with a project, those its events may go to.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn subscriptions(
    ctx: &Context,
    project: Option<ProjectId>,
    after: Option<i64>,
    limit: usize,
) -> Result<Slice<Subscription, i64>> {
    let mut session = ctx.store.db().read().await?;
    let after = after.map(SubscriptionId);
    let rows = subscriptions::list(&mut session, project, after, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row: &SubscriptionRow| row.id.get()).map(Subscription::from_row))
}

/// Creates a subscription for the channel of `wanted`.
///
/// # Errors
/// [`QueryError::NotFound`] for the channel or the project.
pub async fn create_subscription(
    ctx: &Context,
    acting: Acting<'_>,
    channel: ChannelId,
    wanted: SubscriptionEdit,
) -> Result<Subscription> {
    let mut session = ctx.store.db().begin().await?;
    let mut row = SubscriptionRow {
        id: subscriptions::new_id(&mut session).await?,
        channel: channels::required(&mut session, channel).await?.id,
        project: None,
        events: Vec::new(),
        branches: Vec::new(),
        environments: Vec::new(),
        default_branch_only: false,
        muted_until: None,
        is_active: true,
        created_at: acting.now,
        updated_at: acting.now,
    };
    wanted.apply(&mut session, &mut row).await?;
    subscriptions::insert(&mut session, &row).await?;
    record(session, acting, AuditAction::SubscriptionCreated, &row).await?;
    Ok(Subscription::from_row(row))
}

/// Changes a subscription.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn edit_subscription(
    ctx: &Context,
    acting: Acting<'_>,
    id: SubscriptionId,
    wanted: SubscriptionEdit,
) -> Result<Subscription> {
    let mut session = ctx.store.db().begin().await?;
    let mut row = required(&mut session, id).await?;
    wanted.apply(&mut session, &mut row).await?;
    row.updated_at = acting.now;
    subscriptions::save(&mut session, &row).await?;
    record(session, acting, AuditAction::SubscriptionChanged, &row).await?;
    Ok(Subscription::from_row(row))
}

/// Deletes a subscription.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn delete_subscription(ctx: &Context, acting: Acting<'_>, id: SubscriptionId) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = required(&mut session, id).await?;
    subscriptions::delete(&mut session, id).await?;
    record(session, acting, AuditAction::SubscriptionDeleted, &row).await
}

async fn required(session: &mut Session, id: SubscriptionId) -> Result<SubscriptionRow> {
    let row = subscriptions::lock(session, id).await?;
    row.ok_or_else(|| QueryError::not_found(Entity::Subscription, id))
}

async fn record(
    mut session: Session,
    acting: Acting<'_>,
    action: AuditAction,
    row: &SubscriptionRow,
) -> Result<()> {
    let detail = json!({ "channelId": row.channel, "events": row.events });
    let target = ("subscription", row.id.get());
    let recorded = acting.record(&mut session, action, target, row.project, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
