//! Failure clusters: failures of one cause, how often and where they
//! happened, and what people noted on them.
//!
//! Invariant: `occurrences`, `cluster_tests`, `cluster_runs` and
//! `cluster_daily` count the executions whose `cluster_id` leads there; they
//! change in the transaction that changes those rows, under the lock of the
//! cluster's row. `routes` leads from fingerprints to clusters, `counts`
//! counts, `reads` answers, `edit` is what people do, `reshape` moves
//! occurrences from one cluster to another, `verify` judges repairs.

pub mod counts;
pub mod edit;
pub mod list;
pub mod reads;
pub mod reshape;
pub mod routes;
pub mod suggestions;
pub mod verify;
pub mod versions;

pub use reads::{OccurrenceFilter, occurrences};

use callboard_domain::failure::{ErrorType, Fingerprint};
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError};

/// What people say of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClusterStatus {
    /// It waits for a repair.
    Open,
    /// It is repaired.
    Resolved,
    /// It is not worth a repair.
    Ignored,
    /// It was made part of another one and is shown nowhere.
    Merged,
}

impl ClusterStatus {
    /// Those one can ask for and set.
    pub const ALL: [Self; 3] = [Self::Open, Self::Resolved, Self::Ignored];

    /// The spelling on the wire and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Ignored => "ignored",
            Self::Merged => "merged",
        }
    }

    /// Reads a word one can ask for.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    pub(crate) fn stored(word: &str) -> Result<Self> {
        match word {
            "merged" => Ok(Self::Merged),
            word => Self::parse(word).ok_or(StoreError::Damaged("an unknown status of a cluster")),
        }
    }
}

/// A cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterRow {
    /// Id.
    pub id: ClusterId,
    /// Project.
    pub project: ProjectId,
    /// The fingerprint it was made for.
    pub fingerprint: Fingerprint,
    /// One line that names it.
    pub signature: String,
    /// What a person calls it.
    pub title: Option<String>,
    /// Type of the error.
    pub error_type: ErrorType,
    /// The element it is about.
    pub selector: Option<String>,
    /// The beginning of the sample error, with terminal colours.
    pub sample: String,
    /// What people say of it.
    pub status: ClusterStatus,
    /// When they said so.
    pub status_at: Timestamp,
    /// A note.
    pub note: Option<String>,
    /// Commit that changes are compared with.
    pub base_commit: Option<String>,
    /// Who looks after it.
    pub assignee: Option<UserId>,
    /// Until when nobody wants to hear of it.
    pub snoozed_until: Option<Timestamp>,
    /// The run that showed it first.
    pub first_run: RunId,
    /// When that run started.
    pub first_seen_at: Timestamp,
    /// The run that showed it last.
    pub last_run: RunId,
    /// When that run started.
    pub last_seen_at: Timestamp,
    /// How the test ended there: failed, timedout or flaky.
    pub last_status: String,
    /// Executions that failed for this cause.
    pub occurrences: i64,
    /// Tests among them.
    pub affected_tests: i64,
    /// First run after the last occurrence in which its tests were clean.
    pub fix_run: Option<RunId>,
    /// When that was, or when a person said it is repaired.
    pub fix_at: Option<Timestamp>,
    /// Commit of that run.
    pub fix_commit: Option<String>,
    /// From the first occurrence to the repair, ms.
    pub ttr_ms: Option<i64>,
    /// `stopped-failing`, `diagnosis-verified` or `regressed`.
    pub fix_verification: Option<String>,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// Last change by a person, or of its status.
    pub updated_at: Timestamp,
    /// The cluster it was made part of.
    pub merged_into: Option<ClusterId>,
    /// Whether clean runs since the last occurrence are more than luck.
    pub is_quiet: bool,
    /// How often it was quiet and failed again.
    pub false_quiets: i64,
    /// The execution that showed it first.
    pub first_execution: ExecutionId,
}

