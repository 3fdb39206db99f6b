//! Tests set aside: who is, who should be, and who may go. Streaks are part of
//! the stored state of a test, so nothing here reads executions.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::events::DomainEvent;
use callboard_domain::flakiness::{
    Candidate, DEFAULT_WINDOW, FlakinessSettings, FlakyClass, QuarantineSettings, Streak, assess, candidates,
    streak,
};
use callboard_domain::ids::{ProjectId, TestCaseId, UserId};
use callboard_domain::test_state::TestState;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::accounts::users;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::history_joins::{self, HistoryJoin};
use callboard_store::lanes;
use callboard_store::quarantine::{self, NewQuarantine, QuarantineFilter, QuarantineRow};
use callboard_store::rollups::scores::{self, FlakyFilter};
use callboard_store::test_cases::{self, TestCaseRow};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::events;
use crate::flakiness::judged_lane;
use crate::flakiness::settings::effective;
use crate::page::{Slice, fetch};
use crate::test_cases::LaneQuery;
use crate::{Context, Entity, QueryError, Result};
use callboard_ingest::read_session_with_fresh_aggregates;

/// Bytes of the version of a plan.
const VERSION_BYTES: usize = 8;

/// Who put a test into quarantine.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QuarantinedBy {
    /// User id.
    pub id: i64,
    /// Name to sign in with.
    pub username: String,
    /// Display name.
    pub name: Option<String>,
}

/// A test in quarantine, or one that was.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quarantine {
    /// Id.
    pub id: i64,
    /// The test.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Why.
    pub reason: Option<String>,
    /// manual, or proposed by its history.
    #[schema(example = "manual")]
    pub source: String,
    /// Owner of the test.
    pub owner: Option<String>,
    /// Tags of the test.
    pub tags: Vec<String>,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Who put it there; null without authentication.
    pub created_by: Option<QuarantinedBy>,
    /// When it was released, or its time was over.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub released_at: Option<Timestamp>,
    /// Why it was released.
    pub released_reason: Option<String>,
    /// Clean decided executions in a row since then, of the browser project that has the furthest to go.
    pub consecutive_passes: i64,
    /// How many of them it takes until a release is proposed.
    pub passes_needed: i64,
    /// Executions since then.
    pub runs_since: i64,
    /// Whether it should be released.
    pub release_proposed: bool,
    /// Whether it probably is broken, which quarantine must not hide.
    pub is_broken: bool,
    /// Until when at most.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

/// What quarantine costs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Debt {
    /// Tests in quarantine.
    pub active: i64,
    /// Those that should be released.
    pub ready_to_release: i64,
    /// Those whose newest decided execution failed.
    pub still_failing: i64,
    /// Since when the oldest is there.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub oldest_at: Option<Timestamp>,
}

/// A test that should be set aside.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The test.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// One hundred times the probability that it fails by chance.
    pub flaky_score: i64,
    /// Time lost on attempts that a retry made good, and on the retries of
    /// executions that failed in the end, ms.
    pub wasted_duration: i64,
    /// Executions that passed on a retry.
    pub retry_pass_count: i64,
}

/// The quarantine of a project.
#[derive(Debug)]
pub struct QuarantineList {
    /// A page of it.
    pub page: Slice<Quarantine, i64>,
    /// What it costs.
    pub debt: Debt,
    /// Whom to set aside; empty unless asked for.
    pub candidates: Vec<Proposal>,
}

/// What is asked about the quarantine of a project.
#[derive(Debug, Clone)]
pub struct QuarantineQuery {
    /// Those that are there, or those that were.
    pub is_active: bool,
    /// Whether to propose tests.
    pub candidates: bool,
    /// Only tests of this owner. The debt and the candidates are those of all.
    pub owner: Option<String>,
    /// Key of the last row of the page before.
    pub before: Option<i64>,
}

/// The quarantine of a project, newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: QuarantineQuery,
    now: Timestamp,
    limit: usize,
) -> Result<QuarantineList> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let wanted = QuarantineFilter { is_active: query.is_active, owner: query.owner };
    let rows = quarantine::list(&mut session, project, &wanted, query.before, now, fetch(limit)).await?;
    let page = Slice::cut(rows, limit, |row| row.id);
    let next = page.next;
    let items = show(&mut session, project, page.items, now).await?;
    let debt = debt(&mut session, project, now).await?;
    let candidates = if query.candidates { proposals(&mut session, project, now).await? } else { Vec::new() };
    Ok(QuarantineList { page: Slice { items, next }, debt, candidates })
}

