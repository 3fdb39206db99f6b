//! Channels: of the instance, and of people.

use callboard_auth::sealed::{Place, SecretUnusable, StoredSecrets};
use callboard_auth::{Denied, Identity};
use callboard_domain::account::email_key;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ChannelId, UserId};
use callboard_domain::ingest::FieldError;
use callboard_domain::notifications::{ChannelKind, masked_address};
use callboard_domain::time::Timestamp;
use callboard_store::Session;
use callboard_store::accounts::users;
use callboard_store::boxed;
use callboard_store::notifications::channels::{self, ChannelRow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::recipients::may_own;
use crate::accounts::Acting;
use crate::page::{Slice, fetch};
use crate::{Change, Context, Entity, QueryError, Result};

/// Channels whose configuration is sealed anew in one transaction.
const RESEALED_AT_ONCE: i64 = 100;

/// Messages a new channel sends in one hour unless somebody says otherwise.
const HOURLY_LIMIT: i64 = 30;
/// Channels of one person.
const MAX_OF_PERSON: i64 = 20;
/// Channels of the instance.
const MAX_OF_INSTANCE: i64 = 100;
/// How long requests are signed with the former secret as well, ms.
const FORMER_SECRET_MS: i64 = 24 * 60 * 60 * 1000;

/// What a channel needs in order to send. It is stored sealed and never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelConfig {
    /// Where messages are sent to: a URL, a mail address, or the id of a channel of Slack that a bot writes to.
    pub address: String,
    /// Secret that signs them; webhooks only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The secret before it, which signs them as well for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_secret: Option<FormerSecret>,
    /// Token of a bot; Slack only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bot_token: Option<String>,
}

/// A secret that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerSecret {
    /// The secret.
    pub secret: String,
    /// Until when it signs.
    pub until: Timestamp,
}

impl ChannelConfig {
    /// A configuration of an address alone.
    #[must_use]
    pub const fn from_address(address: String) -> Self {
        Self { address, secret: None, former_secret: None, bot_token: None }
    }

    /// The secrets that sign a request, the newest first.
    #[must_use]
    pub fn signing_secrets(&self, now: Timestamp) -> Vec<&str> {
        let former = self.former_secret.as_ref().filter(|former| former.until > now);
        self.secret.as_deref().into_iter().chain(former.map(|former| former.secret.as_str())).collect()
    }

    /// What people are shown of it.
    fn target(&self) -> String {
        if self.bot_token.is_some() {
            format!("channel {}", self.address)
        } else {
            masked_address(&self.address)
        }
    }

    /// Takes another secret; the present one signs as well for a while. Without a new one nothing is signed.
    fn replace_secret(&mut self, secret: Change<String>, now: Timestamp) {
        if secret.is_keep() {
            return;
        }
        let (before, after) = (self.secret.take(), secret.into_value());
        if before == after {
            self.secret = after;
            return;
        }
        let until = Timestamp(now.millis() + FORMER_SECRET_MS);
        self.former_secret = before.filter(|_| after.is_some()).map(|secret| FormerSecret { secret, until });
        self.secret = after;
    }
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
    /// `webhook`, `slack`, `teams`, `discord`, `email`, `browser` or `personal_email`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "slack")]
    pub kind: ChannelKind,
    /// Whether it belongs to the instance; otherwise to the caller.
    pub is_global: bool,
    /// Host of its address and the last characters of the path, the domain of a mail address, or the id of a channel of
    /// Slack. Empty for channels that the caller may not change, and for those without an address.
    #[schema(example = "hooks.slack.com/…x7Qa")]
    pub target: String,
    /// Whether something has arrived at its present address; always for those without an address.
    pub verified: bool,
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
            is_global: row.user.is_none(),
            target: row.target,
            verified: row.verified_at.is_some() || row.kind.is_personal(),
            paused: row.paused_at.is_some(),
            last_error: row.last_error,
            hourly_limit: row.hourly_limit,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }

    /// The channel as somebody sees it who may not change it.
    fn without_address(self) -> Self {
        Self { target: String::new(), last_error: None, ..self }
    }
}

