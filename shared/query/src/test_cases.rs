//! Questions about test cases: the catalogue, one test, its history and its
//! stability.

mod history;

use callboard_auth::scope::Authorized;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::lane::LaneKey;
use callboard_domain::test_state::{TestCategory, TestState};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::lanes;
use callboard_store::rollups::{
    self, CatalogueFilter, CatalogueLanes, CatalogueOrder, CatalogueRow, CatalogueSort,
};

use crate::clusters;
use crate::flakiness::judged_lane;
use crate::links;
use crate::page::{Slice, fetch};
use crate::projects::required;
use crate::shapes::{ProjectRef, TestCaseDetail, TestCaseItem};
use callboard_ingest::read_session_with_fresh_aggregates;

use crate::{Context, Entity, QueryError, Result};

pub use history::{
    HistoryKey, HistoryQuery, Neighbours, Past, history, neighbours, past, stability_by_count,
    stability_by_day,
};

/// The slice of a project's history that is asked for.
#[derive(Debug, Clone, Default)]
pub struct LaneQuery {
    /// Only this branch; an empty word is "none recorded".
    pub branch: Option<String>,
    /// Only this environment.
    pub environment: Option<String>,
}

impl LaneQuery {
    pub(crate) fn key(&self) -> LaneKey {
        LaneKey::asked(self.branch.as_deref(), self.environment.as_deref())
    }

    pub(crate) async fn find(&self, session: &mut Session, project: ProjectId) -> Result<Option<i64>> {
        Ok(lanes::find_lane(session, project, &self.key()).await?)
    }
}

/// How the catalogue is sorted; carries the key of the last row seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub enum Sort {
    /// Newest last run first.
    #[default]
    LastRun,
    /// By title.
    Title,
    /// By file.
    File,
    /// Most executions first.
    TotalRuns,
    /// Newest test first: a page stays where it is while tests run.
    Newest,
    /// Most probably flaky first.
    Flaky,
    /// Least steady first.
    PassRate,
    /// Slowest first.
    Slowest,
}

/// The last row of a page of the catalogue: what it is sorted by, when that is
/// a number, and its id.
pub type CatalogueKey = (i64, i64);

/// The conditions of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct CatalogueQuery {
    /// Branch and environment.
    pub lane: LaneQuery,
    /// Title, path or describe title contains this.
    pub text: Option<String>,
    /// Any of these categories.
    pub categories: Vec<TestCategory>,
    /// All of these tags, with or without `@`.
    pub tags: Vec<String>,
    /// Only this owner.
    pub owner: Option<String>,
    /// Only this priority.
    pub priority: Option<String>,
    /// Only this feature.
    pub feature: Option<String>,
    /// Only files beginning with this.
    pub file_prefix: Option<String>,
    /// Only tests that ran at this moment's day or later.
    pub since: Option<Timestamp>,
    /// Only tests in quarantine, or only the others.
    pub quarantined: Option<bool>,
    /// Sort.
    pub sort: Sort,
    /// Whether what would come first comes last.
    pub is_reversed: bool,
    /// Key of the last row of the page before.
    pub after: Option<CatalogueKey>,
}

impl CatalogueQuery {
    fn filter(&self) -> CatalogueFilter {
        CatalogueFilter {
            text: self.text.clone(),
            categories: (!self.categories.is_empty())
                .then(|| self.categories.iter().map(|category| category.code()).collect()),
            tags: self.tags.iter().map(|tag| bare_tag(tag)).collect(),
            owner: self.owner.clone(),
            priority: self.priority.clone(),
            feature: self.feature.clone(),
            file_prefix: self.file_prefix.clone(),
            since: self.since.map(Timestamp::day),
            quarantined: self.quarantined,
        }
    }
}

/// Tags are stored without the `@` they are written with in titles.
pub(crate) fn bare_tag(tag: &str) -> String {
    tag.strip_prefix('@').unwrap_or(tag).to_owned()
}

impl CatalogueQuery {
    /// Whether tests are asked for that never ran in the lane.
    fn is_of_others(&self) -> bool {
        self.categories == [TestCategory::NeverRun]
    }

    /// The conditions a test can fulfil that never ran: it has no category and
    /// no last day.
    fn filter_of_others(&self) -> CatalogueFilter {
        CatalogueFilter { categories: None, since: None, ..self.filter() }
    }
}

/// Stands for a lane in which nothing ever ran.
const NO_LANE: i64 = -1;

