//! What people do with clusters. Every change is in the audit log; a change
//! to what is so already changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ClusterId, ProjectId, RunId, TestCaseId, UserId};
use callboard_domain::ingest::FieldError;
use callboard_domain::search::words;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::users::{self, UserFilter};
use callboard_store::audit::Recorded;
use callboard_store::clusters::{self, ClusterRow, ClusterStatus, edit as store, reshape, routes};
use callboard_store::db::Session;
use callboard_store::jobs;
use callboard_store::search::{self, SearchKind};
use serde_json::{Map, Value, json};

use super::reading::{items, required_cluster};
use crate::accounts::Acting;
use crate::shapes::ClusterItem;
use crate::{Change, Context, Entity, QueryError, Result, resolve};
use callboard_ingest::Recompute;

/// What is changed of a cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterEdit {
    /// Status.
    pub status: Option<ClusterStatus>,
    /// Note.
    pub note: Change<String>,
    /// Title.
    pub title: Change<String>,
    /// Who looks after it.
    pub assignee: Change<UserId>,
    /// Until when nobody wants to hear of it.
    pub snoozed_until: Change<Timestamp>,
    /// Commit that changes are compared with.
    pub base_commit: Change<String>,
}

/// A cluster whose status was set.
#[derive(Debug, Clone)]
pub struct StatusChange {
    /// The cluster now.
    pub cluster: ClusterItem,
    /// Its status before.
    pub previous: ClusterStatus,
    /// Its note before.
    pub previous_note: Option<String>,
}

/// Sets status and note of a cluster.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn set_status(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ClusterId,
    status: ClusterStatus,
    note: Change<String>,
) -> Result<StatusChange> {
    let change = ClusterEdit { status: Some(status), note, ..ClusterEdit::default() };
    let (cluster, before) = change_one(ctx, acting, project, id, &change).await?;
    Ok(StatusChange { cluster, previous: before.status, previous_note: before.note })
}

/// Sets or clears the commit that changes are compared with.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn set_base_commit(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ClusterId,
    commit: Option<String>,
) -> Result<ClusterItem> {
    let base_commit = commit.map_or(Change::Clear, Change::Set);
    edit(ctx, acting, project, id, ClusterEdit { base_commit, ..ClusterEdit::default() }).await
}

/// Changes a cluster.
///
/// # Errors
/// [`QueryError::NotFound`], also for an account it is to be assigned to.
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ClusterId,
    change: ClusterEdit,
) -> Result<ClusterItem> {
    Ok(change_one(ctx, acting, project, id, &change).await?.0)
}

async fn change_one(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ClusterId,
    change: &ClusterEdit,
) -> Result<(ClusterItem, ClusterRow)> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    check_assignee(&mut session, project, change).await?;
    let id = required_cluster(&mut session, project, id).await?.id;
    let found = clusters::lock(&mut session, project, vec![id.get()]).await?;
    let before = found.into_iter().next().ok_or_else(|| QueryError::not_found(Entity::Cluster, id))?;
    let (after, noted, more_open) = apply(&mut session, acting, before.clone(), change).await?;
    store::count_open(&mut session, project, more_open).await?;
    let item = items(ctx, &mut session, std::slice::from_ref(&after)).await?.remove(0);
    session.commit().await?;
    if let Some(noted) = noted {
        noted.committed();
    }
    Ok((item, before))
}

/// Changes several clusters, of several projects if it must be: all or none.
/// Answers how many there are.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Denied`].
pub async fn bulk(
    ctx: &Context,
    acting: Acting<'_>,
    scope: &Scope,
    ids: &BTreeSet<ClusterId>,
    change: &ClusterEdit,
) -> Result<usize> {
    let mut by_project: BTreeMap<ProjectId, BTreeSet<i64>> = BTreeMap::new();
    for id in ids {
        let project = resolve::cluster(ctx, scope, *id).await?.get();
        by_project.entry(project).or_default().insert(id.get());
    }
    let mut session = ctx.store.db().begin().await?;
    let (mut noted, mut more_open) = (Vec::new(), Vec::new());
    for (project, ids) in by_project {
        check_assignee(&mut session, project, change).await?;
        let mut current = BTreeSet::new();
        for id in ids {
            current.insert(required_cluster(&mut session, project, ClusterId(id)).await?.id.get());
        }
        let mut more = 0;
        for row in clusters::lock(&mut session, project, current.into_iter().collect()).await? {
            let (_, entry, opened) = apply(&mut session, acting, row, change).await?;
            noted.extend(entry);
            more += opened;
        }
        more_open.push((project, more));
    }
    for (project, more) in more_open {
        store::count_open(&mut session, project, more).await?;
    }
    session.commit().await?;
    noted.into_iter().for_each(Recorded::committed);
    Ok(ids.len())
}

