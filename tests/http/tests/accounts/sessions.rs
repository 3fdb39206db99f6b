//! Session cookies: what they look like, and when they are over.

use callboard_auth::cookies::{CookieForm, SealedCookies};
use callboard_auth::keys::Secrets;
use callboard_auth::session_cookie::{DeviceClaims, SessionClaims};
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use callboard_store::accounts::sessions::{self, NewSession};
use callboard_store::accounts::users;
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Client, Service, for_each_secured_service};
use serde_json::json;

use super::{is_signed_in, patiently, refusal, refused, secured_with, sign_in, signed_in};

const NAME: &str = "svc_session";
const CHANGE: &str = "/api/auth/change-password";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A client that presents one session cookie and no other.
fn presenting(service: &Service, value: &str) -> Client {
    service.client().with_header("cookie", &format!("{NAME}={value}")).expect("a header")
}

async fn status(client: &Client) -> u16 {
    client.get("/api/projects").await.expect("an answer").status.as_u16()
}

#[tokio::test]
async fn the_cookie_is_out_of_reach_of_scripts_and_other_sites() {
    let service = Service::secured(Backend::Sqlite).await.expect("a service");
    service.account("ada", Role::User).await.expect("an account");
    let answer = sign_in(service.client(), "ada", PASSWORD).await;
    let set: Vec<String> = answer
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|set| set.to_str().expect("ASCII").to_owned())
        .collect();
    assert_eq!(set.len(), 2);
    let session = &set[0];
    assert!(session.starts_with("svc_session="), "{session}");
    assert!(session.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"), "{session}");
    assert!(set[1].starts_with("svc_device=") && set[1].contains("HttpOnly; SameSite=Lax"), "{set:?}");

    let proxied = service.beside(&secured_with(&[("SERVICE_TRUST_PROXY", "1")])).await.expect("a service");
    let safe = proxied.client().with_header("x-forwarded-proto", "https").expect("a header");
    let answer = sign_in(&safe, "ada", PASSWORD).await;
    let session = answer.header("set-cookie");
    assert!(session.starts_with("__Host-svc_session=") && session.ends_with("; Secure"), "{session}");
    assert!(!session.contains("Domain"));
}

#[tokio::test]
async fn a_session_ends_with_logout_and_a_copy_of_its_cookie_too() {
    for_each_secured_service(async |service| {
        service.account("ada", Role::User).await.expect("an account");
        let browser = signed_in(service.client(), "ada").await;
        let copy = browser.cookie(NAME).expect("a cookie");
        assert_eq!(status(&presenting(service, &copy)).await, 200);
        let away = browser.post("/api/auth/logout", &json!({})).await.expect("an answer");
        assert!(away.status.is_success());
        assert_eq!(browser.cookie(NAME), None);
        assert_eq!(status(&presenting(service, &copy)).await, 401);
        assert!(browser.post("/api/auth/logout", &json!({})).await.expect("an answer").status.is_success());
    })
    .await;
}

#[tokio::test]
async fn nothing_but_the_whole_cookie_of_a_live_session_opens() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::User).await.expect("an account");
        let browser = service.browser_of(ada).await.expect("a browser");
        let value = browser.cookie(NAME).expect("a cookie");
        for at in 0..value.len() {
            let mut altered = value.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'Q' } else { b'A' };
            let altered = String::from_utf8(altered).expect("ASCII");
            assert!(!is_signed_in(&presenting(service, &altered)).await, "character {at}");
        }
        assert_eq!(status(&presenting(service, &value)).await, 200);
        // What everybody is given while nobody signs in.
        assert_eq!(status(&presenting(service, "authentication-off")).await, 401);

        let state = service.state();
        let now = state.now();
        // Of an installation with another secret.
        let claims = SessionClaims::start(ada, 0, now).expect("claims");
        let theirs = SealedCookies::new(&Secrets::new(&[b"another secret of this length!!!"]));
        let sealed = theirs.set(&claims, CookieForm::Plain).expect("a cookie");
        assert_eq!(status(&with_set_cookie(service, sealed.to_str().expect("ASCII"))).await, 401);
        // Of another kind, under the name of a session.
        let device = state.cookies().set(&DeviceClaims::start(ada, now).expect("claims"), CookieForm::Plain);
        let device = device.expect("a cookie").to_str().expect("ASCII").replace("svc_device", NAME);
        assert_eq!(status(&with_set_cookie(service, &device)).await, 401);
        // Seven days and a second old; once by its cookie, once by its row.
        for (issued, ends) in
            [(now.millis() - 7 * DAY_MS - 1000, None), (now.millis(), Some(now.millis() - 1))]
        {
            let client = stored(service, ada, Timestamp(issued), ends.map(Timestamp)).await;
            assert_eq!(status(&client).await, 401);
        }
    })
    .await;
}

