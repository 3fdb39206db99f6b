//! How the folders of a project's tests have been doing, as a map, and the
//! files of one of them.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::page::Total;
use callboard_query::performance::{self, SpecHealth, SpecQuery, SpecSort, SpecTotals};
use callboard_query::shapes::Facets;
use callboard_query::test_cases::LaneQuery;
use serde::Serialize;

use super::Head;
use crate::address::{chosen, encoded};
use crate::components::{Choice, FilterBar, MapPlace, Pager, Sorting, SpecMap};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Folders or files per page.
const SIZE: PageSize = PageSize { min: 1, default: 120, max: 240 };
/// Periods one can choose, in days.
const PERIODS: [(&str, i64, &str); 4] = [
    ("7", 7, "Last 7 days"),
    ("30", 30, "Last 30 days"),
    ("60", 60, "Last 60 days"),
    ("90", 90, "Last 90 days"),
];
/// Where nothing else is asked for.
const USUAL: usize = 1;
/// The orders with their words in the address.
const ORDERS: [(&str, &str, SpecSort); 3] = [
    ("rate", "Lowest pass rate first", SpecSort::PassRate),
    ("flaky", "Most flaky first", SpecSort::FlakyRate),
    ("name", "By name", SpecSort::Prefix),
];

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    branch: Option<String>,
    period: usize,
    sort: SpecSort,
    /// The folder whose files are shown.
    folder: Option<String>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let period = query.word("days", &PERIODS.map(|(word, ..)| word), |text| {
            PERIODS.iter().position(|(word, ..)| *word == text)
        })?;
        let sort = query.one_of("sort", &ORDERS.map(|(word, _, sort)| (word, sort)))?;
        Ok(Self {
            branch: chosen(query, "branch").into_iter().next(),
            period: period.unwrap_or(USUAL),
            sort: sort.unwrap_or(SpecSort::PassRate),
            folder: chosen(query, "folder").into_iter().next(),
            page: query.page(SIZE)?,
        })
    }
}

impl Params {
    /// The word of the order in the address.
    const fn sort_word(&self) -> &'static str {
        match self.sort {
            SpecSort::Prefix => "name",
            SpecSort::PassRate => "rate",
            SpecSort::FlakyRate => "flaky",
        }
    }

    /// A folder leads to its files, a file to its tests.
    fn leads_to(&self, visit: &Visit, project: ProjectId, prefix: &str) -> String {
        if self.folder.is_none() {
            return visit.address.with("folder", prefix);
        }
        self.tests_of(project, prefix)
    }

    /// The tests of a file.
    fn tests_of(&self, project: ProjectId, prefix: &str) -> String {
        let mut href = format!("/projects/{project}?tab=cases&file={}", encoded(prefix));
        if let Some(branch) = &self.branch {
            href.push_str("&branch=");
            href.push_str(&encoded(branch));
        }
        href
    }

    fn bar(&self, visit: &Visit, facets: &Facets) -> FilterBar {
        let orders = ORDERS.map(|(word, label, _)| Choice::new(word, label));
        FilterBar::new(&visit.address, &["tab", "sort", "days"])
            .branches(facets, "All branches", self.branch.as_slice())
            .choice(
                "days",
                "Period",
                PERIODS.map(|(word, _, label)| Choice::new(word, label)),
                PERIODS[self.period].0,
            )
            .chip_only("folder", "Folder", self.folder.as_ref())
            .order(orders, self.sort_word())
    }
}

/// Inputs of `pages/project_health.html`.
#[derive(Template)]
#[template(path = "pages/project_health.html")]
struct HealthTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    map: SpecMap,
    rows: Vec<Row>,
    /// Of all pages together.
    totals: SpecTotals,
    /// The folder whose files are shown.
    folder: Option<String>,
    sorting: Sorting,
    /// Whether there are more than the page shows.
    is_part: bool,
    pager: Pager,
}

/// A folder or a file in the table, and what it leads to.
struct Row {
    health: SpecHealth,
    /// The folder, or the file within its folder.
    name: String,
    href: String,
}

/// A path below the folder it lies in.
fn within(path: &str, folder: Option<&str>) -> String {
    let below = folder.and_then(|folder| path.strip_prefix(folder));
    below.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path).to_owned()
}

/// The folders of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    let today = visit.now.day();
    let query = SpecQuery {
        lane: LaneQuery { branch: asked.branch.clone(), environment: None },
        days: (Day(today.0 - PERIODS[asked.period].1 + 1), today),
        folder: asked.folder.clone(),
        sort: asked.sort,
    };
    let cursors = CursorScope::new(RouteId::ProjectPage, &("health", &asked))?;
    let after: Option<(i64, String)> = cursors.decode(asked.page.cursor.as_deref())?;
    let limit = asked.page.limit as usize;
    let (found, totals) = performance::spec_health(&visit.ctx, project, &query, after, limit).await?;
    let found = cursors.page(found)?;
    let total = Total::Exactly(totals.rows);
    let facets = visit.places(project).await?;
    let noun = if asked.folder.is_some() { "file" } else { "folder" };
    let is_part = visit.address.is_part(found.next_cursor.is_some());
    let row = |health: SpecHealth| {
        let name = within(&health.prefix, asked.folder.as_deref());
        Row { href: asked.leads_to(&visit, project.get(), &health.prefix), name, health }
    };
    let rows: Vec<Row> = found.items.into_iter().map(row).collect();
    let files = match asked.folder {
        None => performance::spec_files(&visit.ctx, project, &query, totals).await?,
        Some(_) => BTreeMap::new(),
    };
    let place = |row: &Row| {
        let files = files.get(&row.health.prefix).map_or(&[][..], Vec::as_slice);
        let file = |health: &SpecHealth| MapPlace {
            name: within(&health.prefix, Some(&row.health.prefix)),
            href: asked.tests_of(project.get(), &health.prefix),
            health: health.clone(),
            parts: Vec::new(),
        };
        MapPlace {
            name: row.name.clone(),
            href: row.href.clone(),
            health: row.health.clone(),
            // A file at the top is a folder of its own.
            parts: files.iter().filter(|file| file.prefix != row.health.prefix).map(file).collect(),
        }
    };
    answer(&HealthTab {
        filters: asked.bar(&visit, &facets).tally(noun, rows.len(), found.next_cursor.is_some(), Some(total)),
        sorting: Sorting::new(&visit.address, asked.sort_word()),
        map: match asked.folder {
            None => SpecMap::of_folders(rows.iter().map(place).collect()),
            Some(_) => SpecMap::of_files(rows.iter().map(place).collect()),
        },
        totals,
        is_part,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        rows,
        folder: asked.folder,
        shell,
        head,
    })
}
