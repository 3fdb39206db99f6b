//! Questions about clusters.

use std::collections::HashMap;

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::failure::ErrorType;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId, UserId};
use callboard_domain::search::words;
use callboard_domain::text::strip_ansi;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::users;
use callboard_store::boxed;
use callboard_store::clusters::list::{self, Assigned, ClusterFilter, ClusterOrder};
use callboard_store::clusters::reads::{self, OccurrenceFilter, TestsOrder};
use callboard_store::clusters::{self, ClusterRow, ClusterStatus};
use callboard_store::db::Session;
use callboard_store::executions::ExecutionRow;
use callboard_store::lanes;
use callboard_store::projects::{self, Visible};
use serde::Serialize;
use utoipa::ToSchema;

use crate::executions::{show, with_runs};
use crate::page::{COUNTED_TO, Slice, Total, fetch};
use crate::projects::{required, visible};
use crate::shapes::{
    AffectedTestCase, ClusterBrief, ClusterDay, ClusterDetail, ClusterItem, ClusterOfExecution,
    ClusterOfTest, ClusterTestCase, ClusterWithProject, CommonField, ExecutionWithRun, ProjectRef, UserRef,
};
use crate::{Context, Entity, QueryError, Result, diagnoses, resolve};
use callboard_ingest::read_session_with_fresh_aggregates;

const TREND_DAYS: i64 = 30;
const BRANCHES_SHOWN: i64 = 20;
const TESTS_SHOWN: i64 = 20;
const CLUSTERS_OF_A_TEST: i64 = 10;

/// How clusters are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum ClusterSort {
    /// The one seen last first.
    #[default]
    LastSeen,
    /// The one that occurred most often first.
    Occurrences,
    /// The newest first.
    Id,
}

/// The last row of a page of clusters: what it is sorted by, and its id.
pub type ClusterKey = (i64, i64);

/// Who has to look after a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Assignee {
    /// This account.
    User(UserId),
    /// Nobody.
    Nobody,
}

/// The conditions of a list of clusters.
#[derive(Debug, Clone, Default)]
pub struct ClusterQuery {
    /// Any of these; all when empty.
    pub statuses: Vec<ClusterStatus>,
    /// Any of these types of errors.
    pub error_types: Vec<ErrorType>,
    /// Only those somebody, or nobody, looks after.
    pub assignee: Option<Assignee>,
    /// Only those that are put off now, or only the others.
    pub snoozed: Option<bool>,
    /// Only those seen at this moment or later.
    pub seen_from: Option<Timestamp>,
    /// Only those for which a test of this owner failed.
    pub owner: Option<String>,
    /// Words of the signature or title, the last of them as the beginning of one.
    pub text: Option<String>,
    /// Only these projects (on top of the scope).
    pub projects: Vec<ProjectId>,
    /// Sort.
    pub sort: ClusterSort,
    /// Key of the last row of the page before.
    pub after: Option<ClusterKey>,
}

impl ClusterQuery {
    /// A question without a single word in it finds nothing.
    fn asks_for_nothing(&self, filter: &ClusterFilter) -> bool {
        self.text.as_deref().is_some_and(|text| !text.trim().is_empty()) && filter.words.is_empty()
    }

    fn filter(&self, now: Timestamp) -> ClusterFilter {
        ClusterFilter {
            statuses: self.statuses.clone(),
            error_types: self.error_types.clone(),
            assigned: self.assignee.map(|assignee| match assignee {
                Assignee::User(user) => Assigned::To(user.get()),
                Assignee::Nobody => Assigned::Nobody,
            }),
            snoozed: self.snoozed.map(|snoozed| (snoozed, now)),
            seen_from: self.seen_from,
            owner: self.owner.clone(),
            words: self.text.as_deref().map(|text| words([text])).unwrap_or_default(),
        }
    }

