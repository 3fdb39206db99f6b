//! How the errors of the layers below are answered: their status on the wire.
//! Codes and sentences come from where the error does.

use callboard_auth::Denied;
use callboard_auth::gate::GateRefusal;
use callboard_auth::keys::SealingFailed;
use callboard_auth::sealed::SecretUnusable;
use callboard_domain::ingest::{BodyError, FieldError};
use callboard_platform::hash_pool::Busy;
use callboard_query::accounts::refusal::AccountRefusal;
use callboard_query::accounts::rule::AccountRule;
use callboard_query::administration::AdministrationRule;
use callboard_query::diagnoses::{DiagnosisError, ModelError};
use callboard_query::limits::LimitError;
use callboard_query::scm::{ScmError, SourceControlError};
use callboard_query::{QueryError, TokenRefusal};
use callboard_store::StoreError;
use callboard_store::audit::Target;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
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
        if matches!(error, StoreError::ProjectGone) {
            return Self::not_found("project").caused_by(error);
        }
        if matches!(error, StoreError::RunGone) {
            return Self::not_found("run").caused_by(error);
        }
        let answer = match (error.is_unavailable(), error.is_storage()) {
            (true, true) => Self::storage_unavailable(),
            (true, false) => Self::database_unavailable(),
            (false, _) => return Self::internal(error),
        };
        answer.caused_by(error)
    }
}

impl From<Busy> for ApiError {
    fn from(busy: Busy) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", busy.to_string())
            .with_header(RETRY_AFTER, HeaderValue::from_static("1"))
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
            QueryError::OutOfScope { entity, id, project } => {
                let target = Target { kind: entity.audit_kind(), id };
                Self::from(Denied::ProjectAccessDenied).about(target, project)
            }
            QueryError::Field(field) => field.into(),
            QueryError::HashMismatch { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "hash_mismatch", error.to_string())
            }
            QueryError::Token(refusal) => {
                let status = match refusal {
                    TokenRefusal::Missing => StatusCode::UNAUTHORIZED,
                    TokenRefusal::Invalid | TokenRefusal::Expired | TokenRefusal::Revoked => {
                        StatusCode::FORBIDDEN
                    }
                };
                Self::new(status, refusal.code(), refusal.to_string())
            }
            QueryError::Life(refusal) => Self::new(StatusCode::CONFLICT, refusal.code(), refusal.to_string()),
            QueryError::CaseNotFound => Self::new(StatusCode::NOT_FOUND, "case_not_found", error.to_string()),
            QueryError::BlobMissing => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "blob_missing", error.to_string())
            }
            QueryError::TicketNotFound => {
                Self::new(StatusCode::NOT_FOUND, "ticket_not_found", error.to_string())
            }
            QueryError::TicketUsed => Self::new(StatusCode::CONFLICT, "ticket_used", error.to_string()),
            QueryError::ReportInProgress => Self::unavailable("report_in_progress", error.to_string()),
            QueryError::TooMany { what, limit } => Self::too_many_items(what, limit as u64),
            QueryError::Account(refusal) => refusal.into(),
            QueryError::Rule(rule) => rule.into(),
            QueryError::Administration(rule) => rule.into(),
            QueryError::Secret(unusable) => unusable.into(),
            QueryError::Sealing(failed) => Self::internal(failed),
            QueryError::Store(store) => store.into(),
        }
    }
}

impl From<AccountRefusal> for ApiError {
    fn from(refusal: AccountRefusal) -> Self {
        let status = match refusal {
            AccountRefusal::InvalidCredentials | AccountRefusal::WrongCurrentPassword => {
                StatusCode::UNAUTHORIZED
            }
            AccountRefusal::ReauthenticationRequired => StatusCode::FORBIDDEN,
            AccountRefusal::NoAddress => StatusCode::CONFLICT,
            AccountRefusal::SmtpNotConfigured => StatusCode::SERVICE_UNAVAILABLE,
            AccountRefusal::AuthDisabled
            | AccountRefusal::SetupUnavailable
            | AccountRefusal::InvalidOrExpiredToken
            | AccountRefusal::Field { .. } => StatusCode::BAD_REQUEST,
        };
        let answer = Self::new(status, refusal.code(), refusal.to_string());
        match refusal {
            AccountRefusal::Field { field, .. } => answer.with_data(json!({ "field": field })),
            AccountRefusal::WrongCurrentPassword => answer.with_data(json!({ "field": "currentPassword" })),
            _ => answer,
        }
    }
}

