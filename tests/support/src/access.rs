//! Everybody who may call, everything they may name, and what the route table
//! says about each pair: the authorization matrix, for the service in one
//! process and for its functions alike.

use anyhow::{Context, Result};
use bytes::Bytes;
use callboard_auth::cookies::{CookieForm, SealedCookies};
use callboard_auth::keys::Secrets;
use callboard_auth::routes::{Access, BodyLimit, Method, ProjectSource};
use callboard_auth::session_cookie::SessionClaims;
use callboard_auth::{ROUTES, Route, RouteId, api_key};
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ClusterId, ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::accounts::api_keys::{self, NewKey};
use callboard_store::accounts::assignments;
use callboard_store::accounts::sessions::{self, NewSession};
use callboard_store::accounts::users::{self, UserRow};
use callboard_store::clusters::suggestions::{self, SuggestionMethod, SuggestionStatus};
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::Form;

/// The secret of the services these accounts belong to.
pub const AUTH_SECRET: &str = "d41d8cd98f00b204e9800998ecf8427e0c5f3a11";

/// How a caller proves who they are.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Who, for messages.
    pub name: String,
    /// The header, if any.
    header: Option<(HeaderName, HeaderValue)>,
    /// What the service should know about them.
    standing: Standing,
}

#[derive(Debug, Clone, Copy)]
enum Standing {
    Nobody,
    DeadKey,
    Account { user: UserId, role: Role, sees: Sees, key: Option<KeyPermission>, is_narrowed: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sees {
    Everything,
    First,
    Nothing,
}

/// What a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Something of the first project, or the caller's own account.
    First,
    /// Something of the second project, or somebody else's account.
    Second,
    /// Something that does not exist.
    Missing,
    /// Something of the first project, in a body that says nothing: what is
    /// let through changes nothing.
    Nonsense,
}

/// What the route table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The request is let through to its handler.
    LetThrough,
    /// It is turned away with this status and code.
    Refused(u16, &'static str),
    /// The secret it takes instead of an account is missing or wrong: any
    /// refusal will do.
    Unopened,
}

/// Ids of what one project holds.
#[derive(Debug, Clone)]
pub struct Holding {
    /// The project.
    pub project: i64,
    /// Its name.
    pub name: String,
    /// A run.
    pub run: i64,
    /// A test case.
    pub test_case: i64,
    /// An execution.
    pub execution: i64,
    /// A file.
    pub file: i64,
    /// A link of the run.
    pub link: i64,
    /// A marker.
    pub marker: i64,
    /// A function of its suite.
    pub function: i64,
    /// A failure cluster.
    pub cluster: i64,
    /// A suggestion about it.
    pub suggestion: i64,
    /// A policy of gates.
    pub policy: i64,
}

impl Holding {
    const MISSING: i64 = 999_999;

    /// Ids that nothing has.
    #[must_use]
    pub fn missing() -> Self {
        let none = Self::MISSING;
        Self {
            project: none,
            name: "never seen".to_owned(),
            run: none,
            test_case: none,
            execution: none << 20 | 1,
            file: none,
            link: none,
            marker: none,
            function: none,
            cluster: none,
            suggestion: none,
            policy: none,
        }
    }
}

/// Suggests that a cluster is one with itself, which nothing does on its own:
/// approving it changes nothing.
///
/// # Errors
/// When the database refuses.
pub async fn suggestion(store: &Store, project: i64, cluster: i64, now: Timestamp) -> Result<i64> {
    let (project, cluster) = (ProjectId(project), ClusterId(cluster));
    let mut session = store.db().begin().await?;
    let method = (SuggestionMethod::Fingerprint, None);
    suggestions::suggest(&mut session, project, (cluster, cluster), method, "a test", now).await?;
    let found = suggestions::list(&mut session, project, SuggestionStatus::Pending, None, 1).await?;
    session.commit().await?;
    Ok(found.first().context("a suggestion")?.id.get())
}

/// Accounts over two projects.
#[derive(Debug)]
pub struct Cast {
    /// Everybody.
    pub callers: Vec<Credential>,
    first: Holding,
    second: Holding,
    /// An account that belongs to nobody who calls.
    bystander: UserId,
}

impl Cast {
    /// Creates the accounts, straight in the store.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn assemble(store: &Store, now: Timestamp, first: Holding, second: Holding) -> Result<Self> {
        let mut maker = Maker { store, now, cookies: SealedCookies::new(&Secrets::new(&[AUTH_SECRET])) };
        let mine = ProjectId(first.project);
        let admin = maker.user("admin", Role::Administrator, &[]).await?;
        let reporter = maker.user("reporter of all", Role::Reporter, &[None]).await?;
        let reporter_of_first = maker.user("reporter of one", Role::Reporter, &[Some(mine)]).await?;
        let user_of_first = maker.user("user of one", Role::User, &[Some(mine)]).await?;
        let newcomer = maker.user("newcomer", Role::User, &[]).await?;
        let bystander = maker.user("bystander", Role::User, &[]).await?;

