//! Functions of suites that are worth reusing: methods of page objects,
//! helpers and fixtures, sent by people and agents. What they may be is decided
//! in [`callboard_playwright::test_functions`].

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, TestFunctionId};
use callboard_domain::time::Timestamp;
use callboard_playwright::test_functions::{Faults, FunctionKind, TestFunction};
use callboard_store::StoreError;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::ids::Listed;
use callboard_store::test_functions::{self as store, TestFunctionRow};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::page::{Slice, fetch};
use crate::{Context, Entity, QueryError, Result, resolve};

/// Where a function comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A person, or a script of one.
    Manual,
    /// An agent that read it out of a suite.
    Agent,
}

impl Origin {
    const fn word(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Agent => "ai-extracted",
        }
    }
}

/// A function of a suite.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestFunctionItem {
    /// Function id.
    pub id: i64,
    /// Project id.
    pub project_id: i64,
    /// Name, kind, module, parameters and steps as they were sent.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub function: TestFunction,
    /// `manual` or `ai-extracted`.
    #[schema(example = "manual")]
    pub source: String,
    /// How far its locators can be relied on, 0 to 1.
    #[schema(example = 0.98)]
    pub confidence: f64,
    /// The function as TypeScript.
    pub code: String,
    /// What is allowed and will be regretted.
    pub warnings: Vec<String>,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl TestFunctionItem {
    fn from_row(row: TestFunctionRow) -> Result<Self> {
        let function = read(&row)?;
        Ok(Self {
            id: row.id.get(),
            project_id: row.project.get(),
            code: function.code(),
            warnings: function.warnings(),
            function,
            source: row.source,
            confidence: row.confidence,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

fn read(row: &TestFunctionRow) -> Result<TestFunction> {
    Ok(serde_json::from_str(&row.body).map_err(|_| StoreError::Damaged("a function of a suite"))?)
}

/// Key of a page: module and name of the last function.
pub type TestFunctionKey = (String, String);

/// The project of a function.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::Denied`].
#[boxed]
pub async fn resolve_function(
    ctx: &Context,
    scope: &Scope,
    id: TestFunctionId,
) -> Result<Authorized<ProjectId>> {
    resolve::listed(ctx, scope, Listed::TestFunction, id.get(), Entity::TestFunction, id.get()).await
}

/// Functions of a project by module and name.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    kind: Option<FunctionKind>,
    after: Option<TestFunctionKey>,
    limit: usize,
) -> Result<Slice<TestFunctionItem, TestFunctionKey>> {
    let mut session = ctx.store.db().read().await?;
    let kind = kind.map(FunctionKind::as_str);
    let rows = store::list(&mut session, project.get(), kind, after, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| (row.module.clone(), row.name.clone()));
    let items = rows.items.into_iter().map(TestFunctionItem::from_row).collect::<Result<_>>()?;
    Ok(Slice { items, next: rows.next })
}

/// Stores a function.
///
/// # Errors
/// [`AdministrationRule::FunctionExists`].
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    function: &TestFunction,
    origin: Origin,
) -> Result<TestFunctionItem> {
    let mut session = ctx.store.db().begin().await?;
    let row = TestFunctionRow {
        id: store::new_id(&mut session).await?,
        project: project.get(),
        name: function.name.clone(),
        kind: function.kind.as_str().to_owned(),
        module: function.module.clone(),
        body: written(function)?,
        source: origin.word().to_owned(),
        confidence: function.confidence(),
        created_at: acting.now,
        updated_at: acting.now,
    };
    if !store::insert(&mut session, &row).await? {
        return Err(AdministrationRule::FunctionExists.into());
    }
    note(session, acting, AuditAction::FunctionCreated, &row).await?;
    TestFunctionItem::from_row(row)
}

/// What a change of a function failed at.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// With the change it is none any more.
    #[error(transparent)]
    Faults(#[from] Faults),
    /// It cannot be changed at all.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl From<StoreError> for EditError {
    fn from(error: StoreError) -> Self {
        Self::Query(error.into())
    }
}

/// Changes a function: what is absent stays, null clears. The whole is read
/// again, so a parameter that no step uses any more is told.
///
/// # Errors
/// [`QueryError::NotFound`], [`AdministrationRule::FunctionExists`], and what
/// is wrong with the change.
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: TestFunctionId,
    change: &Map<String, Value>,
) -> Result<TestFunctionItem, EditError> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let mut row = required(&mut session, project, id).await?;
    let mut whole = match serde_json::from_str(&row.body) {
        Ok(Value::Object(stored)) => stored,
        _ => return Err(StoreError::Damaged("a function of a suite").into()),
    };
    whole.extend(change.iter().map(|(key, value)| (key.clone(), value.clone())));
    let function = TestFunction::read(&whole)?;
    let named = store::named(&mut session, project, &function.module, &function.name).await?;
    if named.is_some_and(|other| other != id) {
        return Err(EditError::Query(AdministrationRule::FunctionExists.into()));
    }
    row.body = written(&function)?;
    row.confidence = function.confidence();
    row.kind = function.kind.as_str().to_owned();
    row.name = function.name;
    row.module = function.module;
    row.updated_at = acting.now;
    store::save(&mut session, &row).await?;
    note(session, acting, AuditAction::FunctionChanged, &row).await?;
    Ok(TestFunctionItem::from_row(row)?)
}

/// Deletes a function.
///
/// # Errors
/// [`QueryError::NotFound`] when it is gone.
pub async fn delete(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: TestFunctionId,
) -> Result<()> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let row = required(&mut session, project, id).await?;
    store::delete(&mut session, project, id).await?;
    note(session, acting, AuditAction::FunctionDeleted, &row).await
}

fn written(function: &TestFunction) -> Result<String> {
    Ok(serde_json::to_string(function).map_err(|_| StoreError::Damaged("a function of a suite"))?)
}

async fn required(session: &mut Session, project: ProjectId, id: TestFunctionId) -> Result<TestFunctionRow> {
    store::get(session, project, id).await?.ok_or_else(|| QueryError::not_found(Entity::TestFunction, id))
}

async fn note(
    mut session: Session,
    acting: Acting<'_>,
    action: AuditAction,
    row: &TestFunctionRow,
) -> Result<()> {
    let detail = json!({ "name": row.name, "module": row.module });
    let target = ("test_function", row.id.get());
    let recorded = acting.record(&mut session, action, target, Some(row.project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
