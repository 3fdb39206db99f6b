//! Functions of suites that are worth reusing.

use callboard_domain::ids::{ProjectId, TestFunctionId};
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Args, Backend, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};

/// A function.
#[derive(Debug, Clone, PartialEq)]
pub struct TestFunctionRow {
    /// Id.
    pub id: TestFunctionId,
    /// Project.
    pub project: ProjectId,
    /// Name within its module.
    pub name: String,
    /// Kind, as it is spelled on the wire.
    pub kind: String,
    /// What it is imported from.
    pub module: String,
    /// The whole function, JSON.
    pub body: String,
    /// `manual` or `ai-extracted`.
    pub source: String,
    /// How far its locators can be relied on, 0 to 1.
    pub confidence: f64,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

const SELECT: &str = "SELECT f.id, f.project_id, f.name, f.kind, f.module, f.body, f.source, f.confidence, f.created_at, \
    f.updated_at FROM test_functions f WHERE f.project_id = $1";

statements! {
    /// A new function, unless its module has one of this name.
    INSERT = "INSERT INTO test_functions (id, project_id, name, kind, module, body, source, confidence, created_at, \
        updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (project_id, module, name) DO NOTHING";
    /// One function.
    BY_ID = "SELECT f.id, f.project_id, f.name, f.kind, f.module, f.body, f.source, f.confidence, f.created_at, \
        f.updated_at FROM test_functions f WHERE f.project_id = $1 AND f.id = $2";
    /// Whether a module has another function of a name. ix: test_functions_by_name
    NAMED = "SELECT id FROM test_functions WHERE project_id = $1 AND module = $2 AND name = $3";
    /// Changes a function.
    SAVE = "UPDATE test_functions SET name = $3, kind = $4, module = $5, body = $6, confidence = $7, updated_at = $8 \
        WHERE project_id = $1 AND id = $2";
    /// Removes a function.
    DELETE = "DELETE FROM test_functions WHERE project_id = $1 AND id = $2";
}

fn read(row: &Row) -> Result<TestFunctionRow> {
    let mut r = row.reader();
    Ok(TestFunctionRow {
        id: TestFunctionId(r.int()?),
        project: ProjectId(r.int()?),
        name: r.text()?,
        kind: r.text()?,
        module: r.text()?,
        body: r.text()?,
        source: r.text()?,
        confidence: r.opt_real()?.unwrap_or_default(),
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

/// The id of a function about to be stored.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn new_id(session: &mut Session) -> Result<TestFunctionId> {
    Ok(TestFunctionId(ids::allocate_one(session, Kind::TestFunction).await?))
}

/// Stores a new function; `false` when its module has one of this name.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn insert(session: &mut Session, function: &TestFunctionRow) -> Result<bool> {
    let values = args![
        function.id,
        function.project,
        &function.name,
        &function.kind,
        &function.module,
        &function.body,
        &function.source,
        function.confidence,
        function.created_at,
        function.updated_at
    ];
    if session.execute(&INSERT, values).await? == 0 {
        return Ok(false);
    }
    ids::list(session, Listed::TestFunction, function.project, &[function.id.get()]).await?;
    Ok(true)
}

/// One function.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn get(
    session: &mut Session,
    project: ProjectId,
    id: TestFunctionId,
) -> Result<Option<TestFunctionRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// The function of a name in a module.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn named(
    session: &mut Session,
    project: ProjectId,
    module: &str,
    name: &str,
) -> Result<Option<TestFunctionId>> {
    let row = session.first(&NAMED, args![project, module, name]).await?;
    row.map(|row| row.reader().int().map(TestFunctionId)).transpose()
}

/// Writes a function that was read.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn save(session: &mut Session, function: &TestFunctionRow) -> Result<()> {
    let values = args![
        function.project,
        function.id,
        &function.name,
        &function.kind,
        &function.module,
        &function.body,
        function.confidence,
        function.updated_at
    ];
    session.execute(&SAVE, values).await?;
    Ok(())
}

/// Removes a function; `false` when it was gone.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn delete(session: &mut Session, project: ProjectId, id: TestFunctionId) -> Result<bool> {
    ids::unlist(session, Listed::TestFunction, id.get()).await?;
    Ok(session.execute(&DELETE, args![project, id]).await? == 1)
}

/// A page of functions of a project by module and name, behind a module and
/// name.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    kind: Option<&str>,
    after: Option<(String, String)>,
    limit: i64,
) -> Result<Vec<TestFunctionRow>> {
    let wanted = page(session.backend(), args![project], kind, after, limit);
    session.list(wanted).await?.iter().map(read).collect()
}

fn page(
    backend: Backend,
    project: Args,
    kind: Option<&str>,
    after: Option<(String, String)>,
    limit: i64,
) -> Filter {
    let filter = Filter::new(backend, SELECT, project).and_if("f.kind = ?", kind.map(str::to_owned));
    let filter = match after {
        Some((module, name)) => filter.and("(f.module, f.name) > (?, ?)", args![module, name]),
        None => filter,
    };
    // ix: test_functions_by_name
    filter.end("ORDER BY f.module, f.name LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = Some((String::new(), String::new()));
    [(None, None), (Some("helper"), all)]
        .map(|(kind, after)| page(backend, args![1_i64], kind, after, 1))
        .into()
}