    fn order(&self) -> ClusterOrder {
        match self.sort {
            ClusterSort::LastSeen => ClusterOrder::LastSeen(self.after),
            ClusterSort::Occurrences => ClusterOrder::Occurrences(self.after),
            ClusterSort::Id => ClusterOrder::Id(self.after.map(|(_, id)| id)),
        }
    }

    fn key(&self, row: &ClusterRow) -> ClusterKey {
        let number = match self.sort {
            ClusterSort::LastSeen => row.last_seen_at.millis(),
            ClusterSort::Occurrences => row.occurrences,
            ClusterSort::Id => 0,
        };
        (number, row.id.get())
    }
}

/// Clusters of one project.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn of_project(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &ClusterQuery,
    now: Timestamp,
    limit: usize,
) -> Result<Slice<ClusterItem, ClusterKey>> {
    let mut session = ctx.store.db().read().await?;
    let project = Some(project.get());
    let rows = rows(&mut session, project, &Visible::All, query, now, limit).await?;
    let items = items(ctx, &mut session, &rows.items).await?;
    Ok(Slice { items, next: rows.next })
}

/// How many clusters of a project there are; ask only where a list goes on.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &ClusterQuery,
    now: Timestamp,
) -> Result<Total> {
    let filter = query.filter(now);
    if query.asks_for_nothing(&filter) {
        return Ok(Total::Exactly(0));
    }
    let mut session = ctx.store.db().read().await?;
    Ok(Total::of_counted(list::count(&mut session, project.get(), &filter, COUNTED_TO).await?))
}

/// Clusters of all projects of the caller.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    scope: &Scope,
    query: &ClusterQuery,
    now: Timestamp,
    limit: usize,
) -> Result<Slice<ClusterWithProject, ClusterKey>> {
    let mut session = ctx.store.db().read().await?;
    let scope = if query.projects.is_empty() {
        scope.clone()
    } else {
        scope.narrowed_to(query.projects.iter().copied())
    };
    let rows = rows(&mut session, None, &visible(&scope), query, now, limit).await?;
    let mut ids: Vec<i64> = rows.items.iter().map(|row| row.project.get()).collect();
    ids.sort_unstable();
    ids.dedup();
    let owners: HashMap<i64, ProjectRef> = projects::get_many(&mut session, ids)
        .await?
        .iter()
        .map(|project| (project.id.get(), ProjectRef::from_row(project)))
        .collect();
    let items = items(ctx, &mut session, &rows.items).await?;
    let items = items.into_iter().filter_map(|cluster| {
        let project = owners.get(&cluster.brief.project_id)?.clone();
        Some(ClusterWithProject { cluster, project })
    });
    Ok(Slice { items: items.collect(), next: rows.next })
}

async fn rows(
    session: &mut Session,
    project: Option<ProjectId>,
    visible: &Visible,
    query: &ClusterQuery,
    now: Timestamp,
    limit: usize,
) -> Result<Slice<ClusterRow, ClusterKey>> {
    let filter = query.filter(now);
    if query.asks_for_nothing(&filter) {
        return Ok(Slice { items: Vec::new(), next: None });
    }
    let rows = list::list(session, project, visible, &filter, query.order(), fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row| query.key(row)))
}

/// Clusters with those who look after them, in the order of the rows.
pub(super) async fn items(
    ctx: &Context,
    session: &mut Session,
    rows: &[ClusterRow],
) -> Result<Vec<ClusterItem>> {
    let mut ids: Vec<i64> = rows.iter().filter_map(|row| row.assignee.map(UserId::get)).collect();
    ids.sort_unstable();
    ids.dedup();
    let people: HashMap<UserId, UserRef> = if ids.is_empty() {
        HashMap::new()
    } else {
        users::get_many(session, ids).await?.iter().map(|user| (user.id, UserRef::from_row(user))).collect()
    };
    let item = |row: &ClusterRow| {
        let assignee = row.assignee.and_then(|user| people.get(&user).cloned());
        ClusterItem::new(row, assignee, &ctx.links)
    };
    Ok(rows.iter().map(item).collect())
}

