//! `/settings/users`: accounts with a link to their keys. Administrators see
//! every account and open invitations; others see their own account only.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::{Denied, Role, RouteId};
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
/// Newest open invitations that stand below the accounts.
const INVITATIONS: usize = 10;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    text: Option<String>,
    role: Option<Role>,
    disabled: Option<bool>,
    /// Whether the open invitations alone are asked for.
    are_invitations: bool,
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let disabled = query.one_of("state", &[("active", false), ("disabled", true)])?;
        Ok(Self {
            text: query.text("q")?,
            role: query.one_of("role", &Role::ALL.map(|role| (role.as_str(), role)))?,
            disabled,
            are_invitations: query
                .one_of("show", &[("accounts", false), ("invitations", true)])?
                .unwrap_or(false),
            page: query.page(SIZE)?,
        })
    }
}

impl Params {
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
    /// Whether the reader manages accounts; others see their own.
    is_manager: bool,
    filters: FilterBar,
    is_filtered: bool,
    /// Nothing where the page shows the open invitations alone.
    users: Option<Vec<User>>,
    pager: Pager,
    invitations: Vec<Invitation>,
    has_more_invitations: bool,
    password_hint: String,
    projects: Vec<ChoiceRow>,
}

/// The accounts the reader sees.
pub(crate) async fn users(
    State(state): State<AppState>,
    visit: Visit,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let key = (&asked.text, asked.role.map(Role::as_str), asked.disabled, asked.are_invitations);
    let cursors = CursorScope::new(RouteId::UsersPage, &key)?;
    let cursor = asked.page.cursor.as_deref();
    let is_manager = visit.caller.sees_accounts();
    if asked.are_invitations && !is_manager {
        return Err(Denied::InsufficientRole.into());
    }
    let (users, invitations, filters, next) = if asked.are_invitations {
        let found = invitations::list(&visit.ctx, true, cursors.decode(cursor)?, asked.page.rows()).await?;
        let found = cursors.page(found)?;
        let (shown, goes_on) = (found.items.len(), found.next_cursor.is_some());
        let total = if visit.address.is_part(goes_on) {
            Some(invitations::count_open(&visit.ctx).await?)
        } else {
            None
        };
        let bar = FilterBar::new(&visit.address, &["show"]).tally("open invitation", shown, goes_on, total);
        (None, found.items, bar, found.next_cursor)
    } else {
        let wanted = UserFilters { contains: asked.text.clone(), role: asked.role, disabled: asked.disabled };
        let after = cursors.decode(cursor)?;
        let found = users::list(&visit.ctx, &visit.caller, &wanted, after, asked.page.rows()).await?;
        let found = cursors.page(found)?;
        let (shown, goes_on) = (found.items.len(), found.next_cursor.is_some());
        let total = if visit.address.is_part(goes_on) {
            users::count(&visit.ctx, &visit.caller, &wanted).await?
        } else {
            None
        };
        let newest = if is_manager {
            invitations::list(&visit.ctx, true, None, INVITATIONS + 1).await?.items
        } else {
            Vec::new()
        };
        (
            Some(found.items),
            newest,
            asked.bar(&visit).tally("account", shown, goes_on, total),
            found.next_cursor,
        )
    };
    let has_more_invitations = users.is_some() && invitations.len() > INVITATIONS;
    answer(&UsersPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Users),
        auth_enabled: state.auth_enabled(),
        is_manager,
        filters,
        is_filtered: asked.is_filtered(),
        pager: Pager::new(&visit.address, next.as_ref()),
        invitations: match users {
            Some(_) => invitations.into_iter().take(INVITATIONS).collect(),
            None => invitations,
        },
        users,
        has_more_invitations,
        password_hint: format!(
            "{} Without one the person signs in through a provider, or with a link that you send later.",
            password_hint(&state)
        ),
        projects: if is_manager { project_choices(&visit, &BTreeSet::new()).await? } else { Vec::new() },
        shell: Shell::new(&visit, Section::Settings, "Users")
            .await?
            .under("Settings", "/settings")
            .here("Users"),
    })
}
