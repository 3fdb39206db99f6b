//! The endpoints of the application that the tests of a run called.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::network::{self, NetworkRequests, RequestSort};
use callboard_query::page::Total;
use serde::Serialize;

use super::Head;
use crate::components::{Choice, FilterBar, Pager, Sorting};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Endpoints per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// The orders with their words in the address.
const ORDERS: [(&str, &str, RequestSort); 3] = [
    ("errors", "Least reliable first", RequestSort::ErrorRate),
    ("slow", "Slowest first", RequestSort::AvgDuration),
    ("often", "Most requests first", RequestSort::Count),
];

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    sort: &'static str,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.one_of("sort", &ORDERS.map(|(word, ..)| (word, word)))?;
        Ok(Self { sort: sort.unwrap_or(ORDERS[0].0), page: query.page(SIZE)? })
    }
}

impl Params {
    fn order(&self) -> RequestSort {
        ORDERS.iter().find(|(word, ..)| *word == self.sort).map(|(.., sort)| *sort).unwrap_or_default()
    }
}

/// Inputs of `pages/run_endpoints.html`.
#[derive(Template)]
#[template(path = "pages/run_endpoints.html")]
struct EndpointsTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    sorting: Sorting,
    rows: Vec<NetworkRequests>,
    pager: Pager,
}

/// The endpoints of a run.
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
    let (found, total) =
        network::requests_of_run(&visit.ctx, project, run, asked.order(), after, limit).await?;
    let found = cursors.page(found)?;
    let orders = ORDERS.map(|(word, label, _)| Choice::new(word, label));
    answer(&EndpointsTab {
        filters: FilterBar::new(&visit.address, &["tab"]).order(orders, asked.sort).tally(
            "endpoint",
            found.items.len(),
            found.next_cursor.is_some(),
            i64::try_from(total).ok().map(Total::Exactly),
        ),
        sorting: Sorting::new(&visit.address, asked.sort),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        rows: found.items,
        shell,
        head,
    })
}

/// A status as people read it; 0 stands for no answer.
fn status_word(code: &u16) -> String {
    if *code == 0 { "no response".to_owned() } else { code.to_string() }
}

/// Whether a request with this status went wrong.
const fn is_error(code: &u16) -> bool {
    *code == 0 || *code >= 400
}
