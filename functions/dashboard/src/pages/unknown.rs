//! Addresses at which there is nothing.

use callboard_http::ApiError;
use callboard_http::extract::Caller;

/// Says so in the frame of all pages, so that people find on.
pub(crate) async fn unknown(_: Caller) -> ApiError {
    ApiError::route_not_found()
}