/// A channel that does not exist yet.
#[derive(Debug, Clone)]
pub struct NewChannel {
    /// What people call it.
    pub name: String,
    /// Kind.
    pub kind: ChannelKind,
    /// Where messages are sent to; none for the browser and for one's own address.
    pub config: Option<ChannelConfig>,
    /// Messages of one hour.
    pub hourly_limit: Option<i64>,
    /// Whether it belongs to the instance.
    pub is_global: bool,
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
    /// Token of a bot; cleared by a webhook.
    pub bot_token: Change<String>,
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

/// Fails unless somebody may change a channel or subscription of this owner. Those of other people are not found.
pub(super) fn require_owner(
    caller: &Identity,
    owner: Option<UserId>,
    missing: impl FnOnce() -> QueryError,
) -> Result<()> {
    match owner {
        None if caller.is_administrator() => Ok(()),
        None => Err(Denied::InsufficientRole.into()),
        Some(owner) if caller.user_id() == Some(owner) => Ok(()),
        Some(_) => Err(missing()),
    }
}

/// Whether an active account has proven that a mail address is its own. Without signing in nobody is known to.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn is_confirmed_address(ctx: &Context, address: &str) -> Result<bool> {
    if !ctx.requires_sign_in {
        return Ok(false);
    }
    let user = users::by_email(&mut ctx.store.db().read().await?, &email_key(address)).await?;
    Ok(user.is_some_and(|user| {
        user.disabled_at.is_none() && user.email.is_some_and(|email| email.verified_at.is_some())
    }))
}

/// The confirmed address of an active account.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn confirmed_address(ctx: &Context, user: UserId) -> Result<Option<String>> {
    let user = users::get(&mut ctx.store.db().read().await?, user).await?;
    let user = user.filter(|user| user.disabled_at.is_none());
    let email = user.and_then(|user| user.email).filter(|email| email.verified_at.is_some());
    Ok(email.map(|email| email.address))
}

/// Channels of the instance and of the caller, oldest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    caller: &Identity,
    after: Option<i64>,
    limit: usize,
) -> Result<Slice<Channel, i64>> {
    let mut session = ctx.store.db().read().await?;
    let user = caller.user_id();
    let rows = channels::visible(&mut session, user, after.map(ChannelId), fetch(limit)).await?;
    let may_change = caller.is_administrator();
    Ok(Slice::cut(rows, limit, |row: &ChannelRow| row.id.get()).map(|row| {
        let channel = Channel::from_row(row);
        if channel.is_global && !may_change { channel.without_address() } else { channel }
    }))
}

/// One channel that somebody may change.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Denied`].
#[boxed]
pub async fn channel(ctx: &Context, caller: &Identity, id: ChannelId) -> Result<Channel> {
    let missing = || QueryError::not_found(Entity::Channel, id);
    let row = channels::get(&mut ctx.store.db().read().await?, id).await?.ok_or_else(missing)?;
    require_owner(caller, row.user, missing)?;
    Ok(Channel::from_row(row))
}

/// Creates a channel. Of the kinds that a person has once, the present one is returned.
///
/// # Errors
/// [`QueryError::Secret`] when no secret can be stored; [`QueryError::Denied`]; [`QueryError::TooMany`].
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    new: NewChannel,
) -> Result<Channel> {
    acting.reaches_everything()?;
    let owner = if new.is_global { None } else { acting.caller.user_id() };
    require_owner(acting.caller, owner, || Denied::InsufficientRole.into())?;
    if owner.is_some() && !acting.caller.role().is_some_and(|role| may_own(role, new.kind)) {
        return Err(Denied::InsufficientRole.into());
    }
    if new.config.is_some() {
        secrets.require_key()?;
    }
    let mut session = ctx.store.db().begin().await?;
    if let Some(user) = owner.filter(|_| new.kind.is_personal())
        && let Some(own) = channels::own(&mut session, user, new.kind).await?
    {
        return Ok(Channel::from_row(own));
    }
    let most = if owner.is_some() { MAX_OF_PERSON } else { MAX_OF_INSTANCE };
    if !new.kind.is_personal() && channels::count(&mut session, owner, most).await? >= most {
        let what = if owner.is_some() { "Your list of channels" } else { "The list of channels" };
        return Err(QueryError::TooMany { what, limit: usize::try_from(most).unwrap_or_default() });
    }
    let id = channels::new_id(&mut session).await?;
    let config = new.config.as_ref().map(|config| sealed(secrets, id, config)).transpose()?;
    let row = ChannelRow {
        id,
        name: new.name,
        kind: new.kind,
        config: config.unwrap_or_default(),
        target: new.config.map(|config| config.target()).unwrap_or_default(),
        failures: 0,
        paused_at: None,
        last_error: None,
        hourly_limit: new.hourly_limit.unwrap_or(HOURLY_LIMIT),
        user: owner,
        created_by: acting.caller.user_id(),
        verified_at: None,
        created_at: acting.now,
        updated_at: acting.now,
    };
    channels::insert(&mut session, &row).await?;
    record(session, acting, AuditAction::ChannelCreated, &row).await?;
    Ok(Channel::from_row(row))
}

