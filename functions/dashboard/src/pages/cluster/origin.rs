//! Where a cluster came from: the first run that shows it, the green one
//! before, and what changed between the two.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_query::run_views::{self, MetadataDifference, SinceGreen, TestedCommit, TestedCommits};
use callboard_query::shapes::{ClusterDetail, RunItem};
use callboard_query::{QueryError, runs};

use crate::components::{UnsetDefault, name_of};
use crate::visit::Visit;

/// Differences the page names; the run's own page has the rest.
const SHOWN: usize = 6;
/// What differs between any two runs, or is told in words of its own.
const EXPECTED: [&str; 2] = ["ci.", "scm."];

/// The beginning of a cluster.
pub(super) struct Origin {
    /// The first run that shows it.
    pub run: RunItem,
    /// What that run is called.
    pub name: String,
    /// What lies between it and green.
    pub since: SinceGreen,
    /// Why no green run is known, where it is this.
    pub unset_default: Option<UnsetDefault>,
    /// Whether the commits are those since one that a person named.
    pub is_from_base: bool,
    /// The commits in between that were tested.
    pub tested: TestedCommits,
    /// What else differs.
    pub differences: Vec<MetadataDifference>,
    /// How many differences are left out.
    pub more: usize,
}

impl Origin {
    /// The beginning of a cluster; nothing once retention let its first run go.
    pub(super) async fn load(
        visit: &Visit,
        project: Authorized<ProjectId>,
        cluster: &ClusterDetail,
    ) -> Result<Option<Self>, ApiError> {
        let first = RunId(cluster.item.first_seen_run_id);
        let base = cluster.base_commit.as_deref();
        let mut since = match run_views::since_green(&visit.ctx, project, first, base).await {
            Ok(since) => since,
            Err(QueryError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let run = runs::get(&visit.ctx, project, first).await?;
        let mut differences = std::mem::take(&mut since.metadata_diff);
        differences.retain(|found| !EXPECTED.iter().any(|place| found.key.starts_with(place)));
        let more = differences.len().saturating_sub(SHOWN);
        differences.truncate(SHOWN);
        let is_from_base = base.is_some();
        let (mut tested, unset_default) = match &since.green {
            Some(green) => {
                (run_views::tested_since(&visit.ctx, project, RunId(green.run_id), first).await?, None)
            }
            None => (TestedCommits::default(), UnsetDefault::load(visit, project).await?),
        };
        // What lies before the commit that somebody named, which may be short, is not looked at.
        if let Some(base) = base {
            let is_base = |one: &TestedCommit| one.commit.to_ascii_lowercase().starts_with(base);
            // Where it is not among them, nobody knows which of them lie before it.
            tested.commits.truncate(tested.commits.iter().position(is_base).unwrap_or(0));
            tested.goes_on = false;
        }
        Ok(Some(Self {
            name: name_of(&run),
            run,
            since,
            unset_default,
            is_from_base,
            tested,
            differences,
            more,
        }))
    }
}