/// A page of the tests of a project that ran in the asked lane; or, by id, of
/// those that never did, where the category asked for is that one alone.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &CatalogueQuery,
    limit: usize,
) -> Result<Slice<TestCaseItem, CatalogueKey>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let found = query.lane.find(&mut session, project).await?;
    if query.is_of_others() {
        let lanes = lanes_of(&mut session, project, &query.lane, found.unwrap_or(NO_LANE)).await?;
        let page = (query.after.map(|(_, id)| id), query.is_reversed);
        let wanted = query.filter_of_others();
        let rows = rollups::never_ran(&mut session, project, lanes, &wanted, page, fetch(limit)).await?;
        return Ok(
            Slice::cut(rows, limit, |row| (0, row.case.id.get())).map(|row| TestCaseItem::from_row(&row))
        );
    }
    let Some(lane) = found else {
        return Ok(Slice { items: Vec::new(), next: None });
    };
    let filter = query.filter();
    let id = query.after.map(|(_, id)| id);
    let order = match query.sort {
        Sort::LastRun => CatalogueOrder::LastRun(query.after),
        Sort::TotalRuns => CatalogueOrder::TotalRuns(query.after),
        Sort::Title => CatalogueOrder::Title(id),
        Sort::File => CatalogueOrder::File(id),
        Sort::Newest => CatalogueOrder::Newest(id),
        Sort::Flaky => CatalogueOrder::Flaky(query.after),
        Sort::PassRate => CatalogueOrder::PassRate(query.after),
        Sort::Slowest => CatalogueOrder::Slowest(query.after),
    };
    let lanes = lanes_of(&mut session, project, &query.lane, lane).await?;
    let sort = CatalogueSort { order, is_reversed: query.is_reversed };
    let rows = rollups::catalogue(&mut session, project, lanes, &filter, &sort, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row| key_of(query, row)).map(|row| TestCaseItem::from_row(&row)))
}

/// How many tests a catalogue has, whatever its page.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count(ctx: &Context, project: Authorized<ProjectId>, query: &CatalogueQuery) -> Result<i64> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let found = query.lane.find(&mut session, project).await?;
    if query.is_of_others() {
        let wanted = query.filter_of_others();
        return Ok(rollups::count_never_ran(&mut session, project, found.unwrap_or(NO_LANE), &wanted).await?);
    }
    let Some(lane) = found else { return Ok(0) };
    Ok(rollups::count_in_catalogue(&mut session, project, lane, &query.filter()).await?)
}

/// A page that begins a number of rows behind the cursor, for scripts that
/// count rows. They are read nevertheless, so callers bound the number.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list_from(
    ctx: &Context,
    project: Authorized<ProjectId>,
    mut query: CatalogueQuery,
    offset: usize,
    limit: usize,
) -> Result<Slice<TestCaseItem, CatalogueKey>> {
    if offset > 0 {
        let skipped = list(ctx, project, &query, offset).await?;
        let Some(key) = skipped.next else { return Ok(Slice { items: Vec::new(), next: None }) };
        query.after = Some(key);
    }
    list(ctx, project, &query, limit).await
}

/// The lane whose numbers are shown, with the one that speaks for it about
/// flakiness: so a test has the same score here and among the flaky ones.
async fn lanes_of(
    session: &mut Session,
    project: ProjectId,
    asked: &LaneQuery,
    shown: i64,
) -> Result<CatalogueLanes> {
    let judged = judged_lane(session, project, asked).await?;
    Ok(CatalogueLanes { shown, judged: judged.map_or(shown, |judged| judged.id) })
}

fn key_of(query: &CatalogueQuery, row: &CatalogueRow) -> CatalogueKey {
    let number = |of: &dyn Fn(&TestState) -> i64| row.state.as_ref().map_or(0, of);
    let number = match query.sort {
        Sort::LastRun => number(&|state| state.last_order_at().millis()),
        Sort::TotalRuns => number(&|state| state.counts().total_tests),
        Sort::Flaky => row.flaky_score,
        Sort::PassRate => number(&|state| rollups::pass_rate_key(state, query.is_reversed)),
        Sort::Slowest => number(&rollups::mean_key),
        Sort::Title | Sort::File | Sort::Newest => 0,
    };
    (number, row.case.id.get())
}

/// One test with its numbers in the asked lane.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn detail(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: TestCaseId,
    lane: &LaneQuery,
) -> Result<TestCaseDetail> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let owner = required(&mut session, project).await?;
    // A lane nobody ran in has no row; no lane has the number -1.
    let shown = lane.find(&mut session, project).await?.unwrap_or(-1);
    let lanes = lanes_of(&mut session, project, lane, shown).await?;
    let rows = rollups::with_states(&mut session, project, lanes, vec![id.get()]).await?;
    let row = rows.into_iter().next().ok_or_else(|| QueryError::not_found(Entity::TestCase, id))?;
    let clusters = clusters::of_test(&mut session, project, id).await?;
    let links = links::shown(&mut session, project, LinkTarget::TestCase, id.get()).await?;
    Ok(TestCaseDetail {
        item: TestCaseItem::from_row(&row),
        project: ProjectRef::from_row(&owner),
        clusters,
        links,
    })
}
