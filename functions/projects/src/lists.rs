//! The lists of projects: all of them, for a menu, for the home page.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::TagId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader};
use callboard_http::page::{Page, PageRequest, PageSize};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::projects::{self, MenuEntry, ProjectFilters, Sort};
use callboard_query::shapes::{Project, ProjectOverview};
use serde::Serialize;
use utoipa::IntoParams;

const SORTS: [&str; 2] = ["updatedAt", "name"];

callboard_query::vocabularies! {
    /// An order of projects.
    SortWord => SORTS;
}

/// Which projects a list shows, and in which order.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListFilters {
    /// Only names and labels that contain this, in upper or lower case.
    q: Option<String>,
    /// Only projects with this tag, by its id.
    #[param(value_type = Option<i64>)]
    tag: Option<TagId>,
    /// `updatedAt` (most recently active first, the default) or `name` (in order of characters).
    #[param(value_type = Option<SortWord>, example = "updatedAt", inline)]
    sort: Sort,
}

impl FromQuery for ListFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.word("sort", &SORTS, |word| match word {
            "updatedAt" => Some(Sort::Updated),
            "name" => Some(Sort::Name),
            _ => None,
        })?;
        Ok(Self { q: query.text("q")?, tag: query.id("tag")?, sort: sort.unwrap_or_default() })
    }
}

/// The caller's projects with their latest run.
#[utoipa::path(get, path = "/api/projects", tag = "projects", params(ListFilters, PageRequest),
    responses((status = 200, body = Page<Project>), (status = 404, description = "`tag_not_found`")))]
pub(crate) async fn projects(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(filters): Query<ListFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Project>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListProjects, &filters)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let wanted = ProjectFilters { contains: filters.q, tag: filters.tag, standing: None };
    let found = projects::list(&ctx, caller.scope(), &wanted, filters.sort, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// How many entries of the menu are asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MenuPage {
    /// Rows per page, 1 to 500; larger numbers count as 500.
    #[param(required = false, default = 200, minimum = 1)]
    limit: u32,
    /// Where to continue: `nextCursor` of the page before.
    cursor: Option<String>,
}

impl FromQuery for MenuPage {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let PageRequest { limit, cursor } = query.page(PageSize { min: 1, default: 200, max: 500 })?;
        Ok(Self { limit, cursor })
    }
}

/// The caller's projects as the sidebar shows them, most recently active first.
#[utoipa::path(get, path = "/api/projects/menu", tag = "projects", params(MenuPage),
    responses((status = 200, body = Page<MenuEntry>)))]
pub(crate) async fn menu(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(page): Query<MenuPage>,
) -> Result<Json<Page<MenuEntry>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectMenu, &())?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let found = projects::menu(&state.context(&site), caller.scope(), after, page.limit as usize).await?;
    Ok(Json(cursors.page(found)?))
}

/// Which runs the home page looks at.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OverviewFilters {
    /// Only runs in this environment; an empty value stands for runs without one.
    environment: Option<String>,
}

impl FromQuery for OverviewFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { environment: query.recorded("environment")? })
    }
}

/// The caller's projects with up to 20 recent runs each, oldest first; most
/// recently active projects first.
#[utoipa::path(get, path = "/api/projects/overview", tag = "projects", params(OverviewFilters, PageRequest),
    responses((status = 200, body = Page<ProjectOverview>)))]
pub(crate) async fn overview(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(filters): Query<OverviewFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<ProjectOverview>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectOverview, &filters)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let environment = filters.environment.as_deref();
    let found =
        projects::overview(&state.context(&site), caller.scope(), environment, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}
