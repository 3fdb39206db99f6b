//! Questions about runs.

use std::collections::HashMap;

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::annotations::LinkTarget;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, Newest, RunFilter, RunRow, RunsCounted, expired};
use callboard_store::{boxed, evidence, files, projects, reports};
use serde_json::Value;

use crate::baseline::{self, Baseline};
use crate::gates;
use crate::page::{COUNTED_TO, Slice, Total};
use crate::projects::required;
use crate::run_attempts::{self, RunAttempt};
use crate::run_errors::{self, RunErrorItem};
use crate::shapes::{ProjectRef, Report, RunBrief, RunDetail, RunItem, RunStorage, ShardItem, StorageByKind};
use crate::{Context, Entity, QueryError, Result, links, markers, retention};

/// Index rows that one request may look at for a filter no index leads with.
const RESIDUAL_ROWS: usize = 5_000;
/// Most rows fetched at a time while such a filter is applied. Most filters
/// leave out little: the first step fetches little more than a page.
const RESIDUAL_STEP: usize = 500;
/// Most unfinished runs an answer lists.
const ACTIVE_RUNS: i64 = 200;

/// Start (epoch ms) and id of the last run seen.
pub type RunKey = (i64, i64);

/// The conditions of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    /// Only these projects (on top of the scope).
    pub projects: Vec<ProjectId>,
    /// Any of these branches; an empty word is "none recorded".
    pub branches: Vec<String>,
    /// Any of these environments; an empty word is "none recorded".
    pub environments: Vec<String>,
    /// Any of these statuses.
    pub statuses: Vec<RunStatus>,
    /// Started at this moment or later.
    pub from: Option<Timestamp>,
    /// Started before this moment.
    pub before: Option<Timestamp>,
    /// Only full, or only partial runs.
    pub full_runs: Option<bool>,
    /// Only commits beginning with this (lower-case hex).
    pub commit_prefix: Option<String>,
    /// Only this change request.
    pub pull_request: Option<String>,
    /// Only this commit author.
    pub author: Option<String>,
    /// Only labels beginning with this.
    pub label_prefix: Option<String>,
    /// Only runs with, or without, failed tests.
    pub has_failures: Option<bool>,
    /// Only green, or only other runs.
    pub green: Option<bool>,
    /// Only pinned, or only other runs.
    pub pinned: Option<bool>,
    /// Only runs that are final.
    pub finished: bool,
    /// Oldest first.
    pub ascending: bool,
    /// Key of the last row of the page before.
    pub after: Option<RunKey>,
}

impl RunQuery {
    /// What is left to the indexes. Those of branch, environment, status and
    /// commit begin with the project: across all projects only time leads.
    fn leading(&self, in_projects: bool) -> RunFilter {
        fn only<T: Clone>(list: &[T]) -> Option<T> {
            if let [one] = list { Some(one.clone()) } else { None }
        }
        let time = RunFilter {
            from: self.from,
            before: self.before,
            ascending: self.ascending,
            after: self.after,
            ..RunFilter::default()
        };
        if !in_projects {
            return time;
        }
        RunFilter {
            branch: only(&self.branches),
            environment: only(&self.environments),
            status: only(&self.statuses),
            commit_prefix: self.commit_prefix.clone(),
            ..time
        }
    }

    fn is_residual(&self, in_projects: bool) -> bool {
        let led = usize::from(in_projects);
        self.branches.len() > led
            || self.environments.len() > led
            || self.statuses.len() > led
            || (self.commit_prefix.is_some() && !in_projects)
            || self.full_runs.is_some()
            || self.asks_for_rest()
    }

    /// Conditions that no index leads with, whatever the projects.
    fn asks_for_rest(&self) -> bool {
        self.pull_request.is_some()
            || self.author.is_some()
            || self.label_prefix.is_some()
            || self.has_failures.is_some()
            || self.green.is_some()
            || self.pinned.is_some()
            || self.finished
    }

