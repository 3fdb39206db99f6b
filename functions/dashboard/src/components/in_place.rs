//! A report, or a trace in its viewer, shown inside of a page. It can run
//! script, so it comes from the origin of untrusted content and has nothing of
//! the page around it.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_auth::grant::MAX_LIFETIME_MS;
use callboard_domain::ids::FileId;
use callboard_http::opened::file_address;
use callboard_http::{ApiError, AppState, Sandbox};
use callboard_query::files;

use crate::visit::Visit;

/// Inputs of `components/in_place.html`.
#[derive(Template)]
#[template(path = "components/in_place.html")]
pub(crate) struct InPlace {
    address: String,
    name: String,
    /// Whether the content has an origin of its own, besides ours.
    has_own_origin: bool,
}

impl HtmlSafe for InPlace {}

impl InPlace {
    fn new(state: &AppState, address: String, name: String) -> Self {
        Self { address, name, has_own_origin: *state.sandbox() != Sandbox::Opaque }
    }

    /// A report by the stored name of its entry page.
    ///
    /// # Errors
    /// When there is no such report within the reader's reach.
    pub(crate) async fn report(
        state: &AppState,
        visit: &Visit,
        path: &str,
        name: &str,
    ) -> Result<Self, ApiError> {
        let served = files::by_path(&visit.ctx, visit.scope(), path, visit.now).await?;
        let address = file_address(state, &visit.caller, &visit.site, &served, MAX_LIFETIME_MS).await?;
        Ok(Self::new(state, address, name.to_owned()))
    }

    /// A trace in the viewer of this service; `None` where there is none.
    ///
    /// # Errors
    /// When there is no such trace within the reader's reach.
    pub(crate) async fn trace(
        state: &AppState,
        visit: &Visit,
        trace: FileId,
        name: String,
    ) -> Result<Option<Self>, ApiError> {
        let served = files::by_id(&visit.ctx, visit.scope(), trace).await?;
        let address = file_address(state, &visit.caller, &visit.site, &served, MAX_LIFETIME_MS).await?;
        Ok(state.viewer_url_in_place(&visit.site, &address).map(|address| Self::new(state, address, name)))
    }
}
