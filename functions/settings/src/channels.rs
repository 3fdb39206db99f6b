//! `/api/channels`: where notifications go, and what became of them.

use std::ops::RangeInclusive;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_auth::email_address::judge_address;
use callboard_auth::limits::CONNECTION_TEST;
use callboard_domain::ids::{ChannelId, DeliveryId};
use callboard_domain::notifications::{ChannelKind, DeliveryState};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_platform::mail;
use callboard_query::accounts::refusal::AccountRefusal;
use callboard_query::notifications::{self, Channel, ChannelConfig, ChannelEdit, Delivery, NewChannel};
use callboard_query::{Change, Context};
use http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Done;

const MAX_NAME_CHARS: usize = 80;
const MAX_SECRET_CHARS: usize = 200;
const HOURLY_LIMITS: RangeInclusive<i64> = 1..=1_000;

/// A channel; when it is changed, what is absent stays.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct ChannelBody {
    /// What people call it, 1 to 80 characters.
    #[schema(example = "#releases")]
    name: Option<String>,
    /// `webhook`, `slack`, `teams`, `discord`, `email`, `browser` (notifications in the header of the pages) or
    /// `personal_email` (the confirmed address of one's account). It cannot be changed. Users have the last two only.
    #[schema(rename = "type", example = "slack")]
    kind: Option<String>,
    /// Whether it belongs to the instance, which takes an administrator; otherwise to the caller. Administrators create
    /// channels of the instance unless they say otherwise, except of the types that people have.
    is_global: Option<bool>,
    /// Where to; none for `browser` and `personal_email`.
    config: Option<ChannelConfigBody>,
    /// Whether nothing is sent; `false` also forgets earlier failures.
    paused: Option<bool>,
    /// Messages of one hour, 1 to 1000; 30 unless said. What comes beyond waits until the hour is over and becomes one.
    #[schema(example = 30)]
    hourly_limit: Option<i64>,
}

/// Where a channel sends to. It is stored encrypted and never shown again.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct ChannelConfigBody {
    /// Address that a webhook is sent to.
    url: Option<String>,
    /// Secret that signs what a webhook gets, up to 200 characters; null sends it unsigned. The secret before it signs as
    /// well for 24 hours.
    secret: Option<String>,
    /// Token of a bot that writes to a channel of Slack, with the scope `chat:write`; instead of a webhook.
    bot_token: Option<String>,
    /// Id of that channel of Slack.
    #[schema(example = "C0123456789")]
    channel: Option<String>,
    /// Address of an incoming webhook of Slack, Teams or Discord; it begins with https.
    webhook_url: Option<String>,
    /// Address that mail is sent to: a confirmed one of an account, or one that `SERVICE_MAIL_ALLOW` names.
    address: Option<String>,
}

/// The field of `config` that holds the address of a channel.
fn address_field(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Webhook => "config.url",
        ChannelKind::Email => "config.address",
        _ => "config.webhookUrl",
    }
}

/// What the configuration of a channel says.
#[derive(Default)]
struct ConfigEdit {
    address: Option<String>,
    /// Of webhooks.
    secret: Change<String>,
    /// Of Slack.
    bot_token: Change<String>,
}

/// Reads the configuration of a channel. Only webhooks have a secret, and only Slack has a bot.
async fn config(
    state: &AppState,
    ctx: &Context,
    caller: &Caller,
    fields: &Fields,
    kind: ChannelKind,
) -> Result<ConfigEdit, ApiError> {
    let Some(config) = fields.object("config")?.into_value().filter(|_| !kind.is_personal()) else {
        return Ok(ConfigEdit::default());
    };
    let secret = config.line("secret", MAX_SECRET_CHARS)?;
    if kind != ChannelKind::Webhook && secret.value().is_some() {
        let text = format!("A channel of type {} has no secret; leave config.secret out.", kind.as_str());
        return Err(ApiError::invalid_field("secret", text));
    }
    let bot_token = config
        .change("botToken", BOT_TOKEN, |value| value.as_str().filter(is_bot_token).map(str::to_owned))?;
    let channel = config
        .change("channel", SLACK_CHANNEL, |value| value.as_str().filter(is_slack_channel).map(str::to_owned))?
        .into_value();
    if kind != ChannelKind::Slack && (bot_token.value().is_some() || channel.is_some()) {
        let text = format!("A channel of type {} has no bot; leave config.botToken out.", kind.as_str());
        return Err(ApiError::invalid_field("botToken", text));
    }
    if kind == ChannelKind::Email {
        let address = config.text("address")?.into_value();
        if let Some(address) = &address {
            require_allowed(state, ctx, caller, address).await?;
        }
        return Ok(ConfigEdit { address, secret, bot_token });
    }
    let url = config.address("url", kind.is_chat())?.into_value();
    let url = config.address("webhookUrl", true)?.into_value().or(url);
    Ok(match (channel, url) {
        (Some(_), Some(_)) => {
            let text = "A channel of Slack has a webhook or a bot; send webhookUrl, or botToken and channel.";
            return Err(ApiError::invalid_field("channel", text.to_owned()));
        }
        // A webhook needs no bot any more.
        (None, Some(url)) => ConfigEdit { address: Some(url), secret, bot_token: Change::Clear },
        (channel, None) => ConfigEdit { address: channel, secret, bot_token },
    })
}

