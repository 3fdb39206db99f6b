//! Which run and slot a call that opens one belongs to: its own when it is
//! repeated, one that its shard or re-run joins, or a new one.
//!
//! The decision is taken twice: once without locks, so that lanes can be made
//! beforehand and evidence written under the right name, and once more under
//! the lock of the group. When the two differ, the call starts over.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::ingest::RunFields;
use callboard_domain::run_life::{
    EndReason, Joining, Newest, Patience, SUPERSEDE_AFTER_MS, Slot, SlotState, Slots,
};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::db::Session;
use callboard_store::ids::{self, Kind};
use callboard_store::runs::groups::{self, GroupKey};
use callboard_store::runs::slots::{self, FoundSlot, SlotKeys, SlotRow};
use callboard_store::runs::{self, NewRun, RunDetails};

use crate::apply::shard_retry;
use crate::resolve::run_metadata::{self, json};
use crate::transaction::run_lanes::{Lanes, open_lanes};
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, Result};

/// How old a start may be for a recovered body to belong to it, ms.
const RECOVERY_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// How far a batch's start may be from the moment its tests began here, ms.
const BEGUN_ABOUT_MS: i64 = 60_000;

/// What is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenKind {
    /// A run before its global set-up.
    Setup,
    /// A run that is fed.
    Start,
    /// A run, or a shard of one, that comes whole.
    Batch,
}

/// A call that opens a slot.
pub(crate) struct Opening<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) project: ProjectId,
    pub(crate) fields: &'a RunFields,
    pub(crate) start: Timestamp,
    pub(crate) keys: SlotKeys,
    pub(crate) purpose: OpenKind,
    pub(crate) now: Timestamp,
}

/// Where a call belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunTarget {
    /// It is known: its slot exists.
    Known(FoundSlot),
    /// Its shard, or its repetition, is part of this run.
    Joins(RunId),
    /// To a run of its own, which may repeat another or shards of it.
    New {
        /// The run that it repeats.
        rerun_of: Option<RunId>,
    },
}

impl RunTarget {
    /// The run, when it exists.
    pub(crate) const fn run(self) -> Option<RunId> {
        match self {
            Self::Known(found) => Some(found.run),
            Self::Joins(run) => Some(run),
            Self::New { .. } => None,
        }
    }
}

/// A slot that is open.
pub(crate) struct Opened {
    /// Its run, locked.
    pub(crate) locked: LockedRun,
    /// The slot.
    pub(crate) slot: SlotId,
    /// Whether the slot, and so the call, was known.
    pub(crate) is_known: bool,
}

