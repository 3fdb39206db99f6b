//! Uploads of single files: planned by hash, sent one by one to the bucket or
//! through the service, and committed to a run.
//!
//! A ticket names the staged object before its first byte. Bytes that a client
//! wrote to the bucket itself are claims until a copy of them was hashed; those
//! that came through the service were hashed on their way. The staged object
//! stays until the bytes are content of the project, so that every step can be
//! repeated.

pub(crate) mod commit;
pub(crate) mod plan;
pub(crate) mod receiving;
pub(crate) mod verification;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::runs::tokens::TokenKind;

use crate::receive::case_files::Sender;
use crate::stage::run_token;
use crate::{Context, Result};

/// What somebody may upload files to.
#[derive(Debug, Clone, Copy)]
pub struct UploadTarget {
    project: ProjectId,
    run: Option<RunId>,
    sender: Sender,
    /// The project, where an account may upload to it.
    account_project: Option<Authorized<ProjectId>>,
}

impl UploadTarget {
    /// Of an account with access to the project; the run is one of it.
    #[must_use]
    pub const fn of_account(project: Authorized<ProjectId>, run: Option<RunId>) -> Self {
        Self { project: project.get(), run, sender: Sender::Account, account_project: Some(project) }
    }

    /// The run, where one is named.
    #[must_use]
    pub const fn run(&self) -> Option<RunId> {
        self.run
    }

    /// The project, where an account may upload to it.
    #[must_use]
    pub const fn account_project(&self) -> Option<Authorized<ProjectId>> {
        self.account_project
    }

    const fn slot(&self) -> Option<SlotId> {
        match self.sender {
            Sender::Client(slot) => Some(slot),
            Sender::Account => None,
        }
    }
}

/// What a client of a run may upload files to.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Token`],
/// [`crate::QueryError::Life`].
#[boxed]
pub async fn upload_target_of_client(
    ctx: &Context,
    run: RunId,
    token: &str,
    now: Timestamp,
) -> Result<UploadTarget> {
    let bearer = run_token::recognise(&ctx.store, run, Some(token), TokenKind::Stream, now).await?;
    bearer.refuse_early()?;
    let (project, sender) = (bearer.project, Sender::Client(bearer.slot));
    Ok(UploadTarget { project, run: Some(run), sender, account_project: None })
}
