//! What is kept in the object store, and of evidence in the database, as counters: of each run by kind and by
//! how its tests ended, summed up by project, and what a day added and freed.
//! A run is counted from its rows after its end and whenever something joins
//! it later, so that taking results in costs nothing for it. A file that
//! several runs refer to counts in each of them.

use std::collections::BTreeMap;

use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::time::{Day, Timestamp};

use crate::Result;
use crate::db::{Bulk, Column, Row, Session, args, statements};

/// How executions with these outcomes are called here.
macro_rules! outcome_class {
    () => {
        "CASE WHEN e.outcome IN (1, 2) THEN 'failed' WHEN e.outcome = 3 THEN 'flaky' WHEN e.outcome = 7 THEN 'passed' ELSE 'other' END"
    };
}

/// The kind of what a pack holds, by where it lies.
macro_rules! kind_of_pack {
    () => {
        "CASE WHEN p.key = '' THEN 'evidence_in_rows' ELSE 'evidence' END"
    };
}

/// The kind of evidence that lies in the database, too little to be worth an
/// object.
pub const EVIDENCE_IN_ROWS: &str = "evidence_in_rows";

statements! {
    /// What files and evidence of a run come to. ix: files_of_run, executions PK, packs_of_run, reports_of_run
    OF_RUN = concat!(
        "SELECT o.kind, o.outcome_class, CAST(SUM(o.objects) AS BIGINT), CAST(SUM(o.bytes) AS BIGINT) FROM (",
        "SELECT f.kind AS kind, ", outcome_class!(), " AS outcome_class, COUNT(*) AS objects, SUM(f.size) AS bytes FROM files f ",
        "JOIN executions e ON e.project_id = f.project_id AND e.run_id = f.run_id AND e.id = f.execution_id ",
        "WHERE f.project_id = $1 AND f.run_id = $2 GROUP BY f.kind, 2 ",
        "UNION ALL SELECT ", kind_of_pack!(), ", t.outcome_class, 0, SUM(t.bytes) FROM (",
        "SELECT e.pack_id AS pack_id, ", outcome_class!(), " AS outcome_class, SUM(e.pack_length) AS bytes FROM executions e ",
        "WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND e.pack_id IS NOT NULL GROUP BY 1, 2) t ",
        "JOIN packs p ON p.id = t.pack_id GROUP BY 1, 2 ",
        "UNION ALL SELECT ", kind_of_pack!(), ", 'packs', COUNT(DISTINCT NULLIF(p.key, '')), SUM(p.size) FROM packs p ",
        "WHERE p.project_id = $1 AND p.run_id = $2 GROUP BY 1 ",
        "UNION ALL SELECT 'report', 'other', COALESCE(SUM(r.entries), 0), COALESCE(SUM(r.size), 0) FROM reports r ",
        "WHERE r.project_id = $1 AND r.run_id = $2 AND r.state = 'ready') o GROUP BY o.kind, o.outcome_class"
    );
    /// What a run was counted with. PK
    COUNTED = "SELECT kind, outcome_class, objects, bytes FROM run_storage WHERE project_id = $1 AND run_id = $2";
    /// Forgets what a run was counted with. PK
    FORGET = "DELETE FROM run_storage WHERE project_id = $1 AND run_id = $2";
    /// What a day added or freed.
    ADD_DAY = "INSERT INTO storage_daily AS d (project_id, day, added, freed) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (project_id, day) DO UPDATE SET added = d.added + excluded.added, freed = d.freed + excluded.freed";
    /// All that is kept, by kind and outcome.
    TOTALS = "SELECT kind, outcome_class, CAST(SUM(objects) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM storage_totals GROUP BY kind, outcome_class";
    /// What a project keeps. PK
    OF_PROJECT = "SELECT kind, outcome_class, objects, bytes FROM storage_totals WHERE project_id = $1";
    /// What some projects keep. PK
    OF_PROJECTS = "SELECT project_id, kind, outcome_class, objects, bytes FROM storage_totals WHERE project_id in_ints($1)";
    /// Days of a project. PK
    DAYS_OF_PROJECT = "SELECT day, added, freed FROM storage_daily WHERE project_id = $1 AND day >= $2 ORDER BY day";
    /// Days of all projects.
    DAYS = "SELECT day, CAST(SUM(added) AS BIGINT), CAST(SUM(freed) AS BIGINT) FROM storage_daily WHERE day >= $1 GROUP BY day ORDER BY day";
    /// The first day on which anything was kept.
    FIRST_DAY = "SELECT MIN(day) FROM storage_daily";
    /// Content that waits to be deleted. ix: blobs_collection
    CONDEMNED = "SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM blobs WHERE state IN ('condemned', 'deleting') AND state <> 'live'";
}

