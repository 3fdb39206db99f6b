//! Markers: what happened around the tests of a project, and when.

use callboard_domain::annotations::MarkerCategory;
use callboard_domain::ids::{MarkerId, ProjectId, RunId};
use callboard_domain::time::Timestamp;

use crate::db::{Args, Backend, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::{Result, StoreError};

/// A marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerRow {
    /// Id.
    pub id: MarkerId,
    /// Project.
    pub project: ProjectId,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// What it is called.
    pub label: String,
    /// More about it.
    pub description: Option<String>,
    /// What kind of thing happened.
    pub category: MarkerCategory,
    /// Where; everywhere when nothing is said.
    pub environment: Option<String>,
    /// `manual` or `auto`.
    pub source: String,
    /// The run it goes with.
    pub run: Option<RunId>,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

/// Which markers a list shows.
#[derive(Debug, Clone, Default)]
pub struct MarkerFilter {
    /// At this moment or later.
    pub from: Option<Timestamp>,
    /// At this moment or earlier.
    pub to: Option<Timestamp>,
    /// Only of this kind.
    pub category: Option<MarkerCategory>,
    /// Only in this environment.
    pub environment: Option<String>,
    /// Key of the last row of the page before: time and id.
    pub after: Option<(i64, i64)>,
}

const SELECT: &str = "SELECT m.id, m.project_id, m.occurred_at, m.label, m.description, m.category, m.environment, \
    m.source, m.run_id, m.created_at, m.updated_at FROM markers m WHERE m.project_id = $1";

statements! {
    /// A new marker.
    INSERT = "INSERT INTO markers (id, project_id, occurred_at, label, description, category, environment, source, run_id, \
        created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    /// One marker.
    BY_ID = "SELECT m.id, m.project_id, m.occurred_at, m.label, m.description, m.category, m.environment, m.source, \
        m.run_id, m.created_at, m.updated_at FROM markers m WHERE m.project_id = $1 AND m.id = $2";
    /// Changes a marker.
    SAVE = "UPDATE markers SET occurred_at = $3, label = $4, description = $5, category = $6, environment = $7, \
        run_id = $8, updated_at = $9 WHERE project_id = $1 AND id = $2";
    /// Removes a marker.
    DELETE = "DELETE FROM markers WHERE project_id = $1 AND id = $2";
}

fn read(row: &Row) -> Result<MarkerRow> {
    let mut r = row.reader();
    Ok(MarkerRow {
        id: MarkerId(r.int()?),
        project: ProjectId(r.int()?),
        occurred_at: r.time()?,
        label: r.text()?,
        description: r.opt_text()?,
        category: MarkerCategory::parse(&r.text()?)
            .ok_or(StoreError::Damaged("an unknown category of a marker"))?,
        environment: r.opt_text()?,
        source: r.text()?,
        run: r.opt_int()?.map(RunId),
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

/// The id of a marker about to be made.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn new_id(session: &mut Session) -> Result<MarkerId> {
    Ok(MarkerId(ids::allocate_one(session, Kind::Marker).await?))
}

/// Stores a new marker.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn insert(session: &mut Session, marker: &MarkerRow) -> Result<()> {
    ids::list(session, Listed::Marker, marker.project, &[marker.id.get()]).await?;
    let values = args![
        marker.id,
        marker.project,
        marker.occurred_at,
        &marker.label,
        marker.description.clone(),
        marker.category.as_str(),
        marker.environment.clone(),
        &marker.source,
        marker.run,
        marker.created_at,
        marker.updated_at
    ];
    session.execute(&INSERT, values).await?;
    Ok(())
}

/// One marker.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: MarkerId) -> Result<Option<MarkerRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Writes a marker that was read.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save(session: &mut Session, marker: &MarkerRow) -> Result<()> {
    let values = args![
        marker.project,
        marker.id,
        marker.occurred_at,
        &marker.label,
        marker.description.clone(),
        marker.category.as_str(),
        marker.environment.clone(),
        marker.run,
        marker.updated_at
    ];
    session.execute(&SAVE, values).await?;
    Ok(())
}

/// Removes a marker; `false` when it was gone.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete(session: &mut Session, project: ProjectId, id: MarkerId) -> Result<bool> {
    ids::unlist(session, Listed::Marker, id.get()).await?;
    Ok(session.execute(&DELETE, args![project, id]).await? == 1)
}

/// A page of markers of a project, newest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    wanted: &MarkerFilter,
    limit: i64,
) -> Result<Vec<MarkerRow>> {
    session.list(page(session.backend(), args![project], wanted, limit)).await?.iter().map(read).collect()
}

fn page(backend: Backend, project: Args, wanted: &MarkerFilter, limit: i64) -> Filter {
    let filter = Filter::new(backend, SELECT, project)
        .and_if("m.occurred_at >= ?", wanted.from.map(Timestamp::millis))
        .and_if("m.occurred_at <= ?", wanted.to.map(Timestamp::millis))
        .and_if("m.category = ?", wanted.category.map(MarkerCategory::as_str))
        .and_if("m.environment = ?", wanted.environment.clone());
    let filter = match wanted.after {
        Some((at, id)) => filter.and("(m.occurred_at, m.id) < (?, ?)", args![at, id]),
        None => filter,
    };
    // ix: markers_by_time
    filter.end("ORDER BY m.occurred_at DESC, m.id DESC LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = MarkerFilter {
        from: Some(Timestamp(0)),
        to: Some(Timestamp(0)),
        category: Some(MarkerCategory::Event),
        environment: Some(String::new()),
        after: Some((0, 0)),
    };
    [MarkerFilter::default(), all].map(|wanted| page(backend, args![1_i64], &wanted, 1)).into()
}
