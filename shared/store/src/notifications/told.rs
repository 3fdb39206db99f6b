//! What was sent to a channel about something that may be corrected later, and how it was when it was last looked at.

use callboard_domain::ids::{ChannelId, ProjectId};
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// What channels were sent about some subjects. PK
    OF_SUBJECTS = "SELECT subject, channel_id, state FROM told_states WHERE project_id = $1 AND subject in_texts($2)";
    /// Notes what a channel is sent. PK
    NOTE = "INSERT INTO told_states AS t (project_id, subject, channel_id, state, at) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (project_id, subject, channel_id) DO UPDATE SET state = excluded.state, at = excluded.at";
    /// Forgets what is old. ix: told_states_by_time
    PURGE = "DELETE FROM told_states WHERE at < $1";
}

/// Stands for no channel: how a subject was when it was last looked at, whoever was sent it.
pub const OBSERVED: ChannelId = ChannelId(0);

/// What channels were sent about some subjects: subject, channel, state.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn of_subjects(
    session: &mut Session,
    project: ProjectId,
    subjects: Vec<String>,
) -> Result<Vec<(String, ChannelId, String)>> {
    let rows = session.all(&OF_SUBJECTS, args![project, subjects]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.text()?, ChannelId(r.int()?), r.text()?))
        })
        .collect()
}

/// Notes what a channel is sent about a subject.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn note(
    session: &mut Session,
    project: ProjectId,
    subject: &str,
    channel: ChannelId,
    state: &str,
    now: Timestamp,
) -> Result<()> {
    session.execute(&NOTE, args![project, subject, channel, state, now]).await?;
    Ok(())
}

/// Forgets what was sent before a moment.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn purge(session: &mut Session, before: Timestamp) -> Result<()> {
    session.execute(&PURGE, args![before]).await?;
    Ok(())
}