    fn admits(&self, run: &RunRow) -> bool {
        let any = |list: &[String], value: &String| list.is_empty() || list.contains(value);
        any(&self.branches, &run.branch)
            && any(&self.environments, &run.environment)
            && (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && self
                .commit_prefix
                .as_ref()
                .is_none_or(|prefix| run.commit_sha.as_ref().is_some_and(|commit| commit.starts_with(prefix)))
            && self.full_runs.is_none_or(|full| full == run.is_full)
            && self.pull_request.as_ref().is_none_or(|wanted| run.pull_request.as_ref() == Some(wanted))
            && self.author.as_ref().is_none_or(|wanted| run.author.as_ref() == Some(wanted))
            && self
                .label_prefix
                .as_ref()
                .is_none_or(|prefix| run.label.as_ref().is_some_and(|label| label.starts_with(prefix)))
            && self.has_failures.is_none_or(|wanted| wanted == (run.totals.failed_tests > 0))
            && self.green.is_none_or(|wanted| wanted == run.is_green)
            && self.pinned.is_none_or(|wanted| wanted == run.pin.is_some())
            && (!self.finished || run.status.is_final())
    }
}

/// Runs of the caller's projects by start and id. A filter that no index leads
/// with looks at a bounded number of rows; the page may then be short, even
/// empty, while there is a next one.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    scope: &Scope,
    query: &RunQuery,
    limit: usize,
) -> Result<Slice<RunItem, RunKey>> {
    let mut session = ctx.store.db().read().await?;
    let scope = if query.projects.is_empty() {
        scope.clone()
    } else {
        scope.narrowed_to(query.projects.iter().copied())
    };
    let rows = rows(&mut session, scope.projects().as_deref(), query, limit).await?;
    let items = show(ctx, &mut session, &rows.items).await?;
    Ok(Slice { items, next: rows.next })
}

/// The same of one project.
///
/// # Errors
/// [`QueryError::Store`].
pub(crate) async fn list_of(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &RunQuery,
    limit: usize,
) -> Result<Slice<RunItem, RunKey>> {
    let mut session = ctx.store.db().read().await?;
    let rows = rows(&mut session, Some(&[project.get()]), query, limit).await?;
    let items = show(ctx, &mut session, &rows.items).await?;
    Ok(Slice { items, next: rows.next })
}

/// How many runs of a project there are. Where it has very many, only what one
/// index counts is counted; `None` is not known.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count(
    ctx: &Context,
    project: Authorized<ProjectId>,
    runs_of_project: i64,
    query: &RunQuery,
) -> Result<Option<Total>> {
    let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
    let statuses: Vec<String> = query.statuses.iter().map(|status| status.as_str().to_owned()).collect();
    let wanted = RunsCounted {
        branches: some(&query.branches),
        environments: some(&query.environments),
        statuses: some(&statuses),
        from: query.from,
        before: query.before,
        is_full: query.full_runs,
    };
    let conditions = [
        wanted.branches.is_some(),
        wanted.environments.is_some(),
        wanted.statuses.is_some(),
        wanted.is_full.is_some(),
    ];
    // No index counts partial runs.
    let is_led =
        conditions.iter().filter(|is_asked| **is_asked).count() <= 1 && wanted.is_full != Some(false);
    let is_small = usize::try_from(runs_of_project).is_ok_and(|runs| runs <= RESIDUAL_ROWS);
    if query.commit_prefix.is_some() || query.asks_for_rest() || !(is_led || is_small) {
        return Ok(None);
    }
    let mut session = ctx.store.db().read().await?;
    let counted = runs::count(&mut session, project.get(), &wanted, COUNTED_TO).await?;
    Ok(Some(Total::of_counted(counted)))
}