        let mut callers =
            vec![Credential { name: "nobody".to_owned(), header: None, standing: Standing::Nobody }];
        for (user, role, sees) in [
            (admin, Role::Administrator, Sees::Everything),
            (reporter, Role::Reporter, Sees::Everything),
            (reporter_of_first, Role::Reporter, Sees::First),
            (user_of_first, Role::User, Sees::First),
            (newcomer, Role::User, Sees::Nothing),
        ] {
            let account = |key| Standing::Account { user: user.0, role, sees, key, is_narrowed: false };
            callers.push(maker.session(&user, account(None)).await?);
            callers.push(
                maker
                    .key(&user, KeyPermission::Full, Life::Alive, account(Some(KeyPermission::Full)))
                    .await?,
            );
        }
        for permission in [KeyPermission::Ingest, KeyPermission::Read, KeyPermission::Metrics] {
            let standing = Standing::Account {
                user: reporter_of_first.0,
                role: Role::Reporter,
                sees: Sees::First,
                key: Some(permission),
                is_narrowed: false,
            };
            callers.push(maker.key(&reporter_of_first, permission, Life::Alive, standing).await?);
        }
        for (user, role) in [(admin, Role::Administrator), (reporter, Role::Reporter)] {
            let standing = Standing::Account {
                user: user.0,
                role,
                sees: Sees::First,
                key: Some(KeyPermission::Full),
                is_narrowed: true,
            };
            callers.push(maker.narrowed_key(&user, mine, standing).await?);
        }
        for life in [Life::Expired, Life::Revoked] {
            callers.push(maker.key(&admin, KeyPermission::Full, life, Standing::DeadKey).await?);
        }
        let leaver = maker.user("leaver", Role::Administrator, &[]).await?;
        callers.push(maker.session(&leaver, Standing::Nobody).await?);
        callers.push(maker.key(&leaver, KeyPermission::Full, Life::Alive, Standing::DeadKey).await?);
        maker.disable(&leaver).await?;
        Ok(Self { callers, first, second, bystander: bystander.0 })
    }

