//! The flaky tests of a project: how sure that is, why, and what they cost.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::flakiness::RootCause;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::flakiness::{self, FlakyQuery, FlakyTest, LEAST_COUNTED, LEAST_LISTED, Sort};
use callboard_query::page::Total;
use callboard_query::shapes::Facets;
use callboard_query::test_cases::LaneQuery;
use serde::Serialize;

use super::Head;
use crate::address::chosen;
use crate::components::{ChanceRange, Choice, FilterBar, Pager, RecentForm, Sorting, cause_word};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Tests per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    branch: Option<String>,
    environment: Option<String>,
    tags: Vec<String>,
    owner: Option<String>,
    cause: Option<&'static str>,
    min_score: Option<i64>,
    sort: Sort,
    #[serde(skip)]
    page: PageRequest,
}

/// Orders, by their words in the address.
const SORTS: [(&str, Sort); 3] = [("score", Sort::Score), ("impact", Sort::Impact), ("lost", Sort::Lost)];

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let one = |name: &str| chosen(query, name).into_iter().next();
        let causes = RootCause::ALL.map(RootCause::as_str);
        Ok(Self {
            branch: one("branch"),
            environment: one("environment"),
            tags: chosen(query, "tag"),
            owner: one("owner"),
            cause: query.one_of("cause", &causes.map(|cause| (cause, cause)))?,
            min_score: query.number("minScore", 0..=100)?,
            sort: query.one_of("sort", &SORTS)?.unwrap_or_default(),
            page: query.page(SIZE)?,
        })
    }
}

impl Params {
    fn is_filtered(&self) -> bool {
        self.branch.is_some()
            || self.environment.is_some()
            || !self.tags.is_empty()
            || self.owner.is_some()
            || self.cause.is_some()
            || self.min_score.is_some()
    }

    /// The word of the order in the address.
    fn sort_word(&self) -> &'static str {
        SORTS.iter().find(|(_, sort)| *sort == self.sort).map_or("score", |(word, _)| word)
    }

    fn bar(&self, visit: &Visit, facets: &Facets) -> FilterBar {
        let causes = RootCause::ALL.map(|cause| Choice::new(cause.as_str(), cause_word(cause.as_str())));
        let orders = [
            Choice::new("score", "Highest confidence"),
            Choice::new("impact", "Most expensive first"),
            Choice::new("lost", "Most time lost first"),
        ];
        let scores = [(LEAST_COUNTED, "Flaky: 90 or more"), (60, "60 or more")]
            .map(|(score, name)| Choice::new(score.to_string(), name));
        let score = self.min_score.map(|score| score.to_string());
        FilterBar::new(&visit.address, &["tab", "sort"])
            .select("minScore", "Score", "Any score", scores, score.as_slice())
            .select("cause", "Cause", "Any cause", causes, self.cause.map(str::to_owned).as_slice())
            .branches(facets, "The default branch", self.branch.as_slice())
            .environments(facets, self.environment.as_slice())
            .tags(facets, &self.tags)
            .owners(facets, self.owner.as_slice())
            .order(orders, self.sort_word())
    }
}

/// A test with what its row draws.
struct Row {
    test: FlakyTest,
    form: RecentForm,
    cause: Option<&'static str>,
    range: ChanceRange,
}

impl Row {
    fn from_test(test: FlakyTest) -> Self {
        Self {
            form: RecentForm::from_outcomes(&test.recent),
            cause: test.root_cause.as_deref().map(cause_word),
            range: ChanceRange::from_test(&test),
            test,
        }
    }
}

/// Inputs of `pages/project_flaky.html`.
#[derive(Template)]
#[template(path = "pages/project_flaky.html")]
struct FlakyTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    rows: Vec<Row>,
    sorting: Sorting,
    /// What the tests of the page cost; nothing where that is not known of any.
    wasted_ms: Option<i64>,
    pager: Pager,
    is_filtered: bool,
}

/// The flaky tests of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectPage, &("flaky", &asked))?;
    let query = FlakyQuery {
        lane: LaneQuery { branch: asked.branch.clone(), environment: asked.environment.clone() },
        tags: asked.tags.clone(),
        owner: asked.owner.clone(),
        min_score: asked.min_score,
        root_cause: asked.cause.and_then(RootCause::parse),
        sort: asked.sort,
        after: cursors.decode(asked.page.cursor.as_deref())?,
        ..FlakyQuery::default()
    };
    let limit = asked.page.limit as usize;
    let (found, total) = flakiness::list(&visit.ctx, project, &query, visit.now.day(), limit).await?;
    let found = cursors.page(found)?;
    let facets = visit.facets(project).await?;
    answer(&FlakyTab {
        filters: asked.bar(&visit, &facets).tally(
            if asked.min_score >= Some(LEAST_COUNTED) { "flaky test" } else { "possibly flaky test" },
            found.items.len(),
            found.next_cursor.is_some(),
            i64::try_from(total).ok().map(Total::Exactly),
        ),
        sorting: Sorting::new(&visit.address, asked.sort_word()),
        wasted_ms: found.items.iter().any(|test| test.knows_durations).then(|| lost(&found.items)),
        rows: found.items.into_iter().map(Row::from_test).collect(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        is_filtered: asked.is_filtered(),
        shell,
        head,
    })
}

/// What tests cost together.
fn lost(tests: &[FlakyTest]) -> i64 {
    tests.iter().map(|test| test.wasted_duration).sum()
}
