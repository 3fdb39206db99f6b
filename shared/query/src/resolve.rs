//! From an id to proof of access: the entity's project is looked up, then
//! checked against the caller's scope. Missing is told before forbidden.

use callboard_auth::Identity;
use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::ids::{
    ClusterId, ClusterSuggestionId, DiagnosisId, ExecutionId, ExportId, FileId, GatePolicyId, ProjectId,
    RunId, TestCaseId, UserId,
};
use callboard_store::accounts::users;
use callboard_store::boxed;
use callboard_store::ids::{self, Listed};
use callboard_store::test_cases::carrying;

use crate::{Context, Entity, QueryError, Result};

/// A project that exists and is in scope.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn project(ctx: &Context, scope: &Scope, id: ProjectId) -> Result<Authorized<ProjectId>> {
    let mut session = ctx.store.db().read().await?;
    let found = callboard_store::projects::get(&mut session, id).await?;
    if found.is_none() {
        return Err(QueryError::not_found(Entity::Project, id));
    }
    authorize(scope, id, Entity::Project, id.get())
}

/// An account that a list is narrowed to. An unknown one is a mistake, which is
/// told to those who may see which accounts there are; for everybody else it is
/// somebody of whom they find nothing.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn account(ctx: &Context, caller: &Identity, id: UserId) -> Result<()> {
    if caller.sees_accounts() && users::get(&mut ctx.store.db().read().await?, id).await?.is_none() {
        return Err(QueryError::not_found(Entity::User, id));
    }
    Ok(())
}

/// The project of a run.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn run(ctx: &Context, scope: &Scope, id: RunId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::Run, id.get(), Entity::Run, id.get()).await
}

/// The project of an execution's run; whether the execution exists is told by
/// the question asked about it.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn execution(ctx: &Context, scope: &Scope, id: ExecutionId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::Run, id.run().get(), Entity::Execution, id.get()).await
}

/// The project of a test case.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn test_case(ctx: &Context, scope: &Scope, id: TestCaseId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::TestCase, id.get(), Entity::TestCase, id.get()).await
}

/// The test for which results count that come under the identity of another: itself,
/// unless its history was joined.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn kept_test(ctx: &Context, project: Authorized<ProjectId>, id: TestCaseId) -> Result<TestCaseId> {
    let mut session = ctx.store.db().read().await?;
    let kept = carrying::joined_to(&mut session, project.get(), vec![id.get()]).await?;
    Ok(kept.get(&id).copied().unwrap_or(id))
}

/// The project of a failure cluster.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn cluster(ctx: &Context, scope: &Scope, id: ClusterId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::Cluster, id.get(), Entity::Cluster, id.get()).await
}

/// The project of a file.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn file(ctx: &Context, scope: &Scope, id: FileId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::File, id.get(), Entity::File, id.get()).await
}

/// The project of a policy of gates.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn gate_policy(ctx: &Context, scope: &Scope, id: GatePolicyId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::GatePolicy, id.get(), Entity::GatePolicy, id.get()).await
}

/// The project of a suggestion that two failure clusters are one.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn cluster_suggestion(
    ctx: &Context,
    scope: &Scope,
    id: ClusterSuggestionId,
) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::ClusterSuggestion, id.get(), Entity::Suggestion, id.get()).await
}

/// The project of a diagnosis.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn diagnosis(ctx: &Context, scope: &Scope, id: DiagnosisId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::Diagnosis, id.get(), Entity::Diagnosis, id.get()).await
}

/// The project of an export.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::OutOfScope`].
#[boxed]
pub async fn export(ctx: &Context, scope: &Scope, id: ExportId) -> Result<Authorized<ProjectId>> {
    listed(ctx, scope, Listed::Export, id.get(), Entity::Export, id.get()).await
}

/// The project of anything the directory lists.
pub(crate) async fn listed(
    ctx: &Context,
    scope: &Scope,
    kind: Listed,
    key: i64,
    entity: Entity,
    id: i64,
) -> Result<Authorized<ProjectId>> {
    let mut session = ctx.store.db().read().await?;
    let project = ids::project_of(&mut session, kind, key).await?;
    let project = project.ok_or_else(|| QueryError::not_found(entity, id))?;
    authorize(scope, project, entity, id)
}

/// Access to a project; a refusal says what was asked for.
fn authorize(scope: &Scope, project: ProjectId, entity: Entity, id: i64) -> Result<Authorized<ProjectId>> {
    scope.authorize(project).map_err(|_| QueryError::OutOfScope { entity, id, project })
}
