//! What results make of the executions of their tests, worked out of what is known of
//! them: nothing is asked and nothing is written here, so it can be done before a
//! transaction begins.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::ids::{ExecutionId, PackId, TestCaseId};
use callboard_domain::ingest::TestCaseEntry;
use callboard_domain::test_state::{ExecutionFlags, Predecessors};
use callboard_store::executions::{ExecutionRow, RunPlace};
use callboard_store::runs::RunRow;
use callboard_store::test_cases::Resolved;

use crate::Result;
use crate::apply::attachments::PublishedFile;
use crate::apply::attempt_merge::{
    Group, Merged, ShardIdentity, has_evidence_of, merged, packs_of, repetition_of,
};
use crate::apply::execution_change::ExecutionChange;
use crate::apply::locators::Sites;
use crate::apply::project_lookups::ProjectLookups;

/// What a draft is made from.
#[derive(Clone, Copy)]
pub(crate) struct Basis<'a> {
    pub(crate) place: RunPlace,
    /// Of the slot the entries came through.
    pub(crate) shard: ShardIdentity,
    /// Of the project.
    pub(crate) known: &'a ProjectLookups,
    /// The tests.
    pub(crate) resolved: &'a Resolved,
    /// Evidence by index of the entry.
    pub(crate) evidence: &'a HashMap<usize, EvidenceSlice>,
    /// Files by index of the entry.
    pub(crate) files: &'a HashMap<usize, Vec<PublishedFile>>,
}

/// What is stored of the tests of a batch.
#[derive(Default)]
pub(crate) struct Stored {
    /// The executions that they have in the run, by test and browser project.
    pub(crate) executions: HashMap<(TestCaseId, i64), ExecutionRow>,
    /// What came before them in the run's own lane. It may have gone on when they are
    /// written: counting them compares them anew.
    pub(crate) predecessors: HashMap<TestCaseId, Predecessors>,
}

/// What a batch makes of executions. Groups are named by their place in it.
#[derive(Default)]
pub(crate) struct ExecutionPlan {
    /// The execution of each group; 0 for a new one that has no number yet.
    pub(crate) ids: Vec<ExecutionId>,
    /// What came before the tests.
    pub(crate) predecessors: HashMap<TestCaseId, Predecessors>,
    /// What is new or changed: the group, the index of the newest entry about it, and
    /// the change.
    pub(crate) changes: Vec<(usize, usize, ExecutionChange)>,
    /// What requests before the last one left of it, in the same way.
    pub(crate) passed: Vec<(usize, usize, ExecutionRow)>,
    /// Packs of the batch that rows point at.
    pub(crate) used_packs: BTreeSet<PackId>,
    /// Locators of the tests.
    pub(crate) sites: Sites,
    /// Entries whose requests count: index, group and test.
    pub(crate) capturing: Vec<(usize, usize, TestCaseId)>,
    /// The repetition of entries with files, by index.
    pub(crate) repetitions: HashMap<usize, u32>,
}

impl ExecutionPlan {
    /// Works it out.
    pub(crate) fn new(basis: Basis<'_>, stored: Stored, groups: &[Group]) -> Result<Self> {
        let Stored { mut executions, predecessors } = stored;
        let mut draft = Self { predecessors, ..Self::default() };
        draft.ids.reserve(groups.len());
        draft.changes.reserve(groups.len());
        let sent: BTreeSet<PackId> = basis.evidence.values().map(|slice| slice.pack).collect();
        for group in groups {
            let (case, browser) = basis.known.series(basis.resolved, group)?;
            let before = executions.remove(&(case, browser));
            let told = (basis.shard, basis.evidence);
            let made = merged(basis.place, case, browser, before.as_ref(), group, told)?;
            draft.take(basis, group, case, before, made, &sent);
        }
        Ok(draft)
    }

    fn take(
        &mut self,
        basis: Basis<'_>,
        group: &Group,
        case: TestCaseId,
        before: Option<ExecutionRow>,
        made: Merged,
        sent: &BTreeSet<PackId>,
    ) {
        let Merged { mut states, attempts } = made;
        let place = self.ids.len();
        self.ids.push(before.as_ref().map_or(ExecutionId(0), |row| row.id));
        let with_files = group.entries.iter().filter(|entry| basis.files.contains_key(&entry.index));
        self.repetitions.extend(with_files.map(|entry| (entry.index, repetition_of(&attempts, entry))));
        let Some((index, mut after)) = states.pop() else { return };
        if before.is_none() {
            after.reported_as =
                group.newest().and_then(|newest| basis.resolved.joined.get(&newest.identity)).copied();
        }
        // What is stored keeps the mark it was stored with, so that sending it again changes nothing.
        if before.is_none() && basis.known.is_aside(case) {
            after.flags = after.flags.set(ExecutionFlags::QUARANTINED, true);
        }
        let is_news = |entries: &&[TestCaseEntry]| {
            let last = entries.last().map(|entry| entry.index);
            last == Some(index) || states.iter().any(|(earlier, _)| last == Some(*earlier))
        };
        group.requests().filter(is_news).flatten().for_each(|entry| self.sites.take(case, entry));
        self.passed.extend(states.into_iter().map(|(index, state)| (place, index, state)));
        self.used_packs.extend(packs_of(&attempts, sent));
        let taken = group.entries.iter().filter(|entry| has_evidence_of(&attempts, entry, basis.evidence));
        self.capturing.extend(taken.map(|entry| (entry.index, place, case)));
        self.changes.push((place, index, ExecutionChange { before, after }));
    }

    /// Gives new executions, as they passed through their states too, the next numbers
    /// of their run, which are taken by that.
    ///
    /// # Errors
    /// [`callboard_store::StoreError::RunFull`] when the run cannot hold that many more.
    pub(crate) fn number(&mut self, run: &mut RunRow) -> Result<()> {
        let new = self.changes.iter().filter(|(_, _, change)| change.before.is_none()).count();
        if new > 0 {
            let added = self.changes.iter_mut().filter(|(_, _, change)| change.before.is_none());
            for (ordinal, (place, _, change)) in (run.take_ordinals(new)?..).zip(added) {
                change.after.id = ExecutionId::compose(run.id, ordinal);
                self.ids[*place] = change.after.id;
            }
        }
        for (place, _, state) in &mut self.passed {
            state.id = self.ids[*place];
        }
        Ok(())
    }

    /// Executions as each request left them that changed them, with the index of its
    /// newest entry about each.
    pub(crate) fn states(&self) -> impl Iterator<Item = (usize, &ExecutionRow)> {
        let passed = self.passed.iter().map(|(_, index, state)| (*index, state));
        passed.chain(self.changes.iter().map(|(_, index, change)| (*index, &change.after)))
    }
}
