//! One transaction's worth of test results: from entries to execution rows,
//! rollups and totals. What is already known changes nothing, so every resend
//! is free of effect.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::endpoints::Captured;
use callboard_domain::ids::{ExecutionId, PackId, ProjectId, SlotId, TestCaseId};
use callboard_domain::ingest::{IdentityHash, TestCaseEntry};
use callboard_domain::test_state::{ExecutionFlags, Predecessors};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionRow, RunPlace};
use callboard_store::lanes::{self, BrowserProject};
use callboard_store::rollups::EndpointPlace;
use callboard_store::runs::RunRow;
use callboard_store::runs::slots::{self, SlotRow};
use callboard_store::test_cases::{self, Resolved, TestIdentity, TestMeta};
use callboard_store::{StoreError, rollups};

use super::changing::write;
use super::clusters::Failures;
use super::files::{PublishedFile, link_all, lock_contents};
use super::locators::Sites;
use super::merging::{Group, Merged, has_evidence_of, merged, packs_of, repetition_of};
use super::rollup::Change;
use crate::{Context, Result};

/// What the chunks of one request need to know of their project. It is read
/// before the transactions that use it, which nobody should wait for longer
/// than needed.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Ids of browser projects by name.
    browsers: HashMap<String, i64>,
    /// Tests in quarantine, ascending.
    aside: Vec<TestCaseId>,
}

impl Known {
    /// Reads it. Browser projects of the groups that are not known are made, each in
    /// a short transaction: one that is being made holds up everyone who makes
    /// another.
    pub(super) async fn read(
        ctx: &Context,
        project: ProjectId,
        groups: &[Group],
        now: Timestamp,
    ) -> Result<Self> {
        if groups.is_empty() {
            return Ok(Self::default());
        }
        let mut session = ctx.store.db().read().await?;
        let (browsers, aside) = lanes::browsers_and_quarantine(&mut session, project, now).await?;
        drop(session);
        let mut known = Self::of(browsers, aside);
        for (name, browser_name) in known.missing(groups) {
            let mut session = ctx.store.db().begin().await?;
            let id = lanes::browser(&mut session, project, name, browser_name).await?;
            session.commit().await?;
            known.browsers.insert(name.to_owned(), id);
        }
        Ok(known)
    }

    fn of(browsers: Vec<BrowserProject>, aside: Vec<TestCaseId>) -> Self {
        Self { browsers: browsers.into_iter().map(|browser| (browser.name, browser.id)).collect(), aside }
    }

    /// The test and the browser project of a group.
    fn series(&self, resolved: &Resolved, group: &Group) -> Result<(TestCaseId, i64)> {
        let case = group.newest().and_then(|newest| resolved.ids.get(&newest.identity));
        let browser = group.newest().and_then(|newest| self.browsers.get(newest.browser_project.as_str()));
        let case = *case.ok_or(StoreError::Damaged("an unresolved test case"))?;
        Ok((case, browser.copied().unwrap_or_default()))
    }

    /// The browser projects of some groups that are not known, with their browsers.
    fn missing<'g>(&self, groups: &'g [Group]) -> BTreeMap<&'g str, Option<&'g str>> {
        let mut missing = BTreeMap::new();
        for entry in groups.iter().filter_map(Group::newest) {
            if !self.browsers.contains_key(&entry.browser_project) {
                missing.entry(entry.browser_project.as_str()).or_insert(entry.browser_name.as_deref());
            }
        }
        missing
    }
}

/// What was looked up and worked out before the transaction that folds a batch, so
/// that it takes less time: the ids of the tests, all of which are known, what came
/// before them, and their executions. None of them has a result in the run.
pub(super) struct Foreseen {
    resolved: Resolved,
    before: HashMap<TestCaseId, Predecessors>,
    /// By group.
    made: Vec<Merged>,
    /// The generation they were made for.
    generation: u32,
}

impl Foreseen {
    /// Looks it up; `None` where something has to be made or changed. As long as the
    /// run has no newer version, no result of the tests has come into it. What came
    /// before them may have gone on: counting them compares them anew.
    pub(super) async fn read(
        session: &mut Session,
        run: &RunRow,
        slot: SlotId,
        groups: &[Group],
        known: &Known,
        evidence: &HashMap<usize, EvidenceSlice>,
    ) -> Result<Option<Self>> {
        if groups.is_empty() {
            return Ok(None);
        }
        let resolved = test_cases::resolved(session, run.project, &identities(groups), run.order_at).await?;
        let Some(resolved) = resolved else { return Ok(None) };
        let (place, cases) = (place_of(run), resolved.ids.values().map(|id| id.get()).collect());
        let (rows, before) = executions::of_batch_with_predecessors(session, place, cases).await?;
        if !rows.is_empty() {
            return Ok(None);
        }
        let slots = slots::of_run(session, run.project, run.id).await?;
        let Some(generation) = slots.iter().find(|row| row.id == slot).map(generation_of) else {
            return Ok(None);
        };
        let make = |group: &Group| {
            let (case, browser) = known.series(&resolved, group)?;
            merged(place, case, browser, None, group, (generation, evidence))
        };
        let made = groups.iter().map(make).collect::<Result<_>>()?;
        Ok(Some(Self { resolved, before, made, generation }))
    }
}

