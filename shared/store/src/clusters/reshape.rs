//! Moving occurrences from one cluster to another: a whole cluster becomes
//! part of another one, or some tests are taken out. Begins with
//! [`super::routes::hold_shape`]; rows of both clusters are locked.

use callboard_domain::failure::VERSION;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_domain::time::Timestamp;

use super::{ClusterRow, ClusterStatus, counts, get};
use crate::db::{Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::{Result, StoreError};

statements! {
    /// All executions of a cluster. ix: executions_cluster
    MOVE_EXECUTIONS = "UPDATE executions SET cluster_id = $3 WHERE project_id = $1 AND cluster_id = $2 AND cluster_id IS NOT NULL";
    /// Executions of some tests of a cluster. ix: executions_cluster
    MOVE_EXECUTIONS_OF = "UPDATE executions SET cluster_id = $3 WHERE project_id = $1 AND cluster_id = $2 AND cluster_id IS NOT NULL \
        AND test_case_id in_ints($4)";
    /// Tests of a cluster, added to those of another. PK
    ADD_TESTS = "INSERT INTO cluster_tests AS t (project_id, cluster_id, test_case_id, n, first_at, last_at, last_execution_id) \
        SELECT o.project_id, $3, o.test_case_id, o.n, o.first_at, o.last_at, o.last_execution_id FROM cluster_tests o \
        WHERE o.project_id = $1 AND o.cluster_id = $2 ON CONFLICT (project_id, cluster_id, test_case_id) DO UPDATE SET \
        n = t.n + excluded.n, first_at = CASE WHEN excluded.first_at < t.first_at THEN excluded.first_at ELSE t.first_at END, \
        last_execution_id = CASE WHEN excluded.last_at > t.last_at THEN excluded.last_execution_id ELSE t.last_execution_id END, \
        last_at = CASE WHEN excluded.last_at > t.last_at THEN excluded.last_at ELSE t.last_at END";
    DROP_TESTS = "DELETE FROM cluster_tests WHERE project_id = $1 AND cluster_id = $2";
    /// Some tests of a cluster, moved to a new one. PK
    MOVE_TESTS = "UPDATE cluster_tests SET cluster_id = $3 WHERE project_id = $1 AND cluster_id = $2 AND test_case_id in_ints($4)";
    /// Runs of a cluster, added to those of another. ix: cluster_runs_of_cluster
    ADD_RUNS = "INSERT INTO cluster_runs AS k (project_id, run_id, cluster_id, n, flaky_n) \
        SELECT o.project_id, o.run_id, $3, o.n, o.flaky_n FROM cluster_runs o WHERE o.project_id = $1 AND o.cluster_id = $2 \
        ON CONFLICT (project_id, run_id, cluster_id) DO UPDATE SET n = k.n + excluded.n, flaky_n = k.flaky_n + excluded.flaky_n";
    DROP_RUNS = "DELETE FROM cluster_runs WHERE project_id = $1 AND cluster_id = $2";
    /// Branches of a cluster in runs that retention deleted, added to those of another. PK
    ADD_BRANCHES = "INSERT INTO expired_cluster_branches AS k (project_id, cluster_id, branch, last_run_id) \
        SELECT o.project_id, $3, o.branch, o.last_run_id FROM expired_cluster_branches o WHERE o.project_id = $1 AND o.cluster_id = $2 \
        ON CONFLICT (project_id, cluster_id, branch) DO UPDATE SET \
        last_run_id = CASE WHEN excluded.last_run_id > k.last_run_id THEN excluded.last_run_id ELSE k.last_run_id END";
    /// Branches of a cluster in runs that retention deleted, on which some of its tests failed, added to those of another.
    /// ix: lanes_key, PK
    COPY_BRANCHES_OF = "INSERT INTO expired_cluster_branches (project_id, cluster_id, branch, last_run_id) \
        SELECT o.project_id, $3, o.branch, o.last_run_id FROM expired_cluster_branches o WHERE o.project_id = $1 AND o.cluster_id = $2 \
        AND EXISTS (SELECT 1 FROM lanes l JOIN test_state s ON s.project_id = l.project_id AND s.lane_id = l.id \
            WHERE l.project_id = $1 AND l.kind = 1 AND l.branch = o.branch AND l.environment = '' \
            AND s.test_case_id in_ints($4) AND s.failed + s.timedout + s.flaky > 0)";
    /// Of two clusters, drops from the first one the branches it shares with the second one, but for those on which a test
    /// that it still has failed. ix: lanes_key, PK
    DROP_BRANCHES_OF = "DELETE FROM expired_cluster_branches WHERE project_id = $1 AND cluster_id = $2 \
        AND branch IN (SELECT m.branch FROM expired_cluster_branches m WHERE m.project_id = $1 AND m.cluster_id = $3) \
        AND NOT EXISTS (SELECT 1 FROM lanes l JOIN cluster_tests t ON t.project_id = l.project_id AND t.cluster_id = $2 \
            JOIN test_state s ON s.project_id = l.project_id AND s.lane_id = l.id AND s.test_case_id = t.test_case_id \
            WHERE l.project_id = $1 AND l.kind = 1 AND l.branch = expired_cluster_branches.branch AND l.environment = '' \
            AND s.failed + s.timedout + s.flaky > 0)";
    DROP_BRANCHES = "DELETE FROM expired_cluster_branches WHERE project_id = $1 AND cluster_id = $2";
    /// Days of a cluster, added to those of another. PK
    ADD_DAYS = "INSERT INTO cluster_daily AS k (project_id, cluster_id, day, n) \
        SELECT o.project_id, $3, o.day, o.n FROM cluster_daily o WHERE o.project_id = $1 AND o.cluster_id = $2 \
        ON CONFLICT (project_id, cluster_id, day) DO UPDATE SET n = k.n + excluded.n";
    DROP_DAYS = "DELETE FROM cluster_daily WHERE project_id = $1 AND cluster_id = $2";
    /// Runs of a cluster, from its executions. ix: executions_cluster
    COUNT_RUNS = "INSERT INTO cluster_runs (project_id, run_id, cluster_id, n, flaky_n) \
        SELECT project_id, run_id, cluster_id, COUNT(*), SUM(CASE WHEN outcome = 3 THEN 1 ELSE 0 END) FROM executions \
        WHERE project_id = $1 AND cluster_id = $2 AND cluster_id IS NOT NULL GROUP BY project_id, run_id, cluster_id";
    /// Days of a cluster, from its executions. ix: executions_cluster
    COUNT_DAYS = "INSERT INTO cluster_daily (project_id, cluster_id, day, n) SELECT project_id, cluster_id, day, COUNT(*) FROM executions \
        WHERE project_id = $1 AND cluster_id = $2 AND cluster_id IS NOT NULL GROUP BY project_id, cluster_id, day";
    /// Takes what a cluster counts of runs from what another one does. ix: cluster_runs_of_cluster
    TAKE_RUNS = "UPDATE cluster_runs AS k SET n = k.n - m.n, flaky_n = k.flaky_n - m.flaky_n FROM \
        (SELECT run_id, n, flaky_n FROM cluster_runs WHERE project_id = $1 AND cluster_id = $3) m \
        WHERE k.project_id = $1 AND k.cluster_id = $2 AND k.run_id = m.run_id";
    DROP_EMPTY_RUNS = "DELETE FROM cluster_runs WHERE project_id = $1 AND cluster_id = $2 AND n <= 0";
    /// Takes what a cluster counts of days from what another one does. PK
    TAKE_DAYS = "UPDATE cluster_daily AS k SET n = k.n - m.n FROM \
        (SELECT day, n FROM cluster_daily WHERE project_id = $1 AND cluster_id = $3) m \
        WHERE k.project_id = $1 AND k.cluster_id = $2 AND k.day = m.day";
    DROP_EMPTY_DAYS = "DELETE FROM cluster_daily WHERE project_id = $1 AND cluster_id = $2 AND n <= 0";
    /// Sums of a cluster from its tests, and when the first and the last of them failed. PK
    SUMS = "SELECT COUNT(*), CAST(COALESCE(SUM(n), 0) AS BIGINT), MIN(first_at), MAX(last_at) FROM cluster_tests \
        WHERE project_id = $1 AND cluster_id = $2";
    /// Leads all routes of a cluster to another. ix: cluster_routes_to
    MOVE_ROUTES = "UPDATE cluster_routes SET cluster_id = $3 WHERE project_id = $1 AND cluster_id = $2";
    /// Leads all templates of a cluster to another. ix: fingerprint_templates_to
    MOVE_TEMPLATES = "UPDATE fingerprint_templates SET cluster_id = $3 WHERE project_id = $1 AND cluster_id = $2";
    /// Gives a test a route of its own for every fingerprint of a cluster. ix: cluster_routes_to
    ADD_EXCEPTIONS = "INSERT INTO cluster_routes (project_id, fingerprint, test_case_id, cluster_id, fp_version, sample_execution_id) \
        SELECT g.project_id, g.fingerprint, $4, $3, $5, CAST(NULL AS BIGINT) FROM cluster_routes g \
        WHERE g.project_id = $1 AND g.cluster_id = $2 AND g.test_case_id = 0 \
        ON CONFLICT (project_id, fingerprint, test_case_id) DO UPDATE SET cluster_id = excluded.cluster_id";
    /// Leads the routes of a test that it had of its own to another cluster. ix: cluster_routes_to
    MOVE_EXCEPTIONS = "UPDATE cluster_routes SET cluster_id = $3 WHERE project_id = $1 AND cluster_id = $2 AND test_case_id = $4";
    /// A cluster like another one.
    COPY_CLUSTER = "INSERT INTO failure_clusters (id, project_id, fingerprint, fp_version, signature, title, error_type, selector, fields, \
        sample_error, status, status_at, is_touched, note, first_run_id, first_execution_id, first_seen_at, last_run_id, last_seen_at, \
        last_status, created_at, updated_at) SELECT $3, project_id, fingerprint, fp_version, signature, title, error_type, selector, \
        fields, sample_error, 'open', $4, 1, $5, first_run_id, first_execution_id, first_seen_at, last_run_id, last_seen_at, \
        last_status, $4, $4 FROM failure_clusters WHERE project_id = $1 AND id = $2";
    /// A cluster that is part of another one from now on.
    END_CLUSTER = "UPDATE failure_clusters SET status = 'merged', status_at = $4, merged_into = $3, occurrences = 0, affected_tests = 0, \
        updated_at = $4 WHERE project_id = $1 AND id = $2";
    /// Drops subscriptions to a cluster of channels that are subscribed to the same events of another. ix: subscriptions_of_project
    DROP_SUBSCRIPTIONS = "DELETE FROM subscriptions WHERE project_id = $1 AND cluster_id = $2 AND EXISTS (SELECT 1 FROM subscriptions o \
        WHERE o.project_id = $1 AND o.cluster_id = $3 AND o.channel_id = subscriptions.channel_id AND o.events = subscriptions.events)";
    /// Lets subscriptions to a cluster follow it. ix: subscriptions_of_project
    MOVE_SUBSCRIPTIONS = "UPDATE subscriptions SET cluster_id = $3 WHERE project_id = $1 AND cluster_id = $2";
    /// What was made part of this one before follows it.
    FOLLOW = "UPDATE failure_clusters SET merged_into = $3 WHERE project_id = $1 AND merged_into = $2 AND status = 'merged'";
}

/// Makes one cluster part of another one, which gets all its occurrences,
/// routes and subscriptions. What was said of the repair of that one, and does not hold for the
/// occurrences it gets, is taken back.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn merge(
    session: &mut Session,
    project: ProjectId,
    gone: &ClusterRow,
    into: &mut ClusterRow,
    now: Timestamp,
) -> Result<()> {
    let (from, to) = (gone.id, into.id);
    let added = [&ADD_TESTS, &ADD_RUNS, &ADD_BRANCHES, &ADD_DAYS];
    let moved =
        [&MOVE_EXECUTIONS, &MOVE_ROUTES, &MOVE_TEMPLATES, &FOLLOW, &DROP_SUBSCRIPTIONS, &MOVE_SUBSCRIPTIONS];
    for statement in added.into_iter().chain(moved) {
        session.execute(statement, args![project, from, to]).await?;
    }
    for statement in [&DROP_TESTS, &DROP_RUNS, &DROP_BRANCHES, &DROP_DAYS] {
        session.execute(statement, args![project, from]).await?;
    }
    session.execute(&END_CLUSTER, args![project, from, to, now]).await?;
    into.take_over(gone, now);
    let sums = session.one(&SUMS, args![project, to]).await?;
    let mut sums = sums.reader();
    (into.affected_tests, into.occurrences) = (sums.int()?, sums.int()?);
    counts::write(session, project, [&*into], now).await
}

