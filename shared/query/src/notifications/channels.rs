//! Channels of the installation.

use callboard_auth::sealed::{Place, SecretUnusable, StoredSecrets};
use callboard_domain::account::email_key;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::ChannelId;
use callboard_domain::notifications::{ChannelKind, masked_address};
use callboard_domain::time::Timestamp;
use callboard_store::Session;
use callboard_store::accounts::users;
use callboard_store::boxed;
use callboard_store::notifications::channels::{self, ChannelRow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::page::{Slice, fetch};
use crate::{Change, Context, Entity, QueryError, Result};

/// Channels whose configuration is sealed anew in one transaction.
const RESEALED_AT_ONCE: i64 = 100;

/// Messages a new channel sends in one hour unless somebody says otherwise.
const HOURLY_LIMIT: i64 = 30;

/// What a channel needs in order to send. It is stored sealed and never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelConfig {
    /// Where messages are sent to: a URL, or a mail address.
    pub address: String,
    /// Secret that signs them; webhooks only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A channel.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// Channel id.
    pub id: i64,
    /// What people call it.
    #[schema(example = "#releases")]
    pub name: String,
    /// `webhook`, `slack`, `teams`, `discord` or `email`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "slack")]
    pub kind: ChannelKind,
    /// Whether it belongs to the installation; always true.
    pub is_global: bool,
    /// Host of its address and the last characters of the path, or the domain of a mail address.
    #[schema(example = "hooks.slack.com/…x7Qa")]
    pub target: String,
    /// Whether nothing is sent: after 20 failed deliveries in a row, or because a person paused it.
    pub paused: bool,
    /// What the last failed delivery said; null after one that arrived.
    pub last_error: Option<String>,
    /// Messages of one hour; what comes beyond waits until the hour is over and becomes one message.
    #[schema(example = 30)]
    pub hourly_limit: i64,
    /// Creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl Channel {
    fn from_row(row: ChannelRow) -> Self {
        Self {
            id: row.id.get(),
            name: row.name,
            kind: row.kind,
            is_global: true,
            target: row.target,
            paused: row.paused_at.is_some(),
            last_error: row.last_error,
            hourly_limit: row.hourly_limit,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Changes of a channel; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct ChannelEdit {
    /// What people call it.
    pub name: Option<String>,
    /// Where messages are sent to.
    pub address: Option<String>,
    /// Secret that signs them.
    pub secret: Change<String>,
    /// Whether nothing is sent.
    pub paused: Option<bool>,
    /// Messages of one hour.
    pub hourly_limit: Option<i64>,
}

fn place(id: ChannelId) -> Place {
    Place::new("channels", "config", id)
}

fn sealed(secrets: &StoredSecrets, id: ChannelId, config: &ChannelConfig) -> Result<String> {
    Ok(secrets.seal(&place(id), &json!(config).to_string())?)
}

/// Opens the configuration of a channel.
pub(super) fn opened(secrets: &StoredSecrets, row: &ChannelRow) -> Result<ChannelConfig> {
    let plain = secrets.open(&place(row.id), &row.config)?;
    serde_json::from_str(&plain).map_err(|_| SecretUnusable::UnknownForm.into())
}

/// Whether an active account has proven that a mail address is its own.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn is_confirmed_address(ctx: &Context, address: &str) -> Result<bool> {
    let user = users::by_email(&mut ctx.store.db().read().await?, &email_key(address)).await?;
    Ok(user.is_some_and(|user| {
        user.disabled_at.is_none() && user.email.is_some_and(|email| email.verified_at.is_some())
    }))
}

/// Channels, oldest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(ctx: &Context, after: Option<i64>, limit: usize) -> Result<Slice<Channel, i64>> {
    let mut session = ctx.store.db().read().await?;
    let rows = channels::list(&mut session, after.map(ChannelId), fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row: &ChannelRow| row.id.get()).map(Channel::from_row))
}

/// One channel.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn channel(ctx: &Context, id: ChannelId) -> Result<Channel> {
    let row = channels::get(&mut ctx.store.db().read().await?, id).await?;
    row.map(Channel::from_row).ok_or_else(|| QueryError::not_found(Entity::Channel, id))
}

