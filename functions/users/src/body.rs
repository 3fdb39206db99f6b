//! The bodies of this function. They are read field by field, so that absent
//! and null are two things and every error names its field; nothing is stored
//! before all of a body was read.

use std::collections::BTreeSet;

use callboard_auth::email_address::judge_address;
use callboard_auth::username::judge_username;
use callboard_auth::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_http::extract::Fields;
use callboard_query::Change;
use callboard_query::accounts::members::MOST_NAMED;
use utoipa::ToSchema;

/// Longest name to show, and longest name of a key, characters.
const MAX_NAME_CHARS: usize = 100;

const ROLES: [&str; 3] = [Role::Administrator.as_str(), Role::Reporter.as_str(), Role::User.as_str()];
const PERMISSIONS: [&str; 4] = [
    KeyPermission::Full.as_str(),
    KeyPermission::Ingest.as_str(),
    KeyPermission::Read.as_str(),
    KeyPermission::Metrics.as_str(),
];

fn role(fields: &Fields) -> Result<Option<Role>, ApiError> {
    fields.word("role", &ROLES, Role::parse)
}

fn email(fields: &Fields) -> Result<Change<String>, ApiError> {
    fields.text("email")?.try_map(|text| match judge_address(&text) {
        Ok(()) => Ok(text),
        Err(refused) => Err(ApiError::invalid_field("email", refused.to_string())),
    })
}

/// A field that has no value, although [`Fields::require`] was asked.
fn filled<T>(name: &str, value: Option<T>) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::missing_fields(&[name]))
}

/// A new account.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewUserBody {
    /// Name to sign in with: 3 to 64 characters.
    #[schema(example = "ada")]
    pub(crate) username: String,
    /// Password, at least 8 characters; without one nobody signs in with a password.
    #[schema(format = Password)]
    pub(crate) password: Option<String>,
    /// `administrator`, `reporter` or `user`.
    #[schema(value_type = String, example = "reporter")]
    pub(crate) role: Role,
    /// Name to show.
    #[schema(example = "Ada Lovelace")]
    pub(crate) name: Option<String>,
    /// E-mail address.
    #[schema(example = "ada@example.org")]
    pub(crate) email: Option<String>,
    /// Assigns all projects, later ones included; not for administrators, who reach them anyway.
    #[schema(required = false)]
    pub(crate) is_global: bool,
    /// Assigns these projects; not for administrators.
    #[schema(required = false, value_type = Vec<i64>)]
    pub(crate) project_ids: BTreeSet<ProjectId>,
}

impl NewUserBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["username", "role"])?;
        let username = filled("username", fields.text("username")?.into_value())?;
        judge_username(&username)
            .map_err(|refused| ApiError::invalid_field("username", refused.to_string()))?;
        Ok(Self {
            username,
            password: fields.text("password")?.into_value(),
            role: filled("role", role(fields)?)?,
            name: fields.line("name", MAX_NAME_CHARS)?.into_value(),
            email: email(fields)?.into_value(),
            is_global: fields.flag("isGlobal")?.unwrap_or_default(),
            project_ids: fields.ids("projectIds", MOST_NAMED)?.into_value().unwrap_or_default(),
        })
    }
}

/// What changes of an account: an absent field stays, null clears it.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct EditUserBody {
    /// Name to show.
    #[schema(required = false, value_type = Option<String>)]
    pub(crate) name: Change<String>,
    /// E-mail address. Another one is not verified, and ends the other sessions of the account.
    #[schema(required = false, value_type = Option<String>)]
    pub(crate) email: Change<String>,
    /// `administrator`, `reporter` or `user`; ends the account's sessions.
    #[schema(value_type = Option<String>)]
    pub(crate) role: Option<Role>,
    /// Whether the account is kept out; ends its sessions.
    pub(crate) disabled: Option<bool>,
    /// The present password, for a change of one's own address; without one, a sign-in within the last 15 minutes does.
    #[schema(format = Password)]
    pub(crate) current_password: Option<String>,
}

