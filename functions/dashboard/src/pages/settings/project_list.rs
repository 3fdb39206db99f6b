//! Every project, by name where nothing else is asked for, as the settings list
//! them.

use callboard_auth::RouteId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::projects::{self, ProjectFilters, Sort};
use callboard_query::shapes::Project;

use crate::components::{FilterBar, Pager, Sorting};
use crate::visit::Visit;

/// Projects per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 100 };

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    text: Option<String>,
    sort: Sort,
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.one_of("sort", &[("name", Sort::Name), ("updated", Sort::Updated)])?;
        Ok(Self { text: query.text("q")?, sort: sort.unwrap_or(Sort::Name), page: query.page(SIZE)? })
    }
}

/// A page of projects with what narrows and continues it.
pub(super) struct ProjectList {
    pub filters: FilterBar,
    pub is_filtered: bool,
    pub sorting: Sorting,
    pub projects: Vec<Project>,
    pub pager: Pager,
}

impl Params {
    /// The projects, on the page of this route.
    pub(super) async fn find(self, visit: &Visit, route: RouteId) -> Result<ProjectList, ApiError> {
        let cursors = CursorScope::new(route, &(&self.text, self.sort))?;
        let after = cursors.decode(self.page.cursor.as_deref())?;
        let wanted = ProjectFilters { contains: self.text.clone(), ..ProjectFilters::default() };
        let limit = self.page.rows();
        let found = projects::list(&visit.ctx, visit.scope(), &wanted, self.sort, after, limit).await?;
        let found = cursors.page(found)?;
        let goes_on = found.next_cursor.is_some();
        let total = visit.total_projects(&wanted, goes_on).await?;
        Ok(ProjectList {
            sorting: Sorting::new(&visit.address, if self.sort == Sort::Name { "name" } else { "updated" }),
            filters: FilterBar::new(&visit.address, &["sort"])
                .search("q", "Search projects", self.text.as_ref())
                .tally("project", found.items.len(), goes_on, total),
            is_filtered: self.text.is_some(),
            pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
            projects: found.items,
        })
    }
}
