//! `/api/settings/smtp`: the mail server.

use axum::Json;
use axum::extract::State;
use callboard_auth::email_address::judge_address;
use callboard_auth::limits::CONNECTION_TEST;
use callboard_domain::smtp::SmtpSecurity;
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Caller, Fields};
use callboard_http::{ApiError, AppState};
use callboard_platform::config::{MailServer, SMTP_URL};
use callboard_platform::mail;
use callboard_query::accounts::refusal::AccountRefusal;
use callboard_query::administration::AdministrationRule;
use callboard_query::mail_settings::{self, MailEdit, StoredMail};
use callboard_query::notifications;
use callboard_query::shapes::UserRef;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Written;
use crate::desk::Desk;
use crate::retention::LockedKey;

const KEYS: [&str; 6] = ["host", "port", "security", "user", "password", "from"];
const MAX_HOST_CHARS: usize = 253;
const MAX_TEXT_CHARS: usize = 320;
const MAX_PASSWORD_CHARS: usize = 1_000;

/// The mail server. Absent keys stay as they are, null takes back what was set.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct SmtpBody {
    /// Host of the mail server. One in a private network must be named in `SERVICE_EGRESS_ALLOW`.
    #[schema(example = "mail.example.org")]
    host: Option<String>,
    /// Port; 465, 587 or 25 by the encryption when it is not set.
    #[schema(minimum = 1, maximum = 65535)]
    port: Option<i64>,
    /// `tls` (from the start, the default), `starttls` or `none`.
    security: Option<String>,
    /// Name to sign in with.
    user: Option<String>,
    /// Password. It is sealed, sent to `host` only, and never shown again.
    #[schema(format = Password)]
    password: Option<String>,
    /// Sender of mails.
    #[schema(example = "Callboard <tests@example.org>")]
    from: Option<String>,
}

/// The mail server that is used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SmtpShown {
    /// Host.
    host: Option<String>,
    /// Port.
    port: Option<u16>,
    /// `tls`, `starttls` or `none`.
    #[schema(value_type = Option<String>)]
    security: Option<SmtpSecurity>,
    /// Name to sign in with.
    user: Option<String>,
    /// Sender of mails.
    from: Option<String>,
    /// Whether a password is stored.
    has_password: bool,
    /// Whether mail can be sent: there is a server, a sender, and the public address (`SERVICE_SITE_URL`).
    configured: bool,
}

/// The mail server, and what of it the environment sets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SmtpAnswer {
    /// What holds.
    settings: SmtpShown,
    /// Keys that cannot be set here.
    locked: Vec<LockedKey>,
    /// When it was set last.
    #[schema(value_type = Option<String>, format = DateTime)]
    updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    updated_by: Option<UserRef>,
}

async fn shown(state: &AppState, desk: &Desk) -> Result<SmtpAnswer, ApiError> {
    let StoredMail { settings, updated_at, updated_by } = mail_settings::stored(&desk.ctx).await?;
    let configured = mail::is_configured(&*state.mail_config().await?);
    let environment = state.config().mail.as_ref();
    let shown = match environment {
        Some(mail) => {
            let url = match &mail.server {
                MailServer::Url(url) => url::Url::parse(url.expose()).ok(),
                MailServer::Set(_) => None,
            };
            let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let security = url.as_ref().map(|url| {
                let is_starttls = url.query_pairs().any(|(name, _)| name == "tls");
                match url.scheme() {
                    "smtps" => SmtpSecurity::Tls,
                    _ if is_starttls => SmtpSecurity::StartTls,
                    _ => SmtpSecurity::None,
                }
            });
            SmtpShown {
                host: url.as_ref().and_then(|url| url.host_str()).and_then(named),
                port: url.as_ref().and_then(|url| url.port().or(security.map(SmtpSecurity::default_port))),
                security,
                user: url.as_ref().and_then(|url| named(url.username())),
                from: Some(mail.from.to_string()),
                has_password: url.as_ref().is_some_and(|url| url.password().is_some()),
                configured,
            }
        }
        None => SmtpShown {
            port: settings.host.is_some().then(|| settings.port_or_default()),
            security: settings.host.is_some().then(|| settings.encryption()),
            has_password: settings.sealed_password.is_some(),
            host: settings.host,
            user: settings.user,
            from: settings.from,
            configured,
        },
    };
    let variable = |key: &&'static str| if *key == "from" { "SERVICE_MAIL_FROM" } else { SMTP_URL.name };
    let locked = KEYS.iter().filter(|_| environment.is_some());
    Ok(SmtpAnswer {
        settings: shown,
        locked: locked.map(|key| LockedKey { key, variable: variable(key) }).collect(),
        updated_at,
        updated_by,
    })
}

/// The mail server, without its password. What the environment sets wins.
#[utoipa::path(get, path = "/api/settings/smtp", tag = "settings", operation_id = "smtp_settings",
    responses((status = 200, body = SmtpAnswer)))]
