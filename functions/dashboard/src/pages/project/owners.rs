//! Who owns the tests of a project, and what one owner has to look at.

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
use callboard_query::clusters::{self, ClusterQuery, ClusterStatus};
use callboard_query::flakiness::{self, FlakyQuery, FlakyTest, LEAST_COUNTED};
use callboard_query::owners::{self, Owner};
use callboard_query::quarantine::{self, Quarantine, QuarantineQuery};
use callboard_query::shapes::TestCaseItem;
use callboard_query::test_cases::{self, CatalogueQuery, Sort};
use tokio::try_join;

use super::Head;
use crate::address::chosen;
use crate::components::{ClusterTable, FilterBar, Pager, RecentForm};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Owners per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };
/// Rows of a section; the list behind it has the rest.
const ROWS: usize = 10;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    owner: Option<String>,
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { owner: chosen(query, "owner").into_iter().next(), page: query.page(SIZE)? })
    }
}

/// Inputs of `pages/project_owners.html`.
#[derive(Template)]
#[template(path = "pages/project_owners.html")]
struct OwnersTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    owners: Vec<Owner>,
    pager: Pager,
}

/// The first rows of a list, and whether it goes on.
struct Section<T> {
    rows: Vec<T>,
    goes_on: bool,
}

/// Inputs of `pages/project_owner.html`.
#[derive(Template)]
#[template(path = "pages/project_owner.html")]
struct OwnerPage {
    shell: Shell,
    head: Head,
    name: String,
    /// Their numbers; `None` when no test is theirs.
    owner: Option<Owner>,
    clusters: ClusterTable,
    more_clusters: bool,
    failing: Section<TestCaseItem>,
    flaky: Section<(FlakyTest, RecentForm)>,
    quarantined: Section<Quarantine>,
    slowest: Section<TestCaseItem>,
}

/// The owners of a project's tests, or one of them.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    if let Some(name) = asked.owner {
        return owner(visit, project, head, shell, name).await;
    }
    let cursors = CursorScope::new(RouteId::ProjectPage, &"owners")?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let found = owners::list(&visit.ctx, project, after, asked.page.limit as usize).await?;
    let found = cursors.page(found)?;
    let goes_on = found.next_cursor.is_some();
    answer(&OwnersTab {
        filters: FilterBar::new(&visit.address, &["tab"]).tally("owner", found.items.len(), goes_on, None),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        owners: found.items,
        shell,
        head,
    })
}

async fn owner(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    name: String,
) -> Result<Response, ApiError> {
    let own = || Some(name.clone());
    let open = ClusterQuery { statuses: vec![ClusterStatus::Open], owner: own(), ..ClusterQuery::default() };
    let failing =
        CatalogueQuery { categories: vec![TestCategory::Failed], owner: own(), ..CatalogueQuery::default() };
    let slowest = CatalogueQuery { owner: own(), sort: Sort::Slowest, ..CatalogueQuery::default() };
    let flaky = FlakyQuery { owner: own(), min_score: Some(LEAST_COUNTED), ..FlakyQuery::default() };
    let aside = QuarantineQuery { is_active: true, candidates: false, owner: own(), before: None };
    let (ctx, now) = (&visit.ctx, visit.now);
    let (owner, clusters, failing, (flaky, _), aside, slowest) = try_join!(
        owners::get(ctx, project, &name),
        clusters::of_project(ctx, project, &open, now, ROWS),
        test_cases::list(ctx, project, &failing, ROWS),
        flakiness::list(ctx, project, &flaky, now.day(), ROWS),
        quarantine::list(ctx, project, aside, now, ROWS),
        test_cases::list(ctx, project, &slowest, ROWS),
    )?;
    let with_form = |test: FlakyTest| {
        let form = RecentForm::from_outcomes(&test.recent);
        (test, form)
    };
    answer(&OwnerPage {
        shell,
        more_clusters: clusters.next.is_some(),
        clusters: ClusterTable::of_project(clusters.items, now),
        failing: Section { goes_on: failing.next.is_some(), rows: failing.items },
        flaky: Section {
            goes_on: flaky.next.is_some(),
            rows: flaky.items.into_iter().map(with_form).collect(),
        },
        quarantined: Section { goes_on: aside.page.next.is_some(), rows: aside.page.items },
        slowest: Section { goes_on: slowest.next.is_some(), rows: slowest.items },
        head,
        name,
        owner,
    })
}