    /// Every question the table answers: who asks for what at which route,
    /// and what should come of it. Changes that would be let through are asked
    /// for with nonsense, because they would change what the next question is
    /// about.
    pub fn questions(&self) -> impl Iterator<Item = Question<'_>> {
        ROUTES.iter().flat_map(move |route| {
            self.callers.iter().flat_map(move |caller| {
                let subjects = [Subject::First, Subject::Second, Subject::Missing, Subject::Nonsense];
                subjects.into_iter().filter_map(move |subject| {
                    let expected = expected(route, caller, subject);
                    let reads = route.method == Method::Get;
                    let is_safe = expected != Expected::LetThrough || reads;
                    let is_asked = match subject {
                        Subject::First => is_safe,
                        Subject::Second | Subject::Missing => is_safe && names_something(route),
                        Subject::Nonsense => !is_safe && says_something(route),
                    };
                    // Ends the very session that asks.
                    let is_a_way_out = matches!(route.id, RouteId::Logout | RouteId::SignOutUser);
                    let is_a_way_out = is_a_way_out && expected == Expected::LetThrough;
                    (is_asked && !is_a_way_out).then_some(Question { route, caller, subject, expected })
                })
            })
        })
    }

    /// The request of a question. `host` is the name the service answers to.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn request(&self, question: &Question<'_>, host: &str) -> Result<Request<Bytes>> {
        let Question { route, caller, subject, .. } = question;
        let holding = match subject {
            Subject::First | Subject::Nonsense => self.first.clone(),
            Subject::Second => self.second.clone(),
            Subject::Missing => Holding::missing(),
        };
        let account = match (subject, caller.standing) {
            (Subject::First | Subject::Nonsense, Standing::Account { user, .. }) => user.get(),
            (Subject::Missing, _) => Holding::MISSING,
            _ => self.bystander.get(),
        };
        let path = address(route, &holding, account);
        let mut request = Request::builder().method(route.method.as_str()).uri(path).header("host", host);
        if let Some((name, value)) = &caller.header {
            request = request.header(name, value);
        }
        if route.method == Method::Get {
            return Ok(request.body(Bytes::new())?);
        }
        if *subject == Subject::Nonsense {
            return Ok(request.header(CONTENT_TYPE, "application/json").body(Bytes::from_static(b"[]"))?);
        }
        let fields = fields(route, &holding);
        if route.body_limit == BodyLimit::Upload {
            let form = Form::new().field("projectName", &holding.name).field("testRun", fields.to_string());
            return Ok(request.header(CONTENT_TYPE, Form::content_type()).body(form.into_body())?);
        }
        Ok(request.header(CONTENT_TYPE, "application/json").body(Bytes::from(fields.to_string()))?)
    }
}

/// One cell of the matrix.
#[derive(Debug)]
pub struct Question<'c> {
    /// The route.
    pub route: &'static Route,
    /// Who asks.
    pub caller: &'c Credential,
    /// For what.
    pub subject: Subject,
    /// What should come of it.
    pub expected: Expected,
}

impl Question<'_> {
    /// Compares an answer with the table.
    ///
    /// # Errors
    /// A sentence that says who got what where.
    pub fn judge(&self, status: u16, body: &[u8]) -> Result<(), String> {
        let code = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|body| body["code"].as_str().map(str::to_owned));
        let is_right = match self.expected {
            Expected::LetThrough => status < 500 && status != 401 && status != 403,
            // Pages say it in words.
            Expected::Refused(wanted, wanted_code) => {
                status == wanted && code.as_deref().is_none_or(|code| code == wanted_code)
            }
            Expected::Unopened => (400..500).contains(&status),
        };
        if is_right {
            return Ok(());
        }
        Err(format!(
            "{} {} as {} for {:?}: expected {:?}, got {status} {}",
            self.route.method.as_str(),
            self.route.pattern,
            self.caller.name,
            self.subject,
            self.expected,
            code.unwrap_or_default(),
        ))
    }
}

/// Routes about an account: the caller's own, or anybody's for administrators.
fn is_about_an_account(route: &Route) -> bool {
    route.pattern.starts_with("/api/users/{id}") || route.pattern == "/settings/users/{id}"
}

fn names_something(route: &Route) -> bool {
    is_about_an_account(route)
        || matches!(
            route.project,
            ProjectSource::FromPath | ProjectSource::FromEntity(_) | ProjectSource::FromBody(_)
        )
}

/// Whether a body, or a query, says what is to be done. Nothing of the rest
/// is named either: a tag or an invitation without an id of its own.
fn says_something(route: &Route) -> bool {
    route.method != Method::Delete || route.id == RouteId::CleanUpByQuery
}

