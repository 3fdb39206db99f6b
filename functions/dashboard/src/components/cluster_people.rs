//! Who can be asked to look after a cluster: for administrators everybody who
//! reaches the project, for others themselves. Nobody learns here who else has
//! an account.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_query::accounts::members;
use callboard_query::shapes::UserRef;

use super::Choice;
use crate::visit::Visit;

/// People the choice holds; REST assigns to any other.
const OFFERED: usize = 200;

/// Whom this reader can assign, themselves first; none where nobody has an
/// account.
///
/// # Errors
/// When the members cannot be read.
pub(crate) async fn assignable(
    visit: &Visit,
    project: Authorized<ProjectId>,
    now: Option<&UserRef>,
) -> Result<Vec<Choice>, ApiError> {
    let mut people: Vec<Choice> = Vec::new();
    let mut add = |id: i64, label: String| {
        let id = id.to_string();
        if !people.iter().any(|known| known.value == id) {
            people.push(Choice::new(id, label));
        }
    };
    if let Some(own) = visit.caller.account() {
        add(own.user.get(), format!("{} (you)", own.username));
    }
    if let Some(user) = now {
        add(user.id, user.username.clone());
    }
    if visit.caller.is_administrator() {
        for member in members::of_project(&visit.ctx, project, None, OFFERED).await?.items {
            add(member.id, member.username);
        }
    }
    Ok(people)
}
