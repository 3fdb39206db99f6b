//! What to do about a cluster: edits that heal its locators, the tests that
//! fail, who looks after them, and how to see that it is repaired.

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::scope::Authorized;
use callboard_domain::healing::verify::{FailingTest, verification};
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_domain::status::Outcome;
use callboard_domain::text::cut;
use callboard_store::clusters::reads::{OccurrenceFilter, occurrences};
use callboard_store::clusters::{self, ClusterRow};
use callboard_store::executions::ExecutionRow;
use callboard_store::test_cases::{self, TestCaseRow};
use callboard_store::{lanes, rollups};
use serde::Serialize;
use utoipa::ToSchema;

use super::healing::{LocatorHealing, of_subject};
use super::subject::Subject;
use crate::{Context, Entity, QueryError, Result};

/// Newest executions of a cluster that are looked at.
const MAX_EXECUTIONS: i64 = 100;
/// Executions whose locator is healed: each reads its evidence, and its trace.
const MAX_HEALED: usize = 8;
const MAX_EDITS: usize = 5;
const MAX_TESTS: usize = 20;
/// Decided executions that say how often a test fails.
const HISTORY: usize = 30;

/// The cluster a plan is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCluster {
    /// Cluster.
    pub id: i64,
    /// What a person calls it.
    pub title: Option<String>,
    /// One line that names it.
    pub signature: String,
    /// Type of its error.
    #[schema(example = "timeout")]
    pub error_type: &'static str,
    /// open, resolved or ignored.
    pub status: &'static str,
    /// Failing executions.
    pub occurrences: i64,
    /// `stopped-failing`, `diagnosis-verified` or `regressed`.
    pub fix_verification: Option<String>,
}

/// A change of one line of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedEdit {
    /// File.
    pub file_path: String,
    /// Line.
    pub line: Option<u32>,
    /// The line as it was when the test failed.
    pub current_line: Option<String>,
    /// The locator that failed.
    pub failing_locator: Option<String>,
    /// The locator to use.
    pub suggested_locator: Option<String>,
    /// How likely it is right, 0 to 100.
    pub score: Option<u8>,
    /// The change.
    pub unified_diff: Option<String>,
    /// The execution it comes from.
    pub execution_id: i64,
}

/// A test that fails for the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedTest {
    /// Test case.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File.
    pub file_path: String,
    /// Line of its declaration.
    pub line: Option<i64>,
    /// Browser project.
    pub browser_project: Option<String>,
    /// Its newest failing execution.
    pub execution_id: i64,
}

/// Who looks after the failing tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Ownership {
    /// The owner most of them name.
    pub owner: Option<String>,
    /// `annotation` when the tests name one.
    pub source: Option<&'static str>,
}

/// How to see that a repair holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Verify {
    /// Command for a shell; empty when no test is known.
    #[schema(
        example = "npx playwright test tests/pay.spec.ts:7 --project=chromium --repeat-each=3 --retries=0"
    )]
    pub command: String,
    /// What it has to show.
    pub expectation: String,
}

/// What to do about a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixPlan {
    /// The cluster.
    pub cluster: PlannedCluster,
    /// What a model says of it; null without one.
    #[schema(value_type = Option<Object>)]
    pub diagnosis: Option<serde_json::Value>,
    /// Changes that heal its locators, at most five.
    pub edits: Vec<PlannedEdit>,
    /// Tests that fail for it, the newest first, at most twenty.
    pub failing_tests: Vec<PlannedTest>,
    /// Who looks after them.
    pub ownership: Ownership,
    /// How to see that a repair holds.
    pub verify: Verify,
}

