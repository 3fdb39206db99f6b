//! The history of one test case, walked day by day.

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::{Day, Timestamp};

use super::{ExecutionRow, read_from};
use crate::db::{Backend, Filter, Row, Session, args};
use crate::{Result, StoreError};

/// The conditions of a test's history.
#[derive(Debug, Clone, Default)]
pub struct HistoryFilter {
    /// Only runs of these lanes (most specific lane of the run).
    pub lanes: Option<Vec<i64>>,
    /// Only this browser project.
    pub browser: Option<i64>,
    /// Only these outcome codes.
    pub outcomes: Option<Vec<i64>>,
    /// Whether runs that failed as a whole are left out.
    pub without_mass_failures: bool,
    /// Only runs that started at this moment or later.
    pub from: Option<Timestamp>,
    /// Only runs that started at this moment or earlier.
    pub to: Option<Timestamp>,
    /// Key of the last row of the page before: order key of its run and its id.
    pub after: Option<(i64, i64)>,
    /// Key of a row that only newer ones are wanted than, the oldest of them first.
    pub newer_than: Option<(i64, i64)>,
}

impl HistoryFilter {
    /// Whether no row that simply passed is asked for: there is an index of the
    /// others, of which there are few.
    fn is_trouble(&self) -> bool {
        let is_trouble = |code: &i64| {
            Outcome::from_code(*code).is_some_and(|outcome| outcome.rank() < Outcome::Passed.rank())
        };
        self.outcomes.as_ref().is_some_and(|codes| codes.iter().all(is_trouble))
    }
}

/// A part of a test's history.
#[derive(Debug, Default)]
pub struct History {
    /// The rows with the order key of their run, newest first.
    pub rows: Vec<(Timestamp, ExecutionRow)>,
    /// Where the walk stopped before it had enough rows: everything older than
    /// this moment has not been looked at. `None` when nothing is left.
    pub unread_before: Option<Timestamp>,
}

/// What is known of one execution where only its tries and its commit matter.
#[derive(Debug)]
pub struct TriedExecution {
    /// Final outcome.
    pub outcome: Outcome,
    /// Retries it took.
    pub retries: i64,
    /// Its attempts as JSON; `None` when there was one.
    pub attempts: Option<String>,
    /// Commit of its run.
    pub commit: Option<String>,
    /// Whether its run failed as a whole.
    pub is_mass_failure: bool,
}

/// A walk back over the days of one test case, newest run first, until there
/// are `limit` rows or `first_seen` is passed. Days are taken in steps that grow
/// where there is little, so an old test costs no more than a young one, and
/// that are as long as what is missing where there is much, so that a test that
/// runs often is not read for a month.
#[derive(Debug)]
pub struct Walk<'a> {
    /// Its project.
    pub project: ProjectId,
    /// The test case.
    pub test_case: TestCaseId,
    /// Which of its executions.
    pub wanted: &'a HistoryFilter,
    /// The day to begin with.
    pub newest: Day,
    /// The last day to look at.
    pub first_seen: Day,
    /// Most rows.
    pub limit: i64,
}

/// Days a walk looks at; what is older is left for the next page.
const MOST_DAYS: i64 = 595;
/// How much longer a step may be than the one before.
const GROWTH: i64 = 6;

/// How many days the next step of a walk takes.
#[derive(Debug, Default)]
struct Pace {
    walked: i64,
    found: i64,
    last: i64,
    /// Whether the days of the last step held less than half of those before,
    /// which then say too little about the next.
    is_sparse: bool,
}

impl Pace {
    /// Days to take for so many rows: a day at first, since the tests that are
    /// asked for most ran many times on their last day.
    fn span(&self, missing: i64) -> i64 {
        let most = (self.last * GROWTH).max(1);
        let span = if self.is_sparse || self.found == 0 {
            most
        } else {
            // A quarter more than the days before let expect.
            (missing * self.walked * 5 / (self.found * 4)).clamp(1, most)
        };
        span.min(MOST_DAYS - self.walked)
    }

