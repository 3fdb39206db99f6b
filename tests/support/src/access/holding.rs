//! What a project holds that a request can name.

use anyhow::{Context, Result};
use callboard_domain::diagnosis::DiagnosisStatus;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::clusters::suggestions::{self, SuggestionMethod, SuggestionStatus};
use callboard_store::diagnoses::{self, NewDiagnosis, Subject};

/// Ids of what one project holds.
#[derive(Debug, Clone)]
pub struct Holding {
    /// The project.
    pub project: i64,
    /// Its name.
    pub name: String,
    /// A run.
    pub run: i64,
    /// A test case.
    pub test_case: i64,
    /// An execution.
    pub execution: i64,
    /// A file.
    pub file: i64,
    /// A link of the run.
    pub link: i64,
    /// A marker.
    pub marker: i64,
    /// A function of its suite.
    pub function: i64,
    /// An export of the run.
    pub export: i64,
    /// A failure cluster.
    pub cluster: i64,
    /// A suggestion about it.
    pub suggestion: i64,
    /// A diagnosis of it.
    pub diagnosis: i64,
    /// A policy of gates.
    pub policy: i64,
}

impl Holding {
    pub(super) const MISSING: i64 = 999_999;

    /// Ids that nothing has.
    #[must_use]
    pub fn missing() -> Self {
        let none = Self::MISSING;
        Self {
            project: none,
            name: "never seen".to_owned(),
            run: none,
            test_case: none,
            execution: none << 20 | 1,
            file: none,
            link: none,
            marker: none,
            function: none,
            export: none,
            cluster: none,
            suggestion: none,
            diagnosis: none,
            policy: none,
        }
    }
}

/// Suggests that a cluster is one with itself, which nothing does on its own:
/// approving it changes nothing.
///
/// # Errors
/// When the database refuses.
pub async fn suggestion(store: &Store, project: i64, cluster: i64, now: Timestamp) -> Result<i64> {
    let (project, cluster) = (ProjectId(project), ClusterId(cluster));
    let mut session = store.db().begin().await?;
    let method = (SuggestionMethod::Fingerprint, None);
    suggestions::suggest(&mut session, project, (cluster, cluster), method, "a test", now).await?;
    let found = suggestions::list(&mut session, project, SuggestionStatus::Pending, None, 1).await?;
    session.commit().await?;
    Ok(found.first().context("a suggestion")?.id.get())
}

/// Stores a diagnosis of a cluster that has ended without an answer.
///
/// # Errors
/// When the database refuses.
pub async fn diagnosis(store: &Store, project: i64, cluster: i64, now: Timestamp) -> Result<i64> {
    let (project, cluster) = (ProjectId(project), ClusterId(cluster));
    let mut session = store.db().begin().await?;
    let subject = Subject::Cluster(cluster);
    let id = diagnoses::create(&mut session, project, subject, NewDiagnosis::default(), now).await?;
    let row = diagnoses::get(&mut session, project, id).await?;
    let mut row = row.context("a diagnosis")?;
    row.status = DiagnosisStatus::Failed;
    row.error = Some("It was never begun.".to_owned());
    diagnoses::finish(&mut session, project, &row, now).await?;
    session.commit().await?;
    Ok(id.get())
}
