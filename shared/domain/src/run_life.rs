//! The life of a run as its slots tell it: when it is complete, how it ended,
//! which run a late shard belongs to.
//!
//! A slot is one client that feeds a run. An unsharded run has the index 0
//! only; a run of n shards the indexes 1 to n, each with one slot or more: a
//! matrix leg beside another, a retry of a lost one, or a re-run. Everything here is a
//! function of the slots alone, so the order in which their calls arrived
//! never shows.

use std::collections::{BTreeMap, BTreeSet};

use crate::status::RunStatus;
use crate::time::Timestamp;

/// Where a slot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Registered before its global set-up; nothing may be sent yet.
    Setup,
    /// Results are arriving.
    Live,
    /// Its client said that it is done.
    Finished,
    /// Its client fell silent.
    Lost,
}

impl SlotState {
    const ALL: [Self; 4] = [Self::Setup, Self::Live, Self::Finished, Self::Lost];

    /// The spelling in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Live => "live",
            Self::Finished => "finished",
            Self::Lost => "lost",
        }
    }

    /// Reads the stored spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Why a run ended otherwise than by its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The client said it was interrupted.
    Client,
    /// A person cancelled it.
    User,
    /// A newer run of the same pipeline took its place.
    Superseded,
    /// Its clients fell silent.
    Stale,
    /// Its global set-up never came to an end.
    SetupTimeout,
    /// Some of its shards never began.
    ShardsMissing,
}

impl EndReason {
    const ALL: [Self; 6] =
        [Self::Client, Self::User, Self::Superseded, Self::Stale, Self::SetupTimeout, Self::ShardsMissing];

    /// The spelling in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::User => "user",
            Self::Superseded => "superseded",
            Self::Stale => "stale",
            Self::SetupTimeout => "setup_timeout",
            Self::ShardsMissing => "shards_missing",
        }
    }

    /// Reads the stored spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }

    /// Whether the service only guessed that the run was over: a sign of life
    /// of one of its clients proves it wrong.
    #[must_use]
    pub const fn is_guess(self) -> bool {
        !matches!(self, Self::Client | Self::User)
    }

    /// Whether the run waited in vain, as opposed to having been replaced.
    #[must_use]
    pub const fn is_silence(self) -> bool {
        matches!(self, Self::Stale | Self::SetupTimeout | Self::ShardsMissing)
    }
}

/// What becomes of a re-run: the setting `reruns` of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reruns {
    /// It joins the run that it repeats.
    Join,
    /// It is a run of its own that names the one it repeats.
    Separate,
}

impl Reruns {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Join, Self::Separate];

    /// Reads the spelling of requests.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reruns| reruns.as_str() == text)
    }

    /// By whether re-runs join.
    #[must_use]
    pub const fn from_setting(joins: bool) -> Self {
        if joins { Self::Join } else { Self::Separate }
    }

    /// The spelling in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Separate => "separate",
        }
    }
}

/// How long the service waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Silence after which a live slot is lost, ms.
    pub stale_ms: i64,
    /// Silence after which a shard that never began is missing, ms.
    pub shard_wait_ms: i64,
    /// Age at which a set-up that never began is lost, ms.
    pub setup_ms: i64,
    /// How long files may follow the results, ms.
    pub finalizing_ms: i64,
    /// How long after its last activity a shard still joins a run, ms.
    pub shard_join_ms: i64,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            stale_ms: 120_000,
            shard_wait_ms: 900_000,
            setup_ms: 1_800_000,
            finalizing_ms: 600_000,
            shard_join_ms: 21_600_000,
        }
    }
}

/// Silence after which a run is taken for over when a newer one of the same
/// pipeline begins, ms: three missed heartbeats.
pub const SUPERSEDE_AFTER_MS: i64 = 45_000;

