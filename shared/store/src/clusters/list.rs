//! Clusters of one project, or of all that a caller sees.

use callboard_domain::failure::ErrorType;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use super::{ClusterRow, ClusterStatus, read, select_cluster};
use crate::Result;
use crate::db::{Backend, Filter, Session, args, statements};
use crate::projects::Visible;
use crate::search::SearchKind;

statements! {
    /// Clusters of a project by status. ix: failure_clusters_by_count
    COUNT = "SELECT status, COUNT(*) FROM failure_clusters WHERE project_id = $1 AND occurrences > 0 AND status <> 'merged' GROUP BY status";
    /// Open clusters of some projects by type of error. ix: failure_clusters_by_count
    ERROR_TYPES = "SELECT error_type, COUNT(*) FROM failure_clusters WHERE project_id in_ints($1) AND status = 'open' AND occurrences > 0 \
        GROUP BY error_type ORDER BY error_type";
}

/// How clusters are sorted, with the key of the last row of the page before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterOrder {
    /// The one seen last first.
    LastSeen(Option<(i64, i64)>),
    /// The one that occurred most often first.
    Occurrences(Option<(i64, i64)>),
    /// The newest first.
    Id(Option<i64>),
}

/// Who has to look after a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assigned {
    /// This account.
    To(i64),
    /// Nobody.
    Nobody,
}

/// The conditions of a list of clusters.
#[derive(Debug, Clone, Default)]
pub struct ClusterFilter {
    /// Only these.
    pub statuses: Vec<ClusterStatus>,
    /// Only these types of errors.
    pub error_types: Vec<ErrorType>,
    /// Only those somebody, or nobody, looks after.
    pub assigned: Option<Assigned>,
    /// Only those that are, or are not, put off at a moment.
    pub snoozed: Option<(bool, Timestamp)>,
    /// Only those seen at this moment or later.
    pub seen_from: Option<Timestamp>,
    /// Only those for which a test of this owner failed.
    pub owner: Option<String>,
    /// Only those with a word in the signature or title that begins so; several have to be there all.
    pub words: Vec<String>,
}

/// Open clusters of some projects that have occurrences, by type of error.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn error_types(session: &mut Session, projects: Vec<i64>) -> Result<Vec<(String, i64)>> {
    let rows = session.all(&ERROR_TYPES, args![projects]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.text()?, r.int()?))
        })
        .collect()
}

/// A page of clusters.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: Option<ProjectId>,
    visible: &Visible,
    wanted: &ClusterFilter,
    order: ClusterOrder,
    limit: i64,
) -> Result<Vec<ClusterRow>> {
    let filter = filter(session.backend(), project, visible, wanted, order, limit);
    session.list(filter).await?.iter().map(read).collect()
}

fn filter(
    backend: Backend,
    project: Option<ProjectId>,
    visible: &Visible,
    wanted: &ClusterFilter,
    order: ClusterOrder,
    limit: i64,
) -> Filter {
    let filter = match project {
        Some(project) => Filter::new(
            backend,
            select_cluster!("WHERE c.project_id = $1 AND c.occurrences > 0"),
            args![project],
        ),
        // Not those of hidden projects.
        None => Filter::new(
            backend,
            select_cluster!(
                "WHERE c.occurrences > 0 AND EXISTS (SELECT 1 FROM projects p WHERE p.id = c.project_id)"
            ),
            args![],
        )
        .and_if("c.project_id in_ints(?)", visible.ids()),
    };
    let filter = conditions(filter, wanted);
    match order {
        ClusterOrder::LastSeen(after) => match after {
            Some((at, id)) => filter.and("(c.last_seen_at, c.id) < (?, ?)", args![at, id]),
            None => filter,
        }
        .end("ORDER BY c.last_seen_at DESC, c.id DESC LIMIT ?", args![limit]),
        ClusterOrder::Occurrences(after) => match after {
            Some((count, id)) => filter.and("(c.occurrences, c.id) < (?, ?)", args![count, id]),
            None => filter,
        }
        .end("ORDER BY c.occurrences DESC, c.id DESC LIMIT ?", args![limit]),
        ClusterOrder::Id(after) => {
            filter.and_if("c.id < ?", after).end("ORDER BY c.id DESC LIMIT ?", args![limit])
        }
    }
}

