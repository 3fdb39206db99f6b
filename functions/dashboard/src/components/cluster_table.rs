//! Failure clusters as a table: what failed, how often, and where they stand.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::{ClusterItem, ClusterWithProject, ProjectRef};

use crate::filters;

/// A cluster with the project it belongs to, where that is to be named.
struct Row {
    cluster: ClusterItem,
    project: Option<ProjectRef>,
    /// Until when nobody wants to hear of it.
    put_off: Option<Timestamp>,
}

impl Row {
    fn of(cluster: ClusterItem, project: Option<ProjectRef>, now: Timestamp) -> Self {
        Self { put_off: cluster.snoozed_until.filter(|until| *until > now), cluster, project }
    }
}

/// Inputs of `components/cluster_table.html`.
#[derive(Template)]
#[template(path = "components/cluster_table.html")]
pub(crate) struct ClusterTable {
    rows: Vec<Row>,
    now: Timestamp,
}

impl HtmlSafe for ClusterTable {}

impl ClusterTable {
    /// Clusters of one project.
    pub(crate) fn of_project(clusters: Vec<ClusterItem>, now: Timestamp) -> Self {
        let rows = clusters.into_iter().map(|cluster| Row::of(cluster, None, now));
        Self { rows: rows.collect(), now }
    }

    /// Clusters of several projects.
    pub(crate) fn of_all(clusters: Vec<ClusterWithProject>, now: Timestamp) -> Self {
        let rows = clusters.into_iter().map(|each| Row::of(each.cluster, Some(each.project), now));
        Self { rows: rows.collect(), now }
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// A type of error as people read it.
pub(crate) fn error_type_word(kind: &str) -> &'static str {
    match kind {
        "timeout" => "Timeout",
        "assertion" => "Assertion",
        "strict-mode" => "Several elements",
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
