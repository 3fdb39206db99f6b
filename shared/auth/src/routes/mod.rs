//! The route table: the only source of who may call what. Handlers are
//! mounted by [`RouteId`], so a handler without a row does not compile; a row
//! without a handler fails a test. The rows are in `table.rs`.

mod table;

pub use table::{ROUTES, RouteId};

use callboard_domain::account::Role;

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Its name in code.
    pub id: RouteId,
    /// The method; a `Get` row also answers HEAD.
    pub method: Method,
    /// The path as axum writes it, e.g. `/api/test-runs/{id}`.
    pub pattern: &'static str,
    /// Who is admitted.
    pub access: Access,
    /// How the project that access is checked against is found.
    pub project: ProjectSource,
    /// Which credentials count.
    pub credentials: Credentials,
    /// Refused to API keys: a person has to be signed in.
    pub session_only: bool,
    /// Part of sending results: open to API keys that are narrowed to it.
    pub ingest: bool,
    /// Changes stored data; refused while the schema is behind this version.
    pub mutates: bool,
    /// How large a body may be.
    pub body_limit: BodyLimit,
    /// The class its calls are counted under before the handler runs. Calls
    /// that count by what their body says are counted by their handlers.
    pub rate: Option<RateClass>,
    /// Which pages of other origins may call it.
    pub origins: OriginRule,
}

impl Route {
    /// Whether it changes what only administrators change, or an account: what
    /// the audit log also keeps the failures of.
    #[must_use]
    pub fn administers(&self) -> bool {
        let Access::Roles(roles) = self.access else { return false };
        let is_own_account = self.project == ProjectSource::None && roles.contains(Role::User);
        self.mutates && (is_own_account || !roles.contains(Role::Reporter))
    }

    /// Whether demo mode serves it.
    #[must_use]
    pub fn is_open_in_demo(&self) -> bool {
        match self.id {
            // The registry of jobs limits what the schedule does; gates answer and keep nothing.
            RouteId::Tick | RouteId::GateRun => true,
            // The link of a mail proves an address, although browsers GET it.
            RouteId::VerifyEmail => false,
            _ => !self.mutates,
        }
    }
}

/// Methods in use. HEAD runs the GET row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Writes, or asks with a body.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Who is admitted to a route.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// Everyone; a bad credential is ignored.
    Public,
    /// Signed-in callers of these roles.
    Roles(Roles),
    /// The file grant in the path opens what it names.
    Grant,
    /// A token of the run opens it; the handler checks it against the run.
    RunToken,
    /// Signed-in callers of these roles, or a token of the run, which the handler checks.
    RolesOrRunToken(Roles),
    /// A token of the run in the body, beside which accounts do not count; without one, signed-in callers of these roles.
    /// The handler asks for either.
    BodyTokenOrRoles(Roles),
    /// The upload ticket in the path opens what it names.
    Ticket,
    /// The schedule, which signs its calls; the handler checks the signature.
    System,
}

/// A list of roles that is not empty. The field is private and [`Roles::new`]
/// refuses an empty list while compiling, so no route can forget its roles.
#[derive(Debug, Clone, Copy)]
pub struct Roles(&'static [Role]);

impl Roles {
    /// Administrators, reporters and users.
    pub const ALL: Self = Self::new(&[Role::Administrator, Role::Reporter, Role::User]);
    /// Administrators.
    pub const ADMINISTRATOR: Self = Self::new(&[Role::Administrator]);
    /// Those who send results and triage.
    pub const REPORTING: Self = Self::new(&[Role::Administrator, Role::Reporter]);

    /// A list of roles; an empty one does not compile in a constant.
    #[must_use]
    pub const fn new(roles: &'static [Role]) -> Self {
        assert!(!roles.is_empty(), "a route must list at least one role");
        Self(roles)
    }

    /// Whether a role is on the list.
    #[must_use]
    pub fn contains(self, role: Role) -> bool {
        self.0.contains(&role)
    }

    /// The roles.
    #[must_use]
    pub const fn as_slice(self) -> &'static [Role] {
        self.0
    }
}

impl Route {
    /// Whether an answer may tell what became of results, so that those which
    /// wait to be worked into their runs have to be in it.
    #[must_use]
    pub const fn tells_of_results(&self) -> bool {
        let is_instance_wide =
            matches!(self.id, RouteId::PublicBadge | RouteId::InstanceStats | RouteId::InstanceStorage);
        let brings_results = matches!(
            self.id,
            RouteId::SubmitRun
                | RouteId::UploadRun
                | RouteId::CheckTraces
                | RouteId::PlanUploads
                | RouteId::CommitUploads
                | RouteId::SetupRun
                | RouteId::StartRun
        );
        let is_of_projects = !matches!(self.project, ProjectSource::None);
        (is_of_projects || is_instance_wide) && !brings_results && !matches!(self.access, Access::RunToken)
    }
}

/// How a request names the project whose scope is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectSource {
    /// Instance-wide: there is no project.
    None,
    /// `{id}` is a project id.
    FromPath,
    /// `{id}` or the path names an entity that belongs to one project.
    FromEntity(Entity),
    /// The first of these body fields that is present names it.
    FromBody(&'static [&'static str]),
    /// A list: the scope is part of the SQL.
    Listed,
}

