//! Many function processes at once, which share nothing but the database: what
//! one of them learns about a caller holds in all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use callboard_auth::{ROUTES, routes};
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::UserId;
use callboard_http::Clock;
use callboard_query::accounts::enabling;
use callboard_store::Store;
use callboard_store::accounts::api_keys::{self, NewKey};
use callboard_store::accounts::users::{self, UserFilter, UserRow};
use callboard_test_functions::both::{Both, get, post, settings};
use callboard_test_functions::deployment::Deployment;
use callboard_test_support::access::AUTH_SECRET;
use callboard_test_support::accounts::{CHEAP_PASSWORD_HASH, PASSWORD};
use callboard_test_support::lambda::SourceIp;
use callboard_test_support::{Answer, Function, Settings};
use http::Request;
use serde_json::{Value, json};

const LOGIN: &str = "/api/auth/login";
const SETUP: &str = "/api/auth/setup";
const PROCESSES: usize = 4;

fn asking(both: &Both) -> Settings {
    let mut asking = settings(&both.database, &both.bucket);
    let own = [("SERVICE_AUTH_ENABLED", "true"), ("SERVICE_AUTH_SECRET", AUTH_SECRET)];
    asking.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    asking
}

async fn processes(settings: &Settings, count: usize) -> Result<Vec<Arc<Function>>> {
    let mut started = Vec::new();
    for _ in 0..count {
        started.push(Arc::new(Function::start("auth", settings).await?));
    }
    Ok(started)
}

async fn send(function: &Function, path: &str, body: &Value) -> Result<Answer> {
    function.invoke(&format!("ANY {path}"), &post(path, body)?).await
}

/// Sends requests to the processes in turn, as many at once as there are
/// processes: each handles one at a time.
async fn in_parallel(
    functions: &[Arc<Function>],
    path: &'static str,
    bodies: Vec<Value>,
) -> Result<Vec<Answer>> {
    let mut tasks = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        let (function, count) = (Arc::clone(function), functions.len());
        let own: Vec<Value> = bodies.iter().skip(at).step_by(count).cloned().collect();
        tasks.push(tokio::spawn(async move {
            let mut answers = Vec::new();
            for body in &own {
                answers.push(send(&function, path, body).await?);
            }
            Ok::<_, anyhow::Error>(answers)
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await??);
    }
    Ok(all)
}

async fn account(store: &Store, name: &str, role: Role) -> Result<UserId> {
    let now = Clock::system().now();
    let mut session = store.db().begin().await?;
    let id = users::new_id(&mut session).await?;
    let user = UserRow {
        id,
        username: name.to_owned(),
        username_key: name.to_owned(),
        password: CHEAP_PASSWORD_HASH.to_owned(),
        role,
        name: None,
        email: None,
        avatar: None,
        oauth: None,
        session_epoch: 0,
        disabled_at: None,
        created_at: now,
        updated_at: now,
    };
    users::insert(&mut session, &user).await?;
    session.commit().await?;
    Ok(id)
}

#[tokio::test]
async fn guesses_at_several_processes_are_counted_together() {
    let both = Both::start().await.unwrap();
    let asking = asking(&both);
    let store = both.database.store().await.unwrap();
    account(&store, "ada", Role::User).await.unwrap();
    let functions = processes(&asking, PROCESSES).await.unwrap();
    let guess = json!({ "username": "ada", "password": "a wrong guess" });
    let answers = in_parallel(&functions, LOGIN, vec![guess.clone(); 200]).await.unwrap();
    let count = |status: u16| answers.iter().filter(|answer| answer.status.as_u16() == status).count();
    assert!((5..=69).contains(&count(401)), "{} were looked at", count(401));
    assert_eq!(count(401) + count(429), 200);
    // The right password too, at the processes that said so and at one that never saw a guess.
    let right = json!({ "username": "ada", "password": PASSWORD });
    let fresh = processes(&asking, 1).await.unwrap();
    for function in [&functions[0], &functions[1], &fresh[0]] {
        let answer = send(function, LOGIN, &right).await.unwrap();
        assert_eq!(answer.status.as_u16(), 429, "{}", answer.text());
        let wait: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=900).contains(&wait), "{wait}");
    }
}

