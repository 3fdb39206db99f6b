//! `/settings/tags`: the tags projects can carry.

use std::collections::HashMap;

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::annotations::TagColor;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::shapes::Tag;
use callboard_query::tags;
use serde::Serialize;

use crate::components::{FilterBar, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Tags per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    text: Option<String>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { text: query.text("q")?, page: query.page(SIZE)? })
    }
}

/// Inputs of `pages/tags.html`.
#[derive(Template)]
#[template(path = "pages/tags.html")]
struct TagsPage {
    shell: Shell,
    tabs: SettingsTabs,
    filters: FilterBar,
    is_filtered: bool,
    tags: Vec<Tag>,
    /// Projects that carry each, by the id of the tag.
    projects: HashMap<i64, i64>,
    pager: Pager,
}

/// All tags; for administrators.
pub(crate) async fn tags(visit: Visit, Query(asked): Query<Params>) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::TagsPage, &asked)?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let found = tags::list(&visit.ctx, asked.text.as_deref(), after, asked.page.rows()).await?;
    let found = cursors.page(found)?;
    let goes_on = found.next_cursor.is_some();
    let total = if visit.address.is_part(goes_on) {
        Some(tags::count(&visit.ctx, asked.text.as_deref()).await?)
    } else {
        None
    };
    let shell = Shell::new(&visit, Section::Settings, "Tags").await?;
    let bar = FilterBar::new(&visit.address, &[]).search("q", "Search tags", asked.text.as_ref());
    answer(&TagsPage {
        shell: shell.under("Settings", "/settings").here("Tags"),
        tabs: SettingsTabs::new(&visit, SettingsTab::Tags),
        filters: bar.tally("tag", found.items.len(), goes_on, total),
        is_filtered: asked.text.is_some(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        projects: tags::count_projects(&visit.ctx, &found.items).await?,
        tags: found.items,
    })
}
