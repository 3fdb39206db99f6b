//! Finding projects, runs and tests by their words, ids and commits. What the
//! caller may not see is left out in the database, before anything is counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_auth::scope::Scope;
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::search::{self as words, Question, commit_word};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::clusters;
use callboard_store::db::Session;
use callboard_store::ids::{self, Listed};
use callboard_store::projects::{self, ProjectOrder};
use callboard_store::search::{self, AskedWord, Found, SearchKind};
use callboard_store::{boxed, runs, test_cases};
use serde::Serialize;
use utoipa::ToSchema;

use crate::projects::visible;
use crate::shapes::words::RunStatusWord;
use crate::shapes::{ProjectRef, non_empty, shortened};
use crate::{Context, Result};
use callboard_ingest::read_session_with_fresh_aggregates_in;

/// Index rows looked at for each kind of thing: several pages of what anybody
/// looks through.
const CANDIDATES: i64 = 400;
/// The most recently active projects that are looked through as well when a
/// word is so common that the things of one project are all there is room for,
/// and the rows taken of each.
const SPREAD_PROJECTS: i64 = 10;
const OF_EACH_PROJECT: i64 = 10;
/// Words that begin like the last one of a question and are looked for in each
/// of these projects.
const SPREAD_WORDS: i64 = 16;
/// Fewest characters of a question.
pub const LEAST_CHARS: usize = 2;
/// Fewest digits of a commit.
const LEAST_COMMIT_CHARS: usize = 7;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Group {
    /// Projects.
    Projects,
    /// Runs.
    Runs,
    /// Test cases.
    Cases,
    /// Failure clusters.
    Clusters,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Projects, Self::Runs, Self::Cases, Self::Clusters];

    /// The spelling in filters and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Projects => "projects",
            Self::Runs => "runs",
            Self::Cases => "cases",
            Self::Clusters => "clusters",
        }
    }

    /// Reads a filter value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.as_str() == text)
    }
}

/// What was found, the best of each kind first.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct SearchAnswer {
    /// Projects.
    pub projects: Vec<ProjectRef>,
    /// Runs.
    pub runs: Vec<FoundRun>,
    /// Test cases.
    pub cases: Vec<FoundCase>,
    /// Failure clusters.
    pub clusters: Vec<FoundCluster>,
    /// What to do when the question is too short to find anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hint: Option<&'static str>,
}

/// A run that was found.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundRun {
    /// Run.
    pub id: i64,
    /// Display label.
    pub label: Option<String>,
    /// Branch.
    pub branch: Option<String>,
    /// Message of the commit, cut to 200 characters.
    pub commit_message: Option<String>,
    /// Where it stands.
    #[schema(value_type = RunStatusWord)]
    pub status: RunStatus,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// Its project.
    pub project: ProjectRef,
}

/// A test case that was found.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundCase {
    /// Test case.
    pub id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Its project.
    pub project: ProjectRef,
}

/// A failure cluster that was found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FoundCluster {
    /// Cluster.
    pub id: i64,
    /// What it is about.
    pub signature: String,
    /// Title a person gave it.
    pub title: Option<String>,
    /// open, resolved or ignored.
    pub status: String,
    /// Its project.
    pub project: ProjectRef,
}

/// Looks for a question among the caller's projects.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn search(
    ctx: &Context,
    scope: &Scope,
    question: &str,
    groups: &[Group],
    limit: usize,
    now: Timestamp,
) -> Result<SearchAnswer> {
    let question = question.trim();
    if question.chars().count() < LEAST_CHARS {
        let hint = Some(
            "Type at least two characters: words of a name, title, path, label or branch, an id, or a commit.",
        );
        return Ok(SearchAnswer { hint, ..SearchAnswer::default() });
    }
    let mut session = read_session_with_fresh_aggregates_in(ctx, scope.projects().as_deref()).await?;
    let asked = SearchTerms::new(question, scope, now);
    let wants = |group: Group| groups.is_empty() || groups.contains(&group);
    let mut found = Findings::default();
    if wants(Group::Projects) {
        found.projects = asked.projects(&mut session, limit).await?;
    }
    if wants(Group::Runs) {
        found.runs = asked.runs(&mut session, limit).await?;
    }
    if wants(Group::Cases) {
        found.cases = asked.cases(&mut session, limit).await?;
    }
    if wants(Group::Clusters) {
        found.clusters = asked.clusters(&mut session, limit).await?;
    }
    show(&mut session, found).await
}

/// A question of a caller.
struct SearchTerms<'s> {
    words: Vec<AskedWord>,
    /// An id, and of what when the question says so.
    number: Option<(Option<Group>, i64)>,
    commit: Option<String>,
    scope: &'s Scope,
    projects: Option<Vec<ProjectId>>,
    now: Timestamp,
}

type Place = (ProjectId, i64);

#[derive(Default)]
struct Findings {
    projects: Vec<Place>,
    runs: Vec<Place>,
    cases: Vec<Place>,
    clusters: Vec<Place>,
}