/// Whoever is assigned has to reach the project. Everybody else is not found,
/// so that nobody learns who else has an account.
async fn check_assignee(session: &mut Session, project: ProjectId, change: &ClusterEdit) -> Result<()> {
    let Some(&user) = change.assignee.value() else { return Ok(()) };
    let wanted = UserFilter { only: Some(user), reaching: Some(project), ..UserFilter::default() };
    if users::list(session, &wanted, None, 1).await?.is_empty() {
        return Err(QueryError::not_found(Entity::User, user));
    }
    Ok(())
}

/// Writes a change of a locked cluster. Answers the cluster now, the entry of
/// the audit log when something changed, and how many more clusters are open.
async fn apply(
    session: &mut Session,
    acting: Acting<'_>,
    before: ClusterRow,
    change: &ClusterEdit,
) -> Result<(ClusterRow, Option<Recorded>, i64)> {
    let mut after = before.clone();
    after.note = change.note.clone().applied_to(after.note);
    after.title = change.title.clone().applied_to(after.title);
    after.assignee = change.assignee.clone().applied_to(after.assignee);
    after.snoozed_until = change.snoozed_until.clone().applied_to(after.snoozed_until);
    after.base_commit = change.base_commit.clone().applied_to(after.base_commit);
    if let Some(status) = change.status.filter(|status| *status != before.status) {
        set(&mut after, status, acting.now);
    }
    if after == before {
        return Ok((after, None, 0));
    }
    after.updated_at = acting.now;
    store::write(session, &after, acting.now).await?;
    if after.title != before.title {
        search::replace(session, after.project, SearchKind::Cluster, after.id.get(), found_by(&after))
            .await?;
    }
    let target = ("cluster", after.id.get());
    let detail = differences(&before, &after);
    let noted =
        acting.record(session, AuditAction::ClusterChanged, target, Some(after.project), detail).await?;
    let more = is_open(&after) - is_open(&before);
    Ok((after, Some(noted), more))
}

fn is_open(row: &ClusterRow) -> i64 {
    i64::from(row.status == ClusterStatus::Open && row.occurrences > 0)
}

fn set(row: &mut ClusterRow, status: ClusterStatus, now: Timestamp) {
    row.status = status;
    row.status_at = now;
    match status {
        ClusterStatus::Resolved => {
            let fixed = *row.fix_at.get_or_insert(now);
            row.ttr_ms = Some((fixed.millis() - row.first_seen_at.millis()).max(0));
        }
        ClusterStatus::Open => {
            (row.fix_run, row.fix_at, row.fix_commit, row.ttr_ms) = (None, None, None, None);
            row.fix_verification = None;
            row.is_quiet = false;
        }
        ClusterStatus::Ignored | ClusterStatus::Merged => {}
    }
}

/// The changed fields, as they were and as they are.
fn differences(before: &ClusterRow, after: &ClusterRow) -> Value {
    let shown = |row: &ClusterRow| -> [(&'static str, Value); 6] {
        [
            ("status", json!(row.status.as_str())),
            ("note", json!(row.note)),
            ("title", json!(row.title)),
            ("assigneeId", json!(row.assignee)),
            ("snoozedUntil", json!(row.snoozed_until)),
            ("baseCommit", json!(row.base_commit)),
        ]
    };
    let mut changed = Map::new();
    for ((name, was), (_, is)) in shown(before).into_iter().zip(shown(after)) {
        if was != is {
            changed.insert(name.to_owned(), json!({ "before": was, "after": is }));
        }
    }
    Value::Object(changed)
}

/// Makes one cluster part of another one of the same project. Answers that
/// other one.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Field`] for a cluster and itself.
pub async fn merge(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    from: ClusterId,
    into: ClusterId,
) -> Result<ClusterItem> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    routes::hold_shape(&mut session, project).await?;
    let from = required_cluster(&mut session, project, from).await?.id;
    let into = required_cluster(&mut session, project, into).await?.id;
    if from == into {
        return Err(invalid("intoId", "the id of another cluster", into.get()));
    }
    merge_within(ctx, acting, session, project, from, into).await
}

/// Makes one cluster part of another one and commits. The transaction holds
/// the shape of the project's clusters.
pub(super) async fn merge_within(
    ctx: &Context,
    acting: Acting<'_>,
    mut session: Session,
    project: ProjectId,
    from: ClusterId,
    into: ClusterId,
) -> Result<ClusterItem> {
    let mut rows = clusters::lock(&mut session, project, vec![from.get(), into.get()]).await?;
    let at = rows.iter().position(|row| row.id == from);
    let gone = rows.remove(at.ok_or_else(|| QueryError::not_found(Entity::Cluster, from))?);
    let mut kept = rows.pop().ok_or_else(|| QueryError::not_found(Entity::Cluster, into))?;
    join(&mut session, &gone, &mut kept, acting.now).await?;
    store::write(&mut session, &kept, acting.now).await?;
    let detail = json!({ "into": into, "occurrences": gone.occurrences });
    let target = ("cluster", from.get());
    let noted =
        acting.record(&mut session, AuditAction::ClusterMerged, target, Some(project), detail).await?;
    let item = items(ctx, &mut session, std::slice::from_ref(&kept)).await?.remove(0);
    session.commit().await?;
    noted.committed();
    Ok(item)
}