    fn took(&mut self, days: i64, rows: i64) {
        self.is_sparse = rows == 0 || rows * 2 * self.walked < self.found * days;
        self.walked += days;
        self.found += rows;
        self.last = days;
    }
}

/// What a statement of the walk begins with: project, test and days are bound.
struct Base {
    /// On SQLite.
    sqlite: &'static str,
    /// Whether SQLite finds rows in the index of the history, with the runs
    /// they belong to, and reads only those that are wanted: most executions of
    /// a test are of other lanes.
    by_run: bool,
    /// On PostgreSQL, which has no rows in that index. Its planner does not
    /// know the values, nor, of a young table, how many rows there are. It is
    /// told to look for each day, or would read all days of the test's project;
    /// and for the run of each execution by its key, or would join all runs of
    /// the project with all rows. That takes a column that no index has: an index
    /// of all runs of the project by time says when one of them started.
    postgres: &'static str,
    /// On PostgreSQL for executions in trouble, whose index has the test before
    /// the day.
    postgres_trouble: &'static str,
}

macro_rules! run_of_execution {
    () => {
        "CROSS JOIN LATERAL (SELECT t.order_at, t.commit_sha, t.is_mass_failure FROM test_runs t \
         WHERE t.project_id = e.project_id AND t.id BETWEEN e.run_id AND e.run_id AND t.next_ordinal > 0 \
         ORDER BY t.id LIMIT 1) AS r"
    };
}

macro_rules! base {
    (by_run: $by_run:expr, $columns:expr, $sqlite:expr) => {
        Base {
            sqlite: concat!("SELECT ", $columns, $sqlite),
            by_run: $by_run,
            postgres: concat!(
                "SELECT ",
                $columns,
                " FROM unnest($3::bigint[]) AS d(day) CROSS JOIN LATERAL (SELECT * FROM executions x \
                 WHERE x.project_id = $1 AND x.day = d.day AND x.test_case_id = $2 OFFSET 0) AS e ",
                run_of_execution!(),
                " WHERE true"
            ),
            postgres_trouble: concat!(
                "SELECT ",
                $columns,
                " FROM executions e ",
                run_of_execution!(),
                " WHERE e.project_id = $1 AND e.test_case_id = $2 AND e.day in_ints($3) AND e.rank < 6"
            ),
        }
    };
    (by_run $columns:expr) => {
        base!(
            by_run: true,
            $columns,
            " FROM executions k JOIN test_runs r ON r.project_id = k.project_id AND r.id = k.run_id \
             JOIN executions e ON e.project_id = k.project_id AND e.run_id = k.run_id AND e.id = k.id \
             WHERE k.project_id = $1 AND k.test_case_id = $2 AND k.day in_ints($3)"
        )
    };
    (by_execution $columns:expr) => {
        base!(
            by_run: false,
            $columns,
            " FROM executions e JOIN test_runs r ON r.project_id = e.project_id AND r.id = e.run_id \
             WHERE e.project_id = $1 AND e.test_case_id = $2 AND e.day in_ints($3)"
        )
    };
}

static WHOLE: Base = base!(by_execution concat!("r.order_at, ", columns!()));
static WHOLE_BY_RUN: Base = base!(by_run concat!("r.order_at, ", columns!()));
static TRIED: Base = base!(by_run "e.outcome, e.retries, e.attempts, r.commit_sha, r.is_mass_failure");

