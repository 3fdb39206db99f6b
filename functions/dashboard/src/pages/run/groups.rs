//! The failures of a run by cause.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::clusters::{self, FailureGroup, GroupSums};
use serde::Serialize;

use super::Head;
use crate::components::Pager;
use crate::filters;
use crate::outcome::Tone;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Groups per page.
const SIZE: PageSize = PageSize { min: 1, default: 25, max: 100 };

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { page: query.page(SIZE)? })
    }
}

/// Inputs of `pages/run_groups.html`.
#[derive(Template)]
#[template(path = "pages/run_groups.html")]
struct GroupsTab {
    shell: Shell,
    head: Head,
    groups: Vec<FailureGroup>,
    failed_tests: i64,
    sums: GroupSums,
    pager: Pager,
}

/// The causes of a run's failures.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
    asked: Params,
    cursors: CursorScope,
) -> Result<Response, ApiError> {
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let limit = asked.page.limit as usize;
    let found = clusters::failure_groups(&visit.ctx, project, run, after, limit).await?;
    let mut groups = cursors.page(found.groups)?;
    let sums = clusters::group_sums(&visit.ctx, project, run).await?;
    clusters::heal_groups(&visit.ctx, project, &mut groups.items).await;
    answer(&GroupsTab {
        pager: Pager::new(&visit.address, groups.next_cursor.as_ref()),
        groups: groups.items,
        failed_tests: found.failed_tests,
        sums,
        shell,
        head,
    })
}
