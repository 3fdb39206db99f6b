//! The history of a test and how stable it was.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::time::{Day, Timestamp};
use callboard_domain::totals::{mean, rate};
use callboard_store::db::Session;
use callboard_store::executions::{ExecutionRow, History, HistoryFilter, Walk};
use callboard_store::{boxed, lanes, rollups};
use futures::try_join;

use super::LaneQuery;
use crate::executions::{show, with_runs};
use crate::page::{Slice, fetch};
use crate::shapes::{ExecutionWithRun, StabilityBucket};
use crate::{Context, Entity, QueryError, Result};
use callboard_ingest::read_session_with_fresh_aggregates;

/// Executions a stability trend looks at.
const TREND_EXECUTIONS: i64 = 200;

/// The conditions of a test's history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Any of these branches; an empty word is "none recorded".
    pub branches: Vec<String>,
    /// Any of these environments; an empty word is "none recorded".
    pub environments: Vec<String>,
    /// Only this browser project.
    pub browser: Option<String>,
    /// Any of these statuses.
    pub statuses: Vec<TestStatus>,
    /// Only runs started at this moment or later.
    pub from: Option<Timestamp>,
    /// Only runs started at this moment or earlier.
    pub to: Option<Timestamp>,
    /// Key of the last row of the page before: start of its run and its id.
    pub after: Option<(i64, i64)>,
}

impl HistoryQuery {
    /// Everything in one lane.
    #[must_use]
    pub fn from_lane(lane: &LaneQuery) -> Self {
        Self {
            branches: lane.branch.iter().cloned().collect(),
            environments: lane.environment.iter().cloned().collect(),
            ..Self::default()
        }
    }

    /// The smallest lane that holds everything asked for.
    fn lane(&self) -> LaneQuery {
        fn only(list: &[String]) -> Option<String> {
            if let [one] = list { Some(one.clone()) } else { None }
        }
        LaneQuery {
            branch: only(&self.branches),
            // Runs without an environment have no lane of their own.
            environment: only(&self.environments).filter(|name| !name.is_empty()),
        }
    }
}

/// The last row of a page of a history: start of its run, and its id.
pub type HistoryKey = (i64, i64);

/// Executions of one test, newest run first. The days a request looks at are
/// bounded; the page may then be short, even empty, while there is a next one.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn history(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    query: &HistoryQuery,
    limit: usize,
) -> Result<Slice<ExecutionWithRun, HistoryKey>> {
    Ok(keyed_history(ctx, project, id, query, limit).await?.map(|(_, item)| item))
}

/// The newest executions of a test with a page of some of them.
#[derive(Debug)]
pub struct Past {
    /// The newest ones.
    pub newest: Vec<ExecutionWithRun>,
    /// The page.
    pub page: Slice<ExecutionWithRun, HistoryKey>,
}

/// The newest executions of a test, `most` of them, and a page of its history;
/// read once where the page begins with the same.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn past(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    (newest, most): (&HistoryQuery, usize),
    (page, limit): (&HistoryQuery, usize),
) -> Result<Past> {
    if page != newest || limit > most {
        let (newest, page) =
            try_join!(history(ctx, project, id, newest, most), history(ctx, project, id, page, limit))?;
        return Ok(Past { newest: newest.items, page });
    }
    let read = keyed_history(ctx, project, id, newest, most).await?;
    let next = match read.items.get(limit.saturating_sub(1)) {
        Some((key, _)) if read.items.len() > limit => Some(*key),
        _ => read.next,
    };
    let newest: Vec<ExecutionWithRun> = read.items.into_iter().map(|(_, item)| item).collect();
    let items = newest.iter().take(limit).cloned().collect();
    Ok(Past { newest, page: Slice { items, next } })
}

async fn keyed_history(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    query: &HistoryQuery,
    limit: usize,
) -> Result<Slice<(HistoryKey, ExecutionWithRun), HistoryKey>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    required_case(&mut session, project, id).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let found = history_rows(&mut session, project, id, query, &browsers, limit).await?;
    let key = |(at, row): &(Timestamp, ExecutionRow)| (at.millis(), row.id.get());
    let mut rows = Slice::cut(found.rows, limit, key);
    if let Some(unread_before) = found.unread_before {
        rows.next = Some((unread_before.millis() - 1, i64::MAX));
    }
    let keys: HashMap<i64, HistoryKey> = rows.items.iter().map(|row| (row.1.id.get(), key(row))).collect();
    let bare: Vec<ExecutionRow> = rows.items.into_iter().map(|(_, row)| row).collect();
    let items = show(&mut session, project, &bare, &browsers).await?;
    let items = with_runs(&mut session, project, items).await?.into_iter().filter_map(|(execution, run)| {
        Some((*keys.get(&execution.id)?, ExecutionWithRun { execution, run }))
    });
    Ok(Slice { items: items.collect(), next: rows.next })
}

