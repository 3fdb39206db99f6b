//! `/notifications`: the notifications of the reader, newest first.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::notifications::{self, InboxItem};
use callboard_query::page::Slice;
use serde::Serialize;

use crate::components::{Choice, FilterBar, Pager};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Notifications per page.
const SIZE: PageSize = PageSize { min: 1, default: 30, max: 100 };

/// Inputs of `pages/inbox.html`.
#[derive(Template)]
#[template(path = "pages/inbox.html")]
struct InboxPage {
    shell: Shell,
    filters: FilterBar,
    is_unread_only: bool,
    /// The newest one that is shown, where any is unread.
    unread_up_to: Option<i64>,
    items: Vec<InboxItem>,
    pager: Pager,
}

/// Which notifications are shown.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    unread: bool,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let unread = query.one_of("unread", &[("true", true), ("false", false)])?;
        Ok(Self { unread: unread.unwrap_or_default(), page: query.page(SIZE)? })
    }
}

/// The notifications of the reader.
pub(crate) async fn inbox(visit: Visit, Query(params): Query<Params>) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::InboxPage, &params)?;
    let before = cursors.decode(params.page.cursor.as_deref())?;
    let is_first = before.is_none();
    let found = match visit.caller.user_id() {
        Some(user) => {
            let limit = params.page.rows();
            notifications::inbox(&visit.ctx, user, visit.scope(), params.unread, before, limit).await?
        }
        None => Slice::default(),
    };
    let found = cursors.page(found)?;
    let shell = Shell::new(&visit, Section::Elsewhere, "Notifications").await?;
    let has_unread = shell.bell.as_ref().is_some_and(|bell| bell.unread.count > 0);
    let newest = found.items.first().map(|item| item.id).filter(|_| is_first && has_unread);
    let unread = params.unread.then(|| "true".to_owned());
    let choices = [Choice::new("true", "Unread")];
    let bar = FilterBar::new(&visit.address, &[]).select("unread", "Show", "All", choices, unread.as_slice());
    answer(&InboxPage {
        shell: shell.here("Notifications"),
        filters: bar.tally("notification", found.items.len(), found.next_cursor.is_some(), None),
        is_unread_only: params.unread,
        unread_up_to: newest,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        items: found.items,
    })
}

/// The page of an address on this site.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}
