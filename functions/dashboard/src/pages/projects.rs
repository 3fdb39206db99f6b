//! `/projects`: all projects.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, TagId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::projects::{self, ProjectFilters, Sort};
use callboard_query::shapes::Tendency;
use callboard_query::{flakiness, tags};
use serde::Serialize;

use super::project_table::{ProjectTable, Row};
use crate::components::{Choice, FilterBar, Pager, Sorting};
use crate::filters;
use crate::outcome::Toned;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Projects per page.
const SIZE: PageSize = PageSize { min: 1, default: 25, max: 50 };
/// Tags one can choose from.
const TAGS: usize = 200;
/// Runs each strip shows.
const RECENT_RUNS: usize = 20;

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    text: Option<String>,
    tag: Option<TagId>,
    standing: Option<Tendency>,
    sort: Sort,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.one_of("sort", &[("updated", Sort::Updated), ("name", Sort::Name)])?;
        let standing = query.one_of("standing", &STANDINGS.map(|one| (spelt(one), one)))?;
        Ok(Self {
            text: query.text("q")?,
            tag: query.id("tag")?,
            standing,
            sort: sort.unwrap_or_default(),
            page: query.page(SIZE)?,
        })
    }
}

/// How a project can stand that has a result.
const STANDINGS: [Tendency; 3] = [Tendency::Failing, Tendency::Flaky, Tendency::Passing];

/// The spelling of a standing in the address.
const fn spelt(standing: Tendency) -> &'static str {
    match standing {
        Tendency::Failing => "failing",
        Tendency::Flaky => "unsteady",
        Tendency::Passing => "passing",
        Tendency::Unknown => "unknown",
    }
}

impl Params {
    fn filters(&self) -> ProjectFilters {
        ProjectFilters { contains: self.text.clone(), tag: self.tag, standing: self.standing }
    }

    /// Filters in force.
    fn narrowed(&self) -> usize {
        [self.text.is_some(), self.tag.is_some(), self.standing.is_some()]
            .into_iter()
            .filter(|is| *is)
            .count()
    }
}

/// Inputs of `pages/projects.html`.
#[derive(Template)]
#[template(path = "pages/projects.html")]
struct ProjectsPage {
    shell: Shell,
    filters: FilterBar,
    projects: ProjectTable,
    pager: Pager,
    /// Filters in force.
    narrowed: usize,
    /// Whether others may have projects, and this person has none of them.
    needs_assignment: bool,
}

/// All projects of the person who looks.
pub(crate) async fn projects(visit: Visit, Query(asked): Query<Params>) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectsPage, &asked)?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let limit = asked.page.limit as usize;
    let filters = asked.filters();
    let found = projects::list(&visit.ctx, visit.scope(), &filters, asked.sort, after, limit).await?;
    let found = cursors.page(found)?;
    let seen = found.items.iter().map(|project| visit.caller.authorize(ProjectId(project.reference.id)));
    let seen: Vec<Authorized<ProjectId>> = seen.collect::<Result<_, _>>()?;
    let mut recent = projects::newest_runs(&visit.ctx, &seen, RECENT_RUNS).await?;
    let flaky = flakiness::counts(&visit.ctx, &seen).await?;
    let rows: Vec<Row> = found
        .items
        .into_iter()
        .map(|project| {
            let id = ProjectId(project.reference.id);
            let recent = recent.remove(&id).unwrap_or_default();
            Row::of_project(project, recent, flaky.get(&id).copied().unwrap_or_default(), visit.now)
        })
        .collect();
    let goes_on = found.next_cursor.is_some();
    let total = visit.total_projects(&filters, goes_on).await?;
    let known = tags::list(&visit.ctx, None, None, TAGS).await?.items;
    let offered = known.into_iter().map(|tag| Choice::new(tag.id.to_string(), tag.text));
    let chosen: Vec<String> = asked.tag.iter().map(|tag| tag.get().to_string()).collect();
    let standings = STANDINGS.map(|standing| Choice::new(spelt(standing), standing.word()));
    let standing: Vec<String> = asked.standing.iter().map(|standing| spelt(*standing).to_owned()).collect();
    let orders = [Choice::new("updated", "Newest activity"), Choice::new("name", "By name")];
    let sort = if asked.sort == Sort::Name { "name" } else { "updated" };
    answer(&ProjectsPage {
        shell: Shell::new(&visit, Section::Projects, "Projects").await?.under("Home", "/").here("Projects"),
        filters: FilterBar::new(&visit.address, &["sort"])
            .search("q", "Search projects", asked.text.as_ref())
            .select("standing", "Standing", "Any result", standings, &standing)
            .select("tag", "Tag", "Any tag", offered, &chosen)
            .order(orders, sort)
            .tally("project", rows.len(), goes_on, total),
        projects: ProjectTable::new(rows, visit.now).sorted_by(Sorting::new(&visit.address, sort)),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        narrowed: asked.narrowed(),
        needs_assignment: !visit.scope().may_create_projects(),
    })
}
