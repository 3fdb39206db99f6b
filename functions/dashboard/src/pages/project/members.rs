//! Who reaches a project: the same assignments that the pages of accounts
//! edit, from the other side.

use askama::Template;
use axum::response::Response;
use callboard_auth::Denied;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_query::accounts::members::{self, MOST_NAMED, Member, MemberSource};
use callboard_query::accounts::users::{self, UserFilters};

use super::Head;
use crate::components::ChoiceRow;
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Accounts the list to choose from begins with; the rest is searched for.
const OFFERED: usize = 50;

/// Inputs of `pages/project_members.html`.
#[derive(Template)]
#[template(path = "pages/project_members.html")]
struct MembersTab {
    shell: Shell,
    head: Head,
    /// Whether anybody has to sign in.
    auth_enabled: bool,
    /// Whether there are more people than one form can hold: saving it would
    /// take the project from those that are not in it.
    is_cut: bool,
    rows: Vec<ChoiceRow>,
    others: Vec<Member>,
}

/// The members of a project; for administrators.
pub(super) async fn tab(
    visit: Visit,
    auth_enabled: bool,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
) -> Result<Response, ApiError> {
    if !visit.caller.is_administrator() {
        return Err(Denied::InsufficientRole.into());
    }
    let found = members::of_project(&visit.ctx, project, None, MOST_NAMED).await?;
    let is_cut = found.next.is_some();
    let (explicit, others): (Vec<Member>, Vec<Member>) =
        found.items.into_iter().partition(|member| member.source == MemberSource::Explicit);
    let wanted = UserFilters { disabled: Some(false), ..UserFilters::default() };
    let offered = users::list(&visit.ctx, &visit.caller, &wanted, None, OFFERED).await?.items;
    let chosen = explicit.iter().map(|member| row(member.id, &member.username, member.role, true));
    let free =
        offered.iter().filter(|user| !user.is_global && !explicit.iter().any(|member| member.id == user.id));
    let rows = chosen.chain(free.map(|user| row(user.id, &user.username, user.role, false))).collect();
    answer(&MembersTab { shell, head, auth_enabled, is_cut, rows, others })
}

fn row(id: i64, username: &str, role: &'static str, is_chosen: bool) -> ChoiceRow {
    ChoiceRow { id, name: username.to_owned(), second: Some(role), is_chosen }
}
