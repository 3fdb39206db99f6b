//! How the errors of the layers below are answered: their status on the wire.
//! Codes and sentences come from where the error does.

use callboard_auth::Denied;
use callboard_auth::gate::GateRefusal;
use callboard_domain::ingest::{BodyError, FieldError};
use callboard_query::QueryError;
use callboard_store::StoreError;
use http::StatusCode;
use serde_json::json;

use crate::error::ApiError;

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::RunFull) {
            return Self::too_many_items(
                "The run",
                callboard_domain::ids::MAX_EXECUTIONS_PER_RUN.unsigned_abs(),
            );
        }
        let answer = match (error.is_unavailable(), error.is_storage()) {
            (true, true) => Self::storage_unavailable(),
            (true, false) => Self::database_unavailable(),
            (false, _) => return Self::internal(error),
        };
        answer.caused_by(error)
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::NotFound { entity, .. } => {
                let code = format!("{}_not_found", entity.word());
                Self::new(StatusCode::NOT_FOUND, code, error.to_string())
            }
            QueryError::Denied(denied) => denied.into(),
            QueryError::Field(field) => field.into(),
            QueryError::HashMismatch { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "hash_mismatch", error.to_string())
            }
            QueryError::TooMany { what, limit } => Self::too_many_items(what, limit as u64),
            QueryError::Store(store) => store.into(),
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let answer = Self::bad_request(error.code(), error.to_string());
        match error {
            BodyError::NotAList => answer.with_data(json!({ "field": "testCases" })),
            BodyError::TooMany { limit } => Self::too_many_items("testCases", limit as u64),
            BodyError::InvalidUtf8(_) | BodyError::InvalidJson { .. } | BodyError::NotAnObject => answer,
        }
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        let answer = Self::bad_request(error.code(), error.to_string());
        match error {
            FieldError::Missing { fields } => answer.with_data(json!({ "fields": fields })),
            FieldError::Invalid { field, .. } => answer.with_data(json!({ "field": field })),
            FieldError::InvalidProjectName { .. } => answer.with_data(json!({ "field": "projectName" })),
            FieldError::InvalidShard { .. } => answer,
        }
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let status = match denied {
            Denied::AuthenticationRequired => StatusCode::UNAUTHORIZED,
            Denied::InsufficientRole | Denied::ProjectAccessDenied | Denied::ProjectCreationForbidden => {
                StatusCode::FORBIDDEN
            }
        };
        Self::new(status, denied.code(), denied.to_string())
    }
}

impl From<GateRefusal> for ApiError {
    fn from(refusal: GateRefusal) -> Self {
        let status = match refusal {
            GateRefusal::Host => StatusCode::MISDIRECTED_REQUEST,
            GateRefusal::Origin => StatusCode::FORBIDDEN,
        };
        Self::new(status, refusal.code(), refusal.to_string())
    }
}