impl<'s> SearchTerms<'s> {
    fn new(question: &str, scope: &'s Scope, now: Timestamp) -> Self {
        let words = Question::from_text(question).words;
        let is_commit = question.len() >= LEAST_COMMIT_CHARS
            && question.len() <= 64
            && question.bytes().all(|byte| byte.is_ascii_hexdigit());
        Self {
            words: words.into_iter().map(|(text, is_prefix)| AskedWord { text, is_prefix }).collect(),
            number: numbered(question),
            commit: is_commit.then(|| commit_word(question)),
            scope,
            projects: scope.projects(),
            now,
        }
    }

    async fn by_words(&self, session: &mut Session, kind: SearchKind) -> Result<Vec<Found>> {
        let (mut found, is_cut) =
            search::find(session, self.projects.as_deref(), kind, &self.words, CANDIDATES).await?;
        let Some(last) = found.last().copied().filter(|_| is_cut) else { return Ok(found) };
        let scope = visible(self.scope);
        let recent =
            projects::list(session, &scope, None, &ProjectOrder::Updated(None), SPREAD_PROJECTS).await?;
        let recent: Vec<i64> = recent.iter().map(|project| project.id.get()).collect();
        if last.is_exact {
            // They come project by project: of the last one, and of those behind it, more was left.
            let behind = recent.iter().copied().filter(|id| *id < last.project.get()).collect();
            found.extend(search::newest_of(session, behind, kind, &self.words, OF_EACH_PROJECT).await?);
        }
        // Longer words come word by word: any project may have some that were left.
        let spread = (SPREAD_WORDS, OF_EACH_PROJECT);
        let longer = search::newest_with_longer_words(session, recent, kind, &self.words, spread).await?;
        found.extend(longer);
        Ok(found)
    }

    /// The best of what was found by words, behind what was found by its id.
    fn best(
        &self,
        first: Vec<Place>,
        found: Vec<Found>,
        ages: &HashMap<i64, i64>,
        limit: usize,
    ) -> Vec<Place> {
        let others = self.words.len().saturating_sub(1);
        // Of several words the last one may have been found by its beginning.
        let others_exact = self.words.iter().skip(1).filter(|word| !word.is_prefix).count();
        let rank = |found: &Found| {
            let exact = others_exact + usize::from(found.is_exact);
            let prefix = others - others_exact + usize::from(!found.is_exact);
            let age = ages.get(&found.entity).map_or(i64::MAX, |at| self.now.millis() - at);
            words::rank(exact, prefix, age)
        };
        let mut ranked: Vec<(f64, Place)> =
            found.iter().map(|found| (rank(found), (found.project, found.entity))).collect();
        ranked.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(b.1.cmp(&a.1)));
        let mut seen = BTreeSet::new();
        let all = first.into_iter().chain(ranked.into_iter().map(|(_, place)| place));
        all.filter(|place| seen.insert(place.1)).take(limit).collect()
    }

    fn number_of(&self, group: Group) -> Option<i64> {
        let (asked, number) = self.number?;
        asked.is_none_or(|asked| asked == group).then_some(number)
    }

    /// The entity with the number that was asked for, when the caller sees it.
    async fn by_number(&self, session: &mut Session, group: Group, kind: Listed) -> Result<Vec<Place>> {
        let Some(number) = self.number_of(group) else { return Ok(Vec::new()) };
        let project = ids::project_of(session, kind, number).await?;
        Ok(project
            .filter(|project| self.scope.contains(*project))
            .map(|project| (project, number))
            .into_iter()
            .collect())
    }

    async fn projects(&self, session: &mut Session, limit: usize) -> Result<Vec<Place>> {
        let mut first = Vec::new();
        let asked = self.number_of(Group::Projects).map(ProjectId);
        if let Some(number) = asked.filter(|project| self.scope.contains(*project))
            && projects::get(session, number).await?.is_some()
        {
            first.push((number, number.get()));
        }
        let found = self.by_words(session, SearchKind::Project).await?;
        let rows = projects::get_many(session, found.iter().map(|found| found.entity).collect()).await?;
        let ages = rows.iter().map(|project| (project.id.get(), project.updated_at.millis())).collect();
        Ok(self.best(first, found, &ages, limit))
    }

    async fn runs(&self, session: &mut Session, limit: usize) -> Result<Vec<Place>> {
        let mut first = self.by_number(session, Group::Runs, Listed::Run).await?;
        if let Some(commit) = &self.commit {
            let word = [AskedWord { text: commit.clone(), is_prefix: true }];
            let most = i64::try_from(limit).unwrap_or(CANDIDATES);
            let (found, _) =
                search::find(session, self.projects.as_deref(), SearchKind::Commit, &word, most).await?;
            let mut found: Vec<Place> = found.iter().map(|found| (found.project, found.entity)).collect();
            found.sort_by_key(|place| std::cmp::Reverse(place.1));
            first.extend(found);
        }
        let found = self.by_words(session, SearchKind::Run).await?;
        let ages = search::run_times(session, places(&found)).await?;
        Ok(self.best(first, found, &ages, limit))
    }

    async fn cases(&self, session: &mut Session, limit: usize) -> Result<Vec<Place>> {
        let first = self.by_number(session, Group::Cases, Listed::TestCase).await?;
        let found = self.by_words(session, SearchKind::TestCase).await?;
        let ages = search::test_times(session, places(&found)).await?;
        Ok(self.best(first, found, &ages, limit))
    }

    async fn clusters(&self, session: &mut Session, limit: usize) -> Result<Vec<Place>> {
        let mut first = self.by_number(session, Group::Clusters, Listed::Cluster).await?;
        let mut found = self.by_words(session, SearchKind::Cluster).await?;
        let (mut projects, mut ids) = places(&found);
        for (project, id) in &first {
            projects.push(project.get());
            ids.push(*id);
        }
        let ages = search::cluster_times(session, (projects, ids)).await?;
        first.retain(|(_, id)| ages.contains_key(id));
        found.retain(|found| ages.contains_key(&found.entity));
        Ok(self.best(first, found, &ages, limit))
    }
}

