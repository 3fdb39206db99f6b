//! Questions about test cases: the catalogue, one test, its history and its
//! stability.

use callboard_auth::scope::Authorized;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::lane::LaneKey;
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::{TestCategory, TestState};
use callboard_domain::time::{Day, Timestamp};
use callboard_domain::totals::rate;
use callboard_store::db::Session;
use callboard_store::executions::{ExecutionRow, History, HistoryFilter, Walk};
use callboard_store::lanes;
use callboard_store::rollups::{
    self, CatalogueFilter, CatalogueLanes, CatalogueOrder, CatalogueRow, CatalogueSort,
};

use crate::clusters;
use crate::executions::{show, with_runs};
use crate::flakiness::judged_lane;
use crate::ingest::counted;
use crate::links;
use crate::page::{Slice, fetch};
use crate::projects::required;
use crate::shapes::{ExecutionWithRun, ProjectRef, StabilityBucket, TestCaseDetail, TestCaseItem};
use crate::{Context, Entity, QueryError, Result};

/// Executions a stability trend looks at.
const TREND_EXECUTIONS: i64 = 200;

/// The slice of a project's history that is asked for.
#[derive(Debug, Clone, Default)]
pub struct LaneQuery {
    /// Only this branch; an empty word is "none recorded".
    pub branch: Option<String>,
    /// Only this environment.
    pub environment: Option<String>,
}

impl LaneQuery {
    pub(crate) fn key(&self) -> LaneKey {
        LaneKey::asked(self.branch.as_deref(), self.environment.as_deref())
    }

    pub(crate) async fn find(&self, session: &mut Session, project: ProjectId) -> Result<Option<i64>> {
        Ok(lanes::find_lane(session, project, &self.key()).await?)
    }
}

/// How the catalogue is sorted; carries the key of the last row seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub enum Sort {
    /// Newest last run first.
    #[default]
    LastRun,
    /// By title.
    Title,
    /// By file.
    File,
    /// Most executions first.
    TotalRuns,
    /// Newest test first: a page stays where it is while tests run.
    Newest,
    /// Most probably flaky first.
    Flaky,
    /// Least steady first.
    PassRate,
    /// Slowest first.
    Slowest,
}

/// The last row of a page of the catalogue: what it is sorted by, when that is
/// a number, and its id.
pub type CatalogueKey = (i64, i64);

/// The conditions of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct CatalogueQuery {
    /// Branch and environment.
    pub lane: LaneQuery,
    /// Title, path or describe title contains this.
    pub text: Option<String>,
    /// Any of these categories.
    pub categories: Vec<TestCategory>,
    /// All of these tags, with or without `@`.
    pub tags: Vec<String>,
    /// Only this owner.
    pub owner: Option<String>,
    /// Only this priority.
    pub priority: Option<String>,
    /// Only this feature.
    pub feature: Option<String>,
    /// Only files beginning with this.
    pub file_prefix: Option<String>,
    /// Only tests that ran at this moment's day or later.
    pub since: Option<Timestamp>,
    /// Only tests in quarantine, or only the others.
    pub quarantined: Option<bool>,
    /// Sort.
    pub sort: Sort,
    /// Whether what would come first comes last.
    pub is_reversed: bool,
    /// Key of the last row of the page before.
    pub after: Option<CatalogueKey>,
}

impl CatalogueQuery {
    fn filter(&self) -> CatalogueFilter {
        CatalogueFilter {
            text: self.text.clone(),
            categories: (!self.categories.is_empty())
                .then(|| self.categories.iter().map(|category| category.code()).collect()),
            tags: self.tags.iter().map(|tag| bare_tag(tag)).collect(),
            owner: self.owner.clone(),
            priority: self.priority.clone(),
            feature: self.feature.clone(),
            file_prefix: self.file_prefix.clone(),
            since: self.since.map(Timestamp::day),
            quarantined: self.quarantined,
        }
    }
}

/// Tags are stored without the `@` they are written with in titles.
pub(crate) fn bare_tag(tag: &str) -> String {
    tag.strip_prefix('@').unwrap_or(tag).to_owned()
}

/// A page of the tests of a project that ran in the asked lane.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &CatalogueQuery,
    limit: usize,
) -> Result<Slice<TestCaseItem, CatalogueKey>> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
    let Some(lane) = query.lane.find(&mut session, project).await? else {
        return Ok(Slice { items: Vec::new(), next: None });
    };
    let filter = query.filter();
    let id = query.after.map(|(_, id)| id);
    let order = match query.sort {
        Sort::LastRun => CatalogueOrder::LastRun(query.after),
        Sort::TotalRuns => CatalogueOrder::TotalRuns(query.after),
        Sort::Title => CatalogueOrder::Title(id),
        Sort::File => CatalogueOrder::File(id),
        Sort::Newest => CatalogueOrder::Newest(id),
        Sort::Flaky => CatalogueOrder::Flaky(query.after),
        Sort::PassRate => CatalogueOrder::PassRate(query.after),
        Sort::Slowest => CatalogueOrder::Slowest(query.after),
    };
    let lanes = lanes_of(&mut session, project, &query.lane, lane).await?;
    let sort = CatalogueSort { order, is_reversed: query.is_reversed };
    let rows = rollups::catalogue(&mut session, project, lanes, &filter, &sort, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row| key_of(query, row)).map(|row| TestCaseItem::of(&row)))
}

/// How many tests a catalogue has, whatever its page.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn count(ctx: &Context, project: Authorized<ProjectId>, query: &CatalogueQuery) -> Result<i64> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
    let Some(lane) = query.lane.find(&mut session, project).await? else { return Ok(0) };
    Ok(rollups::count_in_catalogue(&mut session, project, lane, &query.filter()).await?)
}

