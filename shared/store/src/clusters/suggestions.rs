//! Clusters that may be one. A pair is suggested once: what somebody refused
//! is not asked again.

use callboard_domain::ids::{ClusterId, ClusterSuggestionId, ProjectId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::{Result, StoreError};

macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT id, a_id, b_id, score, method, reason, status, created_at FROM cluster_suggestions ",
            $tail
        )
    };
}

statements! {
    /// Suggests a pair, once.
    INSERT = "INSERT INTO cluster_suggestions (id, project_id, a_id, b_id, score, method, reason, status, created_at, updated_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, $8) ON CONFLICT (project_id, a_id, b_id) DO NOTHING";
    /// One suggestion, locked. PK
    LOCK = select!("WHERE project_id = $1 AND id = $2 for_update()");
    /// Suggestions of a project, the newest first. ix: cluster_suggestions_by_status
    LIST = select!("WHERE project_id = $1 AND status = $2 AND id < $3 ORDER BY id DESC LIMIT $4");
    /// Decides. PK
    DECIDE = "UPDATE cluster_suggestions SET status = $3, updated_at = $4 WHERE project_id = $1 AND id = $2";
}

/// What became of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestionStatus {
    /// Nobody has decided.
    Pending,
    /// They were made one.
    Approved,
    /// They stay two.
    Rejected,
}

impl SuggestionStatus {
    /// The word used on the wire and in columns.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Approved, Self::Rejected].into_iter().find(|one| one.as_str() == word)
    }
}

/// Why two clusters may be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestionMethod {
    /// Newer rules read the same failure in both.
    Fingerprint,
    /// What is read of their failures is nearly the same.
    Wording,
}

impl SuggestionMethod {
    /// The word used on the wire and in columns.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fingerprint => "fingerprint",
            Self::Wording => "wording",
        }
    }
}

/// Two clusters that may be one.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestionRow {
    /// Id.
    pub id: ClusterSuggestionId,
    /// The older one, which would stay.
    pub a: ClusterId,
    /// The newer one.
    pub b: ClusterId,
    /// How alike they are, 0 to 1; `None` where the method has no measure.
    pub score: Option<f64>,
    /// `fingerprint` or `wording`.
    pub method: String,
    /// For people.
    pub reason: Option<String>,
    /// What became of it.
    pub status: SuggestionStatus,
    /// When it was made.
    pub created_at: Timestamp,
}

fn read(row: &Row) -> Result<SuggestionRow> {
    let mut r = row.reader();
    Ok(SuggestionRow {
        id: ClusterSuggestionId(r.int()?),
        a: ClusterId(r.int()?),
        b: ClusterId(r.int()?),
        score: r.opt_real()?,
        method: r.text()?,
        reason: r.opt_text()?,
        status: SuggestionStatus::parse(&r.text()?).ok_or(StoreError::Damaged("a suggestion"))?,
        created_at: r.time()?,
    })
}

/// Suggests that two clusters are one; a pair that was suggested before stays
/// as it is.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn suggest(
    session: &mut Session,
    project: ProjectId,
    pair: (ClusterId, ClusterId),
    (method, score): (SuggestionMethod, Option<f64>),
    reason: &str,
    now: Timestamp,
) -> Result<()> {
    let (older, newer) = (pair.0.min(pair.1), pair.0.max(pair.1));
    let id = ids::allocate_one(session, Kind::ClusterSuggestion).await?;
    let values = args![id, project, older, newer, score, method.as_str(), reason, now];
    if session.execute(&INSERT, values).await? > 0 {
        ids::list(session, Listed::ClusterSuggestion, project, &[id]).await?;
    }
    Ok(())
}

/// A suggestion, locked until the transaction ends.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(
    session: &mut Session,
    project: ProjectId,
    id: ClusterSuggestionId,
) -> Result<Option<SuggestionRow>> {
    session.first(&LOCK, args![project, id.get()]).await?.as_ref().map(read).transpose()
}

/// At most `limit` suggestions of a project before an id, the newest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    status: SuggestionStatus,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<SuggestionRow>> {
    let before = before.unwrap_or(i64::MAX);
    session.all(&LIST, args![project, status.as_str(), before, limit]).await?.iter().map(read).collect()
}

/// Decides about a locked suggestion.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn decide(
    session: &mut Session,
    project: ProjectId,
    id: ClusterSuggestionId,
    status: SuggestionStatus,
    now: Timestamp,
) -> Result<()> {
    session.execute(&DECIDE, args![project, id.get(), status.as_str(), now]).await?;
    Ok(())
}