fn expected(route: &Route, caller: &Credential, subject: Subject) -> Expected {
    let roles = match route.access {
        Access::Public => return Expected::LetThrough,
        Access::Roles(roles) | Access::RolesOrRunToken(roles) => roles,
        _ => return Expected::Unopened,
    };
    let (role, sees, key, is_narrowed) = match caller.standing {
        Standing::Nobody => return Expected::Refused(401, "authentication_required"),
        Standing::DeadKey => return Expected::Refused(401, "invalid_api_key"),
        // Cookies do not count where programs call.
        Standing::Account { key: None, .. }
            if route.credentials == callboard_auth::routes::Credentials::HeaderOnly =>
        {
            return Expected::Refused(401, "authentication_required");
        }
        Standing::Account { role, sees, key, is_narrowed, .. } => (role, sees, key, is_narrowed),
    };
    if !roles.contains(role) {
        return Expected::Refused(403, "insufficient_role");
    }
    if route.session_only && key.is_some() {
        return Expected::Refused(403, "session_required");
    }
    let is_meant = match key {
        None | Some(KeyPermission::Full) => true,
        Some(KeyPermission::Ingest) => route.ingest,
        Some(KeyPermission::Read) => route.method == Method::Get || !route.mutates,
        Some(KeyPermission::Metrics) => false,
    };
    let is_instance_wide = route.project == ProjectSource::None && !roles.contains(Role::Reporter);
    if !is_meant || (is_narrowed && is_instance_wide) {
        return Expected::Refused(403, "key_scope_denied");
    }
    if is_about_an_account(route) {
        return match (role, subject) {
            (_, Subject::First | Subject::Nonsense) => Expected::LetThrough,
            // Accounts lie within no project.
            (Role::Administrator, _) if is_narrowed => Expected::Refused(403, "key_scope_denied"),
            (Role::Administrator, Subject::Missing) if route.pattern.ends_with("{keyId}") => {
                Expected::Refused(404, "api_key_not_found")
            }
            (Role::Administrator, Subject::Missing) => Expected::Refused(404, "user_not_found"),
            (Role::Administrator, Subject::Second) => Expected::LetThrough,
            _ => Expected::Refused(403, "insufficient_role"),
        };
    }
    in_project(route, sees, subject)
}

fn in_project(route: &Route, sees: Sees, subject: Subject) -> Expected {
    let is_of_first = matches!(subject, Subject::First | Subject::Nonsense);
    let reaches = sees == Sees::Everything || (sees == Sees::First && is_of_first);
    let word = match route.project {
        ProjectSource::None | ProjectSource::Listed => return Expected::LetThrough,
        ProjectSource::FromBody(_) => {
            return match (reaches, subject) {
                (true, _) => Expected::LetThrough,
                (false, Subject::Missing) => Expected::Refused(403, "project_creation_forbidden"),
                (false, _) => Expected::Refused(403, "project_access_denied"),
            };
        }
        ProjectSource::FromPath => "project_not_found",
        ProjectSource::FromEntity(entity) => match entity {
            callboard_auth::routes::Entity::Run => "run_not_found",
            callboard_auth::routes::Entity::TestCase => "test_case_not_found",
            callboard_auth::routes::Entity::Execution => "execution_not_found",
            callboard_auth::routes::Entity::File => "file_not_found",
            callboard_auth::routes::Entity::GatePolicy => "policy_not_found",
            callboard_auth::routes::Entity::Link => "link_not_found",
            callboard_auth::routes::Entity::Cluster => "cluster_not_found",
            callboard_auth::routes::Entity::ClusterSuggestion => "suggestion_not_found",
            callboard_auth::routes::Entity::Marker => "marker_not_found",
            callboard_auth::routes::Entity::TestFunction => "function_not_found",
        },
    };
    match (subject, reaches) {
        (Subject::Missing, _) => Expected::Refused(404, word),
        (_, true) => Expected::LetThrough,
        (_, false) => Expected::Refused(403, "project_access_denied"),
    }
}