/// Plans the repair of a cluster from what is stored. What is not known is
/// left out; it is never an error.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn fix_plan(ctx: &Context, project: Authorized<ProjectId>, id: ClusterId) -> Result<FixPlan> {
    let project_id = project.get();
    let mut session = ctx.store.db().read().await?;
    let cluster = clusters::get(&mut session, project_id, id).await?;
    let cluster = match cluster.ok_or_else(|| QueryError::not_found(Entity::Cluster, id))? {
        ClusterRow { merged_into: Some(into), .. } => clusters::get(&mut session, project_id, into).await?,
        cluster => Some(cluster),
    };
    let cluster = cluster.ok_or_else(|| QueryError::not_found(Entity::Cluster, id))?;
    let newest = OccurrenceFilter::default();
    let rows = occurrences(&mut session, project_id, Some(cluster.id), &newest, MAX_EXECUTIONS).await?;
    let browsers = lanes::browsers(&mut session, project_id).await?;
    // The newest failure of each test in each browser project.
    let mut seen = BTreeSet::new();
    let failing: Vec<&ExecutionRow> =
        rows.iter().filter(|row| seen.insert((row.test_case, row.browser_id))).take(MAX_TESTS).collect();
    let ids: BTreeSet<i64> = failing.iter().map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(&mut session, project_id, ids.into_iter().collect()).await?;
    let cases: BTreeMap<i64, TestCaseRow> = cases.into_values().map(|case| (case.id.get(), case)).collect();
    let mut planned = Vec::new();
    let mut to_verify = Vec::new();
    for row in &failing {
        let Some(case) = cases.get(&row.test_case.get()) else { continue };
        let browser =
            browsers.iter().find(|browser| browser.id == row.browser_id).map(|browser| browser.name.clone());
        let browser = browser.filter(|name| !name.is_empty());
        let state = rollups::state(&mut session, project_id, row.lane_id, row.test_case).await?;
        let history = state.map_or((1, 1), |state| history(&state, row.browser_id));
        to_verify.push(FailingTest {
            file_path: case.file_path.clone(),
            line: row.facts.line.filter(|line| *line > 0),
            titles: case.suite_path.iter().chain([&case.title]).cloned().collect(),
            project: browser.clone().unwrap_or_default(),
            history,
        });
        planned.push(PlannedTest {
            test_case_id: case.id.get(),
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            line: row.facts.line.filter(|line| *line > 0),
            browser_project: browser,
            execution_id: row.id.get(),
        });
    }
    drop(session);

    let mut edits: Vec<PlannedEdit> = Vec::new();
    let mut places = BTreeSet::new();
    let mut tried = BTreeSet::new();
    for row in failing.iter().filter(|row| tried.insert(row.test_case)).take(MAX_HEALED) {
        if edits.len() == MAX_EDITS {
            break;
        }
        let subject = Subject::read(ctx, project, row.id).await?;
        let healing = of_subject(ctx, project, &subject).await?;
        if let Some(edit) = edit_of(&healing, row)
            && places.insert((edit.file_path.clone(), edit.line))
        {
            edits.push(edit);
        }
    }
    let verify = match verification(&to_verify) {
        Some(found) => Verify {
            expectation: format!(
                "All {} test{} pass {} time{} in a row, without retries: then the failure counts as repaired.",
                found.tests,
                plural(found.tests),
                found.repeats,
                plural(found.repeats as usize)
            ),
            command: found.command,
        },
        None => Verify {
            command: String::new(),
            expectation: "No failing test of it is stored any more.".to_owned(),
        },
    };
    Ok(FixPlan {
        cluster: planned_cluster(&cluster),
        diagnosis: None,
        edits,
        ownership: ownership(planned.iter().filter_map(|test| cases.get(&test.test_case_id))),
        failing_tests: planned,
        verify,
    })
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn planned_cluster(cluster: &ClusterRow) -> PlannedCluster {
    PlannedCluster {
        id: cluster.id.get(),
        title: cluster.title.clone(),
        signature: cluster.signature.clone(),
        error_type: cluster.error_type.as_str(),
        status: cluster.status.as_str(),
        occurrences: cluster.occurrences,
        fix_verification: cluster.fix_verification.clone(),
    }
}

fn edit_of(healing: &LocatorHealing, row: &ExecutionRow) -> Option<PlannedEdit> {
    let recommended = healing.recommended()?;
    let location = healing.location.as_deref().map(callboard_domain::ingest::Location::parse);
    let edit = healing.edit.as_ref();
    Some(PlannedEdit {
        file_path: edit
            .map(|edit| edit.file_path.clone())
            .or_else(|| location.as_ref().map(|place| place.path.clone()))?,
        line: edit.map(|edit| edit.line).or_else(|| location.and_then(|place| place.line)),
        current_line: healing.source_line.as_ref().map(|line| cut(line.text.clone(), 1_000)),
        failing_locator: healing.failing_text.clone(),
        suggested_locator: Some(recommended.locator.clone()),
        score: Some(recommended.score),
        unified_diff: edit.map(|edit| edit.unified_diff.clone()),
        execution_id: row.id.get(),
    })
}

/// How many of the last decided executions of a series failed.
fn history(state: &callboard_domain::test_state::TestState, browser: i64) -> (u32, u32) {
    let slot = callboard_domain::test_state::RecentOutcome::slot_of(browser);
    let decided =
        state.recent().rev().filter(|recent| recent.browser_slot == slot && recent.outcome.is_decided());
    decided.take(HISTORY).fold((0, 0), |(failed, runs), recent| {
        (failed + u32::from(recent.outcome != Outcome::Passed), runs + 1)
    })
}

/// The owner that most tests name; the first of the alphabet among equals.
fn ownership<'c>(cases: impl Iterator<Item = &'c TestCaseRow>) -> Ownership {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for owner in cases.filter_map(|case| case.meta.owner.as_deref()) {
        *counts.entry(owner).or_default() += 1;
    }
    let owner = counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(owner, _)| owner.to_owned());
    Ownership { source: owner.is_some().then_some("annotation"), owner }
}
