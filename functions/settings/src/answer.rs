//! What the answers of this function have in common.

use axum::Json;
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
