//! Questions about executions.

mod blocking;

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::evidence::skip_reason;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::ExecutionFlags as Flags;
use callboard_domain::time::Timestamp;
use callboard_store::clusters::reads;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, ExecutionRow, FlagMask, Recurring};
use callboard_store::lanes::BrowserProject;
use callboard_store::{StoreError, boxed, evidence, files, lanes, test_cases};
use serde_json::{Map, Value};

use crate::clusters;
pub use crate::evidence::{Part, Parts};
use crate::failures::passed_before;
use crate::page::{COUNTED_TO, Slice, Total, fetch};
use crate::projects::required;
use crate::runs::required_run;
use crate::shapes::{
    AttemptView, ExecutionDetail, ExecutionItem, FileItem, ProjectRef, RunBrief, TestMetaView, TraceItem,
};
use crate::test_cases::bare_tag;
use crate::{Context, Entity, QueryError, Result, links, retention};
use callboard_ingest::{read_session_with_fresh_aggregates, stored_attempts};
pub use callboard_store::executions::Worker;
pub use callboard_store::files::FileKind;

/// Workers of a run that one can choose from.
const WORKERS: i64 = 500;
/// Files that the page of an execution lists.
const FILES_SHOWN: i64 = 500;

/// How the executions of a run are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub enum Sort {
    /// Failing, flaky, interrupted, did not run, skipped, passed; then by id.
    #[default]
    Trouble,
    /// By id.
    Id,
    /// Newest first by id.
    Newest,
    /// Longest first.
    Duration,
    /// Earliest start first.
    StartedAt,
    /// By file of the test.
    File,
}

/// The last row of a page of executions: what it is sorted by, when that is a
/// number, and its id.
pub type ExecutionKey = (i64, i64);

/// Outcomes one can ask for, coarser than statuses: failing includes timed
/// out, passed leaves flaky to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum OutcomeGroup {
    /// Failed or timed out.
    Failing,
    /// Passed after a failed attempt.
    Flaky,
    /// Interrupted.
    Interrupted,
    /// Passed at the first attempt.
    Passed,
    /// Skipped on purpose.
    Skipped,
    /// Planned, never started.
    DidNotRun,
}

impl OutcomeGroup {
    /// All groups, in the order of trouble.
    pub const ALL: [Self; 6] =
        [Self::Failing, Self::Flaky, Self::Interrupted, Self::DidNotRun, Self::Skipped, Self::Passed];

    /// The spelling in filters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Flaky => "flaky",
            Self::Interrupted => "interrupted",
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::DidNotRun => "didnotrun",
        }
    }

    /// Reads a filter value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.as_str() == text)
    }

    fn outcomes(self) -> &'static [Outcome] {
        match self {
            Self::Failing => &[Outcome::Failed, Outcome::TimedOut],
            Self::Flaky => &[Outcome::Flaky],
            Self::Interrupted => &[Outcome::Interrupted],
            Self::Passed => &[Outcome::Passed],
            Self::Skipped => &[Outcome::Skipped],
            Self::DidNotRun => &[Outcome::DidNotRun],
        }
    }
}

/// Which cluster failures belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum OfCluster {
    /// This one.
    Id(ClusterId),
    /// None.
    Nothing,
}