/// Entities that belong to exactly one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entity {
    /// A test run.
    Run,
    /// A test case.
    TestCase,
    /// An execution.
    Execution,
    /// A stored file.
    File,
    /// A failure cluster.
    Cluster,
    /// A suggestion that two failure clusters are one.
    ClusterSuggestion,
    /// A policy of gates.
    GatePolicy,
    /// A link.
    Link,
    /// A marker.
    Marker,
    /// A function of a suite.
    TestFunction,
    /// An export that is made later.
    Export,
    /// A diagnosis of a failure cluster.
    Diagnosis,
}

/// Which credentials a route looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// API key headers or the session cookie.
    Any,
    /// API key headers only.
    HeaderOnly,
}

/// How large a request body may be. Inflated bytes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLimit {
    /// A number of bytes that is part of the contract.
    Fixed(u64),
    /// `SERVICE_INGEST_MAX_SUBMIT_BYTES`.
    Submit,
    /// `SERVICE_UPLOAD_MAX_BYTES`.
    Upload,
    /// `SERVICE_INGEST_MAX_EVENTS_BYTES`.
    Events,
}

/// Classes of calls that share a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateClass {
    /// Messages to the MCP endpoint.
    Mcp,
}

/// Which origins may send unsafe requests from a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginRule {
    /// The service's own and the configured ones.
    Site,
    /// The MCP endpoint's list: also loopback pages, which is where agents run.
    Mcp,
}

const KIB: u64 = 1024;

/// Rows start as a read for all roles and say what differs.
const fn get(pattern: &'static str) -> Row {
    Row {
        method: Method::Get,
        pattern,
        access: Access::Roles(Roles::ALL),
        project: ProjectSource::None,
        credentials: Credentials::Any,
        session_only: false,
        ingest: false,
        mutates: false,
        body_limit: BodyLimit::Fixed(1024 * KIB),
        rate: None,
        origins: OriginRule::Site,
    }
}

/// A POST that changes stored data.
const fn post(pattern: &'static str) -> Row {
    Row { method: Method::Post, mutates: true, ..get(pattern) }
}

/// A PUT that replaces stored data.
const fn put(pattern: &'static str) -> Row {
    Row { method: Method::Put, mutates: true, ..get(pattern) }
}

/// A PATCH that changes stored data.
const fn patch(pattern: &'static str) -> Row {
    Row { method: Method::Patch, mutates: true, ..get(pattern) }
}

/// A DELETE that removes stored data.
const fn delete(pattern: &'static str) -> Row {
    Row { method: Method::Delete, mutates: true, ..get(pattern) }
}

/// A row before it has its id.
#[derive(Clone, Copy)]
struct Row {
    method: Method,
    pattern: &'static str,
    access: Access,
    project: ProjectSource,
    credentials: Credentials,
    session_only: bool,
    ingest: bool,
    mutates: bool,
    body_limit: BodyLimit,
    rate: Option<RateClass>,
    origins: OriginRule,
}

impl Row {
    const fn public(mut self) -> Self {
        self.access = Access::Public;
        self
    }

    const fn reporting(mut self) -> Self {
        self.access = Access::Roles(Roles::REPORTING);
        self
    }

    const fn administrator(mut self) -> Self {
        self.access = Access::Roles(Roles::ADMINISTRATOR);
        self
    }

    const fn session_only(mut self) -> Self {
        self.session_only = true;
        self
    }

    const fn ingest(mut self) -> Self {
        self.ingest = true;
        self
    }

    const fn or_run_token(mut self) -> Self {
        self.access = Access::RolesOrRunToken(Roles::ALL);
        self.entity(Entity::Run)
    }

    const fn body_token_or_reporting(mut self) -> Self {
        self.access = Access::BodyTokenOrRoles(Roles::REPORTING);
        self
    }

    const fn ticket(mut self) -> Self {
        self.access = Access::Ticket;
        self
    }

    const fn run_token(mut self) -> Self {
        self.access = Access::RunToken;
        self.entity(Entity::Run)
    }

    const fn grant(mut self) -> Self {
        self.access = Access::Grant;
        self
    }

    const fn system(mut self) -> Self {
        self.access = Access::System;
        self
    }

    const fn project(mut self, project: ProjectSource) -> Self {
        self.project = project;
        self
    }

    const fn entity(self, entity: Entity) -> Self {
        self.project(ProjectSource::FromEntity(entity))
    }

    const fn in_project(self) -> Self {
        self.project(ProjectSource::FromPath)
    }

    const fn listed(self) -> Self {
        self.project(ProjectSource::Listed)
    }

    const fn body(mut self, limit: BodyLimit) -> Self {
        self.body_limit = limit;
        self
    }

    const fn changes_nothing(mut self) -> Self {
        self.mutates = false;
        self
    }

    const fn rate(mut self, class: RateClass) -> Self {
        self.rate = Some(class);
        self
    }

    const fn mcp(mut self) -> Self {
        self.credentials = Credentials::HeaderOnly;
        self.origins = OriginRule::Mcp;
        self
    }

    const fn named(self, id: RouteId) -> Route {
        Route {
            id,
            method: self.method,
            pattern: self.pattern,
            access: self.access,
            project: self.project,
            credentials: self.credentials,
            session_only: self.session_only,
            ingest: self.ingest,
            mutates: self.mutates,
            body_limit: self.body_limit,
            rate: self.rate,
            origins: self.origins,
        }
    }
}
