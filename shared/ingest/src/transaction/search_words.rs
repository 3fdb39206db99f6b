//! The words by which a run is found.

use callboard_domain::search::{commit_word, words};
use callboard_store::db::Session;
use callboard_store::runs::RunRow;
use callboard_store::search::{self, SearchKind};

use crate::Result;

/// The words by which a run is found.
#[must_use]
pub fn run_words(label: Option<&str>, branch: &str) -> Vec<String> {
    words([label.unwrap_or_default(), branch])
}

/// Replaces the words by which a run is found where its client told others.
pub(crate) async fn refresh_words(session: &mut Session, before: &RunRow, now: &RunRow) -> Result<()> {
    let (project, id) = (now.project, now.id.get());
    if (&before.label, &before.branch) != (&now.label, &now.branch) {
        let found_by = run_words(now.label.as_deref(), &now.branch);
        search::replace(session, project, SearchKind::Run, id, found_by).await?;
    }
    if before.commit_sha != now.commit_sha {
        let word = now.commit_sha.iter().map(|commit| commit_word(commit)).collect();
        search::replace(session, project, SearchKind::Commit, id, word).await?;
    }
    Ok(())
}
