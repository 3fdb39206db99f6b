//! `/settings/users/{id}/keys`: the API keys of an account, for its owner and
//! for administrators.

use askama::Template;
use axum::response::Response;
use callboard_domain::ids::UserId;
use callboard_http::ApiError;
use callboard_http::extract::Path;
use callboard_query::accounts::users;
use callboard_query::shapes::User;

use super::panels::keys;
use crate::components::{KeyPanel, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Inputs of `pages/accounts/user_keys.html`.
#[derive(Template)]
#[template(path = "pages/accounts/user_keys.html")]
struct UserKeysPage {
    shell: Shell,
    tabs: SettingsTabs,
    user: User,
    keys: KeyPanel,
}

/// The keys of one account.
pub(crate) async fn user_keys(visit: Visit, Path(id): Path<UserId>) -> Result<Response, ApiError> {
    let authorized = visit.caller.authorize_account(id)?;
    let user = users::get(&visit.ctx, authorized).await?;
    let shell = Shell::new(&visit, Section::Settings, format!("API keys of {}", user.username)).await?;
    let shell = shell.under("Settings", "/settings").under("Users", "/settings/users");
    let account = visit.caller.is_administrator().then(|| format!("/settings/users/{id}"));
    let shell = match account {
        Some(page) => shell.under(user.username.as_str(), page),
        None => shell,
    };
    answer(&UserKeysPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Users),
        keys: keys(&visit, authorized, visit.caller.user_id() == Some(id)).await?,
        shell: shell.here("API keys"),
        user,
    })
}
