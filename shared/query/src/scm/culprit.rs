//! Which commit turned a test red. A job reads the commits of the streak and
//! what they changed, once for each range; what the runs of the test say about
//! them is worked out whenever somebody looks, so that a run on a commit of the
//! range counts as soon as it is there.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::suspects::{BisectedTest, bisect_command, locate, rank};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{Provider, is_sha};
use callboard_store::jobs::{self, JobState, Payload};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Access;
use super::cache::{Entry, Freshness};
use super::commits::RepositoryCommit;
use super::error::SourceControlError;
use super::host::Host;
use super::range;
use super::suspects::{SuspectReason, follow_imports};
use crate::Context;
use crate::failures::{NoStreak, Streak, clues, streak};

/// How often the job reads on where the code host was too slow.
const MAX_READS: usize = 4;
/// Commits that are named in an answer.
const MAX_SUSPECTS: usize = 50;

/// The work of reading what the commits of a streak changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindCulprit {
    /// Project.
    pub project: ProjectId,
    /// An execution of the streak.
    pub execution: ExecutionId,
}

impl Payload for FindCulprit {
    const KIND: &'static str = "find_culprit";
}

/// What the job stored about a range.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Stored {
    /// The commits, newest first.
    Read {
        commits: Vec<WeighedCommit>,
        /// Whether there are older ones.
        is_cut: bool,
        /// Why changes are missing, as a sentence.
        problem: Option<String>,
    },
    /// They could not be read: why, as a sentence.
    Failed(String),
}

/// A commit with what its changes say.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct WeighedCommit {
    commit: RepositoryCommit,
    prior: f64,
    reasons: Vec<SuspectReason>,
}

/// How far the search for a culprit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CulpritState {
    /// Nobody asked for it yet.
    None,
    /// The commits are being read.
    Running,
    /// It is done.
    Completed,
    /// The commits could not be read; asking again tries again.
    Failed,
    /// There is nothing to search: `reason` says why.
    Unavailable,
}

/// A commit that may have turned a test red.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CulpritSuspect {
    /// The commit.
    #[serde(flatten)]
    pub commit: RepositoryCommit,
    /// Address of its page.
    pub url: String,
    /// How probable it is, 0 to 1; over all commits of the range they sum to 1.
    pub score: f64,
    /// What ties its changes to the failure; empty when nothing does.
    pub why: Vec<SuspectReason>,
    /// Runs of the test on this commit that passed.
    pub passed_runs: i64,
    /// Runs of the test on this commit that failed.
    pub failed_runs: i64,
}

/// A commit that is worth testing.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextCommit {
    /// Whole hash.
    #[schema(example = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567")]
    pub sha: String,
    /// First eight digits of the hash.
    pub short_sha: String,
    /// How much a run on it is expected to say, bits.
    pub information: f64,
}

/// The streak and its range.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CulpritRange {
    /// Commit of the last pass.
    pub base: String,
    /// Commit at which the range ends.
    pub head: String,
    /// The run in which the test passed last.
    pub last_passed_run_id: i64,
    /// The first run of the streak.
    pub first_failed_run_id: i64,
    /// Commit of that run.
    pub first_failed_commit: Option<String>,
    /// Failures in a row, up to the execution.
    pub failed_runs: i64,
    /// How probably a run of the test fails by chance.
    pub flake_rate: f64,
    /// Whether there are older commits than those examined.
    pub commits_cut: bool,
}

/// Which commit turned a test red, as far as it is known.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CulpritSearch {
    /// How far it is.
    pub state: CulpritState,
    /// Why there is nothing, or not everything, as a sentence.
    #[schema(example = "The test never passed before this failure, so there is no commit to begin with.")]
    pub reason: Option<String>,
    /// The streak; null where there is none.
    pub range: Option<CulpritRange>,
    /// Commits, the most probable first, at most 50; empty until it is done.
    pub suspects: Vec<CulpritSuspect>,
    /// The commit to test next; null when the culprit is clear.
    pub next: Option<NextCommit>,
    /// A command that searches the range on somebody's own machine.
    pub bisect: Option<String>,
}

impl CulpritSearch {
    fn without(state: CulpritState, reason: impl Into<Option<String>>) -> Self {
        Self { state, reason: reason.into(), range: None, suspects: Vec::new(), next: None, bisect: None }
    }
}

/// A range of commits with the place of what is stored about it.
struct Search {
    host: Host,
    streak: Streak,
    entry: Entry<Stored>,
    key: String,
}

