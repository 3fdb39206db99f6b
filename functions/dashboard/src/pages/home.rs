//! `/`: is anything red?

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;
use callboard_http::ApiError;
use callboard_query::analytics::{self, LeaderboardItem, SeenProjects, WidgetQuery};
use callboard_query::clusters::{self, ClusterQuery, ClusterSort, ClusterStatus};
use callboard_query::flakiness::Sort;
use callboard_query::runs::{self, RunQuery};
use callboard_query::shapes::ClusterWithProject;
use callboard_query::test_cases::LaneQuery;
use callboard_query::{daily, feeds, projects};
use tokio::try_join;

use super::project_table::{Further, ProjectTable, Row};
use crate::components::{RunTable, SetupSteps, TREND_DAYS, Trend};
use crate::filters;
use crate::outcome::Tone;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Projects the page looks at, most recently active first.
const PROJECTS: usize = 12;
/// Further projects of which it names those that fail.
const FURTHER: usize = 100;
/// Flaky tests it names.
const COSTLY: usize = 5;
/// Open clusters it names.
const CLUSTERS: usize = 5;
/// Runs it lists.
const RECENT_RUNS: usize = 10;

/// Inputs of `pages/home.html`.
#[derive(Template)]
#[template(path = "pages/home.html")]
struct HomePage {
    shell: Shell,
    /// The event after which the stream tells what this page does not show.
    after: i64,
    headline: String,
    standing: Tone,
    projects: ProjectTable,
    more_projects: bool,
    /// What the table has no room for.
    further: Further,
    active: RunTable,
    recent: RunTable,
    trend: Trend,
    costly: Vec<LeaderboardItem>,
    clusters: Vec<ClusterWithProject>,
}

/// Inputs of `pages/welcome.html`: nothing has arrived yet.
#[derive(Template)]
#[template(path = "pages/welcome.html")]
struct WelcomePage {
    shell: Shell,
    /// The event after which the stream tells of the first run.
    after: i64,
    /// Whether others may have projects, and this person has none of them.
    needs_assignment: bool,
    steps: SetupSteps,
}

/// What is red, what is running, what ran lately.
pub(crate) async fn home(visit: Visit) -> Result<Response, ApiError> {
    // What happens from here on is told live.
    let after = feeds::newest(&visit.ctx).await?;
    let overview = async { Ok(projects::overview(&visit.ctx, visit.scope(), None, None, PROJECTS).await?) };
    let (shell, overview) = try_join!(Shell::new(&visit, Section::Home, "Home"), overview)?;
    let shell = shell.here("Home");
    // Projects can be made before anything is sent to them.
    if overview.next.is_none() && overview.items.iter().all(|each| each.recent_runs.is_empty()) {
        let needs_assignment = overview.items.is_empty() && !visit.scope().may_create_projects();
        let only = match overview.items.as_slice() {
            [only] => Some(only.reference.name.as_str()),
            _ => None,
        };
        let steps = SetupSteps::new(&visit, shell.viewer.is_some(), only);
        return answer(&WelcomePage { shell, after, needs_assignment, steps });
    }
    let seen = overview.items.iter().map(|project| visit.caller.authorize(ProjectId(project.reference.id)));
    let seen: Vec<Authorized<ProjectId>> = seen.collect::<Result<_, _>>()?;
    let today = visit.now.day();
    let costly = WidgetQuery {
        days: TREND_DAYS,
        projects: seen.iter().map(|project| project.get()).collect(),
        limit: COSTLY,
        ..WidgetQuery::default()
    };
    let open = ClusterQuery {
        statuses: vec![ClusterStatus::Open],
        snoozed: Some(false),
        sort: ClusterSort::Occurrences,
        ..ClusterQuery::default()
    };
    let costly = async {
        let of = SeenProjects::load(&visit.ctx, visit.scope(), &costly).await?;
        analytics::flaky_leaderboard(&visit.ctx, visit.scope(), &of, &costly, Sort::Lost, today).await
    };
    // Whether anything is red is asked of more projects than are shown.
    let further = async {
        match overview.next.clone() {
            None => Ok(Further::default()),
            next => projects::standings(&visit.ctx, visit.scope(), next, FURTHER)
                .await
                .map(Further::from_standings),
        }
    };
    let (every_lane, all) = (LaneQuery::default(), RunQuery::default());
    let (days, costly, open, active, recent, further) = try_join!(
        daily::counts(&visit.ctx, &seen, &every_lane, Day(today.0 - TREND_DAYS + 1)),
        costly,
        clusters::list(&visit.ctx, visit.scope(), &open, visit.now, CLUSTERS),
        runs::active(&visit.ctx, visit.scope()),
        runs::list(&visit.ctx, visit.scope(), &all, RECENT_RUNS),
        further,
    )?;
    let mut rows: Vec<Row> =
        overview.items.into_iter().map(|each| Row::of_overview(each, visit.now)).collect();
    // Red first; within each, the order of activity stays.
    rows.sort_by_key(|row| !row.is_failing());
    let failing = rows.iter().filter(|row| row.is_failing()).count() + further.failing.len();
    let judged = rows.iter().filter(|row| row.is_judged()).count() + further.judged;
    answer(&HomePage {
        after,
        headline: headline(failing, judged, further.goes_on),
        standing: match (failing, judged) {
            (0, 0) => Tone::Unknown,
            (0, _) => Tone::Passed,
            _ => Tone::Failed,
        },
        projects: ProjectTable::new(rows, visit.now),
        more_projects: overview.next.is_some(),
        further,
        active: RunTable::new(active, true, visit.now),
        recent: RunTable::new(recent.items, true, visit.now),
        trend: Trend::new(days, today, |_| None),
        costly,
        clusters: open.items,
        shell,
    })
}

/// The answer to the first question, as a sentence about all that have a
/// result. With `more` projects than the page looks at, it says which ones it
/// speaks of.
fn headline(failing: usize, all: usize, more: bool) -> String {
    match (failing, all) {
        (0, 0) => "No run has finished yet".to_owned(),
        (0, all) if more => format!("The {all} most recently active projects are passing"),
        (1, all) if more => format!("1 of the {all} most recently active projects is failing"),
        (failing, all) if more => format!("{failing} of the {all} most recently active projects are failing"),
        (0, 1) => "Your project is passing".to_owned(),
        (0, all) => format!("All {all} projects are passing"),
        (1, 1) => "Your project is failing".to_owned(),
        (1, all) => format!("1 of {all} projects is failing"),
        (failing, all) => format!("{failing} of {all} projects are failing"),
    }
}

#[cfg(test)]
mod tests {
    use super::headline;

    #[test]
    fn what_has_no_result_is_not_called_passing() {
        assert_eq!(headline(0, 0, false), "No run has finished yet");
        assert_eq!(headline(0, 1, false), "Your project is passing");
        assert_eq!(headline(1, 3, false), "1 of 3 projects is failing");
    }
}
