//! `/settings/mail`: the mail server.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_domain::smtp::{SmtpSecurity, SmtpSettings};
use callboard_http::{ApiError, AppState};
use callboard_platform::config::{MailServer, SMTP_URL};
use callboard_platform::mail;
use callboard_query::mail_settings;

use crate::components::{SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Kinds of encryption with their labels.
const SECURITY: [(SmtpSecurity, &str); 3] = [
    (SmtpSecurity::Tls, "TLS (port 465)"),
    (SmtpSecurity::StartTls, "STARTTLS (port 587)"),
    (SmtpSecurity::None, "None (port 25)"),
];

/// The mail server that the environment names.
struct FromEnvironment {
    variable: &'static str,
    /// Without user name and password.
    server: String,
    from: String,
}

/// Inputs of `pages/mail.html`.
#[derive(Template)]
#[template(path = "pages/mail.html")]
struct MailPage {
    shell: Shell,
    tabs: SettingsTabs,
    environment: Option<FromEnvironment>,
    smtp: SmtpSettings,
    port: String,
    /// Whether a password can be stored at all.
    keeps_secrets: bool,
    /// Whether there is a mail server.
    has_server: bool,
    /// Whether the public address is known, which mails with links need.
    has_site: bool,
    configured: bool,
}

/// The mail server; for administrators.
pub(crate) async fn mail(State(state): State<AppState>, visit: Visit) -> Result<Response, ApiError> {
    let stored = mail_settings::stored(&visit.ctx).await?;
    let effective = state.mail_config().await?;
    let environment = state.config().mail.as_ref().map(|mail| FromEnvironment {
        variable: SMTP_URL.name,
        server: match &mail.server {
            MailServer::Url(url) => without_sign_in(url.expose()),
            MailServer::Set(set) => format!("{}:{}", set.host, set.port),
        },
        from: mail.from.to_string(),
    });
    let shell = Shell::new(&visit, Section::Settings, "Mail").await?;
    answer(&MailPage {
        shell: shell.under("Settings", "/settings").here("Mail"),
        tabs: SettingsTabs::new(&visit, SettingsTab::Mail),
        environment,
        port: stored.settings.port.map(|port| port.to_string()).unwrap_or_default(),
        smtp: stored.settings,
        keeps_secrets: !state.config().secret_keys.is_empty(),
        has_server: effective.mail.is_some(),
        has_site: effective.site_url.is_some(),
        configured: mail::is_configured(&effective),
    })
}

/// Scheme, host and port of an address.
fn without_sign_in(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{}", host.split(['/', '?']).next().unwrap_or_default())
}

const fn password_hint(set: &SmtpSettings) -> &'static str {
    if set.sealed_password.is_some() {
        "Empty keeps the present one, which is stored encrypted and not shown."
    } else {
        "Stored encrypted and not shown again."
    }
}
