//! Who may still be sent what: asked when a message is queued, and again when it is sent.

use std::collections::HashMap;

use callboard_domain::account::Role;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::notifications::ChannelKind;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::principal::{self, AccountRow};
use callboard_store::db::Session;
use callboard_store::notifications::channels::ChannelRow;
use callboard_store::projects;

use crate::{Context, Result};

/// Why a message is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withheld {
    ProjectDeleted,
    NoAccess,
    RoleTooLow,
    SignInOff,
}

impl Withheld {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::ProjectDeleted => "The project was deleted.",
            Self::NoAccess => "The owner of the channel has no access to the project any more.",
            Self::RoleTooLow => "The role of the channel's owner allows only browser and email.",
            Self::SignInOff => "Sign-in is off, so nothing is sent to people.",
        }
    }
}

/// Accounts by id, and which projects exist, as they were read in one transaction.
#[derive(Default)]
pub(super) struct Recipients {
    known: HashMap<UserId, Option<AccountRow>>,
    exists: HashMap<ProjectId, bool>,
}

impl Recipients {
    /// Whether a channel may be sent what is about a project, or about none.
    pub(super) async fn check(
        &mut self,
        ctx: &Context,
        session: &mut Session,
        channel: &ChannelRow,
        project: Option<ProjectId>,
        now: Timestamp,
    ) -> Result<std::result::Result<(), Withheld>> {
        if let Some(project) = project {
            let exists = match self.exists.get(&project) {
                Some(known) => *known,
                None => {
                    let found = projects::get(session, project).await?.is_some();
                    self.exists.insert(project, found);
                    found
                }
            };
            if !exists {
                return Ok(Err(Withheld::ProjectDeleted));
            }
        }
        let Some(user) = channel.user else { return Ok(Ok(())) };
        if !ctx.requires_sign_in {
            return Ok(Err(Withheld::SignInOff));
        }
        let account = match self.known.get(&user) {
            Some(known) => known.clone(),
            None => {
                let found = principal::by_holder(session, user, None, now).await?;
                self.known.insert(user, found.clone());
                found
            }
        };
        let Some(account) = account else { return Ok(Err(Withheld::NoAccess)) };
        if !may_own(account.role, channel.kind) {
            return Ok(Err(Withheld::RoleTooLow));
        }
        Ok(if project.is_none_or(|project| reaches(&account, project)) {
            Ok(())
        } else {
            Err(Withheld::NoAccess)
        })
    }
}

fn reaches(account: &AccountRow, project: ProjectId) -> bool {
    account.role == Role::Administrator || account.all_projects || account.projects.contains(&project)
}

/// Whether people of a role may have channels of a kind.
pub(super) fn may_own(role: Role, kind: ChannelKind) -> bool {
    kind.is_personal() || role != Role::User
}
