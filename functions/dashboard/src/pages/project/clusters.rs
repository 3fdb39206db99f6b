//! The failure clusters of a project.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::failure::ErrorType;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::clusters::{self, Assignee, ClusterCounts, ClusterQuery, ClusterSort, ClusterStatus};
use callboard_query::page::Total;
use callboard_query::shapes::Facets;
use serde::Serialize;

use super::Head;
use crate::address::chosen;
use crate::components::{Choice, ClusterTable, FilterBar, Pager, Sorting, assignable, error_type_word};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Clusters per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    text: Option<String>,
    /// `open` where nothing else is said, `all` for every one.
    status: &'static str,
    kind: Option<&'static str>,
    /// An account, or `nobody`.
    assignee: Option<String>,
    owner: Option<String>,
    /// Only those that are put off, or only the others.
    put_off: Option<bool>,
    sort: ClusterSort,
    #[serde(skip)]
    page: PageRequest,
}

/// The orders by their words in the address.
const SORTS: [(&str, ClusterSort); 3] =
    [("seen", ClusterSort::LastSeen), ("often", ClusterSort::Occurrences), ("new", ClusterSort::Id)];
/// The word for clusters of every status.
const ALL: &str = "all";
/// The word for clusters that nobody looks after.
const NOBODY: &str = "nobody";

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let mut statuses = ClusterStatus::ALL.map(ClusterStatus::as_str).to_vec();
        statuses.push(ALL);
        let statuses: Vec<_> = statuses.into_iter().map(|word| (word, word)).collect();
        let kinds = ErrorType::ALL.map(|kind| (kind.as_str(), kind.as_str()));
        let who = |text: &str| (text == NOBODY || UserId::parse(text).is_some()).then(|| text.to_owned());
        Ok(Self {
            text: query.text("q")?,
            status: query.one_of("status", &statuses)?.unwrap_or(ClusterStatus::Open.as_str()),
            kind: query.one_of("kind", &kinds)?,
            assignee: query.word("assignee", &[NOBODY, "the id of an account"], who)?,
            owner: chosen(query, "owner").into_iter().next(),
            put_off: query.one_of("snoozed", &[("yes", true), ("no", false)])?,
            sort: query.one_of("sort", &SORTS)?.unwrap_or_default(),
            page: query.page(SIZE)?,
        })
    }
}

impl Params {
    /// The word of the order in the address.
    const fn sort_word(&self) -> &'static str {
        match self.sort {
            ClusterSort::LastSeen => "seen",
            ClusterSort::Occurrences => "often",
            ClusterSort::Id => "new",
        }
    }

    fn is_filtered(&self) -> bool {
        self.text.is_some()
            || self.kind.is_some()
            || self.assignee.is_some()
            || self.owner.is_some()
            || self.put_off.is_some()
    }

    /// How many there are of the status, when nothing else narrows the list.
    fn total(&self, counts: &ClusterCounts) -> Option<Total> {
        let of_status = match ClusterStatus::parse(self.status) {
            Some(ClusterStatus::Open) => counts.open,
            Some(ClusterStatus::Resolved) => counts.resolved,
            Some(ClusterStatus::Ignored) => counts.ignored,
            _ => counts.open + counts.resolved + counts.ignored,
        };
        (!self.is_filtered()).then_some(Total::Exactly(of_status))
    }

    fn assigned(&self) -> Option<Assignee> {
        match self.assignee.as_deref()? {
            NOBODY => Some(Assignee::Nobody),
            id => UserId::parse(id).map(Assignee::User),
        }
    }

    fn bar(&self, visit: &Visit, counts: &ClusterCounts, people: &[Choice], facets: &Facets) -> FilterBar {
        let states = [
            Choice::new("open", format!("Open ({})", counts.open)),
            Choice::new("resolved", format!("Resolved ({})", counts.resolved)),
            Choice::new("ignored", format!("Ignored ({})", counts.ignored)),
            Choice::new(ALL, "Any status"),
        ];
        let kinds = ErrorType::ALL.map(|kind| Choice::new(kind.as_str(), error_type_word(kind.as_str())));
        let orders = [
            Choice::new("seen", "Last seen first"),
            Choice::new("often", "Most failures first"),
            Choice::new("new", "Newest first"),
        ];
        let people = people.iter().map(|each| Choice::new(each.value.clone(), each.label.clone()));
        let people = [Choice::new(NOBODY, "Nobody")].into_iter().chain(people);
        let put_off = self.put_off.map(|put_off| if put_off { "yes" } else { "no" }.to_owned());
        let put_offs = [Choice::new("no", "Not snoozed"), Choice::new("yes", "Snoozed")];
        let bar = FilterBar::new(&visit.address, &["tab", "sort", "status"])
            .search("q", "Search clusters", self.text.as_ref())
            .choice("status", "Status", states, self.status);
        let bar = match self.status {
            ALL => bar,
            "resolved" => bar.narrowed_by("status", "Status", "Resolved", ALL),
            "ignored" => bar.narrowed_by("status", "Status", "Ignored", ALL),
            _ => bar.narrowed_by("status", "Status", "Open", ALL),
        };
        bar.select("kind", "Kind", "Any kind", kinds, self.kind.map(str::to_owned).as_slice())
            .select("assignee", "Assignee", "Any assignee", people, self.assignee.as_slice())
            .owners(facets, self.owner.as_slice())
            .select("snoozed", "Snoozed", "Snoozed: any", put_offs, put_off.as_slice())
            .order(orders, self.sort_word())
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
    /// The status that is asked for, or all of them.
    status: &'static str,
    /// Whether the reader may decide about clusters.
    may_triage: bool,
    /// Whom they can be given to.
    people: Vec<Choice>,
}

/// The clusters of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectPage, &("clusters", &asked))?;
    let query = ClusterQuery {
        statuses: ClusterStatus::parse(asked.status).into_iter().collect(),
        error_types: ErrorType::ALL.into_iter().filter(|kind| asked.kind == Some(kind.as_str())).collect(),
        assignee: asked.assigned(),
        snoozed: asked.put_off,
        owner: asked.owner.clone(),
        text: asked.text.clone(),
        sort: asked.sort,
        after: cursors.decode(asked.page.cursor.as_deref())?,
        ..ClusterQuery::default()
    };
    let limit = asked.page.limit as usize;
    let found = clusters::of_project(&visit.ctx, project, &query, visit.now, limit).await?;
    let found = cursors.page(found)?;
    let counts = clusters::counts(&visit.ctx, project).await?;
    let people = assignable(&visit, project, None).await?;
    let facets = visit.facets(project).await?;
    let may_triage = visit.caller.may_triage();
    let goes_on = found.next_cursor.is_some();
    let total = match asked.total(&counts) {
        Some(total) => Some(total),
        None if visit.address.is_part(goes_on) => {
            Some(clusters::count(&visit.ctx, project, &query, visit.now).await?)
        }
        None => None,
    };
    let filters = asked.bar(&visit, &counts, &people, &facets);
    answer(&ClustersTab {
        filters: filters.tally("cluster", found.items.len(), goes_on, total),
        clusters: ClusterTable::of_project(found.items, visit.now)
            .sorted_by(Sorting::new(&visit.address, asked.sort_word()))
            .with_ticks(may_triage)
            .with_people(!people.is_empty()),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        is_filtered: asked.is_filtered(),
        status: asked.status,
        may_triage,
        people,
        counts,
        shell,
        head,
    })
}