async fn open(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    execution: ExecutionId,
    now: Timestamp,
) -> Result<Result<Search, NoStreak>, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let streak = match streak(ctx, project, execution, now).await? {
        Ok(streak) if is_sha(&streak.green.1) && is_sha(&streak.head) => streak,
        Ok(_) => return Ok(Err(NoStreak::UnknownCommit)),
        Err(none) => return Ok(Err(none)),
    };
    let place = (streak.test_case.get(), streak.browser, &streak.green.1, &streak.head);
    let key = host.key("culprit", &place)?;
    let entry = Entry::look_up(ctx, host.project, key.clone(), now).await?;
    let key = format!("{key}:{}", host.project);
    Ok(Ok(Search { host, streak, entry, key }))
}

/// Which commit turned the test of an execution red, as far as it is known. Asks
/// no code host.
///
/// # Errors
/// [`SourceControlError::NotConfigured`], [`SourceControlError::Query`].
pub async fn culprit(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    execution: ExecutionId,
    now: Timestamp,
) -> Result<CulpritSearch, SourceControlError> {
    let search = match open(ctx, access, project, execution, now).await? {
        Ok(search) => search,
        Err(none) => return Ok(CulpritSearch::without(CulpritState::Unavailable, none.to_string())),
    };
    let state = jobs::state(&mut ctx.store.db().read().await?, &search.key).await?;
    Ok(search.answer(state))
}

/// Queues the search, once for a range: one that runs or is done is returned.
///
/// # Errors
/// As [`culprit`].
pub async fn request_culprit(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    execution: ExecutionId,
    now: Timestamp,
) -> Result<CulpritSearch, SourceControlError> {
    let mut search = match open(ctx, access, project, execution, now).await? {
        Ok(search) => search,
        Err(none) => return Ok(CulpritSearch::without(CulpritState::Unavailable, none.to_string())),
    };
    let is_read = |stored: &Stored| matches!(stored, Stored::Read { .. });
    if search.entry.is_fresh_and(is_read) {
        return Ok(search.answer(None));
    }
    let job = FindCulprit { project: project.get(), execution };
    let mut session = ctx.store.db().begin().await?;
    if !jobs::enqueue(&mut session, &search.key, Some(project.get()), &job, now).await? {
        jobs::requeue(&mut session, &search.key, &job, now).await?;
    }
    session.commit().await?;
    // What a failed search said is over.
    search.entry.take_any();
    Ok(search.answer(Some(JobState::Waiting)))
}

/// Reads what the commits of a streak changed. `has_time` says whether to read on
/// where the code host was slow.
///
/// # Errors
/// [`crate::QueryError`]: doing it again may help. What the code host refuses is
/// stored as the answer.
pub async fn find_culprit(
    ctx: &Context,
    access: &Access<'_>,
    job: &FindCulprit,
    has_time: impl Fn() -> bool,
    now: Timestamp,
) -> crate::Result<()> {
    let project = Authorized::of_job(job.project);
    let search = match open(ctx, access, project, job.execution, now).await {
        Ok(Ok(search)) => search,
        // It was there when it was asked for: the page says what is missing now.
        Ok(Err(_)) | Err(SourceControlError::NotConfigured(_) | SourceControlError::Upstream { .. }) => {
            return Ok(());
        }
        Err(SourceControlError::Query(crate::QueryError::NotFound { .. })) => return Ok(()),
        Err(SourceControlError::Query(error)) => return Err(error),
    };
    let read = Box::pin(weigh(ctx, &search, job, has_time, now)).await;
    let (stored, freshness) = match read {
        Ok(found @ Stored::Read { problem: None, .. }) => (found, Freshness::COMMIT),
        Ok(found) => (found, Freshness::INCOMPLETE),
        Err(SourceControlError::Query(error)) => return Err(error),
        Err(error) => (Stored::Failed(error.to_string()), Freshness::INCOMPLETE),
    };
    search.entry.store(ctx, stored, None, freshness, now).await?;
    Ok(())
}

/// The commits of a range, each with what its changes say.
async fn weigh(
    ctx: &Context,
    search: &Search,
    job: &FindCulprit,
    has_time: impl Fn() -> bool,
    now: Timestamp,
) -> Result<Stored, SourceControlError> {
    let Search { host, streak, .. } = search;
    let (base, head) = (&streak.green.1, &streak.head);
    let mut read = Box::pin(range::read(ctx, host, base, head, now)).await?;
    for _ in 1..MAX_READS {
        if read.problem.is_none() || read.changes.is_empty() || !has_time() {
            break;
        }
        // What came in time is stored, so this goes on from there.
        read = Box::pin(range::read(ctx, host, base, head, now)).await?;
    }
    let project = Authorized::of_job(job.project);
    let (mut clues, _) = Box::pin(clues(ctx, project, job.execution, streak.between)).await?;
    follow_imports(ctx, host, &mut clues, head, now).await?;
    let ranking = rank(&clues, &read.changes, &[]);
    let known = ranking.commits.len().max(1) as f64;
    let mut by_sha: HashMap<String, _> =
        ranking.commits.into_iter().map(|suspect| (suspect.sha.clone(), suspect)).collect();
    let commits = read.commits.into_iter().map(|commit| match by_sha.remove(&commit.sha) {
        Some(suspect) => WeighedCommit {
            commit,
            prior: suspect.probability,
            reasons: suspect.reasons.iter().map(|(path, reason)| SuspectReason::new(path, reason)).collect(),
        },
        // A commit whose changes are not known is as suspicious as the average.
        None => WeighedCommit { commit, prior: 1.0 / known, reasons: Vec::new() },
    });
    Ok(Stored::Read { commits: commits.collect(), is_cut: read.goes_on, problem: read.problem })
}

