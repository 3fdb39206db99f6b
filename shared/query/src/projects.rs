//! Questions about projects.

mod standing;

use std::collections::HashMap;

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::ids::{ProjectId, TagId};
use callboard_domain::lane::LaneKind;
use callboard_domain::retention::is_tracked;
use callboard_domain::status::RunStatus;
use callboard_store::db::Session;
use callboard_store::projects::{self, ProjectOrder, ProjectRow, Visible};
use callboard_store::runs::{self, Newest};
use callboard_store::tags::{self, TagRow};
use callboard_store::{boxed, lanes, quarantine, test_cases};

pub use self::standing::FailingStreak;
use self::standing::Telling;
pub(crate) use self::standing::{Told, of_branch};
use crate::page::{Slice, Total, fetch};
use crate::shapes::{
    BranchFacet, Facets, Project, ProjectOverview, ProjectRef, RunBrief, RunCounts, Tag, Tendency, non_empty,
};
use crate::{Context, Entity, QueryError, Result};

/// Runs an overview shows per project.
const RECENT_RUNS: usize = 20;
/// Most values of each facet.
const FACET_LIMIT: i64 = 200;
/// Branches and environments that a search for a branch looks at.
const SEARCHED_LANES: i64 = 5_000;
/// Projects fetched at a time while a filter no index leads with is applied,
/// and how often one request does so.
const RESIDUAL_STEP: usize = 500;
const RESIDUAL_STEPS: usize = 10;

/// The caller's scope as the store takes it.
pub(crate) fn visible(scope: &Scope) -> Visible {
    scope.projects().map_or(Visible::All, Visible::Only)
}

/// How a list of projects is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub enum Sort {
    /// Most recently active first.
    #[default]
    Updated,
    /// By name, in order of characters.
    Name,
}

/// The last row of a page of projects; the sort takes the part it needs.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct ProjectKey {
    /// Last activity, epoch ms.
    pub updated_at: i64,
    /// Name.
    pub name: String,
    /// Id.
    pub id: i64,
}

impl ProjectKey {
    pub(crate) fn from_row(row: &ProjectRow) -> Self {
        Self { updated_at: row.updated_at.millis(), name: row.name.clone(), id: row.id.get() }
    }
}

/// Which projects a list shows.
#[derive(Debug, Clone, Default)]
pub struct ProjectFilters {
    /// Only those whose name or label contains this, in any case.
    pub contains: Option<String>,
    /// Only those with this tag.
    pub tag: Option<TagId>,
    /// Only those that stand like this.
    pub standing: Option<Tendency>,
}

impl ProjectFilters {
    /// What no index leads with: it is applied to projects that were read.
    fn residual(&self) -> Option<Residual> {
        let Self { contains, standing, tag: _ } = self;
        let lowercase = contains.as_deref().map(str::to_lowercase);
        (lowercase.is_some() || standing.is_some()).then_some(Residual { lowercase, standing: *standing })
    }
}

/// Conditions that projects are read for.
struct Residual {
    /// In name or label, in small letters.
    lowercase: Option<String>,
    standing: Option<Tendency>,
}

impl Residual {
    /// Those of some projects that meet them, in their order.
    async fn retain(&self, session: &mut Session, mut rows: Vec<ProjectRow>) -> Result<Vec<ProjectRow>> {
        if let Some(text) = &self.lowercase {
            rows.retain(|row| is_named(row, text));
        }
        if let Some(wanted) = self.standing {
            let standing = standing::of_each(session, &rows).await?;
            rows.retain(|row| standing.get(&row.id).is_some_and(|told| told.tendency == wanted));
        }
        Ok(rows)
    }
}

/// Projects with their latest run; `contains` and `standing` look at a bounded
/// number of projects, the page may then be short while there is a next one.
///
/// # Errors
/// [`QueryError::NotFound`] for a tag that there is not; [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    scope: &Scope,
    filters: &ProjectFilters,
    sort: Sort,
    after: Option<ProjectKey>,
    limit: usize,
) -> Result<Slice<Project, ProjectKey>> {
    let mut session = ctx.store.db().read().await?;
    if let Some(tag) = filters.tag
        && tags::get_many(&mut session, vec![tag.get()]).await?.is_empty()
    {
        return Err(QueryError::not_found(Entity::Tag, tag));
    }
    let rows = match filters.residual() {
        Some(residual) => matching(&mut session, scope, filters.tag, &residual, sort, after, limit).await?,
        None => page(&mut session, scope, filters.tag, sort, after, limit).await?,
    };
    let mut tags = tags::of_projects(&mut session, ids(&rows.items)).await?;
    let latest = runs::latest_of(&mut session, ids(&rows.items)).await?;
    let latest: HashMap<ProjectId, RunBrief> =
        latest.iter().map(|run| (run.project, RunBrief::from(run))).collect();
    let aside = quarantine::counts(&mut session, ids(&rows.items)).await?;
    let mut items = Vec::with_capacity(rows.items.len());
    let telling = Telling::load(&mut session, &rows.items, None).await?;
    for row in &rows.items {
        let told = telling.told(row.id);
        let tags = shown(tags.remove(&row.id));
        let aside = aside.get(&row.id).copied().unwrap_or_default();
        items.push(Project::new(row, tags, aside, latest.get(&row.id).cloned(), told, &ctx.links));
    }
    Ok(Slice { items, next: rows.next })
}