/// One client that feeds a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// 0 outside shards, else from 1.
    pub shard_index: i64,
    /// Order in which the slots of the run were opened.
    pub ordinal: i64,
    /// 0, and one more for every retry of the shard.
    pub generation: i64,
    /// Attempt of its CI job, where the CI system counts attempts.
    pub job_attempt: Option<i64>,
    /// Where it stands.
    pub state: SlotState,
    /// The result its client claimed.
    pub claimed: Option<RunStatus>,
    /// Start by its client's clock.
    pub start_time: Timestamp,
    /// Wall clock, ms.
    pub duration_ms: Option<i64>,
    /// Finished, and files are to follow.
    pub waiting: bool,
    /// When it was opened, or last given a set-up token.
    pub opened_at: Timestamp,
    /// When its tests began; `None` as long as it is being set up.
    pub begun_at: Option<Timestamp>,
    /// Last sign of life.
    pub last_activity_at: Timestamp,
}

impl Slot {
    /// Whether its client stopped without an end of its own: it is lost, or what it
    /// kept says so.
    fn broke_off(&self) -> bool {
        match self.state {
            SlotState::Lost => true,
            SlotState::Finished => self.claimed == Some(RunStatus::Interrupted),
            SlotState::Setup | SlotState::Live => false,
        }
    }

    /// Whether it was opened when the client of one that broke off had stopped.
    fn came_after(&self, other: &Self) -> bool {
        if other.state == SlotState::Lost {
            return self.opened_at >= other.last_activity_at;
        }
        let end = |ms: i64| other.start_time.millis().saturating_add(ms);
        other.duration_ms.is_some_and(|ms| self.start_time.millis() >= end(ms))
    }
}

/// Slots of a shard that took the places of others of their generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successors {
    /// The shard.
    pub shard_index: i64,
    /// The generation that they share with those.
    pub generation: i64,
    /// Which slots they are.
    pub ordinals: BTreeSet<i64>,
    /// When the tests of the first of them began, by the clock of its client.
    pub since: Timestamp,
}

/// Where a new slot belongs among those of its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// Its generation.
    pub number: i64,
    /// Whether this and all newer generations of the index move up by one first,
    /// because the slot repeats less than they do.
    pub is_inserted: bool,
}

/// The slots of a run, in the order they were opened.
#[derive(Debug, Clone, Copy)]
pub struct Slots<'a> {
    /// All of them.
    pub all: &'a [Slot],
    /// Number of shards; `None` for an unsharded run.
    pub shard_total: Option<i64>,
    /// Repeats some shards of an earlier run; not all need to come.
    pub is_rerun: bool,
}

