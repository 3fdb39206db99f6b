//! A run in the hands of one transaction: its row is locked, its slots are
//! known, and everything that follows from a change is written when the
//! transaction is closed, in the one order in which all of them lock rows.
//!
//! Every transition of a run happens here, so what goes with it — counters,
//! feed, jobs — is never forgotten and never happens twice.

use std::collections::BTreeSet;

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::run_life::{EndReason, Patience, Slot, SlotState, Slots};
use callboard_domain::status::RunStatus;
use callboard_domain::suite_size::expected_tests;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;
use callboard_store::db::Session;
use callboard_store::feed::{self, NewEvent};
use callboard_store::lanes;
use callboard_store::projects::{self, Growth};
use callboard_store::rollups::{self, RunContribution};
use callboard_store::runs::slots::{self, SlotRow};
use callboard_store::runs::{self, RunDetails, RunRow, compared};
use callboard_store::{StoreError, executions, jobs, outbox};

use crate::transaction::follow_up::{Completion, Recompute};
use crate::transaction::life_events::{Change, life_events};
use crate::transaction::outcome::{outcome_of, spread};
use crate::transaction::run_errors::{self, SlotError};
use crate::transaction::run_events;
use crate::transaction::run_lanes::counting_lanes;
use crate::transaction::{baseline, search_words};
use crate::{LifeRefusal, Result};

/// How often a sign of life is written at most, ms.
pub(crate) const ACTIVITY_STEP_MS: i64 = 5_000;
/// How long the pipeline of a run waits that only seems to be over, ms.
const SECOND_THOUGHT_MS: i64 = 15 * 60 * 1000;

/// A locked run.
pub(crate) struct LockedRun {
    /// Its row, as it will be written.
    pub(crate) run: RunRow,
    /// Its slots in the order they were opened, as they will be written.
    pub(crate) slots: Vec<SlotRow>,
    /// The lanes it counts in, ascending.
    pub(crate) lanes: Vec<i64>,
    /// Whether it moved to lanes of a branch that was not known before.
    pub(crate) has_new_lanes: bool,
    /// Whether this transaction made it.
    pub(crate) is_fresh: bool,
    /// What the transaction adds to the project's counters.
    pub(crate) counter_deltas: Growth,
    found: RunRow,
    found_lanes: Vec<i64>,
    found_slots: Vec<SlotRow>,
    before: RunContribution,
    changed_slots: BTreeSet<SlotId>,
    described: Option<RunDetails>,
    events: Vec<NewEvent>,
    announcements: Vec<GlobalEvent>,
    domain_events: Vec<DomainEvent>,
}

/// An event of the feed of all runs, which is written last.
#[derive(Debug, Clone, Copy)]
struct GlobalEvent {
    kind: &'static str,
    /// Another run and its status; the run itself otherwise.
    of: Option<(RunId, RunStatus)>,
}

impl LockedRun {
    /// Locks a run and reads what belongs to it.
    pub(crate) async fn lock(session: &mut Session, project: ProjectId, id: RunId) -> Result<Self> {
        let (run, slots, lanes) = runs::lock_with_slots(session, project, id).await?;
        let lanes = counting_lanes(&run, &lanes)?;
        Ok(Self::new(run, slots, lanes, false))
    }

    /// Takes over a run that this transaction just made.
    pub(crate) async fn fresh(
        session: &mut Session,
        project: ProjectId,
        id: RunId,
        lanes: Vec<i64>,
    ) -> Result<Self> {
        let (run, slots, _) = runs::lock_with_slots(session, project, id).await?;
        let new_run = Some((id, run.order_at));
        let mut fresh = Self::new(run, slots, lanes, true);
        fresh.counter_deltas = Growth { runs: 1, new_run, ..Growth::default() };
        Ok(fresh)
    }

