//! One transaction's worth of test results: from entries to execution rows,
//! rollups and totals. What is already known changes nothing, so every resend
//! is free of effect.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::endpoints::Captured;
use callboard_domain::ids::{ExecutionId, PackId, TestCaseId};
use callboard_domain::ingest::{IdentityHash, SourcePaths, TestCaseEntry};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionRow, RunPlace};
use callboard_store::rollups;
use callboard_store::rollups::EndpointPlace;
use callboard_store::runs::RunRow;
use callboard_store::test_cases::{self, TestIdentity, TestMeta};

use crate::Result;
use crate::apply::attachments::{PublishedFile, link_all, lock_contents};
use crate::apply::attempt_merge::{self, Group, ShardIdentity};
use crate::apply::clusters::{ClusterChange, Failures};
use crate::apply::execution_change::ExecutionChange;
use crate::apply::execution_plan::{Basis, ExecutionPlan, Stored};
use crate::apply::execution_writer::{WriteContext, write};
use crate::apply::project_lookups::ProjectLookups;
use crate::transaction::follow_up::{FindHistories, JoinHistories};
use crate::transaction::run_lanes::place_of;

/// Most entries one transaction takes; a larger submission is written in
/// several, with the run held in `running` until the last.
pub(crate) const ENTRIES_PER_TRANSACTION: usize = 2_000;

/// What a chunk is folded into.
pub(crate) struct Target<'a> {
    /// The run, locked; its totals are brought up to date.
    pub(crate) run: &'a mut RunRow,
    /// All lanes the run counts in.
    pub(crate) lanes: &'a [i64],
    /// Whether the run was made in this transaction and has no row yet.
    pub(crate) is_fresh: bool,
    /// Of the slot the entries came through.
    pub(crate) shard: ShardIdentity,
    /// Of the project.
    pub(crate) known: &'a ProjectLookups,
    /// What was worked out before the transaction and still holds: all tests are known,
    /// and none comes with files.
    pub(crate) drafted: Option<ExecutionPlan>,
    /// Evidence by index of the entry.
    pub(crate) evidence: &'a HashMap<usize, EvidenceSlice>,
    /// Requests by index of the entry.
    pub(crate) requests: &'a Captured,
    /// Files by index of the entry.
    pub(crate) files: &'a HashMap<usize, Vec<PublishedFile>>,
    /// What the run says about its paths.
    pub(crate) paths: Option<SourcePaths>,
    /// Clock.
    pub(crate) now: Timestamp,
}

/// What a chunk added.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) new_test_cases: i64,
    pub(crate) executions: Vec<(usize, ExecutionId)>,
    /// Rows that are new or changed, as each request left them, with the index of its
    /// newest entry about each.
    pub(crate) changed: Vec<(usize, ExecutionRow)>,
    /// The packs of this submission that rows now point at.
    pub(crate) used_packs: BTreeSet<PackId>,
    /// What changed about failure clusters.
    pub(crate) clusters: ClusterChange,
}