static WRITE: Bulk = Bulk::new(
    "storage::WRITE",
    2,
    "INSERT INTO run_storage (project_id, run_id, kind, outcome_class, objects, bytes) \
     SELECT $1, $2, r.kind, r.outcome_class, r.objects, r.bytes FROM",
    &[Column::Text("kind"), Column::Text("outcome_class"), Column::Int("objects"), Column::Int("bytes")],
    "WHERE true",
);
static ADD: Bulk = Bulk::new(
    "storage::ADD",
    1,
    "INSERT INTO storage_totals AS t (project_id, kind, outcome_class, objects, bytes) \
     SELECT $1, r.kind, r.outcome_class, r.objects, r.bytes FROM",
    &[Column::Text("kind"), Column::Text("outcome_class"), Column::Int("objects"), Column::Int("bytes")],
    "WHERE true ON CONFLICT (project_id, kind, outcome_class) DO UPDATE SET objects = t.objects + excluded.objects, bytes = t.bytes + excluded.bytes",
);

pub(crate) static BULKS: &[&Bulk] = &[&WRITE, &ADD];

/// Kind and outcome class.
type Key = (String, String);

/// Objects and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Objects, or rows that refer to them.
    pub objects: i64,
    /// Bytes.
    pub bytes: i64,
}

/// What is kept of one kind, of tests that ended in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOf {
    /// `trace`, `screenshot`, `video`, `attachment`, `report`, `evidence` or [`EVIDENCE_IN_ROWS`].
    pub kind: String,
    /// `passed`, `flaky`, `failed` or `other`.
    pub outcome_class: String,
    /// How much.
    pub kept: Kept,
}

fn read(rows: &[Row]) -> Result<BTreeMap<Key, Kept>> {
    let mut found = BTreeMap::new();
    for row in rows {
        let mut r = row.reader();
        let key = (r.text()?, r.text()?);
        found.insert(key, Kept { objects: r.int()?, bytes: r.int()? });
    }
    Ok(found)
}

/// What the rows of a run come to. What its packs hold beside the evidence
/// that decides belongs to no outcome.
fn folded(mut rows: BTreeMap<Key, Kept>) -> BTreeMap<Key, Kept> {
    for kind in ["evidence", EVIDENCE_IN_ROWS] {
        let Some(packs) = rows.remove(&(kind.to_owned(), "packs".to_owned())) else { continue };
        let told: i64 = rows.iter().filter(|(key, _)| key.0 == kind).map(|(_, kept)| kept.bytes).sum();
        let rest = rows.entry((kind.to_owned(), "other".to_owned())).or_default();
        rest.objects += packs.objects;
        rest.bytes += (packs.bytes - told).max(0);
    }
    rows.retain(|_, kept| *kept != Kept::default());
    rows
}

/// Counts a run from its rows and brings the totals of its project up to date.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn recount_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    now: Timestamp,
) -> Result<()> {
    let (low, high) = ExecutionId::range_of(run);
    let reads = [(&OF_RUN, args![project, run, low, high]), (&COUNTED, args![project, run])];
    let [of_run, stored] = session.each(reads).await?;
    replace(session, project, run, read(&stored)?, folded(read(&of_run)?), now).await
}