/// The conditions of a list of executions of one run.
#[derive(Debug, Clone, Default)]
pub struct ExecutionQuery {
    /// Any of these statuses.
    pub statuses: Vec<TestStatus>,
    /// Any of these outcomes.
    pub outcomes: Vec<OutcomeGroup>,
    /// Only this file.
    pub file: Option<String>,
    /// Title, path or describe title contains this.
    pub text: Option<String>,
    /// Only tests with this tag, with or without `@`.
    pub tag: Option<String>,
    /// Only this owner.
    pub owner: Option<String>,
    /// Only this priority.
    pub priority: Option<String>,
    /// Only this browser project.
    pub browser: Option<String>,
    /// Only this shard.
    pub shard: Option<i64>,
    /// Only this worker process.
    pub worker: Option<i64>,
    /// Only this worker, with those that replaced it.
    pub place: Option<Worker>,
    /// Only failures of this cluster.
    pub cluster: Option<OfCluster>,
    /// Only tests that were tried more than once, or only the others.
    pub retried: Option<bool>,
    /// Only tests that passed before and fail now, or only the others.
    pub new_regression: Option<bool>,
    /// Only tests that were stable before and are flaky now, or only the others.
    pub new_flaky: Option<bool>,
    /// Only tests that failed before and pass now, or only the others.
    pub fixed: Option<bool>,
    /// Only tests that failed before and fail still, as [`crate::insights`]
    /// counts them.
    pub recurring: bool,
    /// Only tests that were in quarantine, or only the others.
    pub quarantined: Option<bool>,
    /// Sort.
    pub sort: Sort,
    /// Key of the last row of the page before.
    pub after: Option<ExecutionKey>,
}

/// A page of the executions of a run.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    query: &ExecutionQuery,
    limit: usize,
) -> Result<Slice<ExecutionItem, ExecutionKey>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    required_run(&mut session, project, run).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let filter = filter_of(&mut session, project, run, query, &browsers).await?;
    if limit == 0 {
        return Ok(Slice { items: Vec::new(), next: None });
    }
    let order = order_of(query.sort, query.after);
    let rows = executions::list(&mut session, project, run, &filter, &order, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| key_of(query.sort, row));
    let items = show(&mut session, project, &rows.items, &browsers).await?;
    Ok(Slice { items, next: rows.next })
}

/// When an attempt ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptSpan {
    /// Its start.
    pub started_at: Timestamp,
    /// How long it took, ms.
    pub duration_ms: i64,
}

/// When the attempts of some executions ran, by execution, the earliest first;
/// attempts without a start are left out.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn attempt_spans(
    ctx: &Context,
    project: Authorized<ProjectId>,
    ids: &[ExecutionId],
) -> Result<HashMap<i64, Vec<AttemptSpan>>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let mut session = ctx.store.db().read().await?;
    let rows = executions::get_many(&mut session, project.get(), ids).await?;
    let mut spans = HashMap::with_capacity(rows.len());
    for row in &rows {
        let attempts = stored_attempts(row)?.attempts();
        let ran = attempts.iter().filter_map(|attempt| {
            Some(AttemptSpan { started_at: attempt.started_at?, duration_ms: attempt.duration_ms })
        });
        let mut ran: Vec<AttemptSpan> = ran.collect();
        ran.sort_by_key(|span| span.started_at);
        spans.insert(row.id.get(), ran);
    }
    Ok(spans)
}

/// The workers of a run that began with a test.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn workers(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<Vec<Worker>> {
    let mut session = ctx.store.db().read().await?;
    Ok(executions::brief::workers(&mut session, project.get(), run, WORKERS).await?)
}

/// How many executions of a run there are. It reads what the list would have to
/// read for its last page, so ask only where a list goes on.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    query: &ExecutionQuery,
) -> Result<Total> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let filter = filter_of(&mut session, project, run, query, &browsers).await?;
    let counted = executions::count(&mut session, project, run, &filter, COUNTED_TO).await?;
    Ok(Total::of_counted(counted))
}

