//! The failure clusters of a project.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::failure::ErrorType;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::clusters::{self, ClusterCounts, ClusterQuery, ClusterSort, ClusterStatus};
use serde::Serialize;

use super::Head;
use crate::components::{Choice, ClusterTable, FilterBar, Pager, error_type_word};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Clusters per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Asked {
    text: Option<String>,
    /// `open` where nothing else is said, `all` for every one.
    status: &'static str,
    kind: Option<&'static str>,
    sort: ClusterSort,
    #[serde(skip)]
    page: PageRequest,
}

/// The word for clusters of every status.
const ALL: &str = "all";

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let status = query.one_of("status", |text| match text {
            "all" => Some(ALL),
            other => ClusterStatus::parse(other).map(ClusterStatus::as_str),
        })?;
        let sort = query.one_of("sort", |text| match text {
            "seen" => Some(ClusterSort::LastSeen),
            "often" => Some(ClusterSort::Occurrences),
            "new" => Some(ClusterSort::Id),
            _ => None,
        })?;
        let kind = |text: &str| ErrorType::ALL.into_iter().find(|kind| kind.as_str() == text);
        Ok(Self {
            text: query.text("q")?,
            status: status.unwrap_or("open"),
            kind: query.one_of("kind", |text| kind(text).map(ErrorType::as_str))?,
            sort: sort.unwrap_or_default(),
            page: query.page(SIZE)?,
        })
    }
}

impl Asked {
    fn bar(&self, visit: &Visit, counts: &ClusterCounts) -> FilterBar {
        let states = [
            Choice::new("open", format!("Open ({})", counts.open)),
            Choice::new("resolved", format!("Resolved ({})", counts.resolved)),
            Choice::new("ignored", format!("Ignored ({})", counts.ignored)),
            Choice::new(ALL, "Every status"),
        ];
        let kinds = ErrorType::ALL.map(|kind| Choice::new(kind.as_str(), error_type_word(kind.as_str())));
        let orders = [
            Choice::new("seen", "Last seen first"),
            Choice::new("often", "Most failures first"),
            Choice::new("new", "Newest first"),
        ];
        let sort = match self.sort {
            ClusterSort::LastSeen => "seen",
            ClusterSort::Occurrences => "often",
            ClusterSort::Id => "new",
        };
        FilterBar::new(&visit.address, &["tab", "sort", "status"])
            .search("q", "Search clusters", self.text.as_ref())
            .choice("status", "Status", states, self.status)
            .select("kind", "Kind", "Any kind", kinds, self.kind.map(str::to_owned).as_slice())
            .order(orders, sort)
    }
}

/// Inputs of `pages/project_clusters.html`.
#[derive(Template)]
#[template(path = "pages/project_clusters.html")]
struct ClustersTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    clusters: ClusterTable,
    counts: ClusterCounts,
    pager: Pager,
    is_filtered: bool,
}

/// The clusters of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Asked,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectPage, &("clusters", &asked))?;
    let query = ClusterQuery {
        statuses: ClusterStatus::parse(asked.status).into_iter().collect(),
        error_types: ErrorType::ALL.into_iter().filter(|kind| asked.kind == Some(kind.as_str())).collect(),
        text: asked.text.clone(),
        sort: asked.sort,
        after: cursors.decode(asked.page.cursor.as_deref())?,
        ..ClusterQuery::default()
    };
    let limit = asked.page.limit as usize;
    let found = clusters::of_project(&visit.ctx, project, &query, visit.now, limit).await?;
    let found = cursors.page(found)?;
    let counts = clusters::counts(&visit.ctx, project).await?;
    answer(&ClustersTab {
        filters: asked.bar(&visit, &counts),
        clusters: ClusterTable::of_project(found.items, visit.now),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        is_filtered: asked.text.is_some() || asked.kind.is_some(),
        counts,
        shell,
        head,
    })
}