async fn rows(
    session: &mut Session,
    projects: Option<&[ProjectId]>,
    query: &RunQuery,
    limit: usize,
) -> Result<Slice<RunRow, RunKey>> {
    let key = |run: &RunRow| (run.order_at.millis(), run.id.get());
    let mut filter = query.leading(projects.is_some());
    if !query.is_residual(projects.is_some()) {
        let rows = merged(session, projects, &filter, limit + 1).await?;
        return Ok(Slice::cut(rows, limit, key));
    }
    let mut found = Vec::new();
    let mut seen = 0;
    let mut size = (limit + limit / 4 + 1).min(RESIDUAL_STEP);
    loop {
        let step = merged(session, projects, &filter, size).await?;
        let is_last = step.len() < size;
        size = RESIDUAL_STEP;
        seen += step.len();
        filter.after = step.last().map(key);
        for run in step {
            if query.admits(&run) {
                found.push(run);
                if found.len() > limit {
                    return Ok(Slice::cut(found, limit, key));
                }
            }
        }
        if is_last {
            return Ok(Slice { items: found, next: None });
        }
        if seen >= RESIDUAL_ROWS {
            return Ok(Slice { items: found, next: filter.after });
        }
    }
}

/// Index rows of all projects asked for, merged in order: one bounded range
/// per project, or the global index when everything is in scope.
async fn merged(
    session: &mut Session,
    projects: Option<&[ProjectId]>,
    filter: &RunFilter,
    limit: usize,
) -> Result<Vec<RunRow>> {
    let take = i64::try_from(limit).unwrap_or(i64::MAX);
    let Some(projects) = projects else {
        return Ok(runs::list(session, None, filter, take).await?);
    };
    let mut found = Vec::new();
    for project in projects {
        found.extend(runs::list(session, Some(*project), filter, take).await?);
    }
    found.sort_by_key(|run| (run.order_at, run.id));
    if !filter.ascending {
        found.reverse();
    }
    found.truncate(limit);
    Ok(found)
}

async fn show(ctx: &Context, session: &mut Session, rows: &[RunRow]) -> Result<Vec<RunItem>> {
    let mut ids: Vec<i64> = rows.iter().map(|run| run.project.get()).collect();
    ids.sort_unstable();
    ids.dedup();
    let owners: HashMap<ProjectId, ProjectRow> =
        projects::get_many(session, ids).await?.into_iter().map(|project| (project.id, project)).collect();
    // Runs of a project that was deleted are on their way out.
    let owned = rows.iter().filter_map(|run| Some((run, owners.get(&run.project)?)));
    Ok(owned.map(|(run, owner)| RunItem::new(run, owner, &ctx.links)).collect())
}

/// Unfinished runs of the caller's projects, newest first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn active(ctx: &Context, scope: &Scope) -> Result<Vec<RunItem>> {
    let mut session = ctx.store.db().read().await?;
    let mut found = runs::open(&mut session, scope.projects().as_deref(), ACTIVE_RUNS).await?;
    found.sort_by_key(|run| std::cmp::Reverse((run.order_at, run.id)));
    show(ctx, &mut session, &found).await
}

/// The newest run that fits, by start and id.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn latest(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &RunQuery,
) -> Result<Option<RunBrief>> {
    let mut session = ctx.store.db().read().await?;
    let mut query = query.clone();
    loop {
        let found = rows(&mut session, Some(&[project.get()]), &query, 1).await?;
        match (found.items.first(), found.next) {
            (Some(run), _) => return Ok(Some(RunBrief::from_row(run))),
            (None, None) => return Ok(None),
            // Nothing among the rows one page looks at: an answer without
            // cursor has to go on.
            (None, next) => query.after = next,
        }
    }
}

/// How the newest finished full run ended that fits, whether its details are
/// kept or not. An empty word means runs without branch or environment.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn latest_full(
    ctx: &Context,
    project: Authorized<ProjectId>,
    branch: Option<&str>,
    environment: Option<&str>,
) -> Result<Option<RunBrief>> {
    let which = branch.map_or(Newest::Full, Newest::FullOfBranch);
    let id = project.get();
    let mut session = ctx.store.db().read().await?;
    let mut found = runs::newest_of(&mut session, vec![id.get()], which, environment, 1).await?;
    expired::complete(&mut session, &mut found, vec![id.get()], which, environment, 1).await?;
    Ok(found.get(&id).and_then(|runs| runs.first()).map(RunBrief::from))
}

/// One run in its list form.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn get(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<RunItem> {
    let mut session = ctx.store.db().read().await?;
    let row = required_run(&mut session, project.get(), run).await?;
    let owner = required(&mut session, project.get()).await?;
    Ok(RunItem::new(&row, &owner, &ctx.links))
}