async fn filter_of(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    query: &ExecutionQuery,
    browsers: &[BrowserProject],
) -> Result<ExecutionFilter> {
    let mut codes: Option<Vec<i64>> = None;
    let mut narrow = |wanted: Vec<i64>| {
        codes = Some(match codes.take() {
            Some(known) => known.into_iter().filter(|code| wanted.contains(code)).collect(),
            None => wanted,
        });
    };
    if !query.statuses.is_empty() {
        let fits = |outcome: &&Outcome| query.statuses.contains(&outcome.status());
        narrow(Outcome::ALL.iter().filter(fits).map(|outcome| outcome.code()).collect());
    }
    if !query.outcomes.is_empty() {
        narrow(
            query.outcomes.iter().flat_map(|group| group.outcomes()).map(|outcome| outcome.code()).collect(),
        );
    }
    if query.recurring || query.cluster == Some(OfCluster::Nothing) {
        narrow(OutcomeGroup::Failing.outcomes().iter().map(|outcome| outcome.code()).collect());
    }
    let recurring = if query.recurring {
        let new = reads::new_of_run(session, project, run, i64::MAX).await?;
        let new_clusters = new.into_iter().map(ClusterId::get).collect();
        Some(Recurring { flags: Flags::default().set(Flags::BASELINE_KNOWN, true).bits(), new_clusters })
    } else {
        None
    };
    let is_not_new = query.recurring.then_some(false);
    let (mut asked, mut wanted) = (Flags::default(), Flags::default());
    for (choice, flag) in [
        (is_not_new.or(query.new_regression), Flags::NEW_REGRESSION),
        (query.new_flaky, Flags::NEW_FLAKY),
        (query.fixed, Flags::FIXED),
        (query.quarantined.or(is_not_new), Flags::QUARANTINED),
    ] {
        asked = asked.set(flag, choice.is_some());
        wanted = wanted.set(flag, choice == Some(true));
    }
    Ok(ExecutionFilter {
        outcomes: codes,
        file: query.file.clone(),
        text: query.text.clone(),
        tag: query.tag.as_deref().map(bare_tag),
        owner: query.owner.clone(),
        priority: query.priority.clone(),
        browsers: query.browser.as_ref().map(|name| {
            browsers.iter().filter(|browser| browser.name == *name).map(|browser| browser.id).collect()
        }),
        shard: query.shard,
        worker: query.worker,
        place: query.place,
        cluster: match query.cluster {
            Some(OfCluster::Id(cluster)) => Some(cluster.get()),
            Some(OfCluster::Nothing) | None => None,
        },
        is_unclustered: query.cluster == Some(OfCluster::Nothing),
        recurring,
        retried: query.retried,
        flags: (asked != Flags::default()).then_some(FlagMask { asked: asked.bits(), wanted: wanted.bits() }),
    })
}

fn order_of(sort: Sort, after: Option<ExecutionKey>) -> ExecutionOrder {
    let id = after.map(|(_, id)| id);
    match sort {
        Sort::Trouble => ExecutionOrder::Trouble(after),
        Sort::Id => ExecutionOrder::Id(id),
        Sort::Newest => ExecutionOrder::IdDescending(id),
        Sort::Duration => ExecutionOrder::Duration(after),
        Sort::StartedAt => ExecutionOrder::StartedAt(after),
        Sort::File => ExecutionOrder::File(id),
    }
}

fn key_of(sort: Sort, row: &ExecutionRow) -> ExecutionKey {
    let number = match sort {
        Sort::Trouble => row.outcome.rank(),
        Sort::Duration => row.duration_ms,
        Sort::StartedAt => row.started_at.map_or(0, Timestamp::millis),
        Sort::Id | Sort::Newest | Sort::File => 0,
    };
    (number, row.id.get())
}

/// Failing executions of a whole project, newest first; the key is the id.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn failing(
    ctx: &Context,
    project: Authorized<ProjectId>,
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<(ExecutionItem, RunBrief), i64>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let rows = executions::failing_of_project(&mut session, project, before, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| row.id.get());
    let items = show(&mut session, project, &rows.items, &browsers).await?;
    let items = with_runs(&mut session, project, items).await?;
    Ok(Slice { items, next: rows.next })
}

