//! Which commits and files may have caused a failure cluster: the commits from
//! the last green run, or the pinned base commit, to the first failing one,
//! ranked by what ties them to its newest failure.
//!
//! The answer is stored like those of code hosts. Pages and tools that may ask
//! nobody read the stored one.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId, RunId};
use callboard_domain::suspects::{Clues, Observation, Reason, rank};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::Provider;
use callboard_store::clusters::reads::sightings;
use callboard_store::clusters::{self, ClusterRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Access;
use super::cache::{DAY_MS, Entry, Freshness};
use super::commits::RepositoryCommit;
use super::error::SourceControlError;
use super::files::text_at;
use super::host::Host;
use super::range;
use super::since_green::{NoCommits, ends};
use crate::failures::clues;
use crate::run_views::since_green;
use crate::{Context, Entity, QueryError};

/// Commits and files that are named.
const MAX_SUSPECT_COMMITS: usize = 5;
const MAX_SUSPECT_FILES: usize = 10;
/// Commits of a range that are stored with the answer.
const MAX_LISTED: usize = 50;
/// Failures whose evidence is looked for, the newest first.
const FAILURES: i64 = 10;
/// Files whose imports are followed.
const MAX_IMPORTS: usize = 6;
/// How far back executions are looked at when no green run limits them, days.
const OBSERVED_DAYS: i64 = 30;

/// Which suspects to look for.
#[derive(Debug, Clone, Copy)]
pub struct SuspectsOf<'a> {
    /// The cluster.
    pub cluster: ClusterId,
    /// Begins the range here instead of at the cluster's base commit.
    pub base: Option<&'a str>,
}

/// What ties a file to the failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspectReason {
    /// The file.
    #[schema(example = "src/checkout.tsx")]
    pub path: String,
    /// A clause about it.
    #[schema(example = "removes “Place order”, which the test looks for")]
    pub text: String,
}

impl SuspectReason {
    pub(super) fn new(path: &str, reason: &Reason) -> Self {
        Self { path: path.to_owned(), text: reason.to_string() }
    }
}

/// A commit that may have caused the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspectCommitItem {
    /// The commit.
    #[serde(flatten)]
    pub commit: RepositoryCommit,
    /// How probable it is, 0 to 1, if one of the examined commits is the cause.
    pub probability: f64,
    /// Whether it stands out from all others.
    pub is_top: bool,
    /// What ties it to the failure; empty when nothing does.
    pub reasons: Vec<SuspectReason>,
}

/// A file whose change may have caused the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspectFileItem {
    /// Path.
    #[schema(example = "src/checkout.tsx")]
    pub path: String,
    /// Sum of what ties it to the failure.
    pub score: f64,
    /// What ties it to the failure.
    pub reasons: Vec<String>,
    /// Commits that changed it, the most suspicious first.
    pub commits: Vec<String>,
}

impl std::fmt::Display for SuspectReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.path, self.text)
    }
}

impl SuspectCommitItem {
    /// One line about it.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { commit, probability, is_top, reasons, .. } = self;
        let mark = if *is_top { "likely cause: " } else { "" };
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        let (sha, author, subject) = (&commit.short_sha, &commit.author, commit.subject());
        format!("{mark}{sha} by {author}: {subject} ({:.0}%){why}", probability * 100.0)
    }
}

impl SuspectFileItem {
    /// One line about it.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} ({:.1}): {}", self.path, self.score, self.reasons.join("; "))
    }
}

/// What changed before a cluster appeared, and which of it may be the cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSuspects {
    /// Kind of code host.
    #[schema(value_type = String, example = "github")]
    pub provider: Provider,
    /// Address of the repository.
    #[schema(example = "https://github.com/acme/shop")]
    pub repository_url: String,
    /// Commit of the last green run, or the chosen base.
    pub base: String,
    /// Commit of the first run that shows the cluster.
    pub head: String,
    /// Commits in between, newest first, at most 50.
    pub items: Vec<RepositoryCommit>,
    /// Whether there are older ones.
    pub commits_cut: bool,
    /// Commits whose changes were examined.
    pub examined_commits: usize,
    /// Files that they changed.
    pub files_count: usize,
    /// Why changes of commits are missing; null when none are.
    pub problem: Option<String>,
    /// Suspicious commits, the most probable first, at most 5.
    pub commits: Vec<SuspectCommitItem>,
    /// Suspicious files, the most suspicious first, at most 10.
    pub files: Vec<SuspectFileItem>,
}

