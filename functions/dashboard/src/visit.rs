//! What every page needs to be asked for and shown: who looks at it, where
//! they are, what time it is, and how to ask questions for them.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::bidi::visible_html;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_http::extract::Caller;
use callboard_http::{ApiError, AppState, Site};
use callboard_query::page::Total;
use callboard_query::projects::ProjectFilters;
use callboard_query::shapes::Facets;
use callboard_query::{Context, projects};
use http::HeaderName;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;

use crate::address::Address;
use crate::assets::Asset;

/// Values each filter of a list offers.
pub(crate) const OFFERED: usize = 100;
const SPECULATION_RULES: HeaderName = HeaderName::from_static("speculation-rules");

/// One look at one page.
#[derive(Debug)]
pub(crate) struct Visit {
    /// What questions are asked with.
    pub ctx: Context,
    /// Who is looking.
    pub caller: Caller,
    /// The address people know this service by.
    pub site: Site,
    /// Where they are.
    pub address: Address,
    /// When.
    pub now: Timestamp,
    /// Whether everyone can do everything although there are accounts.
    pub is_open_despite_accounts: bool,
    /// Whether this is a read-only demo.
    pub is_demo: bool,
}

impl FromRequestParts<AppState> for Visit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let site = Site::from_request_parts(parts, state).await?;
        Ok(Self::new(state, caller, site, Address::from_uri(&parts.uri)))
    }
}

impl Visit {
    /// A look of somebody at an address, now.
    pub(crate) fn new(state: &AppState, caller: Caller, site: Site, address: Address) -> Self {
        Self {
            ctx: state.context(&site),
            caller,
            site,
            address,
            now: state.now(),
            is_demo: state.config().demo,
            is_open_despite_accounts: state.is_open_despite_accounts(),
        }
    }

    /// By what the runs and tests of a project can be narrowed.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) async fn facets(&self, project: Authorized<ProjectId>) -> Result<Facets, ApiError> {
        Ok(projects::facets(&self.ctx, project, None, OFFERED).await?)
    }

    /// How many projects this person sees under the filters of a list, when the
    /// list shows a part of them.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) async fn total_projects(
        &self,
        filters: &ProjectFilters,
        goes_on: bool,
    ) -> Result<Option<Total>, ApiError> {
        if !self.address.is_part(goes_on) {
            return Ok(None);
        }
        if filters.contains.is_some() || filters.tag.is_some() || filters.standing.is_some() {
            return Ok(projects::total(&self.ctx, self.scope(), filters).await?);
        }
        let total = match self.scope().projects() {
            Some(own) => i64::try_from(own.len()).ok(),
            None => Some(projects::instance_totals(&self.ctx).await?.projects),
        };
        Ok(total.map(Total::Exactly))
    }

    /// How many rows a list of a project has on all its pages, when that was
    /// counted as they came and the list shows a part of them; `None` where
    /// retention deleted runs, which takes their rows and not what was counted.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) async fn ever_counted(
        &self,
        project: Authorized<ProjectId>,
        count: i64,
        goes_on: bool,
    ) -> Result<Option<Total>, ApiError> {
        if !self.address.is_part(goes_on) {
            return Ok(None);
        }
        let runs = projects::run_counts(&self.ctx, project).await?;
        Ok((runs.kept_runs == runs.total_runs).then_some(Total::Exactly(count)))
    }

    /// Where the runs of a project ran, and nothing about its tests.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) async fn places(&self, project: Authorized<ProjectId>) -> Result<Facets, ApiError> {
        Ok(projects::places(&self.ctx, project, None, OFFERED).await?)
    }

    /// The projects this person sees.
    pub(crate) fn scope(&self) -> &Scope {
        self.caller.scope()
    }
}

/// Renders a page. Its content belongs to whoever asked, and is asked for
/// again every time.
pub(crate) fn answer(page: &impl Template) -> Result<Response, ApiError> {
    let html = visible_html(page.render().map_err(ApiError::internal)?);
    // The header holds an address as a quoted string.
    let rules = format!("\"{}\"", Asset::Speculation.url());
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "private, no-cache"),
        (SPECULATION_RULES, rules.as_str()),
    ];
    Ok((headers, html).into_response())
}
