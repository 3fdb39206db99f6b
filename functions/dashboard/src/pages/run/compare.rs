//! A run against another one, test by test.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::comparison::Change;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::comparison::{self, Against, ChangeCounts, ComparedSide, ComparedTest};
use callboard_query::page::Total;
use callboard_query::runs::{self, RunQuery};
use callboard_query::shapes::{RunBrief, RunItem};
use serde::Serialize;

use super::Head;
use crate::components::{Choice, FilterBar, OutcomeBar, Pager, UnsetDefault, name_of};
use crate::filters;
use crate::outcome::Tone;
use crate::shell::Shell;
use crate::text::{duration, relative};
use crate::visit::{Visit, answer};

/// Tests per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };
/// Runs one can choose from.
const OFFERED: usize = 25;

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    against: Against,
    change: Option<&'static str>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let against =
            query.word("with", &["baseline", "previous", "the id of a run"], |text| match text {
                "baseline" => Some(Against::Baseline),
                "previous" => Some(Against::Previous),
                id => id.parse().ok().map(|id| Against::Run(RunId(id))),
            })?;
        let change = query.one_of("change", &Change::ALL.map(|change| (change.as_str(), change.as_str())))?;
        Ok(Self { against: against.unwrap_or(Against::Baseline), change, page: query.page(SIZE)? })
    }
}

/// How a class of change reads, and the class of its tag.
const fn words(change: Change) -> (&'static str, &'static str) {
    match change {
        Change::NewFailure => ("New failure", "failed-tag"),
        Change::StillFailing => ("Still failing", "failed-tag"),
        Change::Fixed => ("Recovered", "passed-tag"),
        Change::NewFlaky => ("Newly flaky", "flaky-tag"),
        Change::Added => ("Added", ""),
        Change::Removed => ("Not run", ""),
        Change::Slower => ("Slower", ""),
        Change::Faster => ("Faster", ""),
        Change::Unchanged => ("Unchanged", ""),
    }
}

/// A class of change with its number, and the address that shows it alone.
struct Class {
    word: &'static str,
    count: i64,
    href: String,
    is_chosen: bool,
}

/// A test in both runs.
struct Row {
    test: ComparedTest,
    word: &'static str,
    class: &'static str,
    before: Option<Tone>,
    now: Option<Tone>,
    delta: Option<String>,
}

/// One of the two runs.
struct Side {
    run: RunBrief,
    bar: OutcomeBar,
}

/// Inputs of `pages/run_compare.html`.
#[derive(Template)]
#[template(path = "pages/run_compare.html")]
struct CompareTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    /// Both runs, the older one first; nothing when there is nothing to compare with.
    sides: Option<(Side, Side)>,
    classes: Vec<Class>,
    rows: Vec<Row>,
    pager: Pager,
    is_filtered: bool,
    /// Whether the project has runs before this one that are over.
    has_others: bool,
    /// Why no green run is known, where it is this.
    unset_default: Option<UnsetDefault>,
}