/// The path, and where it takes one the query, that names something of what
/// a project holds, or an account.
#[must_use]
pub fn address(route: &Route, holding: &Holding, account: i64) -> String {
    let pattern = route.pattern;
    let id = if is_about_an_account(route) {
        account
    } else if pattern.contains("/test-run-cases/{id}") {
        holding.execution
    } else if pattern.contains("/test-runs/{id}") {
        holding.run
    } else if pattern.contains("/test-cases/{id}") {
        holding.test_case
    } else if pattern.contains("/failure-clusters/{id}") {
        holding.cluster
    } else if pattern.contains("/cluster-merge-suggestions/{id}") {
        holding.suggestion
    } else if pattern.contains("/links/{id}") {
        holding.link
    } else if pattern.contains("/markers/{id}") {
        holding.marker
    } else if pattern.contains("/test-functions/{id}") {
        holding.function
    } else if pattern.contains("/gate-policies/{id}") {
        holding.policy
    } else if pattern.contains("/projects/{id}") {
        holding.project
    } else {
        Holding::MISSING
    };
    let rest = if route.id == RouteId::GetFile { holding.file.to_string() } else { "index.html".to_owned() };
    let query = match route.id {
        RouteId::ExportRun => "?format=ndjson",
        RouteId::TraceNetworkBody | RouteId::RunExecutionNetworkBody => "?sha1=0",
        _ => "",
    };
    pattern
        .replace("{id}", &id.to_string())
        .replace("{keyId}", "1")
        .replace("{caseId}", &holding.execution.to_string())
        .replace("{testCaseId}", &holding.test_case.to_string())
        .replace("{sessionId}", &"0".repeat(32))
        .replace("{provider}", "idp")
        .replace("{grant}", "AAAA")
        .replace("{*path}", &rest)
        + query
}

