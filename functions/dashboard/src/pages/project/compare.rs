//! Choosing two runs of a project to compare. Once both are known the
//! comparison is a tab of the newer one.

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_http::extract::{EntityId, FromQuery, QueryReader};
use callboard_query::runs::{self, RunQuery};
use callboard_query::shapes::RunItem;

use super::Head;
use crate::address::chosen;
use crate::components::{Choice, name_of};
use crate::filters;
use crate::shell::Shell;
use crate::text::relative;
use crate::visit::{Visit, answer};

/// Runs one can choose from.
const OFFERED: usize = 100;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    runs: Vec<RunId>,
    /// Whether one run was chosen twice.
    is_same: bool,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let ids = chosen(query, "run");
        let ids: Option<Vec<RunId>> = ids.iter().map(|id| RunId::parse_id(id)).collect();
        let mut runs = ids.ok_or_else(RunId::invalid)?;
        runs.sort_unstable_by_key(|run| run.get());
        let chosen = runs.len();
        runs.dedup();
        Ok(Self { is_same: chosen > 1 && runs.len() == 1, runs })
    }
}

/// Inputs of `pages/project_compare.html`.
#[derive(Template)]
#[template(path = "pages/project_compare.html")]
struct CompareTab {
    shell: Shell,
    head: Head,
    runs: Vec<Choice>,
    /// The runs that are chosen already, as the address has them.
    first: String,
    second: String,
    too_many: bool,
    is_same: bool,
}

/// Two runs, or what it takes to choose them.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    if let [first, second] = asked.runs.as_slice() {
        // Runs arrive in any order, as an import of a history does: the newer one began later.
        let mut both =
            [runs::get(&visit.ctx, project, *first).await?, runs::get(&visit.ctx, project, *second).await?];
        both.sort_by_key(|run| (run.brief.start_time, run.brief.id));
        let [older, newer] = both.map(|run| run.brief.id);
        let address = format!("/test-runs/{newer}?tab=compare&with={older}");
        return Ok(Redirect::to(&address).into_response());
    }
    let query = RunQuery { projects: vec![project.get()], finished: true, ..RunQuery::default() };
    let found = runs::list(&visit.ctx, visit.scope(), &query, OFFERED).await?.items;
    let label = |run: &RunItem| {
        let branch = run.brief.branch.as_deref().unwrap_or("no branch");
        format!(
            "#{} {} · {branch} · {}",
            run.brief.id,
            name_of(run),
            relative(run.brief.start_time, visit.now)
        )
    };
    let id = |at: usize| asked.runs.get(at).map(|run| run.get().to_string());
    let is_asked = |run: &RunItem| asked.runs.iter().any(|asked| asked.get() == run.brief.id);
    // Two of one place differ by the code, and not by where it ran.
    let place = |run: &RunItem| (run.brief.branch.clone(), run.brief.environment.clone());
    let newest = match asked.runs.first() {
        Some(id) => found.iter().find(|run| run.brief.id == id.get()),
        None => found.first(),
    };
    let (alike, others): (Vec<&RunItem>, Vec<&RunItem>) = found
        .iter()
        .filter(|run| !is_asked(run))
        .partition(|run| newest.is_some_and(|newest| place(run) == place(newest)));
    let mut rest = alike.into_iter().chain(others).map(|run| run.brief.id.to_string());
    let second = id(1).or_else(|| rest.next());
    let first = id(0).or_else(|| rest.next());
    let mut offered: Vec<Choice> =
        found.iter().map(|run| Choice::new(run.brief.id.to_string(), label(run))).collect();
    // Those that are older than the ones that are offered.
    for run in asked.runs.iter().map(|run| run.get().to_string()) {
        if offered.iter().all(|choice| choice.value != run) {
            offered.push(Choice::new(run.clone(), format!("Run {run}")));
        }
    }
    answer(&CompareTab {
        first: first.unwrap_or_default(),
        second: second.unwrap_or_default(),
        runs: offered,
        too_many: asked.runs.len() > 2,
        is_same: asked.is_same,
        shell,
        head,
    })
}
