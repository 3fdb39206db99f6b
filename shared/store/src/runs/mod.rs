//! Runs: their rows and details; slots and lists beside. Lists sort by `order_at`, the start
//! time as first received, which never changes.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::run_life::EndReason;
use callboard_domain::search::{commit_word, words};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Listed};
use crate::search::{self, SearchKind};
use crate::{Result, StoreError};

/// A run as lists show it.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Id.
    pub id: RunId,
    /// Project.
    pub project: ProjectId,
    /// Most specific lane of the run.
    pub lane_id: i64,
    /// Branch; empty when none was told.
    pub branch: String,
    /// Environment; empty when none was told.
    pub environment: String,
    /// Status.
    pub status: RunStatus,
    /// The status it takes when its files have arrived.
    pub pending_status: Option<RunStatus>,
    /// Why it ended, when not by its results.
    pub end_reason: Option<EndReason>,
    /// Last sign of life of any of its clients.
    pub last_activity_at: Timestamp,
    /// Number of its newest event.
    pub feed_seq: i64,
    /// Number of its changes.
    pub version: i64,
    /// Whether it is a full run that passed.
    pub is_green: bool,
    /// How its tests compare with what they did before; `None` before the run
    /// is final, and when nothing was known of any of them.
    pub compared: Option<Compared>,
    /// Failure clusters it was the first to show; `None` before it is final.
    pub new_clusters: Option<i64>,
    /// Failed tests that were in quarantine.
    pub quarantined_failed: i64,
    /// Since when it is kept whatever retention says.
    pub pin: Option<Pin>,
    /// Most of it failed: it says nothing about its tests.
    pub is_mass_failure: bool,
    /// Time spent on attempts that did not decide, ms.
    pub lost_ms: i64,
    /// Start by the client's clock.
    pub start_time: Timestamp,
    /// Sort key of all lists.
    pub order_at: Timestamp,
    /// When the run became final.
    pub finished_at: Option<Timestamp>,
    /// Wall clock, ms.
    pub duration_ms: Option<i64>,
    /// Ordinal of the next execution.
    pub next_ordinal: i64,
    /// Whether the totals come from rows (else from the client's claim).
    pub totals_from_rows: bool,
    /// Totals.
    pub totals: Totals,
    /// Whether the whole suite was asked for.
    pub is_full: bool,
    /// Sum over all attempts, ms.
    pub tests_ms: i64,
    /// Sum of fixed waits, ms.
    pub wasted_ms: i64,
    /// Mean test duration, ms.
    pub avg_ms: Option<i64>,
    /// 90th percentile of test durations, ms.
    pub p90_ms: Option<i64>,
    /// Display label.
    pub label: Option<String>,
    /// Commit.
    pub commit_sha: Option<String>,
    /// First line of the commit message.
    pub commit_message: Option<String>,
    /// Commit author.
    pub author: Option<String>,
    /// Change request number or name.
    pub pull_request: Option<String>,
    /// CI system.
    pub ci_provider: Option<String>,
    /// Address of the CI build.
    pub build_url: Option<String>,
    /// Names of the browser projects that ran.
    pub browsers: Vec<String>,
    /// Number of shards; `None` outside shards.
    pub shard_total: Option<i64>,
    /// Shards that finished; 1 for a finished run without shards.
    pub shards_finished: i64,
    /// The run whose shards it repeats.
    pub rerun_of: Option<RunId>,
    /// Tests the client planned to run.
    pub planned_tests: Option<i64>,
    /// Version of Playwright.
    pub playwright_version: Option<String>,
    /// Version of the reporter.
    pub reporter_version: Option<String>,
    /// Grouping key of the client.
    pub instance_id: Option<String>,
    /// Whether a person gave it its label.
    pub label_is_edited: bool,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

