//! `/failure-clusters/{id}`: one cause of failures, what is known of it, and
//! what people decided about it.

mod affected;
mod branches;
mod diagnosis;
mod events;
mod origin;
mod suspects;

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::export::ExportKind;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_domain::time::Day;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::{ApiError, AppState};
use callboard_query::clusters::{self, ClusterQuery, ClusterStatus, LastFailure, OccurrenceQuery};
use callboard_query::failures::{self, FixPlan, RankedLocator};
use callboard_query::links::Hook;
use callboard_query::notifications::Watched;
use callboard_query::scm::NewIssue;
use callboard_query::shapes::{ClusterBrief, ClusterDetail, ExecutionWithRun};
use callboard_query::{resolve, scm};
use serde::Serialize;

use crate::address::chosen;
use crate::components::{
    Choice, ExportMenu, FilterBar, LineOf, LinkPanel, Pager, PatchLine, Point, PointMark, Series, assignable,
    patch_lines,
};
use crate::filters;
use crate::shell::Shell;
use crate::text::{day_of, grouped};
use crate::visit::{Visit, answer};

pub(crate) use diagnosis::{category_word, patch_word};

/// Occurrences per page.
const SIZE: PageSize = PageSize { min: 1, default: 20, max: 100 };
/// Other clusters that this one can become part of; REST takes any.
const OTHERS: usize = 100;
/// Days the chart shows.
const TREND_DAYS: i64 = 30;

/// What a form sends to take something away.
const NOBODY: &str = "null";

/// What of a cluster is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Tab {
    Overview,
    Tests,
    Plan,
    Diagnosis,
}

/// The tabs by their words in the address.
const TABS: [(&str, Tab); 4] =
    [("overview", Tab::Overview), ("tests", Tab::Tests), ("plan", Tab::Plan), ("diagnosis", Tab::Diagnosis)];

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    tab: Tab,
    branch: Option<String>,
    /// The version of a diagnosis.
    #[serde(skip)]
    version: Option<i64>,
    /// Whether suspects are read from the repository.
    #[serde(skip)]
    shows_suspects: bool,
    /// Whether open requests are read from the repository.
    #[serde(skip)]
    shows_branches: bool,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let tab = query.one_of("tab", &TABS)?;
        let branch = chosen(query, "branch").into_iter().next();
        let version = query.number("version", 1..=i64::from(i32::MAX))?;
        let shows_suspects = query.one_of("suspects", &[("show", true)])?.unwrap_or_default();
        let shows_branches = query.one_of("branches", &[("show", true)])?.unwrap_or_default();
        let tab = tab.unwrap_or(Tab::Overview);
        Ok(Self { tab, branch, version, shows_suspects, shows_branches, page: query.page(SIZE)? })
    }
}

/// A change of a test, line by line.
struct Edit {
    place: String,
    execution: i64,
    lost: Option<String>,
    suggested: Option<String>,
    score: Option<i64>,
    /// Other locators that may find the element.
    alternatives: Vec<RankedLocator>,
    patch: Vec<PatchLine>,
}

/// Inputs of `pages/cluster_plan.html`.
#[derive(Template)]
#[template(path = "pages/cluster_plan.html")]
struct PlanPage {
    shell: Shell,
    cluster: ClusterDetail,
    tab: &'static str,
    plan: FixPlan,
    edits: Vec<Edit>,
    /// What may be the cause, as it was read last.
    suspects: Option<suspects::Suspects>,
}

/// Inputs of `pages/cluster.html`.
#[derive(Template)]
#[template(path = "pages/cluster.html")]
struct ClusterPage {
    shell: Shell,
    cluster: ClusterDetail,
    tab: &'static str,
    /// What the tests left behind when they failed last, by execution.
    evidence: HashMap<i64, LastFailure>,
    /// Whether any of them left a picture.
    with_pictures: bool,
    filters: FilterBar,
    origin: Option<origin::Origin>,
    /// Suspicious commits and files; `None` until they are asked for.
    suspects: Option<suspects::Suspects>,
    /// Whether the project has a repository.
    has_repository: bool,
    /// Branches with their open requests; `None` until they are asked for.
    branches: Option<branches::Branches>,
    trend: Series,
    /// What happened to it, newest first.
    events: Vec<events::Event>,
    occurrences: Vec<ExecutionWithRun>,
    is_filtered: bool,
    pager: Pager,
    links: LinkPanel,
    /// Where an issue about it is begun.
    new_issue: Option<NewIssue>,
    /// A file of its failures.
    export: ExportMenu,
    /// Whether the reader may decide about it.
    may_triage: bool,
    /// Whom it can be given to.
    people: Vec<Choice>,
    /// Whose it is now, as the form has it.
    assignee: String,
    /// Clusters it can become part of.
    others: Vec<Choice>,
}