/// Makes one locked cluster part of another one: everything that counted for
/// it counts for the other, and the runs that were the first to show either
/// are told again how many clusters were new in them.
pub(super) async fn join(
    session: &mut Session,
    gone: &ClusterRow,
    kept: &mut ClusterRow,
    now: Timestamp,
) -> Result<()> {
    let project = kept.project;
    let was_open = is_open(gone) + is_open(kept);
    let first_shown_by = BTreeSet::from([gone.first_run, kept.first_run]);
    reshape::merge(session, project, gone, kept, now).await?;
    search::forget(session, project, SearchKind::Cluster, vec![gone.id.get()]).await?;
    store::count_open(session, project, is_open(kept) - was_open).await?;
    let change = format!("clusters:{}-{}", gone.id, kept.id);
    recount_new(session, project, first_shown_by, &change, now).await
}

/// Has runs count their new clusters again, once for a change.
async fn recount_new(
    session: &mut Session,
    project: ProjectId,
    runs: BTreeSet<RunId>,
    change: &str,
    now: Timestamp,
) -> Result<()> {
    for run in runs {
        let recompute = Recompute { project, run };
        let key = format!("run:{run}:recompute:{change}");
        jobs::enqueue(session, &key, Some(project), &recompute, now).await?;
    }
    Ok(())
}

/// The words that find a cluster.
pub(super) fn found_by(row: &ClusterRow) -> Vec<String> {
    words([row.signature.as_str()].into_iter().chain(row.title.as_deref()))
}

/// A cluster that some tests of another one form from now on.
#[derive(Debug, Clone)]
pub struct Extracted {
    /// The new cluster.
    pub cluster: ClusterItem,
    /// Tests that were taken out.
    pub extracted: usize,
    /// What is left of the old one.
    pub remaining_occurrences: i64,
}

/// Takes tests out of a cluster. Their later failures of this kind belong to
/// the new cluster.
///
/// # Errors
/// [`QueryError::NotFound`], also for a test case that is not one of the
/// project's; [`QueryError::Field`] when none of them failed for this cluster.
pub async fn extract(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ClusterId,
    tests: &BTreeSet<TestCaseId>,
    note: Option<&str>,
) -> Result<Extracted> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    routes::hold_shape(&mut session, project).await?;
    let id = required_cluster(&mut session, project, id).await?.id;
    let found = clusters::lock(&mut session, project, vec![id.get()]).await?;
    let mut from = found.into_iter().next().ok_or_else(|| QueryError::not_found(Entity::Cluster, id))?;
    let mut affected = Vec::new();
    for test in tests {
        if clusters::reads::of_cluster(&mut session, project, id, *test).await? {
            affected.push(test.get());
        }
    }
    if affected.is_empty() {
        return Err(invalid(
            "testCaseIds",
            "tests that failed for this cluster",
            tests.first().map_or(0, |test| test.get()),
        ));
    }
    let was_open = is_open(&from);
    let mut first_shown_by = BTreeSet::from([from.first_run]);
    let new = reshape::extract(&mut session, project, &mut from, &affected, note, acting.now).await?;
    search::replace(&mut session, project, SearchKind::Cluster, new.id.get(), found_by(&new)).await?;
    store::count_open(&mut session, project, is_open(&from) + is_open(&new) - was_open).await?;
    first_shown_by.extend([from.first_run, new.first_run]);
    let change = format!("clusters:{}-{}", from.id, new.id);
    recount_new(&mut session, project, first_shown_by, &change, acting.now).await?;
    let detail = json!({ "into": new.id, "testCaseIds": affected });
    let target = ("cluster", id.get());
    let noted =
        acting.record(&mut session, AuditAction::ClusterExtracted, target, Some(project), detail).await?;
    let cluster = items(ctx, &mut session, std::slice::from_ref(&new)).await?.remove(0);
    session.commit().await?;
    noted.committed();
    Ok(Extracted { cluster, extracted: affected.len(), remaining_occurrences: from.occurrences })
}

fn invalid(field: &'static str, expected: &'static str, got: i64) -> QueryError {
    FieldError::Invalid { field, expected, got: got.to_string() }.into()
}
