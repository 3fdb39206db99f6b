//! Links to what people know outside: tickets, pull requests, conversations.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_http::{ApiError, AppState};
use callboard_query::links::{self, Hook, Link};
use callboard_query::scm::{self, SourceControlError};

use crate::filters;
use crate::visit::Visit;

/// Links the panel shows; REST lists the rest.
const SHOWN: usize = 50;
/// What an address holds that asks for the states of links.
const ASKED: &str = "links=show";

/// A link as it reads.
struct Row {
    id: i64,
    url: String,
    name: String,
    place: &'static str,
    /// How the issue or request stands, with the class of its colour.
    state: Option<(String, String)>,
    by: Option<String>,
}

impl Row {
    fn from_link(link: Link) -> Self {
        let bare = link.url.split_once("://").map_or(link.url.as_str(), |(_, rest)| rest);
        let name = link.title.or(link.key).unwrap_or_else(|| bare.trim_end_matches('/').to_owned());
        Self {
            id: link.id,
            name,
            url: link.url,
            place: place(link.provider),
            state: link
                .status_text
                .zip(link.status_color)
                .map(|(word, color)| (word, format!("tag tag-{color}"))),
            by: link.created_by.map(|user| user.username),
        }
    }
}

/// Where a link leads, as people call it.
fn place(provider: &str) -> &'static str {
    match provider {
        "jira" => "Jira",
        "github-issue" => "GitHub issue",
        "github-pr" => "GitHub pull request",
        "gitlab-issue" => "GitLab issue",
        "gitlab-mr" => "GitLab merge request",
        "bitbucket" => "Bitbucket",
        "confluence" => "Confluence",
        "slack" => "Slack",
        "linear" => "Linear",
        "notion" => "Notion",
        _ => "",
    }
}

/// Inputs of `components/link_panel.html`.
#[derive(Template)]
#[template(path = "components/link_panel.html")]
pub(crate) struct LinkPanel {
    rows: Vec<Row>,
    hook: Hook,
    may_edit: bool,
    /// Where the states are read anew; `None` once they were, and where none can be.
    later: Option<String>,
}

impl HtmlSafe for LinkPanel {}

impl LinkPanel {
    /// The links of something in a project. Only what a page asks for after it is
    /// shown asks the code host how they stand.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) async fn load(
        visit: &Visit,
        state: &AppState,
        project: Authorized<ProjectId>,
        hook: Hook,
    ) -> Result<Self, ApiError> {
        let mut found = links::list(&visit.ctx, project, hook, None, SHOWN).await?;
        let addresses: Vec<String> = found.items.iter().map(|link| link.url.clone()).collect();
        let addresses = || addresses.iter().map(String::as_str);
        let is_asked = visit.address.whole().contains(ASKED);
        let mut later = None;
        if !found.items.is_empty() && scm::has_repository(&visit.ctx, project).await? {
            let tickets = scm::stored_tickets(&visit.ctx, project, addresses(), visit.now).await?;
            if !tickets.is_empty() && !is_asked {
                later = Some(visit.address.with("links", "show"));
            } else if !tickets.is_empty() {
                let access = state.source_control();
                let read = scm::refresh_tickets(&visit.ctx, &access, project, addresses(), visit.now).await;
                if let Err(SourceControlError::Query(error)) = read {
                    return Err(error.into());
                }
            }
            scm::add_states(&visit.ctx, project, &mut found.items, visit.now).await?;
        }
        let rows = found.items.into_iter().map(Row::from_link).collect();
        Ok(Self { rows, hook, may_edit: visit.caller.may_triage(), later })
    }

    /// Whether states of links are asked for after the page is shown.
    pub(crate) fn may_change(&self) -> bool {
        self.later.is_some()
    }

    /// Whether there is nothing to show, to whoever looks.
    pub(crate) fn is_hidden(&self) -> bool {
        self.rows.is_empty() && !self.may_edit
    }
}