/// One cluster.
pub(crate) async fn cluster(
    State(state): State<AppState>,
    visit: Visit,
    Path(id): Path<ClusterId>,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let project = resolve::cluster(&visit.ctx, visit.scope(), id).await?;
    let cluster = clusters::detail(&visit.ctx, project, id).await?;
    let brief = &cluster.item.brief;
    let name = brief.title.clone().unwrap_or_else(|| brief.signature.clone());
    let all = format!("/projects/{}?tab=clusters", cluster.project.id);
    let shell = Shell::in_project(&visit, &cluster.project, &name).await?.under("Clusters", all).here(name);
    let watched = Watched { project, test_case: None, cluster: Some(id) };
    let shell = shell.offering(&visit, watched).await?;
    match asked.tab {
        Tab::Overview => {}
        Tab::Tests => return affected::tab(visit, project, id, cluster, shell, asked.page).await,
        Tab::Diagnosis => return diagnosis::tab(visit, project, id, cluster, shell, asked.version).await,
        Tab::Plan => {
            let plan = failures::fix_plan(&visit.ctx, project, id).await?;
            let suspects = suspects::Suspects::stored(&visit, &state.source_control(), project, id).await?;
            return answer(&PlanPage { edits: edits(&plan), tab: "plan", shell, cluster, plan, suspects });
        }
    }
    let cursors = CursorScope::new(RouteId::ClusterPage, &asked)?;
    let query = OccurrenceQuery {
        branches: asked.branch.iter().cloned().collect(),
        after: cursors.decode(asked.page.cursor.as_deref())?,
        ..OccurrenceQuery::default()
    };
    let found = clusters::occurrences(&visit.ctx, project, id, &query, asked.page.limit as usize).await?;
    let found = cursors.page(found)?;
    let branches = cluster.branches.iter().cloned().map(Choice::from);
    let may_triage = visit.caller.may_triage();
    let (people, others) = if may_triage {
        let people = assignable(&visit, project, cluster.item.assignee.as_ref()).await?;
        (people, others(&visit, project, id).await?)
    } else {
        (Vec::new(), Vec::new())
    };
    let history = clusters::history(&visit.ctx, project, id).await?;
    let events: Vec<events::Event> = history.into_iter().filter_map(events::Event::from_event).collect();
    let hook = Hook { target: LinkTarget::Cluster, id: id.get() };
    let evidence = clusters::last_failures(&visit.ctx, project, &cluster.affected_test_cases).await?;
    let total = match asked.branch {
        None => {
            let goes_on = found.next_cursor.is_some();
            visit.ever_counted(project, cluster.item.brief.occurrences, goes_on).await?
        }
        Some(_) => None,
    };
    answer(&ClusterPage {
        tab: "overview",
        shell,
        with_pictures: evidence.values().any(|last| last.screenshot.is_some()),
        evidence,
        filters: FilterBar::new(&visit.address, &[])
            .select("branch", "Branch", "All branches", branches, asked.branch.as_slice())
            .tally("failure", found.items.len(), found.next_cursor.is_some(), total),
        origin: origin::Origin::load(&visit, project, &cluster).await?,
        suspects: match asked.shows_suspects {
            true => Some(suspects::Suspects::read(&visit, &state.source_control(), project, id).await?),
            false => None,
        },
        has_repository: scm::has_repository(&visit.ctx, project).await?,
        branches: match asked.shows_branches {
            true => Some(branches::Branches::read(&visit, &state.source_control(), project, id).await?),
            false => None,
        },
        trend: trend(&cluster, visit.now.day(), &events),
        events,
        occurrences: found.items,
        is_filtered: asked.branch.is_some(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        new_issue: scm::new_issue(&visit.ctx, project, &cluster).await?,
        export: ExportMenu::new(ExportKind::Cluster, id.get()).only(asked.branch.clone(), None),
        links: LinkPanel::load(&visit, &state, project, hook).await?,
        assignee: cluster
            .item
            .assignee
            .as_ref()
            .map_or_else(|| NOBODY.to_owned(), |user| user.id.to_string()),
        may_triage,
        people,
        others,
        cluster,
    })
}

/// The clusters of the project that were seen last, but for this one.
async fn others(
    visit: &Visit,
    project: Authorized<ProjectId>,
    id: ClusterId,
) -> Result<Vec<Choice>, ApiError> {
    let found =
        clusters::of_project(&visit.ctx, project, &ClusterQuery::default(), visit.now, OTHERS).await?;
    let label = |brief: &ClusterBrief| {
        let name = brief.title.as_ref().unwrap_or(&brief.signature);
        format!("{name} ({}, #{})", brief.status, brief.id)
    };
    let others = found.items.iter().map(|item| &item.brief).filter(|brief| brief.id != id.get());
    Ok(others.map(|brief| Choice::new(brief.id.to_string(), label(brief))).collect())
}

/// How often it occurred on each of the last days, and when that turned.
fn trend(cluster: &ClusterDetail, today: Day, events: &[events::Event]) -> Series {
    let days: Vec<Day> = (today.0 - TREND_DAYS + 1..=today.0).map(Day).collect();
    let of =
        |day: &Day| cluster.trend.iter().find(|seen| seen.day == *day).map_or(0, |seen| seen.occurrences);
    let points = days.iter().map(|day| Point { label: day_of(*day), note: None, href: None });
    let lines = [LineOf { name: "Failures", values: days.iter().map(|day| Some(of(day))).collect() }];
    let turns = events.iter().filter(|event| event.is_turn());
    let mark = |event: &events::Event| {
        let at = days.iter().position(|day| *day == event.at.day())?;
        Some((at, event.sentence.clone()))
    };
    let marks: Vec<PointMark> = turns.filter_map(mark).collect();
    Series::new("Failures by day", points.collect(), &lines, grouped)
        .with_marks("first seen, gone or back", &marks)
}

fn edits(plan: &FixPlan) -> Vec<Edit> {
    let edits = plan.edits.iter().map(|edit| Edit {
        place: edit.line.map_or_else(|| edit.file_path.clone(), |line| format!("{}:{line}", edit.file_path)),
        execution: edit.execution_id,
        lost: edit.failing_locator.clone(),
        suggested: edit.suggested_locator.clone(),
        score: edit.score.map(i64::from),
        alternatives: edit.alternatives.clone(),
        patch: edit.unified_diff.as_deref().map(patch_lines).unwrap_or_default(),
    });
    edits.collect()
}