impl EditUserBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require_any(&["name", "email", "role", "disabled"])?;
        Ok(Self {
            name: fields.line("name", MAX_NAME_CHARS)?,
            email: email(fields)?,
            role: role(fields)?,
            disabled: fields.flag("disabled")?,
            current_password: fields.text("currentPassword")?.into_value(),
        })
    }
}

/// The projects of an account: an absent field stays.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct UserProjectsBody {
    /// All projects, later ones included; `global` is read as well.
    pub(crate) is_global: Option<bool>,
    /// Exactly these projects; null is none.
    #[schema(value_type = Option<Vec<i64>>)]
    pub(crate) project_ids: Option<BTreeSet<ProjectId>>,
}

impl UserProjectsBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require_any(&["isGlobal", "global", "projectIds"])?;
        let (is_global, alias) = (fields.flag("isGlobal")?, fields.flag("global")?);
        Ok(Self { is_global: is_global.or(alias), project_ids: set(fields.ids("projectIds", MOST_NAMED)?) })
    }
}

/// A list that is replaced as a whole: cleared is empty.
fn set<T>(change: Change<BTreeSet<T>>) -> Option<BTreeSet<T>> {
    match change {
        Change::Keep => None,
        Change::Clear => Some(BTreeSet::new()),
        Change::Set(ids) => Some(ids),
    }
}

/// The accounts a project is assigned to.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct MembersBody {
    /// Exactly these accounts; null is none. Administrators reach every project and are left out.
    #[schema(value_type = Vec<i64>)]
    pub(crate) user_ids: BTreeSet<UserId>,
}

impl MembersBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        Ok(Self { user_ids: filled("userIds", set(fields.ids("userIds", MOST_NAMED)?))? })
    }
}

/// A new API key.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewKeyBody {
    /// What it is for: 1 to 100 characters.
    #[schema(example = "nightly")]
    pub(crate) name: String,
    /// When it stops; null or absent is never.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
    /// `full` (the default), `ingest`, `read` or `metrics`.
    #[schema(required = false, value_type = String, example = "ingest")]
    pub(crate) permission: KeyPermission,
    /// Narrows it to these projects; null or absent is all that its owner reaches.
    #[schema(value_type = Option<Vec<i64>>)]
    pub(crate) project_ids: Option<BTreeSet<ProjectId>>,
}

impl NewKeyBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["name"])?;
        let permission = fields.word("permission", &PERMISSIONS, KeyPermission::parse)?;
        Ok(Self {
            name: filled("name", fields.line("name", MAX_NAME_CHARS)?.into_value())?,
            expires_at: expiry(fields)?,
            permission: permission.unwrap_or(KeyPermission::Full),
            project_ids: fields.ids("projectIds", MOST_NAMED)?.into_value(),
        })
    }
}

/// When a key stops. Its other usual names count too: a key that was to stop
/// and never does would be worse than any error.
fn expiry(fields: &Fields) -> Result<Option<Timestamp>, ApiError> {
    for name in ["expiresAt", "expiry", "expires", "expires_at"] {
        if let Change::Set(at) = fields.moment(name)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Somebody to invite.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewInvitationBody {
    /// Where the invitation goes; also the name to sign in with, so at most 64 characters.
    #[schema(example = "ada@example.org")]
    pub(crate) email: String,
    /// `administrator`, `reporter` or `user`.
    #[schema(value_type = String, example = "reporter")]
    pub(crate) role: Role,
    /// Name to show.
    pub(crate) name: Option<String>,
    /// Assigns all projects, later ones included; not for administrators.
    #[schema(required = false)]
    pub(crate) is_global: bool,
    /// Assigns these projects; not for administrators.
    #[schema(required = false, value_type = Vec<i64>)]
    pub(crate) project_ids: BTreeSet<ProjectId>,
}

impl NewInvitationBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["email", "role"])?;
        Ok(Self {
            email: filled("email", email(fields)?.into_value())?,
            role: filled("role", role(fields)?)?,
            name: fields.line("name", MAX_NAME_CHARS)?.into_value(),
            is_global: fields.flag("isGlobal")?.unwrap_or_default(),
            project_ids: fields.ids("projectIds", MOST_NAMED)?.into_value().unwrap_or_default(),
        })
    }
}
