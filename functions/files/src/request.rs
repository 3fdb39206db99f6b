//! What both routes read out of a request besides the path.

use axum::extract::FromRequestParts;
use callboard_http::ApiError;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use http::request::Parts;
use http::{HeaderMap, Method};

/// How the bytes are asked for.
#[derive(Debug)]
pub(crate) struct FileRequest {
    /// GET or HEAD.
    pub method: Method,
    /// The headers, for conditions and ranges.
    pub headers: HeaderMap,
    /// Whether the bytes are wanted as a file to save.
    pub download: bool,
    /// Whether a trace is wanted in the viewer.
    pub viewer: bool,
    /// Whether the bytes may come from an address of the object store.
    pub may_redirect: bool,
}

struct Wishes {
    download: bool,
    viewer: bool,
    may_redirect: bool,
}

impl FromQuery for Wishes {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let wish = |name| Ok::<_, ApiError>(query.flag(name)?.unwrap_or(false));
        let never = query.one_of("redirect", &[("never", ())])?;
        Ok(Self { download: wish("download")?, viewer: wish("viewer")?, may_redirect: never.is_none() })
    }
}

impl<S: Sync> FromRequestParts<S> for FileRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Query(Wishes { download, viewer, may_redirect }) =
            Query::from_request_parts(parts, state).await?;
        Ok(Self {
            method: parts.method.clone(),
            headers: parts.headers.clone(),
            download,
            viewer,
            may_redirect,
        })
    }
}