/// The quarantine a test is in.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn of_test(
    ctx: &Context,
    project: Authorized<ProjectId>,
    case: TestCaseId,
    now: Timestamp,
) -> Result<Option<Quarantine>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let open = quarantine::open(&mut session, project, case).await?;
    let active = open.filter(|row| row.expires_at.is_none_or(|at| at > now));
    Ok(show(&mut session, project, active.into_iter().collect(), now).await?.pop())
}

/// States of tests over all runs.
async fn states(
    session: &mut Session,
    project: ProjectId,
    cases: Vec<i64>,
) -> Result<HashMap<TestCaseId, TestState>> {
    let Some(lane) = lanes::find_lane(session, project, &LaneQuery::default().key()).await? else {
        return Ok(HashMap::new());
    };
    Ok(scores::states_of(session, project, lane, cases).await?.into_iter().collect())
}

/// How a quarantined test has been doing.
struct Progress {
    streak: Streak,
    runs_since: i64,
    is_broken: bool,
}

fn progress(row: &QuarantineRow, state: Option<&TestState>, settings: &QuarantineSettings) -> Progress {
    let Some(state) = state else {
        let streak = Streak { passes: 0, needed: settings.release_after, is_failing: false };
        return Progress { streak, runs_since: 0, is_broken: false };
    };
    let runs_since = (state.counts().total_tests - row.total_before).max(0);
    let since = usize::try_from(runs_since).unwrap_or(usize::MAX);
    // A quarantined test is judged by all its runs: what fails anywhere is not yet well.
    let found = assess(state.recent(), callboard_domain::flakiness::Window::standard(true));
    Progress {
        streak: streak(state.recent(), since, settings),
        runs_since,
        is_broken: found.is_some_and(|found| found.posterior.class == FlakyClass::Broken),
    }
}

async fn show(
    session: &mut Session,
    project: ProjectId,
    rows: Vec<QuarantineRow>,
    now: Timestamp,
) -> Result<Vec<Quarantine>> {
    let ids: Vec<i64> = rows.iter().map(|row| row.case.get()).collect();
    let cases = test_cases::get_many(session, project, ids.clone()).await?;
    let states = states(session, project, ids).await?;
    let settings = effective(session, project).await?.quarantine;
    let mut people: HashMap<UserId, QuarantinedBy> = HashMap::new();
    for user in rows.iter().filter_map(|row| row.created_by) {
        if !people.contains_key(&user)
            && let Some(found) = users::get(session, user).await?
        {
            let by = QuarantinedBy { id: user.get(), username: found.username, name: found.name };
            people.insert(user, by);
        }
    }
    let shown = rows.into_iter().filter_map(|row| {
        let case = cases.get(&row.case)?;
        let by = row.created_by.and_then(|user| people.get(&user).cloned());
        let progress = progress(&row, states.get(&row.case), &settings);
        Some(shown(&row, case, progress, by, now))
    });
    Ok(shown.collect())
}

fn shown(
    row: &QuarantineRow,
    case: &TestCaseRow,
    progress: Progress,
    created_by: Option<QuarantinedBy>,
    now: Timestamp,
) -> Quarantine {
    let Progress { streak, runs_since, is_broken } = progress;
    let expired = row.expires_at.filter(|&at| row.released_at.is_none() && at <= now);
    let is_active = row.released_at.is_none() && expired.is_none();
    Quarantine {
        id: row.id,
        test_case_id: row.case.get(),
        title: case.title.clone(),
        file_path: case.file_path.clone(),
        suite_path: case.suite_path.clone(),
        reason: row.reason.clone(),
        source: row.source.clone(),
        owner: case.meta.owner.clone(),
        tags: case.meta.tags.clone(),
        created_at: row.created_at,
        created_by,
        released_at: row.released_at.or(expired),
        released_reason: row.released_reason.clone().or_else(|| expired.map(|_| "expired".to_owned())),
        consecutive_passes: streak.passes,
        passes_needed: streak.needed,
        runs_since,
        release_proposed: is_active && streak.is_over(),
        is_broken: is_active && is_broken,
        expires_at: row.expires_at,
    }
}