/// The comparison of a run.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
    asked: Params,
    cursors: CursorScope,
) -> Result<Response, ApiError> {
    if asked.against == Against::Run(run) {
        return Err(ApiError::invalid_query("with", "Select a different run to compare with."));
    }
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    // What did not change is shown when it is asked for.
    let wanted: Vec<Change> = match asked.change.and_then(Change::parse) {
        Some(change) => vec![change],
        None => Change::ALL.into_iter().filter(|change| *change != Change::Unchanged).collect(),
    };
    let limit = asked.page.limit as usize;
    let compared =
        comparison::compare(&visit.ctx, project, run, asked.against, &wanted, after, limit).await?;
    // What a run is measured against came before it.
    let others = RunQuery {
        projects: vec![project.get()],
        finished: true,
        before: Some(head.run.item.brief.start_time),
        ..RunQuery::default()
    };
    let others = runs::list(&visit.ctx, visit.scope(), &others, OFFERED).await?.items;
    let filters = asked.bar(&visit, run, &others);
    let is_filtered = asked.change.is_some();
    let has_others = others.iter().any(|other| other.brief.id != run.get());
    let Some(compared) = compared else {
        let pager = Pager::new(&visit.address, None);
        let (classes, rows) = (Vec::new(), Vec::new());
        let sides = None;
        let unset_default = UnsetDefault::load(&visit, project).await?;
        return answer(&CompareTab {
            shell,
            head,
            filters,
            sides,
            classes,
            rows,
            pager,
            is_filtered,
            has_others,
            unset_default,
        });
    };
    let found = cursors.page(compared.tests)?;
    let of_wanted = each(&compared.counts).into_iter().filter(|(change, _)| wanted.contains(change));
    let total = Total::Exactly(of_wanted.map(|(_, count)| count).sum());
    let noun = if is_filtered { "test" } else { "changed test" };
    let filters = filters.tally(noun, found.items.len(), found.next_cursor.is_some(), Some(total));
    let side = |run: RunBrief| Side { bar: OutcomeBar::from_totals(&run.totals), run };
    answer(&CompareTab {
        classes: classes(&visit, &compared.counts, asked.change),
        rows: found.items.into_iter().map(Row::from_test).collect(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        sides: Some((side(compared.base), side(compared.head))),
        filters,
        is_filtered,
        has_others,
        unset_default: None,
        shell,
        head,
    })
}

impl Params {
    fn bar(&self, visit: &Visit, run: RunId, others: &[RunItem]) -> FilterBar {
        let label = |other: &RunItem| {
            let branch = other.brief.branch.as_deref().unwrap_or("no branch");
            format!(
                "#{} {} · {branch} · {}",
                other.brief.id,
                name_of(other),
                relative(other.brief.start_time, visit.now)
            )
        };
        let runs = others
            .iter()
            .filter(|other| other.brief.id != run.get())
            .map(|other| Choice::new(other.brief.id.to_string(), label(other)));
        let mut choices = vec![Choice::new("previous", "The run before on this branch and environment")];
        choices.extend(runs);
        // One that is older than those that are offered.
        if let Against::Run(id) = self.against
            && choices.iter().all(|choice| choice.value != id.get().to_string())
        {
            choices.push(Choice::new(id.get().to_string(), format!("Run {id}")));
        }
        let with = match self.against {
            Against::Baseline => None,
            Against::Previous => Some("previous".to_owned()),
            Against::Run(id) => Some(id.get().to_string()),
        };
        let changes = Change::ALL.map(|change| Choice::new(change.as_str(), words(change).0));
        FilterBar::new(&visit.address, &["tab"])
            .select("with", "Compared with", "The last green run", choices, with.as_slice())
            .select("change", "Change", "Any change", changes, self.change.map(str::to_owned).as_slice())
    }
}

/// The classes in the order of their weight, each with its number.
const fn each(counts: &ChangeCounts) -> [(Change, i64); 9] {
    [
        (Change::NewFailure, counts.new_failure),
        (Change::StillFailing, counts.still_failing),
        (Change::Fixed, counts.fixed),
        (Change::NewFlaky, counts.new_flaky),
        (Change::Slower, counts.slower),
        (Change::Faster, counts.faster),
        (Change::Added, counts.added),
        (Change::Removed, counts.removed),
        (Change::Unchanged, counts.unchanged),
    ]
}

fn classes(visit: &Visit, counts: &ChangeCounts, chosen: Option<&str>) -> Vec<Class> {
    let class = |(change, count): (Change, i64)| {
        let is_chosen = chosen == Some(change.as_str());
        let href = if is_chosen {
            visit.address.without("change")
        } else {
            visit.address.with("change", change.as_str())
        };
        Class { word: words(change).0, count, href, is_chosen }
    };
    each(counts).into_iter().filter(|(_, count)| *count > 0).map(class).collect()
}

impl Row {
    fn from_test(test: ComparedTest) -> Self {
        let (word, class) = words(test.change);
        let tone = |side: ComparedSide| Tone::of_result(side.status, side.flaky);
        let delta = test.duration_delta.filter(|delta| *delta != 0).map(|delta| {
            let sign = if delta > 0 { "+" } else { "−" };
            format!("{sign}{}", duration(delta.abs()))
        });
        Self { before: test.base.map(tone), now: test.head.map(tone), word, class, delta, test }
    }

    /// Where a click leads: to this run's execution, else to the other's.
    fn execution(&self) -> i64 {
        self.test.head.or(self.test.base).map_or(0, |side| side.execution_id)
    }
}
