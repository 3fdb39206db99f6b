//! The rows. A route exists when it stands here; reading order is the order
//! of the REST contract.

use super::{BodyLimit, Entity, KIB, ProjectSource, RateClass, Route, Row, delete, get, patch, post, put};

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
    /// Which features are in use.
    FeatureStatus => get("/api/setup-status").administrator();
    /// The OpenAPI document.
    OpenApi => get("/api/openapi.json");
    /// The interactive API reference.
    DocsPage => get("/docs").public();
    /// Scripts and styles of the API reference.
    DocsAsset => get("/docs/{*path}").public();

    /// Starts a session.
    Login => post("/api/auth/login").public().body(ACCOUNT_BODY).changes_nothing();
    /// Ends a session.
    Logout => post("/api/auth/logout").public().body(ACCOUNT_BODY).changes_nothing();
    /// Who the caller is.
    Me => get("/api/auth/me").public();
    /// Whether the first administrator is still to be created.
    SetupStatus => get("/api/auth/setup").public();
    /// Creates the first administrator.
    Setup => post("/api/auth/setup").public().body(ACCOUNT_BODY);
    /// Changes one's own password.
    ChangePassword => post("/api/auth/change-password").session_only().body(ACCOUNT_BODY);
    /// Asks for a mail to set a new password.
    ForgotPassword => post("/api/auth/forgot-password").public().body(ACCOUNT_BODY);
    /// Sets a password with what a mail brought.
    ResetPassword => post("/api/auth/reset-password").public().body(ACCOUNT_BODY);
    /// Asks for a mail that proves one's address.
    SendVerifyEmail => post("/api/auth/send-verify-email").session_only().body(ACCOUNT_BODY);
    /// Proves an address with what a mail brought.
    VerifyEmail => get("/api/auth/verify-email").public();
    /// Begins to sign in at a provider, or to link an account there.
    OauthLogin => get("/api/auth/oauth/{provider}/login").public();
    /// Ends what a provider was asked for.
    OauthCallback => get("/api/auth/oauth/{provider}/callback").public();
    /// Unlinks the account at a provider.
    OauthUnlink => post("/api/auth/oauth/{provider}/unlink").session_only().body(ACCOUNT_BODY);

    /// Accounts.
    ListUsers => get("/api/users");
    /// Creates an account.
    CreateUser => post("/api/users").administrator().body(ACCOUNT_BODY);
    /// One account.
    GetUser => get("/api/users/{id}");
    /// Changes an account.
    EditUser => patch("/api/users/{id}").body(ACCOUNT_BODY);
    /// Changes an account, as `PATCH` does.
    PutUser => put("/api/users/{id}").body(ACCOUNT_BODY);
    /// Removes an account.
    DeleteUser => delete("/api/users/{id}").administrator();
    /// The projects of an account.
    UserProjects => get("/api/users/{id}/projects").administrator();
    /// Assigns projects to an account.
    SetUserProjects => put("/api/users/{id}/projects").administrator();
    /// API keys of an account.
    ListApiKeys => get("/api/users/{id}/api-keys");
    /// Creates an API key.
    CreateApiKey => post("/api/users/{id}/api-keys").body(ACCOUNT_BODY);
    /// Revokes an API key.
    RevokeApiKey => delete("/api/users/{id}/api-keys/{keyId}");
    /// Sessions of an account.
    ListSessions => get("/api/users/{id}/sessions");
    /// Ends a session.
    EndSession => delete("/api/users/{id}/sessions/{sessionId}");
    /// Ends every session of an account.
    SignOutUser => post("/api/users/{id}/sign-out").body(ACCOUNT_BODY);
    /// Invites the person of an account that exists.
    InviteUser => post("/api/users/{id}/invite").administrator().body(ACCOUNT_BODY);
    /// Who reaches a project.
    ProjectMembers => get("/api/projects/{id}/members").administrator().in_project();
    /// Assigns a project to accounts.
    SetProjectMembers => put("/api/projects/{id}/members").administrator().in_project();
    /// Invitations.
    ListInvitations => get("/api/invitations").administrator();
    /// Invites somebody.
    CreateInvitation => post("/api/invitations").administrator().body(ACCOUNT_BODY);
    /// Takes an invitation back.
    RevokeInvitation => delete("/api/invitations/{id}").administrator();
    /// Sends an invitation again.
    ResendInvitation => post("/api/invitations/{id}/resend").administrator().body(ACCOUNT_BODY);
    /// What was done by whom.
    ListAudit => get("/api/audit").administrator();

    /// Stores a run sent as one JSON document.
    SubmitRun => post("/api/test-runs/submit").reporting().ingest().body(BodyLimit::Submit)
        .project(ProjectSource::FromBody(&["projectName"]));
    /// Stores a run with files, or files of a run.
    UploadRun => post("/api/test-runs/upload").reporting().ingest().body(BodyLimit::Upload)
        .project(ProjectSource::FromBody(&["testRunId", "projectName"]));

    /// Which traces of a project are stored.
    CheckTraces => post("/api/traces/check").reporting().ingest().body(BodyLimit::Fixed(16 * 1024 * KIB))
        .listed().changes_nothing();

    /// Tickets for files that are sent one by one.
    PlanUploads => post("/api/uploads/plan").body_token_or_reporting().ingest()
        .body(BodyLimit::Fixed(16 * 1024 * KIB)).project(ProjectSource::FromBody(&["runId", "projectName"]));
    /// The bytes of one planned file.
    ReceiveUpload => put("/api/uploads/{ticket}").ticket().body(BodyLimit::Upload);
    /// Files that were sent become those of a run.
    CommitUploads => post("/api/uploads/commit").body_token_or_reporting().ingest()
        .body(BodyLimit::Fixed(16 * 1024 * KIB)).project(ProjectSource::FromBody(&["runId", "projectName"]));

    /// Code for a step that is written in words.
    StepResolution => post("/api/ai/step-resolution").reporting().changes_nothing();

    /// Registers a run before its global set-up.
    SetupRun => post("/api/test-runs/setup").reporting().ingest().body(BodyLimit::Fixed(16 * 1024 * KIB))
        .project(ProjectSource::FromBody(&["projectName"]));
    /// Opens a run that results are sent to while it goes on.
    StartRun => post("/api/test-runs/start").reporting().ingest().body(BodyLimit::Fixed(16 * 1024 * KIB))
        .project(ProjectSource::FromBody(&["projectName"]));
    /// The set-up is over, the tests begin.
    BeginRun => post("/api/test-runs/{id}/begin").run_token().body(BodyLimit::Fixed(16 * 1024 * KIB));
    /// What happened to the tests of a run.
    RunEvents => post("/api/test-runs/{id}/events").run_token().body(BodyLimit::Events);
    /// A sign of life.
    RunHeartbeat => post("/api/test-runs/{id}/heartbeat").run_token().body(BodyLimit::Fixed(16 * 1024 * KIB));
    /// Files of a test of a run that goes on.
    CaseFiles => post("/api/test-runs/{id}/case-files").run_token().body(BodyLimit::Upload);
    /// A client of a run is done.
    FinishRun => post("/api/test-runs/{id}/finish").run_token().body(BodyLimit::Fixed(16 * 1024 * KIB));
    /// What happens to a run, as it happens.
    RunStream => get("/api/test-runs/{id}/stream").or_run_token();
    /// What happens to all runs, as it happens.
    GlobalStream => get("/api/stream").listed();

    /// Projects, newest activity first.
    ListProjects => get("/api/projects").listed();
    /// Projects as the sidebar shows them.
    ProjectMenu => get("/api/projects/menu").listed();
    /// Anything, by its words.
    Search => get("/api/search").listed();
    /// Projects with their recent runs.
    ProjectOverview => get("/api/projects/overview").listed();
    /// Creates a project.
    CreateProject => post("/api/projects").administrator();
    /// Changes a project.
    EditProject => patch("/api/projects/{id}").administrator().in_project();
    /// Changes a project, as `PATCH` does.
    PutProject => put("/api/projects/{id}").administrator().in_project();
    /// Deletes a project.
    DeleteProject => delete("/api/projects/{id}").administrator().in_project();
    /// One project.
    GetProject => get("/api/projects/{id}").in_project();
    /// Runs of a project.
    ProjectRuns => get("/api/projects/{id}/test-runs").in_project();
    /// Values to filter a project by.
    ProjectFacets => get("/api/projects/{id}/facets").in_project();
    /// One word about a project, as a picture.
    ProjectBadge => get("/api/projects/{id}/badge.svg").in_project();
    /// One word about a project, for those who draw it.
    ProjectBadgeWords => get("/api/projects/{id}/badge.json").in_project();
    /// Makes the badge of a project visible to whoever has its address.
    CreateBadgeToken => post("/api/projects/{id}/badge-token").administrator().in_project();
    /// Takes that back.
    RevokeBadgeToken => delete("/api/projects/{id}/badge-token").administrator().in_project();
    /// One word about a project, for whoever has its address.
    PublicBadge => get("/badge/{file}").public();
    /// Commits of a project's repository.
    ProjectCommits => get("/api/projects/{id}/commits").in_project();
    /// What a commit of a project's repository changed.
    CommitDiff => get("/api/projects/{id}/commits/{sha}/diff").in_project();
    /// Commits before a failure cluster, and which of them may have caused it.
    ClusterCommits => get("/api/failure-clusters/{id}/commits").entity(Entity::Cluster);
    /// Branches of a failure cluster with their open requests.
    ClusterBranches => get("/api/failure-clusters/{id}/branches").entity(Entity::Cluster);
    /// Which commit turned a test of a run red, as far as it is known.
    RunCulprit => get("/api/test-runs/{id}/culprit").entity(Entity::Run);
    /// Searches the commit that turned a test of a run red.
    FindCulprit => post("/api/test-runs/{id}/culprit").reporting().entity(Entity::Run);
    /// Tests whether a project's repository can be read.
    TestRepository => post("/api/projects/{id}/repository/test").administrator().in_project().changes_nothing();
    /// Whether the runs of a project comment on requests and set statuses.
    ProjectFeedback => get("/api/projects/{id}/repository/feedback").administrator().in_project();
    /// Changes that.
    EditProjectFeedback => patch("/api/projects/{id}/repository/feedback").administrator().in_project();
    /// What became of comments and statuses of a project.
    FeedbackLog => get("/api/projects/{id}/repository/feedback/log").administrator().in_project();
    /// What a run says at its code host.
    RunFeedback => get("/api/test-runs/{id}/feedback").entity(Entity::Run);
    /// Posts comment and status of a run again.
    PostRunFeedback => post("/api/test-runs/{id}/feedback").reporting().entity(Entity::Run);
    /// The newest run that matches.
    ProjectLatestRun => get("/api/projects/{id}/latest-run").in_project();
    /// The test catalogue of a project.
    ProjectTestCases => get("/api/projects/{id}/test-cases").in_project();

    /// Tests that fail by chance.
    FlakyTests => get("/api/projects/{id}/flaky-tests").in_project();
    /// Finds out why a test is flaky.
    ClassifyFlaky => post("/api/projects/{id}/flaky-classify").reporting().in_project();
    /// The slowest tests.
    SlowTests => get("/api/projects/{id}/slow-tests").in_project();
    /// How long runs took.
    Performance => get("/api/projects/{id}/performance").in_project();
    /// Folders of tests.
    SpecHealth => get("/api/projects/{id}/spec-health").in_project();
    /// Timeouts that could be shorter.
    TimeoutOpportunities => get("/api/projects/{id}/timeout-opportunities").in_project();
    /// What ran on each day.
    ProjectDaily => get("/api/projects/{id}/daily").in_project();
    /// Projects side by side.
    PortfolioWidget => get("/api/analytics/portfolio").listed();
    /// Pass rates by project and day.
    PassRateWidget => get("/api/analytics/pass-rate-heatmap").listed();
    /// Flaky tests across projects.
    FlakyWidget => get("/api/analytics/flaky-leaderboard").listed();
    /// Wasted time across projects.
    WasteWidget => get("/api/analytics/wasted-time").listed();
    /// Time of runs across projects.
    CiTimeWidget => get("/api/analytics/ci-time-trend").listed();
    /// Regressions across projects.
    RegressionsWidget => get("/api/analytics/regression-velocity").listed();
    /// Slow endpoints across projects.
    EndpointsWidget => get("/api/analytics/slow-endpoints").listed();
    /// What fails, across projects.
    ClustersWidget => get("/api/analytics/cluster-landscape").listed();
    /// What stands out across projects.
    InsightsWidget => get("/api/analytics/insights").listed();
    /// Pass rates by project and browser.
    BrowsersWidget => get("/api/analytics/browser-matrix").listed();
    /// Tests that are set aside.
    ListQuarantine => get("/api/projects/{id}/quarantine").in_project();
    /// Sets a test aside.
    SetAside => post("/api/projects/{id}/quarantine").reporting().in_project();
    /// Lets a test go that was set aside.
    ReleaseAside => delete("/api/projects/{id}/quarantine/{testCaseId}").reporting().in_project();
    /// The tests reporters need not fail for.
    QuarantinePlan => get("/api/projects/{id}/quarantine-plan").ingest().in_project();
    /// Tests that are the same under two paths.
    JoinedHistories => get("/api/projects/{id}/joined-histories").in_project();
    /// Joins two histories, or makes them two again.
    DecideHistory => patch("/api/projects/{id}/joined-histories/{historyId}").reporting().in_project();

    /// Runs across projects.
    ListRuns => get("/api/test-runs").listed();
    /// Active and recently finished runs.
    RecentRuns => get("/api/test-runs/recent").listed();
    /// One run.
    GetRun => get("/api/test-runs/{id}").entity(Entity::Run);
    /// Deletes several runs.
    BulkDeleteRuns => post("/api/test-runs/bulk-delete").administrator().listed();
    /// Deletes a run.
    DeleteRun => delete("/api/test-runs/{id}").administrator().entity(Entity::Run);
    /// Ends a run by hand.
    CancelRun => post("/api/test-runs/{id}/cancel").reporting().entity(Entity::Run);
    /// Changes a run.
    EditRun => patch("/api/test-runs/{id}").reporting().entity(Entity::Run);
    /// Changes a run, as `PATCH` does.
    PutRun => put("/api/test-runs/{id}").reporting().entity(Entity::Run);
    /// Keeps a run.
    PinRun => put("/api/test-runs/{id}/pin").reporting().entity(Entity::Run);
    /// Leaves a run to retention again.
    UnpinRun => delete("/api/test-runs/{id}/pin").reporting().entity(Entity::Run);
    /// What is remarkable about a run.
    RunInsights => get("/api/test-runs/{id}/insights").entity(Entity::Run);
    /// A run beside another one.
    CompareRun => get("/api/test-runs/{id}/compare").entity(Entity::Run);
    /// What changed since a run was green.
    RegressionContext => get("/api/test-runs/{id}/regression-context").entity(Entity::Run);
    /// Judges a run.
    GateRun => post("/api/test-runs/{id}/gate").ingest().entity(Entity::Run);
    /// What was said about a run.
    GateResults => get("/api/test-runs/{id}/gate-results").entity(Entity::Run);
    /// Policies by which the runs of a project are judged.
    ListGatePolicies => get("/api/projects/{id}/gate-policies").in_project();
    /// Stores a policy.
    CreateGatePolicy => post("/api/projects/{id}/gate-policies").administrator().in_project();
    /// Changes a policy.
    EditGatePolicy => patch("/api/gate-policies/{id}").administrator().entity(Entity::GatePolicy);
    /// Changes a policy, as `PATCH` does.
    PutGatePolicy => put("/api/gate-policies/{id}").administrator().entity(Entity::GatePolicy);
    /// Removes a policy.
    DeleteGatePolicy => delete("/api/gate-policies/{id}").administrator().entity(Entity::GatePolicy);
    /// The tests of a run as a file.
    ExportRun => get("/api/test-runs/{id}/export").entity(Entity::Run);
    /// Has a file made that is larger than an answer.
    CreateExport => post("/api/exports").reporting().listed();
    /// A file that was asked for.
    GetExport => get("/api/exports/{id}").entity(Entity::Export);
    /// The files of a run.
    RunSpecs => get("/api/test-runs/{id}/specs").entity(Entity::Run);
    /// What the tests of a run called.
    RunNetwork => get("/api/test-runs/{id}/network-requests").entity(Entity::Run);
    /// What ran when.
    RunTimeline => get("/api/test-runs/{id}/timeline").entity(Entity::Run);
    /// What is to run again.
    RunRerun => get("/api/test-runs/{id}/rerun").entity(Entity::Run);
    /// Executions of a run.
    RunExecutions => get("/api/test-runs/{id}/executions").entity(Entity::Run);
    /// A run in the light form for scripts.
    RunSummary => get("/api/test-runs/{id}/summary").entity(Entity::Run);
    /// Failure clusters of a project.
    ProjectClusters => get("/api/projects/{id}/failure-clusters").in_project();
    /// Failure clusters.
    ListClusters => get("/api/failure-clusters").listed();
    /// Changes several failure clusters.
    BulkClusters => post("/api/failure-clusters/bulk").reporting().listed();
    /// One failure cluster.
    GetCluster => get("/api/failure-clusters/{id}").entity(Entity::Cluster);
    /// Changes a failure cluster.
    EditCluster => patch("/api/failure-clusters/{id}").reporting().entity(Entity::Cluster);
    /// Changes a failure cluster, as `PATCH` does.
    PutCluster => put("/api/failure-clusters/{id}").reporting().entity(Entity::Cluster);
    /// Executions that count for a failure cluster.
    ClusterOccurrences => get("/api/failure-clusters/{id}/occurrences").entity(Entity::Cluster);
    /// Tests that failed for a failure cluster.
    ClusterTestCases => get("/api/failure-clusters/{id}/test-cases").entity(Entity::Cluster);
    /// What people say of a failure cluster.
    SetClusterStatus => patch("/api/failure-clusters/{id}/status").reporting().entity(Entity::Cluster);
    /// The commit that changes are compared with.
    SetClusterBaseCommit => patch("/api/failure-clusters/{id}/base-commit").reporting().entity(Entity::Cluster);
    /// What to do about a cluster.
    FixPlan => get("/api/failure-clusters/{id}/fix-plan").entity(Entity::Cluster);
    /// Requests a diagnosis of a failure cluster.
    DiagnoseCluster => post("/api/failure-clusters/{id}/diagnose").reporting().entity(Entity::Cluster);
    /// The newest diagnosis of a failure cluster.
    ClusterDiagnosis => get("/api/failure-clusters/{id}/diagnosis").entity(Entity::Cluster);
    /// All versions of a failure cluster's diagnosis.
    ClusterDiagnoses => get("/api/failure-clusters/{id}/diagnoses").entity(Entity::Cluster);
    /// The evidence of a failure cluster as one text.
    ClusterContext => get("/api/failure-clusters/{id}/context").entity(Entity::Cluster);
    /// Rates a diagnosis.
    DiagnosisFeedback => patch("/api/failure-diagnoses/{id}/feedback").reporting().entity(Entity::Diagnosis);
    /// Cancels a diagnosis that runs.
    CancelDiagnosis => post("/api/failure-diagnoses/{id}/cancel").reporting().entity(Entity::Diagnosis);
    /// Makes a failure cluster part of another one.
    MergeCluster => post("/api/failure-clusters/{id}/merge").reporting().entity(Entity::Cluster);
    /// Takes tests out of a failure cluster.
    ExtractCases => post("/api/failure-clusters/{id}/extract-cases").reporting().entity(Entity::Cluster);
    /// Clusters that may be one.
    MergeSuggestions => get("/api/projects/{id}/cluster-merge-suggestions").in_project();
    /// Makes suggested clusters one.
    ApproveSuggestion => post("/api/cluster-merge-suggestions/{id}/approve").reporting().entity(Entity::ClusterSuggestion);
    /// Keeps suggested clusters apart.
    RejectSuggestion => post("/api/cluster-merge-suggestions/{id}/reject").reporting().entity(Entity::ClusterSuggestion);
    /// Failures of a run by cause.
    FailureGroups => get("/api/test-runs/{id}/failure-groups").entity(Entity::Run);

    /// Reports of a run.
    RunReports => get("/api/test-runs/{id}/reports").entity(Entity::Run);

    /// One test case.
    GetTestCase => get("/api/test-cases/{id}").entity(Entity::TestCase);
    /// Executions of a test case.
    TestCaseHistory => get("/api/test-cases/{id}/history").entity(Entity::TestCase);
    /// A test case's outcomes over time.
    TestCaseStability => get("/api/test-cases/{id}/stability-trend").entity(Entity::TestCase);
    /// One execution.
    GetExecution => get("/api/test-run-cases/{id}").entity(Entity::Execution);
    /// Traces of an execution.
    ExecutionTraces => get("/api/test-run-cases/{id}/traces").entity(Entity::Execution);
    /// Files of an execution.
    ExecutionFiles => get("/api/test-run-cases/{id}/files").entity(Entity::Execution);
    /// Why an execution failed.
    ExplainExecution => get("/api/test-run-cases/{id}/explain").entity(Entity::Execution);
    /// A locator that works instead of one that does not.
    LocatorHealing => get("/api/test-run-cases/{id}/locator-healing").entity(Entity::Execution);
    /// Notes which locator a person chose.
    LocatorPick => post("/api/test-run-cases/{id}/locator-pick").reporting().entity(Entity::Execution);
    /// Where a test failed, by its trace.
    TraceStacks => get("/api/test-run-cases/{id}/trace-stacks").entity(Entity::Execution);
    /// Requests and console around a failure, by its trace.
    TraceNetwork => get("/api/test-run-cases/{id}/trace-network").entity(Entity::Execution);
    /// The content of a request in a trace.
    TraceNetworkBody => get("/api/test-run-cases/{id}/trace-network-body").entity(Entity::Execution);
    /// The page a test failed on, by its trace.
    DomSnapshot => get("/api/test-run-cases/{id}/dom-snapshot").entity(Entity::Execution);
    /// How the environment differs from that of the last pass.
    EnvironmentDiff => get("/api/test-run-cases/{id}/environment-diff").entity(Entity::Execution);
    /// Requests a diagnosis of an execution.
    DiagnoseExecution => post("/api/test-run-cases/{id}/diagnose").reporting().entity(Entity::Execution);
    /// The newest diagnosis of an execution.
    ExecutionDiagnosis => get("/api/test-run-cases/{id}/diagnosis").entity(Entity::Execution);
    /// All versions of an execution's diagnosis.
    ExecutionDiagnoses => get("/api/test-run-cases/{id}/diagnoses").entity(Entity::Execution);
    /// The evidence of an execution as one text.
    ExecutionContext => get("/api/test-run-cases/{id}/diagnosis-context").entity(Entity::Execution);

    // The executions of a run are also found below it.
    /// One execution of a run.
    RunExecution => get("/api/test-runs/{id}/cases/{caseId}").entity(Entity::Execution);
    /// Traces of an execution of a run.
    RunExecutionTraces => get("/api/test-runs/{id}/cases/{caseId}/traces").entity(Entity::Execution);
    /// Files of an execution of a run.
    RunExecutionFiles => get("/api/test-runs/{id}/cases/{caseId}/files").entity(Entity::Execution);
    /// Why an execution of a run failed.
    RunExecutionExplanation => get("/api/test-runs/{id}/cases/{caseId}/explain").entity(Entity::Execution);
    /// Requests a diagnosis of an execution of a run.
    DiagnoseRunExecution => post("/api/test-runs/{id}/cases/{caseId}/diagnose").reporting().entity(Entity::Execution);
    /// The newest diagnosis of an execution of a run.
    RunExecutionDiagnosis => get("/api/test-runs/{id}/cases/{caseId}/diagnosis").entity(Entity::Execution);
    /// The evidence of an execution of a run as one text.
    RunExecutionContext => get("/api/test-runs/{id}/cases/{caseId}/diagnosis-context").entity(Entity::Execution);
    /// A locator that works instead of one that does not, of a run.
    RunExecutionHealing => get("/api/test-runs/{id}/cases/{caseId}/locator-healing").entity(Entity::Execution);
    /// Notes which locator a person chose for an execution of a run.
    RunExecutionPick => post("/api/test-runs/{id}/cases/{caseId}/locator-pick").reporting().entity(Entity::Execution);
    /// Where a test of a run failed, by its trace.
    RunExecutionStacks => get("/api/test-runs/{id}/cases/{caseId}/trace-stacks").entity(Entity::Execution);
    /// Requests and console around a failure of a run, by its trace.
    RunExecutionNetwork => get("/api/test-runs/{id}/cases/{caseId}/trace-network").entity(Entity::Execution);
    /// The content of a request in a trace of a run.
    RunExecutionNetworkBody => get("/api/test-runs/{id}/cases/{caseId}/trace-network-body").entity(Entity::Execution);
    /// The page a test of a run failed on, by its trace.
    RunExecutionDom => get("/api/test-runs/{id}/cases/{caseId}/dom-snapshot").entity(Entity::Execution);
    /// How the environment of a run differs from that of the last pass.
    RunExecutionEnvironment => get("/api/test-runs/{id}/cases/{caseId}/environment-diff").entity(Entity::Execution);

    /// Tags of projects.
    ListTags => get("/api/tags");
    /// Creates a tag.
    CreateTag => post("/api/tags").administrator();
    /// Changes a tag.
    EditTag => patch("/api/tags/{id}").administrator();
    /// Changes a tag, as `PATCH` does.
    PutTag => put("/api/tags/{id}").administrator();
    /// Deletes a tag.
    DeleteTag => delete("/api/tags/{id}").administrator();
    /// Channels of notifications.
    ListChannels => get("/api/channels");
    /// Creates a channel.
    CreateChannel => post("/api/channels");
    /// Changes a channel.
    EditChannel => patch("/api/channels/{id}");
    /// Deletes a channel with its subscriptions.
    DeleteChannel => delete("/api/channels/{id}");
    /// Sends a test message to a channel.
    TestChannel => post("/api/channels/{id}/test");
    /// The delivery log of a channel.
    ListDeliveries => get("/api/channels/{id}/deliveries");
    /// Sends a delivery again.
    RetryDelivery => post("/api/deliveries/{id}/retry");
    /// Subscriptions to notifications.
    ListSubscriptions => get("/api/subscriptions").listed();
    /// Creates a subscription.
    CreateSubscription => post("/api/subscriptions");
    /// Changes a subscription.
    EditSubscription => patch("/api/subscriptions/{id}");
    /// Deletes a subscription.
    DeleteSubscription => delete("/api/subscriptions/{id}");
    /// Notifications of the caller.
    ListNotifications => get("/api/notifications").listed();
    /// How many notifications of the caller are unread, as it changes.
    NotificationStream => get("/api/notifications/stream").listed();
    /// Marks notifications of the caller as read, up to one of them.
    ReadNotifications => post("/api/notifications/read");
    /// Marks a notification of the caller as read.
    ReadNotification => post("/api/notifications/{id}/read");
    /// Ends the mails of a channel with what one of them brought.
    Unsubscribe => post("/api/unsubscribe").public().body(ACCOUNT_BODY);
    /// Leads to the page that ends them.
    UnsubscribeLink => get("/api/unsubscribe").public();
    /// Links of something.
    ListLinks => get("/api/links").listed();
    /// Hangs a link on something.
    CreateLink => post("/api/links").reporting().listed();
    /// Changes a link.
    EditLink => patch("/api/links/{id}").reporting().entity(Entity::Link);
    /// Changes a link, as `PATCH` does.
    PutLink => put("/api/links/{id}").reporting().entity(Entity::Link);
    /// Looks at the address of a link again.
    RefreshLink => post("/api/links/{id}/refresh").reporting().entity(Entity::Link);
    /// Takes a link off.
    DeleteLink => delete("/api/links/{id}").reporting().entity(Entity::Link);
    /// Receipts of deletions.
    ListDeletions => get("/api/deletions").administrator();
    /// One receipt of a deletion.
    GetDeletion => get("/api/deletions/{id}").administrator();
    /// Restores what a deletion hid.
    RestoreDeletion => post("/api/deletions/{id}/restore").administrator();
    /// Deletes runs that began long ago.
    CleanUp => post("/api/admin/cleanup").administrator();
    /// Deletes runs that began long ago, for scripts that send no body.
    CleanUpByQuery => delete("/api/admin/cleanup").administrator();
    /// Counts over the whole installation.
    InstanceStats => get("/api/admin/stats").administrator();
    /// What the installation keeps.
    InstanceStorage => get("/api/admin/storage").administrator();
    /// How long things are kept.
    InstanceRetention => get("/api/settings/retention").administrator();
    /// Changes how long things are kept.
    EditInstanceRetention => patch("/api/settings/retention").administrator();
    /// Changes how long things are kept, as `PATCH` does.
    PutInstanceRetention => put("/api/settings/retention").administrator();
    /// What a policy of the installation deletes.
    PreviewInstanceRetention => post("/api/settings/retention/preview").administrator().changes_nothing();
    /// Undoes a change of the installation's policy that is not in force yet.
    UndoInstanceRetention => delete("/api/settings/retention/pending").administrator();
    /// How long a project keeps things.
    ProjectRetention => get("/api/projects/{id}/retention").administrator().in_project();
    /// Changes how long a project keeps things.
    EditProjectRetention => patch("/api/projects/{id}/retention").administrator().in_project();
    /// Changes how long a project keeps things, as `PATCH` does.
    PutProjectRetention => put("/api/projects/{id}/retention").administrator().in_project();
    /// What a policy deletes of a project.
    PreviewRetention => post("/api/projects/{id}/retention/preview").administrator().in_project().changes_nothing();
    /// Undoes a change of a project's policy that is not in force yet.
    UndoProjectRetention => delete("/api/projects/{id}/retention/pending").administrator().in_project();
    /// The mail server.
    SmtpSettings => get("/api/settings/smtp").administrator();
    /// Changes the mail server.
    EditSmtpSettings => patch("/api/settings/smtp").administrator();
    /// Changes the mail server, as `PATCH` does.
    PutSmtpSettings => put("/api/settings/smtp").administrator();
    /// Sends a mail that shows whether mail arrives.
    TestSmtp => post("/api/settings/smtp/test").administrator();
    /// The storage quota of the instance.
    InstanceQuota => get("/api/settings/storage-quota").administrator();
    /// Changes the storage quota of the instance.
    EditInstanceQuota => patch("/api/settings/storage-quota").administrator();
    /// Changes the storage quota of the instance, as `PATCH` does.
    PutInstanceQuota => put("/api/settings/storage-quota").administrator();
    /// The storage quota of a project.
    ProjectQuota => get("/api/projects/{id}/storage-quota").administrator().in_project();
    /// Changes the storage quota of a project.
    EditProjectQuota => patch("/api/projects/{id}/storage-quota").administrator().in_project();
    /// Changes the storage quota of a project, as `PATCH` does.
    PutProjectQuota => put("/api/projects/{id}/storage-quota").administrator().in_project();
    /// By what tests are judged.
    InstanceFlakiness => get("/api/settings/flakiness").administrator();
    /// Changes by what tests are judged.
    EditInstanceFlakiness => patch("/api/settings/flakiness").administrator();
    /// The same.
    PutInstanceFlakiness => put("/api/settings/flakiness").administrator();
    /// By what the tests of a project are judged.
    ProjectFlakiness => get("/api/projects/{id}/flakiness").administrator().in_project();
    /// Changes by what the tests of a project are judged.
    EditProjectFlakiness => patch("/api/projects/{id}/flakiness").administrator().in_project();
    /// The same.
    PutProjectFlakiness => put("/api/projects/{id}/flakiness").administrator().in_project();
    /// The model for diagnoses.
    ModelSettings => get("/api/settings/ai").administrator();
    /// Changes the model for diagnoses.
    EditModelSettings => patch("/api/settings/ai").administrator();
    /// Changes the model for diagnoses, as `PATCH` does.
    PutModelSettings => put("/api/settings/ai").administrator();
    /// Asks the model for a word.
    TestModel => post("/api/settings/ai/test").administrator().changes_nothing();
    /// What models were asked.
    ModelUsage => get("/api/settings/ai/usage").administrator();
    /// Whether a model for diagnoses is configured.
    ModelStatus => get("/api/ai/status");
    /// By what it is judged that a timeout could be shorter.
    TimeoutSettings => get("/api/settings/timeout-hygiene").administrator();
    /// Changes by what timeouts are judged.
    EditTimeoutSettings => patch("/api/settings/timeout-hygiene").administrator();
    /// The same.
    PutTimeoutSettings => put("/api/settings/timeout-hygiene").administrator();
    /// The shared access token for code hosts.
    SourceControlSettings => get("/api/settings/source-control").administrator();
    /// Changes the shared access token.
    EditSourceControlSettings => patch("/api/settings/source-control").administrator();
    /// Changes the shared access token, as `PATCH` does.
    PutSourceControlSettings => put("/api/settings/source-control").administrator();
    /// What a project keeps.
    ProjectStorage => get("/api/projects/{id}/storage").in_project();
    /// Markers of a project.
    ListMarkers => get("/api/projects/{id}/markers").in_project();
    /// Sets a marker.
    CreateMarker => post("/api/projects/{id}/markers").reporting().in_project();
    /// Changes a marker.
    EditMarker => patch("/api/markers/{id}").reporting().entity(Entity::Marker);
    /// Changes a marker, as `PATCH` does.
    PutMarker => put("/api/markers/{id}").reporting().entity(Entity::Marker);
    /// Removes a marker.
    DeleteMarker => delete("/api/markers/{id}").reporting().entity(Entity::Marker);
    /// Functions of a suite.
    ListTestFunctions => get("/api/projects/{id}/test-functions").in_project();
    /// Stores a function of a suite.
    CreateTestFunction => post("/api/projects/{id}/test-functions").reporting().in_project();
    /// Changes a function of a suite.
    EditTestFunction => patch("/api/test-functions/{id}").reporting().entity(Entity::TestFunction);
    /// Changes a function of a suite, as `PATCH` does.
    PutTestFunction => put("/api/test-functions/{id}").reporting().entity(Entity::TestFunction);
    /// Removes a function of a suite.
    DeleteTestFunction => delete("/api/test-functions/{id}").reporting().entity(Entity::TestFunction);

    /// Bytes of a stored file, by id or by stored name.
    GetFile => get("/api/files/{*path}").entity(Entity::File);
    /// Bytes below a file grant.
    GrantedFile => get("/f/{grant}/{*path}").grant();
    /// The trace viewer, on the origin of untrusted content.
    ViewerAsset => get("/viewer/{*path}").public();

    /// One or more JSON-RPC messages.
    McpMessages => post("/mcp").listed().changes_nothing().rate(RateClass::Mcp).mcp();
    /// How to connect an agent.
    McpPage => get("/mcp").public().mcp();
    /// Style and script of that page.
    McpAsset => get("/mcp/{*path}").public().mcp();

    /// What is red, what is running.
    HomePage => get("/").listed();
    /// All projects.
    ProjectsPage => get("/projects").listed();
    /// One project.
    ProjectPage => get("/projects/{id}").in_project();
    /// All projects together.
    AnalyticsPage => get("/analytics").listed();
    /// One run.
    RunPage => get("/test-runs/{id}").entity(Entity::Run);
    /// One test case.
    TestCasePage => get("/test-cases/{id}").entity(Entity::TestCase);
    /// One cause of failures.
    ClusterPage => get("/failure-clusters/{id}").entity(Entity::Cluster);
    /// One execution.
    ExecutionPage => get("/test-run-cases/{id}").entity(Entity::Execution);
    /// What is configured.
    SettingsPage => get("/settings");
    /// One's own account.
    AccountPage => get("/settings/account");
    /// Accounts: all of them for administrators, one's own for others.
    UsersPage => get("/settings/users");
    /// One account.
    UserPage => get("/settings/users/{id}").administrator();
    /// API keys of an account.
    UserKeysPage => get("/settings/users/{id}/keys");
    /// The audit log.
    AuditPage => get("/settings/audit").administrator();
    /// What is kept, and how much of it.
    StoragePage => get("/settings/storage").administrator();
    /// How long things are kept.
    RetentionPage => get("/settings/retention").administrator();
    /// The mail server.
    MailPage => get("/settings/mail").administrator();
    /// Notifications of the reader.
    InboxPage => get("/notifications").listed();
    /// Channels and subscriptions of notifications.
    NotificationsPage => get("/settings/notifications");
    /// The delivery log of a channel.
    DeliveriesPage => get("/settings/notifications/channels/{id}");
    /// Tags of projects.
    TagsPage => get("/settings/tags").administrator();
    /// All projects with what was set for them.
    ProjectsSettingsPage => get("/settings/projects").administrator();
    /// Repositories of projects.
    SourceControlPage => get("/settings/source-control").administrator();
    /// Comments and statuses of a project at its code host.
    FeedbackPage => get("/settings/source-control/projects/{id}").administrator().in_project();
    /// By what tests are judged.
    FlakinessPage => get("/settings/flakiness").administrator();
    /// When a timeout counts as too long.
    TimeoutsPage => get("/settings/timeouts").administrator();
    /// The model for diagnoses.
    DiagnosisSettingsPage => get("/settings/diagnosis").administrator();
    /// Signing in.
    LoginPage => get("/login").public();
    /// Creating the first administrator.
    SetupPage => get("/setup").public();
    /// Setting a password with what a mail brought.
    ResetPage => get("/reset").public();
    /// Proving an address with what a mail brought.
    VerifyPage => get("/verify").public();
    /// Ending the mails of a channel with what one of them brought.
    UnsubscribePage => get("/unsubscribe").public();
    /// The index of the documentation.
    HelpIndex => get("/help").public();
    /// A page or a picture of the documentation.
    HelpPage => get("/help/{*path}").public();
    /// Styles, scripts and images of the pages.
    StaticAsset => get("/static/{*path}").public();

    /// Does the work that is due.
    Tick => post("/internal/tick").system().body(BodyLimit::Fixed(KIB));
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
                "GET /api/auth/setup",
                "POST /api/auth/setup",
                "POST /api/auth/forgot-password",
                "POST /api/auth/reset-password",
                "GET /api/auth/verify-email",
                "GET /api/auth/oauth/{provider}/login",
                "GET /api/auth/oauth/{provider}/callback",
                "GET /badge/{file}",
                "POST /api/unsubscribe",
                "GET /api/unsubscribe",
                "GET /viewer/{*path}",
                "GET /mcp",
                "GET /mcp/{*path}",
                "GET /login",
                "GET /setup",
                "GET /reset",
                "GET /verify",
                "GET /unsubscribe",
                "GET /help",
                "GET /help/{*path}",
                "GET /static/{*path}",
            ]
        );
    }
}