/// Creates a channel.
///
/// # Errors
/// [`QueryError::Secret`] when no secret can be stored.
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    name: String,
    kind: ChannelKind,
    config: ChannelConfig,
    hourly_limit: Option<i64>,
) -> Result<Channel> {
    secrets.require_key()?;
    let mut session = ctx.store.db().begin().await?;
    let id = channels::new_id(&mut session).await?;
    let row = ChannelRow {
        id,
        name,
        kind,
        config: sealed(secrets, id, &config)?,
        target: masked_address(&config.address),
        failures: 0,
        paused_at: None,
        last_error: None,
        hourly_limit: hourly_limit.unwrap_or(HOURLY_LIMIT),
        created_at: acting.now,
        updated_at: acting.now,
    };
    channels::insert(&mut session, &row).await?;
    record(session, acting, AuditAction::ChannelCreated, &row).await?;
    Ok(Channel::from_row(row))
}

/// Changes a channel.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Secret`] when no secret can be
/// stored or the stored one does not open.
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    id: ChannelId,
    wanted: ChannelEdit,
) -> Result<Channel> {
    let mut session = ctx.store.db().begin().await?;
    let mut row = required(&mut session, id).await?;
    let ChannelEdit { name, address, secret, paused, hourly_limit } = wanted;
    row.name = name.unwrap_or(row.name);
    if address.is_some() || !secret.is_keep() {
        let mut config = opened(secrets, &row)?;
        config.address = address.unwrap_or(config.address);
        config.secret = secret.applied_to(config.secret);
        row.config = sealed(secrets, id, &config)?;
        row.target = masked_address(&config.address);
    }
    match paused {
        Some(true) => row.paused_at = row.paused_at.or(Some(acting.now)),
        Some(false) => (row.paused_at, row.failures) = (None, 0),
        None => {}
    }
    row.hourly_limit = hourly_limit.unwrap_or(row.hourly_limit);
    row.updated_at = acting.now;
    channels::save(&mut session, &row).await?;
    record(session, acting, AuditAction::ChannelChanged, &row).await?;
    Ok(Channel::from_row(row))
}

/// Deletes a channel with its subscriptions and its delivery log.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn delete(ctx: &Context, acting: Acting<'_>, id: ChannelId) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = required(&mut session, id).await?;
    channels::delete(&mut session, id).await?;
    record(session, acting, AuditAction::ChannelDeleted, &row).await
}

/// A channel, locked.
pub(super) async fn required(session: &mut Session, id: ChannelId) -> Result<ChannelRow> {
    channels::lock(session, id).await?.ok_or_else(|| QueryError::not_found(Entity::Channel, id))
}

async fn record(
    mut session: Session,
    acting: Acting<'_>,
    action: AuditAction,
    row: &ChannelRow,
) -> Result<()> {
    let detail = json!({ "name": row.name, "type": row.kind, "target": row.target, "paused": row.paused_at.is_some(), "hourlyLimit": row.hourly_limit });
    let recorded = acting.record(&mut session, action, ("channel", row.id.get()), None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}

/// Seals the configuration of every channel under the first key. Returns how
/// many there are, how many were sealed anew, and how many no key opens.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn rotate(store: &callboard_store::Store, secrets: &StoredSecrets) -> Result<(u64, u64, u64)> {
    let (mut found, mut resealed, mut unopened) = (0, 0, 0);
    let mut after = None;
    loop {
        let mut session = store.db().begin().await?;
        let batch = channels::list(&mut session, after, RESEALED_AT_ONCE).await?;
        let Some(last) = batch.last() else { return Ok((found, resealed, unopened)) };
        after = Some(last.id);
        for row in &batch {
            found += 1;
            match secrets.reseal(&place(row.id), &row.config) {
                Ok(None) => {}
                Ok(Some(anew)) => {
                    resealed += u64::from(channels::reseal(&mut session, row.id, &row.config, &anew).await?);
                }
                Err(error) => {
                    unopened += 1;
                    tracing::error!(channel = %row.id, %error, "a stored secret was not sealed anew");
                }
            }
        }
        session.commit().await?;
    }
}
