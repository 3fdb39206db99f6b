//! The bodies of this function. They are read field by field: passwords are
//! taken exactly as they came, and every error names its field.

use callboard_http::ApiError;
use callboard_http::extract::Fields;
use utoipa::ToSchema;

/// Longest name to show, characters.
const MAX_NAME_CHARS: usize = 100;

/// Name and password.
#[derive(Debug, ToSchema)]
pub(crate) struct Credentials {
    /// Name to sign in with.
    #[schema(example = "ci")]
    pub(crate) username: String,
    /// Password, exactly as it was set.
    #[schema(format = Password)]
    pub(crate) password: String,
}

impl Credentials {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["username", "password"])?;
        Ok(Self { username: filled(fields, "username")?, password: filled(fields, "password")? })
    }
}

/// The first administrator.
#[derive(Debug, ToSchema)]
pub(crate) struct SetupBody {
    /// Name to sign in with: 3 to 64 characters.
    #[schema(example = "ada")]
    pub(crate) username: String,
    /// Password, at least 8 characters.
    #[schema(format = Password)]
    pub(crate) password: String,
    /// Name to show.
    #[schema(example = "Ada Lovelace")]
    pub(crate) name: Option<String>,
}

impl SetupBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        let Credentials { username, password } = Credentials::read(fields)?;
        Ok(Self { username, password, name: fields.line("name", MAX_NAME_CHARS)?.into_value() })
    }
}

/// A text that is there and not empty, exactly as it came.
pub(crate) fn filled(fields: &Fields, name: &'static str) -> Result<String, ApiError> {
    match fields.text(name)?.into_value() {
        None => Err(ApiError::missing_fields(&[name])),
        Some(text) if text.is_empty() => {
            Err(ApiError::invalid_field(name, format!("{name} must not be empty.")))
        }
        Some(text) => Ok(text),
    }
}

/// A new password for one's own account.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct ChangePasswordBody {
    /// The password until now; accounts without one leave it out.
    #[schema(format = Password)]
    current_password: Option<String>,
    /// The new one.
    #[schema(format = Password)]
    new_password: String,
}

/// Whose password is forgotten.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct ForgotPasswordBody {
    /// Address of the account.
    #[schema(example = "ada@example.org")]
    email: String,
}

/// A new password, and what allows to set it.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct ResetPasswordBody {
    /// Token of the mail.
    #[schema(example = "srp_…")]
    token: String,
    /// The new password.
    #[schema(format = Password)]
    password: String,
}
