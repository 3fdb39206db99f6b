//! Bringing a hidden run back: its rows are moved back, and it counts again in
//! everything that summarises them. The inverse of `removing`; states and days
//! of tests follow by the usual counting of executions that wait.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::failure::Fingerprint;
use callboard_domain::ids::{ClusterId, ExecutionId, TestCaseId};
use callboard_domain::run_life::EndReason;
use callboard_domain::search::commit_word;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::clusters::counts::{self, CountedRun, Occurrence};
use callboard_store::clusters::{self, routes};
use callboard_store::db::Session;
use callboard_store::deletions::kept;
use callboard_store::deletions::runs::{self as doomed, DoomedRun};
use callboard_store::executions::{self, ExecutionRow};
use callboard_store::projects::{self, Growth};
use callboard_store::rollups::{self, EndpointPlace, RunContribution};
use callboard_store::runs::{self, RunRow};
use callboard_store::search::{self, SearchKind};
use callboard_store::{feed, jobs, lanes, quarantine};

use crate::Result;
use crate::apply::clusters::recount_new;
use crate::transaction::follow_up::Recompute;
use crate::transaction::run_lanes::lanes_of_run;
use crate::transaction::run_transaction::{LockedRun, contribution, counted_in_project};
use crate::transaction::search_words::run_words;

/// Executions that are read at a time.
const BATCH: i64 = 500;

/// Restores a hidden run of an existing project. With `counts_again` its rows
/// were taken out of the aggregates before, and are added to them again. A run
/// that was going on when it was deleted comes back as cancelled.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn restore_run(
    session: &mut Session,
    hidden: &DoomedRun,
    counts_again: bool,
    now: Timestamp,
) -> Result<()> {
    let project = hidden.project;
    if counts_again {
        routes::keep_shape(session, project).await?;
    }
    kept::restore_run(session, hidden, counts_again, now).await?;
    let run = runs::lock(session, project, hidden.run).await?;
    let mut growth = Growth {
        runs: i64::from(counts_again),
        // Deleted for their age, they were counted all the time.
        executions: if counts_again { counted_in_project(&run) } else { 0 },
        new_run: Some((run.id, run.order_at)),
        ..Growth::default()
    };
    if counts_again {
        growth.open_clusters = count_rows(session, hidden, &run, now).await?;
        let place = EndpointPlace { project, run: run.id, day: run.order_at.day() };
        rollups::restore_endpoints(session, place).await?;
    }
    let lanes = lanes_of_run(session, &run).await?;
    lanes::touch(session, project, &lanes, run.order_at).await?;
    let (before, after) = (RunContribution::default(), contribution(&run));
    if counts_again && before != after {
        let day = run.order_at.day();
        rollups::add_project_day(session, project, &lanes, day, run.is_full, &before, &after).await?;
    }
    let words = run_words(run.label.as_deref(), &run.branch);
    search::replace(session, project, SearchKind::Run, run.id.get(), words).await?;
    let words = run.commit_sha.iter().map(|commit| commit_word(commit)).collect();
    search::replace(session, project, SearchKind::Commit, run.id.get(), words).await?;
    projects::count(session, project, growth).await?;
    if run.is_full && run.status.is_final() {
        projects::set_latest_full(session, project, run.id, run.order_at).await?;
    }
    if !counts_again {
        doomed::unexpire_run(session, project, run.id).await?;
    }
    doomed::spare(session, hidden).await?;
    let run = if run.status.is_final() {
        let recompute = Recompute { project, run: run.id };
        let key = format!("run:{}:recompute:restored:{}", run.id, now.millis());
        jobs::enqueue(session, &key, Some(project), &recompute, now).await?;
        run
    } else {
        let mut locked = LockedRun::lock(session, project, run.id).await?;
        locked.abort(RunStatus::Cancelled, EndReason::User, now);
        locked.write(session, now).await?
    };
    feed::publish(session, "run-restored", run.id, project, Some(run.status), now).await?;
    Ok(())
}

/// Adds the executions of a run to their clusters and quarantines again.
/// Returns how many more clusters are open.
async fn count_rows(session: &mut Session, hidden: &DoomedRun, run: &RunRow, now: Timestamp) -> Result<i64> {
    let mut occurrences = Vec::new();
    let mut per_test: BTreeMap<TestCaseId, i64> = BTreeMap::new();
    let mut after = None;
    loop {
        let mut rows = executions::of_run_after(session, run.project, run.id, after, BATCH).await?;
        let Some(last) = rows.last() else { break };
        after = Some(last.id);
        follow_routes(session, hidden, &mut rows).await?;
        for row in rows {
            *per_test.entry(row.test_case).or_default() += 1;
            occurrences.extend(row.cluster.map(|cluster| Occurrence {
                cluster,
                test_case: row.test_case,
                execution: row.id,
                outcome: row.outcome,
                sign: 1,
            }));
        }
    }
    let ids: BTreeSet<i64> = occurrences.iter().map(|one| one.cluster.get()).collect();
    let locked = clusters::lock(session, run.project, ids.into_iter().collect()).await?;
    // Whether a snooze ends was decided when the run came.
    let counted_run = CountedRun {
        project: run.project,
        run: run.id,
        order_at: run.order_at,
        start: run.start_time,
        is_default_branch: false,
    };
    let counted = counts::apply(session, counted_run, locked, &occurrences, now).await?;
    recount_new(session, run.project, counted.first_shown_by, run.id, now).await?;
    let mut by_number: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (case, number) in per_test {
        by_number.entry(number).or_default().push(case.get());
    }
    for (number, cases) in by_number {
        quarantine::take_back(session, run.project, cases, run.order_at, -number).await?;
    }
    Ok(counted.open)
}

/// Clusters may have been merged or split while the run was hidden: its
/// failures count where their fingerprints lead now.
async fn follow_routes(session: &mut Session, hidden: &DoomedRun, rows: &mut [ExecutionRow]) -> Result<()> {
    let of_row = |row: &ExecutionRow| row.cluster.and(row.facts.fingerprint);
    let fingerprints: BTreeSet<Fingerprint> = rows.iter().filter_map(of_row).collect();
    let found = routes::list(session, hidden.project, fingerprints).await?;
    let by_key: BTreeMap<(Fingerprint, Option<TestCaseId>), ClusterId> =
        found.into_iter().map(|route| ((route.fingerprint, route.test_case), route.cluster)).collect();
    let mut moved: Vec<(ExecutionId, ClusterId)> = Vec::new();
    for row in rows {
        let Some(fingerprint) = of_row(row) else { continue };
        let own = by_key.get(&(fingerprint, Some(row.test_case)));
        let Some(cluster) = own.or_else(|| by_key.get(&(fingerprint, None))).copied() else { continue };
        if row.cluster != Some(cluster) {
            row.cluster = Some(cluster);
            moved.push((row.id, cluster));
        }
    }
    for (execution, cluster) in moved {
        kept::set_cluster(session, hidden, execution, cluster).await?;
    }
    Ok(())
}