/// What is written when a run is created.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Most specific lane.
    pub lane_id: i64,
    /// Branch; empty when none was told.
    pub branch: String,
    /// Environment; empty when none was told.
    pub environment: String,
    /// Where its life begins.
    pub status: RunStatus,
    /// Start by the client's clock.
    pub start_time: Timestamp,
    /// Whether the whole suite was asked for.
    pub is_full: bool,
    /// Number of shards; `None` outside shards.
    pub shard_total: Option<i64>,
    /// The run whose shards it repeats.
    pub rerun_of: Option<RunId>,
    /// Display label.
    pub label: Option<String>,
    /// Commit.
    pub commit_sha: Option<String>,
    /// Commit message.
    pub commit_message: Option<String>,
    /// Commit author.
    pub author: Option<String>,
    /// Change request.
    pub pull_request: Option<String>,
    /// CI system.
    pub ci_provider: Option<String>,
    /// Address of the CI build.
    pub build_url: Option<String>,
    /// Tests the client planned to run.
    pub planned_tests: Option<i64>,
    /// Version of Playwright.
    pub playwright_version: Option<String>,
    /// Version of the reporter.
    pub reporter_version: Option<String>,
    /// Grouping key of the client.
    pub instance_id: Option<String>,
    /// The client's totals, shown as long as the run has no row.
    pub claimed: Totals,
    /// Details shown on the run's page only.
    pub details: RunDetails,
}

/// What only the page of one run shows. JSON texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunDetails {
    /// Metadata object.
    pub metadata: String,
    /// How the run was narrowed.
    pub filter_details: Option<String>,
    /// Steps of the global setup.
    pub setup_steps: Option<String>,
    /// Totals as the client claimed them.
    pub claimed_totals: Option<String>,
}

macro_rules! select_run {
    ($tail:literal) => {
        concat!(
            "SELECT id, project_id, lane_id, branch, environment, status, start_time, order_at, finished_at, duration, \
             next_ordinal, totals_source, total, passed, failed, timedout, interrupted, skipped, didnotrun, flaky, \
             is_full, tests_ms, wasted_ms, avg_ms, p90_ms, label, commit_sha, commit_message, author, pull_request, \
             ci_provider, build_url, browsers, planned_tests, playwright_version, reporter_version, created_at, updated_at, \
             pending_status, end_reason, last_activity_at, feed_seq, shard_total, shards_finished, rerun_of, instance_id, \
             label_edited, version, is_green, new_regressions, new_flaky, fixed, quarantined_failed, pinned_at, pinned_by, \
             pin_reason, is_mass_failure, lost_ms, new_clusters FROM test_runs ",
            $tail
        )
    };
}

// After the macro, which the list uses.
pub mod compared;
pub mod groups;
pub(crate) mod list;
pub(crate) mod newest;
pub mod slots;
pub mod tokens;

pub use compared::{Compared, Pin};
use compared::{compared, pin};
pub use list::{RunFilter, list};
pub use newest::{Newest, newest_of};