/// How many clusters of a project have each status.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct ClusterCounts {
    /// They wait for a repair.
    pub open: i64,
    /// They are repaired.
    pub resolved: i64,
    /// They are not worth a repair.
    pub ignored: i64,
}

/// Counts the clusters of a project by status.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn counts(ctx: &Context, project: Authorized<ProjectId>) -> Result<ClusterCounts> {
    let mut counts = ClusterCounts::default();
    for (status, count) in list::counts(&mut ctx.store.db().read().await?, project.get()).await? {
        match status {
            ClusterStatus::Open => counts.open = count,
            ClusterStatus::Resolved => counts.resolved = count,
            ClusterStatus::Ignored => counts.ignored = count,
            ClusterStatus::Merged => {}
        }
    }
    Ok(counts)
}

/// The cluster of an id; the one it was made part of, when it was.
pub(super) async fn required_cluster(
    session: &mut Session,
    project: ProjectId,
    id: ClusterId,
) -> Result<ClusterRow> {
    let found = clusters::get(session, project, id).await?;
    let found = match found.as_ref().and_then(|row| row.merged_into) {
        Some(into) => clusters::get(session, project, into).await?,
        None => found,
    };
    found.ok_or_else(|| QueryError::not_found(Entity::Cluster, id))
}

/// The cluster that a cluster is part of now: itself, unless it was merged.
///
/// # Errors
/// [`QueryError::NotFound`].
pub(crate) async fn survivor(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ClusterId,
) -> Result<ClusterId> {
    let mut session = ctx.store.db().read().await?;
    Ok(required_cluster(&mut session, project.get(), id).await?.id)
}

/// The cluster that a filter of a project's executions names; the one it was
/// made part of, when it was.
///
/// # Errors
/// [`QueryError::NotFound`], also for a cluster of another project the caller
/// sees; [`QueryError::Denied`] for one the caller does not see.
#[boxed]
pub async fn named(
    ctx: &Context,
    scope: &Scope,
    project: Authorized<ProjectId>,
    id: ClusterId,
) -> Result<ClusterId> {
    if resolve::cluster(ctx, scope, id).await?.get() != project.get() {
        return Err(QueryError::not_found(Entity::Cluster, id));
    }
    let mut session = ctx.store.db().read().await?;
    Ok(required_cluster(&mut session, project.get(), id).await?.id)
}

/// The lines that name the causes of some clusters, by cluster.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn signatures(
    ctx: &Context,
    project: Authorized<ProjectId>,
    ids: Vec<i64>,
) -> Result<HashMap<i64, String>> {
    let rows = clusters::get_many(&mut ctx.store.db().read().await?, project.get(), ids).await?;
    Ok(rows.into_iter().map(|row| (row.id.get(), row.signature)).collect())
}

/// One cluster with what its page shows.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn detail(ctx: &Context, project: Authorized<ProjectId>, id: ClusterId) -> Result<ClusterDetail> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let row = required_cluster(&mut session, project, id).await?;
    let owner = required(&mut session, project).await?;
    let (sample, fields) = clusters::sample(&mut session, project, row.id).await?;
    let tests = reads::tests(&mut session, project, row.id, TestsOrder::MostAffected, TESTS_SHOWN).await?;
    let branches = reads::branches(&mut session, project, row.id, BRANCHES_SHOWN).await?;
    let trend = reads::days(&mut session, project, row.id, TREND_DAYS).await?;
    let mut item = items(ctx, &mut session, std::slice::from_ref(&row)).await?.remove(0);
    item.brief.diagnosis = diagnoses::brief(&mut session, project, row.id).await?;
    item.sample_error = Some(strip_ansi(&sample).into_owned()).filter(|sample| !sample.trim().is_empty());
    let fields: Vec<(String, String)> = serde_json::from_str(&fields).unwrap_or_default();
    Ok(ClusterDetail {
        item,
        base_commit: row.base_commit,
        project: ProjectRef::from_row(&owner),
        grouped_by: fields.into_iter().map(|(field, value)| CommonField { field, value }).collect(),
        branches,
        affected_test_cases: tests.into_iter().map(AffectedTestCase::from_test).collect(),
        trend: trend.into_iter().map(|(day, occurrences)| ClusterDay { day, occurrences }).collect(),
    })
}

