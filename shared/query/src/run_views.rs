//! A run seen from other sides: by file, by worker and time, as what to run
//! again, and as what changed since it was green.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::rerun::{self, Target};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::ExecutionFlags as Flags;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals as StoredTotals;
use callboard_store::db::Session;
use callboard_store::executions::brief::{self, TimeKey};
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, FlagMask};
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, RunRow};
use callboard_store::{lanes, test_cases};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::baseline::{self, BaselineRun};
use crate::comparison::each_step;
use crate::executions::show;
use crate::page::{Slice, fetch};
use crate::projects::required;
use crate::runs::required_run;
use crate::shapes::{Totals, non_empty};
use crate::{Context, Result};

/// Differences of metadata that are listed.
const DIFFERENCES: usize = 100;
/// Most characters of a value in a difference.
const VALUE_CHARS: usize = 300;

/// How files are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum SpecSort {
    /// Most failed tests first.
    #[default]
    Failed,
    /// Longest first.
    Duration,
    /// By path.
    File,
}

/// Place in a list of files: what it is sorted by, and the path.
pub type SpecKey = (i64, String);

/// The tests of one file in a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecItem {
    /// File of the tests.
    pub file_path: String,
    /// Totals.
    #[serde(flatten)]
    pub totals: Totals,
    /// Sum over all attempts.
    pub duration: i64,
}

/// The files of a run; bounded by the run.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn specs(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    sort: SpecSort,
    after: Option<SpecKey>,
    limit: usize,
) -> Result<Slice<SpecItem, SpecKey>> {
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project.get(), run).await?;
    let files = brief::by_file(&mut session, project.get(), run).await?;
    let mut items: Vec<SpecItem> = files
        .into_iter()
        .map(|(file_path, sums)| {
            let mut totals = StoredTotals::default();
            for (outcome, count) in sums.outcomes {
                totals.count(outcome, count);
            }
            SpecItem { file_path, totals: totals.into(), duration: sums.duration_ms }
        })
        .collect();
    let key = |item: &SpecItem| {
        let number = match sort {
            SpecSort::Failed => -item.totals.failed_tests,
            SpecSort::Duration => -item.duration,
            SpecSort::File => 0,
        };
        (number, item.file_path.clone())
    };
    items.retain(|item| after.as_ref().is_none_or(|after| key(item) > *after));
    items.sort_by_cached_key(key);
    Ok(Slice::cut(items, limit, key))
}

/// A test in the time line of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineItem {
    /// Execution.
    pub execution_id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Worker of the deciding attempt.
    pub worker_index: i64,
    /// Its slot among the parallel workers.
    pub parallel_index: Option<i64>,
    /// Its shard.
    pub shard_index: Option<i64>,
    /// Start of the earliest attempt.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// Sum over all attempts.
    pub duration: i64,
    /// Status.
    #[schema(value_type = String, example = "passed")]
    pub status: TestStatus,
    /// Passed after a failed attempt.
    pub flaky: bool,
}

/// What ran when, worker by worker. Tests that do not say when and where they
/// ran are left out.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn timeline(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    worker: Option<i64>,
    after: Option<TimeKey>,
    limit: usize,
) -> Result<Slice<TimelineItem, TimeKey>> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project, run).await?;
    let rows = brief::timeline(&mut session, project, run, worker, after, fetch(limit)).await?;
    let cases = rows.iter().map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(&mut session, project, cases).await?;
    let key = |row: &brief::BriefRow| {
        let started = row.started_at.map_or(0, Timestamp::millis);
        (row.worker_index.unwrap_or_default(), started, row.id.get())
    };
    let rows = Slice::cut(rows, limit, key);
    let items = rows.items.iter().filter_map(|row| {
        let case = cases.get(&row.test_case)?;
        Some(TimelineItem {
            execution_id: row.id.get(),
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            worker_index: row.worker_index?,
            parallel_index: row.parallel_index,
            shard_index: row.shard_index,
            started_at: row.started_at?,
            duration: row.total_duration_ms,
            status: row.outcome.status(),
            flaky: row.outcome == Outcome::Flaky,
        })
    });
    Ok(Slice { items: items.collect(), next: rows.next })
}

/// Which tests are to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RerunSelect {
    /// Failed and timed out ones.
    #[default]
    Failed,
    /// Flaky ones.
    Flaky,
    /// Those that passed before and fail now.
    New,
    /// Those that were interrupted or never started.
    NotRun,
}