pub(crate) async fn with_runs(
    session: &mut Session,
    project: ProjectId,
    items: Vec<ExecutionItem>,
) -> Result<Vec<(ExecutionItem, RunBrief)>> {
    let mut ids: Vec<i64> = items.iter().map(|item| item.run_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let runs = callboard_store::runs::get_many(session, project, ids).await?;
    let runs: HashMap<i64, RunBrief> =
        runs.iter().map(|run| (run.id.get(), RunBrief::from_row(run))).collect();
    let paired = items.into_iter().filter_map(|item| {
        let run = runs.get(&item.run_id)?.clone();
        Some((item, run))
    });
    Ok(paired.collect())
}

/// Rows with their test cases, in the order of the rows.
pub(crate) async fn show(
    session: &mut Session,
    project: ProjectId,
    rows: &[ExecutionRow],
    browsers: &[BrowserProject],
) -> Result<Vec<ExecutionItem>> {
    let cases = rows.iter().map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(session, project, cases).await?;
    rows.iter()
        .map(|row| {
            let case =
                cases.get(&row.test_case).ok_or(StoreError::Damaged("an execution without a test case"))?;
            let browser = browsers.iter().find(|browser| browser.id == row.browser_id);
            Ok(ExecutionItem::new(row, case, browser))
        })
        .collect()
}

/// Which attempt of an execution is asked for; `None` is the deciding one.
#[derive(Debug, Clone, Copy, Default)]
pub struct WantedAttempt {
    /// Index of the attempt.
    pub retry: Option<u32>,
    /// Repetition.
    pub repetition: Option<u32>,
}

/// One execution with its attempts, files and the asked parts of its evidence:
/// one ranged read of one object, none for [`Parts::None`].
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn detail(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    parts: &Parts,
    wanted: WantedAttempt,
) -> Result<ExecutionDetail> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let row = required_execution(&mut session, project, id).await?;
    let run = required_run(&mut session, project, row.run).await?;
    let owner = required(&mut session, project).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let case = test_cases::get(&mut session, project, row.test_case).await?;
    let case = case.ok_or(StoreError::Damaged("an execution without a test case"))?;
    let browser = browsers.iter().find(|browser| browser.id == row.browser_id);
    let mut item = ExecutionItem::new(&row, &case, browser);
    let mut files = files::of_execution(&mut session, project, id, None, None, FILES_SHOWN).await?;
    if i64::try_from(files.len()).is_ok_and(|shown| shown == FILES_SHOWN) {
        // Traces are shown beside other files, and not left out for them.
        files.retain(|file| file.kind != FileKind::Trace);
        let traces = Some(&[FileKind::Trace][..]);
        files.extend(files::of_execution(&mut session, project, id, traces, None, FILES_SHOWN).await?);
    }
    let cluster = clusters::of_execution(&mut session, project, id, row.cluster).await?;
    let blocked_by_execution = blocking::blocker(&mut session, &row, &item, &browsers).await?;
    let blocks = blocking::blocked(&mut session, &row, &item, &browsers).await?;
    let links = links::shown(&mut session, project, LinkTarget::Execution, id.get()).await?;
    let test_case_links =
        links::shown(&mut session, project, LinkTarget::TestCase, row.test_case.get()).await?;
    let baseline = passed_before(&mut session, &row, &run).await?;
    let decision =
        stored_attempts(&row)?.decide().ok_or(StoreError::Damaged("an execution without attempts"))?;
    let evidence_expires_at = if decision.attempts.iter().any(|view| view.attempt.evidence.is_some()) {
        retention::end_of_evidence(&mut session, &run, row.outcome).await?
    } else {
        None
    };
    drop(session);

    let is_asked = |view: &&callboard_domain::attempts::AttemptView| {
        if wanted.retry.is_none() && wanted.repetition.is_none() {
            return view.deciding;
        }
        wanted.retry.is_none_or(|retry| retry == view.attempt.retry)
            && wanted.repetition.is_none_or(|repetition| repetition == view.repetition)
    };
    let asked = decision.attempts.iter().find(is_asked).filter(|_| *parts != Parts::None);
    let told = match asked.and_then(|view| Some((view, view.attempt.evidence?))) {
        Some((view, slice)) => {
            let evidence = evidence::read(&ctx.store, project, &slice).await?;
            Some((evidence, (view.attempt.retry, view.repetition)))
        }
        None => None,
    };
    let shown = told.as_ref().map(|(evidence, attempt)| crate::evidence::shown(evidence, *attempt, parts));
    let (evidence, sizes) = shown.unzip();
    let annotations =
        told.as_ref().map(|(evidence, _)| serde_json::to_value(&evidence.annotations).unwrap_or_default());
    let told = told.map(|(evidence, _)| evidence).unwrap_or_default();
    // Rows that were written before the reason had a field have it among the annotations.
    if item.status == TestStatus::Skipped && item.skip_reason.is_none() {
        item.skip_reason = skip_reason(&told.annotations).map(str::to_owned);
    }
    item.error = told.error.or(item.error);
    let (traces, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.kind == FileKind::Trace);
    Ok(ExecutionDetail {
        error_plain: item.error.as_deref().map(|text| callboard_domain::text::strip_ansi(text).into_owned()),
        cluster,
        project: ProjectRef::from_row(&owner),
        run: RunBrief::from_row(&run),
        attempts: decision.attempts.iter().map(attempt_view).collect(),
        annotations,
        test_meta: TestMetaView::from_meta(&case.meta),
        blocked_by_execution,
        blocks,
        links,
        test_case_links,
        baseline,
        attachments: others.iter().map(|file| FileItem::from_row(file, &ctx.links)).collect(),
        traces: traces.iter().map(|file| FileItem::from_row(file, &ctx.links)).collect(),
        evidence,
        evidence_available: sizes.unwrap_or_else(|| Value::Object(Map::new())),
        evidence_expires_at,
        url: ctx.links.execution(id.get()),
        item,
    })
}