impl Search {
    fn range(&self, commits_cut: bool) -> CulpritRange {
        let streak = &self.streak;
        CulpritRange {
            base: streak.green.1.clone(),
            head: streak.head.clone(),
            last_passed_run_id: streak.green.0.get(),
            first_failed_run_id: streak.first_red.0.get(),
            first_failed_commit: streak.first_red.1.clone(),
            failed_runs: i64::try_from(streak.reds).unwrap_or(i64::MAX),
            flake_rate: rounded(streak.flake_rate),
            commits_cut,
        }
    }

    fn bisect(&self) -> String {
        let streak = &self.streak;
        let test = BisectedTest {
            file_path: &streak.file_path,
            suite_path: &streak.suite_path,
            title: &streak.title,
            browser_project: &streak.browser_project,
        };
        bisect_command(&streak.green.1, &streak.head, test, streak.flake_rate)
    }

    /// What is known, with the state of the job.
    fn answer(mut self, job: Option<JobState>) -> CulpritSearch {
        let stored = self.entry.take_any();
        let (range, bisect) = (Some(self.range(false)), Some(self.bisect()));
        let partly = |state, reason: Option<String>| CulpritSearch {
            range: range.clone(),
            bisect: bisect.clone(),
            ..CulpritSearch::without(state, reason)
        };
        match (stored, job) {
            (Some(Stored::Read { commits, is_cut, problem }), _) => self.located(commits, is_cut, problem),
            (_, Some(JobState::Waiting)) => partly(CulpritState::Running, None),
            (Some(Stored::Failed(error)), _) => partly(CulpritState::Failed, Some(error)),
            (None, Some(JobState::GivenUp)) => partly(
                CulpritState::Failed,
                Some("The search was given up after several attempts.".to_owned()),
            ),
            (None, Some(JobState::Done) | None) => partly(CulpritState::None, None),
        }
    }

    fn located(&self, commits: Vec<WeighedCommit>, is_cut: bool, problem: Option<String>) -> CulpritSearch {
        let streak = &self.streak;
        if commits.is_empty() {
            let reason = "Nothing leads from the commit of the last pass to that of the failure: the branch \
                          was rewritten, or the failure tested an older commit.";
            return CulpritSearch {
                range: Some(self.range(is_cut)),
                ..CulpritSearch::without(CulpritState::Unavailable, reason.to_owned())
            };
        }
        let priors: Vec<(&str, f64)> =
            commits.iter().map(|weighed| (weighed.commit.sha.as_str(), weighed.prior)).collect();
        let found = locate(&priors, &streak.observations, streak.flake_rate);
        let next = found.next.and_then(|next| {
            let commit = &commits.get(next.place)?.commit;
            Some(NextCommit {
                sha: commit.sha.clone(),
                short_sha: commit.short_sha.clone(),
                information: rounded(next.gain),
            })
        });
        let only = "Only one commit lies between the last pass and the failure.";
        let reason = problem.or_else(|| (commits.len() == 1).then(|| only.to_owned()));
        let mut suspects: Vec<CulpritSuspect> = commits
            .into_iter()
            .zip(found.probabilities)
            .map(|(weighed, score)| self.suspect(weighed, score))
            .collect();
        // Among equals the newest stays first.
        suspects.sort_by(|one, other| other.score.total_cmp(&one.score));
        suspects.truncate(MAX_SUSPECTS);
        CulpritSearch {
            state: CulpritState::Completed,
            reason,
            range: Some(self.range(is_cut)),
            suspects,
            next,
            bisect: Some(self.bisect()),
        }
    }

    fn suspect(&self, weighed: WeighedCommit, score: f64) -> CulpritSuspect {
        let runs = |has_failed: bool| {
            let on_it = self.streak.observations.iter().filter(|seen| seen.sha == weighed.commit.sha);
            i64::try_from(on_it.filter(|seen| seen.has_failed == has_failed).count()).unwrap_or(i64::MAX)
        };
        CulpritSuspect {
            url: Provider::commit_page(self.host.provider, &self.host.url, &weighed.commit.sha),
            score: rounded(score),
            passed_runs: runs(false),
            failed_runs: runs(true),
            commit: weighed.commit,
            why: weighed.reasons,
        }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
