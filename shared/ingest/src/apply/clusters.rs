//! From failures to clusters: every execution that failed counts for the
//! cluster its fingerprint leads to.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::events::DomainEvent;
use callboard_domain::failure::{Fingerprint, Signature};
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::time::Timestamp;
use callboard_store::clusters::counts::{self, CountedRun, Occurrence};
use callboard_store::clusters::routes::{self, NewFailure, Route};
use callboard_store::clusters::{self, ClusterRow};
use callboard_store::db::Session;
use callboard_store::executions::ExecutionRow;
use callboard_store::runs::RunRow;
use callboard_store::{jobs, projects};

use crate::Result;
use crate::apply::attempt_merge::Group;
use crate::apply::execution_change::ExecutionChange;
use crate::transaction::follow_up::Recompute;

/// What failed in a batch, by fingerprint: fields and text of the first
/// failure of each.
pub(crate) struct Failures<'a>(BTreeMap<Fingerprint, (&'a Signature, &'a str)>);

impl<'a> Failures<'a> {
    pub(crate) fn from_groups(groups: &'a [Group]) -> Self {
        let mut failures = BTreeMap::new();
        let entries = groups.iter().flat_map(|group| &group.entries);
        let failing = entries
            .filter_map(|entry| Some((entry.index, &**entry.failure.as_ref()?, entry.error.as_ref()?)));
        let mut failing: Vec<_> = failing.collect();
        failing.sort_unstable_by_key(|(index, ..)| *index);
        for (_, signature, error) in failing {
            failures.entry(signature.fingerprint()).or_insert((signature, error.as_str()));
        }
        Self(failures)
    }

    /// Keeps clusters in their shape while rows that count for them are read
    /// and written. A new run in which nothing failed has none.
    pub(crate) async fn begin(&self, session: &mut Session, run: &RunRow, is_fresh: bool) -> Result<()> {
        if !is_fresh || !self.0.is_empty() {
            routes::keep_shape(session, run.project).await?;
        }
        Ok(())
    }

    /// Finds the cluster of every changed row that has none yet, made where a
    /// failure was never seen before. Earlier attempts that failed for other
    /// reasons get their clusters too: one of them may decide later.
    pub(crate) async fn assign<'r>(
        &self,
        session: &mut Session,
        run: &RunRow,
        rows: impl Iterator<Item = &'r mut ExecutionRow>,
        now: Timestamp,
    ) -> Result<()> {
        let open: Vec<(Fingerprint, &mut ExecutionRow)> = rows
            .filter(|row| row.cluster.is_none())
            .filter_map(|row| row.facts.fingerprint.map(|fingerprint| (fingerprint, row)))
            .collect();
        if open.is_empty() && self.0.is_empty() {
            return Ok(());
        }
        let asked: BTreeSet<Fingerprint> =
            open.iter().map(|(fingerprint, _)| *fingerprint).chain(self.0.keys().copied()).collect();
        let found = self.routes(session, run, asked, now).await?;
        let by_key: BTreeMap<(Fingerprint, Option<TestCaseId>), ClusterId> =
            found.into_iter().map(|route| ((route.fingerprint, route.test_case), route.cluster)).collect();
        for (fingerprint, row) in open {
            let own = by_key.get(&(fingerprint, Some(row.test_case)));
            row.cluster = own.or_else(|| by_key.get(&(fingerprint, None))).copied();
        }
        Ok(())
    }

    async fn routes(
        &self,
        session: &mut Session,
        run: &RunRow,
        asked: BTreeSet<Fingerprint>,
        now: Timestamp,
    ) -> Result<Vec<Route>> {
        let mut found = routes::list(session, run.project, asked).await?;
        let known: BTreeSet<Fingerprint> =
            found.iter().filter(|route| route.test_case.is_none()).map(|route| route.fingerprint).collect();
        let new: Vec<NewFailure<'_>> = self
            .0
            .iter()
            .filter(|(fingerprint, _)| !known.contains(fingerprint))
            .map(|(_, (signature, sample))| NewFailure {
                signature,
                sample,
                run: run.id,
                seen_at: run.order_at,
                execution: ExecutionId::compose(run.id, 0),
            })
            .collect();
        if !new.is_empty() {
            found.extend(routes::make(session, run.project, &new, now).await?);
        }
        Ok(found)
    }
}

