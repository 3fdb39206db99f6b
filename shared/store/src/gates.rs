//! Policies that runs are judged by, and what the judging said.

use callboard_domain::ids::{ProjectId, RunId, UserId};
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};

/// A stored policy.
#[derive(Debug, Clone)]
pub struct PolicyRow {
    /// Id.
    pub id: i64,
    /// Project.
    pub project: ProjectId,
    /// Its name within the project.
    pub name: String,
    /// The policy as JSON.
    pub policy: String,
    /// Whether it is used when none is named.
    pub is_default: bool,
    /// Last change.
    pub updated_at: Timestamp,
}

/// What judging a run said.
#[derive(Debug, Clone)]
pub struct ResultRow {
    /// Id.
    pub id: i64,
    /// Name of the policy, when a stored one was used.
    pub policy_name: Option<String>,
    /// Whether nothing was violated.
    pub passed: bool,
    /// How many violations there were.
    pub violations: i64,
    /// When.
    pub at: Timestamp,
    /// For whom.
    pub by: Option<UserId>,
}

macro_rules! select_policy {
    ($tail:literal) => {
        concat!("SELECT id, project_id, name, policy, is_default, updated_at FROM gate_policies ", $tail)
    };
}

statements! {
    /// The policies of a project. ix: gate_policies_name
    POLICIES = select_policy!("WHERE project_id = $1 ORDER BY name LIMIT $2");
    /// One policy.
    POLICY = select_policy!("WHERE project_id = $1 AND id = $2");
    /// A policy by its name. ix: gate_policies_name
    POLICY_NAMED = select_policy!("WHERE project_id = $1 AND name = $2");
    /// The policy that is used when none is named. ix: gate_policies_name
    DEFAULT_POLICY = select_policy!("WHERE project_id = $1 AND is_default = 1 ORDER BY id LIMIT 1");
    /// A new policy, unless its name is taken.
    INSERT_POLICY = "INSERT INTO gate_policies (id, project_id, name, policy, is_default, updated_at) \
        SELECT $1, $2, $3, $4, $5, $6 WHERE NOT EXISTS \
        (SELECT 1 FROM gate_policies WHERE project_id = $2 AND name = $3 AND id <> $1) ON CONFLICT DO NOTHING";
    /// Changes a policy, unless its new name is taken.
    UPDATE_POLICY = "UPDATE gate_policies SET name = $3, policy = $4, is_default = $5, updated_at = $6 \
        WHERE project_id = $1 AND id = $2 AND NOT EXISTS \
        (SELECT 1 FROM gate_policies o WHERE o.project_id = $1 AND o.name = $3 AND o.id <> $2)";
    /// Only one policy is the default one.
    CLEAR_DEFAULT = "UPDATE gate_policies SET is_default = 0 WHERE project_id = $1 AND id <> $2 AND is_default = 1";
    /// Removes a policy.
    DELETE_POLICY = "DELETE FROM gate_policies WHERE project_id = $1 AND id = $2";
    /// Takes a policy out of the directory.
    UNLIST = "DELETE FROM id_directory WHERE kind = $1 AND id = $2";
    /// Remembers what judging a run said.
    INSERT_RESULT = "INSERT INTO gate_results (project_id, run_id, id, policy_name, passed, violations, body, at, by_user) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    /// What judging a run said, newest first.
    RESULTS = "SELECT id, policy_name, passed, violations, at, by_user FROM gate_results \
        WHERE project_id = $1 AND run_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
}

fn read_policy(row: &Row) -> Result<PolicyRow> {
    let mut r = row.reader();
    Ok(PolicyRow {
        id: r.int()?,
        project: ProjectId(r.int()?),
        name: r.text()?,
        policy: r.text()?,
        is_default: r.flag()?,
        updated_at: r.time()?,
    })
}

/// Policies of a project by name.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn policies(session: &mut Session, project: ProjectId, limit: i64) -> Result<Vec<PolicyRow>> {
    session.all(&POLICIES, args![project, limit]).await?.iter().map(read_policy).collect()
}

/// One policy.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn policy(session: &mut Session, project: ProjectId, id: i64) -> Result<Option<PolicyRow>> {
    session.first(&POLICY, args![project, id]).await?.as_ref().map(read_policy).transpose()
}

/// The policy of a name; without a name the default one.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn policy_named(
    session: &mut Session,
    project: ProjectId,
    name: Option<&str>,
) -> Result<Option<PolicyRow>> {
    let row = match name {
        Some(name) => session.first(&POLICY_NAMED, args![project, name]).await?,
        None => session.first(&DEFAULT_POLICY, args![project]).await?,
    };
    row.as_ref().map(read_policy).transpose()
}

/// The id of a policy that is about to be stored.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn new_policy_id(session: &mut Session) -> Result<i64> {
    ids::allocate_one(session, Kind::GatePolicy).await
}

/// Stores a new policy; `false` when its name is taken.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn insert_policy(session: &mut Session, row: &PolicyRow) -> Result<bool> {
    let args = args![row.id, row.project, &row.name, &row.policy, row.is_default, row.updated_at];
    if session.execute(&INSERT_POLICY, args).await? == 0 {
        return Ok(false);
    }
    ids::list(session, Listed::GatePolicy, row.project, &[row.id]).await?;
    be_the_default(session, row).await?;
    Ok(true)
}

/// Writes a changed policy; `false` when its new name is taken.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn update_policy(session: &mut Session, row: &PolicyRow) -> Result<bool> {
    let args = args![row.project, row.id, &row.name, &row.policy, row.is_default, row.updated_at];
    if session.execute(&UPDATE_POLICY, args).await? == 0 {
        return Ok(false);
    }
    be_the_default(session, row).await?;
    Ok(true)
}

async fn be_the_default(session: &mut Session, row: &PolicyRow) -> Result<()> {
    if row.is_default {
        session.execute(&CLEAR_DEFAULT, args![row.project, row.id]).await?;
    }
    Ok(())
}

/// Removes a policy; `false` when there is none.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn delete_policy(session: &mut Session, project: ProjectId, id: i64) -> Result<bool> {
    if session.execute(&DELETE_POLICY, args![project, id]).await? == 0 {
        return Ok(false);
    }
    session.execute(&UNLIST, args![Listed::GatePolicy as i64, id]).await?;
    Ok(true)
}

/// Remembers what judging a run said, and answers the id of it.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn insert_result(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    result: &ResultRow,
    body: &str,
) -> Result<i64> {
    let id = ids::allocate_one(session, Kind::GateResult).await?;
    let args = args![
        project,
        run,
        id,
        result.policy_name.clone(),
        result.passed,
        result.violations,
        body,
        result.at,
        result.by
    ];
    session.execute(&INSERT_RESULT, args).await?;
    Ok(id)
}

/// What judging a run said, newest first, before an id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn results(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<ResultRow>> {
    let rows = session.all(&RESULTS, args![project, run, before.unwrap_or(i64::MAX), limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(ResultRow {
                id: r.int()?,
                policy_name: r.opt_text()?,
                passed: r.flag()?,
                violations: r.int()?,
                at: r.time()?,
                by: r.opt_int()?.map(UserId),
            })
        })
        .collect()
}