async fn required_case(session: &mut Session, project: ProjectId, id: TestCaseId) -> Result<()> {
    let found = callboard_store::test_cases::get(session, project, id).await?;
    found.map(|_| ()).ok_or_else(|| QueryError::not_found(Entity::TestCase, id))
}

/// The results of a test right before and after one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// The execution before it.
    pub earlier: Option<i64>,
    /// The execution after it.
    pub later: Option<i64>,
}

/// The neighbours of an execution in the history of its test, in one browser
/// project if one is named.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn neighbours(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    browser: Option<&str>,
) -> Result<Neighbours> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let own = callboard_store::executions::get(&mut session, project, id).await?;
    let own = own.ok_or_else(|| QueryError::not_found(Entity::Execution, id))?;
    let run = callboard_store::runs::get(&mut session, project, id.run()).await?;
    let run = run.ok_or_else(|| QueryError::not_found(Entity::Run, id.run()))?;
    let Some(lane) = LaneQuery::default().find(&mut session, project).await? else {
        return Ok(Neighbours::default());
    };
    let Some((first_seen, newest)) = days_of(&mut session, project, lane, own.test_case).await? else {
        return Ok(Neighbours::default());
    };
    let browser = match browser {
        Some(name) => {
            let browsers = lanes::browsers(&mut session, project).await?;
            browsers.iter().find(|browser| browser.name == name).map(|browser| browser.id)
        }
        None => None,
    };
    let key = Some((run.order_at.millis(), id.get()));
    let walk = |wanted| Walk { project, test_case: own.test_case, wanted, newest, first_seen, limit: 1 };
    let before = HistoryFilter { browser, after: key, ..HistoryFilter::default() };
    let earlier = walk(&before).executions(&mut session).await?.rows.pop();
    let behind = HistoryFilter { browser, newer_than: key, ..HistoryFilter::default() };
    let later = walk(&behind).next(&mut session).await?;
    Ok(Neighbours { earlier: earlier.map(|(_, row)| row.id.get()), later: later.map(|row| row.id.get()) })
}

async fn history_rows(
    session: &mut Session,
    project: ProjectId,
    id: TestCaseId,
    query: &HistoryQuery,
    browsers: &[lanes::BrowserProject],
    limit: usize,
) -> Result<History> {
    let Some(lane) = query.lane().find(session, project).await? else { return Ok(History::default()) };
    let Some((first_seen, newest)) = days_of(session, project, lane, id).await? else {
        return Ok(History::default());
    };
    let is_whole = query.branches.is_empty() && query.environments.is_empty();
    let browser = match &query.browser {
        None => None,
        Some(name) => match browsers.iter().find(|browser| browser.name == *name) {
            Some(browser) => Some(browser.id),
            None => return Ok(History::default()),
        },
    };
    let filter = HistoryFilter {
        lanes: if is_whole {
            None
        } else {
            Some(lanes::specific(session, project, &query.branches, &query.environments).await?)
        },
        browser,
        outcomes: (!query.statuses.is_empty()).then(|| {
            let fits = |outcome: &&Outcome| query.statuses.contains(&outcome.status());
            Outcome::ALL.iter().filter(fits).map(|outcome| outcome.code()).collect()
        }),
        from: query.from,
        to: query.to,
        after: query.after,
        ..HistoryFilter::default()
    };
    let walk = Walk { project, test_case: id, wanted: &filter, newest, first_seen, limit: fetch(limit) };
    Ok(walk.executions(session).await?)
}