async fn debt(session: &mut Session, project: ProjectId, now: Timestamp) -> Result<Debt> {
    let all = QuarantineFilter { is_active: true, owner: None };
    let rows = quarantine::list(session, project, &all, None, now, quarantine::MOST).await?;
    let states = states(session, project, rows.iter().map(|row| row.case.get()).collect()).await?;
    let settings = effective(session, project).await?.quarantine;
    let mut debt = Debt {
        active: i64::try_from(rows.len()).unwrap_or(i64::MAX),
        oldest_at: rows.iter().map(|row| row.created_at).min(),
        ..Debt::default()
    };
    for row in &rows {
        let Progress { streak, .. } = progress(row, states.get(&row.case), &settings);
        debt.ready_to_release += i64::from(streak.is_over());
        debt.still_failing += i64::from(streak.is_failing);
    }
    Ok(debt)
}

async fn proposals(session: &mut Session, project: ProjectId, now: Timestamp) -> Result<Vec<Proposal>> {
    let FlakinessSettings { quarantine: settings, min_runs, .. } = effective(session, project).await?;
    let Some(lane) = judged_lane(session, project, &LaneQuery::default()).await? else {
        return Ok(Vec::new());
    };
    let filter = FlakyFilter { min_score: Some(settings.score), ..FlakyFilter::default() };
    let rows = scores::maybe_flaky(session, project, lane.id, &filter).await?;
    let aside = quarantine::cases(session, project, now).await?;
    let tests = rows.into_iter().filter(|row| aside.binary_search(&row.case).is_err());
    let tests = tests.filter_map(|row| {
        let found = assess(row.state.recent(), lane.window(DEFAULT_WINDOW))?;
        (found.evidence.runs >= min_runs).then_some(Candidate { test: row.case, found })
    });
    let chosen = candidates(tests, &settings);
    let ids = chosen.iter().map(|candidate| candidate.test.get()).collect();
    let mut cases = test_cases::get_many(session, project, ids).await?;
    let proposals = chosen.into_iter().filter_map(|candidate| {
        let case = cases.remove(&candidate.test)?;
        Some(Proposal {
            test_case_id: case.id.get(),
            title: case.title,
            file_path: case.file_path,
            flaky_score: candidate.found.posterior.score(),
            wasted_duration: candidate.found.evidence.wasted_ms,
            retry_pass_count: candidate.found.evidence.retry_passes,
        })
    });
    Ok(proposals.collect())
}

/// Releases the tests whose time in quarantine is over.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn release_expired(ctx: &Context, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    for (project, test_case) in quarantine::expire(&mut session, now).await? {
        events::emit(&mut session, project, &[DomainEvent::QuarantineReleased { test_case }], now).await?;
    }
    Ok(session.commit().await?)
}

/// What is told when a test is set aside.
#[derive(Debug, Clone)]
pub struct SetAside {
    /// The test.
    pub case: TestCaseId,
    /// Why.
    pub reason: Option<String>,
    /// Proposed by its history, and not by a person.
    pub is_proposed: bool,
    /// Until when at most.
    pub expires_at: Option<Timestamp>,
}

/// Puts a test into quarantine; `false` when it already was there.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn set_aside(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    wanted: &SetAside,
) -> Result<(Quarantine, bool)> {
    let (project, now) = (project.get(), acting.now);
    // What came before does not count for its way out.
    drop(read_session_with_fresh_aggregates(ctx, project).await?);
    let mut session = ctx.store.db().begin().await?;
    if test_cases::get(&mut session, project, wanted.case).await?.is_none() {
        return Err(QueryError::not_found(Entity::TestCase, wanted.case));
    }
    let mut open = quarantine::open(&mut session, project, wanted.case).await?;
    if let Some(row) = &open
        && let Some(over) = row.expires_at.filter(|&at| at <= now)
    {
        quarantine::release(&mut session, project, row.id, None, Some("expired"), over).await?;
        open = None;
    }
    let (mut is_new, mut recorded) = (false, None);
    if open.is_none() {
        let states = states(&mut session, project, vec![wanted.case.get()]).await?;
        let new = NewQuarantine {
            reason: wanted.reason.clone(),
            source: if wanted.is_proposed { "proposed" } else { "manual" },
            total_before: states.get(&wanted.case).map_or(0, |state| state.counts().total_tests),
            by: acting.caller.user_id(),
            expires_at: wanted.expires_at,
        };
        open = quarantine::insert(&mut session, project, wanted.case, &new, now).await?;
        is_new = open.is_some();
        if is_new {
            let detail = json!({ "reason": wanted.reason });
            let target = ("test_case", wanted.case.get());
            let entered = AuditAction::QuarantineEntered;
            recorded = Some(acting.record(&mut session, entered, target, Some(project), detail).await?);
        }
    }
    let row = match open {
        Some(row) => row,
        // Somebody else was faster.
        None => {
            let row = quarantine::open(&mut session, project, wanted.case).await?;
            row.ok_or_else(|| QueryError::not_found(Entity::TestCase, wanted.case))?
        }
    };
    let shown = show(&mut session, project, vec![row], now).await?;
    session.commit().await?;
    if let Some(recorded) = recorded {
        recorded.committed();
    }
    let shown = shown.into_iter().next();
    Ok((shown.ok_or_else(|| QueryError::not_found(Entity::TestCase, wanted.case))?, is_new))
}