/// Tests to run again.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rerun {
    /// Number of tests.
    pub count: i64,
    /// The tests.
    pub items: Vec<RerunItem>,
    /// Runs them; empty when there are none.
    #[schema(example = "npx playwright test tests/cart.spec.ts:7")]
    pub command: String,
}

/// A test to run again.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RerunItem {
    /// `file:line`; the file alone when the line is not known.
    #[schema(example = "tests/cart.spec.ts:7")]
    pub target: String,
    /// Title of the test.
    pub title: String,
    /// Name of the browser project; empty when there is none.
    pub browser_project: String,
}

/// The tests of a run that are to run again, with the arguments that select
/// them.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn rerun(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    select: RerunSelect,
    limit: usize,
) -> Result<(Rerun, String)> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project, run).await?;
    let outcomes: &[Outcome] = match select {
        RerunSelect::Failed | RerunSelect::New => &[Outcome::Failed, Outcome::TimedOut],
        RerunSelect::Flaky => &[Outcome::Flaky],
        RerunSelect::NotRun => &[Outcome::DidNotRun, Outcome::Interrupted],
    };
    let flag = Flags::NEW_REGRESSION.bits();
    let filter = ExecutionFilter {
        outcomes: Some(outcomes.iter().map(|outcome| outcome.code()).collect()),
        flags: (select == RerunSelect::New).then_some(FlagMask { asked: flag, wanted: flag }),
        ..ExecutionFilter::default()
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows =
        executions::list(&mut session, project, run, &filter, &ExecutionOrder::Id(None), limit).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let tests = show(&mut session, project, &rows, &browsers).await?;
    let targets: Vec<Target> = tests
        .iter()
        .map(|test| Target {
            file_path: test.file_path.clone(),
            line: test.line,
            browser_project: test.browser_project.clone(),
        })
        .collect();
    let items = targets.iter().zip(&tests).map(|(target, test)| RerunItem {
        target: target.shown(),
        title: test.title.clone(),
        browser_project: test.browser_project.clone(),
    });
    let rerun = Rerun {
        count: i64::try_from(tests.len()).unwrap_or(i64::MAX),
        items: items.collect(),
        command: rerun::command(&targets),
    };
    let arguments = rerun::arguments(&targets);
    Ok((rerun, arguments))
}

/// What changed since a run's branch was green.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegressionContext {
    /// Whether there is a green run to compare with.
    pub has_green: bool,
    /// The green run.
    pub green: Option<RunPlace>,
    /// Where the run itself stands.
    pub current: CodePlace,
    /// The commits in between; null when one of the two is not known, or they are the same.
    pub commit_range: Option<CommitRange>,
    /// What the two runs told differently about themselves, at most a hundred values.
    pub metadata_diff: Vec<MetadataDifference>,
    /// Tests that fail now and did not in the green run; null without one.
    pub new_failures: Option<i64>,
}

/// A green run and its code.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPlace {
    /// The run.
    pub run_id: i64,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// Its code.
    #[serde(flatten)]
    pub place: CodePlace,
}

/// A state of the code.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CodePlace {
    /// Branch.
    pub branch: Option<String>,
    /// Commit.
    pub commit: Option<String>,
}

impl CodePlace {
    fn of(run: &RunRow) -> Self {
        Self { branch: non_empty(&run.branch), commit: run.commit_sha.clone() }
    }
}

/// The commits between two runs.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitRange {
    /// Commit of the green run.
    pub from_sha: String,
    /// Commit of the run.
    pub to_sha: String,
    /// Where the code host shows the range; null when the project names no repository at a known one.
    pub compare_url: Option<String>,
    /// Lists the commits; null when a commit is no hexadecimal hash.
    #[schema(example = "git log --oneline 0a1b2c3..4d5e6f7")]
    pub git_command: Option<String>,
}

/// A value that two runs told differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MetadataDifference {
    /// Its place in the metadata.
    #[schema(example = "ci.jobName")]
    pub key: String,
    /// The last part of it, as words.
    #[schema(example = "job name")]
    pub label: String,
    /// In the green run.
    pub before: Option<String>,
    /// In this run.
    pub after: Option<String>,
}

