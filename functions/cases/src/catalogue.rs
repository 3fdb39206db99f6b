//! `GET /api/projects/{id}/test-cases`: the test catalogue.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::ProjectId;
use callboard_domain::ingest::Priority;
use callboard_domain::test_state::TestCategory;
use callboard_domain::time::Timestamp;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{CountedPage, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::resolve;
use callboard_query::shapes::TestCaseItem;
use callboard_query::shapes::words::{PriorityWord, TestCategoryWord};
use callboard_query::test_cases::{self, CatalogueKey, CatalogueQuery, LaneQuery, Sort};
use serde::Serialize;
use utoipa::IntoParams;

use crate::lane::Lane;

const DIRECTIONS: [&str; 2] = ["asc", "desc"];

callboard_query::vocabularies! {
    /// Up or down.
    DirectionWord => DIRECTIONS;
    /// An order of tests.
    SortWord => SORTS.map(|(word, ..)| word);
}

const MAX_AGE_DAYS: i64 = 366;
const MS_PER_DAY: i64 = 86_400_000;

/// Most rows a script may skip by counting.
const MAX_OFFSET: i64 = 10_000;

/// The sorts offered: their word, and whether they go up or down unless asked.
const SORTS: [(&str, Sort, Direction); 7] = [
    ("lastRun", Sort::LastRun, Direction::Desc),
    ("title", Sort::Title, Direction::Asc),
    ("file", Sort::File, Direction::Asc),
    ("totalRuns", Sort::TotalRuns, Direction::Desc),
    ("flakyScore", Sort::Flaky, Direction::Desc),
    ("avgDuration", Sort::Slowest, Direction::Desc),
    ("passRate", Sort::PassRate, Direction::Asc),
];

/// Up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Asc,
    Desc,
}

impl Direction {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "asc" => Some(Self::Asc),
            "desc" => Some(Self::Desc),
            _ => None,
        }
    }
}

/// Which tests the catalogue shows, and in which order.
#[derive(Debug, Default, PartialEq, Serialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct CatalogueFilters {
    /// Only tests whose title, describe titles or file contain this, in upper or lower case.
    q: Option<String>,
    /// Comma list or repeated: failed (with timed out), flaky, interrupted, didnotrun, skipped, passed; or never-run
    /// alone: the tests that never ran on the branch and in the environment, newest first.
    /// `status` is another name of this parameter.
    #[param(required = false, value_type = Vec<TestCategoryWord>, example = json!(["failed", "flaky"]), inline)]
    category: Vec<TestCategory>,
    /// Comma list or repeated, with or without `@`; only tests with all of these tags.
    #[param(required = false)]
    tags: Vec<String>,
    /// Exact owner.
    owner: Option<String>,
    /// critical, high, medium or low.
    #[param(value_type = Option<PriorityWord>, example = "high", inline)]
    priority: Option<Priority>,
    /// Exact feature.
    feature: Option<String>,
    /// Beginning of the file.
    file: Option<String>,
    /// Only tests that ran within this many days, 1 to 366.
    #[param(minimum = 1, maximum = 366)]
    max_age_days: Option<i64>,
    /// `true`: only tests in quarantine, `false`: only the others.
    quarantined: Option<bool>,
    /// `lastRun` (newest first, the default), `title`, `file` (both in order of characters), `totalRuns` (most first),
    /// `flakyScore` (most probably flaky first), `avgDuration` (slowest first) or `passRate` (least steady first).
    #[param(value_type = Option<SortWord>, example = "lastRun", inline)]
    sort: Sort,
    /// `asc` or `desc`, when the list is to go the other way than its sort says. Tests without a duration or a rate
    /// come last either way.
    #[param(rename = "dir", required = false, value_type = Option<DirectionWord>, example = "desc", inline)]
    is_reversed: bool,
    /// Rows to skip before the first page, at most 10000; for scripts that count rows.
    #[param(required = false, default = 0, minimum = 0, maximum = 10000)]
    offset: usize,
}

