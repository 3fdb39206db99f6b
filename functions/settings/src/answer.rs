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
