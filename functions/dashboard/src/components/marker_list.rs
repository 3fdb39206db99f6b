//! Markers: what happened around a project, on the time lines of its charts
//! and as a list.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_auth::scope::Authorized;
use callboard_domain::annotations::MarkerCategory;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_query::markers::{self, Marker, MarkerFilters};

use crate::filters;
use crate::text::date_and_time;
use crate::visit::Visit;

/// Markers that charts and the list show; REST lists the rest.
const SHOWN: usize = 60;

/// The kinds as people read them.
const KINDS: [(MarkerCategory, &str); 6] = [
    (MarkerCategory::Deploy, "Deployment"),
    (MarkerCategory::Release, "Release"),
    (MarkerCategory::Config, "Configuration"),
    (MarkerCategory::Infra, "Infrastructure"),
    (MarkerCategory::Incident, "Incident"),
    (MarkerCategory::Event, "Event"),
];

/// A kind as people read it.
fn kind(category: &str) -> &'static str {
    KINDS.into_iter().find(|(each, _)| each.as_str() == category).map_or("Event", |(_, word)| word)
}

/// A marker in one sentence.
pub(crate) fn spoken(marker: &Marker) -> String {
    let place = marker.environment.as_ref().map(|place| format!(" in {place}")).unwrap_or_default();
    format!("{}: {}{place}, {}", kind(marker.category), marker.label, date_and_time(marker.occurred_at))
}

/// Inputs of `components/marker_list.html`.
#[derive(Template)]
#[template(path = "components/marker_list.html")]
pub(crate) struct MarkerList {
    markers: Vec<Marker>,
    project: i64,
    may_edit: bool,
    now: Timestamp,
}

impl HtmlSafe for MarkerList {}

impl MarkerList {
    /// The markers of a project since a moment, newest first: those of one
    /// environment with those that are meant for all, else all of them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) async fn since(
        visit: &Visit,
        project: Authorized<ProjectId>,
        from: Timestamp,
        environment: Option<&str>,
    ) -> Result<Self, ApiError> {
        let filters = MarkerFilters { from: Some(from), ..MarkerFilters::default() };
        let found = markers::list(&visit.ctx, project, filters, None, SHOWN).await?;
        let concerns = |marker: &Marker| match (environment, &marker.environment) {
            (Some(asked), Some(named)) => asked == named,
            _ => true,
        };
        Ok(Self {
            markers: found.items.into_iter().filter(concerns).collect(),
            project: project.get().get(),
            may_edit: visit.caller.may_triage(),
            now: visit.now,
        })
    }

    const fn kinds(&self) -> [(MarkerCategory, &'static str); 6] {
        KINDS
    }

    /// The markers, for charts.
    pub(crate) fn markers(&self) -> &[Marker] {
        &self.markers
    }
}