impl FromQuery for CatalogueFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let mut category = categories(query, "category")?;
        category.extend(categories(query, "status")?);
        if category.len() > 1 && category.contains(&TestCategory::NeverRun) {
            let message = "never-run goes alone: these tests are another list than those that ran.";
            return Err(ApiError::invalid_query("category", message));
        }
        let (sort, is_reversed) = sort(query)?;
        let offset = query.number("offset", 0..=MAX_OFFSET)?.unwrap_or(0);
        Ok(Self {
            q: query.text("q")?,
            category,
            tags: query.list("tags")?,
            owner: query.exact("owner")?,
            priority: query.word("priority", &Priority::ALL.map(Priority::as_str), Priority::parse)?,
            feature: query.exact("feature")?,
            file: query.exact("file")?,
            max_age_days: query.number("maxAgeDays", 1..=MAX_AGE_DAYS)?,
            quarantined: query.flag("quarantined")?,
            sort,
            is_reversed,
            offset: usize::try_from(offset).unwrap_or_default(),
        })
    }
}

fn categories(query: &QueryReader, name: &str) -> Result<Vec<TestCategory>, ApiError> {
    query.words(name, &TestCategory::ALL.map(TestCategory::as_str), TestCategory::parse)
}

/// Reads `sort` and `dir`: the order, and whether it is turned round.
fn sort(query: &QueryReader) -> Result<(Sort, bool), ApiError> {
    let find = |wanted: &str| SORTS.into_iter().find(|(word, ..)| *word == wanted);
    let [default, ..] = SORTS;
    let (_, sort, usual) = query.word("sort", &SORTS.map(|(word, ..)| word), find)?.unwrap_or(default);
    let asked = query.word("dir", &DIRECTIONS, Direction::parse)?;
    Ok((sort, asked.is_some_and(|asked| asked != usual)))
}

impl CatalogueFilters {
    /// Whether nothing is left out.
    fn is_everything(&self) -> bool {
        let Self { sort, is_reversed, offset, .. } = *self;
        *self == Self { sort, is_reversed, offset, ..Self::default() }
    }

    fn query(&self, lane: LaneQuery, after: Option<CatalogueKey>, now: Timestamp) -> CatalogueQuery {
        CatalogueQuery {
            lane,
            text: self.q.clone(),
            categories: self.category.clone(),
            tags: self.tags.clone(),
            owner: self.owner.clone(),
            priority: self.priority.map(|priority| priority.as_str().to_owned()),
            feature: self.feature.clone(),
            file_prefix: self.file.clone(),
            since: self.max_age_days.map(|days| Timestamp(now.millis() - days * MS_PER_DAY)),
            quarantined: self.quarantined,
            sort: self.sort,
            is_reversed: self.is_reversed,
            after,
        }
    }
}

/// The tests of a project with their numbers on a branch and in an
/// environment, or in all; tests that never ran there are left out, unless
/// they are asked for.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/test-cases", tag = "cases",
    params(("id" = i64, Path, description = "Project"), CatalogueFilters, Lane, PageRequest),
    responses((status = 200, body = CountedPage<TestCaseItem>)))]
pub(crate) async fn test_cases(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(filters): Query<CatalogueFilters>,
    Query(lane): Query<Lane>,
    Query(page): Query<PageRequest>,
) -> Result<Json<CountedPage<TestCaseItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectTestCases, &(id, &filters, &lane))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let query = filters.query(lane.query(), after, state.now());
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let total =
        if filters.is_everything() { Some(test_cases::count(&ctx, project, &query).await?) } else { None };
    // A cursor stands behind what the first page skipped.
    let offset = if page.cursor.is_none() { filters.offset } else { 0 };
    let found = test_cases::list_from(&ctx, project, query, offset, page.rows()).await?;
    Ok(Json(CountedPage::new(cursors.page(found)?, total)))
}
