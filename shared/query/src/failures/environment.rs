//! How the surroundings of a failure differ from those of the last pass.

use callboard_auth::scope::Authorized;
use callboard_domain::environment::{Difference, Surroundings, add, differences, written_out};
use callboard_domain::evidence::Browser;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::executions::ExecutionRow;
use callboard_store::runs::{self, RunRow};
use futures::try_join;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::subject::{LastPass, Subject, last_passed};
use crate::{Context, Result};

/// Whether there was something to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvironmentStatus {
    /// There was.
    Ok,
    /// The test did not pass before.
    NoBaseline,
}

/// A pass that a failure is compared with.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassedBefore {
    /// The execution.
    pub execution_id: i64,
    /// Its run.
    pub run_id: i64,
    /// When that run started.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
}

impl PassedBefore {
    fn from_row(row: &ExecutionRow, run: &RunRow) -> Self {
        Self { execution_id: row.id.get(), run_id: run.id.get(), start_time: run.start_time }
    }
}

/// The last time the test of an execution passed before its run.
pub(crate) async fn passed_before(
    session: &mut Session,
    row: &ExecutionRow,
    run: &RunRow,
) -> Result<Option<PassedBefore>> {
    Ok(last_passed(session, row, run).await?.map(|(row, run)| PassedBefore::from_row(&row, &run)))
}

/// A property that differs.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EnvironmentEntry {
    /// Dotted name.
    #[schema(example = "browser.viewport.width")]
    pub key: String,
    /// Name for people.
    #[schema(example = "Browser viewport width")]
    pub label: String,
    /// Value when it failed.
    pub failing: Option<String>,
    /// Value when it passed.
    pub baseline: Option<String>,
    /// Whether it differs from run to run anyway.
    pub informational: bool,
}

/// How the surroundings of an execution differ from those of the last pass.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EnvironmentDiff {
    /// Whether there was something to compare with.
    pub status: EnvironmentStatus,
    /// The pass.
    pub baseline: Option<PassedBefore>,
    /// What differs, what may explain the failure first; at most 100.
    pub entries: Vec<EnvironmentEntry>,
}

/// Compares an execution with the last pass of its test that precedes it.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn environment_diff(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<EnvironmentDiff> {
    let subject = Subject::read(ctx, project, id).await?;
    let Some(last) = subject.last_passed(ctx).await? else {
        return Ok(EnvironmentDiff {
            status: EnvironmentStatus::NoBaseline,
            baseline: None,
            entries: Vec::new(),
        });
    };
    let found = compare(ctx, &subject, last).await?;
    Ok(EnvironmentDiff {
        status: EnvironmentStatus::Ok,
        baseline: Some(PassedBefore::from_row(&last.row, &last.run)),
        entries: found
            .into_iter()
            .map(|found| EnvironmentEntry {
                label: label(&found.key),
                key: found.key,
                failing: found.failing,
                baseline: found.baseline,
                informational: found.informational,
            })
            .collect(),
    })
}

/// What differs between a failure and a pass.
pub(super) async fn compare(ctx: &Context, subject: &Subject, last: &LastPass) -> Result<Vec<Difference>> {
    let evidence = last.evidence(ctx).await?;
    // Evidence goes earlier than its execution. What one side cannot tell any more is no difference.
    let browsers = subject.evidence.browser.as_ref().zip(evidence.browser.as_ref()).unzip();
    let (failing, passing) = try_join!(
        surroundings(ctx, &subject.row, &subject.run, browsers.0),
        surroundings(ctx, &last.row, &last.run, browsers.1),
    )?;
    Ok(differences(&failing, &passing))
}

async fn surroundings(
    ctx: &Context,
    row: &ExecutionRow,
    run: &RunRow,
    browser: Option<&Browser>,
) -> Result<Surroundings> {
    let details = runs::details(&mut ctx.store.db().read().await?, run.project, run.id).await?;
    let mut found = Surroundings::new();
    // What the columns say wins over what metadata says.
    add(&mut found, "", &serde_json::from_str::<Value>(&details.metadata).unwrap_or_default());
    let browser = serde_json::to_value(browser).unwrap_or_default();
    add(&mut found, "browser", &browser);
    let columns = json!({
        "branch": run.branch,
        "environment": run.environment,
        "playwrightVersion": run.playwright_version,
        "reporterVersion": run.reporter_version,
        "commit": run.commit_sha,
        "label": run.label,
        "buildUrl": run.build_url,
        "worker": row.facts.worker_index,
        "parallel": row.facts.parallel_index,
        "shard": row.facts.shard_index,
        "timeoutMs": row.facts.timeout_ms,
    });
    add(&mut found, "", &columns);
    Ok(found)
}

/// `browser.viewport.width` as `Browser viewport width`. What reporters tell of
/// their machine needs no word for the machine.
pub(super) fn label(key: &str) -> String {
    if let Some(name) = written_out(key.strip_prefix("host.").unwrap_or(key)) {
        return name.to_owned();
    }
    let mut label = String::with_capacity(key.len() + 8);
    for (index, char) in key.chars().enumerate() {
        match char {
            '.' | '_' => label.push(' '),
            char if index == 0 => label.extend(char.to_uppercase()),
            char if char.is_uppercase() => {
                label.push(' ');
                label.extend(char.to_lowercase());
            }
            char => label.push(char),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn names_of_properties_are_read_by_people() {
        for (key, name) in [
            ("browser.viewport.width", "Browser viewport width"),
            ("playwrightVersion", "Playwright version"),
            ("host.node", "Node.js"),
            ("host.os", "Operating system"),
        ] {
            assert_eq!(label(key), name);
        }
    }
}
