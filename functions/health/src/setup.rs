//! `GET /api/setup-status`: which features of the installation are in use.

use axum::Json;
use axum::extract::State;
use callboard_http::{ApiError, AppState};
use callboard_store::instance::{self, InUse};
use serde::Serialize;
use utoipa::ToSchema;

/// A feature.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Feature {
    /// `reporter`, `fixtures`, `locator-healing`, `clustering`, `diagnosis`, `notifications`, `scm`, `tags`,
    /// `markers`, `quarantine` or `retention`.
    #[schema(example = "reporter")]
    id: &'static str,
    /// Whether it is in use.
    active: bool,
    /// What to do about it; null when it is in use.
    hint: Option<&'static str>,
}

/// Which features are in use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeatureStatus {
    /// All features, in the order in which they are usually set up.
    items: Vec<Feature>,
}

/// Which features of the installation are in use, and what to do about those
/// that are not.
#[utoipa::path(get, path = "/api/setup-status", tag = "service", operation_id = "feature_status",
    responses((status = 200, body = FeatureStatus)))]
pub(crate) async fn status(State(state): State<AppState>) -> Result<Json<FeatureStatus>, ApiError> {
    let in_use = instance::in_use(state.store().db()).await?;
    let is_kept_by_variable = *state.config().retention != Default::default();
    Ok(Json(FeatureStatus { items: features(in_use, is_kept_by_variable) }))
}

fn features(in_use: InUse, is_kept_by_variable: bool) -> Vec<Feature> {
    let InUse {
        diagnosis,
        reporter,
        fixtures,
        locators,
        clusters,
        source_control,
        tags,
        markers,
        quarantine,
        notifications,
        retention,
    } = in_use;
    [
        ("reporter", reporter, "Add callboard-reporter to playwright.config.ts."),
        ("fixtures", fixtures, "Import callboardTest from callboard-reporter, or wrap your test with extendCallboard: requests are captured then."),
        ("locator-healing", locators, "Import callboardTest from callboard-reporter, or wrap your test with extendCallboard: locators are captured then."),
        ("clustering", clusters, "Nothing has failed yet: failures are grouped as they come."),
        ("diagnosis", diagnosis, "Optional: enter a model in Settings, Diagnosis."),
        ("notifications", notifications, "Add a channel and subscribe it to events in Settings, Notifications."),
        ("scm", source_control, "Give a project a repository and a token in its settings."),
        ("tags", tags, "Give projects tags in their settings."),
        ("markers", markers, "Send a marker with each deployment: POST /api/projects/{id}/markers."),
        ("quarantine", quarantine, "Set flaky tests aside on the Quarantine tab of a project."),
        ("retention", retention || is_kept_by_variable, "By default data is kept forever. Choose what to delete in Settings, Retention."),
    ]
    .map(|(id, active, hint)| Feature { id, active, hint: (!active).then_some(hint) })
    .into()
}