pub(crate) async fn get(State(state): State<AppState>, desk: Desk) -> Result<Json<SmtpAnswer>, ApiError> {
    Ok(Json(shown(&state, &desk).await?))
}

fn mail_edit(fields: &Fields) -> Result<MailEdit, ApiError> {
    let host = fields.change("host", "a host name or an IP address", |value| {
        let host = value.as_str()?.trim();
        let is_host = !host.is_empty()
            && host.len() <= MAX_HOST_CHARS
            && host.chars().all(|char| char.is_ascii_alphanumeric() || ".-:".contains(char));
        is_host.then(|| host.to_ascii_lowercase())
    })?;
    let from = fields.change("from", "a mail address such as Callboard <tests@example.org>", |value| {
        let from = value.as_str()?.trim();
        (from.chars().count() <= MAX_TEXT_CHARS && mail::is_sender(from)).then(|| from.to_owned())
    })?;
    let port = fields.change("port", "a whole number from 1 to 65535", |value| {
        u16::try_from(value.as_u64()?).ok().filter(|port| *port > 0)
    })?;
    let security =
        fields.change("security", "tls, starttls or none", |value| SmtpSecurity::parse(value.as_str()?))?;
    Ok(MailEdit {
        host,
        port,
        security,
        user: fields.line("user", MAX_TEXT_CHARS)?,
        password: fields.line("password", MAX_PASSWORD_CHARS)?,
        from,
    })
}

/// Changes the mail server. A stored password belongs to its host: another host takes another password.
///
/// # Errors
/// 400 `no_fields`, `missing_field`, `invalid_field`; 409 `setting_locked`; 503 `secret_key_not_configured`.
#[utoipa::path(method(patch, put), path = "/api/settings/smtp", tag = "settings", operation_id = "edit_smtp_settings",
    request_body = SmtpBody,
    responses(
        (status = 200, body = Written<SmtpAnswer>),
        (status = 400, description = "`no_fields`, `missing_field`, `invalid_field`"),
        (status = 409, description = "`setting_locked`: the environment names the mail server"),
        (status = 503, description = "`secret_key_not_configured`: a password cannot be stored")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    desk: Desk,
    fields: Fields,
) -> Result<Json<Written<SmtpAnswer>>, ApiError> {
    fields.require_any(&KEYS)?;
    let edit = mail_edit(&fields)?;
    if state.config().mail.is_some() {
        let rule = AdministrationRule::SettingLocked { key: "smtp", variable: SMTP_URL.name };
        return Err(callboard_query::QueryError::from(rule).into());
    }
    mail_settings::edit(&desk.ctx, desk.acting(), state.stored_secrets(), edit).await?;
    Ok(Written::answer(shown(&state, &desk).await?))
}

/// Whom the test mail goes to.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct SmtpTestBody {
    /// A confirmed address of an account, or one that `SERVICE_MAIL_ALLOW` names.
    to: String,
}

/// What became of a test mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SmtpTested {
    /// Whether the mail server accepted it.
    success: bool,
    /// Why not, in one sentence.
    error: Option<&'static str>,
}

/// Sends a mail that shows whether mail arrives.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`, `address_not_allowed`; 429 `rate_limited`; 503 `smtp_not_configured`.
#[utoipa::path(post, path = "/api/settings/smtp/test", tag = "settings", operation_id = "test_smtp",
    request_body = SmtpTestBody,
    responses(
        (status = 200, body = SmtpTested),
        (status = 400, description = "`missing_field`, `invalid_field`, `address_not_allowed`"),
        (status = 429, description = "`rate_limited`: more than 10 tests a minute"),
        (status = 503, description = "`smtp_not_configured`")
    ))]
pub(crate) async fn test(
    State(state): State<AppState>,
    desk: Desk,
    caller: Caller,
    fields: Fields,
) -> Result<Json<SmtpTested>, ApiError> {
    if state.config().demo {
        return Err(ApiError::demo_mode());
    }
    fields.require(&["to"])?;
    let to = fields.text("to")?.into_value().ok_or_else(|| ApiError::missing_fields(&["to"]))?;
    judge_address(&to).map_err(|refused| ApiError::invalid_field("to", refused.to_string()))?;
    let config = state.mail_config().await?;
    if config.mail.is_none() {
        return Err(AccountRefusal::SmtpNotConfigured.into());
    }
    if !config.mails_to(&to) && !notifications::is_confirmed_address(&desk.ctx, &to).await? {
        let text = "Test mails go only to confirmed addresses of accounts and to those that SERVICE_MAIL_ALLOW names.";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "address_not_allowed", text));
    }
    state.limits().await?.check(CONNECTION_TEST, &caller.credential().into_bytes(), state.now()).await?;
    let error = mail::send_test(&config, &to, state.now()).await.err();
    if let Some(error) = &error {
        tracing::info!(%error, "a test mail was not sent");
    }
    let error = error.map(|error| error.sentence());
    Ok(Json(SmtpTested { success: error.is_none(), error }))
}
