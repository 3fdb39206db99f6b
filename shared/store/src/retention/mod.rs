//! Dates: when the time of a run, and of what it keeps, is over. They stand in
//! the rows, so that a sweep reads only what is due ([`due`]); what is kept
//! nevertheless is found then ([`exempt`]).

pub mod counting;
pub mod due;
pub mod exempt;
pub mod lanes;
pub mod trimming;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::retention::{Ages, FileRules, OutcomeClass};
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, Value, args, statements};

/// The day of an execution's class among three parameters: it passed or did
/// not run, it was flaky, it failed.
macro_rules! by_class {
    ($passed:literal, $flaky:literal, $failed:literal) => {
        concat!(
            "CASE WHEN e.outcome IN (1, 2, 4) THEN CAST(",
            $failed,
            " AS BIGINT) WHEN e.outcome = 3 THEN CAST(",
            $flaky,
            " AS BIGINT) ELSE CAST(",
            $passed,
            " AS BIGINT) END"
        )
    };
}

statements! {
    /// Dates a run. PK
    DATE_RUN = "UPDATE test_runs SET expires_at = $3 WHERE project_id = $1 AND id = $2 AND expires_at IS DISTINCT FROM $3";
    /// Dates the files of a run. ix: files_of_run, executions PK
    DATE_FILES = concat!(
        "UPDATE files SET expires_at = d.at FROM (SELECT f.id, CASE f.kind WHEN 'trace' THEN ", by_class!("$3", "$4", "$5"),
        " WHEN 'video' THEN ", by_class!("$6", "$7", "$8"), " WHEN 'screenshot' THEN ", by_class!("$9", "$10", "$11"),
        " ELSE ", by_class!("$12", "$13", "$14"), " END AS at FROM files f \
         JOIN executions e ON e.project_id = f.project_id AND e.run_id = f.run_id AND e.id = f.execution_id \
         WHERE f.project_id = $1 AND f.run_id = $2) d \
         WHERE files.project_id = $1 AND files.id = d.id AND files.expires_at IS DISTINCT FROM d.at"
    );
    /// Dates the complete reports of a run. ix: reports_of_run
    DATE_REPORTS = "UPDATE reports SET expires_at = $3 WHERE project_id = $1 AND run_id = $2 AND state = 'ready' \
        AND expires_at IS DISTINCT FROM $3";
    /// Dates the evidence of a run. ix: packs_of_run
    DATE_PACKS = "UPDATE packs SET trim_at = $3 WHERE project_id = $1 AND run_id = $2 AND trim_at IS DISTINCT FROM $3";
    /// When the time of a run is over. PK
    END_OF_RUN = "SELECT expires_at FROM test_runs WHERE project_id = $1 AND id = $2";
    /// Runs of a project after one, oldest first. ix: test_runs_by_time
    RUNS_OF_PROJECT = "SELECT project_id, id, order_at FROM test_runs WHERE project_id = $1 AND (order_at, id) > ($2, $3) \
        ORDER BY order_at, id LIMIT $4";
    /// Runs after one, oldest first. ix: test_runs_all_by_time
    RUNS = "SELECT project_id, id, order_at FROM test_runs WHERE (order_at, id) > ($1, $2) ORDER BY order_at, id LIMIT $3";
}

/// When what belongs to a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dates<'p> {
    /// The run itself.
    pub run: Option<Timestamp>,
    /// From when ages count.
    pub from: Timestamp,
    /// Its files and reports.
    pub files: &'p FileRules,
    /// The evidence of its attempts.
    pub evidence: Ages,
}

impl Dates<'_> {
    /// When the first of its evidence is due.
    #[must_use]
    pub fn first_evidence(&self) -> Option<Timestamp> {
        OutcomeClass::ALL.into_iter().filter_map(|class| self.evidence.end(class, self.from)).min()
    }
}

/// Dates a run and all that belongs to it.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn date(session: &mut Session, project: ProjectId, run: RunId, dates: &Dates<'_>) -> Result<()> {
    session.write(&DATE_RUN, args![project, run, dates.run]).await?;
    let rules = dates.files;
    let mut of_files = args![project, run];
    for ages in [rules.trace, rules.video, rules.screenshot, rules.attachment] {
        of_files.extend(OutcomeClass::ALL.map(|class| Value::from(ages.end(class, dates.from))));
    }
    session.write(&DATE_FILES, of_files).await?;
    let of_reports = callboard_domain::retention::end_of(dates.from, rules.report_days);
    session.write(&DATE_REPORTS, args![project, run, of_reports]).await?;
    session.write(&DATE_PACKS, args![project, run, dates.first_evidence()]).await
}

/// When the time of a run is over.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn end_of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<Option<Timestamp>> {
    session.first(&END_OF_RUN, args![project, run]).await?.map_or(Ok(None), |row| row.reader().opt_time())
}

/// A run by its place in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedRun {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Its order key.
    pub order_at: Timestamp,
}

/// At most `limit` runs, of a project or of all, after a place in time given
/// as order key and id; oldest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn runs_after(
    session: &mut Session,
    project: Option<ProjectId>,
    (order_at, id): (i64, i64),
    limit: i64,
) -> Result<Vec<PlacedRun>> {
    let rows = match project {
        Some(project) => session.all(&RUNS_OF_PROJECT, args![project, order_at, id, limit]).await?,
        None => session.all(&RUNS, args![order_at, id, limit]).await?,
    };
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(PlacedRun { project: ProjectId(r.int()?), run: RunId(r.int()?), order_at: r.time()? })
        })
        .collect()
}