#[tokio::test]
async fn a_guess_comes_from_where_the_gateway_saw_it_come_from() {
    let both = Both::start().await.unwrap();
    let store = both.database.store().await.unwrap();
    for n in 0..5 {
        account(&store, &format!("user {n}"), Role::User).await.unwrap();
    }
    let functions = processes(&asking(&both), 2).await.unwrap();
    let guess = async |n: usize, from: SourceIp| {
        let body = json!({ "username": format!("user {}", n % 5), "password": "a wrong guess" });
        let mut request = post(LOGIN, &body).unwrap();
        for (name, value) in [
            ("x-forwarded-for", format!("192.0.2.{n}")),
            ("forwarded", format!("for=192.0.2.{n}")),
            ("x-real-ip", format!("192.0.2.{n}")),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request.extensions_mut().insert(from);
        functions[n % 2].invoke(&format!("ANY {LOGIN}"), &request).await.unwrap().status.as_u16()
    };
    for n in 0..20 {
        assert_eq!(guess(n, SourceIp("203.0.113.7")).await, 401, "{n}");
    }
    assert_eq!(guess(20, SourceIp("203.0.113.7")).await, 429);
    assert_eq!(guess(20, SourceIp("203.0.113.8")).await, 401);
}

#[tokio::test]
async fn what_opens_something_is_in_no_log_of_a_function() {
    let both = Both::start().await.unwrap();
    let mut asking = asking(&both);
    asking.push(("SERVICE_LOG".to_owned(), "trace".to_owned()));
    let store = both.database.store().await.unwrap();
    account(&store, "ada", Role::User).await.unwrap();
    let function = Function::start("auth", &asking).await.unwrap();
    let guess = "a-wrong-guess-of-mine";
    let wrong = send(&function, LOGIN, &json!({ "username": "ada", "password": guess })).await.unwrap();
    assert_eq!(wrong.status, 401, "{}", wrong.text());
    let right = send(&function, LOGIN, &json!({ "username": "ada", "password": PASSWORD })).await.unwrap();
    let cookie = right.success().map(|_| right.header("set-cookie").split(';').next().unwrap().to_owned());
    let cookie = cookie.unwrap();
    let key = format!("pd_{}", "e".repeat(64));
    let mut request = get("/api/auth/me").unwrap();
    request.headers_mut().insert("cookie", cookie.parse().unwrap());
    let me = function.invoke("ANY /api/auth/me", &request).await.unwrap();
    assert_eq!(me.json().unwrap()["authenticated"], true);
    request.headers_mut().insert("x-api-key", key.parse().unwrap());
    function.invoke("ANY /api/auth/me", &request).await.unwrap();

    let log = function.output();
    assert!(log.contains(LOGIN) && log.contains("\"level\":\"TRACE\""), "everything is told: {log}");
    let (_, session) = cookie.split_once('=').unwrap();
    for secret in [PASSWORD, guess, session, &key] {
        assert_eq!(log.lines().find(|line| line.contains(secret)), None);
    }
}

#[tokio::test]
async fn of_many_first_administrators_at_several_processes_one_wins() {
    let both = Both::start().await.unwrap();
    let functions = processes(&asking(&both), PROCESSES).await.unwrap();
    let bodies: Vec<Value> =
        (0..50).map(|n| json!({ "username": format!("ada {n}"), "password": PASSWORD })).collect();
    let answers = in_parallel(&functions, SETUP, bodies).await.unwrap();
    let won: Vec<&Answer> = answers.iter().filter(|answer| answer.status.is_success()).collect();
    assert_eq!(won.len(), 1);
    assert!(won[0].header("set-cookie").starts_with("__Host-svc_session="));
    for lost in answers.iter().filter(|answer| !answer.status.is_success()) {
        let code = lost.json().unwrap()["code"].clone();
        // Setting up is limited by address, and all of these have one.
        let is_known = code == "setup_unavailable" || code == "rate_limited";
        assert!(is_known && !lost.headers.contains_key("set-cookie"), "{}", lost.text());
    }
    let store = both.database.store().await.unwrap();
    let mut session = store.db().read().await.unwrap();
    assert_eq!(users::list(&mut session, &UserFilter::default(), None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_revoked_key_is_dead_in_every_function_at_once() {
    let both = Both::start().await.unwrap();
    let store = both.database.store().await.unwrap();
    let now = Clock::system().now();
    enabling::deploy(&store, true, now).await.unwrap();
    let functions = Deployment::new(asking(&both)).unwrap();
    let admin = account(&store, "admin", Role::Administrator).await.unwrap();
    let minted = callboard_auth::api_key::mint().unwrap();
    let key = NewKey {
        user: admin,
        name: "a key".to_owned(),
        key_hash: minted.hash,
        key_prefix: minted.shown.clone(),
        permission: KeyPermission::Full,
        projects: None,
        parent: None,
        created_by: admin,
        created_at: now,
        expires_at: None,
    };
    let mut session = store.db().begin().await.unwrap();
    let id = api_keys::insert(&mut session, &key).await.unwrap();
    session.commit().await.unwrap();

    // A route of every function that reads without naming anything.
    let document: Value = serde_json::from_slice(
        &std::fs::read(callboard_test_functions::served::infra("routes.json")).unwrap(),
    )
    .unwrap();
    let mut routes: BTreeMap<String, String> = BTreeMap::new();
    for route in document["routes"].as_array().unwrap() {
        let (path, function) = (route["path"].as_str().unwrap(), route["function"].as_str().unwrap());
        let is_asked = ROUTES.iter().any(|known| {
            known.pattern == path
                && known.method == routes::Method::Get
                && matches!(known.access, routes::Access::Roles(_))
        });
        if is_asked {
            let path = path.replace("{id}", "1").replace("{testCaseId}", "1").replace("{caseId}", "1");
            routes.entry(function.to_owned()).or_insert(path);
        }
    }
    assert!(routes.len() >= 8, "{routes:?}");
    let ask = async |path: &str| -> Result<Answer> {
        let (mut parts, body) = get(path)?.into_parts();
        parts.headers.insert("x-api-key", minted.text.parse().context("a key")?);
        functions.send(&Request::<Bytes>::from_parts(parts, body)).await
    };
    for (function, path) in &routes {
        let answer = ask(path).await.unwrap();
        assert!(![401, 403, 500].contains(&answer.status.as_u16()), "{function} {path}: {}", answer.text());
    }
    let mut session = store.db().begin().await.unwrap();
    api_keys::revoke(&mut session, id, now).await.unwrap();
    session.commit().await.unwrap();
    for (function, path) in &routes {
        let answer = ask(path).await.unwrap();
        assert_eq!(answer.status.as_u16(), 401, "{function} {path}: {}", answer.text());
    }
}

#[tokio::test]
async fn pages_play_videos_from_the_bucket_and_from_nowhere_else() {
    let both = Both::start().await.unwrap();
    let functions = Deployment::new(settings(&both.database, &both.bucket)).unwrap();
    let page = functions.send(&get("/docs").unwrap()).await.unwrap();
    let endpoint = both.bucket.settings();
    let (_, endpoint) = endpoint.iter().find(|(name, _)| name == "SERVICE_S3_ENDPOINT").unwrap();
    let policy = page.header("content-security-policy");
    assert!(policy.contains(&format!("; media-src 'self' {endpoint}; ")), "{policy}");
}
