//! The tests of a project against its newest runs.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::PageSize;
use callboard_query::grid::{self, Grid, GridCell};
use callboard_query::page::Slice;
use callboard_query::shapes::{RunBrief, TestCaseItem};
use callboard_query::test_cases::CatalogueQuery;
use serde::Serialize;

use super::{Head, cases};
use crate::components::{FilterBar, Pager};
use crate::filters;
use crate::outcome::{Tone, Toned};
use crate::shell::Shell;
use crate::text::{date_and_time, duration, months_of};
use crate::visit::{Visit, answer};

/// Tests per page: with forty runs sixteen hundred cells.
const SIZE: PageSize = PageSize { min: 1, default: 40, max: 60 };
/// Runs the grid shows.
const RUNS: i64 = 40;

/// What is asked for: the filters of the catalogue, by file where nothing else
/// is said, so that neighbours in the code are neighbours here.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Params(cases::Params);

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        cases::Params::read(query, "file", SIZE).map(Self)
    }
}

/// A run as the head of a column.
struct Column {
    run: RunBrief,
    tone: Tone,
    spoken: String,
    /// Its day, where another one begins.
    day: Option<Day>,
}

/// A cell as it is drawn.
struct Cell {
    tone: Tone,
    execution: i64,
    spoken: String,
}

/// A test with its cells.
struct Row {
    case: TestCaseItem,
    cells: Vec<Option<Cell>>,
    /// How often it failed or was flaky in these runs.
    troubles: usize,
}

/// Inputs of `pages/project_grid.html`.
#[derive(Template)]
#[template(path = "pages/project_grid.html")]
struct GridTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    columns: Vec<Column>,
    /// The months of the runs, each with how many of them it has.
    months: Vec<(String, usize)>,
    rows: Vec<Row>,
    pager: Pager,
    is_filtered: bool,
}

/// The grid of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    Params(asked): Params,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectPage, &("grid", &asked))?;
    let after = cursors.decode(asked.page().cursor.as_deref())?;
    let query = CatalogueQuery { after, ..asked.query() };
    let limit = asked.page().limit as usize;
    let Grid { runs, rows, next } = grid::of_newest_runs(&visit.ctx, project, &query, RUNS, limit).await?;
    let found = cursors.page(Slice { items: rows, next })?;
    let facets = visit.facets(project).await?;
    let shown = found.items.len();
    let total = asked.total(&visit, project, &head, found.next_cursor.is_some()).await?;
    let rows = found.items.into_iter().map(|row| {
        let cells: Vec<Option<Cell>> = row
            .cells
            .iter()
            .zip(&runs)
            .map(|(cell, run)| cell.map(|cell| Cell::from_cell(&cell, run)))
            .collect();
        let troubles = cells.iter().flatten().filter(|cell| cell.tone.is_trouble()).count();
        Row { case: row.case, cells, troubles }
    });
    answer(&GridTab {
        rows: rows.collect(),
        columns: columns(&runs),
        months: months_of(&runs.iter().map(|run| run.start_time.day()).collect::<Vec<_>>()),
        filters: asked.bar(&visit, &facets).tally("test", shown, found.next_cursor.is_some(), total),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        is_filtered: asked.is_filtered(),
        shell,
        head,
    })
}

/// The heads of the runs, oldest first.
fn columns(runs: &[RunBrief]) -> Vec<Column> {
    let mut before = None;
    let head = |run: &RunBrief| {
        let day = run.start_time.day();
        let earlier = before.replace(day);
        Column { day: (earlier != Some(day)).then_some(day), ..Column::from_run(run) }
    };
    runs.iter().map(head).collect()
}

impl Column {
    fn from_run(run: &RunBrief) -> Self {
        let branch = run.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        let tone = run.status.tone();
        let when = date_and_time(run.start_time);
        let spoken = format!("Run {}{branch}, {}, {when}", run.id, tone.word().to_lowercase());
        Self { run: run.clone(), tone, spoken, day: None }
    }
}

impl Cell {
    fn from_cell(cell: &GridCell, run: &RunBrief) -> Self {
        let tone = Tone::of_outcome(cell.outcome);
        let spoken = format!("{} in run {}, {}", tone.word(), run.id, duration(cell.duration_ms));
        Self { tone, execution: cell.execution.get(), spoken }
    }
}