/// Fails unless there is such an execution.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn require(ctx: &Context, project: Authorized<ProjectId>, id: ExecutionId) -> Result<()> {
    required_execution(&mut ctx.store.db().read().await?, project.get(), id).await.map(drop)
}

pub(crate) async fn required_execution(
    session: &mut Session,
    project: ProjectId,
    id: ExecutionId,
) -> Result<ExecutionRow> {
    let row = executions::get(session, project, id).await?;
    row.ok_or_else(|| QueryError::not_found(Entity::Execution, id))
}

pub(crate) fn attempt_view(view: &callboard_domain::attempts::AttemptView) -> AttemptView {
    AttemptView {
        retry: view.attempt.retry,
        repetition: view.repetition,
        status: view.attempt.status,
        duration: view.attempt.duration_ms,
        started_at: view.attempt.started_at,
        error: view.attempt.facts.error_summary.clone(),
        superseded: view.superseded,
        deciding: view.deciding,
        has_evidence: view.attempt.evidence.is_some(),
    }
}

/// Traces of an execution by attempt.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn traces(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<Vec<TraceItem>> {
    let mut session = ctx.store.db().read().await?;
    required_execution(&mut session, project.get(), id).await?;
    let mut rows =
        files::of_execution(&mut session, project.get(), id, Some(&[FileKind::Trace]), None, FILES_SHOWN)
            .await?;
    rows.sort_by_key(|file| (file.repetition, file.retry, file.id));
    Ok(rows.iter().map(|file| TraceItem::from_row(file, &ctx.links)).collect())
}

/// A page of the files of an execution by id; no kind is every kind.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn files(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    kinds: &[FileKind],
    after: Option<i64>,
    limit: usize,
) -> Result<Slice<FileItem, i64>> {
    let mut session = ctx.store.db().read().await?;
    required_execution(&mut session, project.get(), id).await?;
    let kinds = (!kinds.is_empty()).then_some(kinds);
    let rows = files::of_execution(&mut session, project.get(), id, kinds, after, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row| row.id.get()).map(|row| FileItem::from_row(&row, &ctx.links)))
}
