//! Failure clusters as a table: what failed, how often, and where they stand.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::{ClusterItem, ClusterWithProject, ProjectRef};

use crate::components::Sorting;
use crate::filters;

/// A cluster with the project it belongs to, where that is to be named.
struct Row {
    cluster: ClusterItem,
    project: Option<ProjectRef>,
    /// Until when nobody wants to hear of it.
    put_off: Option<Timestamp>,
}

impl Row {
    fn new(cluster: ClusterItem, project: Option<ProjectRef>, now: Timestamp) -> Self {
        Self { put_off: cluster.snoozed_until.filter(|until| *until > now), cluster, project }
    }
}

/// Inputs of `components/cluster_table.html`.
#[derive(Template)]
#[template(path = "components/cluster_table.html")]
pub(crate) struct ClusterTable {
    rows: Vec<Row>,
    sorting: Option<Sorting>,
    /// Whether rows can be chosen; the form has the id `bulk`.
    with_ticks: bool,
    /// Whether it says who looks after each: nobody can, where there are no accounts.
    with_people: bool,
    now: Timestamp,
}

impl HtmlSafe for ClusterTable {}

impl ClusterTable {
    /// Clusters of one project.
    pub(crate) fn of_project(clusters: Vec<ClusterItem>, now: Timestamp) -> Self {
        let rows = clusters.into_iter().map(|cluster| Row::new(cluster, None, now));
        Self { rows: rows.collect(), sorting: None, with_ticks: false, with_people: false, now }
    }

    /// The same with who looks after each, where somebody can.
    #[must_use]
    pub(crate) fn with_people(self, with_people: bool) -> Self {
        Self { with_people, ..self }
    }

    /// The same with heads that sort it.
    #[must_use]
    pub(crate) fn sorted_by(self, sorting: Sorting) -> Self {
        Self { sorting: Some(sorting), ..self }
    }

    /// The same with a tick in front of every cluster.
    #[must_use]
    pub(crate) fn with_ticks(self, with_ticks: bool) -> Self {
        Self { with_ticks, ..self }
    }

    /// Clusters of several projects.
    pub(crate) fn of_all(clusters: Vec<ClusterWithProject>, now: Timestamp) -> Self {
        let rows = clusters.into_iter().map(|each| Row::new(each.cluster, Some(each.project), now));
        Self { rows: rows.collect(), sorting: None, with_ticks: false, with_people: false, now }
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// A type of error as people read it.
pub(crate) fn error_type_word(kind: &str) -> &'static str {
    match kind {
        "timeout" => "Timeout",
        "assertion" => "Assertion",
        "strict-mode" => "Ambiguous locator",
        "navigation" => "Navigation",
        "crash" => "Crash",
        _ => "Other",
    }
}

/// The look of a cluster's status, as a class of tags.
pub(crate) fn status_class(status: &str) -> &'static str {
    match status {
        "open" => "failed-tag",
        "resolved" => "passed-tag",
        _ => "",
    }
}