impl Walk<'_> {
    /// The executions themselves.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn executions(&self, session: &mut Session) -> Result<History> {
        let by_run = self.wanted.lanes.is_some() && !self.wanted.is_trouble();
        let base = if by_run { &WHOLE_BY_RUN } else { &WHOLE };
        let (rows, unread_before) = self.through(session, base, read_with_order).await?;
        Ok(History { rows, unread_before })
    }

    /// Their tries and commits only.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn tried(&self, session: &mut Session) -> Result<Vec<TriedExecution>> {
        Ok(self.through(session, &TRIED, read_tried).await?.0)
    }

    /// The execution that came right after the row the filter names.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn next(&self, session: &mut Session) -> Result<Option<ExecutionRow>> {
        let from = self.wanted.newer_than.map_or(self.first_seen, |(at, _)| Timestamp(at).day());
        let mut lower = from.max(self.first_seen).0;
        let mut pace = Pace::default();
        while lower <= self.newest.0 && pace.walked < MOST_DAYS {
            let upper = (lower + pace.span(1) - 1).min(self.newest.0);
            let filter = self.on_days(session.backend(), &WHOLE, (lower..=upper).collect(), 1);
            if let Some(row) = session.list(filter).await?.first() {
                return Ok(Some(read_with_order(row)?.1));
            }
            pace.took(upper - lower + 1, 0);
            lower = upper + 1;
        }
        Ok(None)
    }

    async fn through<T>(
        &self,
        session: &mut Session,
        base: &Base,
        read: impl Fn(&Row) -> Result<T>,
    ) -> Result<(Vec<T>, Option<Timestamp>)> {
        let Self { wanted, limit, .. } = *self;
        let start = wanted.after.map(|(at, _)| Timestamp(at)).or(wanted.to);
        let mut found = Vec::new();
        let mut upper = start.map_or(self.newest, |start| start.day().min(self.newest)).0;
        let last = wanted.from.map_or(self.first_seen, |from| from.day().max(self.first_seen)).0;
        let mut pace = Pace::default();
        while upper >= last && pace.walked < MOST_DAYS {
            let missing = limit - i64::try_from(found.len()).unwrap_or(limit);
            let lower = (upper - pace.span(missing) + 1).max(last);
            let filter = self.on_days(session.backend(), base, (lower..=upper).collect(), missing);
            let rows = session.list(filter).await?;
            for row in &rows {
                found.push(read(row)?);
            }
            if i64::try_from(found.len()).unwrap_or(limit) >= limit {
                return Ok((found, None));
            }
            pace.took(upper - lower + 1, i64::try_from(rows.len()).unwrap_or(limit));
            upper = lower - 1;
        }
        let unread_before = (upper >= last).then(|| Day(upper + 1).start());
        Ok((found, unread_before))
    }

    fn on_days(&self, backend: Backend, base: &Base, days: Vec<i64>, limit: i64) -> Filter {
        let wanted = self.wanted;
        let by_run = base.by_run && backend == Backend::Sqlite;
        // ix: executions_trouble_of_test
        let text = match backend {
            Backend::Sqlite => base.sqlite,
            Backend::Postgres if wanted.is_trouble() => base.postgres_trouble,
            Backend::Postgres => base.postgres,
        };
        let filter = Filter::new(backend, text, args![self.project, self.test_case, days]);
        let filter = if by_run {
            filter
                .and_if("k.browser_id = ?", wanted.browser)
                .and_if("r.lane_id in_ints(?)", wanted.lanes.clone())
        } else {
            filter
                .and_if("e.browser_id = ?", wanted.browser)
                .and_if("e.lane_id in_ints(?)", wanted.lanes.clone())
        };
        let filter = filter
            .and_if("e.outcome in_ints(?)", wanted.outcomes.clone())
            .and_if("r.order_at >= ?", wanted.from.map(Timestamp::millis))
            .and_if("r.order_at <= ?", wanted.to.map(Timestamp::millis))
            .and_if("r.is_mass_failure = ?", wanted.without_mass_failures.then_some(0));
        let is_narrowed = backend == Backend::Sqlite && wanted.is_trouble();
        let filter = if is_narrowed { filter.and("e.rank < 6", args![]) } else { filter };
        let filter = match (wanted.after, by_run) {
            (Some((at, id)), true) => filter.and("(r.order_at, k.id) < (?, ?)", args![at, id]),
            (Some((at, id)), false) => filter.and("(r.order_at, e.id) < (?, ?)", args![at, id]),
            (None, _) => filter,
        };
        if let Some((at, id)) = wanted.newer_than {
            let filter = filter.and("(r.order_at, e.id) > (?, ?)", args![at, id]);
            return filter.end("ORDER BY r.order_at, e.id LIMIT ?", args![limit]);
        }
        let order = match by_run {
            true => "ORDER BY r.order_at DESC, k.id DESC LIMIT ?",
            false => "ORDER BY r.order_at DESC, e.id DESC LIMIT ?",
        };
        filter.end(order, args![limit])
    }
}

