//! How browser projects differ.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;
use callboard_domain::totals::rate;
use callboard_store::boxed;
use callboard_store::rollups;
use serde::Serialize;
use utoipa::ToSchema;

use super::{SeenProjects, WidgetQuery};
use crate::shapes::ProjectRef;
use crate::{Context, Result};
use callboard_ingest::read_session_with_fresh_aggregates_in;

/// Browser projects side by side; more of them are left out, the rarest first.
const MOST_BROWSERS: usize = 50;

/// Pass rates of projects by browser project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BrowserMatrix {
    /// Names of browser projects, in order.
    #[schema(example = json!(["chromium", "firefox"]))]
    pub browsers: Vec<String>,
    /// Projects.
    pub rows: Vec<BrowserRow>,
}

/// A project of the matrix.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BrowserRow {
    /// The project.
    pub project: ProjectRef,
    /// Passed / (passed + failed) tests in each browser project; null without any.
    pub cells: Vec<Option<f64>>,
}

/// Pass rates by browser project. Days of browsers hold no branches, so
/// neither `query.lane` nor `query.full_runs` matters.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn browser_matrix(
    ctx: &Context,
    seen: &SeenProjects,
    query: &WidgetQuery,
    today: Day,
) -> Result<BrowserMatrix> {
    let span = query.span(today);
    let mut session = read_session_with_fresh_aggregates_in(ctx, Some(&seen.ids())).await?;
    let mut days = rollups::browser_days(&mut session, seen.keys(), (span.since, span.until)).await?;
    let mut projects = Vec::with_capacity(seen.references.len());
    let mut weights: BTreeMap<String, i64> = BTreeMap::new();
    for project in &seen.references {
        let mut of_project = BTreeMap::new();
        for sums in days.remove(&ProjectId(project.id)).unwrap_or_default() {
            if let Some(pass_rate) = rate(sums.passed, sums.passed + sums.failed) {
                *weights.entry(sums.name.clone()).or_default() += sums.passed + sums.failed;
                of_project.insert(sums.name, pass_rate);
            }
        }
        if !of_project.is_empty() {
            projects.push((project.clone(), of_project));
        }
    }
    let mut browsers: Vec<(String, i64)> = weights.into_iter().collect();
    browsers.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    browsers.truncate(MOST_BROWSERS);
    let browsers: BTreeSet<String> = browsers.into_iter().map(|(name, _)| name).collect();
    let rows = projects.into_iter().map(|(project, of_project)| {
        let cells = browsers.iter().map(|browser| of_project.get(browser).copied()).collect();
        BrowserRow { project, cells }
    });
    Ok(BrowserMatrix { rows: rows.collect(), browsers: browsers.into_iter().collect() })
}