/// The channel of a kind that a person has once; made when it is missing.
pub(super) async fn own_channel(
    session: &mut Session,
    user: UserId,
    kind: ChannelKind,
    now: Timestamp,
) -> Result<ChannelRow> {
    if let Some(row) = channels::own(session, user, kind).await? {
        return Ok(row);
    }
    let row = ChannelRow {
        id: channels::new_id(session).await?,
        name: own_name(kind).to_owned(),
        kind,
        config: String::new(),
        target: String::new(),
        failures: 0,
        paused_at: None,
        last_error: None,
        hourly_limit: HOURLY_LIMIT,
        user: Some(user),
        created_by: Some(user),
        verified_at: None,
        created_at: now,
        updated_at: now,
    };
    if channels::insert(session, &row).await? {
        return Ok(row);
    }
    // Another request was faster.
    let row = channels::own(session, user, kind).await?;
    Ok(row.ok_or(callboard_store::StoreError::Damaged("the channel of a person"))?)
}

/// What the channels are called that a person has once.
#[must_use]
pub const fn own_name(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Browser => "In the browser",
        _ => "My email address",
    }
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
    let mut row = owned(&mut session, acting, id).await?;
    let ChannelEdit { name, address, secret, bot_token, paused, hourly_limit } = wanted;
    row.name = name.unwrap_or(row.name);
    let is_configured = address.is_some() || !secret.is_keep() || !bot_token.is_keep();
    if !row.kind.is_personal() && is_configured {
        let mut config = opened(secrets, &row)?;
        if address.as_ref().is_some_and(|address| *address != config.address) {
            row.verified_at = None;
        }
        config.address = address.unwrap_or(config.address);
        config.replace_secret(secret, acting.now);
        config.bot_token = bot_token.applied_to(config.bot_token);
        // A bot writes to a channel, and a webhook is an address: one without the other sends nothing.
        if row.kind == ChannelKind::Slack && config.bot_token.is_some() == config.address.contains("://") {
            let field = if config.bot_token.is_some() { "channel" } else { "botToken" };
            return Err(FieldError::Missing { fields: vec![field] }.into());
        }
        row.config = sealed(secrets, id, &config)?;
        row.target = config.target();
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
    let row = owned(&mut session, acting, id).await?;
    channels::delete(&mut session, id).await?;
    record(session, acting, AuditAction::ChannelDeleted, &row).await
}

/// A channel that somebody may change, locked.
pub(super) async fn owned(session: &mut Session, acting: Acting<'_>, id: ChannelId) -> Result<ChannelRow> {
    let row = required(session, id).await?;
    acting.reaches_everything()?;
    require_owner(acting.caller, row.user, || QueryError::not_found(Entity::Channel, id))?;
    Ok(row)
}

/// A channel, locked.
async fn required(session: &mut Session, id: ChannelId) -> Result<ChannelRow> {
    channels::lock(session, id).await?.ok_or_else(|| QueryError::not_found(Entity::Channel, id))
}

async fn record(
    mut session: Session,
    acting: Acting<'_>,
    action: AuditAction,
    row: &ChannelRow,
) -> Result<()> {
    let detail = json!({ "name": row.name, "type": row.kind, "target": row.target, "paused": row.paused_at.is_some(), "hourlyLimit": row.hourly_limit, "isGlobal": row.user.is_none() });
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
        for row in batch.iter().filter(|row| !row.config.is_empty()) {
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
