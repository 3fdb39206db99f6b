//! What one HTTP request to the endpoint is answered with: who asks, the
//! store, and how the connection was narrowed.

use callboard_auth::client_address::ClientAddress;
use callboard_auth::scope::Authorized;
use callboard_auth::{Identity, LinkHolder, Role, Scope};
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_http::{AppState, Site};
use callboard_query::accounts::acting::Acting;
use callboard_query::diagnoses::{DiagnosisError, NotConfigured};
use callboard_query::scm::SourceControlError;
use callboard_query::{Entity, resolve};
use callboard_store::{BUILD_TOO_OLD, SchemaState};

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
    /// Where the request came from, when that is known.
    pub address: Option<ClientAddress>,
    identity: Identity,
}

impl Context {
    /// The context of one request.
    pub(crate) fn new(state: AppState, site: Site, identity: Identity, narrowing: Narrowing) -> Self {
        Self { query: state.context(&site), state, site, narrowing, address: None, identity }
    }

    /// The same, from an address.
    pub(crate) fn calling_from(self, address: Option<ClientAddress>) -> Self {
        Self { address, ..self }
    }

    /// Who asks.
    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
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

    /// Checks what every write needs besides a role: a service that is no demo,
    /// a key that may write, and a database that is not waiting for a migration.
    ///
    /// # Errors
    /// [`ToolError::Demo`], [`ToolError::KeyReads`], [`ToolError::Refused`].
    pub(crate) async fn may_write(&self) -> Result<(), ToolError> {
        if self.state.config().demo {
            return Err(ToolError::Demo);
        }
        if !self.identity.may_triage() {
            return Err(ToolError::KeyReads);
        }
        if !self.state.schema_is_current().await.map_err(ToolError::fault)? {
            let problem = match self.state.store().schema_state().await.map_err(ToolError::fault)? {
                SchemaState::TooNew => BUILD_TOO_OLD,
                SchemaState::Behind | SchemaState::Current => {
                    "The database waits for a migration; nothing can be written until then."
                }
            };
            return Err(ToolError::Refused(problem.to_owned()));
        }
        Ok(())
    }

    /// Who does something with a tool, for commands that note it in the audit
    /// log: once, as a write of the tool.
    ///
    /// # Errors
    /// [`ToolError::Fault`].
    pub(crate) async fn acting(&self, tool: &'static str) -> Result<Acting<'_>, ToolError> {
        let address_hash = match &self.address {
            Some(address) => {
                let names = self.state.counter_names().await.map_err(ToolError::fault)?;
                Some(names.address(address))
            }
            None => None,
        };
        let acting = Acting::directly(&self.identity, address_hash, self.state.now());
        Ok(Acting { tool: Some(tool), ..acting })
    }

    /// The error of a tool that could not read the repository of a project.
    pub(crate) fn no_source_control(&self, project: ProjectId, error: SourceControlError) -> ToolError {
        match error {
            SourceControlError::NotConfigured(missing) => ToolError::NotConfigured {
                what: format!("Source control is not configured for project {project}. {missing}"),
                page: self.query.links.source_control(),
            },
            SourceControlError::Upstream { error, .. } => {
                ToolError::Upstream { what: error.to_string(), page: self.query.links.source_control() }
            }
            SourceControlError::Query(error) => error.into(),
        }
    }

    /// The error of a tool that could not ask the model.
    pub(crate) fn no_model(&self, error: DiagnosisError) -> ToolError {
        let page = self.query.links.diagnosis_settings();
        match error {
            DiagnosisError::NotConfigured(NotConfigured::Model) => {
                ToolError::NotConfigured { what: "A model for diagnoses is not configured.".to_owned(), page }
            }
            DiagnosisError::NotConfigured(missing) => {
                ToolError::NotConfigured { what: missing.to_string(), page }
            }
            DiagnosisError::Upstream(error) => ToolError::Upstream { what: error.to_string(), page },
            DiagnosisError::Query(error) => error.into(),
        }
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

    /// The test for which the results of a test count, with its project: itself, unless its
    /// history was joined with that of another.
    ///
    /// # Errors
    /// [`ToolError::NotFound`], then [`ToolError::NoAccess`].
    pub(crate) async fn kept_test(
        &self,
        id: TestCaseId,
    ) -> Result<(Authorized<ProjectId>, TestCaseId), ToolError> {
        let project = self.test_case(id).await?;
        Ok((project, resolve::kept_test(&self.query, project, id).await?))
    }

    /// The project of a failure cluster.
    ///
    /// # Errors
    /// [`ToolError::NotFound`], then [`ToolError::NoAccess`].
    pub(crate) async fn cluster(&self, id: ClusterId) -> Result<Authorized<ProjectId>, ToolError> {
        let project = resolve::cluster(&self.query, self.scope(), id).await;
        project.map_err(|error| ToolError::about(Entity::Cluster, id, error))
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

/// How a connection was changed by the query string of its address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// Toolsets that are listed; none named means all.
    pub groups: Vec<Group>,
    /// Only tools that read.
    pub is_read_only: bool,
    /// Results also as structured content, and their schemas in the list.
    pub is_structured: bool,
}

impl Narrowing {
    /// Reads `?toolsets=projects,runs&readonly=1&structured=1`; what it does not know is
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
                "structured" => narrowing.is_structured = matches!(value.as_str(), "1" | "true"),
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
