//! Signing in with name and password, and not guessing.

use std::pin::pin;
use std::sync::mpsc;

use callboard_auth::client_address::{Peer, TrustProxy};
use callboard_domain::account::Role;
use callboard_domain::time::Timestamp;
use callboard_platform::hash_pool::Asker;
use callboard_store::Backend;
use callboard_store::accounts::users::OauthLink;
use callboard_test_support::accounts::{CHEAP_PASSWORD_HASH, PASSWORD};
use callboard_test_support::{Answer, Client, Service, TestDatabase, for_each_secured_service};
use futures::future::{Either, join_all, select};
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use serde_json::json;

use super::{is_signed_in, refusal, refused, secured_with, sign_in, signed_in};

const LOGIN: &str = "/api/auth/login";

async fn guess(client: &Client, username: &str) -> Answer {
    sign_in(client, username, "a wrong guess").await
}

#[tokio::test]
async fn a_refused_sign_in_does_not_say_why() {
    for_each_secured_service(async |service| {
        service.account("ada", Role::User).await.expect("an account");
        let disabled = |user: &mut callboard_store::accounts::users::UserRow| {
            user.disabled_at = Some(Timestamp(1));
        };
        service.account_with("bob", Role::User, disabled).await.expect("an account");
        let from_elsewhere = |user: &mut callboard_store::accounts::users::UserRow| {
            user.password = String::new();
            user.oauth = Some(OauthLink { provider: "idp".to_owned(), id: "1".to_owned() });
        };
        service.account_with("eve", Role::User, from_elsewhere).await.expect("an account");

        let client = service.client();
        let comparable = |answer: Answer| {
            let mut headers = answer.headers.clone();
            for changing in ["date", "x-request-id"] {
                headers.remove(changing);
            }
            (answer.status, headers, answer.body)
        };
        let wrong = guess(client, "ada").await;
        assert_eq!(refusal(&wrong), refused(401, "invalid_credentials"));
        let wrong = comparable(wrong);
        for name in ["nobody", "bob", "eve"] {
            assert_eq!(comparable(sign_in(client, name, PASSWORD).await), wrong, "{name}");
        }
        // The right password of an account without one is not the empty one.
        let empty =
            client.post(LOGIN, &json!({ "username": "eve", "password": "" })).await.expect("an answer");
        assert_eq!(refusal(&empty), refused(400, "invalid_field"));
        let without = client.post(LOGIN, &json!({ "username": "eve" })).await.expect("an answer");
        assert_eq!(
            without.json().expect("JSON")["data"],
            json!({ "field": "password", "fields": ["password"] })
        );
    })
    .await;
}

/// A form as a browser without scripts sends it, from a page of this origin.
async fn form(browser: &Client, path: &str, origin: Option<&str>, fields: &[(&str, &str)]) -> Answer {
    let body = Url::parse_with_params(browser.base_url(), fields).expect("an address");
    let body = body.query().unwrap_or_default().to_owned();
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let request = browser.request(Method::POST, path).header(kind.0, kind.1).body(body);
    let request = match origin {
        Some(origin) => request.header("origin", origin),
        None => request,
    };
    browser.send(request).await.expect("an answer")
}

#[tokio::test]
async fn a_form_signs_in_and_out_from_our_own_pages_only() {
    for_each_secured_service(async |service| {
        service.account("ada", Role::User).await.expect("an account");
        let browser = service.client().browser();
        let own = browser.base_url().to_owned();
        let with = |password, next| [("username", "ada"), ("password", password), ("next", next)];

        for foreign in [Some("https://evil.example"), Some("null")] {
            let answer = form(&browser, LOGIN, foreign, &with(PASSWORD, "/")).await;
            assert_eq!(refusal(&answer), refused(403, "origin_not_allowed"));
        }
        // Browsers always say where a form comes from; and nothing else takes one.
        let unsaid = form(&browser, LOGIN, None, &with(PASSWORD, "/")).await;
        assert_eq!(refusal(&unsaid), refused(415, "unsupported_media_type"));
        let other = form(&browser, "/api/auth/setup", Some(&own), &with(PASSWORD, "/")).await;
        assert_eq!(refusal(&other), refused(415, "unsupported_media_type"));
        assert!(!is_signed_in(&browser).await);

        let wrong = form(&browser, LOGIN, Some(&own), &with("a wrong guess", "/projects?q=a")).await;
        assert_eq!(wrong.status, 303);
        assert_eq!(wrong.header("location"), "/login?error=invalid_credentials&next=%2Fprojects%3Fq%3Da");
        assert!(!is_signed_in(&browser).await);
        let again = browser.get(wrong.header("location")).await.expect("a page").text();
        assert!(again.contains("name=\"username\" value=\"ada\""), "{again}");
        let anew = browser.get("/login").await.expect("a page").text();
        assert!(anew.contains("name=\"username\" value=\"\""), "{anew}");

        let right = form(&browser, LOGIN, Some(&own), &with(PASSWORD, "/projects?q=a")).await;
        assert_eq!((right.status.as_u16(), right.header("location")), (303, "/projects?q=a"));
        assert!(is_signed_in(&browser).await);
        let out = form(&browser, "/api/auth/logout", Some(&own), &[]).await;
        assert_eq!((out.status.as_u16(), out.header("location")), (303, "/login"));
        assert!(!is_signed_in(&browser).await);
        let later = browser.get("/login?error=invalid_credentials").await.expect("a page").text();
        assert!(later.contains("name=\"username\" value=\"\""), "whoever comes next: {later}");

        let elsewhere = form(&browser, LOGIN, Some(&own), &with(PASSWORD, "//evil.example/")).await;
        assert_eq!((elsewhere.status.as_u16(), elsewhere.header("location")), (303, "/"));
    })
    .await;
}

