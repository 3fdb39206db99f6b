//! `/settings/account`: one's own account.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::oauth::{OauthRefusal, Provider};
use callboard_auth::scope::Scope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::{ApiError, AppState};
use callboard_query::accounts::users;
use callboard_query::shapes::User;

use super::panels::{base, keys, sessions};
use crate::components::{KeyPanel, SessionPanel, SettingsTab, SettingsTabs};
use crate::filters;
use crate::pages::entrance::{NoticePage, name_of, notice, password_hint};
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// How connecting a provider ended, as the provider's callback says it.
pub(crate) struct Params {
    notice: Option<Notice>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        if let Some(code) = query.text("error")? {
            let refusal = OauthRefusal::parse(&code).unwrap_or(OauthRefusal::Failed);
            return Ok(Self { notice: Some(Notice { kind: "error", text: refusal.to_string() }) });
        }
        let is_linked = query.text("linked")?.is_some();
        let linked = || Notice { kind: "done", text: "Provider connected.".to_owned() };
        Ok(Self { notice: is_linked.then(linked) })
    }
}

/// One sentence above the page.
struct Notice {
    kind: &'static str,
    text: String,
}

/// A provider that is configured, or still connected.
struct ProviderRow {
    id: &'static str,
    name: &'static str,
    is_linked: bool,
}

/// Inputs of `pages/accounts/account.html`.
#[derive(Template)]
#[template(path = "pages/accounts/account.html")]
struct AccountPage {
    shell: Shell,
    tabs: SettingsTabs,
    notice: Option<Notice>,
    user: User,
    /// The address of the account in the API.
    base: String,
    reach: String,
    password_hint: String,
    providers: Vec<ProviderRow>,
    is_linked: bool,
    keys: KeyPanel,
    sessions: SessionPanel,
}

/// The account of whoever looks.
pub(crate) async fn account(
    State(state): State<AppState>,
    visit: Visit,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let Some(own) = visit.caller.user_id() else {
        return notice(&NoticePage {
            is_demo: visit.is_demo,
            title: "No account",
            sentence: "Sign-in is off: everyone who can reach this service is an administrator.".into(),
            href: "/settings/users",
            leads_to: "All accounts",
        });
    };
    let own = visit.caller.authorize_account(own)?;
    let user = users::get(&visit.ctx, own).await?;
    answer(&AccountPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Account),
        notice: asked.notice,
        base: base(own.get()),
        reach: reach(visit.scope()),
        password_hint: password_hint(&state),
        providers: providers(&state, &user),
        is_linked: user.oauth_provider.is_some(),
        keys: keys(&visit, own, true).await?,
        sessions: sessions(&visit, own, true).await?,
        shell: Shell::new(&visit, Section::Account, "Account")
            .await?
            .under("Settings", "/settings")
            .here("Account"),
        user,
    })
}

fn reach(scope: &Scope) -> String {
    match scope.projects().as_deref() {
        None => "Access: all projects".to_owned(),
        Some([]) => "Access: no projects yet; ask an administrator".to_owned(),
        Some([_]) => "Access: 1 project".to_owned(),
        Some(projects) => format!("Access: {} projects", projects.len()),
    }
}

fn providers(state: &AppState, user: &User) -> Vec<ProviderRow> {
    let linked = user.oauth_provider.as_deref();
    let oauth = &state.config().oauth;
    let row = |provider: Provider| ProviderRow {
        id: provider.as_str(),
        name: name_of(provider),
        is_linked: linked == Some(provider.as_str()),
    };
    let is_shown = |row: &ProviderRow| {
        row.is_linked || Provider::parse(row.id).is_some_and(|each| oauth.provider(each).is_some())
    };
    Provider::ALL.into_iter().map(row).filter(is_shown).collect()
}
