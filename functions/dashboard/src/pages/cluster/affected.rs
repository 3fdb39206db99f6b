//! All tests that fail for a cluster.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::page::PageRequest;
use callboard_query::clusters;
use callboard_query::page::Total;
use callboard_query::shapes::{ClusterDetail, ClusterTestCase};

use crate::components::{FilterBar, Pager};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Inputs of `pages/cluster_tests.html`.
#[derive(Template)]
#[template(path = "pages/cluster_tests.html")]
struct TestsPage {
    shell: Shell,
    cluster: ClusterDetail,
    tab: &'static str,
    filters: FilterBar,
    tests: Vec<ClusterTestCase>,
    pager: Pager,
    /// Whether the reader may take tests out, and some would be left.
    may_extract: bool,
}

/// The tests of a cluster.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    id: ClusterId,
    cluster: ClusterDetail,
    shell: Shell,
    page: PageRequest,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ClusterPage, &("tests", id))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let found = clusters::test_cases(&visit.ctx, project, id, after, page.limit as usize).await?;
    let found = cursors.page(found)?;
    let total = Total::Exactly(cluster.item.brief.affected_tests);
    answer(&TestsPage {
        tab: "tests",
        filters: FilterBar::new(&visit.address, &["tab"]).tally(
            "test",
            found.items.len(),
            found.next_cursor.is_some(),
            Some(total),
        ),
        tests: found.items,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        may_extract: visit.caller.may_triage() && cluster.item.brief.affected_tests > 1,
        shell,
        cluster,
    })
}