macro_rules! columns {
    () => {
        "c.id, c.project_id, c.fingerprint, c.signature, c.title, c.error_type, c.selector, substr(c.sample_error, 1, 1000), \
         c.status, c.status_at, c.note, c.base_commit, c.assignee_id, c.snoozed_until, c.first_run_id, c.first_seen_at, \
         c.last_run_id, c.last_seen_at, c.last_status, c.occurrences, c.affected_tests, c.fix_run_id, c.fix_at, \
         c.fix_commit, c.ttr_ms, c.fix_verification, c.created_at, c.updated_at, c.merged_into, c.false_quiets, \
         c.first_execution_id, c.is_quiet"
    };
}
pub(crate) use columns;

macro_rules! select_cluster {
    ($tail:literal) => {
        concat!("SELECT ", $crate::clusters::columns!(), " FROM failure_clusters c ", $tail)
    };
}
pub(crate) use select_cluster;

statements! {
    /// One cluster.
    BY_ID = select_cluster!("WHERE c.project_id = $1 AND c.id = $2");
    /// Several clusters.
    BY_IDS = select_cluster!("WHERE c.project_id = $1 AND c.id in_ints($2)");
    /// Several clusters, held until the end of the transaction; in the order everybody locks in.
    LOCK = select_cluster!("WHERE c.project_id = $1 AND c.id in_ints($2) ORDER BY c.id for_update()");
    /// The whole sample and the fields of one cluster.
    SAMPLE = "SELECT sample_error, fields FROM failure_clusters WHERE project_id = $1 AND id = $2";
}

pub(crate) fn read(row: &Row) -> Result<ClusterRow> {
    let mut r = row.reader();
    Ok(ClusterRow {
        id: ClusterId(r.int()?),
        project: ProjectId(r.int()?),
        fingerprint: Fingerprint::from_bytes(&r.bytes()?).ok_or(StoreError::Damaged("a fingerprint"))?,
        signature: r.text()?,
        title: r.opt_text()?,
        error_type: ErrorType::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown type of error"))?,
        selector: r.opt_text()?,
        sample: r.text()?,
        status: ClusterStatus::stored(&r.text()?)?,
        status_at: r.time()?,
        note: r.opt_text()?,
        base_commit: r.opt_text()?,
        assignee: r.opt_int()?.map(UserId),
        snoozed_until: r.opt_time()?,
        first_run: RunId(r.int()?),
        first_seen_at: r.time()?,
        last_run: RunId(r.int()?),
        last_seen_at: r.time()?,
        last_status: r.text()?,
        occurrences: r.int()?,
        affected_tests: r.int()?,
        fix_run: r.opt_int()?.map(RunId),
        fix_at: r.opt_time()?,
        fix_commit: r.opt_text()?,
        ttr_ms: r.opt_int()?,
        fix_verification: r.opt_text()?,
        created_at: r.time()?,
        updated_at: r.time()?,
        merged_into: r.opt_int()?.map(ClusterId),
        false_quiets: r.int()?,
        first_execution: ExecutionId(r.int()?),
        is_quiet: r.flag()?,
    })
}

/// One cluster, also one that was made part of another.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: ClusterId) -> Result<Option<ClusterRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Several clusters, in no order.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_many(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<Vec<ClusterRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    session.all(&BY_IDS, args![project, ids]).await?.iter().map(read).collect()
}

/// Several clusters by ascending id, held until the end of the transaction.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<Vec<ClusterRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    session.all(&LOCK, args![project, ids]).await?.iter().map(read).collect()
}

/// The sample error in full, and a JSON list of names and values of what the
/// failures of a cluster have in common.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sample(session: &mut Session, project: ProjectId, id: ClusterId) -> Result<(String, String)> {
    let row = session.one(&SAMPLE, args![project, id]).await?;
    let mut r = row.reader();
    Ok((r.text()?, r.text()?))
}
