//! What lies between a run and the green one before it: commits, what the two
//! told differently about themselves, and the tests that broke.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::Provider;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, RunRow};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::baseline;
use crate::comparison::each_step;
use crate::projects::required;
use crate::runs::required_run;
use crate::shapes::non_empty;
use crate::{Context, Result};

/// Differences of metadata that are listed.
const DIFFERENCES: usize = 100;
/// Most characters of a value in a difference.
const VALUE_CHARS: usize = 300;

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
    /// Tests that fail now and did not in the green run, whether it has them or
    /// not, those in quarantine included; null without one.
    pub new_failures: Option<i64>,
    /// Those of them that the green run does not have; for drawings.
    #[serde(skip)]
    pub without_green: i64,
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
    /// Environment it was tested in.
    pub environment: Option<String>,
    /// Commit.
    pub commit: Option<String>,
}

impl CodePlace {
    fn from_run(run: &RunRow) -> Self {
        Self {
            branch: non_empty(&run.branch),
            environment: non_empty(&run.environment),
            commit: run.commit_sha.clone(),
        }
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

/// What lies between a run and the green one it is measured against.
#[derive(Debug, Clone)]
pub struct SinceGreen {
    /// The green run.
    pub green: Option<RunPlace>,
    /// Where the run itself stands.
    pub current: CodePlace,
    /// The commits in between, when both ends are known and differ.
    pub commit_range: Option<CommitRange>,
    /// What the two runs told differently about themselves, at most a hundred values.
    pub metadata_diff: Vec<MetadataDifference>,
}

/// What lies between a run and the green one before it. The commits are those
/// since `base`, where a person named one.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn since_green(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    base: Option<&str>,
) -> Result<SinceGreen> {
    let mut session = ctx.store.db().read().await?;
    let row = required_run(&mut session, project.get(), run).await?;
    let green = baseline::of_run(&mut session, &row).await?.map(|found| found.row);
    between(&mut session, &row, green.as_ref(), base).await
}

async fn between(
    session: &mut Session,
    run: &RunRow,
    green: Option<&RunRow>,
    base: Option<&str>,
) -> Result<SinceGreen> {
    let owner = required(session, run.project).await?;
    let from = base.or_else(|| green?.commit_sha.as_deref());
    let metadata_diff = match green {
        Some(green) => {
            let before = runs::details(session, run.project, green.id).await?.metadata;
            let after = runs::details(session, run.project, run.id).await?.metadata;
            differences(&before, &after)
        }
        None => Vec::new(),
    };
    Ok(SinceGreen {
        commit_range: commit_range(&owner, from, run.commit_sha.as_deref()),
        metadata_diff,
        current: CodePlace::from_run(run),
        green: green.map(|green| RunPlace {
            run_id: green.id.get(),
            start_time: green.start_time,
            place: CodePlace::from_run(green),
        }),
    })
}

/// What changed since a run was green.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn regression_context(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
) -> Result<RegressionContext> {
    let mut session = ctx.store.db().read().await?;
    let row = required_run(&mut session, project.get(), run).await?;
    let green = baseline::of_run(&mut session, &row).await?.map(|found| found.row);
    let since = between(&mut session, &row, green.as_ref(), None).await?;
    let new_failures = match &green {
        Some(green) => Some(new_failures(&mut session, green, &row).await?),
        None => None,
    };
    let (new_failures, without_green) = new_failures.unzip();
    Ok(RegressionContext {
        has_green: green.is_some(),
        green: since.green,
        current: since.current,
        commit_range: since.commit_range,
        metadata_diff: since.metadata_diff,
        new_failures,
        without_green: without_green.unwrap_or(0),
    })
}

/// Tests that fail in a run and did not in the green one, with how many of them
/// that one does not have.
async fn new_failures(session: &mut Session, green: &RunRow, run: &RunRow) -> Result<(i64, i64)> {
    // A green run may hold failed tests when its client said that it passed all the same.
    let mut known: HashMap<(TestCaseId, i64), bool> = HashMap::new();
    each_step(session, green, |row| {
        known.insert(row.series(), row.outcome.status().is_failing());
    })
    .await?;
    let (mut new, mut absent) = (0, 0);
    each_step(session, run, |row| {
        if row.outcome.status().is_failing() {
            let before = known.get(&row.series());
            new += i64::from(before != Some(&true));
            absent += i64::from(before.is_none());
        }
    })
    .await?;
    Ok((new, absent))
}

fn commit_range(project: &ProjectRow, from: Option<&str>, to: Option<&str>) -> Option<CommitRange> {
    let (from, to) = (from?, to?);
    if from == to {
        return None;
    }
    let is_hash = |sha: &str| sha.len() >= 7 && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_known = is_hash(from) && is_hash(to);
    let url = project.repository_url.as_deref().filter(|_| is_known);
    let provider = project.repository_provider.as_deref().and_then(Provider::parse);
    let compare_url = url.zip(provider).map(|(url, provider)| provider.compare_page(url, from, to));
    let git_command = is_known.then(|| format!("git log --oneline {from}..{to}"));
    Some(CommitRange { from_sha: from.to_owned(), to_sha: to.to_owned(), compare_url, git_command })
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
    let last = key.rsplit('.').find(|part| !part.bytes().all(|byte| byte.is_ascii_digit())).unwrap_or(key);
    match callboard_domain::environment::written_out(last) {
        Some(name) => name.to_owned(),
        None => callboard_domain::search::words([last]).join(" "),
    }
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
                ("node", "Node.js", None, Some("24")),
                ("tags.1", "tags", Some("b"), None),
            ]
        );
        assert_eq!(label("ci.jobName"), "job name");
        assert_eq!(differences("not json", "{}"), []);
    }
}