statements! {
    /// One run.
    BY_ID = select_run!("WHERE project_id = $1 AND id = $2");
    /// One run, locked for the rest of the transaction.
    LOCK = select_run!("WHERE project_id = $1 AND id = $2 for_update()");
    /// Several runs of one project.
    BY_IDS = select_run!("WHERE project_id = $1 AND id in_ints($2)");
    /// The latest runs of several projects.
    LATEST_OF = select_run!("JOIN (SELECT s.project_id AS of_project, s.latest_run_id FROM project_stats s \
        WHERE s.project_id in_ints($1)) latest ON project_id = of_project AND id = latest_run_id");
    /// Runs of some projects that are still going on. ix: test_runs_open
    OPEN_OF = select_run!("WHERE project_id in_ints($1) AND status IN ('initializing', 'running', 'finalizing') ORDER BY id DESC LIMIT $2");
    /// Runs that are still going on. ix: test_runs_open
    OPEN = select_run!("WHERE status IN ('initializing', 'running', 'finalizing') ORDER BY id DESC LIMIT $1");
    /// Unfinished runs that gave no sign of life since a moment. ix: test_runs_open
    SILENT = "SELECT project_id, id FROM test_runs WHERE status IN ('initializing', 'running', 'finalizing') \
        AND last_activity_at <= $1 AND id > $2 ORDER BY id LIMIT $3";
    /// Unfinished unsharded runs of a pipeline that gave no sign of life since a moment. ix: test_runs_by_instance
    SUPERSEDED = "SELECT id FROM test_runs WHERE project_id = $1 AND instance_id = $2 AND shard_total IS NULL \
        AND status IN ('initializing', 'running', 'finalizing') AND last_activity_at < $3 ORDER BY id";
    /// A new run.
    INSERT = "INSERT INTO test_runs (id, project_id, lane_id, branch, environment, start_time, order_at, \
        next_ordinal, version, totals_source, total, passed, failed, timedout, interrupted, skipped, didnotrun, flaky, \
        is_full, tests_ms, wasted_ms, label, commit_sha, commit_message, author, pull_request, ci_provider, build_url, \
        browsers, planned_tests, playwright_version, reporter_version, instance_id, created_at, updated_at, \
        last_activity_at, feed_seq, label_edited, shards_finished, status, shard_total, rerun_of) \
        VALUES ($1, $2, $3, $4, $5, $6, $6, 1, 1, 0, $7, $8, $9, $10, $11, $12, $13, $14, $15, 0, 0, \
        $16, $17, $18, $19, $20, $21, $22, '[]', $23, $24, $25, $26, $27, $27, $27, 0, 0, 0, $28, $29, $30)";
    /// The details of a new run.
    INSERT_DETAILS = "INSERT INTO run_details (project_id, run_id, metadata, filter_details, setup_steps, claimed_totals) \
        VALUES ($1, $2, $3, $4, $5, $6)";
    /// The details of a run.
    DETAILS = "SELECT metadata, filter_details, setup_steps, claimed_totals FROM run_details WHERE project_id = $1 AND run_id = $2";
    /// Writes what changed after a batch of executions.
    UPDATE = "UPDATE test_runs SET status = $3, finished_at = $4, duration = $5, totals_source = $6, total = $7, passed = $8, \
        failed = $9, timedout = $10, interrupted = $11, skipped = $12, didnotrun = $13, flaky = $14, tests_ms = $15, \
        wasted_ms = $16, avg_ms = $17, p90_ms = $18, browsers = $19, updated_at = $20, version = version + 1, \
        pending_status = $21, end_reason = $22, last_activity_at = $23, feed_seq = $24, shards_finished = $25, start_time = $26, \
        is_green = CASE WHEN is_full = 1 AND $3 = 'passed' THEN 1 ELSE 0 END, lost_ms = $28, is_mass_failure = $29, \
        next_ordinal = $30 \
        WHERE project_id = $1 AND id = $2 AND status = $27";
    /// Writes what a client told later about its run.
    DESCRIBE = "UPDATE test_runs SET lane_id = $3, branch = $4, environment = $5, label = $6, commit_sha = $7, commit_message = $8, \
        author = $9, pull_request = $10, ci_provider = $11, build_url = $12, planned_tests = $13, playwright_version = $14, \
        reporter_version = $15, is_full = $16 WHERE project_id = $1 AND id = $2";
    /// Writes details that a client told later.
    UPDATE_DETAILS = "UPDATE run_details SET metadata = $3, filter_details = $4, setup_steps = $5, claimed_totals = $6 \
        WHERE project_id = $1 AND run_id = $2";
    /// Whether most of a run failed.
    SET_MASS_FAILURE = "UPDATE test_runs SET is_mass_failure = $3 WHERE project_id = $1 AND id = $2";
    /// How many of the newest final runs on a branch there are, up to a number. ix: test_runs_by_branch
    COUNT_DECIDED = "SELECT COUNT(*) FROM (SELECT 1 FROM test_runs WHERE project_id = $1 AND branch = $2 \
        AND status IN ('passed', 'failed', 'timedout') ORDER BY order_at DESC, id DESC LIMIT $3) newest";
    /// Commits of some runs.
    COMMITS_OF = "SELECT id, commit_sha FROM test_runs WHERE project_id = $1 AND id in_ints($2) AND commit_sha IS NOT NULL";
    /// Notes a sign of life.
    TOUCH = "UPDATE test_runs SET last_activity_at = $3 WHERE project_id = $1 AND id = $2 AND last_activity_at < $3";
}

