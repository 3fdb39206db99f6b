//! `/settings/retention`: when data is deleted in projects that set nothing of
//! their own.

use askama::Template;
use axum::response::Response;
use callboard_http::ApiError;
use callboard_query::retention::{self, InstanceRetention};

use crate::components::{RetentionForm, RetentionPending, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// The call that undoes a pending change of the installation's policy.
pub(crate) const UNDO: &str = "DELETE /api/settings/retention/pending";

/// Inputs of `pages/retention.html`.
#[derive(Template)]
#[template(path = "pages/retention.html")]
struct RetentionPage {
    shell: Shell,
    tabs: SettingsTabs,
    found: InstanceRetention,
    /// Changes that are not in force yet.
    pending: Vec<RetentionPending>,
    policy: RetentionForm,
}

/// When data is deleted; for administrators.
pub(crate) async fn retention(visit: Visit) -> Result<Response, ApiError> {
    let mut found = retention::of_instance(&visit.ctx).await?;
    let locked: Vec<&'static str> = found.locked.iter().map(|each| each.key).collect();
    let shell = Shell::new(&visit, Section::Settings, "Retention").await?;
    let by_people = found.pending.take().map(|change| RetentionPending::undoable(change, UNDO, visit.now));
    let by_environment =
        found.pending_environment.take().map(|change| RetentionPending::of_environment(change, visit.now));
    answer(&RetentionPage {
        shell: shell.under("Settings", "/settings").here("Retention"),
        tabs: SettingsTabs::new(&visit, SettingsTab::Retention),
        pending: by_people.into_iter().chain(by_environment).collect(),
        policy: RetentionForm::of_instance(&found.wanted, &locked),
        found,
    })
}