/// What changed rows change of clusters. Their rows are locked; it is counted
/// when the executions are written.
pub(crate) struct Counting {
    occurrences: Vec<Occurrence>,
    clusters: Vec<ClusterRow>,
}

impl Counting {
    /// Locks the clusters that changed rows count for, or counted for.
    pub(crate) async fn lock(
        session: &mut Session,
        run: &RunRow,
        changes: &[ExecutionChange],
    ) -> Result<Self> {
        let occurrences: Vec<Occurrence> = changes.iter().flat_map(occurrences).collect();
        let ids: BTreeSet<i64> = occurrences.iter().map(|one| one.cluster.get()).collect();
        let clusters = clusters::lock(session, run.project, ids.into_iter().collect()).await?;
        Ok(Self { occurrences, clusters })
    }

    /// Counts.
    pub(crate) async fn apply(
        self,
        session: &mut Session,
        run: &RunRow,
        now: Timestamp,
    ) -> Result<ClusterChange> {
        if self.occurrences.is_empty() {
            return Ok(ClusterChange::default());
        }
        let is_snoozed = self.clusters.iter().any(|cluster| cluster.snoozed_until.is_some());
        let counted_run = CountedRun {
            project: run.project,
            run: run.id,
            order_at: run.order_at,
            start: run.start_time,
            is_default_branch: is_snoozed && is_default_branch(session, run).await?,
        };
        let counted = counts::apply(session, counted_run, self.clusters, &self.occurrences, now).await?;
        recount_new(session, run.project, counted.first_shown_by, run.id, now).await?;
        let run = run.id;
        let opened = counted.opened.into_iter().map(|cluster| DomainEvent::ClusterOpened { cluster, run });
        let reopened =
            counted.reopened.into_iter().map(|cluster| DomainEvent::ClusterReopened { cluster, run });
        Ok(ClusterChange { open: counted.open, events: opened.chain(reopened).collect() })
    }
}

/// What counting did to the clusters of the project.
#[derive(Debug, Default)]
pub(crate) struct ClusterChange {
    /// How many more of them are open.
    pub(crate) open: i64,
    /// Those that opened or reopened.
    pub(crate) events: Vec<DomainEvent>,
}

/// Has other runs count their new clusters again after a run came, or went,
/// that shows one before them.
pub(crate) async fn recount_new(
    session: &mut Session,
    project: ProjectId,
    runs: BTreeSet<RunId>,
    changed: RunId,
    now: Timestamp,
) -> Result<()> {
    for run in runs {
        let key = format!("run:{run}:recompute:clusters:{changed}:{}", now.millis());
        jobs::enqueue(session, &key, Some(project), &Recompute { project, run }, now).await?;
    }
    Ok(())
}

async fn is_default_branch(session: &mut Session, run: &RunRow) -> Result<bool> {
    let project = projects::get(session, run.project).await?;
    let default = project.and_then(|project| project.default_branch);
    Ok(default.is_none_or(|default| default == run.branch))
}

/// What one changed row takes from one cluster and gives to another.
fn occurrences(change: &ExecutionChange) -> impl Iterator<Item = Occurrence> {
    let of = |row: &ExecutionRow, sign: i64| {
        row.cluster.map(|cluster| Occurrence {
            cluster,
            test_case: row.test_case,
            execution: row.id,
            outcome: row.outcome,
            sign,
        })
    };
    let counts_as = |row: &ExecutionRow| (row.cluster, row.outcome == Outcome::Flaky);
    let before = change.before.as_ref();
    let is_same = before.is_some_and(|before| counts_as(before) == counts_as(&change.after));
    let less = before.filter(|_| !is_same).and_then(|before| of(before, -1));
    let more = (!is_same).then(|| of(&change.after, 1)).flatten();
    less.into_iter().chain(more)
}