impl From<AccountRule> for ApiError {
    fn from(rule: AccountRule) -> Self {
        let status = if rule.is_conflict() { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
        Self::new(status, rule.code(), rule.to_string())
    }
}

impl From<AdministrationRule> for ApiError {
    fn from(rule: AdministrationRule) -> Self {
        let status = if rule.is_conflict() { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
        let answer = Self::new(status, rule.code(), rule.to_string());
        match rule {
            AdministrationRule::NotConfirmed => answer.with_data(json!({ "field": "confirm" })),
            AdministrationRule::ModelKeyOfAnotherAddress { field }
            | AdministrationRule::ModelIncomplete { field } => answer.with_data(json!({ "field": field })),
            AdministrationRule::NoModel => answer.with_data(json!({ "field": "enabled" })),
            AdministrationRule::TokenOfAnotherHost => answer.with_data(json!({ "field": "scmToken" })),
            AdministrationRule::SharedTokenOfAnotherHost => answer.with_data(json!({ "field": "token" })),
            AdministrationRule::RepositoriesOfSeveralHosts => {
                answer.with_data(json!({ "field": "repositories" }))
            }
            AdministrationRule::ProviderOfAnotherHost => {
                answer.with_data(json!({ "field": "repositoryProvider" }))
            }
            AdministrationRule::SettingLocked { key, variable } => {
                answer.with_data(json!({ "key": key, "variable": variable }))
            }
            _ => answer,
        }
    }
}

impl From<SecretUnusable> for ApiError {
    fn from(unusable: SecretUnusable) -> Self {
        match unusable {
            SecretUnusable::NotConfigured => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "secret_key_not_configured", unusable.to_string())
                    .with_data(json!({ "setting": "SERVICE_SECRET_KEY" }))
            }
            SecretUnusable::UnknownForm | SecretUnusable::DoesNotOpen | SecretUnusable::Sealing(_) => {
                Self::internal(unusable)
            }
        }
    }
}

impl From<SourceControlError> for ApiError {
    fn from(error: SourceControlError) -> Self {
        let message = error.to_string();
        match error {
            SourceControlError::NotConfigured(missing) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_configured", message)
                    .with_data(json!({ "setting": missing.setting() }))
            }
            SourceControlError::Upstream { provider, error } => {
                let until = match &error {
                    ScmError::RateLimited { until, .. } => *until,
                    _ => None,
                };
                let data =
                    json!({ "provider": provider.as_str(), "status": error.status(), "retryAt": until });
                Self::new(StatusCode::BAD_GATEWAY, "upstream_failed", message).with_data(data)
            }
            SourceControlError::Query(error) => error.into(),
        }
    }
}

impl From<DiagnosisError> for ApiError {
    fn from(error: DiagnosisError) -> Self {
        let message = error.to_string();
        match error {
            DiagnosisError::NotConfigured(missing) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_configured", message)
                    .with_data(json!({ "setting": missing.setting() }))
            }
            DiagnosisError::Upstream(error) => {
                let until = match &error {
                    ModelError::RateLimited { until, .. } => *until,
                    _ => None,
                };
                let data = json!({ "reason": error.code(), "status": error.status(), "retryAt": until });
                Self::new(StatusCode::BAD_GATEWAY, "upstream_failed", message).with_data(data)
            }
            DiagnosisError::Query(error) => error.into(),
        }
    }
}

impl From<SealingFailed> for ApiError {
    fn from(failed: SealingFailed) -> Self {
        Self::internal(failed)
    }
}

impl From<LimitError> for ApiError {
    fn from(error: LimitError) -> Self {
        let message = error.to_string();
        match error {
            LimitError::Limited { retry_after_seconds } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
                    .with_header(RETRY_AFTER, HeaderValue::from(retry_after_seconds))
            }
            LimitError::Store(store) => store.into(),
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let answer = Self::bad_request(error.code(), error.to_string());
        match error {
            BodyError::NotAList => answer.with_data(json!({ "field": "testCases" })),
            BodyError::TooMany { limit } => Self::too_many_items("testCases", limit as u64),
            BodyError::Unreadable(_) => Self::internal(error),
            BodyError::InvalidUtf8(_) | BodyError::InvalidJson { .. } | BodyError::NotAnObject => answer,
        }
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        let answer = Self::bad_request(error.code(), error.to_string());
        match error {
            FieldError::Missing { fields } => {
                answer.with_data(json!({ "field": fields.first(), "fields": fields }))
            }
            FieldError::Invalid { field, .. } => answer.with_data(json!({ "field": field })),
            FieldError::InvalidProjectName { .. } => answer.with_data(json!({ "field": "projectName" })),
            FieldError::InvalidShard { .. } => {
                answer.with_data(json!({ "field": "shardIndex", "fields": ["shardIndex", "shardTotal"] }))
            }
        }
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let status = match denied {
            Denied::AuthenticationRequired | Denied::InvalidApiKey => StatusCode::UNAUTHORIZED,
            Denied::InsufficientRole
            | Denied::SessionRequired
            | Denied::KeyScopeDenied
            | Denied::ProjectAccessDenied
            | Denied::ProjectCreationForbidden => StatusCode::FORBIDDEN,
        };
        let answer = Self::new(status, denied.code(), denied.to_string());
        match denied {
            Denied::AuthenticationRequired => {
                answer.with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"callboard\""))
            }
            Denied::InvalidApiKey => answer.with_header(
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"callboard\", error=\"invalid_token\""),
            ),
            _ => answer,
        }
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