/// The generation of a slot, as attempts note it.
pub(super) fn generation_of(row: &SlotRow) -> u32 {
    u32::try_from(row.slot.generation).unwrap_or_default()
}

/// What a chunk is folded into.
pub(super) struct Target<'a> {
    /// The run, locked; its totals are brought up to date.
    pub(super) run: &'a mut RunRow,
    /// All lanes the run counts in.
    pub(super) lanes: &'a [i64],
    /// Whether the run was made in this transaction and has no row yet.
    pub(super) is_fresh: bool,
    /// Generation of the slot the entries came through; 0 outside shards.
    pub(super) generation: u32,
    /// Of the project.
    pub(super) known: &'a Known,
    /// What still holds of what was looked up before.
    pub(super) foreseen: Option<Foreseen>,
    /// Evidence by index of the entry.
    pub(super) evidence: &'a HashMap<usize, EvidenceSlice>,
    /// Requests by index of the entry.
    pub(super) requests: &'a Captured,
    /// Files by index of the entry.
    pub(super) files: &'a HashMap<usize, Vec<PublishedFile>>,
    /// Clock.
    pub(super) now: Timestamp,
}

/// What a chunk added.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) new_test_cases: i64,
    pub(super) executions: Vec<(usize, ExecutionId)>,
    /// Rows that are new or changed, as each request left them, with the index of its
    /// newest entry about each.
    pub(super) changed: Vec<(usize, ExecutionRow)>,
    /// The packs of this submission that rows now point at.
    pub(super) used_packs: BTreeSet<PackId>,
    /// The pack of the submission, once rows point at it.
    pub(super) pack: Option<PackId>,
    /// How many more clusters of failures are open.
    pub(super) open_clusters: i64,
}