/// The last row of a page of occurrences: the day of its run, and its id.
pub type OccurrenceKey = (i64, i64);

/// Which occurrences of a cluster are asked for.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceQuery {
    /// Any of these branches; an empty word is "none recorded".
    pub branches: Vec<String>,
    /// Any of these environments; an empty word is "none recorded".
    pub environments: Vec<String>,
    /// Only runs that started at this moment or later.
    pub from: Option<Timestamp>,
    /// Only runs that started at this moment or earlier.
    pub to: Option<Timestamp>,
    /// Key of the last row of the page before.
    pub after: Option<OccurrenceKey>,
}

/// Executions that count for a cluster, the newest first.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn occurrences(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ClusterId,
    query: &OccurrenceQuery,
    limit: usize,
) -> Result<Slice<ExecutionWithRun, OccurrenceKey>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let cluster = required_cluster(&mut session, project, id).await?;
    let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    let filter = OccurrenceFilter {
        branches: some(&query.branches),
        environments: some(&query.environments),
        from: query.from,
        to: query.to,
        run: None,
        after: query.after,
    };
    let rows = reads::occurrences(&mut session, project, Some(cluster.id), &filter, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row: &ExecutionRow| (row.day.0, row.id.get()));
    let browsers = lanes::browsers(&mut session, project).await?;
    let items = show(&mut session, project, &rows.items, &browsers).await?;
    let items = with_runs(&mut session, project, items).await?;
    let items = items.into_iter().map(|(execution, run)| ExecutionWithRun { execution, run }).collect();
    Ok(Slice { items, next: rows.next })
}

/// Tests that failed for a cluster, by id; the key is the id.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn test_cases(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ClusterId,
    after: Option<i64>,
    limit: usize,
) -> Result<Slice<ClusterTestCase, i64>> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let cluster = required_cluster(&mut session, project, id).await?;
    let order = TestsOrder::IdAfter(after.unwrap_or(0));
    let rows = reads::tests(&mut session, project, cluster.id, order, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row| row.test_case.get()).map(ClusterTestCase::from_test))
}

/// Clusters a test failed for, the newest first.
pub(crate) async fn of_test(
    session: &mut Session,
    project: ProjectId,
    test_case: TestCaseId,
) -> Result<Vec<ClusterOfTest>> {
    let found = reads::of_test(session, project, test_case, CLUSTERS_OF_A_TEST).await?;
    let ids = found.iter().map(|(id, _)| id.get()).collect();
    let rows = clusters::get_many(session, project, ids).await?;
    let show = |(id, own): &(ClusterId, i64)| {
        let row = rows.iter().find(|row| row.id == *id)?;
        Some(ClusterOfTest { brief: ClusterBrief::from_row(row), own_occurrences: *own })
    };
    Ok(found.iter().filter_map(show).collect())
}

/// The cluster an execution counts for.
pub(crate) async fn of_execution(
    session: &mut Session,
    project: ProjectId,
    execution: ExecutionId,
    cluster: Option<ClusterId>,
) -> Result<Option<ClusterOfExecution>> {
    let Some(id) = cluster else { return Ok(None) };
    let Some(row) = clusters::get(session, project, id).await? else { return Ok(None) };
    let run: RunId = execution.run();
    Ok(Some(ClusterOfExecution {
        is_new: row.first_run == run,
        same_run_count: reads::in_run(session, project, run, id).await?,
        brief: ClusterBrief::from_row(&row),
    }))
}