/// Bounded by the tests of each cluster, whatever their history. PK
const HAS_TEST_OF_OWNER: &str = "EXISTS (SELECT 1 FROM cluster_tests t JOIN test_cases o ON o.project_id = t.project_id \
    AND o.id = t.test_case_id WHERE t.project_id = c.project_id AND t.cluster_id = c.id AND COALESCE(o.owner, o.code_owner) = ?)";

fn conditions(filter: Filter, wanted: &ClusterFilter) -> Filter {
    let statuses = if wanted.statuses.is_empty() { &ClusterStatus::ALL[..] } else { &wanted.statuses };
    // One status is an equality, which the indexes by status lead with.
    let filter = match statuses {
        [only] => filter.and("c.status = ?", args![only.as_str()]),
        several => {
            let words: Vec<String> = several.iter().map(|status| status.as_str().to_owned()).collect();
            filter.and("c.status in_texts(?)", args![words])
        }
    };
    let types: Vec<String> = wanted.error_types.iter().map(|one| one.as_str().to_owned()).collect();
    let filter = filter
        .and_if("c.error_type in_texts(?)", (!types.is_empty()).then_some(types))
        .and_if("c.last_seen_at >= ?", wanted.seen_from)
        .and_if(HAS_TEST_OF_OWNER, wanted.owner.clone());
    let filter = match wanted.assigned {
        Some(Assigned::To(user)) => filter.and("c.assignee_id = ?", args![user]),
        Some(Assigned::Nobody) => filter.and("c.assignee_id IS NULL", args![]),
        None => filter,
    };
    let mut filter = match wanted.snoozed {
        Some((true, now)) => filter.and("c.snoozed_until > ?", args![now]),
        Some((false, now)) => filter.and("(c.snoozed_until IS NULL OR c.snoozed_until <= ?)", args![now]),
        None => filter,
    };
    for word in &wanted.words {
        // ix: search_terms_of_entity
        filter = filter.and(
            "EXISTS (SELECT 1 FROM search_terms s WHERE s.project_id = c.project_id AND s.kind = ? AND s.entity_id = c.id \
             AND s.term >= ? AND s.term < ?)",
            args![SearchKind::Cluster as i64, word, format!("{word}\u{10ffff}")],
        );
    }
    filter
}

/// How many clusters of a project there are, up to `most`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count(
    session: &mut Session,
    project: ProjectId,
    wanted: &ClusterFilter,
    most: i64,
) -> Result<i64> {
    session.count(counting(session.backend(), project, wanted, most)).await
}

fn counting(backend: Backend, project: ProjectId, wanted: &ClusterFilter, most: i64) -> Filter {
    let base = "SELECT COUNT(*) FROM (SELECT 1 FROM failure_clusters c WHERE c.project_id = $1 AND c.occurrences > 0";
    conditions(Filter::new(backend, base, args![project]), wanted).end("LIMIT ?) counted", args![most])
}

/// How many clusters of a project have a status.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn counts(session: &mut Session, project: ProjectId) -> Result<Vec<(ClusterStatus, i64)>> {
    let rows = session.all(&COUNT, args![project]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ClusterStatus::stored(&r.text()?)?, r.int()?))
        })
        .collect()
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = ClusterFilter {
        statuses: vec![ClusterStatus::Open],
        error_types: vec![ErrorType::Timeout],
        assigned: Some(Assigned::To(1)),
        snoozed: Some((true, Timestamp(0))),
        seen_from: Some(Timestamp(0)),
        owner: Some(String::new()),
        words: vec![String::new()],
    };
    let others = ClusterFilter {
        assigned: Some(Assigned::Nobody),
        snoozed: Some((false, Timestamp(0))),
        ..ClusterFilter::default()
    };
    let (pair, id) = (Some((1, 1)), Some(1));
    let mut shapes = Vec::new();
    for wanted in [ClusterFilter::default(), others, all] {
        shapes.push(counting(backend, ProjectId(1), &wanted, 1));
        for order in [
            ClusterOrder::LastSeen(None),
            ClusterOrder::LastSeen(pair),
            ClusterOrder::Occurrences(pair),
            ClusterOrder::Id(id),
        ] {
            for project in [None, Some(ProjectId(1))] {
                shapes.push(filter(backend, project, &Visible::Only(Vec::new()), &wanted, order, 1));
            }
        }
    }
    shapes
}
