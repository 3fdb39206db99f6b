//! The executions of a run: trouble first, or by file, duration or start.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId, RunId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::clusters;
use callboard_query::executions::{self, ExecutionQuery, OfCluster, OutcomeGroup, Sort};
use callboard_query::page::Total;
use callboard_query::run_views::{self, SpecSort};
use callboard_query::shapes::ExecutionItem;
use serde::Serialize;

use super::Head;
use crate::address::chosen;
use crate::components::{Choice, FileTree, FilterBar, OutcomeCount, Pager, Sorting};
use crate::filters;
use crate::outcome::{Tone, Toned};
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Executions per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// Files in the tree of a run.
const FILES: usize = 500;

/// The orders with their words in the address.
const ORDERS: [(&str, &str, Sort); 4] = [
    ("trouble", "Failed first", Sort::Trouble),
    ("file", "By file", Sort::File),
    ("duration", "Longest first", Sort::Duration),
    ("started", "By start time", Sort::StartedAt),
];
/// Outcomes one can ask for.
pub(super) const OUTCOMES: [(&str, &str); 6] = [
    ("failing", "Failed"),
    ("flaky", "Flaky"),
    ("interrupted", "Interrupted"),
    ("didnotrun", "Did not run"),
    ("skipped", "Skipped"),
    ("passed", "Passed"),
];
/// What changed against what each test did before, leaving out tests in
/// quarantine as the insights do.
const CHANGES: [(&str, &str); 4] = [
    ("regression", "New failures"),
    ("recurring", "Still failing"),
    ("flaky", "Newly flaky"),
    ("fixed", "Recovered"),
];
/// Which tests one can ask for by whether they were retried.
pub(super) const TRIED: [(&str, &str); 2] = [("once", "Not retried"), ("again", "Retried")];
/// How asking for none of these reads.
pub(super) const HOWEVER_TRIED: &str = "Any attempts";

/// What is asked for.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Params {
    text: Option<String>,
    outcomes: Vec<&'static str>,
    changes: Vec<&'static str>,
    tried: Option<&'static str>,
    browser: Option<String>,
    file: Option<String>,
    cluster: Option<OfCluster>,
    sort: &'static str,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let sort = query.one_of("sort", &ORDERS.map(|(word, ..)| (word, word)))?;
        Ok(Self {
            text: query.text("q")?,
            outcomes: query.any_of("outcome", &OUTCOMES.map(itself))?,
            changes: query.any_of("change", &CHANGES.map(itself))?,
            tried: query.one_of("tried", &TRIED.map(itself))?,
            browser: chosen(query, "browser").into_iter().next(),
            file: chosen(query, "file").into_iter().next(),
            cluster: query.word("cluster", &[NO_CLUSTER, "the id of a cluster"], cluster)?,
            sort: sort.unwrap_or(ORDERS[0].0),
            page: query.page(SIZE)?,
        })
    }
}

/// The word for failures without a cluster.
const NO_CLUSTER: &str = "none";

fn cluster(text: &str) -> Option<OfCluster> {
    if text == NO_CLUSTER {
        return Some(OfCluster::Nothing);
    }
    ClusterId::parse(text).map(OfCluster::Id)
}

fn cluster_word(cluster: OfCluster) -> String {
    match cluster {
        OfCluster::Nothing => NO_CLUSTER.to_owned(),
        OfCluster::Id(id) => id.to_string(),
    }
}

/// A word of an address that stands for itself, out of one with its label.
pub(super) fn itself((word, _): (&'static str, &'static str)) -> (&'static str, &'static str) {
    (word, word)
}

impl Params {
    fn order(&self) -> Sort {
        ORDERS.iter().find(|(word, ..)| *word == self.sort).map(|(.., sort)| *sort).unwrap_or_default()
    }

    fn is_filtered(&self) -> bool {
        self.text.is_some()
            || !self.outcomes.is_empty()
            || !self.changes.is_empty()
            || self.tried.is_some()
            || self.browser.is_some()
            || self.file.is_some()
            || self.cluster.is_some()
    }

    fn asks_for(&self, change: &str) -> Option<bool> {
        self.changes.contains(&change).then_some(true)
    }

    fn query(&self) -> ExecutionQuery {
        ExecutionQuery {
            text: self.text.clone(),
            outcomes: self.outcomes.iter().filter_map(|word| OutcomeGroup::parse(word)).collect(),
            browser: self.browser.clone(),
            file: self.file.clone(),
            retried: self.tried.map(|word| word == "again"),
            new_regression: self.asks_for("regression"),
            recurring: self.changes.contains(&"recurring"),
            new_flaky: self.asks_for("flaky"),
            fixed: self.asks_for("fixed"),
            quarantined: (!self.changes.is_empty()).then_some(false),
            cluster: self.cluster,
            sort: self.order(),
            ..ExecutionQuery::default()
        }
    }

