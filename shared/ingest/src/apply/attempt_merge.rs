//! What requests say about one test, brought together and merged into its
//! execution, request by request: however many of them are worked in together,
//! it becomes what it would if each was worked in alone.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::attempts::{
    Attempt, AttemptFacts, AttemptSet, EarlierAttempt, EvidenceSlice, Reported,
};
use callboard_domain::ids::{ExecutionId, PackId, TestCaseId};
use callboard_domain::ingest::{IdentityHash, TestCaseEntry};
use callboard_domain::test_state::ExecutionFlags;
use callboard_store::StoreError;
use callboard_store::executions::{ExecutionRow, RunPlace};
use callboard_store::runs::slots::SlotRow;

use crate::Result;

/// All entries of some requests about one test in one browser project.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) entries: Vec<TestCaseEntry>,
    /// Where those of each further request begin: what is one request tells
    /// repetitions apart.
    further: Vec<usize>,
}

impl Group {
    /// The entry that speaks for the test's attributes: the last one sent.
    pub(crate) fn newest(&self) -> Option<&TestCaseEntry> {
        self.entries.last()
    }

    /// The entries of each request, in the order in which they came.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &[TestCaseEntry]> {
        let begins = std::iter::once(0).chain(self.further.iter().copied());
        let ends = self.further.iter().copied().chain([self.entries.len()]);
        begins.zip(ends).map(|(begin, end)| &self.entries[begin..end])
    }
}

/// Brings the entries of requests together by test and browser project, in the
/// order of their first appearance.
pub(crate) fn group(requests: Vec<Vec<TestCaseEntry>>) -> Vec<Group> {
    let count = requests.iter().map(Vec::len).sum();
    // Each with the request that its last entry came with.
    let mut places: HashMap<(IdentityHash, String), (usize, usize)> = HashMap::with_capacity(count);
    let mut groups: Vec<Group> = Vec::with_capacity(count);
    for (request, entries) in requests.into_iter().enumerate() {
        for entry in entries {
            let key = (entry.identity, entry.browser_project.clone());
            let (place, last) = places.entry(key).or_insert_with(|| {
                groups.push(Group { entries: Vec::with_capacity(1), further: Vec::new() });
                (groups.len() - 1, request)
            });
            let group = &mut groups[*place];
            if std::mem::replace(last, request) != request {
                group.further.push(group.entries.len());
            }
            group.entries.push(entry);
        }
    }
    groups
}

/// Groups of the same test in the same browser project are one, also where their
/// identities are those of several paths.
pub(crate) fn join_groups(groups: &[Group], tests: &HashMap<IdentityHash, TestCaseId>) -> Vec<Group> {
    let mut joined: Vec<Group> = Vec::with_capacity(groups.len());
    let mut places: HashMap<(Option<TestCaseId>, &str), usize> = HashMap::new();
    for group in groups {
        let Some(newest) = group.newest() else { continue };
        let key = (tests.get(&newest.identity).copied(), newest.browser_project.as_str());
        if let Some(known) = places.get(&key).and_then(|place| joined.get_mut(*place)) {
            let end = known.entries.len();
            known.further.extend([0].iter().chain(&group.further).map(|begin| end + begin));
            known.entries.extend(group.entries.iter().cloned());
        } else {
            places.insert(key, joined.len());
            joined.push(Group { entries: group.entries.clone(), further: group.further.clone() });
        }
    }
    joined
}

/// What attempts note of the slot they came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardIdentity {
    /// Its generation; 0 outside shards.
    pub(crate) generation: u32,
    /// Its shard; `None` outside shards.
    shard_index: Option<i64>,
}

impl ShardIdentity {
    pub(crate) fn from_row(row: &SlotRow) -> Self {
        Self {
            generation: u32::try_from(row.slot.generation).unwrap_or_default(),
            shard_index: Some(row.slot.shard_index).filter(|index| *index > 0),
        }
    }
}

/// An execution after a group was merged into what was known.
pub(crate) struct Merged {
    /// As each request left it that changed it, with the index of its newest entry.
    pub(crate) states: Vec<(usize, ExecutionRow)>,
    pub(crate) attempts: AttemptSet,
}

pub(crate) fn merged(
    place: RunPlace,
    case: TestCaseId,
    browser: i64,
    before: Option<&ExecutionRow>,
    group: &Group,
    (shard, evidence): (ShardIdentity, &HashMap<usize, EvidenceSlice>),
) -> Result<Merged> {
    let mut attempts = before.map(stored_attempts).transpose()?.unwrap_or_default();
    let mut states: Vec<(usize, ExecutionRow)> = Vec::with_capacity(1);
    for entries in group.requests() {
        attempts.merge(entries.iter().map(|entry| reported(entry, shard, evidence)).collect());
        let row = decided(place, case, browser, before, &attempts)?;
        let known = states.last().map(|(_, row)| row).or(before);
        if let Some(newest) = entries.last().filter(|_| known != Some(&row)) {
            states.push((newest.index, row));
        }
    }
    Ok(Merged { states, attempts })
}

