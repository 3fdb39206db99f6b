//! Addresses at which browsers open what could run script: below a grant, on
//! the origin of untrusted content.

use callboard_auth::Identity;
use callboard_query::files::Served;

use crate::error::ApiError;
use crate::sandbox::Site;
use crate::state::AppState;

/// The address of a file, or of an entry of a report, for whoever asks.
///
/// # Errors
/// When the secret of grants cannot be read.
pub async fn file_address(
    state: &AppState,
    caller: &Identity,
    site: &Site,
    served: &Served,
    lifetime_ms: i64,
) -> Result<String, ApiError> {
    let grants = state.grants().await?;
    let grant = grants
        .seal(
            served.project,
            &served.grant_target,
            caller.link_holder(),
            &state.sandbox().audience(site),
            state.now(),
            lifetime_ms,
        )
        .map_err(ApiError::internal)?;
    Ok(state.sandbox().file_url(site, &grant, &served.granted_path))
}