/// What lies before a cluster.
#[derive(Debug, Clone)]
pub enum ClusterRange {
    /// Commits with what is suspicious among them.
    Suspects(Box<ClusterSuspects>),
    /// Nothing to list, at this kind of code host.
    None(Provider, NoCommits),
}

/// The range of a cluster, and the first run's moment.
struct Range {
    cluster: ClusterRow,
    base: String,
    head: String,
    between: (Timestamp, Timestamp),
}

async fn range(
    ctx: &Context,
    project: Authorized<ProjectId>,
    wanted: SuspectsOf<'_>,
) -> Result<Result<Range, NoCommits>, SourceControlError> {
    let id = wanted.cluster;
    let mut session = ctx.store.db().read().await?;
    let cluster = match clusters::get(&mut session, project.get(), id).await? {
        Some(ClusterRow { merged_into: Some(into), .. }) => {
            clusters::get(&mut session, project.get(), into).await?
        }
        found => found,
    };
    drop(session);
    let cluster = cluster.ok_or_else(|| QueryError::not_found(Entity::Cluster, id))?;
    let base = wanted.base.or(cluster.base_commit.as_deref());
    let first = RunId(cluster.first_run.get());
    let since = match since_green(ctx, project, first, base).await {
        Ok(since) => since,
        // Old runs are cleaned up; their clusters stay.
        Err(QueryError::NotFound { .. }) => return Ok(Err(NoCommits::FirstRunDeleted)),
        Err(error) => return Err(error.into()),
    };
    let (base, head) = match ends(&since) {
        Ok(ends) => ends,
        Err(none) => return Ok(Err(none)),
    };
    let to = cluster.first_seen_at;
    let green = since.green.as_ref().map(|green| green.start_time);
    let from = green.unwrap_or(Timestamp(to.millis() - OBSERVED_DAYS * DAY_MS));
    let (base, head) = (base.to_ascii_lowercase(), head.to_ascii_lowercase());
    Ok(Ok(Range { cluster, base, head, between: (from, to) }))
}

async fn entry(
    ctx: &Context,
    host: &Host,
    range: &Range,
    now: Timestamp,
) -> Result<Entry<ClusterSuspects>, SourceControlError> {
    let key = host.key("suspects", &(range.cluster.id.get(), &range.base, &range.head))?;
    Ok(Entry::look_up(ctx, host.project, key, now).await?)
}

/// The suspects that are stored; `None` when nobody asked for them yet, and
/// where source control is not configured. Asks no code host.
///
/// # Errors
/// [`QueryError`].
pub async fn stored_suspects(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    wanted: SuspectsOf<'_>,
    now: Timestamp,
) -> crate::Result<Option<ClusterSuspects>> {
    let read = async {
        let host = Host::open(ctx, access, project, now).await?;
        match range(ctx, project, wanted).await? {
            Ok(range) => Ok(entry(ctx, &host, &range, now).await?.take_any()),
            Err(_) => Ok(None),
        }
    };
    match read.await {
        Ok(found) => Ok(found),
        Err(SourceControlError::NotConfigured(_) | SourceControlError::Upstream { .. }) => Ok(None),
        Err(SourceControlError::Query(error)) => Err(error),
    }
}