fn with_set_cookie(service: &Service, set: &str) -> Client {
    let client = service.client().browser();
    client.keep_cookie(set);
    client
}

/// A session that began at some time, as its row and its cookie say it.
async fn stored(service: &Service, user: UserId, began: Timestamp, row_ends: Option<Timestamp>) -> Client {
    let state = service.state();
    let claims = SessionClaims::start(user, 0, began).expect("claims");
    let new = NewSession {
        sid_hash: claims.sid_hash(),
        user,
        epoch: 0,
        auth_at: began,
        created_at: began,
        expires_at: row_ends.unwrap_or(claims.expires_at),
        method: "password",
        ip_hash: None,
        user_agent: None,
    };
    let mut session = state.store().db().begin().await.expect("a session");
    sessions::insert(&mut session, &new).await.expect("stored");
    session.commit().await.expect("stored");
    let set = state.cookies().set(&claims, CookieForm::Plain).expect("a cookie");
    with_set_cookie(service, set.to_str().expect("ASCII"))
}

#[tokio::test]
async fn a_new_sign_in_ends_the_session_it_is_sent_with() {
    for_each_secured_service(async |service| {
        service.account("ada", Role::User).await.expect("an account");
        let bob = service.account("bob", Role::User).await.expect("an account");
        let browser = service.browser_of(bob).await.expect("a browser");
        let before = browser.cookie(NAME).expect("a cookie");
        sign_in(&browser, "ada", PASSWORD).await.success().expect("signed in");
        assert_ne!(browser.cookie(NAME), Some(before.clone()));
        assert_eq!(status(&presenting(service, &before)).await, 401);
        assert_eq!(super::me(&browser).await["user"]["username"], "ada");
    })
    .await;
}

#[tokio::test]
async fn a_new_password_ends_every_other_session() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::User).await.expect("an account");
        let here = service.browser_of(ada).await.expect("a browser");
        let there = service.browser_of(ada).await.expect("a browser");
        let program = service.program_of(ada, KeyPermission::Full).await.expect("a program");
        let body = json!({ "currentPassword": PASSWORD, "newPassword": "another battery staple" });
        let by_key = program.post(CHANGE, &body).await.expect("an answer");
        assert_eq!(refusal(&by_key), refused(403, "session_required"));
        let short = json!({ "currentPassword": PASSWORD, "newPassword": "short" });
        let short = here.post(CHANGE, &short).await.expect("an answer");
        assert_eq!(short.json().expect("JSON")["data"]["field"], "newPassword");
        let wrong = json!({ "currentPassword": "not it", "newPassword": "another battery staple" });
        assert_eq!(refusal(&patiently(&here, CHANGE, wrong).await), refused(401, "invalid_credentials"));

        let before = here.cookie(NAME).expect("a cookie");
        patiently(&here, CHANGE, body).await.success().expect("changed");
        assert_eq!(status(&here).await, 200);
        assert_eq!(status(&there).await, 401);
        assert_eq!(status(&presenting(service, &before)).await, 401);
        // Keys are not sessions.
        assert_eq!(status(&program).await, 200);
        sign_in(service.client(), "ada", "another battery staple").await.success().expect("signed in");
        assert_eq!(sign_in(service.client(), "ada", PASSWORD).await.status.as_u16(), 401);
    })
    .await;
}

