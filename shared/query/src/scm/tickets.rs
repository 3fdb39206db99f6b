//! How the issues and requests stand that links of a project lead to, where they
//! are in the project's own repository. What was read is stored; only what is asked
//! for after a page is shown, and jobs, ask the code host.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::text::{clean, cut};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{RequestState, Ticket, TicketKind};
use callboard_store::projects::edit;

use super::access::Access;
use super::cache::{Entry, Freshness, key};
use super::error::SourceControlError;
use super::host::{Host, repository, repository_key};
use crate::Context;
use crate::links::Link;

/// Links whose state is asked for together.
const MAX_ASKED: usize = 10;
/// Characters of a title that are shown.
const MAX_TITLE_CHARS: usize = 300;
const KIND: &str = "ticket";

/// How an issue or request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketState {
    /// Its title at the code host.
    pub title: String,
    /// `open`, `draft`, `merged` or `closed`.
    pub word: &'static str,
    /// A colour for the word, as tags have them.
    pub color: &'static str,
}

impl TicketState {
    fn new(ticket: Ticket) -> Self {
        let (word, color) = match ticket.state {
            RequestState::Open => ("open", "green"),
            RequestState::Draft => ("draft", "neutral"),
            RequestState::Merged => ("merged", "violet"),
            RequestState::Closed => ("closed", "red"),
        };
        Self { title: cut(clean(&ticket.title).trim().to_owned(), MAX_TITLE_CHARS), word, color }
    }
}

/// What of some addresses are issues or requests of the project's repository, each
/// with the state that is stored, if any. Asks no code host.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn stored_tickets(
    ctx: &Context,
    project: Authorized<ProjectId>,
    addresses: impl Iterator<Item = &str>,
    now: Timestamp,
) -> crate::Result<HashMap<String, Option<TicketState>>> {
    let project = project.get();
    let settings = edit::repository(&mut ctx.store.db().read().await?, project).await?;
    let Some((url, of)) = settings.and_then(|settings| repository(&settings).ok()) else {
        return Ok(HashMap::new());
    };
    let mut found = HashMap::new();
    for address in addresses {
        let Some(ticket) = of.provider().ticket_of(&url, address) else { continue };
        let key = key(KIND, &repository_key(of.provider(), &url), &ticket)?;
        let mut entry: Entry<Option<Ticket>> = Entry::look_up(ctx, project, key, now).await?;
        found.insert(address.to_owned(), entry.take_any().flatten().map(TicketState::new));
    }
    Ok(found)
}

/// Says of links how the issues and requests they lead to stand, as far as it is
/// stored, and what they are called there where nobody named them. Asks no code host.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn add_states(
    ctx: &Context,
    project: Authorized<ProjectId>,
    links: &mut [Link],
    now: Timestamp,
) -> crate::Result<()> {
    if links.is_empty() {
        return Ok(());
    }
    let known = stored_tickets(ctx, project, links.iter().map(|link| link.url.as_str()), now).await?;
    for link in links {
        let Some(Some(ticket)) = known.get(&link.url) else { continue };
        link.status_text = Some(ticket.word.to_owned());
        link.status_color = Some(ticket.color.to_owned());
        link.title = link.title.take().or_else(|| Some(ticket.title.clone()));
    }
    Ok(())
}

/// Reads how the issues and requests among some addresses stand, as far as it is not
/// stored already. Where the code host fails, what is stored stays.
///
/// # Errors
/// [`SourceControlError::NotConfigured`], [`SourceControlError::Query`].
pub async fn refresh_tickets(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    addresses: impl Iterator<Item = &str>,
    now: Timestamp,
) -> Result<(), SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let tickets: Vec<(TicketKind, u64)> =
        addresses.filter_map(|address| host.provider.ticket_of(&host.url, address)).take(MAX_ASKED).collect();
    for ticket in tickets {
        let mut entry: Entry<Option<Ticket>> =
            Entry::look_up(ctx, host.project, host.key(KIND, &ticket)?, now).await?;
        if entry.take_fresh().is_some() {
            continue;
        }
        match host.ask(ctx, now, |client| client.ticket(ticket.0, ticket.1)).await {
            Ok(found) => {
                entry.store(ctx, found, None, Freshness::TICKET, now).await?;
            }
            Err(SourceControlError::Upstream { error, .. }) => {
                tracing::info!(%error, "the state of a linked issue was not read");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