/// A body that the handler accepts, so that nothing but access decides.
fn fields(route: &Route, holding: &Holding) -> Value {
    match route.id {
        RouteId::GateRun => json!({ "maxFailed": 0 }),
        RouteId::EditRun => json!({ "label": "a label" }),
        RouteId::CreateGatePolicy => json!({ "name": "a policy", "policy": { "maxFailed": 0 } }),
        RouteId::EditGatePolicy => json!({ "isDefault": true }),
        RouteId::EditUser => json!({ "name": "Another" }),
        RouteId::SetProjectMembers => json!({ "userIds": [] }),
        RouteId::SetUserProjects => json!({ "isGlobal": false, "projectIds": [] }),
        RouteId::CreateApiKey => json!({ "name": "a key" }),
        RouteId::SetAside | RouteId::ClassifyFlaky => json!({ "testCaseId": holding.test_case }),
        RouteId::CreateMarker | RouteId::EditMarker | RouteId::PutMarker => {
            json!({ "label": "Release", "occurredAt": "2026-01-01T10:00:00.000Z", "category": "release" })
        }
        RouteId::DeleteProject => json!({ "confirm": "not its name" }),
        RouteId::LocatorPick | RouteId::RunExecutionPick => {
            json!({ "pickedLocator": { "locator": "getByText('x')", "method": "getByText", "args": ["x"], "score": 90 } })
        }
        RouteId::BulkClusters => json!({ "ids": [], "note": "known" }),
        RouteId::EditCluster | RouteId::PutCluster => json!({ "title": "Another" }),
        RouteId::SetClusterStatus => json!({ "status": "ignored" }),
        RouteId::SetClusterBaseCommit => json!({ "commit": null }),
        RouteId::MergeCluster => json!({ "intoId": holding.cluster }),
        RouteId::ExtractCases => json!({ "testCaseIds": [holding.test_case] }),
        RouteId::EditLink => json!({ "title": "Another" }),
        RouteId::EditProject | RouteId::PutProject => json!({ "label": "Another" }),
        RouteId::EditProjectRetention | RouteId::PutProjectRetention => json!({ "runs": { "days": 90 } }),
        RouteId::EditProjectFlakiness | RouteId::PutProjectFlakiness => json!({ "minRuns": 30 }),
        RouteId::CreateTestFunction => json!({
            "name": "pay", "kind": "helper", "module": "./pages/checkout",
            "steps": [{ "action": "goto", "value": "/" }],
        }),
        RouteId::EditTestFunction | RouteId::PutTestFunction => json!({ "name": "pay" }),
        _ => json!({
            "projectName": holding.name, "status": "passed", "startTime": "2026-01-01T10:00:00.000Z",
            "duration": 1, "testCases": [],
        }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Alive,
    Expired,
    Revoked,
}

struct Maker<'s> {
    store: &'s Store,
    now: Timestamp,
    cookies: SealedCookies,
}

type Known = (UserId, &'static str);

impl Maker<'_> {
    async fn user(
        &mut self,
        name: &'static str,
        role: Role,
        projects: &[Option<ProjectId>],
    ) -> Result<Known> {
        let mut session = self.store.db().begin().await?;
        let id = users::new_id(&mut session).await?;
        let user = UserRow {
            id,
            username: name.to_owned(),
            username_key: name.to_owned(),
            password: String::new(),
            role,
            name: None,
            email: None,
            avatar: None,
            oauth: None,
            session_epoch: 0,
            disabled_at: None,
            created_at: self.now,
            updated_at: self.now,
        };
        users::insert(&mut session, &user).await?;
        for project in projects {
            assignments::add(&mut session, id, *project, None, self.now).await?;
        }
        session.commit().await?;
        Ok((id, name))
    }

    async fn session(&mut self, (user, name): &Known, standing: Standing) -> Result<Credential> {
        let claims = SessionClaims::start(*user, 0, self.now)?;
        let new = NewSession {
            sid_hash: claims.sid_hash(),
            user: *user,
            epoch: 0,
            auth_at: self.now,
            created_at: self.now,
            expires_at: claims.expires_at,
            method: "password",
            ip_hash: None,
            user_agent: None,
        };
        let mut session = self.store.db().begin().await?;
        sessions::insert(&mut session, &new).await?;
        session.commit().await?;
        let set = self.cookies.set(&claims, CookieForm::Plain)?;
        let pair = set.to_str()?.split(';').next().context("a cookie without a value")?.to_owned();
        // A service behind TLS reads the name with the prefix.
        let secure = self.cookies.set(&claims, CookieForm::Secure)?;
        let secure = secure.to_str()?.split(';').next().context("a cookie without a value")?.to_owned();
        let header = Some((COOKIE, HeaderValue::from_str(&format!("{pair}; {secure}"))?));
        Ok(Credential { name: format!("{name} (session)"), header, standing })
    }

    /// A key, sent in a header of its own, that reaches one project of all.
    async fn narrowed_key(
        &mut self,
        (user, name): &Known,
        project: ProjectId,
        standing: Standing,
    ) -> Result<Credential> {
        let fresh = api_key::mint()?;
        let new = NewKey {
            user: *user,
            name: "a narrow key".to_owned(),
            key_hash: fresh.hash,
            key_prefix: fresh.shown.clone(),
            permission: KeyPermission::Full,
            projects: Some(vec![project]),
            parent: None,
            created_by: *user,
            created_at: self.now,
            expires_at: None,
        };
        let mut session = self.store.db().begin().await?;
        api_keys::insert(&mut session, &new).await?;
        session.commit().await?;
        let header = Some((HeaderName::from_static("x-api-key"), HeaderValue::from_str(&fresh.text)?));
        Ok(Credential { name: format!("{name} (narrowed key)"), header, standing })
    }

    async fn disable(&mut self, (user, _): &Known) -> Result<()> {
        let mut session = self.store.db().begin().await?;
        let mut row = users::lock(&mut session, *user).await?.context("no such account")?;
        row.disabled_at = Some(self.now);
        users::save(&mut session, &row).await?;
        Ok(session.commit().await?)
    }

    async fn key(
        &mut self,
        (user, name): &Known,
        permission: KeyPermission,
        life: Life,
        standing: Standing,
    ) -> Result<Credential> {
        let fresh = api_key::mint()?;
        let new = NewKey {
            user: *user,
            name: "a key".to_owned(),
            key_hash: fresh.hash,
            key_prefix: fresh.shown.clone(),
            permission,
            projects: None,
            parent: None,
            created_by: *user,
            created_at: self.now,
            expires_at: (life == Life::Expired).then_some(Timestamp(self.now.millis() - 1000)),
        };
        let mut session = self.store.db().begin().await?;
        let id = api_keys::insert(&mut session, &new).await?;
        if life == Life::Revoked {
            api_keys::revoke(&mut session, id, self.now).await?;
        }
        session.commit().await?;
        let header = Some((AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", fresh.text))?));
        Ok(Credential { name: format!("{name} ({} key, {life:?})", permission.as_str()), header, standing })
    }
}