const BOT_TOKEN: &str = "a bot token of Slack, which begins with xoxb-";
const SLACK_CHANNEL: &str = "the id of a channel of Slack, such as C0123456789";

fn is_bot_token(text: &&str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.starts_with("xox") && text.len() <= MAX_SECRET_CHARS && text.chars().all(is_part)
}

fn is_slack_channel(text: &&str) -> bool {
    text.starts_with(['C', 'D', 'G'])
        && (2..=30).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// Fails unless notifications may be mailed to an address. Only administrators may choose addresses of other accounts.
async fn require_allowed(
    state: &AppState,
    ctx: &Context,
    caller: &Caller,
    address: &str,
) -> Result<(), ApiError> {
    judge_address(address).map_err(|refused| ApiError::invalid_field("address", refused.to_string()))?;
    let config = state.mail_config().await?;
    if !mail::is_configured(&config) {
        return Err(AccountRefusal::SmtpNotConfigured.into());
    }
    let is_known = match caller.user_id().filter(|_| !caller.is_administrator()) {
        Some(user) => notifications::confirmed_address(ctx, user).await?.as_deref() == Some(address),
        None => notifications::is_confirmed_address(ctx, address).await?,
    };
    if config.mails_to(address) || is_known {
        return Ok(());
    }
    let text = "Notifications are mailed only to confirmed addresses of accounts and to those that SERVICE_MAIL_ALLOW names.";
    Err(ApiError::new(StatusCode::BAD_REQUEST, "address_not_allowed", text))
}

/// Fails unless the account of a person has a confirmed address that mail can be sent to.
async fn require_own_address(state: &AppState, ctx: &Context, caller: &Caller) -> Result<(), ApiError> {
    if !mail::is_configured(&*state.mail_config().await?) {
        return Err(AccountRefusal::SmtpNotConfigured.into());
    }
    let address = match caller.user_id() {
        Some(user) => notifications::confirmed_address(ctx, user).await?,
        None => None,
    };
    if address.is_some() {
        return Ok(());
    }
    let text = "Your account has no confirmed email address; add one on your account page and open the link that is mailed to it.";
    Err(ApiError::new(StatusCode::BAD_REQUEST, "address_not_allowed", text))
}

/// Whether a new channel belongs to the instance.
fn is_global(fields: &Fields, caller: &Caller, kind: ChannelKind) -> Result<bool, ApiError> {
    let is_global = fields.flag("isGlobal")?;
    let refused = |text: &str| Err(ApiError::invalid_field("isGlobal", text.to_owned()));
    match is_global.unwrap_or_else(|| caller.is_administrator() && !kind.is_personal()) {
        true if kind.is_personal() => refused("Channels of this type belong to people; leave isGlobal out."),
        false if caller.user_id().is_none() => refused(
            "While sign-in is off, channels belong to the instance; leave isGlobal out, and choose a type other than browser and personal_email.",
        ),
        is_global => Ok(is_global),
    }
}

/// Channels of the instance and of the caller, oldest first.
#[utoipa::path(get, path = "/api/channels", tag = "settings", operation_id = "list_channels", params(PageRequest),
    responses((status = 200, body = Page<Channel>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Channel>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListChannels, &())?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    Ok(Json(cursors.page(notifications::list(&ctx, &caller, after, page.rows()).await?)?))
}

/// A channel was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelWritten {
    /// Always true.
    success: bool,
    /// The channel now.
    channel: Channel,
}

