//! Function `analytics`: what stored counts say about flaky and slow tests, and
//! about projects over time.
//!
//! Lives here: `/api/projects/{id}/flaky-tests` and its neighbours,
//! `/api/analytics/…`. Must not live here: SQL, statistics.

mod durations;
mod flaky;
mod kept;
mod widgets;

use axum::Router;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state)
        .on(RouteId::FlakyTests, flaky::flaky_tests)
        .on(RouteId::ClassifyFlaky, flaky::classify)
        .on(RouteId::SlowTests, durations::slow_tests)
        .on(RouteId::Performance, durations::performance)
        .on(RouteId::SpecHealth, durations::spec_health)
        .on(RouteId::TimeoutOpportunities, durations::timeout_opportunities)
        .on(RouteId::ProjectDaily, durations::daily)
        .on(RouteId::PortfolioWidget, widgets::portfolio)
        .on(RouteId::PassRateWidget, widgets::pass_rate_heatmap)
        .on(RouteId::FlakyWidget, widgets::flaky_leaderboard)
        .on(RouteId::WasteWidget, widgets::wasted_time)
        .on(RouteId::CiTimeWidget, widgets::ci_time_trend)
        .on(RouteId::RegressionsWidget, widgets::regression_velocity)
        .on(RouteId::EndpointsWidget, widgets::slow_endpoints)
        .on(RouteId::ClustersWidget, widgets::cluster_landscape)
        .on(RouteId::InsightsWidget, widgets::insights)
        .on(RouteId::BrowsersWidget, widgets::browser_matrix)
        .into_router()
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(
            flaky::flaky_tests,
            flaky::classify,
            durations::slow_tests,
            durations::performance,
            durations::spec_health,
            durations::timeout_opportunities,
            durations::daily,
            widgets::portfolio,
            widgets::pass_rate_heatmap,
            widgets::flaky_leaderboard,
            widgets::wasted_time,
            widgets::ci_time_trend,
            widgets::regression_velocity,
            widgets::slow_endpoints,
            widgets::browser_matrix,
            widgets::cluster_landscape,
            widgets::insights
        ),
        tags((name = "analytics", description = "Flaky and slow tests, and projects over time"))
    )]
    struct Document;
    Document::openapi()
}
