//! What the answers of this function have in common.

use axum::Json;
use callboard_domain::setting::UnusableSetting;
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_query::shapes::UserRef;
use serde::Serialize;
use utoipa::ToSchema;

/// It is done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Done {
    /// Always true.
    success: bool,
}

impl Done {
    pub(crate) const fn answer() -> Json<Self> {
        Json(Self { success: true })
    }
}

/// Settings were written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Written<T> {
    /// Always true.
    success: bool,
    /// The settings now.
    #[serde(flatten)]
    now: T,
}

impl<T> Written<T> {
    pub(crate) fn answer(now: impl Into<T>) -> Json<Self> {
        Json(Self { success: true, now: now.into() })
    }
}

/// When a group of settings was set, beside its values.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupHistory {
    /// Keys that cannot be set here: none.
    #[schema(value_type = Vec<Object>)]
    locked: [(); 0],
    /// When it was set last.
    #[schema(value_type = Option<String>, format = DateTime)]
    updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    updated_by: Option<UserRef>,
}

impl GroupHistory {
    pub(crate) const fn new(updated_at: Option<Timestamp>, updated_by: Option<UserRef>) -> Self {
        Self { locked: [], updated_at, updated_by }
    }
}

/// A value that cannot be set.
pub(crate) fn refused(unusable: UnusableSetting) -> ApiError {
    ApiError::invalid_field(unusable.key, unusable.to_string())
}