impl Slots<'_> {
    fn indexes(&self) -> std::ops::RangeInclusive<i64> {
        self.shard_total.map_or(0..=0, |total| 1..=total)
    }

    fn for_shard(&self, index: i64) -> impl Iterator<Item = &Slot> {
        self.all.iter().filter(move |slot| slot.shard_index == index)
    }

    /// Whether an index ever got as far as running tests.
    #[must_use]
    pub fn has_begun(&self, index: i64) -> bool {
        self.for_shard(index).any(|slot| slot.begun_at.is_some())
    }

    /// When an index began last.
    fn begun_last(&self, index: i64) -> Option<Timestamp> {
        self.for_shard(index).filter(|slot| slot.begun_at.is_some()).map(|slot| slot.start_time).max()
    }

    /// Whether every index has begun.
    #[must_use]
    pub fn all_have_begun(&self) -> bool {
        self.indexes().all(|index| self.has_begun(index))
    }

    /// The lowest index without a slot; the first one when all have one.
    #[must_use]
    pub fn free_index(&self) -> i64 {
        let first = *self.indexes().start();
        self.indexes().find(|index| self.for_shard(*index).next().is_none()).unwrap_or(first)
    }

    /// The generation of a new slot of an index: by the attempt of its CI job, where
    /// that is known; else beside a live slot the same, and after one that is over
    /// the next. `is_repeat` says that it repeats the index, whatever the newest slot does.
    #[must_use]
    pub fn generation_of_new(&self, index: i64, job_attempt: Option<i64>, is_repeat: bool) -> Generation {
        let of = |number| Generation { number, is_inserted: false };
        let Some(newest) = self.for_shard(index).map(|slot| slot.generation).max() else { return of(0) };
        if let Some(attempt) = job_attempt {
            let generations = |is_meant: fn(i64, i64) -> bool| {
                let slots = self
                    .for_shard(index)
                    .filter(move |slot| slot.job_attempt.is_some_and(|known| is_meant(known, attempt)));
                slots.map(|slot| slot.generation)
            };
            if let Some(later) = generations(|known, attempt| known > attempt).min() {
                let same = generations(|known, attempt| known == attempt).max();
                return same.map_or(Generation { number: later, is_inserted: true }, of);
            }
            if generations(|known, attempt| known < attempt).max() == Some(newest) {
                return of(newest + 1);
            }
        }
        let beside =
            self.for_shard(index).any(|slot| slot.generation == newest && slot.state == SlotState::Live);
        if beside && !is_repeat { of(newest) } else { of(newest + 1) }
    }

    /// Whether a client of this attempt of the CI job has fed an index.
    #[must_use]
    pub fn has_attempt(&self, index: i64, job_attempt: i64) -> bool {
        self.for_shard(index).any(|slot| slot.job_attempt == Some(job_attempt))
    }

    /// Whether an index was run again.
    #[must_use]
    pub fn is_repeated(&self, index: i64) -> bool {
        self.for_shard(index).any(|slot| slot.generation > 0)
    }

    /// The newest generation of all indexes: how often the run was repeated.
    #[must_use]
    pub fn newest_generation(&self) -> i64 {
        self.all.iter().map(|slot| slot.generation).max().unwrap_or(0)
    }

    /// The ordinal of a new slot.
    #[must_use]
    pub fn next_ordinal(&self) -> i64 {
        self.all.iter().map(|slot| slot.ordinal + 1).max().unwrap_or(0)
    }

    /// Whether a client is sending.
    #[must_use]
    pub fn any_live(&self) -> bool {
        self.all.iter().any(|slot| slot.state == SlotState::Live)
    }

    /// Whether files are still to follow.
    #[must_use]
    pub fn any_waiting(&self) -> bool {
        self.all.iter().any(|slot| slot.waiting)
    }

    /// Whether a set-up is under way that nobody has taken the place of.
    #[must_use]
    pub fn any_setting_up(&self, now: Timestamp, patience: &Patience) -> bool {
        self.all.iter().any(|slot| {
            slot.state == SlotState::Setup
                && slot.opened_at.millis() > now.millis() - patience.setup_ms
                && !self
                    .for_shard(slot.shard_index)
                    .any(|later| later.ordinal > slot.ordinal && later.begun_at.is_some())
        })
    }

    /// Number of indexes with a finished slot.
    #[must_use]
    pub fn finished(&self) -> i64 {
        let finished: BTreeSet<i64> = self
            .all
            .iter()
            .filter(|slot| slot.state == SlotState::Finished)
            .map(|slot| slot.shard_index)
            .collect();
        i64::try_from(finished.len()).unwrap_or(i64::MAX)
    }

    /// Indexes without a finished slot, ascending; none of an unsharded run.
    #[must_use]
    pub fn unfinished(&self) -> Vec<i64> {
        let is_finished = |index: &i64| self.for_shard(*index).any(|slot| slot.state == SlotState::Finished);
        if self.shard_total.is_none() {
            Vec::new()
        } else {
            self.indexes().filter(|i| !is_finished(i)).collect()
        }
    }

    /// Whether nothing more is to come but files.
    #[must_use]
    pub fn is_complete(&self, now: Timestamp, patience: &Patience) -> bool {
        if self.any_live() || self.any_setting_up(now, patience) {
            return false;
        }
        let every_index_finished = self.finished() == self.shard_total.unwrap_or(1);
        every_index_finished || (self.is_rerun && self.silent_since(now, patience.stale_ms))
    }

    fn silent_since(&self, now: Timestamp, silence_ms: i64) -> bool {
        let last = self.all.iter().map(|slot| slot.last_activity_at.millis()).max();
        last.is_some_and(|last| last <= now.millis() - silence_ms)
    }

    /// The slots that decide: per index those of the newest generation whose place
    /// nobody took.
    fn counting(&self) -> impl Iterator<Item = &Slot> {
        let replaced = self.replaced();
        self.all.iter().filter(move |slot| {
            self.for_shard(slot.shard_index).all(|other| other.generation <= slot.generation)
                && !replaced.contains(&slot.ordinal)
        })
    }

    /// Ordinals of the slots that decide.
    #[must_use]
    pub fn deciding(&self) -> BTreeSet<i64> {
        self.counting().map(|slot| slot.ordinal).collect()
    }

    /// Ordinals of the slots whose place was taken by later ones of their index and
    /// generation. A client that comes while another one seems to be there may be a
    /// leg of a matrix beside it; when it turns out that the other one had stopped
    /// before, it was tried again. It counts once more as soon as it is heard of.
    fn replaced(&self) -> BTreeSet<i64> {
        let mut replaced = BTreeSet::new();
        for slot in self.all.iter().filter(|slot| slot.broke_off()) {
            let beside = self.for_shard(slot.shard_index).filter(|other| {
                other.generation == slot.generation
                    && other.ordinal != slot.ordinal
                    && !replaced.contains(&other.ordinal)
            });
            let mut beside = beside.peekable();
            if beside.peek().is_some() && beside.all(|other| other.came_after(slot)) {
                replaced.insert(slot.ordinal);
            }
        }
        replaced
    }

    /// The slots that took the places of lost ones, by shard.
    #[must_use]
    pub fn successors(&self) -> Vec<Successors> {
        let replaced = self.replaced();
        let is_lost = |slot: &&Slot| slot.state == SlotState::Lost && replaced.contains(&slot.ordinal);
        let places: BTreeSet<(i64, i64)> =
            self.all.iter().filter(is_lost).map(|slot| (slot.shard_index, slot.generation)).collect();
        let of_place = |(shard_index, generation)| {
            let is_one = |slot: &&Slot| slot.generation == generation && !replaced.contains(&slot.ordinal);
            let slots: Vec<&Slot> = self.for_shard(shard_index).filter(is_one).collect();
            let since = slots.iter().map(|slot| slot.start_time).min()?;
            let ordinals = slots.iter().map(|slot| slot.ordinal).collect();
            Some(Successors { shard_index, generation, ordinals, since })
        };
        places.into_iter().filter_map(of_place).collect()
    }

    /// The worst claim of the slots that decide; a lost one counts as
    /// interrupted. `derived` speaks for clients that claimed nothing.
    #[must_use]
    pub fn outcome(&self, derived: RunStatus) -> RunStatus {
        let claims = self.counting().map(|slot| match slot.state {
            SlotState::Finished => slot.claimed.unwrap_or(derived),
            SlotState::Setup | SlotState::Live | SlotState::Lost => RunStatus::Interrupted,
        });
        claims.reduce(worse).unwrap_or(derived)
    }

    /// Whether the service had to guess that a slot is over.
    #[must_use]
    pub fn any_lost(&self) -> bool {
        self.counting().any(|slot| slot.state != SlotState::Finished)
    }

    /// From the earliest start to the latest end, ms, without the time between the end
    /// of the run and its re-run; `None` as long as no slot says how long it took.
    #[must_use]
    pub fn duration_ms(&self) -> Option<i64> {
        let mut spans: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
        for slot in self.all {
            let Some(duration) = slot.duration_ms else { continue };
            let start = slot.start_time.millis();
            let end = start.saturating_add(duration);
            let span = spans.entry(self.round(slot)).or_insert((start, end));
            *span = (span.0.min(start), span.1.max(end));
        }
        let mut spans: Vec<(i64, i64)> = spans.into_values().collect();
        spans.sort_unstable();
        let mut covered: Option<(i64, i64)> = None;
        for (start, end) in spans {
            covered = Some(covered.map_or((end - start, end), |(ms, until)| {
                (ms + (end - start.max(until)).max(0), until.max(end))
            }));
        }
        covered.map(|(ms, _)| ms)
    }

    /// How often its index had come to an end before: what takes the place of a lost
    /// slot belongs to the same round.
    fn round(&self, slot: &Slot) -> usize {
        let finished = self
            .for_shard(slot.shard_index)
            .filter(|other| other.generation < slot.generation && other.state == SlotState::Finished);
        finished.map(|other| other.generation).collect::<BTreeSet<_>>().len()
    }

    /// The latest end, as far as slots say how long they took.
    #[must_use]
    pub fn last_end(&self) -> Option<Timestamp> {
        let end = |slot: &Slot| Some(Timestamp(slot.start_time.millis().saturating_add(slot.duration_ms?)));
        self.all.iter().filter_map(end).max()
    }

    /// The earliest start.
    #[must_use]
    pub fn start_time(&self) -> Option<Timestamp> {
        self.all.iter().map(|slot| slot.start_time).min()
    }
}