    fn new(run: RunRow, slots: Vec<SlotRow>, lanes: Vec<i64>, is_fresh: bool) -> Self {
        Self {
            before: contribution(&run),
            found: run.clone(),
            run,
            found_slots: slots.clone(),
            slots,
            found_lanes: lanes.clone(),
            lanes,
            has_new_lanes: false,
            is_fresh,
            counter_deltas: Growth::default(),
            changed_slots: BTreeSet::new(),
            described: None,
            events: Vec::new(),
            announcements: Vec::new(),
            domain_events: Vec::new(),
        }
    }

    /// Judges the slots as they stand.
    pub(crate) fn judge<T>(&self, judge: impl FnOnce(Slots<'_>) -> T) -> T {
        let all: Vec<Slot> = self.slots.iter().map(|row| row.slot.clone()).collect();
        judge(Slots { all: &all, shard_total: self.run.shard_total, is_rerun: self.run.rerun_of.is_some() })
    }

    /// A slot, to be changed.
    pub(crate) fn slot_mut(&mut self, id: SlotId) -> Result<&mut SlotRow> {
        self.changed_slots.insert(id);
        let row = self.slots.iter_mut().find(|row| row.id == id);
        row.ok_or(StoreError::Damaged("a token of a slot that is gone").into())
    }

    /// A slot.
    pub(crate) fn slot(&self, id: SlotId) -> Result<&SlotRow> {
        let row = self.slots.iter().find(|row| row.id == id);
        row.ok_or(StoreError::Damaged("a token of a slot that is gone").into())
    }

    /// Takes a slot that was stored in this transaction.
    pub(crate) fn add_slot(&mut self, row: SlotRow) {
        self.slots.push(row);
    }

    /// Details a client told later.
    pub(crate) fn describe(&mut self, details: RunDetails) {
        self.described = Some(details);
    }

    /// Adds an event to the run's feed.
    pub(crate) fn note(&mut self, event: NewEvent) {
        self.events.push(event);
    }

    /// Counts how many more failure clusters are open, and emits which opened.
    pub(crate) fn count_clusters(&mut self, open: i64, events: Vec<DomainEvent>) {
        self.counter_deltas.open_clusters += open;
        self.domain_events.extend(events);
    }

    /// Adds an event to the feed of all runs.
    pub(crate) fn announce(&mut self, kind: &'static str) {
        self.announcements.push(GlobalEvent { kind, of: None });
    }

    /// Takes over what is to be said about another run, so that it is said last.
    pub(crate) fn announce_for(&mut self, other: &mut Self) {
        for announcement in std::mem::take(&mut other.announcements) {
            let of = announcement.of.or(Some((other.run.id, other.run.status)));
            self.announcements.push(GlobalEvent { of, ..announcement });
        }
    }

    /// Lets a client of the run go on: a run that was only taken for over is
    /// opened again, and so is a slot that was taken for lost.
    pub(crate) fn resume_client(&mut self, slot: SlotId, now: Timestamp) -> Result<()> {
        match (self.run.status, self.run.end_reason) {
            (RunStatus::Initializing | RunStatus::Running | RunStatus::Finalizing, _) => {}
            (RunStatus::Interrupted | RunStatus::Cancelled, Some(reason)) if reason.is_guess() => {
                self.reopen("revived");
            }
            (RunStatus::Cancelled, _) => return Err(LifeRefusal::Cancelled.into()),
            _ => return Err(LifeRefusal::Finished.into()),
        }
        let row = self.slot_mut(slot)?;
        if matches!(row.slot.state, SlotState::Lost | SlotState::Setup) {
            row.slot.state = SlotState::Live;
            row.slot.begun_at.get_or_insert(now);
        }
        self.touch(slot, now)
    }

    /// Notes a sign of life.
    pub(crate) fn touch(&mut self, slot: SlotId, now: Timestamp) -> Result<()> {
        let row = self.slot_mut(slot)?;
        row.slot.last_activity_at = row.slot.last_activity_at.max(now);
        self.run.last_activity_at = self.run.last_activity_at.max(now);
        Ok(())
    }

    /// Takes those slots for lost whose clients were silent for too long;
    /// whether there are any.
    pub(crate) fn mark_stale_slots(&mut self, now: Timestamp, patience: &Patience) -> bool {
        let is_silent = |since: Timestamp, ms: i64| since.millis() <= now.millis() - ms;
        let mut any = false;
        for row in &mut self.slots {
            let is_lost = match row.slot.state {
                SlotState::Live => is_silent(row.slot.last_activity_at, patience.stale_ms),
                SlotState::Setup => is_silent(row.slot.opened_at, patience.setup_ms),
                SlotState::Finished | SlotState::Lost => false,
            };
            if is_lost {
                row.slot.state = SlotState::Lost;
                self.changed_slots.insert(row.id);
                any = true;
            }
        }
        any
    }

    /// A slot, or the oldest one, stops waiting for files, and a run that only
    /// waited for them is over; whether it did wait.
    pub(crate) fn end_wait(
        &mut self,
        of: Option<SlotId>,
        now: Timestamp,
        patience: &Patience,
    ) -> Result<bool> {
        let is_meant = |row: &&SlotRow| row.slot.waiting && of.is_none_or(|of| of == row.id);
        let Some(waiting) = self.slots.iter().find(is_meant).map(|row| row.id) else {
            return Ok(false);
        };
        self.slot_mut(waiting)?.slot.waiting = false;
        self.touch(waiting, now)?;
        self.recompute_status(now, None, patience);
        Ok(true)
    }

    /// Makes the run go on.
    pub(crate) fn reopen(&mut self, reason: &'static str) {
        self.run.status = RunStatus::Running;
        self.run.end_reason = None;
        self.run.superseded_by = None;
        self.run.pending_status = None;
        self.run.finished_at = None;
        self.run.duration_ms = None;
        self.note(run_events::run_status(&self.run, reason));
        if reason == "revived" {
            self.announce("run-revived");
        }
    }

    /// A client is done: its slot is finished. What a finished slot claimed
    /// stays; a run that ended by its results does not listen to new claims.
    pub(crate) fn finish_slot(
        &mut self,
        id: SlotId,
        claimed: Option<RunStatus>,
        duration_ms: Option<i64>,
        waiting: bool,
        now: Timestamp,
    ) -> Result<()> {
        let is_over = self.run.status.is_final();
        let row = self.slot_mut(id)?;
        let was_finished = row.slot.state == SlotState::Finished;
        if !(was_finished && is_over) {
            row.slot.claimed = match (row.slot.claimed, claimed) {
                (Some(one), Some(other)) if was_finished => {
                    Some(callboard_domain::run_life::worse(one, other))
                }
                (known, new) => new.or(known),
            };
        }
        row.slot.duration_ms = if was_finished {
            row.slot.duration_ms.max(duration_ms)
        } else {
            duration_ms.or(row.slot.duration_ms)
        };
        row.slot.state = SlotState::Finished;
        row.slot.waiting = waiting;
        row.slot.begun_at.get_or_insert(now);
        self.touch(id, now)
    }

    /// Brings the status in line with the slots. `ended_at` is when the run
    /// ends if it ends now.
    pub(crate) fn recompute_status(
        &mut self,
        now: Timestamp,
        ended_at: Option<Timestamp>,
        patience: &Patience,
    ) {
        if let Some(start) = self.judge(|slots| slots.start_time()) {
            self.run.start_time = start;
        }
        self.run.shards_finished = self.judge(|slots| slots.finished());
        let outcome = self.outcome();
        if self.run.status.is_final() {
            // More tests may have come than the run ended with.
            if matches!(self.run.status, RunStatus::Passed | RunStatus::Failed | RunStatus::TimedOut) {
                self.run.status = outcome;
            }
            return;
        }
        if !self.judge(|slots| slots.is_complete(now, patience)) {
            if self.run.status == RunStatus::Finalizing {
                self.reopen("re-opened");
            }
            return;
        }
        if self.judge(|slots| slots.any_waiting()) {
            self.run.pending_status = Some(outcome);
            if self.run.status != RunStatus::Finalizing {
                self.run.status = RunStatus::Finalizing;
                self.note(run_events::run_ended("run-finalizing", &self.run));
                self.announce("run-finalizing");
            }
            return;
        }
        let reason = (outcome == RunStatus::Interrupted)
            .then(|| if self.judge(|slots| slots.any_lost()) { EndReason::Stale } else { EndReason::Client });
        let claimed_ms = self.judge(|slots| slots.duration_ms());
        // Whoever was lost has said nothing of it.
        self.run.duration_ms = claimed_ms.or_else(|| reason.is_some().then(|| self.heard_of_ms()));
        self.end(outcome, reason, ended_at.unwrap_or(now));
        self.announce("run-finished");
    }

    /// How the run ends by what its clients claim and its tests say.
    fn outcome(&self) -> RunStatus {
        // Totals that were only claimed say nothing about how the run ended.
        let counted = if self.run.totals_from_rows { self.run.totals } else { Totals::default() };
        let has_errors = !self.errors().is_empty();
        self.judge(|slots| outcome_of(&slots, &counted, has_errors))
    }

    /// The errors of the clients that decide which belong to no test.
    fn errors(&self) -> Vec<SlotError> {
        if self.slots.iter().all(|row| row.errors.is_none()) {
            return Vec::new();
        }
        run_errors::of_slots(&self.slots, self.judge(|slots| slots.deciding()))
    }

    /// Notes the errors on the row, for lists.
    fn count_errors(&mut self) {
        let errors = self.errors();
        self.run.error_count = i64::try_from(errors.len()).unwrap_or(i64::MAX);
        self.run.first_error = errors.first().map(|first| first.error.headline());
    }

    /// The files were waited for long enough, or have come.
    pub(crate) fn finish_finalizing(&mut self, now: Timestamp) {
        let outcome = self.outcome();
        for row in &mut self.slots {
            if std::mem::take(&mut row.slot.waiting) {
                self.changed_slots.insert(row.id);
            }
        }
        self.run.duration_ms = self.judge(|slots| slots.duration_ms());
        let reason = (outcome == RunStatus::Interrupted).then_some(EndReason::Client);
        self.end(outcome, reason, now);
        self.announce("run-finished");
    }

    /// How long the run was heard of, ms.
    fn heard_of_ms(&self) -> i64 {
        (self.run.last_activity_at.millis() - self.run.start_time.millis()).max(0)
    }

    /// Nobody is there to end the run: what was live is lost.
    pub(crate) fn abort(&mut self, status: RunStatus, reason: EndReason, now: Timestamp) {
        for row in &mut self.slots {
            if matches!(row.slot.state, SlotState::Live | SlotState::Setup) {
                row.slot.state = SlotState::Lost;
                self.changed_slots.insert(row.id);
            }
        }
        self.run.duration_ms = Some(self.heard_of_ms());
        self.note(run_events::ended_by(status, reason));
        self.end(status, Some(reason), now);
        self.announce(if status == RunStatus::Cancelled { "run-cancelled" } else { "run-interrupted" });
    }

    fn end(&mut self, status: RunStatus, reason: Option<EndReason>, at: Timestamp) {
        self.run.status = status;
        self.run.end_reason = reason;
        self.run.pending_status = None;
        self.run.finished_at = Some(at);
        self.note(run_events::run_ended("run-finished", &self.run));
    }

    /// Writes everything and commits.
    pub(crate) async fn close(self, mut session: Session, now: Timestamp) -> Result<RunRow> {
        let run = self.write(&mut session, now).await?;
        session.commit().await?;
        Ok(run)
    }

    /// Writes everything. The order of the statements is the order in which
    /// all transactions lock.
    pub(crate) async fn write(mut self, session: &mut Session, now: Timestamp) -> Result<RunRow> {
        self.counter_deltas.executions += counted_in_project(&self.run) - counted_in_project(&self.found);
        for row in self.slots.iter().filter(|row| self.is_dirty(row)) {
            slots::update(session, self.run.project, row).await?;
        }
        if let Some(details) = &self.described {
            runs::describe(session, &self.run).await?;
            search_words::refresh_words(session, &self.found, &self.run).await?;
            runs::update_details(session, self.run.project, self.run.id, details).await?;
        }
        let after = contribution(&self.run);
        let has_ended = self.run.status.is_final() && self.run.status != self.found.status;
        let has_changed = self.before != after || self.run.tests_ms != self.found.tests_ms;
        if self.run.status.is_final() && self.run.totals_from_rows && (has_ended || has_changed) {
            let durations = executions::durations(session, self.run.project, self.run.id).await?;
            self.run.test_durations = spread(durations);
        }
        self.judge_extent(session, has_ended || has_changed).await?;
        self.enqueue(session, has_ended, has_changed, now).await?;
        self.domain_events.extend(life_events(Change {
            before: &self.found,
            after: &self.run,
            is_new: self.is_fresh,
            has_changed,
            unfinished_shards: self.judge(|slots| slots.unfinished()),
        }));
        outbox::append(session, self.run.project, &self.domain_events, now).await?;
        self.count(session, &after).await?;
        self.run.feed_seq = feed::append(
            session,
            self.run.project,
            self.run.id,
            self.run.feed_seq,
            std::mem::take(&mut self.events),
            now,
        )
        .await?;
        self.run.updated_at = now;
        self.count_errors();
        runs::update(session, &self.run, &self.found).await?;
        if self.is_fresh || self.has_new_lanes {
            lanes::touch(session, self.run.project, &self.lanes, self.run.order_at).await?;
        }
        for GlobalEvent { kind, of } in std::mem::take(&mut self.announcements) {
            let (run, status) = of.unwrap_or((self.run.id, self.run.status));
            feed::publish(session, kind, run, self.run.project, Some(status), now).await?;
        }
        Ok(self.run)
    }

    /// Whether a slot has to be written: not for a sign of life alone that is
    /// hardly newer than the one that is stored.
    fn is_dirty(&self, row: &SlotRow) -> bool {
        let found = self.found_slots.iter().find(|found| found.id == row.id);
        self.changed_slots.contains(&row.id)
            && found.is_none_or(|found| {
                let since = found.slot.last_activity_at;
                let is_late = row.slot.last_activity_at.millis() - since.millis() >= ACTIVITY_STEP_MS;
                let known = Slot { last_activity_at: since, ..row.slot.clone() };
                is_late
                    || (&known, &row.metadata_ci, row.worked_in, &row.errors)
                        != (&found.slot, &found.metadata_ci, found.worked_in, &found.errors)
            })
    }

    /// Notes how the run compares and which clusters it was the first to show,
    /// and counts that on its day.
    pub(crate) async fn compare(&mut self, session: &mut Session) -> Result<()> {
        let before = contribution(&self.run);
        baseline::note(session, &mut self.run).await?;
        let after = contribution(&self.run);
        if before != after {
            let (day, is_full) = (self.run.order_at.day(), self.run.is_full);
            rollups::add_project_day(session, self.run.project, &self.lanes, day, is_full, &before, &after)
                .await?;
            self.before.new_regressions += after.new_regressions - before.new_regressions;
            self.before.new_flaky += after.new_flaky - before.new_flaky;
            self.before.new_clusters += after.new_clusters - before.new_clusters;
        }
        Ok(())
    }

    /// Decides whether a run that claims to be full counts as one: not when it
    /// passed with far fewer tests than the full runs before it. One that failed
    /// counts as it says, so that no failure is left out.
    async fn judge_extent(&mut self, session: &mut Session, has_news: bool) -> Result<()> {
        let run = &mut self.run;
        if !run.claims_full() || (run.status.is_final() && !has_news) {
            return Ok(());
        }
        run.expected_tests = None;
        if run.status == RunStatus::Passed && run.totals_from_rows {
            let earlier = compared::suite_sizes(session, run).await?;
            run.expected_tests = expected_tests(run.totals.total_tests, &earlier);
        }
        run.is_full = run.expected_tests.is_none();
        Ok(())
    }

    /// Brings the counters of the project up to date. What the run counted
    /// before is taken back where that was: in other lanes, or among the full
    /// runs, when more is known of it now.
    async fn count(&self, session: &mut Session, after: &RunContribution) -> Result<()> {
        let (run, project) = (&self.run, self.run.project);
        let (day, before, nothing) = (run.order_at.day(), &self.before, RunContribution::default());
        let (there, here) = ((&self.found_lanes, self.found.is_full), (&self.lanes, run.is_full));
        let changes = if there == here {
            vec![(here, before, after)]
        } else {
            vec![(there, before, &nothing), (here, &nothing, after)]
        };
        for ((lanes, is_full), before, after) in changes {
            if before != after {
                rollups::add_project_day(session, project, lanes, day, is_full, before, after).await?;
            }
        }
        if self.counter_deltas != Growth::default() {
            projects::count(session, project, self.counter_deltas).await?;
        }
        if run.is_full && run.status.is_final() && self.before != *after {
            projects::set_latest_full(session, project, run.id, run.order_at).await?;
        }
        if self.found.is_full && self.found.status.is_final() && !run.is_full {
            projects::replace_latest_full(session, project, run.id).await?;
        }
        Ok(())
    }

    /// The work that follows the end of a run, exactly once; what only seems
    /// to be an end waits for a second thought.
    async fn enqueue(
        &self,
        session: &mut Session,
        has_ended: bool,
        has_changed: bool,
        now: Timestamp,
    ) -> Result<()> {
        let (project, run) = (self.run.project, self.run.id);
        let completion = Completion { project, run };
        if !self.run.status.is_final() {
            if self.found.status.is_final() {
                jobs::forget_unclaimed(session, &completion.key()).await?;
            }
            return Ok(());
        }
        if !has_ended && !has_changed {
            return Ok(());
        }
        if has_ended && self.run.status != RunStatus::Cancelled {
            let delay = match self.run.end_reason {
                Some(reason) if reason.is_silence() => SECOND_THOUGHT_MS,
                _ => 0,
            };
            let due = Timestamp(now.millis() + delay);
            if jobs::enqueue_at(session, &completion.key(), Some(project), &completion, due, now).await? {
                return Ok(());
            }
        }
        let recompute = Recompute { project, run };
        jobs::enqueue(session, &recompute.key(self.run.version), Some(project), &recompute, now).await?;
        Ok(())
    }
}

/// Executions of a run among those of its project: all of one that is over,
/// whether their tests have counted them or not.
pub(crate) const fn counted_in_project(run: &RunRow) -> i64 {
    if run.status.is_final() { run.next_ordinal - 1 } else { run.counted_to }
}

/// What a run contributes to its day: nothing before it is final.
pub(crate) fn contribution(run: &RunRow) -> RunContribution {
    if !run.status.is_final() {
        return RunContribution::default();
    }
    RunContribution {
        runs: 1,
        runs_passed: i64::from(run.status == RunStatus::Passed),
        totals: run.totals,
        run_ms: run.duration_ms.unwrap_or(0),
        tests_ms: run.tests_ms,
        wasted_ms: run.wasted_ms,
        lost_ms: run.lost_ms,
        new_regressions: run.compared.map_or(0, |compared| compared.new_regressions),
        new_flaky: run.compared.map_or(0, |compared| compared.new_flaky),
        new_clusters: run.new_clusters.unwrap_or(0),
    }
}