/// The id a question asks for: `60`, `#60`, `run 60` or `run #60`.
fn numbered(question: &str) -> Option<(Option<Group>, i64)> {
    let (word, rest) = question.split_once(char::is_whitespace).unwrap_or(("", question));
    let group = match word.to_ascii_lowercase().as_str() {
        "" => None,
        "project" => Some(Group::Projects),
        "run" => Some(Group::Runs),
        "test" | "case" => Some(Group::Cases),
        "cluster" => Some(Group::Clusters),
        _ => return None,
    };
    let digits = rest.trim();
    RunId::parse(digits.strip_prefix('#').unwrap_or(digits)).map(|number| (group, number.get()))
}

/// Ids by their projects.
fn by_project(found: &[Place]) -> BTreeMap<ProjectId, Vec<i64>> {
    let mut ids: BTreeMap<ProjectId, Vec<i64>> = BTreeMap::new();
    for (project, id) in found {
        ids.entry(*project).or_default().push(*id);
    }
    ids
}

/// Projects and ids of what was found, in two lists of the same length.
fn places(found: &[Found]) -> (Vec<i64>, Vec<i64>) {
    found.iter().map(|found| (found.project.get(), found.entity)).unzip()
}

/// Loads what is shown of the findings: at most twenty of each kind.
async fn show(session: &mut Session, found: Findings) -> Result<SearchAnswer> {
    let all = found.projects.iter().chain(&found.runs).chain(&found.cases).chain(&found.clusters);
    let owners: BTreeSet<i64> = all.map(|(project, _)| project.get()).collect();
    let owners = projects::get_many(session, owners.into_iter().collect()).await?;
    let owners: HashMap<ProjectId, ProjectRef> =
        owners.iter().map(|project| (project.id, ProjectRef::from_row(project))).collect();
    let mut answer = SearchAnswer::default();
    answer.projects.extend(found.projects.iter().filter_map(|(project, _)| owners.get(project).cloned()));
    let mut runs = HashMap::new();
    for (project, ids) in by_project(&found.runs) {
        runs.extend(runs::get_many(session, project, ids).await?.into_iter().map(|run| (run.id.get(), run)));
    }
    for (project, id) in found.runs {
        let (Some(owner), Some(run)) = (owners.get(&project), runs.remove(&id)) else { continue };
        answer.runs.push(FoundRun {
            id,
            label: run.label,
            branch: non_empty(&run.branch),
            commit_message: shortened(run.commit_message.as_ref(), 200),
            status: run.status,
            start_time: run.start_time,
            project: owner.clone(),
        });
    }
    let mut cases = HashMap::new();
    for (project, ids) in by_project(&found.cases) {
        cases.extend(test_cases::get_many(session, project, ids).await?);
    }
    for (project, id) in found.cases {
        let (Some(owner), Some(case)) = (owners.get(&project), cases.remove(&TestCaseId(id))) else {
            continue;
        };
        answer.cases.push(FoundCase {
            id,
            title: case.title,
            file_path: case.file_path,
            project: owner.clone(),
        });
    }
    let mut clusters = HashMap::new();
    for (project, ids) in by_project(&found.clusters) {
        let rows = clusters::get_many(session, project, ids).await?;
        clusters.extend(rows.into_iter().map(|cluster| (cluster.id.get(), cluster)));
    }
    for (project, id) in found.clusters {
        let (Some(owner), Some(cluster)) = (owners.get(&project), clusters.remove(&id)) else { continue };
        answer.clusters.push(FoundCluster {
            id,
            signature: cluster.signature,
            title: cluster.title,
            status: cluster.status.as_str().to_owned(),
            project: owner.clone(),
        });
    }
    Ok(answer)
}
