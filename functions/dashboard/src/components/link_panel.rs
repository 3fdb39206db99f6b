//! Links to what people know outside: tickets, pull requests, conversations.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_query::links::{self, Hook, Link};

use crate::filters;
use crate::visit::Visit;

/// Links the panel shows; REST lists the rest.
const SHOWN: usize = 50;

/// A link as it reads.
struct Row {
    id: i64,
    url: String,
    name: String,
    place: &'static str,
    by: Option<String>,
}

impl Row {
    fn of(link: Link) -> Self {
        let bare = link.url.split_once("://").map_or(link.url.as_str(), |(_, rest)| rest);
        let name = link.title.or(link.key).unwrap_or_else(|| bare.trim_end_matches('/').to_owned());
        Self {
            id: link.id,
            name,
            url: link.url,
            place: place(link.provider),
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
}

impl HtmlSafe for LinkPanel {}

impl LinkPanel {
    /// The links of something in a project.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) async fn of(
        visit: &Visit,
        project: Authorized<ProjectId>,
        hook: Hook,
    ) -> Result<Self, ApiError> {
        let found = links::list(&visit.ctx, project, hook, None, SHOWN).await?;
        let rows = found.items.into_iter().map(Row::of).collect();
        Ok(Self { rows, hook, may_edit: visit.caller.may_triage() })
    }

    /// Whether there is nothing to show, to whoever looks.
    pub(crate) fn is_hidden(&self) -> bool {
        self.rows.is_empty() && !self.may_edit
    }
}
