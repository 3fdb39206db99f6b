//! Roles and permissions in words, with what they mean.

use callboard_auth::{KeyPermission, Role};

/// A role as people read it.
pub(crate) const fn role(role: Role) -> &'static str {
    match role {
        Role::Administrator => "Administrator",
        Role::Reporter => "Reporter",
        Role::User => "User",
    }
}

/// What a role may do, in one sentence.
pub(crate) const fn role_means(role: Role) -> &'static str {
    match role {
        Role::Administrator => "May do everything, in all projects.",
        Role::Reporter => "Sends results and triages failures, in assigned projects.",
        Role::User => "Reads, in assigned projects.",
    }
}

/// What a key may be used for, as people read it.
pub(crate) const fn permission(permission: KeyPermission) -> &'static str {
    match permission {
        KeyPermission::Full => "Full access",
        KeyPermission::Ingest => "Send results",
        KeyPermission::Read => "Read",
        KeyPermission::Metrics => "Metrics",
    }
}
