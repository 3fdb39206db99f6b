//! `/settings/retention`: how long things are kept in projects that set
//! nothing of their own.

use askama::Template;
use axum::response::Response;
use callboard_http::ApiError;
use callboard_query::retention::{self, InstanceRetention};

use crate::components::{RetentionForm, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Inputs of `pages/retention.html`.
#[derive(Template)]
#[template(path = "pages/retention.html")]
struct RetentionPage {
    shell: Shell,
    tabs: SettingsTabs,
    found: InstanceRetention,
    form: RetentionForm,
}

/// How long things are kept; for administrators.
pub(crate) async fn retention(visit: Visit) -> Result<Response, ApiError> {
    let found = retention::of_instance(&visit.ctx).await?;
    let locked: Vec<&'static str> = found.locked.iter().map(|each| each.key).collect();
    let shell = Shell::new(&visit, Section::Settings, "Retention").await?;
    answer(&RetentionPage {
        shell: shell.under("Settings", "/settings").here("Retention"),
        tabs: SettingsTabs::new(&visit, SettingsTab::Retention),
        form: RetentionForm::of_instance(&found.settings, &locked),
        found,
    })
}
