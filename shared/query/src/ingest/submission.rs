//! A submission: a run with its test cases and their files, sent as a batch.

use std::collections::HashMap;

use callboard_auth::scope::{Authorized, Denied, Scope};
use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{ExecutionId, PackId, ProjectId, RunId};
use callboard_domain::ingest::{RunFields, TestCaseEntry};
use callboard_domain::lane::lanes_of;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;
use callboard_store::db::Session;
use callboard_store::evidence::{self, Frame, PackWriter, WrittenPack};
use callboard_store::ids::{self, Kind};
use callboard_store::projects::{self, Growth};
use callboard_store::rollups::{self, RunContribution};
use callboard_store::runs::{self, NewRun, RunDetails, RunRow};
use callboard_store::{StoreError, executions, lanes};

use super::chunk::{self, Folded, Group, Target};
use super::files::{self, IncomingFile, PublishedFile};
use super::key::start_key;
use super::outcome::{final_status, mean_and_p90};
use crate::{Context, Entity, QueryError, Result};

/// Most entries one transaction takes; a larger submission is written in
/// several, with the run held in `running` until the last.
const ENTRIES_PER_TRANSACTION: usize = 2_000;

/// What a client sends about a whole run.
#[derive(Debug, Default)]
pub struct Submission {
    /// Fields of the run.
    pub fields: RunFields,
    /// Its test cases, one entry per attempt.
    pub entries: Vec<TestCaseEntry>,
    /// Files of its test cases.
    pub files: Vec<IncomingFile>,
}

/// What became of a submission.
#[derive(Debug)]
pub struct Submitted {
    /// The run.
    pub run: RunId,
    /// Its project.
    pub project: ProjectId,
    /// Its status now.
    pub status: RunStatus,
    /// Its totals now.
    pub totals: Totals,
    /// Whether it was known already and the submission was merged into it.
    pub duplicate: bool,
    /// Execution of every entry, by index of the entry.
    pub executions: Vec<(usize, ExecutionId)>,
    /// Page of the run.
    pub url: String,
}

/// The project a submission names, made when it does not exist.
///
/// # Errors
/// [`QueryError::Denied`] when the caller may not write there, or may not
/// create projects; nothing is created then.
pub async fn open_project(
    ctx: &Context,
    scope: &Scope,
    name: &str,
    description: Option<&str>,
    now: Timestamp,
) -> Result<Authorized<ProjectId>> {
    let known = projects::find(&mut ctx.store.db().read().await?, name).await?;
    if let Some(project) = known {
        return Ok(scope.authorize(project.id)?);
    }
    if !scope.may_create_projects() {
        return Err(Denied::ProjectCreationForbidden.into());
    }
    let mut session = ctx.store.db().begin().await?;
    let id = projects::get_or_create(&mut session, name, description, now).await?;
    session.commit().await?;
    Ok(scope.authorize(id)?)
}

/// The project of this name, when it exists; for what arrives before the rest
/// of a submission can be judged.
///
/// # Errors
/// [`QueryError::Denied`] when the caller may not write there.
pub async fn known_project(ctx: &Context, scope: &Scope, name: &str) -> Result<Option<ProjectId>> {
    let known = projects::find(&mut ctx.store.db().read().await?, name).await?;
    Ok(match known {
        Some(project) => Some(scope.authorize(project.id)?.get()),
        None => None,
    })
}

/// The run that files are attached to later, with its project.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::Denied`].
pub async fn run_to_attach_to(
    ctx: &Context,
    scope: &Scope,
    run: RunId,
) -> Result<(Authorized<ProjectId>, RunStatus)> {
    let project = crate::resolve::run(ctx, scope, run).await?;
    let row = runs::get(&mut ctx.store.db().read().await?, project.get(), run).await?;
    let row = row.ok_or_else(|| QueryError::not_found(Entity::Run, run))?;
    Ok((project, row.status))
}

