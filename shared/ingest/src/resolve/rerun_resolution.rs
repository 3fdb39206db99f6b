//! Which run a re-run repeats, and whether it joins that run.
//!
//! It joins only when that is certain: a shard by its group, another client by a
//! further attempt of the same CI job or because it names the run; a run of the tests
//! that failed last also within one attempt. Two commands of one CI job are two runs.

use callboard_domain::ids::RunId;
use callboard_domain::ingest::{FilterDetails, RunFields};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_store::db::Session;
use callboard_store::projects;
use callboard_store::runs::slots::{self, SlotRow};
use callboard_store::runs::{self, RunRow};

use crate::Result;
use crate::resolve::ci_job::{self, CiJob};
use crate::resolve::run_resolution::{Opening, RunTarget};

/// Runs of one CI job that are looked at: more commands than this are not told apart.
const MAX_RUNS_OF_JOB: i64 = 50;

/// A run of the same CI job.
struct Candidate {
    run: RunRow,
    /// The attempts of the job that fed it.
    attempts: Vec<Option<i64>>,
}

impl Opening<'_> {
    /// The CI job of the client.
    pub(crate) fn job(&self) -> Option<CiJob> {
        ci_job::from_fields(self.fields)
    }

    /// The attempt of that job, where it is known.
    pub(crate) fn job_attempt(&self) -> Option<i64> {
        self.job().and_then(|job| job.attempt)
    }

    /// Whether only the tests that failed last are run.
    pub(crate) fn runs_last_failed(&self) -> bool {
        self.fields.filter_details.as_ref().is_some_and(|filter| filter.last_failed == Some(true))
    }

    /// Decides about a client without shards.
    pub(super) async fn resolve_alone(&self, session: &mut Session) -> Result<RunTarget> {
        let repeated = match self.fields.rerun_of {
            // A shard that names no group says too little.
            _ if self.fields.shard.is_some() => None,
            Some(named) => runs::get(session, self.project, RunId(named)).await?,
            None => self.repeated_by_job(session).await?,
        };
        let Some(run) = repeated.filter(|run| run.shard_total.is_none()) else {
            return Ok(RunTarget::New { rerun_of: None });
        };
        if self.joins(session, &run).await? {
            return Ok(RunTarget::Joins(run.id));
        }
        // A first attempt that arrives late repeats nothing.
        let attempts = slots::of_run(session, self.project, run.id).await?;
        let first = attempts.iter().filter_map(|row| row.slot.job_attempt).min();
        let is_earlier = self.job_attempt().zip(first).is_some_and(|(own, first)| own < first);
        Ok(RunTarget::New { rerun_of: (!is_earlier).then_some(run.id) })
    }

    /// Whether a re-run of this run joins it: when the project wants that, the run can go on,
    /// and both ran the same clean commit.
    pub(super) async fn joins(&self, session: &mut Session, run: &RunRow) -> Result<bool> {
        let can_go_on = match run.status {
            RunStatus::Cancelled => false,
            RunStatus::Interrupted => run.end_reason.is_some_and(EndReason::is_silence),
            _ => true,
        };
        let is_same_commit = match (&run.commit_sha, &self.fields.origin.commit_sha) {
            (Some(known), Some(own)) => known == own,
            _ => true,
        };
        let is_clean = !run.is_dirty && !self.fields.origin.is_dirty;
        Ok(can_go_on && is_same_commit && is_clean && projects::joins_reruns(session, self.project).await?)
    }

    /// The run of the same CI job that this client repeats; `None` when no run is it
    /// for certain.
    async fn repeated_by_job(&self, session: &mut Session) -> Result<Option<RunRow>> {
        let Some(job) = self.job() else { return Ok(None) };
        let is_last_failed = self.runs_last_failed();
        if job.attempt.is_none() && !is_last_failed {
            return Ok(None);
        }
        let mut candidates = Vec::new();
        for id in slots::runs_of_job(session, self.project, &job.key, MAX_RUNS_OF_JOB).await? {
            let Some(run) = runs::get(session, self.project, id).await? else { continue };
            let rows = slots::of_run(session, self.project, id).await?;
            let attempts = rows.iter().map(|row: &SlotRow| row.slot.job_attempt).collect();
            candidates.push(Candidate { run, attempts });
        }
        if !is_last_failed {
            candidates.retain(|candidate| !candidate.attempts.contains(&job.attempt));
        }
        let best = nearest(&candidates, job.attempt);
        let mut found: Vec<Candidate> = candidates
            .into_iter()
            .filter(|candidate| best.is_some() && rank(candidate, job.attempt) == best)
            .collect();
        // What ran another part of the suite is another command of the job.
        if !is_last_failed || found.len() > 1 {
            let mut alike = Vec::new();
            for candidate in found {
                let details = runs::details(session, self.project, candidate.run.id).await?;
                let filter = details.filter_details.as_deref().map(serde_json::from_str::<FilterDetails>);
                if selection(filter.and_then(std::result::Result::ok)) == selection_of(self.fields) {
                    alike.push(candidate);
                }
            }
            found = alike;
        }
        let only = found.pop().filter(|_| found.is_empty());
        Ok(only.map(|candidate| candidate.run))
    }
}

/// How near a run is to an attempt: those of earlier attempts before those of later ones,
/// the nearest first.
fn rank(candidate: &Candidate, own: Option<i64>) -> Option<(bool, i64)> {
    let Some(own) = own else { return Some((true, 0)) };
    let known = || candidate.attempts.iter().copied().flatten();
    let before = known().filter(|attempt| *attempt <= own).max();
    before.map(|attempt| (true, attempt)).or_else(|| known().min().map(|attempt| (false, -attempt)))
}

fn nearest(candidates: &[Candidate], own: Option<i64>) -> Option<(bool, i64)> {
    candidates.iter().filter_map(|candidate| rank(candidate, own)).max()
}

fn selection_of(fields: &RunFields) -> Option<FilterDetails> {
    selection(fields.filter_details.clone())
}

/// The part of the suite that was chosen, whichever tests of it failed before.
fn selection(filter: Option<FilterDetails>) -> Option<FilterDetails> {
    let chosen = filter.map(|filter| FilterDetails { last_failed: None, ..filter });
    chosen.filter(|chosen| *chosen != FilterDetails::default())
}