/// Takes a run out of the totals of its project.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn forget_run(session: &mut Session, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    let stored = session.all(&COUNTED, args![project, run]).await?;
    replace(session, project, run, read(&stored)?, BTreeMap::new(), now).await
}

async fn replace(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    stored: BTreeMap<Key, Kept>,
    counted: BTreeMap<Key, Kept>,
    now: Timestamp,
) -> Result<()> {
    if stored == counted {
        return Ok(());
    }
    let mut more: BTreeMap<Key, Kept> = counted.clone();
    for (key, kept) in &stored {
        let delta = more.entry(key.clone()).or_default();
        delta.objects -= kept.objects;
        delta.bytes -= kept.bytes;
    }
    session.write(&FORGET, args![project, run]).await?;
    let mut rows = WRITE.rows();
    for ((kind, class), kept) in counted {
        rows.push([kind.into(), class.into(), kept.objects.into(), kept.bytes.into()]);
    }
    session.execute_bulk(&WRITE, args![project, run], rows).await?;
    let mut totals = ADD.rows();
    let (mut added, mut freed) = (0, 0);
    for ((kind, class), delta) in more {
        added += delta.bytes.max(0);
        freed += (-delta.bytes).max(0);
        totals.push([kind.into(), class.into(), delta.objects.into(), delta.bytes.into()]);
    }
    session.execute_bulk(&ADD, args![project], totals).await?;
    session.write(&ADD_DAY, args![project, now.day(), added, freed]).await?;
    Ok(())
}

fn listed(found: BTreeMap<Key, Kept>) -> Vec<KeptOf> {
    let mut all: Vec<KeptOf> = Vec::with_capacity(found.len());
    for ((kind, outcome_class), kept) in found {
        if kept != Kept::default() {
            all.push(KeptOf { kind, outcome_class, kept });
        }
    }
    all
}

/// All that is kept.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn totals(session: &mut Session) -> Result<Vec<KeptOf>> {
    Ok(listed(read(&session.all(&TOTALS, args![]).await?)?))
}

/// What a project keeps.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_project(session: &mut Session, project: ProjectId) -> Result<Vec<KeptOf>> {
    Ok(listed(read(&session.all(&OF_PROJECT, args![project]).await?)?))
}

/// What some projects keep; those that keep nothing are left out.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_projects(
    session: &mut Session,
    projects: Vec<i64>,
) -> Result<BTreeMap<ProjectId, Vec<KeptOf>>> {
    let mut found: BTreeMap<ProjectId, Vec<KeptOf>> = BTreeMap::new();
    for row in session.all(&OF_PROJECTS, args![projects]).await? {
        let mut r = row.reader();
        let project = ProjectId(r.int()?);
        let (kind, outcome_class) = (r.text()?, r.text()?);
        let kept = Kept { objects: r.int()?, bytes: r.int()? };
        found.entry(project).or_default().push(KeptOf { kind, outcome_class, kept });
    }
    Ok(found)
}

/// A day of a project, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageDay {
    /// Day.
    pub day: Day,
    /// Bytes that came.
    pub added: i64,
    /// Bytes that went.
    pub freed: i64,
}

/// Days from `since` on, oldest first; those without a change are left out.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn days(session: &mut Session, project: Option<ProjectId>, since: Day) -> Result<Vec<StorageDay>> {
    let rows = match project {
        Some(project) => session.all(&DAYS_OF_PROJECT, args![project, since]).await?,
        None => session.all(&DAYS, args![since]).await?,
    };
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(StorageDay { day: Day(r.int()?), added: r.int()?, freed: r.int()? })
        })
        .collect()
}

/// The first day on which anything was kept.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn first_day(session: &mut Session) -> Result<Option<Day>> {
    Ok(session.one(&FIRST_DAY, args![]).await?.reader().opt_int()?.map(Day))
}

/// Content that waits to be deleted.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn condemned(session: &mut Session) -> Result<Kept> {
    let row = session.one(&CONDEMNED, args![]).await?;
    let mut r = row.reader();
    Ok(Kept { objects: r.int()?, bytes: r.int()? })
}
