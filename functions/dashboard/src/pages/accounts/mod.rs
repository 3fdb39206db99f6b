//! Pages about accounts: one's own, all of them, one of them, and the audit
//! log. They read through the questions of `callboard_query::accounts` and
//! write through the API, so both follow the same rules.

mod account;
mod audit;
mod panels;
mod user;
mod user_keys;
mod users;

pub(crate) use account::account;
pub(crate) use audit::audit;
pub(crate) use panels::project_choices;
pub(crate) use user::user;
pub(crate) use user_keys::user_keys;
pub(crate) use users::users;

use callboard_query::accounts::Acting;

use crate::visit::Visit;

/// Somebody who looks. Nothing is changed, so no address is noted.
fn looking(visit: &Visit) -> Acting<'_> {
    Acting::directly(&visit.caller, None, visit.now)
}
