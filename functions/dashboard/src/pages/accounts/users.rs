//! `/settings/users`: all accounts, and inviting more.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::{Role, RouteId};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::{ApiError, AppState};
use callboard_query::accounts::invitations::{self, Invitation};
use callboard_query::accounts::users::{self, UserFilters};
use callboard_query::shapes::User;

use super::project_choices;
use crate::components::{Choice, ChoiceRow, FilterBar, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::pages::entrance::password_hint;
use crate::shell::{Section, Shell};
use crate::text;
use crate::visit::{Visit, answer};

/// Accounts per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 100 };
/// Newest invitations among which open ones are shown.
const INVITATIONS: usize = 100;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    text: Option<String>,
    role: Option<Role>,
    disabled: Option<bool>,
    page: PageRequest,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let disabled = query.one_of("state", &[("active", false), ("disabled", true)])?;
        Ok(Self {
            text: query.text("q")?,
            role: query.one_of("role", &Role::ALL.map(|role| (role.as_str(), role)))?,
            disabled,
            page: query.page(SIZE)?,
        })
    }
}

impl Asked {
    fn is_filtered(&self) -> bool {
        self.text.is_some() || self.role.is_some() || self.disabled.is_some()
    }

    fn bar(&self, visit: &Visit) -> FilterBar {
        let roles = Role::ALL.map(|role| Choice::new(role.as_str(), text::role(role)));
        let role: Vec<String> = self.role.iter().map(|role| role.as_str().to_owned()).collect();
        let states = [Choice::new("active", "Active"), Choice::new("disabled", "Disabled")];
        let state = self.disabled.map(|disabled| if disabled { "disabled" } else { "active" }.to_owned());
        FilterBar::new(&visit.address, &[])
            .search("q", "Search users", self.text.as_ref())
            .select("role", "Role", "Any role", roles, &role)
            .select("state", "State", "Any state", states, state.as_slice())
    }
}

/// Inputs of `pages/accounts/users.html`.
#[derive(Template)]
#[template(path = "pages/accounts/users.html")]
struct UsersPage {
    shell: Shell,
    tabs: SettingsTabs,
    auth_enabled: bool,
    filters: FilterBar,
    is_filtered: bool,
    users: Vec<User>,
    pager: Pager,
    invitations: Vec<Invitation>,
    has_more_invitations: bool,
    password_hint: String,
    projects: Vec<ChoiceRow>,
}

/// All accounts.
pub(crate) async fn users(
    State(state): State<AppState>,
    visit: Visit,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let key = (&asked.text, asked.role.map(Role::as_str), asked.disabled);
    let cursors = CursorScope::new(RouteId::UsersPage, &key)?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let wanted = UserFilters { contains: asked.text.clone(), role: asked.role, disabled: asked.disabled };
    let found = users::list(&visit.ctx, &visit.caller, &wanted, after, asked.page.rows()).await?;
    let found = cursors.page(found)?;
    let (shown, goes_on) = (found.items.len(), found.next_cursor.is_some());
    let total = if visit.address.is_part(goes_on) {
        users::count(&visit.ctx, &visit.caller, &wanted).await?
    } else {
        None
    };
    let invitations = invitations::list(&visit.ctx, true, None, INVITATIONS).await?;
    answer(&UsersPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Users),
        auth_enabled: state.auth_enabled(),
        filters: asked.bar(&visit).tally("account", shown, goes_on, total),
        is_filtered: asked.is_filtered(),
        users: found.items,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        has_more_invitations: invitations.next.is_some(),
        invitations: invitations.items,
        password_hint: format!(
            "{} Without one the person signs in through a provider, or with a link that you send later.",
            password_hint(&state)
        ),
        projects: project_choices(&visit, &BTreeSet::new()).await?,
        shell: Shell::new(&visit, Section::Settings, "Users")
            .await?
            .under("Settings", "/settings")
            .here("Users"),
    })
}
