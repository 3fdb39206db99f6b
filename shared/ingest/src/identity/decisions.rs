//! What people and the service decide about two histories. A decision holds for
//! results from now on; a job moves those that are there.

use callboard_auth::scope::Authorized;
use callboard_core::Acting;
use callboard_core::administration::AdministrationRule;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{HistoryJoinId, ProjectId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::history_joins::{self, Decider, HistoryJoin, JoinState};
use callboard_store::quarantine;
use callboard_store::test_cases::{self, TestCaseRow, carrying};
use serde_json::json;

use crate::transaction::follow_up::JoinHistories;
use crate::{Context, Entity, QueryError, Result};

/// When something was decided, and by whom.
pub(super) type Decided = (Timestamp, Decider);

/// Joins two histories that were proposed, refused or made two again.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::NotPending`] when they are one
/// already, or one of the tests leads to another or has others that lead to it.
pub async fn accept_join(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: HistoryJoinId,
) -> Result<HistoryJoin> {
    decide(ctx, acting, project.get(), id, Decision::Accept).await
}

/// Leaves two histories two that were proposed to be one; they are not proposed again.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::NotPending`] when it was decided before.
pub async fn dismiss_join(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: HistoryJoinId,
) -> Result<HistoryJoin> {
    decide(ctx, acting, project.get(), id, Decision::Dismiss).await
}

/// Makes two histories of one again, each with the results that came under its path.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::NotPending`] when they are not one.
pub async fn undo_join(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: HistoryJoinId,
) -> Result<HistoryJoin> {
    decide(ctx, acting, project.get(), id, Decision::Undo).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Accept,
    Dismiss,
    Undo,
}

async fn decide(
    ctx: &Context,
    acting: Acting<'_>,
    project: ProjectId,
    id: HistoryJoinId,
    decision: Decision,
) -> Result<HistoryJoin> {
    let mut session = ctx.store.db().begin().await?;
    let join = history_joins::lock(&mut session, project, id).await?;
    let join = join.ok_or_else(|| QueryError::not_found(Entity::HistoryJoin, id))?;
    let decided = (acting.now, Decider::Person(acting.caller.user_id()));
    match (decision, join.state) {
        (Decision::Accept, JoinState::Proposed | JoinState::Dismissed | JoinState::Undone) => {
            if !join_now(&mut session, &join, "joined by hand", decided).await? {
                return Err(AdministrationRule::NotPending.into());
            }
        }
        (Decision::Dismiss, JoinState::Proposed) => {
            let reason = &join.reason;
            history_joins::set_state(&mut session, &join, JoinState::Dismissed, reason, Some(decided))
                .await?;
        }
        (Decision::Undo, JoinState::Joining | JoinState::Joined) => {
            undo_now(&mut session, &join, "split by hand", decided).await?;
        }
        _ => return Err(AdministrationRule::NotPending.into()),
    }
    let change = match decision {
        Decision::Accept => "joined",
        Decision::Dismiss => "dismissed",
        Decision::Undo => "undone",
    };
    let detail = json!({ "history": change, "with": join.joined, "path": join.path });
    let target = ("test_case", join.kept.get());
    let noted =
        acting.record(&mut session, AuditAction::TestCaseChanged, target, Some(project), detail).await?;
    let join = history_joins::lock(&mut session, project, id).await?;
    session.commit().await?;
    noted.committed();
    join.ok_or_else(|| QueryError::not_found(Entity::HistoryJoin, id))
}

/// Lets one test of a locked join lead to the other. False when one of them leads to
/// another, or others lead to it.
pub(super) async fn join_now(
    session: &mut Session,
    join: &HistoryJoin,
    reason: &str,
    decided: Decided,
) -> Result<bool> {
    let both = vec![join.kept.get(), join.joined.get()];
    test_cases::lock(session, join.project, both.clone()).await?;
    if !carrying::joined_to(session, join.project, both).await?.is_empty()
        || !history_joins::of_kept(session, join.project, vec![join.joined.get()]).await?.is_empty()
    {
        return Ok(false);
    }
    let joined = test(session, join.project, join.joined).await?;
    carrying::lead_to(session, &joined, Some(join.kept)).await?;
    quarantine::hand_over(session, join.project, (join.joined, join.kept)).await?;
    history_joins::set_state(session, join, JoinState::Joining, reason, Some(decided)).await?;
    JoinHistories::enqueue(session, join.project, decided.0).await?;
    Ok(true)
}

/// Makes the tests of a locked join two again.
pub(super) async fn undo_now(
    session: &mut Session,
    join: &HistoryJoin,
    reason: &str,
    decided: Decided,
) -> Result<()> {
    let joined = test(session, join.project, join.joined).await?;
    carrying::lead_to(session, &joined, None).await?;
    history_joins::set_state(session, join, JoinState::Undoing, reason, Some(decided)).await?;
    JoinHistories::enqueue(session, join.project, decided.0).await
}

pub(super) async fn test(session: &mut Session, project: ProjectId, id: TestCaseId) -> Result<TestCaseRow> {
    let found = test_cases::get(session, project, id).await?;
    found.ok_or_else(|| QueryError::not_found(Entity::TestCase, id))
}