/// What changed since a run was green.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn regression_context(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
) -> Result<RegressionContext> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let row = required_run(&mut session, project, run).await?;
    let owner = required(&mut session, project).await?;
    let Some(BaselineRun { row: green, .. }) = baseline::of_run(&mut session, &row).await? else {
        return Ok(RegressionContext {
            has_green: false,
            green: None,
            current: CodePlace::of(&row),
            commit_range: None,
            metadata_diff: Vec::new(),
            new_failures: None,
        });
    };
    let before = runs::details(&mut session, project, green.id).await?.metadata;
    let after = runs::details(&mut session, project, run).await?.metadata;
    Ok(RegressionContext {
        has_green: true,
        commit_range: commit_range(&owner, &green, &row),
        metadata_diff: differences(&before, &after),
        new_failures: Some(new_failures(&mut session, &green, &row).await?),
        current: CodePlace::of(&row),
        green: Some(RunPlace {
            run_id: green.id.get(),
            start_time: green.start_time,
            place: CodePlace::of(&green),
        }),
    })
}

/// Tests that fail in a run and did not in the green one.
async fn new_failures(session: &mut Session, green: &RunRow, run: &RunRow) -> Result<i64> {
    // A green run may hold failed tests when its client said that it passed all the same.
    let mut known: HashSet<(TestCaseId, i64)> = HashSet::new();
    each_step(session, green, |row| {
        if row.outcome.status().is_failing() {
            known.insert(row.series());
        }
    })
    .await?;
    let mut new = 0;
    each_step(session, run, |row| {
        new += i64::from(row.outcome.status().is_failing() && !known.contains(&row.series()));
    })
    .await?;
    Ok(new)
}

fn commit_range(project: &ProjectRow, green: &RunRow, run: &RunRow) -> Option<CommitRange> {
    let (from, to) = (green.commit_sha.clone()?, run.commit_sha.clone()?);
    if from == to {
        return None;
    }
    let is_hash = |sha: &String| sha.len() >= 7 && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_known = is_hash(&from) && is_hash(&to);
    let url = project.repository_url.as_deref().filter(|_| is_known);
    let url = url.map(|url| url.trim_end_matches('/').trim_end_matches(".git"));
    let compare_url = match (url, project.repository_provider.as_deref()) {
        (Some(url), Some("github")) => Some(format!("{url}/compare/{from}...{to}")),
        (Some(url), Some("gitlab")) => Some(format!("{url}/-/compare/{from}...{to}")),
        (Some(url), Some("bitbucket")) => Some(format!("{url}/branches/compare/{to}..{from}")),
        _ => None,
    };
    let git_command = is_known.then(|| format!("git log --oneline {from}..{to}"));
    Some(CommitRange { from_sha: from, to_sha: to, compare_url, git_command })
}

/// The values that two JSON objects hold under different words, by their place.
fn differences(before: &str, after: &str) -> Vec<MetadataDifference> {
    let read = |text: &str| {
        let mut values = BTreeMap::new();
        flatten(String::new(), &serde_json::from_str(text).unwrap_or_default(), &mut values);
        values
    };
    let (before, after) = (read(before), read(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differing
        .take(DIFFERENCES)
        .map(|key| MetadataDifference {
            key: key.clone(),
            label: label(key),
            before: before.get(key).cloned(),
            after: after.get(key).cloned(),
        })
        .collect()
}

fn flatten(place: String, value: &Value, values: &mut BTreeMap<String, String>) {
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(below(name), value, values)),
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                flatten(below(&at.to_string()), value, values);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            values.insert(place, callboard_domain::text::cut(text.clone(), VALUE_CHARS));
        }
        other => {
            values.insert(place, other.to_string());
        }
    }
}

fn label(key: &str) -> String {
    let last = key.rsplit('.').find(|part| !part.bytes().all(|byte| byte.is_ascii_digit()));
    callboard_domain::search::words([last.unwrap_or(key)]).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_differs_by_place_and_not_by_order() {
        let before = r#"{"ci":{"jobName":"e2e","run":1},"os":"linux","tags":["a","b"]}"#;
        let after = r#"{"os":"linux","tags":["a"],"ci":{"run":2,"jobName":"e2e"},"node":"24"}"#;
        let found = differences(before, after);
        let shown: Vec<_> = found
            .iter()
            .map(|found| {
                (found.key.as_str(), found.label.as_str(), found.before.as_deref(), found.after.as_deref())
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("ci.run", "run", Some("1"), Some("2")),
                ("node", "node", None, Some("24")),
                ("tags.1", "tags", Some("b"), None),
            ]
        );
        assert_eq!(label("ci.jobName"), "job name");
        assert_eq!(differences("not json", "{}"), []);
    }
}
