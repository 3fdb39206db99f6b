//! Which commits and files may have caused a failure, as tools show it.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_query::scm::{self, ClusterSuspects, SuspectsOf};
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Context;
use crate::error::ToolError;

/// Commits, files and reasons that are shown.
const COMMITS: usize = 3;
const FILES: usize = 5;
const REASONS: usize = 2;

/// What may have caused a failure cluster.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Suspects {
    /// Commit of the last green run, or the chosen base.
    base_commit: String,
    /// Commits since then that were examined.
    examined_commits: usize,
    commits: Vec<SuspectCommit>,
    files: Vec<SuspectFile>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SuspectCommit {
    sha: String,
    message: String,
    author: String,
    probability: f64,
    /// Whether it stands out from all others.
    is_top: bool,
    reasons: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct SuspectFile {
    path: String,
    score: f64,
    reasons: Vec<String>,
}

impl From<ClusterSuspects> for Suspects {
    fn from(found: ClusterSuspects) -> Self {
        let commits = found.commits.iter().filter(|suspect| !suspect.reasons.is_empty()).take(COMMITS);
        let commits = commits.map(|suspect| SuspectCommit {
            sha: suspect.commit.short_sha.clone(),
            message: suspect.commit.subject().to_owned(),
            author: suspect.commit.author.clone(),
            probability: suspect.probability,
            is_top: suspect.is_top,
            reasons: suspect.reasons.iter().take(REASONS).map(ToString::to_string).collect(),
        });
        let files = found.files.iter().take(FILES).map(|file| SuspectFile {
            path: file.path.clone(),
            score: file.score,
            reasons: file.reasons.iter().take(REASONS).cloned().collect(),
        });
        Self {
            commits: commits.collect(),
            files: files.collect(),
            base_commit: found.base.chars().take(8).collect(),
            examined_commits: found.examined_commits,
        }
    }
}

/// The suspects of a cluster that are stored: nobody is asked for them here.
pub(crate) async fn stored(
    context: &Context,
    project: Authorized<ProjectId>,
    cluster: ClusterId,
) -> Result<Option<Suspects>, ToolError> {
    let access = context.state.source_control();
    let wanted = SuspectsOf { cluster, base: None };
    let found = scm::stored_suspects(&context.query, &access, project, wanted, context.state.now()).await?;
    Ok(found.map(Suspects::from))
}