/// Stores a submission. The same submission again finds its run by its start
/// key and changes nothing.
///
/// # Errors
/// [`QueryError::Store`]; what was acknowledged before stays, nothing of this
/// submission is visible.
pub async fn submit(
    ctx: &Context,
    project: Authorized<ProjectId>,
    submission: Submission,
    now: Timestamp,
) -> Result<Submitted> {
    let project = project.get();
    let Submission { fields, mut entries, files: incoming } = submission;
    let start = fields.start_time.unwrap_or(now);
    let key = start_key(&fields, start);
    let span = span_of(&entries);

    let mut published: HashMap<usize, Vec<PublishedFile>> = HashMap::new();
    for file in incoming {
        let file = files::publish(ctx, project, file, now).await?;
        published.entry(file.entry).or_default().push(file);
    }
    let known = known_run(ctx, project, key.as_ref()).await?;
    let (pack, slices, reserved) = write_evidence(ctx, project, known, &mut entries).await?;
    let groups = chunk::group(entries);
    let mut writer =
        Writer { ctx, project, fields: &fields, start, key, span, now, reserved, files: published, slices };
    let mut written = writer.write(known, pack.as_ref(), &groups).await?;
    if written.is_none() {
        // Another call with the same start key was first: this one merges into its run.
        let known = known_run(ctx, project, key.as_ref()).await?;
        written = writer.write(known, pack.as_ref(), &groups).await?;
    }
    let (run, duplicate, executions) = written.ok_or(StoreError::Damaged("a start key without a run"))?;
    Ok(Submitted {
        run: run.id,
        project,
        status: run.status,
        totals: run.totals,
        duplicate,
        executions,
        url: ctx.links.run(run.id.get()),
    })
}

async fn known_run(ctx: &Context, project: ProjectId, key: Option<&[u8; 32]>) -> Result<Option<RunId>> {
    Ok(match key {
        Some(key) => runs::by_start_key(&mut ctx.store.db().read().await?, project, key).await?,
        None => None,
    })
}

/// From the earliest start to the latest end of the test cases.
fn span_of(entries: &[TestCaseEntry]) -> Option<i64> {
    let first = entries.iter().filter_map(|entry| entry.started_at).min()?;
    let last =
        entries.iter().filter_map(|entry| Some(entry.started_at?.millis() + entry.duration_ms)).max()?;
    Some((last - first.millis()).max(0))
}

/// Writes the evidence of all entries as one pack, failing attempts first, and
/// takes it out of the entries. Answers the run id it reserved for the pack's
/// key when the run is new.
async fn write_evidence(
    ctx: &Context,
    project: ProjectId,
    known: Option<RunId>,
    entries: &mut [TestCaseEntry],
) -> Result<(Option<WrittenPack>, HashMap<usize, EvidenceSlice>, Option<RunId>)> {
    let mut evidence: Vec<(u8, usize, Box<Evidence>)> = entries
        .iter_mut()
        .filter_map(|entry| Some((entry.status.severity(), entry.index, entry.evidence.take()?)))
        .collect();
    if evidence.is_empty() {
        return Ok((None, HashMap::new(), None));
    }
    evidence.sort_by_key(|(severity, index, _)| (*severity, *index));
    // Compressing megabytes would hold up other requests of this thread.
    let packed = tokio::task::spawn_blocking(move || {
        let mut writer = PackWriter::new()?;
        let mut frames: Vec<(usize, Frame)> = Vec::with_capacity(evidence.len());
        for (_, index, evidence) in &evidence {
            frames.push((*index, writer.add(evidence)?));
        }
        Ok::<_, StoreError>((writer, frames))
    });
    let (writer, frames) =
        packed.await.map_err(|_| StoreError::Damaged("evidence could not be compressed"))??;
    let mut session = ctx.store.db().begin().await?;
    let reserved = match known {
        Some(_) => None,
        None => Some(RunId(ids::allocate_one(&mut session, Kind::Run).await?)),
    };
    let pack = PackId(ids::allocate_one(&mut session, Kind::Pack).await?);
    session.commit().await?;
    let run = known.or(reserved).ok_or(StoreError::Damaged("a pack without a run"))?;
    let written = writer.write(&ctx.store, project, run, pack).await?;
    let slices = frames.into_iter().map(|(index, frame)| (index, frame.of(pack))).collect();
    Ok((Some(written), slices, reserved))
}

