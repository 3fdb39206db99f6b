//! The rows. A route exists when it stands here; reading order is the order
//! of the REST contract.

use super::{BodyLimit, Entity, KIB, ProjectSource, RateClass, Route, Row, get, post};

/// Writes the enum and the table from one list, so they cannot disagree.
macro_rules! routes {
    ($($(#[$doc:meta])+ $id:ident => $row:expr;)+) => {
        /// The name of a route; one per row of [`ROUTES`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RouteId {
            $($(#[$doc])+ $id,)+
        }

        /// Every route of the service.
        pub const ROUTES: &[Route] = &[$({
            const ROW: Row = $row;
            ROW.named(RouteId::$id)
        },)+];

        impl RouteId {
            /// The name as documents and logs write it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$id => stringify!($id),)+
                }
            }
        }
    };
}

impl RouteId {
    /// The row of this route.
    #[must_use]
    pub const fn route(self) -> &'static Route {
        &ROUTES[self as usize]
    }
}

/// Account routes carry a name and a password.
const ACCOUNT_BODY: BodyLimit = BodyLimit::Fixed(16 * KIB);

routes! {
    /// Whether the service and what it needs are reachable.
    Health => get("/api/health").public();
    /// Versions of service and API.
    Version => get("/api/version").public();
    /// The OpenAPI document.
    OpenApi => get("/api/openapi.json");
    /// The interactive API reference.
    DocsPage => get("/docs").public();
    /// Scripts and styles of the API reference.
    DocsAsset => get("/docs/{*path}").public();

    /// Starts a session.
    Login => post("/api/auth/login").public().body(ACCOUNT_BODY).changes_nothing().rate(RateClass::Login);
    /// Ends a session.
    Logout => post("/api/auth/logout").public().body(ACCOUNT_BODY).changes_nothing();
    /// Who the caller is.
    Me => get("/api/auth/me").public();

    /// Stores a run sent as one JSON document.
    SubmitRun => post("/api/test-runs/submit").reporting().body(BodyLimit::Submit)
        .project(ProjectSource::FromBody(&["projectName"]));
    /// Stores a run with files, or files of a run.
    UploadRun => post("/api/test-runs/upload").reporting().body(BodyLimit::Upload)
        .project(ProjectSource::FromBody(&["testRunId", "projectName"]));

    /// Projects, newest activity first.
    ListProjects => get("/api/projects").listed();
    /// Projects as the sidebar shows them.
    ProjectMenu => get("/api/projects/menu").listed();
    /// Projects with their recent runs.
    ProjectOverview => get("/api/projects/overview").listed();
    /// One project.
    GetProject => get("/api/projects/{id}").in_project();
    /// Runs of a project.
    ProjectRuns => get("/api/projects/{id}/test-runs").in_project();
    /// Values to filter a project by.
    ProjectFacets => get("/api/projects/{id}/facets").in_project();
    /// The newest run that matches.
    ProjectLatestRun => get("/api/projects/{id}/latest-run").in_project();
    /// The test catalogue of a project.
    ProjectTestCases => get("/api/projects/{id}/test-cases").in_project();

    /// Runs across projects.
    ListRuns => get("/api/test-runs").listed();
    /// Active and recently finished runs.
    RecentRuns => get("/api/test-runs/recent").listed();
    /// One run.
    GetRun => get("/api/test-runs/{id}").of(Entity::Run);
    /// Executions of a run.
    RunExecutions => get("/api/test-runs/{id}/executions").of(Entity::Run);
    /// A run in the light form for scripts.
    RunSummary => get("/api/test-runs/{id}/summary").of(Entity::Run);
    /// Reports of a run.
    RunReports => get("/api/test-runs/{id}/reports").of(Entity::Run);

    /// One test case.
    GetTestCase => get("/api/test-cases/{id}").of(Entity::TestCase);
    /// Executions of a test case.
    TestCaseHistory => get("/api/test-cases/{id}/history").of(Entity::TestCase);
    /// A test case's outcomes over time.
    TestCaseStability => get("/api/test-cases/{id}/stability-trend").of(Entity::TestCase);
    /// One execution.
    GetExecution => get("/api/test-run-cases/{id}").of(Entity::Execution);
    /// Traces of an execution.
    ExecutionTraces => get("/api/test-run-cases/{id}/traces").of(Entity::Execution);
    /// Files of an execution.
    ExecutionFiles => get("/api/test-run-cases/{id}/files").of(Entity::Execution);

    /// Bytes of a stored file, by id or by stored name.
    GetFile => get("/api/files/{*path}").of(Entity::File);
    /// Bytes below a file grant.
    GrantedFile => get("/f/{grant}/{*path}").grant();

    /// One or more JSON-RPC messages.
    McpMessages => post("/mcp").listed().changes_nothing().rate(RateClass::Mcp).mcp();
    /// How to connect an agent.
    McpPage => get("/mcp").public().mcp();

    /// What is red, what is running.
    HomePage => get("/").listed();
    /// All projects.
    ProjectsPage => get("/projects").listed();
    /// One project.
    ProjectPage => get("/projects/{id}").in_project();
    /// One run.
    RunPage => get("/test-runs/{id}").of(Entity::Run);
    /// One test case.
    TestCasePage => get("/test-cases/{id}").of(Entity::TestCase);
    /// One execution.
    ExecutionPage => get("/test-run-cases/{id}").of(Entity::Execution);
    /// What is configured.
    SettingsPage => get("/settings");
    /// Styles, scripts and images of the pages.
    StaticAsset => get("/static/{*path}").public();
}

// The table is indexed by id and every pattern is absolute; both are settled
// while compiling.
const _: () = {
    let mut at = 0;
    while at < ROUTES.len() {
        assert!(ROUTES[at].id as usize == at, "rows must stand in the order of their ids");
        assert!(ROUTES[at].pattern.as_bytes()[0] == b'/', "patterns are absolute");
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::routes::{Access, Method};

    #[test]
    fn no_two_rows_answer_the_same_request() {
        let keys: BTreeSet<_> = ROUTES.iter().map(|route| (route.pattern, route.method.as_str())).collect();
        assert_eq!(keys.len(), ROUTES.len());
    }

    #[test]
    fn reads_change_nothing() {
        assert!(ROUTES.iter().all(|route| route.method != Method::Get || !route.mutates));
    }

    #[test]
    fn only_the_listed_routes_are_open_without_an_account() {
        let open: Vec<_> = ROUTES
            .iter()
            .filter(|route| matches!(route.access, Access::Public))
            .map(|route| format!("{} {}", route.method.as_str(), route.pattern))
            .collect();
        assert_eq!(
            open,
            [
                "GET /api/health",
                "GET /api/version",
                "GET /docs",
                "GET /docs/{*path}",
                "POST /api/auth/login",
                "POST /api/auth/logout",
                "GET /api/auth/me",
                "GET /mcp",
                "GET /static/{*path}",
            ]
        );
    }
}