fn shown(tags: Option<Vec<TagRow>>) -> Vec<Tag> {
    tags.unwrap_or_default().iter().map(Tag::from_row).collect()
}

fn ids(rows: &[ProjectRow]) -> Vec<i64> {
    rows.iter().map(|row| row.id.get()).collect()
}

async fn page(
    session: &mut Session,
    scope: &Scope,
    tag: Option<TagId>,
    sort: Sort,
    after: Option<ProjectKey>,
    limit: usize,
) -> Result<Slice<ProjectRow, ProjectKey>> {
    let order = match sort {
        Sort::Updated => ProjectOrder::Updated(after.map(|key| (key.updated_at, key.id))),
        Sort::Name => ProjectOrder::Name(after.map(|key| (key.name, key.id))),
    };
    let rows = projects::list(session, &visible(scope), tag.map(TagId::get), &order, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, ProjectKey::from_row))
}

/// Names are compared here and not in SQL, whose engines disagree about the
/// case of letters beyond ASCII; how a project stands is no column.
async fn matching(
    session: &mut Session,
    scope: &Scope,
    tag: Option<TagId>,
    residual: &Residual,
    sort: Sort,
    mut after: Option<ProjectKey>,
    limit: usize,
) -> Result<Slice<ProjectRow, ProjectKey>> {
    let mut found = Vec::new();
    for _ in 0..RESIDUAL_STEPS {
        let step = page(session, scope, tag, sort, after, RESIDUAL_STEP).await?;
        found.extend(residual.retain(session, step.items).await?);
        if found.len() > limit {
            return Ok(Slice::cut(found, limit, ProjectKey::from_row));
        }
        after = step.next;
        if after.is_none() {
            break;
        }
    }
    Ok(Slice { items: found, next: after })
}

/// How many projects [`list`] has on all its pages together; `None` when there
/// are more than it looks at.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn total(ctx: &Context, scope: &Scope, filters: &ProjectFilters) -> Result<Option<Total>> {
    let residual = filters.residual();
    let mut session = ctx.store.db().read().await?;
    let (mut count, mut after) = (0, None);
    for _ in 0..RESIDUAL_STEPS {
        let step = page(&mut session, scope, filters.tag, Sort::Name, after, RESIDUAL_STEP).await?;
        let fitting = match &residual {
            Some(residual) => residual.retain(&mut session, step.items).await?,
            None => step.items,
        };
        count += i64::try_from(fitting.len()).unwrap_or(i64::MAX);
        after = step.next;
        if after.is_none() {
            return Ok(Some(Total::Exactly(count)));
        }
    }
    Ok(None)
}

/// Whether name or label of a project contain this text in small letters.
fn is_named(row: &ProjectRow, lowercase: &str) -> bool {
    let contains = |text: &String| text.to_lowercase().contains(lowercase);
    contains(&row.name) || row.label.as_ref().is_some_and(contains)
}

/// One project with its latest run.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn get(ctx: &Context, project: Authorized<ProjectId>) -> Result<Project> {
    let mut session = ctx.store.db().read().await?;
    let row = required(&mut session, project.get()).await?;
    let latest = runs::latest_of(&mut session, vec![row.id.get()]).await?;
    let telling = Telling::load(&mut session, std::slice::from_ref(&row), None).await?;
    let tags = shown(tags::of_projects(&mut session, vec![row.id.get()]).await?.remove(&row.id));
    let told = telling.told(row.id);
    let aside = quarantine::counts(&mut session, vec![row.id.get()]).await?;
    let aside = aside.get(&row.id).copied().unwrap_or_default();
    Ok(Project::new(&row, tags, aside, latest.first().map(RunBrief::from), told, &ctx.links))
}

pub(crate) async fn required(session: &mut Session, id: ProjectId) -> Result<ProjectRow> {
    let row = projects::get(session, id).await?;
    row.ok_or_else(|| QueryError::not_found(Entity::Project, id))
}

