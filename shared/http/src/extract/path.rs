//! Typed pieces of the path.

use axum::extract::{FromRequestParts, RawPathParams};
use callboard_auth::Grant;
use callboard_domain::ids::{
    ApiKeyId, ChannelId, ClusterId, ClusterSuggestionId, DeletionId, DeliveryId, DiagnosisId, ExecutionId,
    ExportId, FileId, GatePolicyId, InvitationId, LinkId, MarkerId, ProjectId, ReportId, RunId,
    SubscriptionId, TagId, TestCaseId, TestFunctionId, UserId,
};
use http::request::Parts;

use crate::error::ApiError;
use crate::sandbox::Door;
use crate::state::AppState;

/// An id that paths and queries carry.
pub trait EntityId: Sized {
    /// The entity as error codes spell it.
    const ENTITY: &'static str;

    /// Reads the id strictly.
    fn parse_id(text: &str) -> Option<Self>;

    /// Whether what it names is part of a run, where the path names one too.
    fn is_of(&self, _run: RunId) -> bool {
        true
    }

    /// 400 `invalid_<entity>_id`.
    #[must_use]
    fn invalid() -> ApiError {
        let entity = Self::ENTITY;
        let words = entity.replace('_', " ");
        ApiError::bad_request(
            format!("invalid_{entity}_id"),
            format!("The {words} id must be a positive whole number."),
        )
    }
}

macro_rules! entity_ids {
    ($($id:ident => $entity:literal),+ $(,)?) => {$(
        impl EntityId for $id {
            const ENTITY: &'static str = $entity;

            fn parse_id(text: &str) -> Option<Self> {
                Self::parse(text)
            }
        }
    )+};
}

entity_ids! {
    ProjectId => "project",
    RunId => "run",
    TestCaseId => "test_case",
    ClusterId => "cluster",
    ClusterSuggestionId => "suggestion",
    FileId => "file",
    ReportId => "report",
    UserId => "user",
    ApiKeyId => "api_key",
    InvitationId => "invitation",
    GatePolicyId => "policy",
    TagId => "tag",
    LinkId => "link",
    MarkerId => "marker",
    TestFunctionId => "function",
    DeletionId => "deletion",
    ExportId => "export",
    ChannelId => "channel",
    SubscriptionId => "subscription",
    DeliveryId => "delivery",
    DiagnosisId => "diagnosis",
}

impl EntityId for ExecutionId {
    const ENTITY: &'static str = "execution";

    fn parse_id(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn is_of(&self, run: RunId) -> bool {
        self.run() == run
    }
}

/// The `{id}` of the path; below a run, its `{caseId}`, which is 404 when it
/// belongs to another run.
#[derive(Debug, Clone, Copy)]
pub struct Path<T>(pub T);

impl<T: EntityId, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = param(parts, state, "id").await;
        let Some(below) = param(parts, state, "caseId").await else {
            return text.and_then(|text| T::parse_id(&text)).map(Self).ok_or_else(T::invalid);
        };
        let run = text.and_then(|text| RunId::parse_id(&text)).ok_or_else(RunId::invalid)?;
        let id = T::parse_id(&below).ok_or_else(T::invalid)?;
        if id.is_of(run) { Ok(Self(id)) } else { Err(ApiError::not_found(T::ENTITY)) }
    }
}

/// The `{*path}` of the path: decoded once, without empty, `.` or `..`
/// segments, backslashes or control characters.
#[derive(Debug, Clone)]
pub struct Tail(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Tail {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = param(parts, state, "path").await.ok_or_else(ApiError::route_not_found)?;
        let is_plain = path.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
            && !path.chars().any(|char| char == '\\' || char.is_control());
        if is_plain { Ok(Self(path)) } else { Err(ApiError::route_not_found()) }
    }
}

/// An opened file grant: the `{grant}` of the path. A grant that opens nothing
/// is 404, as an unknown file is.
#[derive(Debug, Clone)]
pub struct Granted(pub Grant);

impl FromRequestParts<AppState> for Granted {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let token = param(parts, state, "grant").await.ok_or_else(ApiError::route_not_found)?;
        let door = parts.extensions.get::<Door>().copied().unwrap_or(Door::Main);
        let named = state.gate().effective_origin(&parts.headers);
        let audiences = state.sandbox().audiences(door, named.as_ref());
        state.grants().await?.open(&token, &audiences, state.now()).map(Self).map_err(|refusal| {
            ApiError::new(http::StatusCode::NOT_FOUND, "file_not_found", refusal.to_string())
        })
    }
}

/// A decoded path parameter; `None` when it is missing or not UTF-8.
async fn param<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