fn read(row: &Row) -> Result<RunRow> {
    let mut r = row.reader();
    Ok(RunRow {
        id: RunId(r.int()?),
        project: ProjectId(r.int()?),
        lane_id: r.int()?,
        branch: r.text()?,
        environment: r.text()?,
        status: RunStatus::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown run status"))?,
        start_time: r.time()?,
        order_at: r.time()?,
        finished_at: r.opt_time()?,
        duration_ms: r.opt_int()?,
        next_ordinal: r.int()?,
        totals_from_rows: r.flag()?,
        totals: Totals {
            total_tests: r.int()?,
            passed_tests: r.int()?,
            failed_tests: r.int()?,
            timed_out_tests: r.int()?,
            interrupted_tests: r.int()?,
            skipped_tests: r.int()?,
            did_not_run_tests: r.int()?,
            flaky_tests: r.int()?,
        },
        is_full: r.flag()?,
        tests_ms: r.int()?,
        wasted_ms: r.int()?,
        avg_ms: r.opt_int()?,
        p90_ms: r.opt_int()?,
        label: r.opt_text()?,
        commit_sha: r.opt_text()?,
        commit_message: r.opt_text()?,
        author: r.opt_text()?,
        pull_request: r.opt_text()?,
        ci_provider: r.opt_text()?,
        build_url: r.opt_text()?,
        browsers: serde_json::from_str(&r.text()?).map_err(|_| StoreError::Damaged("a list of browsers"))?,
        planned_tests: r.opt_int()?,
        playwright_version: r.opt_text()?,
        reporter_version: r.opt_text()?,
        created_at: r.time()?,
        updated_at: r.time()?,
        pending_status: r.opt_text()?.as_deref().and_then(RunStatus::parse),
        end_reason: r.opt_text()?.as_deref().and_then(EndReason::parse),
        last_activity_at: r.time()?,
        feed_seq: r.int()?,
        shard_total: r.opt_int()?,
        shards_finished: r.int()?,
        rerun_of: r.opt_int()?.map(RunId),
        instance_id: r.opt_text()?,
        label_is_edited: r.flag()?,
        version: r.int()?,
        is_green: r.flag()?,
        compared: compared(r.opt_int()?, r.opt_int()?, r.opt_int()?),
        quarantined_failed: r.int()?,
        pin: pin(r.opt_time()?, r.opt_int()?, r.opt_text()?),
        is_mass_failure: r.flag()?,
        lost_ms: r.int()?,
        new_clusters: r.opt_int()?,
    })
}

/// One run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn get(session: &mut Session, project: ProjectId, run: RunId) -> Result<Option<RunRow>> {
    session.first(&BY_ID, args![project, run]).await?.as_ref().map(read).transpose()
}

/// One run, locked until the transaction ends.
///
/// # Errors
/// [`StoreError::RunGone`] when there is no such run any more.
pub async fn lock(session: &mut Session, project: ProjectId, run: RunId) -> Result<RunRow> {
    read(&session.first(&LOCK, args![project, run]).await?.ok_or(StoreError::RunGone)?)
}

/// Several runs of a project, in no particular order.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn get_many(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<Vec<RunRow>> {
    session.all(&BY_IDS, args![project, ids]).await?.iter().map(read).collect()
}

/// The latest run of each of several projects, in no particular order.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn latest_of(session: &mut Session, projects: Vec<i64>) -> Result<Vec<RunRow>> {
    session.all(&LATEST_OF, args![projects]).await?.iter().map(read).collect()
}