/// An entry of the project switcher.
#[derive(Debug, Clone, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MenuEntry {
    /// Id and name.
    #[serde(flatten)]
    pub reference: ProjectRef,
    /// How it has been doing, by its default branch where that has full runs.
    pub tendency: Tendency,
    /// How the newest run that says so ended; for drawings.
    #[serde(skip)]
    pub latest: Option<RunStatus>,
}

/// Projects for a menu, most recently active first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn menu(
    ctx: &Context,
    scope: &Scope,
    after: Option<ProjectKey>,
    limit: usize,
) -> Result<Slice<MenuEntry, ProjectKey>> {
    let mut session = ctx.store.db().read().await?;
    let rows = page(&mut session, scope, None, Sort::Updated, after, limit).await?;
    let mut items = Vec::with_capacity(rows.items.len());
    let telling = Telling::load(&mut session, &rows.items, None).await?;
    for row in &rows.items {
        let Told { tendency, run, .. } = telling.told(row.id);
        let latest = run.map(|run| run.status);
        items.push(MenuEntry { reference: ProjectRef::from_row(row), tendency, latest });
    }
    Ok(Slice { items, next: rows.next })
}

/// Projects by name and nothing else about them, for lists to choose from.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn names(ctx: &Context, scope: &Scope, limit: usize) -> Result<Vec<ProjectRef>> {
    let rows = page(&mut ctx.store.db().read().await?, scope, None, Sort::Name, None, limit).await?;
    Ok(rows.items.iter().map(ProjectRef::from_row).collect())
}

/// The most recently active projects and nothing of their runs.
///
/// # Errors
/// [`QueryError::Store`].
pub(crate) async fn recent(ctx: &Context, scope: &Scope, limit: usize) -> Result<Vec<ProjectRow>> {
    let mut session = ctx.store.db().read().await?;
    Ok(page(&mut session, scope, None, Sort::default(), None, limit).await?.items)
}

/// What failed in a row on the default branch of each of some projects; those
/// without full runs of it are left out.
///
/// # Errors
/// [`QueryError::Store`].
pub(crate) async fn default_branch_streaks(
    session: &mut Session,
    rows: &[ProjectRow],
) -> Result<HashMap<ProjectId, FailingStreak>> {
    let telling = Telling::load(session, rows, None).await?;
    let streaks = rows.iter().filter_map(|row| {
        let Told { run, streak, .. } = telling.told(row.id);
        let branch = run?.branch?;
        (row.default_branch.as_ref() == Some(&branch)).then_some((row.id, streak))
    });
    Ok(streaks.collect())
}

/// Projects with their recent runs, for the home page.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn overview(
    ctx: &Context,
    scope: &Scope,
    environment: Option<&str>,
    after: Option<ProjectKey>,
    limit: usize,
) -> Result<Slice<ProjectOverview, ProjectKey>> {
    let mut session = ctx.store.db().read().await?;
    let rows = page(&mut session, scope, None, Sort::Updated, after, limit).await?;
    let mut tags = tags::of_projects(&mut session, ids(&rows.items)).await?;
    let full_runs = projects::full_runs(&mut session, ids(&rows.items), environment).await?;
    // One more than is shown tells whether there are older ones.
    let mut newest =
        runs::newest_of(&mut session, ids(&rows.items), Newest::All, environment, RECENT_RUNS + 1).await?;
    let mut full: HashMap<ProjectId, RunBrief> = HashMap::new();
    let mut further_back = Vec::new();
    for (project, runs) in &newest {
        match runs.iter().find(|run| run.is_full && run.status.is_final()) {
            Some(latest) => drop(full.insert(*project, RunBrief::from(latest))),
            None if runs.len() > RECENT_RUNS => further_back.push(project.get()),
            None => {}
        }
    }
    let further_back = runs::newest_of(&mut session, further_back, Newest::Full, environment, 1).await?;
    full.extend(
        further_back.iter().filter_map(|(project, runs)| Some((*project, RunBrief::from(runs.first()?)))),
    );
    let telling = Telling::load(&mut session, &rows.items, environment).await?;
    let mut items = Vec::with_capacity(rows.items.len());
    for row in &rows.items {
        let mut recent = newest.remove(&row.id).unwrap_or_default();
        recent.truncate(RECENT_RUNS);
        recent.reverse();
        let Told { tendency, run: telling_run, streak } = telling.told(row.id);
        items.push(ProjectOverview {
            reference: ProjectRef::from_row(row),
            tags: shown(tags.remove(&row.id)),
            total_full_runs: full_runs.get(&row.id).copied().unwrap_or_default(),
            latest_full_run: full.remove(&row.id),
            recent_runs: recent.iter().map(RunBrief::from).collect(),
            tendency,
            telling_run,
            streak,
            open_clusters: row.open_clusters,
        });
    }
    Ok(Slice { items, next: rows.next })
}