/// What the walk's statement can look like, for the test that prepares every
/// statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = HistoryFilter {
        lanes: Some(vec![]),
        browser: Some(1),
        outcomes: Some(vec![Outcome::Passed.code()]),
        without_mass_failures: true,
        from: Some(Timestamp(0)),
        to: Some(Timestamp(0)),
        after: Some((0, 0)),
        newer_than: None,
    };
    let newer = HistoryFilter { after: None, newer_than: Some((0, 0)), ..all.clone() };
    let troubled = HistoryFilter { outcomes: Some(vec![]), ..HistoryFilter::default() };
    let shape = |wanted: &HistoryFilter, base: &Base| {
        let (newest, first_seen) = (Day(1), Day(1));
        let (project, test_case) = (ProjectId(1), TestCaseId(1));
        let walk = Walk { project, test_case, wanted, newest, first_seen, limit: 1 };
        walk.on_days(backend, base, vec![], 1)
    };
    vec![
        shape(&HistoryFilter::default(), &WHOLE),
        shape(&troubled, &WHOLE),
        shape(&all, &WHOLE_BY_RUN),
        shape(&newer, &WHOLE),
        shape(&all, &TRIED),
    ]
}

fn read_tried(row: &Row) -> Result<TriedExecution> {
    let mut r = row.reader();
    Ok(TriedExecution {
        outcome: Outcome::from_code(r.int()?).ok_or(StoreError::Damaged("an unknown outcome"))?,
        retries: r.int()?,
        attempts: r.opt_text()?,
        commit: r.opt_text()?,
        is_mass_failure: r.flag()?,
    })
}

fn read_with_order(row: &Row) -> Result<(Timestamp, ExecutionRow)> {
    let mut r = row.reader();
    let order_at = r.time()?;
    Ok((order_at, read_from(r)?))
}

#[cfg(test)]
mod tests {
    use super::{MOST_DAYS, Pace};

    /// The steps of a walk for `limit` rows over days with so many rows each,
    /// and how many rows it had to look at.
    fn walk(limit: i64, rows_of_day: impl Fn(i64) -> i64) -> (Vec<i64>, i64) {
        let (mut pace, mut steps, mut seen) = (Pace::default(), Vec::new(), 0);
        while pace.walked < MOST_DAYS && pace.found < limit {
            let missing = limit - pace.found;
            let span = pace.span(missing);
            let rows: i64 = (pace.walked..pace.walked + span).map(&rows_of_day).sum();
            seen += rows;
            pace.took(span, rows.min(missing));
            steps.push(span);
        }
        (steps, seen)
    }

    #[test]
    fn a_walk_takes_as_many_days_as_it_needs() {
        assert_eq!(walk(200, |_| 55), (vec![1, 3], 220));
        assert_eq!(walk(200, |_| 400), (vec![1], 400));
        assert_eq!(walk(31, |_| 1), (vec![1, 6, 30], 37));
        assert_eq!(walk(31, |day| i64::from(day == 0)), (vec![1, 6, 36, 216, 336], 1));
        assert_eq!(walk(31, |_| 0), (vec![1, 6, 36, 216, 336], 0));
    }

    #[test]
    fn a_walk_has_few_steps_whatever_the_days_hold() {
        for every in 1..40 {
            for much in [1, 7, 90, 199] {
                let (steps, _) = walk(200, |day| if day % every == 0 || day == 1 { much } else { 0 });
                assert!(steps.len() <= 6, "{much} every {every} days: {steps:?}");
            }
        }
    }
}
