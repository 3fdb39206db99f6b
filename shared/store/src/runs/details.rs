//! What only the page of one run shows.

use callboard_domain::ids::{ProjectId, RunId};

use crate::Result;
use crate::db::{Args, Session, args, statements};

/// What only the page of one run shows. JSON texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunDetails {
    /// Metadata object.
    pub metadata: String,
    /// How the run was narrowed.
    pub filter_details: Option<String>,
    /// Steps of the global setup.
    pub setup_steps: Option<String>,
    /// Totals as the client claimed them.
    pub claimed_totals: Option<String>,
}

statements! {
    /// The details of a new run.
    INSERT_DETAILS = "INSERT INTO run_details (project_id, run_id, metadata, filter_details, setup_steps, claimed_totals) \
        VALUES ($1, $2, $3, $4, $5, $6)";
    /// The details of a run.
    DETAILS = "SELECT metadata, filter_details, setup_steps, claimed_totals FROM run_details WHERE project_id = $1 AND run_id = $2";
    /// What clients told of some runs. PK
    METADATA_OF = "SELECT run_id, metadata FROM run_details WHERE project_id = $1 AND run_id in_ints($2)",
        postgres "SELECT asked.id, found.metadata FROM unnest($2::bigint[]) AS asked(id) CROSS JOIN LATERAL \
        (SELECT d.metadata FROM run_details d WHERE d.project_id = $1 AND d.run_id BETWEEN asked.id AND asked.id \
        ORDER BY d.run_id LIMIT 1) AS found";
    /// Writes details that a client told later.
    UPDATE_DETAILS = "UPDATE run_details SET metadata = $3, filter_details = $4, setup_steps = $5, claimed_totals = $6 \
        WHERE project_id = $1 AND run_id = $2";
}

fn values(project: ProjectId, run: RunId, details: &RunDetails) -> Args {
    let RunDetails { metadata, filter_details, setup_steps, claimed_totals } = details;
    args![project, run, metadata, filter_details.clone(), setup_steps.clone(), claimed_totals.clone()]
}

/// Writes the details of a new run.
pub(super) async fn insert_details(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    details: &RunDetails,
) -> Result<()> {
    session.write(&INSERT_DETAILS, values(project, run, details)).await
}

/// Details of a run.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn details(session: &mut Session, project: ProjectId, run: RunId) -> Result<RunDetails> {
    let Some(row) = session.first(&DETAILS, args![project, run]).await? else {
        return Ok(RunDetails { metadata: "{}".to_owned(), ..RunDetails::default() });
    };
    let mut r = row.reader();
    Ok(RunDetails {
        metadata: r.text()?,
        filter_details: r.opt_text()?,
        setup_steps: r.opt_text()?,
        claimed_totals: r.opt_text()?,
    })
}

/// Metadata of some runs, as JSON; those without any are left out.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn metadata_of(
    session: &mut Session,
    project: ProjectId,
    runs: Vec<i64>,
) -> Result<Vec<(RunId, String)>> {
    let rows = session.all(&METADATA_OF, args![project, runs]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((RunId(r.int()?), r.text()?))
        })
        .collect()
}

/// Writes the details of a locked run.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn update_details(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    details: &RunDetails,
) -> Result<()> {
    session.write(&UPDATE_DETAILS, values(project, run, details)).await
}
