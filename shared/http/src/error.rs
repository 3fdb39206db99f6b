//! The one error of the HTTP surface: a status, a code, a sentence. Causes go
//! to the log once, with the request id; they never reach the client.

use std::borrow::Cow;
use std::error::Error;

use axum::response::{IntoResponse, Response};
use callboard_domain::ids::ProjectId;
use callboard_store::audit::Target;
use callboard_store::memory_budget::BudgetExhausted;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::request_id;

/// Seconds after which a client may try again when the database or the object
/// store is away.
const RETRY_AFTER_SECONDS: &str = "5";

/// The message of a write that demo mode refuses.
pub const DEMO_REFUSAL: &str = "This is a demo: you can look at everything, nothing can be changed.";

/// The body of every error.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// Always true.
    pub error: bool,
    /// The HTTP status.
    #[schema(example = 404)]
    pub status_code: u16,
    /// What happened, for programs.
    #[schema(example = "run_not_found")]
    pub code: String,
    /// What happened, for people.
    #[schema(example = "There is no such run.")]
    pub message: String,
    /// What programs need besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub data: Option<Value>,
}

/// An error answer.
#[derive(Debug)]
pub struct ApiError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    data: Option<Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
    cause: Option<Box<dyn Error + Send + Sync>>,
    target: Option<(Target, ProjectId)>,
}

impl ApiError {
    /// An error with a code of the contract and a sentence for people.
    #[must_use]
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Inner {
            status,
            code: code.into(),
            message: message.into(),
            data: None,
            headers: Vec::new(),
            cause: None,
            target: None,
        }))
    }

    /// Adds what programs need besides the sentence.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.0.data = Some(data);
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Adds the cause for the log.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Adds what was refused and its project, for the audit log.
    #[must_use]
    pub(crate) fn about(mut self, target: Target, project: ProjectId) -> Self {
        self.0.target = Some((target, project));
        self
    }

    /// 400 with any code.
    #[must_use]
    pub fn bad_request(code: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 400 `invalid_query`: a parameter has a value it cannot have.
    #[must_use]
    pub fn invalid_query(param: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::bad_request("invalid_query", message).with_data(json!({ "param": param }))
    }

    /// 400 `invalid_cursor`.
    #[must_use]
    pub fn invalid_cursor() -> Self {
        Self::bad_request("invalid_cursor", "The cursor does not belong to this list with these filters.")
    }

    /// 400 `invalid_json`.
    #[must_use]
    pub fn invalid_json(message: impl Into<Cow<'static, str>>) -> Self {
        Self::bad_request("invalid_json", message)
    }

    /// 400 `invalid_body`: the JSON does not have the form asked for.
    #[must_use]
    pub fn invalid_body(path: &str, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        let issues = json!({ "issues": [{ "path": path, "message": message }] });
        Self::bad_request("invalid_body", message).with_data(issues)
    }

    /// 400 `invalid_multipart`.
    #[must_use]
    pub fn invalid_multipart(message: impl Into<Cow<'static, str>>) -> Self {
        Self::bad_request("invalid_multipart", message)
    }

    /// 400 `missing_field` with the names in `data.fields` and, as for a field
    /// that is there, the first of them in `data.field`.
    #[must_use]
    pub fn missing_fields(fields: &[&str]) -> Self {
        let names = fields.join(", ");
        Self::bad_request("missing_field", format!("Required and missing: {names}."))
            .with_data(json!({ "field": fields.first(), "fields": fields }))
    }

    /// 400 `invalid_field` with the name in `data.field`.
    #[must_use]
    pub fn invalid_field(field: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::bad_request("invalid_field", message).with_data(json!({ "field": field }))
    }

    /// 404 `<entity>_not_found`; the entity as the contract spells it.
    #[must_use]
    pub fn not_found(entity: &str) -> Self {
        let words = entity.replace('_', " ");
        Self::new(StatusCode::NOT_FOUND, format!("{entity}_not_found"), format!("There is no such {words}."))
    }

    /// 404 `route_not_found`.
    #[must_use]
    pub fn route_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "route_not_found", "There is nothing at this address.")
    }

    /// 405 `method_not_allowed`; the router adds `Allow`.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "This address does not accept that method; Allow names those it does.",
        )
    }

    /// 413 `body_too_large` with the limit in `data.limit`, bytes.
    #[must_use]
    pub fn body_too_large(limit_bytes: u64) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("The body is larger than the {limit_bytes} bytes accepted here."),
        )
        .with_data(json!({ "limit": limit_bytes }))
    }

    /// 413 `body_too_large` for a run in one body, which can be sent in parts.
    #[must_use]
    pub fn run_too_large(limit_bytes: u64) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!(
                "The run is larger than the {limit_bytes} bytes accepted in one body. Send it in parts: open it with POST \
                 /api/test-runs/start, send its results to /api/test-runs/{{id}}/events, then finish it."
            ),
        )
        .with_data(json!({ "limit": limit_bytes }))
    }

    /// 413 `too_many_items` with the limit in `data.limit`.
    #[must_use]
    pub fn too_many_items(what: &str, limit: u64) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_items", format!("More than {limit} {what}."))
            .with_data(json!({ "limit": limit }))
    }

    /// 415 `unsupported_media_type`.
    #[must_use]
    pub fn unsupported_media_type(accepted: &str) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            format!("The body must be sent as {accepted}."),
        )
    }

    /// 500 `internal_error`: our fault; the cause is logged.
    #[must_use]
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something went wrong on our side; the log has the details under this reference.",
        )
        .caused_by(cause)
    }

    /// 403 `demo_mode`.
    #[must_use]
    pub fn demo_mode() -> Self {
        Self::new(StatusCode::FORBIDDEN, "demo_mode", DEMO_REFUSAL)
    }

    /// 503 `database_unavailable`.
    #[must_use]
    pub fn database_unavailable() -> Self {
        Self::unavailable("database_unavailable", "The database does not answer; please try again.")
    }

    /// 503 `storage_unavailable`.
    #[must_use]
    pub fn storage_unavailable() -> Self {
        Self::unavailable("storage_unavailable", "The file storage does not answer; please try again.")
    }

    /// 503 `busy`: other requests hold the memory that this one takes.
    #[must_use]
    pub fn busy() -> Self {
        Self::unavailable(
            "busy",
            "Too many large requests are being handled; please send this one again in a few seconds.",
        )
    }

    /// 503 for a write when a version that is more than one release newer migrated the database.
    #[must_use]
    pub fn version_too_old() -> Self {
        Self::unavailable("database_unavailable", callboard_store::BUILD_TOO_OLD)
    }

    /// 503 for a write while migrations are pending.
    #[must_use]
    pub fn migration_pending() -> Self {
        Self::unavailable(
            "database_unavailable",
            "The database waits for a migration (`callboard migrate`); nothing can be written until then.",
        )
    }

    /// 503 `auth_mode_differs`: another process requires sign-in, this one does not.
    #[must_use]
    pub(crate) fn auth_mode_differs() -> Self {
        Self::unavailable(
            "auth_mode_differs",
            "Another process of this service requires sign-in, and this one does not. \
             Set SERVICE_AUTH_ENABLED=true for all of them.",
        )
    }

    pub(crate) fn unavailable(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
            .with_header(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS))
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// The sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The body of the answer.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let mut data = self.0.data.clone();
        if self.0.status == StatusCode::INTERNAL_SERVER_ERROR {
            data.get_or_insert_with(|| json!({}))["reference"] = Value::String(request_id::current());
        }
        ErrorBody {
            error: true,
            status_code: self.0.status.as_u16(),
            code: self.0.code.to_string(),
            message: self.0.message.to_string(),
            data,
        }
    }

    fn log(&self) {
        let Some(cause) = &self.0.cause else { return };
        let request = request_id::current();
        let code = &*self.0.code;
        if self.0.status.is_server_error() {
            tracing::error!(request, code, cause = %Chain(cause.as_ref()), "request failed");
        } else {
            tracing::debug!(request, code, cause = %Chain(cause.as_ref()), "request refused");
        }
    }
}

