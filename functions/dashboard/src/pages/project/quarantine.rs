//! Tests that are set aside, and those that should be.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::page::{Slice, Total};
use callboard_query::quarantine::{self, Debt, Proposal, Quarantine, QuarantineQuery};
use serde::Serialize;

use super::Head;
use crate::address::chosen;
use crate::components::{Choice, FilterBar, Pager};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Tests per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    is_active: bool,
    owner: Option<String>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let is_active = query.one_of("state", &[("active", true), ("released", false)])?;
        let owner = chosen(query, "owner").into_iter().next();
        Ok(Self { is_active: is_active.unwrap_or(true), owner, page: query.page(SIZE)? })
    }
}

/// Inputs of `pages/project_quarantine.html`.
#[derive(Template)]
#[template(path = "pages/project_quarantine.html")]
struct QuarantineTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    rows: Vec<Quarantine>,
    debt: Debt,
    candidates: Vec<Proposal>,
    pager: Pager,
    is_active: bool,
    is_filtered: bool,
    /// Whether the reader may set aside and release.
    may_triage: bool,
}

/// The quarantine of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectPage, &("quarantine", &asked))?;
    let query = QuarantineQuery {
        is_active: asked.is_active,
        candidates: asked.is_active && asked.owner.is_none() && !visit.address.is_continued(),
        owner: asked.owner.clone(),
        before: cursors.decode(asked.page.cursor.as_deref())?,
    };
    let limit = asked.page.limit as usize;
    let found = quarantine::list(&visit.ctx, project, query, visit.now, limit).await?;
    let Slice { items, next } = found.page;
    let page = cursors.page(Slice { items, next })?;
    let facets = visit.facets(project).await?;
    let total = (asked.is_active && asked.owner.is_none()).then_some(Total::Exactly(found.debt.active));
    let (shown, goes_on) = (page.items.len(), page.next_cursor.is_some());
    let states = [Choice::new("active", "In quarantine"), Choice::new("released", "Released")];
    answer(&QuarantineTab {
        filters: FilterBar::new(&visit.address, &["tab", "state"])
            .choice("state", "State", states, if asked.is_active { "active" } else { "released" })
            .owners(&facets, asked.owner.as_slice())
            .tally("test", shown, goes_on, total),
        pager: Pager::new(&visit.address, page.next_cursor.as_ref()),
        rows: page.items,
        debt: found.debt,
        candidates: found.candidates,
        is_active: asked.is_active,
        is_filtered: asked.owner.is_some(),
        may_triage: visit.caller.may_triage(),
        shell,
        head,
    })
}
