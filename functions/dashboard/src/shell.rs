//! The frame around every page: rail, breadcrumbs, the way to everything else.

use callboard_auth::{Identity, Role};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_query::notifications::{self, MOST_UNREAD, Unread, Watched};
use callboard_query::projects::{self, MenuEntry};
use callboard_query::shapes::ProjectRef;

use crate::components::NotifyButton;
use crate::help::topic;
use crate::visit::Visit;

/// Projects the rail names.
const RECENT_PROJECTS: usize = 8;

/// Which entry of the rail the page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// Home.
    Home,
    /// All projects together.
    Analytics,
    /// The list of projects.
    Projects,
    /// Something inside the project with this id.
    Project(i64),
    /// Settings.
    Settings,
    /// One's own account.
    Account,
    /// Nothing the rail names.
    Elsewhere,
}

impl Section {
    /// Whether the page is inside of this project.
    pub(crate) fn is_project(self, id: &i64) -> bool {
        self == Self::Project(*id)
    }
}

/// One step of the way from the start to a page; the last one has no link.
#[derive(Debug, Clone)]
pub(crate) struct Crumb {
    /// Its name.
    pub label: String,
    /// Where it leads.
    pub href: Option<String>,
}

/// Who is signed in, as the rail names them.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    /// Name to sign in with.
    pub username: String,
    /// Role.
    pub role: Role,
}

impl Viewer {
    /// The person behind a caller; none while authentication is off.
    pub(crate) fn from_identity(identity: &Identity) -> Option<Self> {
        let account = identity.account()?;
        Some(Self { username: account.username.to_string(), role: account.role })
    }
}

/// The notifications of a person in the header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bell {
    /// How many are unread.
    pub unread: Unread,
    /// The event of the stream behind which more arrive.
    pub after: i64,
}

impl Bell {
    /// The number as it is shown.
    pub(crate) fn shown(self) -> String {
        if self.unread.count >= MOST_UNREAD {
            format!("{}+", MOST_UNREAD - 1)
        } else {
            self.unread.count.to_string()
        }
    }
}

/// What `templates/shell.html` needs.
#[derive(Debug)]
pub(crate) struct Shell {
    /// Title of the page, for the browser's tab.
    pub title: String,
    /// The entry of the rail that is lit.
    pub section: Section,
    /// The way here.
    pub crumbs: Vec<Crumb>,
    /// Recently active projects.
    pub recent: Vec<MenuEntry>,
    /// Who is signed in.
    pub viewer: Option<Viewer>,
    /// The notifications of that person.
    pub bell: Option<Bell>,
    /// Asks for notifications about what the page shows.
    pub notify: Option<NotifyButton>,
    /// Whether this is a read-only demo.
    pub is_demo: bool,
    /// The moment relative times count from.
    pub now: Timestamp,
    /// Where the documentation explains the page.
    pub help: &'static str,
    /// Whether everyone can do everything although there are accounts.
    pub is_open_despite_accounts: bool,
}

impl Shell {
    /// A frame around a page with this title.
    ///
    /// # Errors
    /// When the projects of the rail cannot be read.
    pub(crate) async fn new(
        visit: &Visit,
        section: Section,
        title: impl Into<String>,
    ) -> Result<Self, ApiError> {
        let recent = projects::menu(&visit.ctx, visit.scope(), None, RECENT_PROJECTS).await?.items;
        let viewer = Viewer::from_identity(&visit.caller);
        let bell = match visit.caller.user_id() {
            Some(user) => {
                let (unread, after) = notifications::bell(&visit.ctx, user, visit.scope()).await?;
                Some(Bell { unread, after })
            }
            None => None,
        };
        let is_open_despite_accounts = visit.is_open_despite_accounts;
        Ok(Self {
            recent,
            help: topic(&visit.address),
            bell,
            is_open_despite_accounts,
            ..Self::bare(viewer, visit.is_demo, visit.now, section, title)
        })
    }

    /// A frame around a page inside of a project; the way begins at the
    /// project.
    ///
    /// # Errors
    /// As [`Shell::new`].
    pub(crate) async fn in_project(
        visit: &Visit,
        project: &ProjectRef,
        title: &str,
    ) -> Result<Self, ApiError> {
        let title = format!("{title} · {}", project.shown());
        let shell = Self::new(visit, Section::Project(project.id), title).await?;
        Ok(shell.under("Projects", "/projects").under(project.shown(), format!("/projects/{}", project.id)))
    }

    /// A frame that asks the database nothing.
    pub(crate) fn bare(
        viewer: Option<Viewer>,
        is_demo: bool,
        now: Timestamp,
        section: Section,
        title: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            section,
            crumbs: Vec::new(),
            recent: Vec::new(),
            viewer,
            bell: None,
            notify: None,
            is_demo,
            now,
            help: "/help",
            is_open_despite_accounts: false,
        }
    }

    /// The project the page is inside of, where the rail knows its name.
    pub(crate) fn project_name(&self) -> Option<&str> {
        let entry = self.recent.iter().find(|entry| self.section.is_project(&entry.reference.id));
        entry.map(|entry| entry.reference.shown())
    }

    /// Offers notifications about what the page shows.
    ///
    /// # Errors
    /// When it cannot be read whether they are on.
    pub(crate) async fn offering(self, visit: &Visit, watched: Watched) -> Result<Self, ApiError> {
        Ok(Self { notify: NotifyButton::new(visit, watched).await?, ..self })
    }

    /// Adds a step that leads somewhere.
    #[must_use]
    pub(crate) fn under(mut self, label: impl Into<String>, href: impl Into<String>) -> Self {
        self.crumbs.push(Crumb { label: label.into(), href: Some(href.into()) });
        self
    }

    /// Adds the step that is this page.
    #[must_use]
    pub(crate) fn here(mut self, label: impl Into<String>) -> Self {
        self.crumbs.push(Crumb { label: label.into(), href: None });
        self
    }
}

/// The version in the rail's foot.
pub(crate) const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