/// An error with its sources on one line.
struct Chain<'e>(&'e (dyn Error + Send + Sync));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        f.write_str(&text)?;
        let mut source = self.0.source();
        let mut last = text;
        while let Some(error) = source {
            let text = error.to_string();
            // Many errors already repeat their source.
            if !last.contains(&text) {
                write!(f, ": {text}")?;
            }
            last = text;
            source = error.source();
        }
        Ok(())
    }
}

impl From<BudgetExhausted> for ApiError {
    fn from(_: BudgetExhausted) -> Self {
        Self::busy()
    }
}

/// The code of an error and what it is about, for what looks at answers on
/// their way out.
#[derive(Debug, Clone)]
pub(crate) struct RefusedWith {
    pub(crate) code: Cow<'static, str>,
    pub(crate) target: Option<(Target, ProjectId)>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let mut response = (self.0.status, axum::Json(self.body())).into_response();
        response.extensions_mut().insert(RefusedWith { code: self.0.code.clone(), target: self.0.target });
        for (name, value) in self.0.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn our_own_faults_carry_a_reference_and_no_cause() {
        let error = ApiError::internal("SELECT secret FROM t failed");
        let body = request_id::scope("abc".to_owned(), async { error.body() }).await;
        assert_eq!(body.data, Some(json!({ "reference": "abc" })));
        assert!(!format!("{body:?}").contains("SELECT"));
    }

    #[test]
    fn an_unreachable_database_is_503_with_retry_after() {
        let response = ApiError::database_unavailable().into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "5");
    }

    #[test]
    fn entities_are_spelled_as_the_contract_does() {
        let error = ApiError::not_found("test_case");
        assert_eq!((error.code(), error.message()), ("test_case_not_found", "There is no such test case."));
    }
}
