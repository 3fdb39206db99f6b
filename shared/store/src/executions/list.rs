//! Executions of one run in the orders a reader asks for, and the failing ones
//! of a whole project.

use callboard_domain::ids::{ExecutionId, ProjectId, RunId};

use super::{ExecutionRow, read};
use crate::Result;
use crate::db::{Backend, Filter, Session, args};
use crate::test_cases::{HAS_TEXT, asked_texts};

/// How the executions of a run are sorted, with the key of the last row of
/// the page before.
#[derive(Debug, Clone)]
pub enum ExecutionOrder {
    /// Failing, flaky, interrupted, did not run, skipped, passed; then by id.
    Trouble(Option<(i64, i64)>),
    /// By id.
    Id(Option<i64>),
    /// Newest first by id.
    IdDescending(Option<i64>),
    /// Longest first.
    Duration(Option<(i64, i64)>),
    /// Earliest start first.
    StartedAt(Option<(i64, i64)>),
    /// By file of the test, then id; the key is the id alone, paths are long.
    File(Option<i64>),
}

/// A worker of a run, by its place beside the others: one that is replaced
/// after a failure keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Worker {
    /// Its shard; 0 where the run has none.
    pub shard: i64,
    /// Its place, from 0.
    pub slot: i64,
}

/// The conditions of a list of executions of one run.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Only these outcome codes.
    pub outcomes: Option<Vec<i64>>,
    /// Only tests of this file.
    pub file: Option<String>,
    /// Only tests whose title or path contains this text.
    pub text: Option<String>,
    /// Only tests with this tag.
    pub tag: Option<String>,
    /// Only tests of this owner.
    pub owner: Option<String>,
    /// Only tests of this priority.
    pub priority: Option<String>,
    /// Only these browser projects.
    pub browsers: Option<Vec<i64>>,
    /// Only this shard.
    pub shard: Option<i64>,
    /// Only this worker process.
    pub worker: Option<i64>,
    /// Only this worker, with those that replaced it.
    pub place: Option<Worker>,
    /// Only this cluster.
    pub cluster: Option<i64>,
    /// Only those of no cluster.
    pub is_unclustered: bool,
    /// Only those that something is known of from before.
    pub recurring: Option<Recurring>,
    /// Only tests that were tried more than once, or only the others.
    pub retried: Option<bool>,
    /// Only rows whose flags are like this.
    pub flags: Option<FlagMask>,
}

impl ExecutionFilter {
    /// Whether the rows of tests tell which executions there are.
    fn is_about_tests(&self) -> bool {
        self.file.is_some() || self.text.is_some() || self.owner.is_some() || self.priority.is_some()
    }
}

/// What the flags of an execution have to be.
#[derive(Debug, Clone, Copy)]
pub struct FlagMask {
    /// The bits that are looked at.
    pub asked: i64,
    /// Those of them that have to be set; the others must not be.
    pub wanted: i64,
}

/// What says that something like an execution was there before.
#[derive(Debug, Clone)]
pub struct Recurring {
    /// Flags of which one is set, or else it has a cluster, and an older one.
    pub flags: i64,
    /// The clusters that the run was the first to show.
    pub new_clusters: Vec<i64>,
}

/// A page of the executions of one run: bounded by the run, never by history.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    wanted: &ExecutionFilter,
    order: &ExecutionOrder,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    let filter = of_run(session.backend(), project, run, wanted, order, limit);
    session.list(filter).await?.iter().map(read).collect()
}

fn of_run(
    backend: Backend,
    project: ProjectId,
    run: RunId,
    wanted: &ExecutionFilter,
    order: &ExecutionOrder,
    limit: i64,
) -> Filter {
    let (low, high) = ExecutionId::range_of(run);
    let base = if wanted.is_about_tests() || matches!(order, ExecutionOrder::File(_)) {
        // SQLite keeps the order of a cross join: it reads the run and then the tests, not each test of the file and
        // then all days of each.
        select_execution!(
            "CROSS JOIN test_cases c WHERE c.project_id = e.project_id AND c.id = e.test_case_id \
             AND e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4"
        )
    } else {
        select_execution!("WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4")
    };
    let filter = conditions(Filter::new(backend, base, args![project, run, low, high]), wanted);
    match order {
        ExecutionOrder::Trouble(after) => match after {
            Some((rank, id)) => filter.and("(e.rank, e.id) > (?, ?)", args![*rank, *id]),
            None => filter,
        }
        .end("ORDER BY e.rank, e.id LIMIT ?", args![limit]),
        ExecutionOrder::Id(after) => {
            filter.and_if("e.id > ?", *after).end("ORDER BY e.id LIMIT ?", args![limit])
        }
        ExecutionOrder::IdDescending(after) => {
            filter.and_if("e.id < ?", *after).end("ORDER BY e.id DESC LIMIT ?", args![limit])
        }
        ExecutionOrder::Duration(after) => match after {
            Some((duration, id)) => filter.and("(e.duration, e.id) < (?, ?)", args![*duration, *id]),
            None => filter,
        }
        .end("ORDER BY e.duration DESC, e.id DESC LIMIT ?", args![limit]),
        ExecutionOrder::StartedAt(after) => match after {
            Some((at, id)) => filter.and("(COALESCE(e.started_at, 0), e.id) > (?, ?)", args![*at, *id]),
            None => filter,
        }
        .end("ORDER BY COALESCE(e.started_at, 0), e.id LIMIT ?", args![limit]),
        ExecutionOrder::File(after) => match after {
            Some(id) => filter.and(
                "(c.file_path, e.id) > (SELECT lc.file_path, le.id FROM executions le JOIN test_cases lc \
                 ON lc.project_id = le.project_id AND lc.id = le.test_case_id \
                 WHERE le.project_id = $1 AND le.run_id = $2 AND le.id = ?)",
                args![*id],
            ),
            None => filter,
        }
        .end("ORDER BY c.file_path, e.id LIMIT ?", args![limit]),
    }
}