#[tokio::test]
async fn wrong_current_passwords_are_counted() {
    for_each_secured_service(async |service| {
        let cheap = |user: &mut users::UserRow| {
            user.password = callboard_test_support::accounts::CHEAP_PASSWORD_HASH.to_owned();
        };
        let ada = service.account_with("ada", Role::User, cheap).await.expect("an account");
        let browser = service.browser_of(ada).await.expect("a browser");
        let wrong = json!({ "currentPassword": "not it", "newPassword": "another battery staple" });
        for _ in 0..5 {
            assert_eq!(patiently(&browser, CHANGE, wrong.clone()).await.status.as_u16(), 401);
        }
        assert_eq!(refusal(&patiently(&browser, CHANGE, wrong).await), refused(429, "rate_limited"));
    })
    .await;
}

#[tokio::test]
async fn an_account_without_a_password_gets_one_after_a_recent_sign_in() {
    for_each_secured_service(async |service| {
        let none = |user: &mut users::UserRow| user.password = String::new();
        let ada = service.account_with("ada", Role::User, none).await.expect("an account");
        let now = service.state().now().millis();
        let long_ago = stored(service, ada, Timestamp(now - 16 * 60 * 1000), None).await;
        let body = json!({ "newPassword": PASSWORD });
        assert_eq!(
            refusal(&patiently(&long_ago, CHANGE, body.clone()).await),
            refused(403, "reauthentication_required")
        );
        let recent = service.browser_of(ada).await.expect("a browser");
        patiently(&recent, CHANGE, body).await.success().expect("set");
        assert_eq!(super::me(&recent).await["user"]["hasPassword"], true);
    })
    .await;
}

#[tokio::test]
async fn a_demoted_person_has_to_sign_in_again_and_their_key_can_do_less() {
    for_each_secured_service(async |service| {
        let bob = service.account("bob", Role::Reporter).await.expect("an account");
        service.assign(bob, None).await.expect("assigned");
        let browser = service.browser_of(bob).await.expect("a browser");
        let program = service.program_of(bob, KeyPermission::Full).await.expect("a program");
        let run = crate::builders::run("shop", "passed", Vec::new());
        let submit =
            async |client: &Client| client.post("/api/test-runs/submit", &run).await.expect("an answer");
        assert_eq!(submit(&program).await.status.as_u16(), 200);

        let mut session = service.state().store().db().begin().await.expect("a session");
        let mut row = users::lock(&mut session, bob).await.expect("a row").expect("bob");
        row.role = Role::User;
        row.session_epoch += 1;
        users::save(&mut session, &row).await.expect("saved");
        session.commit().await.expect("saved");
        assert_eq!(refusal(&submit(&browser).await), refused(401, "authentication_required"));
        assert_eq!(refusal(&submit(&program).await), refused(403, "insufficient_role"));
    })
    .await;
}

#[tokio::test]
async fn a_session_survives_a_rotation_of_the_secret_while_the_old_one_is_listed() {
    const NEW: &str = "9a0364b9e99bb480dd25e1f0284c8555";
    let old = callboard_test_support::access::AUTH_SECRET;
    let service = Service::secured(Backend::Sqlite).await.expect("a service");
    let ada = service.account("ada", Role::User).await.expect("an account");
    let browser = service.browser_of(ada).await.expect("a browser");
    let before = browser.cookie(NAME).expect("a cookie");

    let both = service.beside(&secured_with(&[("SERVICE_AUTH_SECRET", &format!("{NEW},{old}"))])).await;
    let both = both.expect("a service");
    let here = both.client().browser();
    here.keep_cookie(&format!("{NAME}={before}"));
    assert_eq!(status(&here).await, 200);
    let renewed = here.cookie(NAME).expect("a cookie");
    assert_ne!(renewed, before);

    let only_new = service.beside(&secured_with(&[("SERVICE_AUTH_SECRET", NEW)])).await.expect("a service");
    assert_eq!(status(&presenting(&only_new, &before)).await, 401);
    assert_eq!(status(&presenting(&only_new, &renewed)).await, 200);
}