/// Creates a channel. Of the types that people have once, the present one is returned.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`, `address_not_allowed`; 403 `insufficient_role`; 413 `too_many_items`; 503
/// `secret_key_not_configured`, `smtp_not_configured`.
#[utoipa::path(post, path = "/api/channels", tag = "settings", operation_id = "create_channel", request_body = ChannelBody,
    responses(
        (status = 201, body = ChannelWritten),
        (status = 400, description = "`missing_field`, `invalid_field`, `address_not_allowed`"),
        (status = 413, description = "`too_many_items`: 20 of a person, 100 of the instance"),
        (status = 503, description = "`secret_key_not_configured`: SERVICE_SECRET_KEY is not set; `smtp_not_configured`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    fields.require(&["type"])?;
    let missing = |name: &str| ApiError::missing_fields(&[name]);
    let kind = fields.word("type", ChannelKind::WORDS, ChannelKind::parse)?.ok_or_else(|| missing("type"))?;
    let is_global = is_global(&fields, &caller, kind)?;
    if !kind.is_personal() {
        fields.require(&["name", "config"])?;
    }
    let name = fields.line("name", MAX_NAME_CHARS)?.into_value();
    let name = name.unwrap_or_else(|| notifications::own_name(kind).to_owned());
    let ctx = state.context(&site);
    if kind == ChannelKind::PersonalEmail {
        require_own_address(&state, &ctx, &caller).await?;
    }
    let ConfigEdit { address, secret, bot_token } = config(&state, &ctx, &caller, &fields, kind).await?;
    let (secret, bot_token) = (secret.into_value(), bot_token.into_value());
    let config = match (kind.is_personal(), address) {
        (true, _) => None,
        (false, Some(address)) if kind == ChannelKind::Slack && is_slack_channel(&address.as_str()) => {
            let token = bot_token.ok_or_else(|| missing("config.botToken"))?;
            Some(ChannelConfig { bot_token: Some(token), ..ChannelConfig::from_address(address) })
        }
        (false, Some(address)) => Some(ChannelConfig { secret, ..ChannelConfig::from_address(address) }),
        (false, None) if bot_token.is_some() => return Err(missing("config.channel")),
        (false, None) => return Err(missing(address_field(kind))),
    };
    let hourly_limit = fields.whole("hourlyLimit", HOURLY_LIMITS)?.into_value();
    let new = NewChannel { name: name.trim().to_owned(), kind, config, hourly_limit, is_global };
    let acting = visit.acting(&caller, state.now());
    let channel = notifications::create(&ctx, acting, state.stored_secrets(), new).await?;
    Ok((StatusCode::CREATED, Json(ChannelWritten { success: true, channel })).into_response())
}

/// Changes a channel.
///
/// # Errors
/// 400 `no_fields`, `missing_field`, `invalid_field`, `address_not_allowed`; 404
/// `channel_not_found`; 503 `secret_key_not_configured`, `smtp_not_configured`.
#[utoipa::path(patch, path = "/api/channels/{id}", tag = "settings", operation_id = "edit_channel",
    params(("id" = i64, Path, description = "Channel")), request_body = ChannelBody,
    responses(
        (status = 200, body = ChannelWritten),
        (status = 400, description = "`no_fields`, `missing_field`, `invalid_field`, `address_not_allowed`"),
        (status = 404, description = "`channel_not_found`"),
        (status = 503, description = "`secret_key_not_configured`: SERVICE_SECRET_KEY is not set; `smtp_not_configured`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ChannelId>,
    fields: Fields,
) -> Result<Json<ChannelWritten>, ApiError> {
    fields.require_any(&["name", "config", "paused", "hourlyLimit"])?;
    let ctx = state.context(&site);
    let kind = notifications::channel(&ctx, &caller, id).await?.kind;
    let ConfigEdit { address, secret, bot_token } = config(&state, &ctx, &caller, &fields, kind).await?;
    let wanted = ChannelEdit {
        name: fields.line("name", MAX_NAME_CHARS)?.into_value().map(|name| name.trim().to_owned()),
        address,
        secret,
        bot_token,
        paused: fields.flag("paused")?,
        hourly_limit: fields.whole("hourlyLimit", HOURLY_LIMITS)?.into_value(),
    };
    let acting = visit.acting(&caller, state.now());
    let secrets = state.stored_secrets();
    let channel = notifications::edit(&ctx, acting, secrets, id, wanted).await?;
    Ok(Json(ChannelWritten { success: true, channel }))
}

/// Deletes a channel with its subscriptions and its delivery log.
///
/// # Errors
/// 404 `channel_not_found`.
#[utoipa::path(delete, path = "/api/channels/{id}", tag = "settings", operation_id = "delete_channel",
    params(("id" = i64, Path, description = "Channel")),
    responses((status = 200, body = Done), (status = 404, description = "`channel_not_found`")))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ChannelId>,
) -> Result<Json<Done>, ApiError> {
    notifications::delete(&state.context(&site), visit.acting(&caller, state.now()), id).await?;
    Ok(Done::answer())
}

