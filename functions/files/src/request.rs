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
}

struct Wishes {
    download: bool,
    viewer: bool,
}

impl FromQuery for Wishes {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let wish = |name| Ok::<_, ApiError>(query.flag(name)?.unwrap_or(false));
        Ok(Self { download: wish("download")?, viewer: wish("viewer")? })
    }
}

impl<S: Sync> FromRequestParts<S> for FileRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Query(Wishes { download, viewer }) = Query::from_request_parts(parts, state).await?;
        Ok(Self { method: parts.method.clone(), headers: parts.headers.clone(), download, viewer })
    }
}