/// Takes all the room for hashes until what it answers is dropped.
async fn no_room_for_hashes(service: &Service) -> Vec<mpsc::Sender<()>> {
    let elsewhere = TrustProxy::Nobody.client(Some(Peer([192, 0, 2, 1].into())), &HeaderMap::new());
    let (taken, mut is_taken) = tokio::sync::mpsc::unbounded_channel();
    let room = std::thread::available_parallelism().map_or(1, usize::from);
    let held = (0..room).map(|_| {
        let (release, released) = mpsc::channel::<()>();
        let (work, taken) = (service.state().passwords().clone(), taken.clone());
        tokio::spawn(async move {
            let hold = move || {
                let _ = taken.send(());
                let _ = released.recv();
            };
            work.run(Asker::stranger(elsewhere), hold).await
        });
        release
    });
    let held = held.collect();
    is_taken.recv().await.expect("room for one hash at least");
    held
}

#[tokio::test]
async fn a_name_nobody_has_costs_a_hash_as_well() {
    for_each_secured_service(async |service| {
        service.account("ada", Role::User).await.expect("an account");
        let from_elsewhere = |user: &mut callboard_store::accounts::users::UserRow| {
            user.password = String::new();
            user.oauth = Some(OauthLink { provider: "idp".to_owned(), id: "1".to_owned() });
        };
        service.account_with("eve", Role::User, from_elsewhere).await.expect("an account");
        let client = service.client();
        for name in ["ada", "eve", "nobody"] {
            let held = no_room_for_hashes(service).await;
            let refusal = guess(client, name);
            let others = async {
                for _ in 0..20 {
                    is_signed_in(client).await;
                }
            };
            let mut refusal = pin!(refusal);
            match select(&mut refusal, pin!(others)).await {
                Either::Left(_) => panic!("{name} was refused without a hash"),
                Either::Right(_) => drop(held),
            }
            assert_eq!(refusal.await.status, 401, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_name_is_found_in_any_case_and_a_cheap_hash_is_replaced() {
    for_each_secured_service(async |service| {
        let cheap = |user: &mut callboard_store::accounts::users::UserRow| {
            user.password = CHEAP_PASSWORD_HASH.to_owned();
        };
        let ada = service.account_with("Ada", Role::Reporter, cheap).await.expect("an account");
        let browser = signed_in(service.client(), "ADA").await;
        assert!(is_signed_in(&browser).await);
        let mut session = service.state().store().db().read().await.expect("a session");
        let stored =
            callboard_store::accounts::users::get(&mut session, ada).await.expect("a row").expect("ada");
        assert!(stored.password.starts_with("$scrypt$ln=15,r=8,p=3$"));
        // Nobody else is signed out by that.
        assert_eq!(stored.session_epoch, 0);
    })
    .await;
}

#[tokio::test]
async fn the_sixth_failure_locks_the_account_for_everybody_but_its_own_browser() {
    for_each_secured_service(async |service| {
        let cheap = |user: &mut callboard_store::accounts::users::UserRow| {
            user.password = CHEAP_PASSWORD_HASH.to_owned();
        };
        service.account_with("ada", Role::User, cheap).await.expect("an account");
        let own = signed_in(service.client(), "ada").await;
        let twin = service.beside(&secured_with(&[])).await.expect("another process");
        for _ in 0..5 {
            assert_eq!(refusal(&guess(service.client(), "ada").await), refused(401, "invalid_credentials"));
        }
        for client in [service.client(), twin.client()] {
            let limited = sign_in(client, "ADA", PASSWORD).await;
            assert_eq!(refusal(&limited), refused(429, "rate_limited"));
            let wait: u64 = limited.header("retry-after").parse().expect("whole seconds");
            assert!((1..=900).contains(&wait), "{wait}");
        }
        sign_in(&own, "ada", PASSWORD).await.success().expect("known here");
    })
    .await;
}

#[tokio::test]
async fn an_address_fails_twenty_times_whatever_it_says_it_is() {
    for_each_secured_service(async |service| {
        let cheap = |user: &mut callboard_store::accounts::users::UserRow| {
            user.password = CHEAP_PASSWORD_HASH.to_owned();
        };
        for number in 0..21 {
            service.account_with(&format!("user {number}"), Role::User, cheap).await.expect("an account");
        }
        let mut statuses = Vec::new();
        for number in 0..30 {
            let mut liar = service.client().clone();
            for (header, value) in [
                ("x-forwarded-for", format!("192.0.2.{number}")),
                ("forwarded", format!("for=198.51.100.{number}")),
                ("x-real-ip", format!("203.0.113.{number}")),
                ("true-client-ip", format!("203.0.113.{number}")),
            ] {
                liar = liar.with_header(header, &value).expect("a header");
            }
            statuses.push(guess(&liar, &format!("user {}", number % 21)).await.status.as_u16());
        }
        assert_eq!(statuses, [[401; 20].as_slice(), &[429; 10]].concat());
    })
    .await;
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_address_it_names_is_counted() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let service =
        Service::over(database, &secured_with(&[("SERVICE_TRUST_PROXY", "1")])).await.expect("a service");
    let cheap =
        |user: &mut callboard_store::accounts::users::UserRow| user.password = CHEAP_PASSWORD_HASH.to_owned();
    for number in 0..5 {
        service.account_with(&format!("user {number}"), Role::User, cheap).await.expect("an account");
    }
    let from = |first: usize, last: &str| {
        service
            .client()
            .with_header("x-forwarded-for", &format!("192.0.2.{first}, {last}"))
            .expect("a header")
    };
    for number in 0..20 {
        let answer = guess(&from(number, "203.0.113.9"), &format!("user {}", number % 5)).await;
        assert_eq!(answer.status.as_u16(), 401, "{number}");
    }
    assert_eq!(guess(&from(99, "203.0.113.9"), "nobody").await.status.as_u16(), 429);
    assert_eq!(guess(&from(99, "203.0.113.10"), "nobody").await.status.as_u16(), 401);
}

#[tokio::test]
async fn parallel_guesses_over_several_processes_are_bounded() {
    for_each_secured_service(async |service| {
        let cheap = |user: &mut callboard_store::accounts::users::UserRow| {
            user.password = CHEAP_PASSWORD_HASH.to_owned();
        };
        service.account_with("ada", Role::User, cheap).await.expect("an account");
        let mut others = Vec::new();
        for _ in 0..3 {
            others.push(service.beside(&secured_with(&[])).await.expect("a process"));
        }
        let clients: Vec<&Client> =
            [service.client()].into_iter().chain(others.iter().map(Service::client)).collect();
        let guesses = (0..200).map(|number| guess(clients[number % clients.len()], "ada"));
        let answers = join_all(guesses).await;
        let count = |status: u16| answers.iter().filter(|answer| answer.status.as_u16() == status).count();
        assert!((5..=5 + 64).contains(&count(401)), "{} were looked at", count(401));
        assert_eq!(count(401) + count(429), 200);
        assert_eq!(guess(clients[0], "ada").await.status.as_u16(), 429);
        let fresh = service.beside(&secured_with(&[])).await.expect("a process");
        assert_eq!(sign_in(fresh.client(), "ada", PASSWORD).await.status.as_u16(), 429);
    })
    .await;
}

/// Signs many in at the same time, and none of them comes again.
async fn all_sign_in(client: &Client, names: impl Iterator<Item = String>) {
    let bodies: Vec<_> = names.map(|name| json!({ "username": name, "password": PASSWORD })).collect();
    let answers = join_all(bodies.iter().map(|body| client.post(LOGIN, body))).await;
    let answers: Vec<Answer> = answers.into_iter().map(|answer| answer.expect("an answer")).collect();
    let refused: Vec<_> = answers.iter().filter(|answer| !answer.status.is_success()).map(refusal).collect();
    assert_eq!(refused, []);
}

#[tokio::test]
async fn many_right_sign_ins_of_one_account_pass_together() {
    for_each_secured_service(async |service| {
        service.account("ci", Role::Reporter).await.expect("an account");
        all_sign_in(service.client(), (0..50).map(|_| "ci".to_owned())).await;
    })
    .await;
}

#[tokio::test]
async fn many_people_sign_in_together() {
    for_each_secured_service(async |service| {
        let name = |number: usize| format!("person {number}");
        for number in 0..40 {
            service.account(&name(number), Role::User).await.expect("an account");
        }
        all_sign_in(service.client(), (0..40).map(name)).await;
    })
    .await;
}