/// Folds some groups into the run.
pub(crate) async fn fold(session: &mut Session, target: &mut Target<'_>, groups: &[Group]) -> Result<Folded> {
    if groups.is_empty() {
        return Ok(Folded::default());
    }
    let project = target.run.project;
    let place = place_of(target.run);
    let failures = Failures::from_groups(groups);
    let joined_groups;
    let mut groups = groups;
    let (mut draft, new_test_cases) = match target.drafted.take() {
        Some(draft) => {
            failures.begin(session, target.run, target.is_fresh).await?;
            (draft, 0)
        }
        None => {
            let at = target.run.order_at;
            let (identities, paths) = (identities(groups), target.paths.as_ref());
            let resolved = test_cases::resolve(session, project, identities, paths, at, target.now).await?;
            if resolved.carries {
                JoinHistories::enqueue(session, project, target.now).await?;
            }
            if let Some(first) = resolved.first_created {
                let tests = resolved.ids.values().chain(resolved.joined.values());
                let last = tests.max().copied().unwrap_or(first);
                FindHistories::enqueue_for_new(session, project, (first, last), target.now).await?;
            }
            if resolved.has_joined_pairs() {
                joined_groups = attempt_merge::join_groups(groups, &resolved.ids);
                groups = &joined_groups;
            }
            failures.begin(session, target.run, target.is_fresh).await?;
            let stored = stored(session, target, place, resolved.ids.values()).await?;
            let Target { shard, known, evidence, files, .. } = *target;
            let basis = Basis { place, shard, known, resolved: &resolved, evidence, files };
            (ExecutionPlan::new(basis, stored, groups)?, resolved.created)
        }
    };
    // One that was made before has these numbers already, and they are still free.
    draft.number(target.run)?;

    let ExecutionPlan { ids, predecessors, changes, passed, used_packs, sites, capturing, repetitions } =
        draft;
    let mut folded = Folded {
        new_test_cases: i64::try_from(new_test_cases).unwrap_or(i64::MAX),
        executions: Vec::new(),
        changed: Vec::new(),
        used_packs,
        clusters: ClusterChange::default(),
    };
    let (newest, mut changes): (Vec<usize>, Vec<ExecutionChange>) =
        changes.into_iter().map(|(_, newest, change)| (newest, change)).unzip();
    if !changes.is_empty() {
        let capturing = capturing.into_iter().map(|(entry, group, case)| (entry, ids[group], case));
        let calls = target.requests.calls(capturing);
        let assigned = changes.iter_mut().map(|change| &mut change.after);
        failures.assign(session, target.run, assigned, target.now).await?;
        let mut held = WriteContext { run: &mut *target.run, lanes: target.lanes, now: target.now };
        folded.clusters = write(session, &mut held, &mut changes, &predecessors).await?;
        sites.write(session, target.run).await?;
        let place = EndpointPlace { project, run: place.run, day: place.day };
        rollups::add_endpoints(session, place, target.is_fresh, calls).await?;
        note_browsers(target.run, groups);
    }
    let entries = groups.iter().flat_map(|group| &group.entries);
    let files: Vec<&PublishedFile> =
        entries.filter_map(|entry| target.files.get(&entry.index)).flatten().collect();
    lock_contents(session, project, &files).await?;
    let passed = passed.into_iter().map(|(_, index, state)| (index, state));
    folded.changed =
        passed.chain(newest.into_iter().zip(changes.into_iter().map(|change| change.after))).collect();
    for (group, id) in groups.iter().zip(ids) {
        for entry in &group.entries {
            folded.executions.push((entry.index, id));
            if let Some(files) = target.files.get(&entry.index) {
                let repetition = repetitions.get(&entry.index).copied().unwrap_or(0);
                let attempt = (i64::from(repetition), i64::from(entry.retry));
                link_all(session, place, id, attempt, files, target.now).await?;
            }
        }
    }
    Ok(folded)
}

pub(crate) fn identities(groups: &[Group]) -> Vec<TestIdentity> {
    let mut by_hash: BTreeMap<IdentityHash, TestIdentity> = BTreeMap::new();
    let mut newest: Vec<&TestCaseEntry> = groups.iter().filter_map(Group::newest).collect();
    newest.sort_unstable_by_key(|entry| entry.index);
    for entry in newest {
        let identity = TestIdentity {
            hash: entry.identity,
            file_path: entry.file_path.clone(),
            suite_path: entry.suite_path.clone().unwrap_or_default(),
            title: entry.title.clone(),
            meta: TestMeta {
                tags: entry.tags.clone(),
                owner: entry.meta.owner.clone(),
                priority: entry.meta.priority.map(|priority| priority.as_str().to_owned()),
                feature: entry.meta.feature.clone(),
                link: entry.meta.link.clone(),
            },
        };
        by_hash.insert(entry.identity, identity);
    }
    by_hash.into_values().collect()
}

async fn stored(
    session: &mut Session,
    target: &Target<'_>,
    place: RunPlace,
    cases: impl Iterator<Item = &TestCaseId>,
) -> Result<Stored> {
    let cases: Vec<i64> = cases.map(|id| id.get()).collect();
    if target.is_fresh {
        let predecessors = rollups::predecessors(session, place.project, place.lane_id, cases).await?;
        return Ok(Stored { predecessors, ..Stored::default() });
    }
    let (rows, predecessors) = executions::of_batch_with_predecessors(session, place, cases).await?;
    let executions = rows.into_iter().map(|row| ((row.test_case, row.browser_id), row)).collect();
    Ok(Stored { executions, predecessors })
}

fn note_browsers(run: &mut RunRow, groups: &[Group]) {
    for entry in groups.iter().filter_map(Group::newest) {
        if !entry.browser_project.is_empty() && !run.browsers.contains(&entry.browser_project) {
            run.browsers.push(entry.browser_project.clone());
        }
    }
    run.browsers.sort_unstable();
}