/// Lets a test go.
///
/// # Errors
/// [`QueryError::NotFound`] when it is not in quarantine, [`QueryError::Store`].
pub async fn release(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    case: TestCaseId,
    reason: Option<String>,
) -> Result<Quarantine> {
    let (project, now) = (project.get(), acting.now);
    let missing = || QueryError::not_found(Entity::TestCase, case);
    drop(read_session_with_fresh_aggregates(ctx, project).await?);
    let mut session = ctx.store.db().begin().await?;
    let open = quarantine::open(&mut session, project, case).await?;
    let open = open.filter(|row| row.expires_at.is_none_or(|at| at > now)).ok_or_else(missing)?;
    let by = acting.caller.user_id();
    let row = quarantine::release(&mut session, project, open.id, by, reason.as_deref(), now).await?;
    let row = row.ok_or_else(missing)?;
    let detail = json!({ "reason": reason });
    let target = ("test_case", case.get());
    let left = AuditAction::QuarantineLeft;
    let recorded = acting.record(&mut session, left, target, Some(project), detail).await?;
    events::emit(&mut session, project, &[DomainEvent::QuarantineReleased { test_case: case }], now).await?;
    let shown = show(&mut session, project, vec![row], now).await?;
    session.commit().await?;
    recorded.committed();
    shown.into_iter().next().ok_or_else(missing)
}

/// A test that reporters need not fail for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetAsideTest {
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Title.
    pub title: String,
}

/// The tests reporters need not fail for.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Changes with the tests.
    pub version: String,
    /// Until when it may be used without asking again.
    pub expires_at: Timestamp,
    /// By file.
    pub items: Vec<SetAsideTest>,
}

/// The tests in quarantine, by file, for reporters; at most five thousand. The
/// plan of a day is the same all day as long as its tests are.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn plan(ctx: &Context, project: Authorized<ProjectId>, now: Timestamp) -> Result<Plan> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let ids = quarantine::cases(&mut session, project, now).await?;
    let mut hash = Sha256::new();
    ids.iter().for_each(|id| hash.update(id.get().to_be_bytes()));
    let joins =
        history_joins::of_kept(&mut session, project, ids.iter().map(|id| id.get()).collect()).await?;
    let paths = |join: &HistoryJoin| [join.kept_path.clone(), join.joined_path.clone()];
    joins.iter().flat_map(paths).for_each(|path| hash.update(path));
    let version = hex::encode(&hash.finalize()[..VERSION_BYTES]);
    let ids = ids.iter().map(|id| id.get()).collect();
    let cases = test_cases::get_many(&mut session, project, ids).await?;
    // Reporters ask by the paths that they send, which may be earlier ones.
    let others = joins.iter().flat_map(|join| paths(join).map(|path| (join.kept, path)));
    let own = cases.iter().map(|(id, case)| (*id, case.file_path.clone()));
    let item = |(id, file_path): (TestCaseId, String)| {
        let case = cases.get(&id)?;
        Some(SetAsideTest { file_path, suite_path: case.suite_path.clone(), title: case.title.clone() })
    };
    let mut items: Vec<SetAsideTest> = own.chain(others).filter_map(item).collect();
    items.sort_unstable();
    items.dedup();
    // Quarantines that end earlier are asked for again at the latest then.
    Ok(Plan { version, expires_at: Day(now.day().0 + 2).start(), items })
}
