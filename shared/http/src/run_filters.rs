//! The filters that all lists of runs share, as they come in a query string.

use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_query::runs::{RunKey, RunQuery};
use callboard_query::shapes::words::RunStatusWord;
use serde::Serialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::extract::{FromQuery, QueryReader};

const ORDERS: [&str; 2] = ["desc", "asc"];

callboard_query::vocabularies! {
    /// An order of runs.
    OrderWord => ORDERS;
}

/// Which runs a list shows, and in which order.
#[derive(Debug, Clone, Default, Serialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct RunFilters {
    /// Exact, repeatable; an empty value stands for runs without a branch.
    #[param(required = false)]
    pub branch: Vec<String>,
    /// Exact, repeatable; an empty value stands for runs without an environment.
    #[param(required = false)]
    pub environment: Vec<String>,
    /// Comma list or repeated: initializing, running, finalizing, passed, failed, timedout, interrupted,
    /// cancelled.
    #[param(required = false, value_type = Vec<RunStatusWord>, example = json!(["failed", "timedout"]), inline)]
    pub status: Vec<RunStatus>,
    /// Date or date-time; only runs started then or later.
    #[param(value_type = Option<String>, example = "2026-01-01")]
    pub from: Option<Timestamp>,
    /// Date or date-time; only runs started then or earlier. A date includes its UTC day.
    #[param(value_type = Option<String>, example = "2026-01-31")]
    pub to: Option<Timestamp>,
    /// `true`: only full runs, `false`: only partial ones.
    pub full_runs: Option<bool>,
    /// Beginning of the commit, 7 to 64 hexadecimal digits.
    #[param(example = "a1b2c3d")]
    pub commit: Option<String>,
    /// Exact change request.
    pub pull_request: Option<String>,
    /// Exact author of the commit.
    pub author: Option<String>,
    /// Beginning of the label.
    pub label: Option<String>,
    /// Whether any test failed.
    pub has_failures: Option<bool>,
    /// Whether it is a full run that passed.
    pub green: Option<bool>,
    /// Whether it is pinned.
    pub pinned: Option<bool>,
    /// `desc` (newest first, the default) or `asc`.
    #[param(value_type = Option<OrderWord>, example = "desc", inline)]
    pub order: Order,
    /// Projects; set by the handler.
    #[param(ignore)]
    pub projects: Vec<ProjectId>,
}

/// By start, then id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Order {
    /// Newest first.
    #[default]
    Desc,
    /// Oldest first.
    Asc,
}

impl FromQuery for RunFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let (from, to) = query.window()?;
        let order = query.word("order", &ORDERS, |word| match word {
            "desc" => Some(Order::Desc),
            "asc" => Some(Order::Asc),
            _ => None,
        })?;
        Ok(Self {
            branch: query.repeated("branch"),
            environment: query.repeated("environment"),
            status: run_statuses(query)?,
            from,
            to,
            full_runs: query.flag("fullRuns")?,
            commit: commit_prefix(query)?,
            pull_request: query.text("pullRequest")?,
            author: query.text("author")?,
            label: query.text("label")?,
            has_failures: query.flag("hasFailures")?,
            green: query.flag("green")?,
            pinned: query.flag("pinned")?,
            order: order.unwrap_or_default(),
            projects: Vec::new(),
        })
    }
}

impl RunFilters {
    /// The question behind the row with the key `after`.
    #[must_use]
    pub fn query(&self, after: Option<RunKey>) -> RunQuery {
        RunQuery {
            projects: self.projects.clone(),
            branches: self.branch.clone(),
            environments: self.environment.clone(),
            statuses: self.status.clone(),
            from: self.from,
            before: self.to.map(|to| Timestamp(to.millis() + 1)),
            full_runs: self.full_runs,
            commit_prefix: self.commit.clone(),
            pull_request: self.pull_request.clone(),
            author: self.author.clone(),
            label_prefix: self.label.clone(),
            has_failures: self.has_failures,
            green: self.green,
            pinned: self.pinned,
            finished: false,
            ascending: self.order == Order::Asc,
            after,
        }
    }
}

/// The `status` parameter of lists of runs.
///
/// # Errors
/// 400 `invalid_query` with the accepted words.
pub fn run_statuses(query: &QueryReader) -> Result<Vec<RunStatus>, ApiError> {
    query.words("status", &RunStatus::ALL.map(RunStatus::as_str), RunStatus::parse)
}

fn commit_prefix(query: &QueryReader) -> Result<Option<String>, ApiError> {
    let Some(commit) = query.text("commit")? else { return Ok(None) };
    let is_prefix = (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_prefix {
        return Ok(Some(commit.to_ascii_lowercase()));
    }
    Err(ApiError::invalid_query(
        "commit",
        format!("commit must be the first 7 to 64 hexadecimal digits, got {commit:?}."),
    ))
}
