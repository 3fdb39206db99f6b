//! How the folders of a project's tests have been doing, as a map.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;
use callboard_http::ApiError;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_query::performance::{self, SpecHealth, SpecSort};
use callboard_query::shapes::Facets;
use callboard_query::test_cases::LaneQuery;

use super::Head;
use crate::address::chosen;
use crate::components::{Area, Choice, FilterBar, Sorting, squarified};
use crate::filters;
use crate::shell::Shell;
use crate::text::{grouped, percent};
use crate::visit::{Visit, answer};

/// Folders the page shows.
const FOLDERS: usize = 120;
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

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    branch: Option<String>,
    period: usize,
    sort: SpecSort,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let period = query.one_of("days", |text| PERIODS.iter().position(|(word, ..)| *word == text))?;
        let sort = query.one_of("sort", |text| match text {
            "rate" => Some(SpecSort::PassRate),
            "flaky" => Some(SpecSort::FlakyRate),
            "name" => Some(SpecSort::Prefix),
            _ => None,
        })?;
        Ok(Self {
            branch: chosen(query, "branch").into_iter().next(),
            period: period.unwrap_or(USUAL),
            sort: sort.unwrap_or(SpecSort::PassRate),
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

    fn bar(&self, visit: &Visit, facets: &Facets) -> FilterBar {
        let orders = [
            Choice::new("rate", "Least steady first"),
            Choice::new("flaky", "Most flaky first"),
            Choice::new("name", "By name"),
        ];
        FilterBar::new(&visit.address, &["tab", "sort", "days"])
            .branches(facets, "All branches", self.branch.as_slice())
            .choice(
                "days",
                "Period",
                PERIODS.map(|(word, _, label)| Choice::new(word, label)),
                PERIODS[self.period].0,
            )
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
    folders: Vec<SpecHealth>,
    sorting: Sorting,
    is_cut: bool,
}

/// The folders of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Asked,
) -> Result<Response, ApiError> {
    let lane = LaneQuery { branch: asked.branch.clone(), environment: None };
    let today = visit.now.day();
    let since = Day(today.0 - PERIODS[asked.period].1 + 1);
    let found =
        performance::spec_health(&visit.ctx, project, &lane, (since, today), asked.sort, None, FOLDERS)
            .await?;
    let facets = visit.facets(project).await?;
    answer(&HealthTab {
        filters: asked.bar(&visit, &facets).tally("folder", found.items.len(), found.next.is_some(), None),
        sorting: Sorting::new(&visit.address, asked.sort_word()),
        tiles: tiles(&found.items, project.get()),
        is_cut: found.next.is_some(),
        folders: found.items,
        shell,
        head,
    })
}

/// The map: the area is the number of executions, the colour the pass rate.
fn tiles(folders: &[SpecHealth], project: ProjectId) -> Vec<Tile> {
    let mut sorted: Vec<&SpecHealth> = folders.iter().filter(|folder| folder.execution_count > 0).collect();
    sorted.sort_by_key(|folder| std::cmp::Reverse(folder.execution_count));
    #[expect(clippy::cast_precision_loss, reason = "counts of executions are far below 2^52")]
    let sizes: Vec<f64> = sorted.iter().map(|folder| folder.execution_count as f64).collect();
    let placed = squarified(&sizes, MAP);
    let tile = |(folder, area): (&&SpecHealth, &Area)| {
        let rate = folder.pass_rate.map_or_else(|| "–".to_owned(), percent);
        Tile {
            x: format!("{:.3}%", area.x / MAP.width * 100.0),
            y: format!("{:.1}", area.y),
            width: format!("{:.3}%", area.width / MAP.width * 100.0),
            height: format!("{:.1}", area.height),
            class: band(folder.pass_rate),
            name: folder.prefix.clone(),
            spoken: format!(
                "{}: {rate} passed of {} executions",
                folder.prefix,
                grouped(folder.execution_count)
            ),
            href: format!(
                "/projects/{}?tab=cases&file={}",
                project.get(),
                crate::address::encoded(&folder.prefix)
            ),
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
