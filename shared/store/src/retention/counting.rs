//! What belongs to a run, counted by how its tests ended; bounded by the run.

use callboard_domain::ids::{ExecutionId, ProjectId, RunId};

use crate::db::{Session, args, statements};
use crate::files::FileKind;
use crate::{Result, StoreError};

statements! {
    /// Files of a run by kind and outcome, without those of some executions. ix: files_of_run, executions PK
    FILES = "SELECT f.kind, e.outcome, COUNT(*), CAST(SUM(f.size) AS BIGINT) FROM files f \
        JOIN executions e ON e.project_id = f.project_id AND e.run_id = f.run_id AND e.id = f.execution_id \
        WHERE f.project_id = $1 AND f.run_id = $2 AND NOT (f.execution_id in_ints($3)) GROUP BY f.kind, e.outcome";
    /// Evidence of a run by outcome, without that of some executions. PK
    EVIDENCE = "SELECT outcome, COUNT(*), CAST(SUM(pack_length) AS BIGINT) FROM executions \
        WHERE project_id = $1 AND run_id = $2 AND id > $4 AND id <= $5 AND pack_id IS NOT NULL AND NOT (id in_ints($3)) GROUP BY outcome";
    /// Reports of a run. ix: reports_of_run
    REPORTS = "SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM reports WHERE project_id = $1 AND run_id = $2 AND state = 'ready'";
}

/// Files of one kind, of tests with one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedFiles {
    /// What they are to their executions.
    pub kind: FileKind,
    /// Code of the outcome.
    pub outcome: i64,
    /// How many.
    pub count: i64,
    /// Their bytes.
    pub bytes: i64,
}

/// Evidence of tests with one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedEvidence {
    /// Code of the outcome.
    pub outcome: i64,
    /// Executions that have some.
    pub count: i64,
    /// Its bytes.
    pub bytes: i64,
}

/// Files of a run, without those of some executions.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn files(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    except: Vec<i64>,
) -> Result<Vec<CountedFiles>> {
    let rows = session.all(&FILES, args![project, run, except]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(CountedFiles {
                kind: FileKind::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown kind of file"))?,
                outcome: r.int()?,
                count: r.int()?,
                bytes: r.int()?,
            })
        })
        .collect()
}

/// Evidence of a run, without that of some executions.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn evidence(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    except: Vec<i64>,
) -> Result<Vec<CountedEvidence>> {
    let (low, high) = ExecutionId::range_of(run);
    let rows = session.all(&EVIDENCE, args![project, run, except, low, high]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(CountedEvidence { outcome: r.int()?, count: r.int()?, bytes: r.int()? })
        })
        .collect()
}

/// Reports of a run: how many, and their bytes.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn reports(session: &mut Session, project: ProjectId, run: RunId) -> Result<(i64, i64)> {
    let row = session.one(&REPORTS, args![project, run]).await?;
    let mut r = row.reader();
    Ok((r.int()?, r.int()?))
}