/// Folds some groups into the run.
pub(super) async fn fold(session: &mut Session, target: &mut Target<'_>, groups: &[Group]) -> Result<Folded> {
    if groups.is_empty() {
        return Ok(Folded::default());
    }
    let project = target.run.project;
    let place = place_of(target.run);
    let foreseen = target.foreseen.take().filter(|foreseen| foreseen.generation == target.generation);
    let (resolved, before, made) = match foreseen {
        Some(Foreseen { resolved, before, made, .. }) => (resolved, Some(before), made),
        None => (
            test_cases::resolve(session, project, identities(groups), target.run.order_at, target.now)
                .await?,
            None,
            Vec::new(),
        ),
    };
    let failures = Failures::of(groups);
    failures.begin(session, target.run, target.is_fresh).await?;
    let Stored { rows: mut stored, before: predecessors } = match before {
        Some(before) => Stored { rows: HashMap::new(), before },
        None => stored_rows(session, target, place, resolved.ids.values()).await?,
    };

    let Known { aside, .. } = target.known;
    let (mut changes, mut passed) = (Vec::new(), Vec::new());
    let mut used_packs = BTreeSet::new();
    let sent: BTreeSet<PackId> = target.evidence.values().map(|slice| slice.pack).collect();
    let mut rows = Vec::with_capacity(groups.len());
    let mut sites = Sites::default();
    let mut capturing = Vec::new();
    let mut repetitions = HashMap::new();
    let mut made = made.into_iter();
    for group in groups {
        let made = made.next();
        let Some(newest) = group.newest() else { continue };
        let (case, browser) = target.known.series(&resolved, group)?;
        let before = stored.remove(&(case, browser));
        let told = (target.generation, target.evidence);
        let made = made.map_or_else(|| merged(place, case, browser, before.as_ref(), group, told), Ok)?;
        let Merged { mut states, attempts } = made;
        let with_files = group.entries.iter().filter(|entry| target.files.contains_key(&entry.index));
        repetitions.extend(with_files.map(|entry| (entry.index, repetition_of(&attempts, entry))));
        rows.push((group, before.as_ref().map_or(ExecutionId(0), |row| row.id)));
        if let Some((index, mut after)) = states.pop() {
            // What is stored keeps the mark it was stored with, so that sending it again changes nothing.
            if before.is_none() && aside.binary_search(&case).is_ok() {
                after.flags = after.flags.set(ExecutionFlags::QUARANTINED, true);
            }
            let is_news = |entries: &&[TestCaseEntry]| {
                let last = entries.last().map(|entry| entry.index);
                last == Some(index) || states.iter().any(|(earlier, _)| last == Some(*earlier))
            };
            group.requests().filter(is_news).flatten().for_each(|entry| sites.take(case, entry));
            passed.extend(states.into_iter().map(|(index, state)| (rows.len() - 1, index, state)));
            used_packs.extend(packs_of(&attempts, &sent));
            let taken =
                group.entries.iter().filter(|entry| has_evidence_of(&attempts, entry, target.evidence));
            capturing.extend(taken.map(|entry| (entry.index, rows.len() - 1, case)));
            let file_path = newest.file_path.clone();
            changes.push((rows.len() - 1, index, Change { before, after, file_path }));
        }
    }

    let new = changes.iter().filter(|(_, _, change)| change.before.is_none()).count();
    let mut folded = Folded {
        new_test_cases: i64::try_from(resolved.created).unwrap_or(i64::MAX),
        executions: Vec::new(),
        changed: Vec::new(),
        used_packs,
        pack: None,
        open_clusters: 0,
    };
    if new > 0 {
        let added = changes.iter_mut().filter(|(_, _, change)| change.before.is_none());
        for (ordinal, (row, _, change)) in (target.run.take_ordinals(new)?..).zip(added) {
            change.after.id = ExecutionId::compose(target.run.id, ordinal);
            rows[*row].1 = change.after.id;
        }
    }
    let (newest, mut changes): (Vec<usize>, Vec<Change>) =
        changes.into_iter().map(|(_, newest, change)| (newest, change)).unzip();
    if !changes.is_empty() {
        let capturing = capturing.into_iter().map(|(entry, row, case)| (entry, rows[row].1, case));
        let calls = target.requests.calls(capturing);
        let rows = changes.iter_mut().map(|change| &mut change.after);
        failures.assign(session, target.run, rows, target.now).await?;
        folded.open_clusters = write(session, target, &mut changes, &predecessors).await?;
        sites.write(session, target.run).await?;
        let place = EndpointPlace { project, run: place.run, day: place.day };
        rollups::add_endpoints(session, place, target.is_fresh, calls).await?;
        note_browsers(target.run, groups);
    }
    let entries = rows.iter().flat_map(|(group, _)| &group.entries);
    let files: Vec<&PublishedFile> =
        entries.filter_map(|entry| target.files.get(&entry.index)).flatten().collect();
    lock_contents(session, project, &files).await?;
    let passed =
        passed.into_iter().map(|(row, index, state)| (index, ExecutionRow { id: rows[row].1, ..state }));
    folded.changed =
        passed.chain(newest.into_iter().zip(changes.into_iter().map(|change| change.after))).collect();
    for (group, id) in rows {
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

/// Where the rows of a run belong.
pub(super) fn place_of(run: &RunRow) -> RunPlace {
    RunPlace { project: run.project, run: run.id, day: run.order_at.day(), lane_id: run.lane_id }
}

fn identities(groups: &[Group]) -> Vec<TestIdentity> {
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

/// What is known of the tests of a batch.
struct Stored {
    /// Their executions in the run.
    rows: HashMap<(TestCaseId, i64), ExecutionRow>,
    /// What came before in the run's own lane.
    before: HashMap<TestCaseId, Predecessors>,
}

async fn stored_rows(
    session: &mut Session,
    target: &Target<'_>,
    place: RunPlace,
    cases: impl Iterator<Item = &TestCaseId>,
) -> Result<Stored> {
    let cases: Vec<i64> = cases.map(|id| id.get()).collect();
    if target.is_fresh {
        let before = rollups::predecessors(session, place.project, place.lane_id, cases).await?;
        return Ok(Stored { rows: HashMap::new(), before });
    }
    let (rows, before) = executions::of_batch_with_predecessors(session, place, cases).await?;
    let rows = rows.into_iter().map(|row| ((row.test_case, row.browser_id), row)).collect();
    Ok(Stored { rows, before })
}

fn note_browsers(run: &mut RunRow, groups: &[Group]) {
    for entry in groups.iter().filter_map(Group::newest) {
        if !entry.browser_project.is_empty() && !run.browsers.contains(&entry.browser_project) {
            run.browsers.push(entry.browser_project.clone());
        }
    }
    run.browsers.sort_unstable();
}
