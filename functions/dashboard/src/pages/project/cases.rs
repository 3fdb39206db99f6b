//! The tests of a project: the catalogue with its numbers.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::test_state::TestCategory;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::page::Total;
use callboard_query::shapes::{Facets, TestCaseItem};
use callboard_query::test_cases::{self, CatalogueQuery, LaneQuery, Sort};
use serde::Serialize;

use super::Head;
use crate::address::chosen;
use crate::components::{Choice, FilterBar, Pager, Sorting};
use crate::filters;
use crate::outcome::Tone;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Tests per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 100 };

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    text: Option<String>,
    branch: Option<String>,
    environment: Option<String>,
    categories: Vec<&'static str>,
    tags: Vec<String>,
    owner: Option<String>,
    file: Option<String>,
    sort: &'static str,
    #[serde(skip)]
    page: PageRequest,
}

/// The orders with their words in the address.
const ORDERS: [(&str, &str, Sort); 7] = [
    ("last-run", "Latest run first", Sort::LastRun),
    ("title", "By title", Sort::Title),
    ("file", "By file", Sort::File),
    ("runs", "Most runs first", Sort::TotalRuns),
    ("rate", "Lowest pass rate first", Sort::PassRate),
    ("flaky", "Most flaky first", Sort::Flaky),
    ("slow", "Slowest first", Sort::Slowest),
];

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Self::read(query, ORDERS[0].0, SIZE)
    }
}

impl Params {
    /// What is asked for, with the order and the page size where none is named.
    pub(super) fn read(
        query: &QueryReader,
        usual_order: &'static str,
        size: PageSize,
    ) -> Result<Self, ApiError> {
        let categories = TestCategory::ALL.map(TestCategory::as_str).map(|word| (word, word));
        let sort = query.one_of("sort", &ORDERS.map(|(word, ..)| (word, word)))?;
        Ok(Self {
            text: query.text("q")?,
            branch: chosen(query, "branch").into_iter().next(),
            environment: chosen(query, "environment").into_iter().next(),
            categories: query.any_of("result", &categories)?,
            tags: chosen(query, "tag"),
            owner: chosen(query, "owner").into_iter().next(),
            file: chosen(query, "file").into_iter().next(),
            sort: sort.unwrap_or(usual_order),
            page: query.page(size)?,
        })
    }

    /// The heads of the columns this list can be sorted by.
    pub(super) fn sorting(&self, visit: &Visit) -> Sorting {
        Sorting::new(&visit.address, self.sort)
    }

    /// The page that is asked for.
    pub(super) fn page(&self) -> &PageRequest {
        &self.page
    }

    /// The same as a question.
    pub(super) fn query(&self) -> CatalogueQuery {
        let categories =
            TestCategory::ALL.into_iter().filter(|each| self.categories.contains(&each.as_str()));
        let sort = ORDERS.iter().find(|(word, ..)| *word == self.sort).map(|(.., sort)| *sort);
        CatalogueQuery {
            lane: LaneQuery { branch: self.branch.clone(), environment: self.environment.clone() },
            text: self.text.clone(),
            categories: categories.collect(),
            tags: self.tags.clone(),
            owner: self.owner.clone(),
            file_prefix: self.file.clone(),
            sort: sort.unwrap_or_default(),
            ..CatalogueQuery::default()
        }
    }

    /// Whether anything narrows the list.
    pub(super) fn is_filtered(&self) -> bool {
        self.text.is_some()
            || self.branch.is_some()
            || self.environment.is_some()
            || !self.categories.is_empty()
            || !self.tags.is_empty()
            || self.owner.is_some()
            || self.file.is_some()
    }

    /// How many tests there are, where that says more than the page does.
    pub(super) async fn total(
        &self,
        visit: &Visit,
        project: Authorized<ProjectId>,
        head: &Head,
        goes_on: bool,
    ) -> Result<Option<Total>, ApiError> {
        let total = if !self.is_filtered() {
            head.project.total_test_cases
        } else if visit.address.is_part(goes_on) {
            test_cases::count(&visit.ctx, project, &self.query()).await?
        } else {
            return Ok(None);
        };
        Ok(Some(Total::Exactly(total)))
    }

    /// The filters as a form.
    pub(super) fn bar(&self, visit: &Visit, facets: &Facets) -> FilterBar {
        let results = ["failed", "flaky", "interrupted", "skipped", "didnotrun", "passed"]
            .map(|word| Choice::new(word, Tone::of_category(word).word()));
        let categories: Vec<String> = self.categories.iter().map(|word| (*word).to_owned()).collect();
        let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<_>>();
        FilterBar::new(&visit.address, &["tab", "sort"])
            .search("q", "Search tests and files", self.text.as_ref())
            .select("result", "Result", "Any result", results, &categories)
            .branches(facets, "All branches", &one(&self.branch))
            .environments(facets, &one(&self.environment))
            .tags(facets, &self.tags)
            .owners(facets, &one(&self.owner))
            .text("file", "File or folder", self.file.as_ref())
            .order(ORDERS.map(|(word, label, _)| Choice::new(word, label)), self.sort)
    }
}

/// Inputs of `pages/project_cases.html`.
#[derive(Template)]
#[template(path = "pages/project_cases.html")]
struct CasesTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    cases: Vec<TestCaseItem>,
    sorting: Sorting,
    pager: Pager,
    is_filtered: bool,
}

/// The second tab of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectPage, &("cases", &asked))?;
    let query = CatalogueQuery { after: cursors.decode(asked.page.cursor.as_deref())?, ..asked.query() };
    let found = test_cases::list(&visit.ctx, project, &query, asked.page.limit as usize).await?;
    let found = cursors.page(found)?;
    let facets = visit.facets(project).await?;
    let total = asked.total(&visit, project, &head, found.next_cursor.is_some()).await?;
    answer(&CasesTab {
        filters: asked.bar(&visit, &facets).tally(
            "test",
            found.items.len(),
            found.next_cursor.is_some(),
            total,
        ),
        sorting: asked.sorting(&visit),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        cases: found.items,
        is_filtered: asked.is_filtered(),
        shell,
        head,
    })
}