/// The worse of two claims.
#[must_use]
pub fn worse(one: RunStatus, other: RunStatus) -> RunStatus {
    const fn rank(status: RunStatus) -> u8 {
        match status {
            RunStatus::Failed => 0,
            RunStatus::TimedOut => 1,
            RunStatus::Interrupted | RunStatus::Cancelled => 2,
            RunStatus::Initializing | RunStatus::Running | RunStatus::Finalizing | RunStatus::Passed => 3,
        }
    }
    if rank(other) < rank(one) { other } else { one }
}

/// What a shard does that arrives while a run of its group is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// It becomes part of that run.
    Join,
    /// It repeats a shard of that run, which is over: by the project's setting it joins
    /// that run or is one of its own that says so.
    Rerun,
    /// It has nothing to do with that run.
    Apart,
    /// It began long before that run got its shard: kept by its client until now,
    /// it belongs to a run before that one.
    Earlier,
}

/// What is known of the newest run of a group.
#[derive(Debug, Clone, Copy)]
pub struct Newest<'a> {
    /// Its status.
    pub status: RunStatus,
    /// Why it ended.
    pub end_reason: Option<EndReason>,
    /// Last sign of life of any of its clients.
    pub last_activity_at: Timestamp,
    /// Its slots.
    pub slots: Slots<'a>,
}

