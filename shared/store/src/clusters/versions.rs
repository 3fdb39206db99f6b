//! What rules of an older version made: routes whose fingerprints are told
//! anew, from the failures that are stored.

use callboard_domain::failure::{Fingerprint, Signature, VERSION};
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId};

use super::routes::{Resembling, add_template, resembling};
use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError};

statements! {
    /// Routes of older rules, in any project. ix: cluster_routes_by_version
    OUTDATED = "SELECT project_id, fingerprint FROM cluster_routes WHERE fp_version < $1 LIMIT $2";
    /// Newest failures of a fingerprint in some clusters. ix: executions_cluster
    FAILURES = "SELECT id FROM executions WHERE project_id = $1 AND cluster_id in_ints($2) AND cluster_id IS NOT NULL AND fingerprint = $3 \
        ORDER BY day DESC, id DESC LIMIT $4";
    /// The text that made a fingerprint known. PK
    SAMPLE = "SELECT sample_error FROM failure_clusters WHERE project_id = $1 AND fingerprint = $2 ORDER BY id LIMIT 1";
    /// Routes of a fingerprint are up to date: failures that are stored still come this way.
    MARK = "UPDATE cluster_routes SET fp_version = $3 WHERE project_id = $1 AND fingerprint = $2";
    /// Names a cluster by what the rules of today read.
    RENAME = "UPDATE failure_clusters SET fingerprint = $3, fp_version = $4, signature = $5, error_type = $6, selector = $7, fields = $8 \
        WHERE project_id = $1 AND fingerprint = $2 AND id = $9";
    /// Which of some clusters a person has changed. PK
    TOUCHED = "SELECT id FROM failure_clusters WHERE project_id = $1 AND id in_ints($2) AND is_touched = 1";
}

/// At most `limit` fingerprints that rules of an older version made, with
/// their projects.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn outdated(session: &mut Session, limit: i64) -> Result<Vec<(ProjectId, Fingerprint)>> {
    let rows = session.all(&OUTDATED, args![VERSION, limit]).await?;
    let mut found: Vec<(ProjectId, Fingerprint)> = rows.iter().map(read).collect::<Result<_>>()?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn read(row: &Row) -> Result<(ProjectId, Fingerprint)> {
    let mut r = row.reader();
    let project = ProjectId(r.int()?);
    let fingerprint = Fingerprint::from_bytes(&r.bytes()?).ok_or(StoreError::Damaged("a fingerprint"))?;
    Ok((project, fingerprint))
}

/// Executions that failed with a fingerprint in some clusters, the newest
/// first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn failures(
    session: &mut Session,
    project: ProjectId,
    clusters: Vec<i64>,
    fingerprint: Fingerprint,
    limit: i64,
) -> Result<Vec<ExecutionId>> {
    let rows = session.all(&FAILURES, args![project, clusters, fingerprint.0, limit]).await?;
    rows.iter().map(|row| row.reader().int().map(ExecutionId)).collect()
}

/// The text of the failure that made a fingerprint known.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sample(
    session: &mut Session,
    project: ProjectId,
    fingerprint: Fingerprint,
) -> Result<Option<String>> {
    let row = session.first(&SAMPLE, args![project, fingerprint.0]).await?;
    row.map(|row| row.reader().text()).transpose()
}

/// Notes that the routes of a fingerprint have been looked at by the rules of
/// today. They stay: what is stored with the old fingerprint comes this way
/// when it is sent again.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn mark(session: &mut Session, project: ProjectId, fingerprint: Fingerprint) -> Result<()> {
    session.execute(&MARK, args![project, fingerprint.0, VERSION]).await?;
    Ok(())
}

/// Names the cluster that a fingerprint made by what the rules of today read.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn rename(
    session: &mut Session,
    project: ProjectId,
    cluster: ClusterId,
    old: Fingerprint,
    signature: &Signature,
) -> Result<bool> {
    let selector = Some(signature.target.clone()).filter(|target| !target.is_empty());
    // A list of texts has no way to fail.
    let fields = serde_json::to_string(&signature.grouped_by()).unwrap_or_default();
    let values = args![
        project,
        old.0,
        signature.fingerprint().0,
        VERSION,
        signature.title(),
        signature.error_type().as_str(),
        selector,
        fields,
        cluster
    ];
    Ok(session.execute(&RENAME, values).await? > 0)
}

/// Which of some clusters a person has changed.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn touched(
    session: &mut Session,
    project: ProjectId,
    clusters: Vec<i64>,
) -> Result<Vec<ClusterId>> {
    let rows = session.all(&TOUCHED, args![project, clusters]).await?;
    rows.iter().map(|row| row.reader().int().map(ClusterId)).collect()
}

/// Makes wordings like that of a failure lead to its cluster. Answers the
/// cluster that they lead to already.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn word(
    session: &mut Session,
    project: ProjectId,
    signature: &Signature,
    cluster: ClusterId,
) -> Result<Option<ClusterId>> {
    match resembling(session, project, signature).await? {
        Resembling::Cluster(known) => Ok(Some(known)),
        Resembling::Nothing(None) => Ok(None),
        Resembling::Nothing(Some(wording)) => {
            add_template(session, project, &wording, cluster).await?;
            Ok(None)
        }
    }
}