/// How a project stands, and nothing else of it.
#[derive(Debug, Clone)]
pub struct ProjectStanding {
    /// Which project.
    pub reference: ProjectRef,
    /// How it stands.
    pub standing: Tendency,
    /// The run that tells so; `None` before its first run.
    pub telling_run: Option<RunBrief>,
}

/// How projects stand that [`overview`] did not come to, most recently active
/// first.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn standings(
    ctx: &Context,
    scope: &Scope,
    after: Option<ProjectKey>,
    limit: usize,
) -> Result<Slice<ProjectStanding, ProjectKey>> {
    let mut session = ctx.store.db().read().await?;
    let rows = page(&mut session, scope, None, Sort::Updated, after, limit).await?;
    let mut standing = standing::of_each(&mut session, &rows.items).await?;
    let items = rows.items.iter().map(|row| {
        let Told { tendency, run: telling_run, .. } = standing.remove(&row.id).unwrap_or_default();
        ProjectStanding { reference: ProjectRef::from_row(row), standing: tendency, telling_run }
    });
    Ok(Slice { items: items.collect(), next: rows.next })
}

/// The newest runs of some projects, newest first; projects without one are
/// left out.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn newest_runs(
    ctx: &Context,
    projects: &[Authorized<ProjectId>],
    limit: usize,
) -> Result<HashMap<ProjectId, Vec<RunBrief>>> {
    let ids = projects.iter().map(|project| project.get().get()).collect();
    let mut session = ctx.store.db().read().await?;
    let newest = runs::newest_of(&mut session, ids, Newest::All, None, limit).await?;
    let shown =
        newest.into_iter().map(|(project, runs)| (project, runs.iter().map(RunBrief::from).collect()));
    Ok(shown.collect())
}

/// What a project's lists can be filtered by; `branch_contains` narrows the
/// branches.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn facets(
    ctx: &Context,
    project: Authorized<ProjectId>,
    branch_contains: Option<&str>,
    limit: usize,
) -> Result<Facets> {
    let places = places(ctx, project, branch_contains, limit).await?;
    let mut session = ctx.store.db().read().await?;
    let most = i64::try_from(limit).unwrap_or(FACET_LIMIT).min(FACET_LIMIT);
    let of_tests = test_cases::facets(&mut session, project.get(), most).await?;
    Ok(Facets { tags: of_tests.tags, owners: of_tests.owners, features: of_tests.features, ..places })
}

/// The part of [`facets`] that says where runs ran; nothing of the tests is
/// read.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn places(
    ctx: &Context,
    project: Authorized<ProjectId>,
    branch_contains: Option<&str>,
    limit: usize,
) -> Result<Facets> {
    let limit = i64::try_from(limit).unwrap_or(FACET_LIMIT).min(FACET_LIMIT);
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let ProjectRow { default_branch, tracked_branches, .. } = required(&mut session, project).await?;
    let wanted = branch_contains.unwrap_or_default().to_lowercase();
    let looked_at = if wanted.is_empty() { FACET_LIMIT + 1 } else { SEARCHED_LANES };
    let branches = lanes::recent(&mut session, project, LaneKind::Branch, looked_at).await?;
    let environments = lanes::recent(&mut session, project, LaneKind::Environment, FACET_LIMIT + 1).await?;
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    let branches = branches
        .iter()
        .filter(|lane| !lane.name.is_empty() && lane.name.to_lowercase().contains(&wanted))
        .take(take)
        .map(|lane| BranchFacet {
            name: lane.name.clone(),
            last_run_at: lane.last_run_at,
            is_default: default_branch.as_deref() == Some(lane.name.as_str()),
            is_tracked: is_tracked(&lane.name, default_branch.as_deref(), &tracked_branches),
        })
        .collect();
    let environments = environments.iter().filter_map(|lane| non_empty(&lane.name));
    let browsers = lanes::browsers(&mut session, project).await?;
    Ok(Facets {
        branches,
        environments: environments.take(take).collect(),
        browsers: browsers.iter().filter_map(|browser| non_empty(&browser.name)).take(take).collect(),
        ..Facets::default()
    })
}

/// Counts over everything the caller may see as administrator of the whole
/// installation.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn instance_totals(ctx: &Context) -> Result<projects::InstanceTotals> {
    Ok(projects::instance_totals(&mut ctx.store.db().read().await?).await?)
}

/// How many runs a project has, and of how many details are kept.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn run_counts(ctx: &Context, project: Authorized<ProjectId>) -> Result<RunCounts> {
    let counts = projects::run_counts(&mut ctx.store.db().read().await?, project.get()).await?;
    Ok(RunCounts { total_runs: counts.total, kept_runs: counts.kept })
}