/// Unfinished runs, newest first; `projects` limits them to some projects.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn open(session: &mut Session, projects: Option<&[ProjectId]>, limit: i64) -> Result<Vec<RunRow>> {
    let rows = match projects {
        Some(projects) => {
            let ids: Vec<i64> = projects.iter().map(|id| id.get()).collect();
            session.all(&OPEN_OF, args![ids, limit]).await?
        }
        None => session.all(&OPEN, args![limit]).await?,
    };
    rows.iter().map(read).collect()
}

/// Details of a run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn details(session: &mut Session, project: ProjectId, run: RunId) -> Result<RunDetails> {
    let Some(row) = session.first(&DETAILS, args![project, run]).await? else {
        return Ok(RunDetails { metadata: "{}".to_owned(), ..RunDetails::default() });
    };
    let mut r = row.reader();
    Ok(RunDetails {
        metadata: r.text()?,
        filter_details: r.opt_text()?,
        setup_steps: r.opt_text()?,
        claimed_totals: r.opt_text()?,
    })
}

/// Unfinished runs of all projects without a sign of life since a moment, by
/// id, after a run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn silent(
    session: &mut Session,
    since: Timestamp,
    after: Option<RunId>,
    limit: i64,
) -> Result<Vec<(ProjectId, RunId)>> {
    let after = after.map_or(0, RunId::get);
    let rows = session.all(&SILENT, args![since, after, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), RunId(r.int()?)))
        })
        .collect()
}

/// Unfinished unsharded runs of a pipeline without a sign of life since a
/// moment, in ascending order.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn silent_of_instance(
    session: &mut Session,
    project: ProjectId,
    instance: &str,
    since: Timestamp,
) -> Result<Vec<RunId>> {
    let rows = session.all(&SUPERSEDED, args![project, instance, since]).await?;
    rows.iter().map(|row| row.reader().int().map(RunId)).collect()
}

/// Creates a run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn create(
    session: &mut Session,
    project: ProjectId,
    id: RunId,
    new: &NewRun,
    now: Timestamp,
) -> Result<()> {
    let t = &new.claimed;
    session
        .execute(
            &INSERT,
            args![
                id,
                project,
                new.lane_id,
                &new.branch,
                &new.environment,
                new.start_time,
                t.total_tests,
                t.passed_tests,
                t.failed_tests,
                t.timed_out_tests,
                t.interrupted_tests,
                t.skipped_tests,
                t.did_not_run_tests,
                t.flaky_tests,
                new.is_full,
                new.label.clone(),
                new.commit_sha.clone(),
                new.commit_message.clone(),
                new.author.clone(),
                new.pull_request.clone(),
                new.ci_provider.clone(),
                new.build_url.clone(),
                new.planned_tests,
                new.playwright_version.clone(),
                new.reporter_version.clone(),
                new.instance_id.clone(),
                now,
                new.status.as_str(),
                new.shard_total,
                new.rerun_of
            ],
        )
        .await?;
    let d = &new.details;
    session
        .execute(
            &INSERT_DETAILS,
            args![
                project,
                id,
                &d.metadata,
                d.filter_details.clone(),
                d.setup_steps.clone(),
                d.claimed_totals.clone()
            ],
        )
        .await?;
    let found_by = words([new.label.as_deref().unwrap_or_default(), &new.branch]);
    let found_by = found_by.into_iter().map(|word| (word, id.get()));
    search::add(session, project, SearchKind::Run, found_by).await?;
    let commit = new.commit_sha.as_deref().map(commit_word);
    search::add(session, project, SearchKind::Commit, commit.map(|word| (word, id.get()))).await?;
    ids::list(session, Listed::Run, project, &[id.get()]).await
}

