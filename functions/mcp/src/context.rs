//! What one HTTP request to the endpoint is answered with: who asks, the
//! store, and how the connection was narrowed.

use callboard_auth::scope::Authorized;
use callboard_auth::{Identity, LinkHolder, Role, Scope};
use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_http::{AppState, Site};
use callboard_query::{Entity, resolve};

use crate::error::ToolError;
use crate::tool::{Group, Tool};

/// Everything a method or tool can reach.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The store and the links of answers.
    pub query: callboard_query::Context,
    /// Configuration, clock, grants.
    pub state: AppState,
    /// The address the client uses.
    pub site: Site,
    /// How this connection was narrowed.
    pub narrowing: Narrowing,
    identity: Identity,
}

impl Context {
    /// The context of one request.
    pub(crate) fn new(state: AppState, site: Site, identity: Identity, narrowing: Narrowing) -> Self {
        Self { query: state.context(&site), state, site, narrowing, identity }
    }

    /// The projects the caller sees.
    pub(crate) const fn scope(&self) -> &Scope {
        self.identity.scope()
    }

    /// Whom file links are made for.
    pub(crate) fn link_holder(&self) -> Option<LinkHolder> {
        self.identity.link_holder()
    }

    /// The caller's role.
    pub(crate) fn role(&self) -> Option<Role> {
        self.identity.role()
    }

    /// Proof that a project exists and is in scope.
    ///
    /// # Errors
    /// [`ToolError::NotFound`], then [`ToolError::NoAccess`].
    pub(crate) async fn project(&self, id: ProjectId) -> Result<Authorized<ProjectId>, ToolError> {
        let project = resolve::project(&self.query, self.scope(), id).await;
        project.map_err(|error| ToolError::about(Entity::Project, id, error))
    }

    /// The project of a run.
    ///
    /// # Errors
    /// [`ToolError::NotFound`], then [`ToolError::NoAccess`].
    pub(crate) async fn run(&self, id: RunId) -> Result<Authorized<ProjectId>, ToolError> {
        let project = resolve::run(&self.query, self.scope(), id).await;
        project.map_err(|error| ToolError::about(Entity::Run, id, error))
    }

    /// The project of a test case.
    ///
    /// # Errors
    /// [`ToolError::NotFound`], then [`ToolError::NoAccess`].
    pub(crate) async fn test_case(&self, id: TestCaseId) -> Result<Authorized<ProjectId>, ToolError> {
        let project = resolve::test_case(&self.query, self.scope(), id).await;
        project.map_err(|error| ToolError::about(Entity::TestCase, id, error))
    }

    /// The project of an execution's run.
    ///
    /// # Errors
    /// [`ToolError::NotFound`], then [`ToolError::NoAccess`].
    pub(crate) async fn execution(&self, id: ExecutionId) -> Result<Authorized<ProjectId>, ToolError> {
        let project = resolve::execution(&self.query, self.scope(), id).await;
        project.map_err(|error| ToolError::about(Entity::Execution, id, error))
    }
}

/// How a connection was narrowed by the query string of its address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// Toolsets that are listed; none named means all.
    pub groups: Vec<Group>,
    /// Only tools that read.
    pub is_read_only: bool,
}

impl Narrowing {
    /// Reads `?toolsets=projects,runs&readonly=1`; what it does not know is
    /// ignored.
    pub(crate) fn parse(query: &str) -> Self {
        let mut narrowing = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let value = value.replace("%2C", ",").replace("%2c", ",");
            match name {
                "toolsets" => narrowing.groups.extend(
                    value
                        .split(',')
                        .filter_map(|word| Group::ALL.into_iter().find(|group| group.word() == word)),
                ),
                "readonly" => narrowing.is_read_only = matches!(value.as_str(), "1" | "true"),
                _ => {}
            }
        }
        narrowing
    }

    /// Whether every tool is listed.
    pub(crate) const fn is_whole(&self) -> bool {
        self.groups.is_empty() && !self.is_read_only
    }

    /// Whether a tool is listed.
    pub(crate) fn lists(&self, tool: &Tool) -> bool {
        (self.groups.is_empty() || self.groups.contains(&tool.group))
            && (!self.is_read_only || tool.hints.read_only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_narrow_nothing() {
        let groups = |query: &str| Narrowing::parse(query).groups;
        assert_eq!(groups("toolsets=runs,nonsense"), [Group::Runs]);
        assert_eq!(groups("a=b&toolsets=projects%2Cruns"), [Group::Projects, Group::Runs]);
        for query in ["", "toolsets=", "toolsets=nonsense", "toolset=runs", "readonly=0"] {
            assert!(Narrowing::parse(query).is_whole(), "{query}");
        }
        assert!(Narrowing::parse("readonly=1").is_read_only);
    }
}