/// A test message is on its way.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestQueued {
    /// Always true.
    success: bool,
    /// Its delivery, whose state tells whether it arrived.
    #[schema(value_type = i64)]
    delivery_id: DeliveryId,
}

/// Sends a test message to a channel, also to one that is paused.
///
/// # Errors
/// 404 `channel_not_found`; 429 `rate_limited`.
#[utoipa::path(post, path = "/api/channels/{id}/test", tag = "settings", operation_id = "test_channel",
    params(("id" = i64, Path, description = "Channel")),
    responses(
        (status = 202, body = TestQueued),
        (status = 404, description = "`channel_not_found`"),
        (status = 429, description = "`rate_limited`: more than 10 tests a minute")
    ))]
pub(crate) async fn test(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ChannelId>,
) -> Result<Response, ApiError> {
    state.limits().await?.check(CONNECTION_TEST, &caller.credential().into_bytes(), state.now()).await?;
    let acting = visit.acting(&caller, state.now());
    let delivery_id = notifications::send_test(&state.context(&site), acting, id).await?;
    Ok((StatusCode::ACCEPTED, Json(TestQueued { success: true, delivery_id })).into_response())
}

/// Which deliveries a log shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeliveriesParams {
    /// `pending`, `sending`, `sent`, `unknown`, `failed`, `parked` or `skipped`.
    #[param(value_type = Option<String>)]
    state: Option<DeliveryState>,
}

impl FromQuery for DeliveriesParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { state: query.word("state", DeliveryState::WORDS, DeliveryState::parse)? })
    }
}

/// Deliveries to a channel, newest first; they are kept for 30 days.
///
/// # Errors
/// 404 `channel_not_found`.
#[utoipa::path(get, path = "/api/channels/{id}/deliveries", tag = "settings", operation_id = "list_deliveries",
    params(("id" = i64, Path, description = "Channel"), DeliveriesParams, PageRequest),
    responses((status = 200, body = Page<Delivery>), (status = 404, description = "`channel_not_found`")))]
pub(crate) async fn deliveries(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ChannelId>,
    Query(asked): Query<DeliveriesParams>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Delivery>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListDeliveries, &(id, &asked))?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let found = notifications::deliveries(&ctx, &caller, id, asked.state, before, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// A delivery is on its way again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryQueued {
    /// The delivery now.
    delivery: Delivery,
}

/// Sends a delivery again that failed, is parked, or may not have arrived.
///
/// # Errors
/// 404 `delivery_not_found`; 409 `not_pending`.
#[utoipa::path(post, path = "/api/deliveries/{id}/retry", tag = "settings", operation_id = "retry_delivery",
    params(("id" = i64, Path, description = "Delivery")),
    responses(
        (status = 200, body = DeliveryQueued),
        (status = 404, description = "`delivery_not_found`"),
        (status = 409, description = "`not_pending`: it is on its way, or has arrived")
    ))]
pub(crate) async fn retry(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<DeliveryId>,
) -> Result<Json<DeliveryQueued>, ApiError> {
    let acting = visit.acting(&caller, state.now());
    let delivery = notifications::retry(&state.context(&site), acting, id).await?;
    Ok(Json(DeliveryQueued { delivery }))
}
