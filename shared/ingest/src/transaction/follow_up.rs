//! The jobs that follow a change of a run. The transaction of the change queues
//! them; what they do is in `complete`.

use callboard_domain::ids::{HistoryJoinId, ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::jobs::{self, Payload};
use callboard_store::source_paths;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The work after the end of a run; once per run, whichever way it ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Completion {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
}

impl Payload for Completion {
    const KIND: &'static str = "completion";
}

impl Completion {
    pub(crate) fn key(&self) -> String {
        format!("run:{}:completion", self.run)
    }
}

/// The numbers of a run that changed after its end, or was cancelled.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Recompute {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
}

impl Payload for Recompute {
    const KIND: &'static str = "recompute";
}

impl Recompute {
    /// One per change of the run.
    pub(crate) fn key(&self, version: i64) -> String {
        format!("run:{}:recompute:{version}", self.run)
    }
}

/// Histories of a project that are being joined, or made two again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JoinHistories {
    /// Project.
    pub project: ProjectId,
    /// Those that are worked on, and whether they are undone.
    #[serde(default)]
    pub joins: Vec<(HistoryJoinId, bool)>,
    /// The last run that was looked at, with its order key: the newest come first.
    #[serde(default)]
    pub after: Option<(i64, RunId)>,
}

impl Payload for JoinHistories {
    const KIND: &'static str = "join_histories";
}

impl JoinHistories {
    /// Queues the work on what was decided in this transaction.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    pub async fn enqueue(session: &mut Session, project: ProjectId, now: Timestamp) -> Result<()> {
        let key = format!("project:{project}:join_histories:{now}", now = now.millis());
        let job = Self { project, joins: Vec::new(), after: None };
        jobs::enqueue(session, &key, Some(project), &job, now).await?;
        Ok(())
    }
}

/// Tests of a project that may be the same under two paths are looked for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FindHistories {
    /// Project.
    pub project: ProjectId,
    /// The tests behind this one are looked at.
    pub after: TestCaseId,
    /// The last of them; all when there is none.
    #[serde(default)]
    pub until: Option<TestCaseId>,
}

impl Payload for FindHistories {
    const KIND: &'static str = "find_histories";
}

impl FindHistories {
    /// Queues the search among new tests, where it is known how paths were written before.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    pub async fn enqueue_for_new(
        session: &mut Session,
        project: ProjectId,
        (first, last): (TestCaseId, TestCaseId),
        now: Timestamp,
    ) -> Result<()> {
        if source_paths::prefixes(session, project).await?.is_empty() {
            return Ok(());
        }
        Self { project, after: TestCaseId(first.get() - 1), until: Some(last) }.enqueue(session, now).await
    }

    /// Queues the search.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    pub async fn enqueue(self, session: &mut Session, now: Timestamp) -> Result<()> {
        let Self { project, after, .. } = self;
        let key = format!("project:{project}:find_histories:{after}:{now}", now = now.millis());
        jobs::enqueue(session, &key, Some(project), &self, now).await?;
        Ok(())
    }
}