    /// How many executions there are, where the counts of the run tell: all of
    /// them, or those of some outcomes.
    fn total(&self, head: &Head) -> Option<i64> {
        let is_asked =
            |outcome: &&OutcomeCount| self.outcomes.is_empty() || self.outcomes.contains(&outcome.filter);
        let is_narrower = Self { outcomes: Vec::new(), ..self.clone() }.is_filtered();
        (!is_narrower).then(|| head.counts.iter().filter(is_asked).map(|outcome| outcome.count).sum())
    }

    fn bar(&self, visit: &Visit, browsers: &[String]) -> FilterBar {
        let words = |list: &[&'static str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let choices =
            |list: &'static [(&str, &str)]| list.iter().map(|(word, label)| Choice::new(*word, *label));
        let browser: Vec<String> = self.browser.iter().cloned().collect();
        FilterBar::new(&visit.address, &["tab", "sort"])
            .search("q", "Search tests and files", self.text.as_ref())
            .select("outcome", "Outcome", "Any outcome", choices(&OUTCOMES), &words(&self.outcomes))
            .select("change", "Change", "Any change", choices(&CHANGES), &words(&self.changes))
            .select("tried", "Retries", HOWEVER_TRIED, choices(&TRIED), &words(self.tried.as_slice()))
            .browsers(browsers, &browser)
            .chip_only("file", "File", self.file.as_ref())
            .chip_only("cluster", "Cluster", self.cluster.map(cluster_word).as_ref())
            .order(ORDERS.map(|(word, label, _)| Choice::new(word, label)), self.sort)
    }
}

/// Executions under one heading.
struct Group {
    tone: Option<Tone>,
    heading: String,
    /// How many there are in the whole run, where that is known.
    count: Option<i64>,
    rows: Vec<ExecutionItem>,
}

/// Inputs of `pages/run_executions.html`.
#[derive(Template)]
#[template(path = "pages/run_executions.html")]
struct ExecutionsTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    /// The files of the run, where the list goes by them.
    tree: Option<FileTree>,
    groups: Vec<Group>,
    sorting: Sorting,
    /// Whether the headings already say where a test is.
    by_file: bool,
    /// Whether any row has files to point at.
    with_files: bool,
    columns: usize,
    pager: Pager,
    is_filtered: bool,
}

/// The first tab of a run.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
    asked: Params,
    cursors: CursorScope,
) -> Result<Response, ApiError> {
    let mut query = ExecutionQuery { after: cursors.decode(asked.page.cursor.as_deref())?, ..asked.query() };
    if let Some(OfCluster::Id(cluster)) = query.cluster {
        let cluster = clusters::named(&visit.ctx, visit.scope(), project, cluster).await?;
        query.cluster = Some(OfCluster::Id(cluster));
    }
    let found = executions::list(&visit.ctx, project, run, &query, asked.page.limit as usize).await?;
    let found = cursors.page(found)?;
    let is_part = visit.address.is_part(found.next_cursor.is_some());
    let total = match asked.total(&head) {
        Some(total) => Some(Total::Exactly(total)),
        None if is_part => Some(executions::count(&visit.ctx, project, run, &query).await?),
        None => None,
    };
    let tally = (found.items.len(), found.next_cursor.is_some(), total);
    let with_files = found.items.iter().any(|row| row.counts.traces + row.counts.attachments > 0);
    let tree = match asked.order() {
        Sort::File if !asked.is_filtered() && !visit.address.is_continued() => {
            let files = run_views::specs(&visit.ctx, project, run, SpecSort::File, None, FILES).await?;
            FileTree::from_files(&files, &visit.address)
        }
        _ => None,
    };
    let mut groups = grouped(found.items, asked.order());
    if !asked.is_filtered() {
        count(&mut groups, &head);
    }
    answer(&ExecutionsTab {
        filters: asked.bar(&visit, &head.run.item.browsers).tally("execution", tally.0, tally.1, tally.2),
        tree,
        groups,
        sorting: Sorting::new(&visit.address, asked.sort),
        with_files,
        columns: 4 + usize::from(asked.order() != Sort::File) + usize::from(with_files),
        by_file: asked.order() == Sort::File,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        is_filtered: asked.is_filtered(),
        shell,
        head,
    })
}

/// Puts a heading wherever what the list is ordered by changes.
fn grouped(rows: Vec<ExecutionItem>, sort: Sort) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let (tone, heading) = match sort {
            Sort::Trouble => {
                // Timed out tests are sorted among the failed ones.
                let tone = match row.tone() {
                    Tone::TimedOut => Tone::Failed,
                    tone => tone,
                };
                (Some(tone), tone.word().to_owned())
            }
            Sort::File => (None, row.file_path.clone()),
            Sort::Id | Sort::Newest | Sort::Duration | Sort::StartedAt => (None, String::new()),
        };
        match groups.last_mut() {
            Some(group) if group.heading == heading => group.rows.push(row),
            _ => groups.push(Group { tone, heading, count: None, rows: vec![row] }),
        }
    }
    groups
}

/// Headings of outcomes say how many there are; a page may show only some.
fn count(groups: &mut [Group], head: &Head) {
    for group in groups {
        let counted = head.counts.iter().find(|outcome| Some(outcome.tone) == group.tone);
        group.count = counted.map(|outcome| outcome.count);
    }
}
