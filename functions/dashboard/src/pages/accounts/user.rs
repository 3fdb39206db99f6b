//! `/settings/users/{id}`: one account, as administrators see it.

use askama::Template;
use axum::response::Response;
use callboard_auth::Role;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_http::ApiError;
use callboard_http::extract::Path;
use callboard_query::accounts::{members, users};
use callboard_query::shapes::User;

use super::panels::{base, keys, sessions};
use super::project_choices;
use crate::components::{ChoiceRow, KeyPanel, SessionPanel, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Inputs of `pages/accounts/user.html`.
#[derive(Template)]
#[template(path = "pages/accounts/user.html")]
struct UserPage {
    shell: Shell,
    tabs: SettingsTabs,
    user: User,
    role: Role,
    /// The address of the account in the API.
    base: String,
    is_own: bool,
    is_global: bool,
    projects: Vec<ChoiceRow>,
    keys: KeyPanel,
    sessions: SessionPanel,
}

/// One account.
pub(crate) async fn user(visit: Visit, Path(id): Path<UserId>) -> Result<Response, ApiError> {
    let authorized = visit.caller.authorize_account(id)?;
    let user = users::get(&visit.ctx, authorized).await?;
    let reach = members::of_user(&visit.ctx, authorized).await?;
    let chosen = reach.project_ids.iter().copied().map(ProjectId).collect();
    let is_own = visit.caller.user_id() == Some(id);
    let shell = Shell::new(&visit, Section::Settings, user.username.as_str()).await?;
    answer(&UserPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Users),
        role: Role::parse(user.role).unwrap_or(Role::User),
        base: base(id),
        is_own,
        is_global: reach.is_global,
        projects: project_choices(&visit, &chosen).await?,
        keys: keys(&visit, authorized, is_own).await?,
        sessions: sessions(&visit, authorized, is_own).await?,
        shell: shell
            .under("Settings", "/settings")
            .under("Users", "/settings/users")
            .here(user.username.as_str()),
        user,
    })
}
