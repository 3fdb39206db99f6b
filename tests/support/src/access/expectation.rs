//! What should come of a request, read from its row in the route table.

use callboard_auth::Route;
use callboard_auth::RouteId;
use callboard_auth::routes::{Access, Method, ProjectSource};
use callboard_domain::account::{KeyPermission, Role};

use super::Subject;
use super::cast::{Credential, Sees, Standing};
use super::request::is_about_an_account;

/// What the route table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The request is let through to its handler.
    LetThrough,
    /// It is turned away with this status and code.
    Refused(u16, &'static str),
    /// The secret it takes instead of an account is missing or wrong: any
    /// refusal will do.
    Unopened,
}

pub(super) fn names_something(route: &Route) -> bool {
    is_about_an_account(route)
        || matches!(
            route.project,
            ProjectSource::FromPath | ProjectSource::FromEntity(_) | ProjectSource::FromBody(_)
        )
}

/// Whether a body, or a query, says what is to be done. Nothing of the rest
/// is named either: a tag or an invitation without an id of its own.
pub(super) fn says_something(route: &Route) -> bool {
    route.method != Method::Delete || route.id == RouteId::CleanUpByQuery
}

pub(super) fn expected(route: &Route, caller: &Credential, subject: Subject) -> Expected {
    let roles = match route.access {
        Access::Public => return Expected::LetThrough,
        Access::Roles(roles) | Access::RolesOrRunToken(roles) | Access::BodyTokenOrRoles(roles) => roles,
        _ => return Expected::Unopened,
    };
    let (role, sees, key, is_narrowed) = match caller.standing {
        Standing::Nobody => return Expected::Refused(401, "authentication_required"),
        Standing::DeadKey => return Expected::Refused(401, "invalid_api_key"),
        // Cookies do not count where programs call.
        Standing::Account { key: None, .. }
            if route.credentials == callboard_auth::routes::Credentials::HeaderOnly =>
        {
            return Expected::Refused(401, "authentication_required");
        }
        Standing::Account { role, sees, key, is_narrowed, .. } => (role, sees, key, is_narrowed),
    };
    if !roles.contains(role) {
        return Expected::Refused(403, "insufficient_role");
    }
    if route.session_only && key.is_some() {
        return Expected::Refused(403, "session_required");
    }
    let is_meant = match key {
        None | Some(KeyPermission::Full) => true,
        Some(KeyPermission::Ingest) => route.ingest,
        Some(KeyPermission::Read) => route.method == Method::Get || !route.mutates,
        Some(KeyPermission::Metrics) => false,
    };
    let is_instance_wide = route.project == ProjectSource::None && !roles.contains(Role::Reporter);
    if !is_meant || (is_narrowed && is_instance_wide) {
        return Expected::Refused(403, "key_scope_denied");
    }
    if is_about_an_account(route) {
        return match (role, subject) {
            (_, Subject::First | Subject::Nonsense) => Expected::LetThrough,
            // Accounts lie within no project.
            (Role::Administrator, _) if is_narrowed => Expected::Refused(403, "key_scope_denied"),
            (Role::Administrator, Subject::Missing) if route.pattern.ends_with("{keyId}") => {
                Expected::Refused(404, "api_key_not_found")
            }
            (Role::Administrator, Subject::Missing) => Expected::Refused(404, "user_not_found"),
            (Role::Administrator, Subject::Second) => Expected::LetThrough,
            _ => Expected::Refused(403, "insufficient_role"),
        };
    }
    in_project(route, sees, subject)
}

fn in_project(route: &Route, sees: Sees, subject: Subject) -> Expected {
    let is_of_first = matches!(subject, Subject::First | Subject::Nonsense);
    let reaches = sees == Sees::Everything || (sees == Sees::First && is_of_first);
    let word = match route.project {
        ProjectSource::None | ProjectSource::Listed => return Expected::LetThrough,
        ProjectSource::FromBody(_) => {
            return match (reaches, subject) {
                (true, _) => Expected::LetThrough,
                (false, Subject::Missing) => Expected::Refused(403, "project_creation_forbidden"),
                (false, _) => Expected::Refused(403, "project_access_denied"),
            };
        }
        ProjectSource::FromPath => "project_not_found",
        ProjectSource::FromEntity(entity) => match entity {
            callboard_auth::routes::Entity::Run => "run_not_found",
            callboard_auth::routes::Entity::TestCase => "test_case_not_found",
            callboard_auth::routes::Entity::Execution => "execution_not_found",
            callboard_auth::routes::Entity::File => "file_not_found",
            callboard_auth::routes::Entity::GatePolicy => "policy_not_found",
            callboard_auth::routes::Entity::Link => "link_not_found",
            callboard_auth::routes::Entity::Cluster => "cluster_not_found",
            callboard_auth::routes::Entity::ClusterSuggestion => "suggestion_not_found",
            callboard_auth::routes::Entity::Diagnosis => "diagnosis_not_found",
            callboard_auth::routes::Entity::Marker => "marker_not_found",
            callboard_auth::routes::Entity::TestFunction => "function_not_found",
            callboard_auth::routes::Entity::Export => "export_not_found",
        },
    };
    match (subject, reaches) {
        (Subject::Missing, _) => Expected::Refused(404, word),
        (_, true) => Expected::LetThrough,
        (_, false) => Expected::Refused(403, "project_access_denied"),
    }
}