impl Opening<'_> {
    /// The shards of one run find each other by this.
    fn group(&self) -> Option<GroupKey> {
        let shard = self.fields.shard?;
        let instance_id = self.fields.instance_id.clone()?;
        Some(GroupKey { project: self.project, instance_id, shard_total: i64::from(shard.total) })
    }

    pub(super) fn shard_index(&self) -> Option<i64> {
        self.fields.shard.and_then(|shard| shard.index).map(i64::from)
    }

    fn patience(&self) -> &Patience {
        &self.ctx.patience
    }

    /// Looks where the call belongs, without locking anything.
    pub(crate) async fn look(&self, session: &mut Session) -> Result<RunTarget> {
        if let Some(found) = self.known(session).await? {
            return Ok(RunTarget::Known(found));
        }
        match self.group() {
            Some(group) => Ok(self.resolve_in_group(session, group, false).await?.0),
            None => self.resolve_alone(session).await,
        }
    }

    async fn known(&self, session: &mut Session) -> Result<Option<FoundSlot>> {
        if let Some(key) = &self.keys.start
            && let Some(found) = slots::by_start_key(session, self.project, key).await?
        {
            return Ok(Some(found));
        }
        if self.purpose != OpenKind::Batch || self.fields.client_run_id.is_some() {
            return Ok(None);
        }
        if self.fields.instance_id.is_some()
            && self.fields.shard.is_none()
            && let Some(key) = &self.keys.recovery
            && let Some(found) = slots::by_start_key(session, self.project, key).await?
        {
            // The same body came before, without its grouping key.
            return Ok(Some(found));
        }
        match (&self.fields.instance_id, &self.keys.recovery) {
            (None, Some(key)) => {
                let after = Timestamp(self.now.millis() - RECOVERY_MS);
                Ok(slots::by_recovery_key(session, self.project, key, after).await?)
            }
            (Some(instance), _) if self.fields.shard.is_none() => {
                let (project, start) = (self.project, self.start);
                let begun = slots::begun_about(session, project, instance, start, BEGUN_ABOUT_MS).await?;
                if begun.is_some() {
                    return Ok(begun);
                }
                // A batch of a client that registered its run before its set-up and never began it.
                let lasted = self.fields.duration_ms.unwrap_or(0).max(BEGUN_ABOUT_MS);
                let window = (self.patience().setup_ms, lasted);
                Ok(slots::registered_before(session, project, instance, start, window).await?)
            }
            _ => Ok(None),
        }
    }

    /// Decides about a shard among those of its group, with the group it is then
    /// the newest of.
    async fn resolve_in_group(
        &self,
        session: &mut Session,
        group: GroupKey,
        is_locking: bool,
    ) -> Result<(RunTarget, GroupKey)> {
        let newest = self.newest(session, &group, is_locking).await?;
        if let Some(place) = self.resolve_next_to(session, newest).await? {
            return Ok((place, group));
        }
        // Kept for long and sent late, it finds those that it ran with by the time at which they began: in its own span
        // of time or in the one whose end is nearer.
        let wide = self.patience().shard_join_ms.max(1);
        let (own, within) = (self.start.millis().div_euclid(wide), self.start.millis().rem_euclid(wide));
        let next = if within < wide / 2 { own - 1 } else { own + 1 };
        let of = |span: i64| GroupKey {
            instance_id: format!("{}\u{1f}{span}", group.instance_id),
            ..group.clone()
        };
        let mut newest = BTreeMap::new();
        for span in BTreeSet::from([own, next]) {
            newest.insert(span, self.newest(session, &of(span), is_locking).await?);
        }
        for span in [own, next] {
            let run = newest.get(&span).copied().flatten();
            if let Some(run) = run
                && let Some(row) = runs::get(session, self.project, run).await?
                && (row.start_time.millis() - self.start.millis()).abs() <= wide
                && let Some(place) = self.resolve_next_to(session, Some(run)).await?
            {
                return Ok((place, of(span)));
            }
        }
        Ok((RunTarget::New { rerun_of: None }, of(own)))
    }

    async fn newest(
        &self,
        session: &mut Session,
        group: &GroupKey,
        is_locking: bool,
    ) -> Result<Option<RunId>> {
        Ok(if is_locking {
            groups::lock(session, group, self.now).await?
        } else {
            groups::newest(session, group).await?
        })
    }

    /// Decides about a shard beside the newest run of a group; `None` when it
    /// belongs to an earlier one.
    async fn resolve_next_to(
        &self,
        session: &mut Session,
        newest: Option<RunId>,
    ) -> Result<Option<RunTarget>> {
        let alone = Some(RunTarget::New { rerun_of: None });
        let Some(newest) = newest else { return Ok(alone) };
        let Some(run) = runs::get(session, self.project, newest).await? else { return Ok(alone) };
        let rows = slots::of_run(session, self.project, newest).await?;
        let all: Vec<Slot> = rows.into_iter().map(|row| row.slot).collect();
        let slots = Slots { all: &all, shard_total: run.shard_total, is_rerun: run.rerun_of.is_some() };
        let known = Newest {
            status: run.status,
            end_reason: run.end_reason,
            last_activity_at: run.last_activity_at,
            slots,
        };
        let batch_start = (self.purpose == OpenKind::Batch).then_some(self.start);
        let (index, attempt) = (self.shard_index(), self.job_attempt());
        Ok(match known.joined_by(index, batch_start, attempt, self.now, self.patience()) {
            Joining::Join => Some(RunTarget::Joins(newest)),
            Joining::Rerun => {
                // Twice in one attempt of a job are two commands.
                let index = index.unwrap_or_else(|| known.slots.free_index());
                let is_other = attempt.is_some_and(|attempt| known.slots.has_attempt(index, attempt));
                let joins = (!is_other || self.runs_last_failed()) && self.joins(session, &run).await?;
                Some(if joins { RunTarget::Joins(newest) } else { RunTarget::New { rerun_of: Some(newest) } })
            }
            Joining::Apart => alone,
            Joining::Earlier => None,
        })
    }

    /// The lanes of the run, made beforehand where they are missing: a lane
    /// that is being made holds up everyone who makes another.
    pub(crate) async fn lanes(&self, place: RunTarget) -> Result<Lanes> {
        let (branch, environment, at) = match place.run() {
            Some(run) => {
                let row = runs::get(&mut self.ctx.store.db().read().await?, self.project, run).await?;
                let row = row.ok_or(StoreError::Damaged("a slot without a run"))?;
                (row.branch, row.environment, row.order_at)
            }
            None => {
                let branch = self.fields.origin.branch.clone().unwrap_or_default();
                (branch, self.fields.environment.clone().unwrap_or_default(), self.start.min(self.now))
            }
        };
        open_lanes(&self.ctx.store, self.project, branch, environment, at).await
    }

    /// Opens the slot; `None` when meanwhile the call belongs elsewhere than
    /// `place` says: then the transaction is to be dropped.
    pub(crate) async fn enter(
        &self,
        session: &mut Session,
        place: RunTarget,
        lanes: &Lanes,
        reserved: Option<RunId>,
    ) -> Result<Option<Opened>> {
        let mut group = self.group();
        if let (Some(of_clients), RunTarget::Joins(_) | RunTarget::New { .. }) = (&group, place) {
            let (again, own) = self.resolve_in_group(session, of_clients.clone(), true).await?;
            if again != place || self.known(session).await?.is_some() {
                return Ok(None);
            }
            group = Some(own);
        }
        match place {
            RunTarget::Known(found) => {
                if let (OpenKind::Batch, Some(key)) = (self.purpose, self.keys.start) {
                    slots::name(session, self.project, found.slot, key).await?;
                }
                self.enter_known(session, found).await.map(Some)
            }
            RunTarget::Joins(run) => self.join(session, run).await,
            RunTarget::New { rerun_of } => {
                self.create(session, lanes, reserved, group.as_ref(), rerun_of).await
            }
        }
    }

    async fn enter_known(&self, session: &mut Session, found: FoundSlot) -> Result<Opened> {
        let mut locked = LockedRun::lock(session, self.project, found.run).await?;
        match self.purpose {
            OpenKind::Setup => {
                let row = locked.slot_mut(found.slot)?;
                if row.slot.state == SlotState::Setup {
                    row.slot.opened_at = self.now;
                }
                locked.touch(found.slot, self.now)?;
            }
            OpenKind::Start => {
                let row = locked.slot_mut(found.slot)?;
                if row.slot.state == SlotState::Lost {
                    // Whoever starts in the place of a lost client reports errors of its own.
                    row.errors = None;
                }
                let ended_by_guess = locked.run.end_reason.is_some_and(EndReason::is_guess);
                if !locked.run.status.is_final() || ended_by_guess {
                    self.set_running(&mut locked);
                    locked.resume_client(found.slot, self.now)?;
                }
            }
            OpenKind::Batch => {
                let may_go_on = match locked.run.status {
                    RunStatus::Interrupted => true,
                    RunStatus::Cancelled => locked.run.end_reason.is_some_and(EndReason::is_guess),
                    RunStatus::Initializing => {
                        self.set_running(&mut locked);
                        false
                    }
                    _ => false,
                };
                if may_go_on {
                    locked.reopen("revived");
                }
                locked.touch(found.slot, self.now)?;
            }
        }
        Ok(Opened { locked, slot: found.slot, is_known: true })
    }

    /// The first tests of a run that was only set up.
    fn set_running(&self, locked: &mut LockedRun) {
        if locked.run.status == RunStatus::Initializing {
            locked.run.status = RunStatus::Running;
            locked.note(crate::transaction::run_events::run_status(&locked.run, "started"));
            locked.announce("run-started");
        }
    }

    async fn join(&self, session: &mut Session, run: RunId) -> Result<Option<Opened>> {
        let mut locked = LockedRun::lock(session, self.project, run).await?;
        // What is tried again after a crash takes the place of the one that crashed, though other shards keep the run alive.
        if locked.mark_stale_slots(self.now, self.patience()) {
            shard_retry::take_places(session, &mut locked, self.now).await?;
        }
        let index = self.shard_index().unwrap_or_else(|| locked.judge(|slots| slots.free_index()));
        let (attempt, is_alone) = (self.job_attempt(), self.fields.shard.is_none());
        let is_other = attempt.is_some_and(|own| locked.judge(|slots| slots.has_attempt(index, own)));
        if is_alone && is_other && !self.runs_last_failed() && self.fields.rerun_of.is_none() {
            // Another command of the job was faster.
            return Ok(None);
        }
        let generation = locked.judge(|slots| slots.generation_of_new(index, attempt, is_alone));
        if generation.is_inserted {
            shard_retry::make_room(session, &mut locked, index, generation.number, self.now).await?;
        }
        let ordinal = locked.judge(|slots| slots.next_ordinal());
        let slot = self.add_slot(session, &mut locked, index, generation.number, ordinal).await?;
        let Some(slot) = slot else { return Ok(None) };
        if locked.run.status.is_final() {
            locked.reopen("revived");
        }
        if self.purpose != OpenKind::Setup {
            self.set_running(&mut locked);
        }
        locked.touch(slot, self.now)?;
        Ok(Some(Opened { locked, slot, is_known: false }))
    }

    async fn create(
        &self,
        session: &mut Session,
        lanes: &Lanes,
        reserved: Option<RunId>,
        group: Option<&GroupKey>,
        rerun_of: Option<RunId>,
    ) -> Result<Option<Opened>> {
        let (id, slot) = match reserved {
            Some(id) => (id, SlotId(ids::allocate_one(session, Kind::Slot).await?)),
            None => {
                let [id, slot] = ids::allocate_each(session, [Kind::Run, Kind::Slot]).await?;
                (RunId(id), SlotId(slot))
            }
        };
        let shard_total = group.map(|group| group.shard_total);
        let index = shard_total.map_or(0, |_| self.shard_index().unwrap_or(1));
        let row = self.slot_row(slot, id, index, 0, 0);
        if !slots::insert(session, self.project, &row, self.slot_keys()).await? {
            return Ok(None);
        }
        let mut superseded = if group.is_none() { self.supersede(session).await? } else { Vec::new() };
        let new = self.new_run(lanes, shard_total, rerun_of);
        runs::create(session, self.project, id, &new, self.now).await?;
        if let Some(group) = group {
            groups::set_newest(session, group, id, self.now).await?;
        }
        run_metadata::learn_default_branch(session, self.project, self.fields, self.now).await?;
        let mut locked = LockedRun::fresh(session, self.project, id, lanes.ids.clone()).await?;
        for earlier in &mut superseded {
            if earlier.run.status == RunStatus::Cancelled {
                earlier.run.superseded_by = Some(id);
            }
            locked.announce_for(earlier);
        }
        for earlier in superseded {
            earlier.write(session, self.now).await?;
        }
        locked.announce(match self.purpose {
            OpenKind::Setup => "run-initializing",
            OpenKind::Start => "run-started",
            OpenKind::Batch => "run-submitted",
        });
        Ok(Some(Opened { locked, slot, is_known: false }))
    }

    async fn add_slot(
        &self,
        session: &mut Session,
        locked: &mut LockedRun,
        index: i64,
        generation: i64,
        ordinal: i64,
    ) -> Result<Option<SlotId>> {
        let slot = SlotId(ids::allocate_one(session, Kind::Slot).await?);
        let row = self.slot_row(slot, locked.run.id, index, generation, ordinal);
        if !slots::insert(session, self.project, &row, self.slot_keys()).await? {
            return Ok(None);
        }
        locked.add_slot(row);
        Ok(Some(slot))
    }

    fn slot_keys(&self) -> SlotKeys {
        let job = self.job().filter(|_| self.fields.shard.is_none());
        SlotKeys { job: job.map(|job| job.key), ..self.keys }
    }

    fn slot_row(&self, id: SlotId, run: RunId, shard_index: i64, generation: i64, ordinal: i64) -> SlotRow {
        let is_setup = self.purpose == OpenKind::Setup;
        let slot = Slot {
            shard_index,
            ordinal,
            generation,
            job_attempt: self.job_attempt(),
            state: if is_setup { SlotState::Setup } else { SlotState::Live },
            claimed: None,
            start_time: self.start,
            duration_ms: None,
            waiting: false,
            opened_at: self.now,
            begun_at: (!is_setup).then_some(self.now),
            last_activity_at: self.now,
        };
        let ci = self.fields.metadata.as_ref().and_then(|metadata| metadata.get("ci")).and_then(json);
        let errors = (!self.fields.errors.is_empty()).then(|| json(&self.fields.errors)).flatten();
        SlotRow { id, run, slot, metadata_ci: ci, worked_in: 0, errors }
    }

    fn new_run(&self, lanes: &Lanes, shard_total: Option<i64>, rerun_of: Option<RunId>) -> NewRun {
        let f = self.fields;
        NewRun {
            lane_id: lanes.own,
            branch: lanes.branch.clone(),
            environment: lanes.environment.clone(),
            status: match self.purpose {
                OpenKind::Setup => RunStatus::Initializing,
                OpenKind::Start | OpenKind::Batch => RunStatus::Running,
            },
            start_time: self.start,
            // Repeating some shards is not running everything.
            is_full: f.is_full_run && (rerun_of.is_none() || shard_total.is_none()),
            is_dirty: f.origin.is_dirty,
            shard_total,
            rerun_of,
            label: f.label.clone(),
            commit_sha: f.origin.commit_sha.clone(),
            commit_message: f.origin.commit_message.clone(),
            author: f.origin.author.clone(),
            pull_request: f.origin.pull_request.clone(),
            ci_provider: f.origin.ci_provider.clone(),
            build_url: f.origin.build_url.clone(),
            planned_tests: f.planned_tests,
            playwright_version: f.playwright_version.clone(),
            reporter_version: f.reporter_version.clone(),
            instance_id: f.instance_id.clone(),
            // A live run has not counted yet what its client expects.
            claimed: match self.purpose {
                OpenKind::Batch => f.claimed_totals.as_ref().map(|claimed| claimed.totals()),
                OpenKind::Setup | OpenKind::Start => None,
            }
            .unwrap_or_default(),
            details: RunDetails {
                metadata: f.metadata.as_ref().and_then(json).unwrap_or_else(|| "{}".to_owned()),
                filter_details: f.filter_details.as_ref().and_then(json),
                setup_steps: (!f.setup_steps.is_empty()).then(|| json(&f.setup_steps)).flatten(),
                claimed_totals: f.claimed_totals.as_ref().and_then(json),
            },
        }
    }

    /// Ends earlier runs of this pipeline that fell silent. A wrong guess heals
    /// itself: the client of such a run opens it again with its next call.
    async fn supersede(&self, session: &mut Session) -> Result<Vec<LockedRun>> {
        let mut superseded = Vec::new();
        let Some(instance) = &self.fields.instance_id else { return Ok(superseded) };
        let since = Timestamp(self.now.millis() - SUPERSEDE_AFTER_MS);
        for id in runs::silent_of_instance(session, self.project, instance, since).await? {
            let mut locked = LockedRun::lock(session, self.project, id).await?;
            if locked.run.status.is_final() || locked.run.last_activity_at >= since {
                continue;
            }
            if locked.run.status == RunStatus::Finalizing {
                locked.finish_finalizing(self.now);
            } else {
                locked.abort(RunStatus::Cancelled, EndReason::Superseded, self.now);
            }
            superseded.push(locked);
        }
        Ok(superseded)
    }
}