impl RunRow {
    /// Takes `count` consecutive ordinals for new executions of a locked run
    /// and answers the first; [`update`] writes that they are taken.
    ///
    /// # Errors
    /// [`StoreError::RunFull`] when the run cannot hold that many more.
    pub fn take_ordinals(&mut self, count: usize) -> Result<i64> {
        let first = self.next_ordinal;
        let next = i64::try_from(count).ok().and_then(|count| first.checked_add(count));
        let next = next.filter(|next| next - 1 <= callboard_domain::ids::MAX_EXECUTIONS_PER_RUN);
        self.next_ordinal = next.ok_or(StoreError::RunFull)?;
        Ok(first)
    }
}

/// Writes status, totals and timing of a locked run that stands in `from`.
///
/// # Errors
/// [`StoreError::Damaged`] when it stands elsewhere: it was not locked.
pub async fn update(session: &mut Session, run: &RunRow, from: RunStatus) -> Result<()> {
    let t = &run.totals;
    let browsers =
        serde_json::to_string(&run.browsers).map_err(|_| StoreError::Damaged("a list of browsers"))?;
    let done = session
        .execute(
            &UPDATE,
            args![
                run.project,
                run.id,
                run.status.as_str(),
                run.finished_at,
                run.duration_ms,
                run.totals_from_rows,
                t.total_tests,
                t.passed_tests,
                t.failed_tests,
                t.timed_out_tests,
                t.interrupted_tests,
                t.skipped_tests,
                t.did_not_run_tests,
                t.flaky_tests,
                run.tests_ms,
                run.wasted_ms,
                run.avg_ms,
                run.p90_ms,
                browsers,
                run.updated_at,
                run.pending_status.map(RunStatus::as_str),
                run.end_reason.map(EndReason::as_str),
                run.last_activity_at,
                run.feed_seq,
                run.shards_finished,
                run.start_time,
                from.as_str(),
                run.lost_ms,
                run.is_mass_failure,
                run.next_ordinal
            ],
        )
        .await?;
    if done == 1 { Ok(()) } else { Err(StoreError::Damaged("a run changed although it was locked")) }
}

/// Writes what a client told later about a locked run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn describe(session: &mut Session, run: &RunRow) -> Result<()> {
    session
        .execute(
            &DESCRIBE,
            args![
                run.project,
                run.id,
                run.lane_id,
                &run.branch,
                &run.environment,
                run.label.clone(),
                run.commit_sha.clone(),
                run.commit_message.clone(),
                run.author.clone(),
                run.pull_request.clone(),
                run.ci_provider.clone(),
                run.build_url.clone(),
                run.planned_tests,
                run.playwright_version.clone(),
                run.reporter_version.clone(),
                run.is_full
            ],
        )
        .await?;
    Ok(())
}

/// Writes the details of a locked run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn update_details(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    details: &RunDetails,
) -> Result<()> {
    let d = details;
    let (filter, steps) = (d.filter_details.clone(), d.setup_steps.clone());
    let args = args![project, run, &d.metadata, filter, steps, d.claimed_totals.clone()];
    session.execute(&UPDATE_DETAILS, args).await?;
    Ok(())
}

/// Notes a sign of life of a run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn touch(session: &mut Session, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    session.execute(&TOUCH, args![project, run, now]).await?;
    Ok(())
}

/// Notes of a locked run whether most of it failed.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn set_mass_failure(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    is_mass_failure: bool,
) -> Result<()> {
    session.execute(&SET_MASS_FAILURE, args![project, run, is_mass_failure]).await?;
    Ok(())
}

/// How many runs that came to an end there are on a branch, up to `most`.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn count_decided(
    session: &mut Session,
    project: ProjectId,
    branch: &str,
    most: i64,
) -> Result<i64> {
    session.one(&COUNT_DECIDED, args![project, branch, most]).await?.reader().int()
}

/// The commits of some runs, as far as they are known.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn commits_of(
    session: &mut Session,
    project: ProjectId,
    runs: Vec<i64>,
) -> Result<std::collections::HashMap<RunId, String>> {
    let rows = session.all(&COMMITS_OF, args![project, runs]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((RunId(r.int()?), r.text()?))
        })
        .collect()
}