/// An execution as its attempts decide it.
pub(crate) fn decided(
    place: RunPlace,
    case: TestCaseId,
    browser: i64,
    before: Option<&ExecutionRow>,
    attempts: &AttemptSet,
) -> Result<ExecutionRow> {
    let decision = attempts.decide().ok_or(StoreError::Damaged("an execution without attempts"))?;
    let outcome = decision.outcome();
    let flags = before.map_or_else(ExecutionFlags::default, |row| row.flags);
    Ok(ExecutionRow {
        id: before.map_or(ExecutionId(0), |row| row.id),
        project: place.project,
        run: place.run,
        test_case: case,
        day: place.day,
        lane_id: place.lane_id,
        browser_id: browser,
        outcome,
        flags: flags
            .set(ExecutionFlags::EXPECTED_FAILURE, decision.deciding.facts.expected_failure)
            .set(ExecutionFlags::MARKED_SLOW, decision.deciding.facts.marked_slow)
            .set(ExecutionFlags::ATTEMPTS_DROPPED, decision.dropped > 0),
        retries: i64::from(decision.retries),
        duration_ms: decision.duration_ms,
        total_duration_ms: decision.total_duration_ms,
        retries_ms: Some(decision.lost_ms),
        extra_repetitions: i64::try_from(decision.all_repetitions).unwrap_or(i64::MAX) - 1,
        started_at: decision.started_at,
        facts: AttemptFacts { fingerprint: decision.fingerprint, ..decision.deciding.facts },
        traces: before.map_or(0, |row| row.traces),
        files: before.map_or(0, |row| row.files),
        attempts: attempts.to_json(),
        evidence: decision.deciding.evidence,
        // A failure that stays the same stays where it is; others are placed together.
        cluster: before
            .filter(|row| row.facts.fingerprint == decision.fingerprint)
            .and_then(|row| row.cluster),
        reported_as: before.and_then(|row| row.reported_as),
    })
}

/// Those of some packs in which evidence of the attempts lies.
pub(crate) fn packs_of(attempts: &AttemptSet, among: &BTreeSet<PackId>) -> Vec<PackId> {
    let packs =
        attempts.attempts().iter().filter_map(|attempt| Some(attempt.evidence?.pack)).collect::<Vec<_>>();
    packs.into_iter().filter(|pack| among.contains(pack)).collect()
}

/// Whether an attempt has the evidence that came with an entry: a repeated one
/// keeps what it had.
pub(crate) fn has_evidence_of(
    attempts: &AttemptSet,
    entry: &TestCaseEntry,
    evidence: &HashMap<usize, EvidenceSlice>,
) -> bool {
    let slice = evidence.get(&entry.index);
    slice.is_some_and(|slice| attempts.attempts().iter().any(|attempt| attempt.evidence == Some(*slice)))
}

/// The repetition an entry reports: the client's index, else the one that was
/// worked out for the attempt that began when the entry says.
pub(crate) fn repetition_of(attempts: &AttemptSet, entry: &TestCaseEntry) -> u32 {
    if let Some(index) = entry.repeat_each_index {
        return index;
    }
    let views = attempts.decide().map(|decision| decision.attempts).unwrap_or_default();
    let is_same = |attempt: &Attempt| attempt.retry == entry.retry && attempt.started_at == entry.started_at;
    views.iter().find(|view| is_same(&view.attempt)).map_or(0, |view| view.repetition)
}

/// The attempts a stored row stands for.
///
/// # Errors
/// [`crate::QueryError::Store`] when they cannot be read.
pub fn stored_attempts(row: &ExecutionRow) -> Result<AttemptSet> {
    if let Some(json) = &row.attempts {
        return Ok(
            AttemptSet::from_json(json).map_err(|_| StoreError::Damaged("the attempts of an execution"))?
        );
    }
    Ok(AttemptSet::single(Attempt {
        retry: u32::try_from(row.retries).unwrap_or_default(),
        repetition: None,
        generation: 0,
        status: row.outcome.status(),
        duration_ms: row.duration_ms,
        started_at: row.started_at,
        flaky_claimed: false,
        facts: row.facts.clone(),
        evidence: row.evidence,
        is_summary: false,
    }))
}

fn reported(
    entry: &TestCaseEntry,
    shard: ShardIdentity,
    evidence: &HashMap<usize, EvidenceSlice>,
) -> Reported {
    let facts = AttemptFacts {
        line: entry.line.map(i64::from),
        column: entry.column.map(i64::from),
        timeout_ms: entry.timeout_ms,
        worker_index: entry.worker_index.map(i64::from),
        parallel_index: entry.parallel_index.map(i64::from),
        shard_index: entry.shard_index.map(i64::from).or(shard.shard_index),
        error_summary: entry.error_summary.clone(),
        slowest_step: entry.slowest_step.clone(),
        slowest_ms: entry.slowest_step_ms,
        wasted_ms: entry.wasted_ms.unwrap_or(0),
        lcp: entry.vitals.lcp_ms.map(i64::from),
        inp: entry.vitals.inp_ms.map(i64::from),
        ttfb: entry.vitals.ttfb_ms.map(i64::from),
        cls_milli: entry.vitals.cls_thousandths.map(i64::from),
        steps: i64::from(entry.counts.steps),
        console: i64::from(entry.counts.console),
        network: i64::from(entry.counts.network),
        raw_status: entry.raw_status.clone(),
        did_not_run_reason: entry.did_not_run_reason.clone(),
        blocked_by: entry.blocked_by.clone(),
        skip_reason: entry.skip_reason.clone(),
        expected_failure: entry.expected_failure,
        marked_slow: entry.marked_slow,
        fingerprint: entry.failure.as_ref().map(|failure| failure.fingerprint()),
    };
    let attempt = Attempt {
        retry: entry.retry,
        repetition: entry.repeat_each_index,
        generation: shard.generation,
        status: entry.status,
        duration_ms: entry.duration_ms,
        started_at: entry.started_at,
        flaky_claimed: entry.flaky_claimed,
        facts,
        evidence: evidence.get(&entry.index).copied(),
        is_summary: false,
    };
    let history = entry
        .history
        .iter()
        .map(|earlier| EarlierAttempt {
            retry: earlier.retry,
            status: earlier.status,
            duration_ms: earlier.duration_ms,
            started_at: earlier.started_at,
        })
        .collect();
    Reported { attempt, history }
}
