//! What the page of one's own account and the page of any account share: keys,
//! sessions, and projects to choose from.

use std::collections::BTreeSet;

use callboard_auth::{Authorized, KeyPermission};
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_query::accounts::api_keys::{self, ApiKey};
use callboard_query::accounts::members::MOST_NAMED;
use callboard_query::accounts::sessions::{self, SessionItem};
use callboard_query::projects;

use super::looking;
use crate::components::{ChoiceRow, KeyPanel, KeyRow, SessionPanel, SessionRow};
use crate::text;
use crate::visit::Visit;

/// Keys a page shows; an account has at most this many that open something.
const KEYS: usize = 100;
/// Sessions a page shows.
const SESSIONS: usize = 50;
/// Projects a list to choose from begins with; the rest is searched for.
const OFFERED: usize = 50;

/// The address of an account in the API.
pub(super) fn base(user: UserId) -> String {
    format!("/api/users/{user}")
}

/// Projects to choose from, chosen ones first.
pub(crate) async fn project_choices(
    visit: &Visit,
    chosen: &BTreeSet<ProjectId>,
) -> Result<Vec<ChoiceRow>, ApiError> {
    let row = |id, name, is_chosen| ChoiceRow { id, name, second: None, is_chosen };
    let mut rows = Vec::new();
    if !chosen.is_empty() {
        let scope = visit.scope().narrowed_to(chosen.iter().copied());
        let found = projects::names(&visit.ctx, &scope, MOST_NAMED).await?;
        rows.extend(found.into_iter().map(|project| row(project.id, project.name, true)));
    }
    let offered = projects::names(&visit.ctx, visit.scope(), OFFERED).await?;
    let others = offered.into_iter().filter(|project| !chosen.contains(&ProjectId(project.id)));
    rows.extend(others.map(|project| row(project.id, project.name, false)));
    Ok(rows)
}

/// The keys of an account.
pub(super) async fn keys(
    visit: &Visit,
    user: Authorized<UserId>,
    is_own: bool,
) -> Result<KeyPanel, ApiError> {
    let found = api_keys::list(&visit.ctx, user, None, KEYS, visit.now).await?;
    Ok(KeyPanel {
        base: base(user.get()),
        has_more: found.next.is_some(),
        keys: found.items.into_iter().map(|key| key_row(key, user.get(), visit.now)).collect(),
        is_own,
        projects: project_choices(visit, &BTreeSet::new()).await?,
        now: visit.now,
        permissions: KeyPermission::ALL,
    })
}

fn key_row(key: ApiKey, owner: UserId, now: Timestamp) -> KeyRow {
    let is_expired = key.expires_at.is_some_and(|end| end <= now);
    KeyRow {
        id: key.id,
        name: key.name,
        prefix: key.key_prefix,
        permission: KeyPermission::parse(key.permission).map_or(key.permission, text::permission),
        reach: match key.project_ids.as_deref() {
            None => "in all projects of its owner".to_owned(),
            Some([_]) => "in one project".to_owned(),
            Some(projects) => format!("in {} projects", projects.len()),
        },
        created_by: key
            .created_by
            .filter(|creator| creator.id != owner.get())
            .map(|creator| creator.username),
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        expires_at: key.expires_at,
        revoked_at: key.revoked_at,
        is_over: is_expired || key.revoked_at.is_some(),
    }
}

/// The sessions of an account.
pub(super) async fn sessions(
    visit: &Visit,
    user: Authorized<UserId>,
    is_own: bool,
) -> Result<SessionPanel, ApiError> {
    let found = sessions::list(&visit.ctx, looking(visit), user, None, SESSIONS).await?;
    Ok(SessionPanel {
        base: base(user.get()),
        has_more: found.next.is_some(),
        sessions: found.items.into_iter().map(session_row).collect(),
        is_own,
        now: visit.now,
    })
}

fn session_row(session: SessionItem) -> SessionRow {
    let agent = session.user_agent.unwrap_or_default();
    SessionRow {
        id: session.id,
        device: text::device(&agent),
        agent,
        method: match session.method.as_str() {
            "password" => "password",
            "setup" => "first set-up",
            "idp" => "single sign-on",
            "codehost" => "the code host",
            _ => "another way",
        },
        created_at: session.created_at,
        last_seen_at: session.last_seen_at,
        is_current: session.current,
    }
}