/// One submission on its way into the database.
struct Writer<'a> {
    ctx: &'a Context,
    project: ProjectId,
    fields: &'a RunFields,
    start: Timestamp,
    key: Option<[u8; 32]>,
    span: Option<i64>,
    now: Timestamp,
    reserved: Option<RunId>,
    files: HashMap<usize, Vec<PublishedFile>>,
    slices: HashMap<usize, EvidenceSlice>,
}

type Written = (RunRow, bool, Vec<(usize, ExecutionId)>);

impl Writer<'_> {
    /// Writes everything; `None` when another caller took the start key first
    /// and nothing was written.
    async fn write(
        &mut self,
        known: Option<RunId>,
        pack: Option<&WrittenPack>,
        groups: &[Group],
    ) -> Result<Option<Written>> {
        let chunks = chunks(groups);
        let mut run_id = known;
        let mut executions = Vec::new();
        let mut run = None;
        let mut is_recorded = false;
        for (number, groups) in chunks.iter().enumerate() {
            let is_last = number + 1 == chunks.len();
            let mut session = self.ctx.store.db().begin().await?;
            let is_fresh = run_id.is_none();
            let id = match run_id {
                Some(id) => id,
                None => match self.create(&mut session).await? {
                    Some(id) => id,
                    None => return Ok(None),
                },
            };
            run_id = Some(id);
            let mut row = runs::lock(&mut session, self.project, id).await?;
            let lanes = self.lanes(&mut session, &row).await?;
            let before = contribution(&row);
            let mut target = Target {
                run: &mut row,
                lanes: &lanes,
                is_fresh,
                evidence: &self.slices,
                files: &mut self.files,
                now: self.now,
            };
            let folded = chunk::fold(&mut session, &mut target, groups).await?;
            executions.extend(folded.executions.iter().copied());
            if folded.uses_evidence
                && !is_recorded
                && let Some(pack) = pack
            {
                evidence::record(&mut session, self.project, id, pack, self.now).await?;
                is_recorded = true;
            }
            if is_last {
                self.finish(&mut session, &mut row).await?;
            }
            self.count(&mut session, &row, &lanes, &folded, is_fresh, &before).await?;
            row.updated_at = self.now;
            runs::update(&mut session, &row).await?;
            session.commit().await?;
            run = Some(row);
        }
        if let Some(pack) = pack.filter(|_| !is_recorded) {
            // A resend: all of it was known.
            evidence::discard(&self.ctx.store, pack).await?;
        }
        Ok(run.map(|run| (run, known.is_some(), executions)))
    }

    /// Makes the run and its slot; `None` when the start key is taken.
    async fn create(&self, session: &mut Session) -> Result<Option<RunId>> {
        let f = self.fields;
        let id = match self.reserved {
            Some(id) => id,
            None => RunId(ids::allocate_one(session, Kind::Run).await?),
        };
        let taken =
            runs::add_finished_slot(session, self.project, id, self.key, f.status, f.duration_ms).await?;
        if !taken {
            return Ok(None);
        }
        let branch = f.origin.branch.clone().unwrap_or_default();
        let environment = f.environment.clone().unwrap_or_default();
        let mut lane_id = 0;
        for key in lanes_of(f.origin.branch.as_deref(), f.environment.as_deref()) {
            // The most specific lane comes last.
            lane_id = lanes::lane(session, self.project, &key, self.start).await?;
        }
        let new = NewRun {
            lane_id,
            branch,
            environment,
            start_time: self.start,
            is_full: f.is_full_run,
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
            claimed: f.claimed_totals.as_ref().map(|claimed| claimed.totals()).unwrap_or_default(),
            details: RunDetails {
                metadata: f.metadata.as_ref().and_then(json).unwrap_or_else(|| "{}".to_owned()),
                filter_details: f.filter_details.as_ref().and_then(json),
                setup_steps: (!f.setup_steps.is_empty()).then(|| json(&f.setup_steps)).flatten(),
                claimed_totals: f.claimed_totals.as_ref().and_then(json),
            },
        };
        runs::create(session, self.project, id, &new, self.now).await?;
        if let Some(branch) = default_branch(f) {
            projects::adopt_default_branch(session, self.project, branch).await?;
        }
        Ok(Some(id))
    }

    async fn lanes(&self, session: &mut Session, run: &RunRow) -> Result<Vec<i64>> {
        let word = |text: &String| (!text.is_empty()).then(|| text.clone());
        let (branch, environment) = (word(&run.branch), word(&run.environment));
        let mut ids = Vec::with_capacity(4);
        for key in lanes_of(branch.as_deref(), environment.as_deref()) {
            ids.push(lanes::lane(session, self.project, &key, run.order_at).await?);
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Gives the run its final status and timing.
    async fn finish(&self, session: &mut Session, run: &mut RunRow) -> Result<()> {
        // The first claim counts, so that parts of one run give the same status
        // in whatever order they come.
        let claimed = runs::claimed_status(session, self.project, run.id).await?;
        run.status = final_status(claimed, &run.totals);
        run.duration_ms = run.duration_ms.or(self.fields.duration_ms).or(self.span);
        if run.finished_at.is_none() {
            let end =
                run.duration_ms.map(|duration| Timestamp(run.start_time.millis().saturating_add(duration)));
            run.finished_at = Some(end.unwrap_or(self.now));
        }
        if run.totals_from_rows {
            let durations = executions::durations(session, self.project, run.id).await?;
            (run.avg_ms, run.p90_ms) = mean_and_p90(durations);
        }
        Ok(())
    }

    /// Brings the counters of the project up to date.
    async fn count(
        &self,
        session: &mut Session,
        run: &RunRow,
        lanes: &[i64],
        folded: &Folded,
        is_fresh: bool,
        before: &RunContribution,
    ) -> Result<()> {
        let after = contribution(run);
        let day = run.order_at.day();
        rollups::add_project_day(session, self.project, lanes, day, run.is_full, before, &after).await?;
        let growth = Growth {
            runs: i64::from(is_fresh),
            test_cases: folded.new_test_cases,
            executions: folded.new_executions,
            new_run: is_fresh.then_some((run.id, run.order_at)),
        };
        projects::count(session, self.project, growth).await?;
        if run.is_full && run.status.is_final() {
            projects::set_latest_full(session, self.project, run.id, run.order_at).await?;
        }
        Ok(())
    }
}

/// Values made of strings, numbers and lists have a JSON text.
fn json<T: serde::Serialize>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// What a run contributes to its day: nothing before it is final.
fn contribution(run: &RunRow) -> RunContribution {
    if !run.status.is_final() {
        return RunContribution::default();
    }
    RunContribution { runs: 1, runs_passed: i64::from(run.status == RunStatus::Passed), totals: run.totals }
}

fn default_branch(fields: &RunFields) -> Option<&str> {
    fields.metadata.as_ref()?.get("scm")?.get("defaultBranch")?.as_str().filter(|branch| !branch.is_empty())
}

/// Splits groups so that one transaction takes at most
/// [`ENTRIES_PER_TRANSACTION`] entries; all entries of one execution stay
/// together. There is always one chunk, even for a run without tests.
fn chunks(groups: &[Group]) -> Vec<&[Group]> {
    let mut chunks = Vec::new();
    let (mut start, mut entries) = (0, 0);
    for (at, group) in groups.iter().enumerate() {
        if entries > 0 && entries + group.entries.len() > ENTRIES_PER_TRANSACTION {
            chunks.push(&groups[start..at]);
            (start, entries) = (at, 0);
        }
        entries += group.entries.len();
    }
    chunks.push(&groups[start..]);
    chunks
}
