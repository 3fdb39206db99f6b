//! What of an answer that refuses goes into the audit log: that somebody who is
//! known was turned away, that a key or a mailed token opened nothing, and that
//! a change of accounts, projects or settings could not be made. That nobody was
//! signed in is no attempt at anything.

use std::borrow::Cow;

use axum::response::Response;
use callboard_auth::client_address::ClientAddress;
use callboard_auth::{Identity, Route, RouteId};
use callboard_domain::ids::{ApiKeyId, ProjectId, UserId};
use callboard_query::accounts::refused_access::{self, RefusedAccess};
use callboard_store::audit::{Actor, Target};
use http::StatusCode;

use crate::error::RefusedWith;
use crate::state::AppState;

/// What was asked for, by whom and from where.
pub(crate) struct RequestInfo<'r> {
    pub(crate) route: &'static Route,
    pub(crate) path: String,
    pub(crate) identity: &'r Identity,
    pub(crate) address: Option<ClientAddress>,
}

/// Why the audit log has an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The caller may not do it.
    Access,
    /// What was asked for could not be made so.
    Change,
}

/// What the audit log is to say of an answer.
pub(crate) struct Refusal {
    why: Why,
    code: Cow<'static, str>,
    target: Option<(Target, ProjectId)>,
}

/// Leaves a refusal in the audit log.
pub(crate) async fn note(state: &AppState, asked: RequestInfo<'_>, refusal: Option<Refusal>) {
    let Some(refusal) = refusal.filter(|_| state.auth_enabled()) else { return };
    let Some(address) = asked.address else { return };
    if let Err(error) = write(state, &asked, address, &refusal).await {
        tracing::warn!(%error, "a refusal was not noted in the audit log");
    }
}

/// The refusal an answer is, when it belongs into the audit log.
pub(crate) fn refusal_of(asked: &RequestInfo<'_>, response: &Response) -> Option<Refusal> {
    let RefusedWith { code, target } = response.extensions().get::<RefusedWith>()?;
    if code == "demo_mode" {
        return None;
    }
    const OF_NOBODY: [&str; 3] = ["invalid_api_key", "invalid_or_expired_token", "setup_unavailable"];
    let status = response.status();
    if status == StatusCode::FORBIDDEN || OF_NOBODY.contains(&code.as_ref()) {
        return Some(Refusal { why: Why::Access, code: code.clone(), target: *target });
    }
    let could_not_be_made = status.is_client_error() || code.ends_with("_not_configured");
    // A wrong password is noted by whoever compared it.
    let is_noted = asked.route.id == RouteId::ChangePassword && code == "invalid_credentials";
    let is_change = asked.route.administers() && asked.identity.user_id().is_some();
    let refusal = || Refusal { why: Why::Change, code: code.clone(), target: *target };
    (is_change && could_not_be_made && !is_noted).then(refusal)
}

async fn write(
    state: &AppState,
    asked: &RequestInfo<'_>,
    address: ClientAddress,
    refusal: &Refusal,
) -> callboard_query::Result<()> {
    if !state.schema_is_current().await? {
        return Ok(());
    }
    let identity = asked.identity;
    let address_hash = Some(state.counter_names().await?.address(&address));
    let (user, key) = (identity.user_id(), identity.key_id().map(ApiKeyId::get));
    let subject = match user {
        Some(_) => identity.credential().into_bytes(),
        None => address.subject().to_vec(),
    };
    let actor = Actor { user, key, address_hash };
    let route = asked.route.id.name();
    let refused = RefusedAccess { subject: &subject, actor, route, code: &refusal.code };
    // The innermost thing the path names, unless what was refused is known more exactly.
    let target = match refusal.target {
        Some((target, project)) => (Some(target), Some(project)),
        None => target_of(asked.route.pattern, &asked.path, user),
    };
    let (store, limits, now) = (state.store(), state.limits().await?, state.now());
    match refusal.why {
        Why::Access => refused_access::note(store, &limits, refused, target, now).await,
        Why::Change => refused_access::note_change(store, &limits, refused, target, now).await,
    }
}

/// The words of the audit log for what stands in paths.
const KINDS: [(&str, &str); 17] = [
    ("users", "user"),
    ("api-keys", "api_key"),
    ("projects", "project"),
    ("invitations", "invitation"),
    ("test-runs", "run"),
    ("tags", "tag"),
    ("gate-policies", "gate_policy"),
    ("cases", "execution"),
    ("test-run-cases", "execution"),
    ("test-cases", "test_case"),
    ("quarantine", "test_case"),
    ("failure-clusters", "cluster"),
    ("cluster-merge-suggestions", "suggestion"),
    ("markers", "marker"),
    ("links", "link"),
    ("test-functions", "test_function"),
    ("exports", "export"),
];

/// What a path names, the innermost of several, and the project it lies in.
fn target_of(pattern: &str, path: &str, own: Option<UserId>) -> (Option<Target>, Option<ProjectId>) {
    let (mut target, mut project) = (None, None);
    let mut of = "";
    for (name, given) in pattern.split('/').zip(path.split('/')) {
        let kind = KINDS.iter().find(|(word, _)| *word == of).map(|(_, kind)| *kind);
        if let Some(kind) = kind.filter(|_| name.starts_with('{')) {
            let id = if given == "me" { own.map(UserId::get) } else { given.parse().ok() };
            target = id.map(|id| Target { kind, id });
            project = project.or(id.filter(|_| kind == "project").map(ProjectId));
        }
        of = name;
    }
    (target, project)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_names_is_told_from_its_pattern() {
        let told = |pattern, path| {
            let (target, project) = target_of(pattern, path, Some(UserId(7)));
            (target.map(|target| (target.kind, target.id)), project.map(ProjectId::get))
        };
        assert_eq!(told("/api/users", "/api/users"), (None, None));
        assert_eq!(told("/api/users/{id}", "/api/users/12"), (Some(("user", 12)), None));
        assert_eq!(told("/api/users/{id}", "/api/users/me"), (Some(("user", 7)), None));
        assert_eq!(told("/api/users/{id}", "/api/users/x"), (None, None));
        assert_eq!(
            told("/api/test-runs/{id}/cases/{caseId}", "/api/test-runs/3/cases/9"),
            (Some(("execution", 9)), None)
        );
        assert_eq!(
            told("/api/users/{id}/api-keys/{keyId}", "/api/users/12/api-keys/3"),
            (Some(("api_key", 3)), None)
        );
        assert_eq!(
            told("/api/projects/{id}/members", "/api/projects/4/members"),
            (Some(("project", 4)), Some(4))
        );
    }
}