/// The commits before a cluster, ranked. Reads from the code host what is not
/// stored.
///
/// # Errors
/// [`SourceControlError`].
pub async fn suspects(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    wanted: SuspectsOf<'_>,
    now: Timestamp,
) -> Result<ClusterRange, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let range = match range(ctx, project, wanted).await? {
        Ok(range) => range,
        Err(none) => return Ok(ClusterRange::None(host.provider, none)),
    };
    let mut entry = entry(ctx, &host, &range, now).await?;
    if let Some(found) = entry.take_fresh() {
        return Ok(ClusterRange::Suspects(Box::new(found)));
    }
    let read = Box::pin(range::read(ctx, &host, &range.base, &range.head, now)).await?;
    if read.commits.is_empty() {
        return Ok(ClusterRange::None(host.provider, NoCommits::NothingNew));
    }
    let (clues, observations) = Box::pin(newest_clues(ctx, &host, project, &range, now)).await?;
    let found = ranked(&host, &range, &read, &clues, &observations);
    let freshness = if found.problem.is_none() { Freshness::DAY } else { Freshness::INCOMPLETE };
    Ok(ClusterRange::Suspects(Box::new(entry.store(ctx, found, None, freshness, now).await?)))
}

/// What the newest failure shows whose evidence is still stored.
async fn newest_clues(
    ctx: &Context,
    host: &Host,
    project: Authorized<ProjectId>,
    range: &Range,
    now: Timestamp,
) -> Result<(Clues, Vec<Observation>), SourceControlError> {
    let seen =
        sightings(&mut ctx.store.db().read().await?, project.get(), range.cluster.id, FAILURES).await?;
    for sighting in seen {
        let (mut found, observations) = match clues(ctx, project, sighting.execution, range.between).await {
            Ok(found) => found,
            Err(QueryError::NotFound { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        follow_imports(ctx, host, &mut found, &range.head, now).await?;
        return Ok((found, observations));
    }
    Ok((Clues::default(), Vec::new()))
}

/// Adds what the imports of the test import. Without them the ranking is only a
/// little worse.
pub(super) async fn follow_imports(
    ctx: &Context,
    host: &Host,
    clues: &mut Clues,
    head: &str,
    now: Timestamp,
) -> Result<(), SourceControlError> {
    let paths: Vec<String> = clues.import_paths().take(MAX_IMPORTS).collect();
    for path in paths {
        match text_at(ctx, host, head, &path, now).await {
            Ok(Some(source)) => clues.add_imports_of(&path, &source),
            Ok(None) => {}
            Err(SourceControlError::Upstream { error, .. }) => {
                tracing::info!(%error, "imports of a failing test were not read");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn ranked(
    host: &Host,
    range: &Range,
    read: &range::RangeChanges,
    clues: &Clues,
    observations: &[Observation],
) -> ClusterSuspects {
    let ranking = rank(clues, &read.changes, observations);
    let files: std::collections::BTreeSet<&str> =
        read.changes.iter().flat_map(|change| &change.files).map(|file| file.path.as_str()).collect();
    let commit = |sha: &str| read.commits.iter().find(|commit| commit.sha == sha).cloned();
    let commits = ranking.commits.iter().take(MAX_SUSPECT_COMMITS).filter_map(|found| {
        Some(SuspectCommitItem {
            commit: commit(&found.sha)?,
            probability: (found.probability * 1_000.0).round() / 1_000.0,
            is_top: found.is_top,
            reasons: found.reasons.iter().map(|(path, reason)| SuspectReason::new(path, reason)).collect(),
        })
    });
    let suspicious = ranking.files.iter().take(MAX_SUSPECT_FILES).map(|found| SuspectFileItem {
        path: found.path.clone(),
        score: (found.score * 10.0).round() / 10.0,
        reasons: found.reasons.iter().map(ToString::to_string).collect(),
        commits: found.commits.clone(),
    });
    ClusterSuspects {
        provider: host.provider,
        repository_url: host.url.clone(),
        base: range.base.clone(),
        head: range.head.clone(),
        commits_cut: read.goes_on || read.commits.len() > MAX_LISTED,
        examined_commits: read.changes.len(),
        files_count: files.len(),
        problem: read.problem.clone(),
        commits: commits.collect(),
        files: suspicious.collect(),
        items: read.commits.iter().take(MAX_LISTED).cloned().collect(),
    }
}