fn conditions(filter: Filter, wanted: &ExecutionFilter) -> Filter {
    let filter = filter
        .and_if("e.outcome in_ints(?)", wanted.outcomes.clone())
        .and_if("c.file_path = ?", wanted.file.clone())
        .and_each(HAS_TEXT, asked_texts(wanted.text.as_deref()))
        .and_if(
            "EXISTS (SELECT 1 FROM test_case_tags t WHERE t.project_id = e.project_id AND t.tag = ? AND t.test_case_id = e.test_case_id)",
            wanted.tag.clone(),
        )
        .and_if("COALESCE(c.owner, c.code_owner) = ?", wanted.owner.clone())
        .and_if("c.priority = ?", wanted.priority.clone())
        .and_if("e.browser_id in_ints(?)", wanted.browsers.clone())
        .and_if("e.shard_index = ?", wanted.shard)
        .and_if("e.worker_index = ?", wanted.worker)
        .and_if("e.cluster_id = ?", wanted.cluster)
        .and_if("(CASE WHEN e.retries > 0 THEN 1 ELSE 0 END) = ?", wanted.retried.map(i64::from));
    let filter = match wanted.flags {
        Some(FlagMask { asked, wanted }) => filter.and("(e.flags & ?) = ?", args![asked, wanted]),
        None => filter,
    };
    let filter = match wanted.place {
        Some(Worker { shard, slot }) => filter
            .and(concat!("COALESCE(e.shard_index, 0) = ? AND ", worker_slot!(), " = ?"), args![shard, slot]),
        None => filter,
    };
    let filter = if wanted.is_unclustered { filter.and("e.cluster_id IS NULL", args![]) } else { filter };
    match &wanted.recurring {
        Some(Recurring { flags, new_clusters }) => filter.and(
            "((e.flags & ?) <> 0 OR (e.cluster_id IS NOT NULL AND NOT (e.cluster_id in_ints(?))))",
            args![*flags, new_clusters.clone()],
        ),
        None => filter,
    }
}

/// How many executions of a run there are, up to `most`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    wanted: &ExecutionFilter,
    most: i64,
) -> Result<i64> {
    session.count(counting(session.backend(), project, run, wanted, most)).await
}

fn counting(backend: Backend, project: ProjectId, run: RunId, wanted: &ExecutionFilter, most: i64) -> Filter {
    let (low, high) = ExecutionId::range_of(run);
    let base = if wanted.is_about_tests() {
        "SELECT COUNT(*) FROM (SELECT 1 FROM executions e CROSS JOIN test_cases c WHERE c.project_id = e.project_id \
         AND c.id = e.test_case_id AND e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4"
    } else {
        "SELECT COUNT(*) FROM (SELECT 1 FROM executions e WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4"
    };
    conditions(Filter::new(backend, base, args![project, run, low, high]), wanted)
        .end("LIMIT ?) counted", args![most])
}

/// Failing executions of a whole project, newest first. ix: executions_rank
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn failing_of_project(
    session: &mut Session,
    project: ProjectId,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    session.list(failing(session.backend(), project, before, limit)).await?.iter().map(read).collect()
}

fn failing(backend: Backend, project: ProjectId, before: Option<i64>, limit: i64) -> Filter {
    let base = select_execution!("WHERE e.project_id = $1 AND e.rank = 1 AND e.rank < 6");
    Filter::new(backend, base, args![project])
        .and_if("e.id < ?", before)
        .end("ORDER BY e.id DESC LIMIT ?", args![limit])
}

/// What the lists can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let text = || Some(String::new());
    let all = ExecutionFilter {
        outcomes: Some(vec![]),
        file: text(),
        text: text(),
        tag: text(),
        owner: text(),
        priority: text(),
        browsers: Some(vec![]),
        shard: Some(1),
        worker: Some(1),
        place: Some(Worker { shard: 1, slot: 1 }),
        cluster: Some(1),
        is_unclustered: true,
        recurring: Some(Recurring { flags: 1, new_clusters: vec![1] }),
        retried: Some(true),
        flags: Some(FlagMask { asked: 1, wanted: 1 }),
    };
    let without_test = ExecutionFilter { tag: text(), ..ExecutionFilter::default() };
    let orders = |key: Option<i64>| {
        let pair = key.map(|key| (key, key));
        [
            ExecutionOrder::Trouble(pair),
            ExecutionOrder::Id(key),
            ExecutionOrder::IdDescending(key),
            ExecutionOrder::Duration(pair),
            ExecutionOrder::StartedAt(pair),
            ExecutionOrder::File(key),
        ]
    };
    let mut shapes =
        vec![failing(backend, ProjectId(1), None, 1), failing(backend, ProjectId(1), Some(1), 1)];
    let of_file = ExecutionFilter { file: text(), browsers: Some(vec![]), ..ExecutionFilter::default() };
    for wanted in [ExecutionFilter::default(), without_test, of_file, all] {
        for order in orders(None).into_iter().chain(orders(Some(1))) {
            shapes.push(of_run(backend, ProjectId(1), RunId(1), &wanted, &order, 1));
        }
        shapes.push(counting(backend, ProjectId(1), RunId(1), &wanted, 1));
    }
    shapes
}