/// A page that begins a number of rows behind the cursor, for scripts that
/// count rows. They are read nevertheless, so callers bound the number.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn list_from(
    ctx: &Context,
    project: Authorized<ProjectId>,
    mut query: CatalogueQuery,
    offset: usize,
    limit: usize,
) -> Result<Slice<TestCaseItem, CatalogueKey>> {
    if offset > 0 {
        let skipped = list(ctx, project, &query, offset).await?;
        let Some(key) = skipped.next else { return Ok(Slice { items: Vec::new(), next: None }) };
        query.after = Some(key);
    }
    list(ctx, project, &query, limit).await
}

/// The lane whose numbers are shown, with the one that speaks for it about
/// flakiness: so a test has the same score here and among the flaky ones.
async fn lanes_of(
    session: &mut Session,
    project: ProjectId,
    asked: &LaneQuery,
    shown: i64,
) -> Result<CatalogueLanes> {
    let judged = judged_lane(session, project, asked).await?;
    Ok(CatalogueLanes { shown, judged: judged.map_or(shown, |judged| judged.id) })
}

fn key_of(query: &CatalogueQuery, row: &CatalogueRow) -> CatalogueKey {
    let number = |of: &dyn Fn(&TestState) -> i64| row.state.as_ref().map_or(0, of);
    let number = match query.sort {
        Sort::LastRun => number(&|state| state.last_order_at().millis()),
        Sort::TotalRuns => number(&|state| state.counts().total_tests),
        Sort::Flaky => row.flaky_score,
        Sort::PassRate => number(&|state| rollups::pass_rate_key(state, query.is_reversed)),
        Sort::Slowest => number(&rollups::mean_key),
        Sort::Title | Sort::File | Sort::Newest => 0,
    };
    (number, row.case.id.get())
}

/// One test with its numbers in the asked lane.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn detail(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    lane: &LaneQuery,
) -> Result<TestCaseDetail> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
    let owner = required(&mut session, project).await?;
    // A lane nobody ran in has no row; no lane has the number -1.
    let shown = lane.find(&mut session, project).await?.unwrap_or(-1);
    let lanes = lanes_of(&mut session, project, lane, shown).await?;
    let rows = rollups::with_states(&mut session, project, lanes, vec![id.get()]).await?;
    let row = rows.into_iter().next().ok_or_else(|| QueryError::not_found(Entity::TestCase, id))?;
    let clusters = clusters::of_test(&mut session, project, id).await?;
    let links = links::shown(&mut session, project, LinkTarget::TestCase, id.get()).await?;
    Ok(TestCaseDetail { item: TestCaseItem::of(&row), project: ProjectRef::of(&owner), clusters, links })
}

/// The conditions of a test's history.
#[derive(Debug, Clone, Default)]
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
    pub fn of(lane: &LaneQuery) -> Self {
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

/// Executions of one test, newest run first. The days a request looks at are
/// bounded; the page may then be short, even empty, while there is a next one.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn history(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    query: &HistoryQuery,
    limit: usize,
) -> Result<Slice<ExecutionWithRun, (i64, i64)>> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
    required_case(&mut session, project, id).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let found = history_rows(&mut session, project, id, query, &browsers, limit).await?;
    let mut rows = Slice::cut(found.rows, limit, |(at, row)| (at.millis(), row.id.get()));
    if let Some(unread_before) = found.unread_before {
        rows.next = Some((unread_before.millis() - 1, i64::MAX));
    }
    let bare: Vec<ExecutionRow> = rows.items.into_iter().map(|(_, row)| row).collect();
    let items = show(&mut session, project, &bare, &browsers).await?;
    let items = with_runs(&mut session, project, items).await?;
    let items = items.into_iter().map(|(execution, run)| ExecutionWithRun { execution, run });
    Ok(Slice { items: items.collect(), next: rows.next })
}

async fn required_case(session: &mut Session, project: ProjectId, id: TestCaseId) -> Result<()> {
    let found = callboard_store::test_cases::get(session, project, id).await?;
    found.map(|_| ()).ok_or_else(|| QueryError::not_found(Entity::TestCase, id))
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
    let Some(state) = rollups::state(session, project, lane, id).await? else {
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
    };
    let first_seen = state.first_seen_at().day();
    let walk = Walk {
        project,
        test_case: id,
        wanted: &filter,
        newest: state.last_day(),
        first_seen,
        limit: fetch(limit),
    };
    Ok(walk.executions(session).await?)
}

/// Stability over the newest executions, split by count into at most
/// `buckets` parts, oldest first.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn stability_by_count(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    lane: &LaneQuery,
    buckets: usize,
) -> Result<Vec<StabilityBucket>> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
    required_case(&mut session, project, id).await?;
    let query = HistoryQuery::of(lane);
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
    let mean = (!ran.is_empty()).then(|| ran.iter().sum::<i64>() / i64::try_from(ran.len()).unwrap_or(1));
    Some(StabilityBucket {
        date: to.day(),
        from,
        to,
        pass_rate: rate(passed, decided),
        flaky_rate: rate(flaky, decided),
        avg_duration: mean,
        total_runs: i64::try_from(rows.len()).unwrap_or(i64::MAX),
    })
}

/// Stability by UTC day over the last `days` days, oldest first; days without
/// executions are left out.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn stability_by_day(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    lane: &LaneQuery,
    days: i64,
    today: Day,
) -> Result<Vec<StabilityBucket>> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
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
            avg_duration: (counts.dur_n > 0).then(|| counts.dur_sum / counts.dur_n),
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