/// Takes some tests out of a cluster, with all their occurrences, into a new
/// one. From now on their failures of this kind lead there.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn extract(
    session: &mut Session,
    project: ProjectId,
    from: &mut ClusterRow,
    tests: &[i64],
    note: Option<&str>,
    now: Timestamp,
) -> Result<ClusterRow> {
    let id = ClusterId(ids::allocate_one(session, Kind::Cluster).await?);
    session.execute(&COPY_CLUSTER, args![project, from.id, id, now, note]).await?;
    ids::list(session, Listed::Cluster, project, &[id.get()]).await?;
    for test in tests {
        session.execute(&MOVE_EXCEPTIONS, args![project, from.id, id, *test]).await?;
        session.execute(&ADD_EXCEPTIONS, args![project, from.id, id, *test, VERSION]).await?;
    }
    for statement in [&MOVE_EXECUTIONS_OF, &MOVE_TESTS, &COPY_BRANCHES_OF] {
        session.execute(statement, args![project, from.id, id, tests.to_vec()]).await?;
    }
    for statement in [&COUNT_RUNS, &COUNT_DAYS] {
        session.execute(statement, args![project, id]).await?;
    }
    // What counts here may be of executions that retention took, so it is not counted anew.
    for statement in [&TAKE_RUNS, &TAKE_DAYS, &DROP_BRANCHES_OF] {
        session.execute(statement, args![project, from.id, id]).await?;
    }
    for statement in [&DROP_EMPTY_RUNS, &DROP_EMPTY_DAYS] {
        session.execute(statement, args![project, from.id]).await?;
    }
    settle(session, project, from, now).await?;
    let mut new = get(session, project, id)
        .await?
        .ok_or(StoreError::Damaged("a cluster that was just made is gone"))?;
    settle(session, project, &mut new, now).await?;
    Ok(new)
}

