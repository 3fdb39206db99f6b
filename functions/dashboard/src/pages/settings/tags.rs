//! `/settings/tags`: the tags projects can carry.

use askama::Template;
use axum::response::Response;
use callboard_domain::annotations::TagColor;
use callboard_http::ApiError;
use callboard_query::shapes::Tag;
use callboard_query::tags;

use crate::components::{SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Tags the page shows; an instance has a handful.
const SHOWN: usize = 200;

/// Inputs of `pages/tags.html`.
#[derive(Template)]
#[template(path = "pages/tags.html")]
struct TagsPage {
    shell: Shell,
    tabs: SettingsTabs,
    tags: Vec<Tag>,
    is_cut: bool,
}

/// All tags; for administrators.
pub(crate) async fn tags(visit: Visit) -> Result<Response, ApiError> {
    let found = tags::list(&visit.ctx, None, None, SHOWN).await?;
    let shell = Shell::new(&visit, Section::Settings, "Tags").await?;
    answer(&TagsPage {
        shell: shell.under("Settings", "/settings").here("Tags"),
        tabs: SettingsTabs::new(&visit, SettingsTab::Tags),
        tags: found.items,
        is_cut: found.next.is_some(),
    })
}
