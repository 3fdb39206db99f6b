//! How the folders of a project's tests have been doing, as a map, and the
//! files of one of them.

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
use crate::components::{Area, Choice, FilterBar, Pager, Sorting, squarified};
use crate::filters;
use crate::shell::Shell;
use crate::text::{grouped, percent};
use crate::visit::{Visit, answer};

/// Folders or files per page.
const SIZE: PageSize = PageSize { min: 1, default: 120, max: 240 };
/// Shape of the map; its height is in pixels, its width is stretched.
const MAP: Area = Area { x: 0.0, y: 0.0, width: 1_120.0, height: 340.0 };
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
pub(crate) struct Asked {
    branch: Option<String>,
    period: usize,
    sort: SpecSort,
    /// The folder whose files are shown.
    folder: Option<String>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Asked {
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

impl Asked {
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

/// A folder on the map, its place in percent of the width and pixels.
struct Tile {
    x: String,
    y: String,
    width: String,
    height: String,
    class: &'static str,
    name: String,
    rate: String,
    spoken: String,
    href: String,
}

/// Inputs of `pages/project_health.html`.
#[derive(Template)]
#[template(path = "pages/project_health.html")]
struct HealthTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    tiles: Vec<Tile>,
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

/// The folders of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Asked,
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
        let within = asked.folder.as_deref().and_then(|folder| health.prefix.strip_prefix(folder));
        let name = within.and_then(|rest| rest.strip_prefix('/')).unwrap_or(&health.prefix).to_owned();
        Row { href: asked.leads_to(&visit, project.get(), &health.prefix), name, health }
    };
    let rows: Vec<Row> = found.items.into_iter().map(row).collect();
    answer(&HealthTab {
        filters: asked.bar(&visit, &facets).tally(noun, rows.len(), found.next_cursor.is_some(), Some(total)),
        sorting: Sorting::new(&visit.address, asked.sort_word()),
        tiles: tiles(&rows),
        totals,
        is_part,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        rows,
        folder: asked.folder,
        shell,
        head,
    })
}

/// The map: the area is the number of executions, the colour the pass rate.
fn tiles(rows: &[Row]) -> Vec<Tile> {
    let mut sorted: Vec<&Row> = rows.iter().filter(|row| row.health.execution_count > 0).collect();
    sorted.sort_by_key(|row| std::cmp::Reverse(row.health.execution_count));
    #[expect(clippy::cast_precision_loss, reason = "counts of executions are far below 2^52")]
    let sizes: Vec<f64> = sorted.iter().map(|row| row.health.execution_count as f64).collect();
    let placed = squarified(&sizes, MAP);
    let tile = |(Row { health, name, href }, area): (&&Row, &Area)| {
        let rate = health.pass_rate.map_or_else(|| "–".to_owned(), percent);
        Tile {
            x: format!("{:.3}%", area.x / MAP.width * 100.0),
            y: format!("{:.1}", area.y),
            width: format!("{:.3}%", area.width / MAP.width * 100.0),
            height: format!("{:.1}", area.height),
            class: band(health.pass_rate),
            name: name.clone(),
            spoken: format!(
                "{}: {rate} passed of {} executions",
                health.prefix,
                grouped(health.execution_count)
            ),
            href: href.clone(),
            rate,
        }
    };
    sorted.iter().zip(&placed).map(tile).collect()
}

/// Bands of pass rates: what is read at a glance is whether a folder is worth
/// a look, not its exact rate, which stands on the tile.
fn band(rate: Option<f64>) -> &'static str {
    match rate {
        None => "health-none",
        Some(rate) if rate >= 0.995 => "health-best",
        Some(rate) if rate >= 0.97 => "health-good",
        Some(rate) if rate >= 0.9 => "health-fair",
        Some(_) => "health-poor",
    }
}