/// Brings the sums of a cluster in line with its rows after some of its tests
/// were taken out.
async fn settle(
    session: &mut Session,
    project: ProjectId,
    row: &mut ClusterRow,
    now: Timestamp,
) -> Result<()> {
    let sums = session.one(&SUMS, args![project, row.id]).await?;
    let mut sums = sums.reader();
    (row.affected_tests, row.occurrences) = (sums.int()?, sums.int()?);
    let span = (sums.opt_time()?, sums.opt_time()?);
    if span != (Some(row.first_seen_at), Some(row.last_seen_at)) {
        counts::refresh(session, project, row).await?;
        // Runs that retention took do not make it younger, nor its last failure older.
        if let (Some(first), Some(last)) = span {
            row.first_seen_at = row.first_seen_at.min(first);
            row.last_seen_at = row.last_seen_at.max(last);
        }
    }
    counts::write(session, project, [&*row], now).await
}

impl ClusterRow {
    /// Takes over when another cluster was seen first and last.
    fn take_over(&mut self, gone: &Self, now: Timestamp) {
        if gone.occurrences <= 0 {
            return;
        }
        let is_only = self.occurrences <= 0;
        if is_only || (gone.first_seen_at, gone.first_run) < (self.first_seen_at, self.first_run) {
            (self.first_seen_at, self.first_run) = (gone.first_seen_at, gone.first_run);
            self.first_execution = gone.first_execution;
        }
        if is_only || (gone.last_seen_at, gone.last_run) > (self.last_seen_at, self.last_run) {
            (self.last_seen_at, self.last_run) = (gone.last_seen_at, gone.last_run);
            self.last_status.clone_from(&gone.last_status);
        }
        // A repair after which there is a failure now was none.
        if self.fix_at.is_some_and(|fixed| self.last_seen_at > fixed) {
            (self.fix_run, self.fix_at, self.fix_commit, self.ttr_ms) = (None, None, None, None);
            self.fix_verification = None;
            self.is_quiet = false;
        }
        let fails_on = gone.status == ClusterStatus::Open && gone.last_seen_at > self.status_at;
        if self.status == ClusterStatus::Resolved && fails_on {
            self.status = ClusterStatus::Open;
            self.status_at = now;
        }
    }
}