/// What a run was after each of its attempts; none of a run that was never re-run.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn attempts(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<Vec<RunAttempt>> {
    let mut session = ctx.store.db().read().await?;
    let row = required_run(&mut session, project.get(), run).await?;
    let slots = runs::slots::of_run(&mut session, project.get(), run).await?;
    run_attempts::of_run(&mut session, &row, &slots).await
}

/// The errors of a run that belong to no test.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn errors(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<Vec<RunErrorItem>> {
    let mut session = ctx.store.db().read().await?;
    let row = required_run(&mut session, project.get(), run).await?;
    run_errors::of_run(&mut session, &row).await
}

pub(crate) async fn required_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<RunRow> {
    runs::get(session, project, run).await?.ok_or_else(|| QueryError::not_found(Entity::Run, run))
}

/// The run that files are attached to later, with its project.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::Denied`].
#[boxed]
pub async fn run_to_attach_to(
    ctx: &Context,
    scope: &Scope,
    run: RunId,
) -> Result<(Authorized<ProjectId>, RunStatus)> {
    let project = crate::resolve::run(ctx, scope, run).await?;
    let row = required_run(&mut ctx.store.db().read().await?, project.get(), run).await?;
    Ok((project, row.status))
}

/// One run with what its page shows besides its executions.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn detail(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<RunDetail> {
    let mut session = ctx.store.db().read().await?;
    let row = required_run(&mut session, project.get(), run).await?;
    let owner = required(&mut session, project.get()).await?;
    let details = runs::details(&mut session, project.get(), run).await?;
    let slots = runs::slots::of_run(&mut session, project.get(), run).await?;
    let reports = reports::of_run(&mut session, project.get(), run).await?;
    let by_kind = files::sizes_of_run(&mut session, project.get(), run).await?;
    let evidence_bytes = evidence::size_of_run(&mut session, project.get(), run).await?;
    let baseline = baseline::of_run(&mut session, &row).await?;
    let pin = gates::pin(&mut session, &row).await?;
    let gate = gates::newest(&mut session, &row).await?;
    let links = links::shown(&mut session, project.get(), LinkTarget::Run, run.get()).await?;
    let preceding_marker = markers::preceding(&mut session, &row).await?;
    let ends = retention::ends_of_run(&mut session, &row).await?;
    let json = |text: Option<&String>| text.and_then(|text| serde_json::from_str(text).ok());
    let run_errors = run_errors::known(&row, &slots, &details.metadata);
    let attempts = run_attempts::of_run(&mut session, &row, &slots).await?;
    let mut item = RunItem::new(&row, &owner, &ctx.links);
    item.brief.status_reason = run_errors::reason(&row, &run_errors);
    Ok(RunDetail {
        item,
        run_errors,
        project: ProjectRef::from_row(&owner),
        filter_details: json(details.filter_details.as_ref()),
        metadata: json(Some(&details.metadata)).unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        setup_steps: json(details.setup_steps.as_ref()).unwrap_or_else(|| Value::Array(Vec::new())),
        shards: slots.iter().map(ShardItem::from_row).collect(),
        attempts,
        reports: reports.iter().map(|report| Report::from_row(report, &ctx.links)).collect(),
        baseline: baseline.as_ref().map(Baseline::from_run),
        pin,
        gate,
        links,
        preceding_marker,
        retention: ends,
        storage: RunStorage {
            files: by_kind.iter().map(|kind| kind.count).sum(),
            bytes: by_kind.iter().map(|kind| kind.bytes).sum(),
            evidence_bytes,
            by_kind: by_kind
                .iter()
                .map(|size| StorageByKind { kind: size.kind.as_str(), count: size.count, bytes: size.bytes })
                .collect(),
        },
    })
}

/// Reports of a run by id.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn reports(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<Vec<Report>> {
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project.get(), run).await?;
    let rows = reports::of_run(&mut session, project.get(), run).await?;
    Ok(rows.iter().map(|report| Report::from_row(report, &ctx.links)).collect())
}