/// The first and the last day on which a test may have run in a lane. What a
/// lane counted is forgotten when its branch was silent for long, while its
/// executions stay; the test is then as old as it is anywhere.
async fn days_of(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    id: TestCaseId,
) -> Result<Option<(Day, Day)>> {
    let state = rollups::state(session, project, lane, id).await?;
    let own = state.map(|state| (state.first_seen_at().day(), state.last_day()));
    let Some(last_run) = lanes::last_run_of_cleared(session, project, lane).await? else { return Ok(own) };
    let all = LaneQuery::default().find(session, project).await?;
    let Some(all) = all else { return Ok(own) };
    let anywhere = rollups::state(session, project, all, id).await?;
    Ok(anywhere.map(|state| (state.first_seen_at().day(), own.map_or(last_run.day(), |(_, newest)| newest))))
}

/// Stability over the newest executions, split by count into at most
/// `buckets` parts, oldest first.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn stability_by_count(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    lane: &LaneQuery,
    buckets: usize,
) -> Result<Vec<StabilityBucket>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    required_case(&mut session, project, id).await?;
    let query = HistoryQuery::from_lane(lane);
    let limit = usize::try_from(TREND_EXECUTIONS - 1).unwrap_or_default();
    let mut rows = history_rows(&mut session, project, id, &query, &[], limit).await?.rows;
    rows.reverse();
    Ok(evenly(&rows, buckets).filter_map(bucket_of).collect())
}

/// Cuts a list into at most `parts` parts whose sizes differ by one at most.
fn evenly<T>(list: &[T], parts: usize) -> impl Iterator<Item = &[T]> {
    let parts = parts.min(list.len());
    (0..parts).map(move |at| &list[at * list.len() / parts..(at + 1) * list.len() / parts])
}

fn bucket_of(rows: &[(Timestamp, ExecutionRow)]) -> Option<StabilityBucket> {
    let (from, to) = (rows.first()?.0, rows.last()?.0);
    let count = |fits: fn(Outcome) -> bool| {
        i64::try_from(rows.iter().filter(|(_, row)| fits(row.outcome)).count()).unwrap_or(i64::MAX)
    };
    let passed = count(|outcome| outcome.status() == TestStatus::Passed);
    let decided = passed + count(|outcome| outcome.status().is_failing());
    let flaky = count(|outcome| outcome == Outcome::Flaky);
    let ran: Vec<i64> = rows
        .iter()
        .filter(|(_, row)| row.outcome.status() == TestStatus::Passed)
        .map(|(_, row)| row.duration_ms)
        .collect();
    Some(StabilityBucket {
        date: to.day(),
        from,
        to,
        pass_rate: rate(passed, decided),
        flaky_rate: rate(flaky, decided),
        avg_duration: mean(ran.iter().sum::<i64>(), i64::try_from(ran.len()).unwrap_or(i64::MAX)),
        total_runs: i64::try_from(rows.len()).unwrap_or(i64::MAX),
    })
}

/// Stability by UTC day over the last `days` days, oldest first; days without
/// executions are left out.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn stability_by_day(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    lane: &LaneQuery,
    days: i64,
    today: Day,
) -> Result<Vec<StabilityBucket>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    required_case(&mut session, project, id).await?;
    let Some(lane) = lane.find(&mut session, project).await? else { return Ok(Vec::new()) };
    let wanted = (today.0 - days + 1..=today.0).collect();
    let rows = rollups::test_days(&mut session, project, lane, id, wanted).await?;
    let shown =
        rows.into_iter().filter(|(_, counts)| counts.runs > 0).map(|(date, counts)| StabilityBucket {
            date,
            from: date.start(),
            to: Timestamp(Day(date.0 + 1).start().millis() - 1),
            pass_rate: rate(counts.passed, counts.passed + counts.failed),
            flaky_rate: rate(counts.flaky, counts.passed + counts.failed),
            avg_duration: mean(counts.dur_sum, counts.dur_n),
            total_runs: counts.runs,
        });
    Ok(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::evenly;

    #[test]
    fn parts_differ_by_one_at_most_and_lose_nothing() {
        for (len, parts) in [(0, 5), (1, 5), (21, 20), (101, 20), (200, 20), (7, 7)] {
            let list: Vec<usize> = (0..len).collect();
            let cut: Vec<&[usize]> = evenly(&list, parts).collect();
            assert_eq!(cut.concat(), list);
            assert_eq!(cut.len(), parts.min(len));
            let sizes = cut.iter().map(|part| part.len());
            assert!(sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1);
        }
    }
}