impl Newest<'_> {
    /// Decides about a shard; `None` as its index takes the lowest free one.
    /// `batch_start` is when one began that is sent after it ran; `job_attempt` is the
    /// attempt of its CI job.
    #[must_use]
    pub fn joined_by(
        &self,
        index: Option<i64>,
        batch_start: Option<Timestamp>,
        job_attempt: Option<i64>,
        now: Timestamp,
        patience: &Patience,
    ) -> Joining {
        let place = index.unwrap_or_else(|| self.slots.free_index());
        let has_begun = self.slots.has_begun(place);
        let since = index.and_then(|index| self.slots.begun_last(index));
        let is_older = batch_start.zip(since).is_some_and(|(start, since)| {
            start.millis() < since.millis().saturating_sub(patience.shard_join_ms)
        });
        if is_older {
            return Joining::Earlier;
        }
        // A CI system that counts attempts says itself which build a late one belongs to.
        let is_further_attempt = job_attempt.is_some_and(|attempt| {
            let known = |slot: &Slot| slot.job_attempt.is_some_and(|known| known != attempt);
            self.slots.for_shard(place).any(known) && !self.slots.has_attempt(place, attempt)
        });
        if self.last_activity_at.millis() < now.millis() - patience.shard_join_ms && !is_further_attempt {
            return Joining::Apart;
        }
        let waited_in_vain = self.end_reason.is_some_and(EndReason::is_silence);
        match self.status {
            RunStatus::Initializing | RunStatus::Running | RunStatus::Finalizing => Joining::Join,
            RunStatus::Interrupted if waited_in_vain => Joining::Join,
            RunStatus::Cancelled | RunStatus::Interrupted => Joining::Apart,
            RunStatus::Passed | RunStatus::Failed | RunStatus::TimedOut => {
                if has_begun {
                    Joining::Rerun
                } else {
                    Joining::Join
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
