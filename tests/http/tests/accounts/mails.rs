//! Mailed links: who gets one, what it opens, and how often.

use std::time::Duration;

use callboard_domain::account::Role;
use callboard_domain::ids::UserId;
use callboard_fn_jobs::{Budget, run_due};
use callboard_query::accounts::mails;
use callboard_store::Backend;
use callboard_store::accounts::tokens::TokenPurpose;
use callboard_store::accounts::users::{self, Email, EmailSource, OauthLink, UserRow};
use callboard_store::audit::{self, AuditFilter};
use callboard_store::jobs;
use callboard_test_support::accounts::{PASSWORD, trusted};
use callboard_test_support::{MailServer, ReceivedMail, Service, TestDatabase, for_each_secured_service};
use futures::future::join_all;
use serde_json::json;

use super::{is_signed_in, me, patiently, refusal, refused, secured_with, sign_in};

const FORGOT: &str = "/api/auth/forgot-password";
const RESET: &str = "/api/auth/reset-password";
const NEW_PASSWORD: &str = "another battery staple";

/// A service that sends mail, and where the mail goes.
async fn mailing(backend: Backend) -> (Service, MailServer) {
    mailing_with(backend, "off").await
}

async fn mailing_with(backend: Backend, limits: &str) -> (Service, MailServer) {
    let server = MailServer::start().await.expect("a mail server");
    let url = server.url();
    let settings = secured_with(&[
        ("SERVICE_SMTP_URL", url.as_str()),
        ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
        ("SERVICE_SITE_URL", "https://tests.example.org"),
        ("SERVICE_RATE_LIMITS", limits),
    ]);
    let database = TestDatabase::fresh(backend).await.expect("a database");
    (Service::over(database, &settings).await.expect("a service"), server)
}

/// Waits until everything that was enqueued is done, by whomever.
async fn work(service: &Service) {
    loop {
        run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
        let mut session = service.state().store().db().read().await.expect("a session");
        let counts = jobs::counts(&mut session).await.expect("counts");
        assert_eq!(counts.parked, 0);
        if counts.queued + counts.leased == 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// The token of the link in a mail.
fn token_of(mail: &ReceivedMail) -> String {
    // Long lines are folded with soft breaks, and `=` is encoded.
    let content = mail.content.replace("=\r\n", "").replace("=3D", "=");
    let (_, rest) = content.split_once("#token=").expect("a link");
    rest.chars().take_while(|char| char.is_ascii_alphanumeric() || *char == '_').collect()
}

async fn token(service: &Service, user: UserId, purpose: TokenPurpose, address: &str) -> String {
    let (store, now) = (service.state().store(), service.state().now());
    mails::mint(store, user, purpose, Some(address.to_owned()), now).await.expect("a token").text
}

#[tokio::test]
async fn forgetting_a_password_answers_everybody_alike_and_mails_the_owner_only() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let (service, server) = mailing(backend).await;
        let known = |user: &mut UserRow| user.email = trusted("ada@example.org");
        service.account_with("ada", Role::User, known).await.expect("an account");
        let provided = |user: &mut UserRow| {
            user.password = String::new();
            user.oauth = Some(OauthLink { provider: "idp".to_owned(), id: "1".to_owned() });
            user.email = trusted("eve@example.org");
        };
        service.account_with("eve", Role::User, provided).await.expect("an account");
        let unproven = |user: &mut UserRow| {
            let address = "bob@example.org".to_owned();
            user.email = Some(Email { address, source: EmailSource::Own, verified_at: None });
        };
        service.account_with("bob", Role::User, unproven).await.expect("an account");

        // The public name of the service is the only host a link can have.
        let client = service.client().with_header("host", "tests.example.org").expect("a header");
        let liar = client.with_header("x-forwarded-host", "evil.example.org").expect("a header");
        let mut bodies = Vec::new();
        for address in [
            "ADA@example.org",
            "nobody@example.org",
            "eve@example.org",
            "bob@example.org",
            "\u{1f4a9}",
            &"x".repeat(5000),
        ] {
            let answer = liar.post(FORGOT, &json!({ "email": address })).await.expect("an answer");
            assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
            bodies.push(answer.body);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]));
        work(&service).await;
        let received = server.received();
        assert_eq!(received.len(), 1, "{received:?}");
        assert_eq!(received[0].to, ["ada@example.org"]);
        assert!(
            received[0].content.contains("https://tests.example.org/reset#token"),
            "{}",
            received[0].content
        );
        assert!(!received[0].content.contains("evil"));

        let body = json!({ "token": token_of(&received[0]), "password": NEW_PASSWORD });
        patiently(&client, RESET, body).await.success().expect("set");
        sign_in(&client, "ada", NEW_PASSWORD).await.success().expect("signed in");
        work(&service).await;
        let notice = &server.received()[1];
        assert_eq!(notice.header("Subject").as_deref(), Some("Your password was changed"));
    }
}

#[tokio::test]
async fn a_link_leads_to_the_configured_address_or_is_not_sent() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let (named, server) = mailing(backend).await;
        let url = server.url();
        let nameless = secured_with(&[
            ("SERVICE_SMTP_URL", url.as_str()),
            ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
            // Beyond this machine, and under whatever name.
            ("SERVICE_HOST", "0.0.0.0"),
        ]);
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let nameless = Service::over(database, &nameless).await.expect("a service");
        for (service, status) in [(&named, 421), (&nameless, 200)] {
            let known = |user: &mut UserRow| user.email = trusted("ada@example.org");
            service.account_with("ada", Role::User, known).await.expect("an account");
            let liar = service.client().with_header("host", "evil.example.org").expect("a header");
            let liar = liar.with_header("x-forwarded-host", "evil.example.org").expect("a header");
            let answer = liar.post(FORGOT, &json!({ "email": "ada@example.org" })).await.expect("an answer");
            assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
            work(service).await;
            assert_eq!(server.received().len(), 0, "{:?}", server.received());
        }
    }
}

#[tokio::test]
async fn a_link_sets_one_password_and_ends_every_session() {
    for_each_secured_service(async |service| {
        let known = |user: &mut UserRow| user.email = trusted("ada@example.org");
        let ada = service.account_with("ada", Role::User, known).await.expect("an account");
        let browser = service.browser_of(ada).await.expect("a browser");
        let older = token(service, ada, TokenPurpose::Reset, "ada@example.org").await;
        let verify = token(service, ada, TokenPurpose::Verify, "ada@example.org").await;
        let newer = token(service, ada, TokenPurpose::Reset, "ada@example.org").await;
        let reset = async |token: &str, password: &str| {
            patiently(&browser, RESET, json!({ "token": token, "password": password })).await
        };
        let short = reset(&newer, "short").await;
        assert_eq!(refusal(&short), refused(400, "invalid_field"));
        for useless in [older.as_str(), &verify, "srp_", "", &newer[..newer.len() - 1], "\u{1f4a9}"] {
            let answer = reset(useless, NEW_PASSWORD).await;
            assert_eq!(answer.status.as_u16(), 400, "{useless}");
        }
        assert!(is_signed_in(&browser).await);
        // The class of these calls allows ten in a quarter of an hour.
        reset(&newer, NEW_PASSWORD).await.success().expect("set");
        assert_eq!(browser.cookie("svc_session"), None);
        assert_eq!(refusal(&reset(&newer, NEW_PASSWORD).await), refused(400, "invalid_or_expired_token"));
        sign_in(&browser, "ada", NEW_PASSWORD).await.success().expect("signed in");
        assert_eq!(me(&browser).await["user"]["emailVerified"], true, "who reads the mail owns the address");
        let limited = [reset("x", NEW_PASSWORD).await, reset("x", NEW_PASSWORD).await];
        assert_eq!(refusal(&limited[1]), refused(429, "rate_limited"));
    })
    .await;
}

async fn one_of_many(backend: Backend) {
    let (service, _server) = mailing(backend).await;
    let ada = service.account("ada", Role::User).await.expect("an account");
    let token = token(&service, ada, TokenPurpose::Reset, "ada@example.org").await;
    let client = service.client();
    let answers = join_all((0..20).map(|number| {
        let body = json!({ "token": token, "password": format!("{NEW_PASSWORD} {number}") });
        patiently(client, RESET, body)
    }))
    .await;
    let won: Vec<usize> = (0..20).filter(|number| answers[*number].status.is_success()).collect();
    assert_eq!(won.len(), 1);
    let lost = answers.iter().filter(|answer| !answer.status.is_success());
    assert!(lost.into_iter().all(|answer| refusal(answer) == refused(400, "invalid_or_expired_token")));
    sign_in(client, "ada", &format!("{NEW_PASSWORD} {}", won[0])).await.success().expect("signed in");
}

#[tokio::test]
async fn of_many_uses_of_one_link_one_counts_on_sqlite() {
    one_of_many(Backend::Sqlite).await;
}

#[tokio::test]
async fn of_many_uses_of_one_link_one_counts_on_postgres() {
    one_of_many(Backend::Postgres).await;
}

#[tokio::test]
async fn a_link_proves_the_address_it_was_sent_to() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let (service, server) = mailing(backend).await;
        let own = |address: &str| {
            Some(Email { address: address.to_owned(), source: EmailSource::Own, verified_at: None })
        };
        let ada = service.account_with("ada", Role::User, |user| user.email = own("ada@example.org")).await;
        let ada = ada.expect("an account");
        let browser = service.browser_of(ada).await.expect("a browser");
        let send = async || browser.post("/api/auth/send-verify-email", &json!({})).await.expect("an answer");
        assert_eq!(send().await.success().expect("sent")["alreadyVerified"], false);
        work(&service).await;
        let first = token_of(&server.received()[0]);
        let prove = async |token: &str| {
            browser.get(&format!("/api/auth/verify-email?token={token}")).await.expect("an answer")
        };

        let reset = token(&service, ada, TokenPurpose::Reset, "ada@example.org").await;
        for useless in [reset.as_str(), "", "sve_x"] {
            assert_eq!(refusal(&prove(useless).await), refused(400, "invalid_or_expired_token"), "{useless}");
        }
        let as_reset = json!({ "token": first, "password": NEW_PASSWORD });
        assert_eq!(patiently(&browser, RESET, as_reset).await.status.as_u16(), 400);
        // A browser that opens the link itself is sent to the page and uses nothing up.
        let page = browser.with_header("accept", "text/html").expect("a header");
        let page = page.get(&format!("/api/auth/verify-email?token={first}")).await.expect("an answer");
        assert_eq!(
            (page.status.as_u16(), page.header("location")),
            (303, format!("/verify#token={first}").as_str())
        );

        // The address changes before the link is opened.
        let mut session = service.state().store().db().begin().await.expect("a session");
        let mut row = users::lock(&mut session, ada).await.expect("a row").expect("ada");
        row.email = own("other@example.org");
        users::save(&mut session, &row).await.expect("saved");
        session.commit().await.expect("saved");
        assert_eq!(refusal(&prove(&first).await), refused(400, "invalid_or_expired_token"));
        assert_eq!(me(&browser).await["user"]["emailVerified"], false);

        send().await.success().expect("sent");
        work(&service).await;
        let second = token_of(&server.received()[1]);
        assert_eq!(server.received()[1].to, ["other@example.org"]);
        prove(&second).await.success().expect("proven");
        assert_eq!(me(&browser).await["user"]["emailVerified"], true);
        assert_eq!(refusal(&prove(&second).await), refused(400, "invalid_or_expired_token"));
        assert_eq!(send().await.success().expect("nothing to do")["alreadyVerified"], true);

        let mut session = service.state().store().db().read().await.expect("a session");
        let noted = audit::list(&mut session, &AuditFilter::default(), 50).await.expect("entries");
        let asked = noted.iter().filter(|entry| entry.action == "email.verification_requested");
        let asked: Vec<_> = asked.map(|entry| (entry.user, entry.target_id)).collect();
        assert_eq!(asked, [(Some(ada), Some(ada.get())); 2], "each mail that was asked for, and no other");
    }
}

#[tokio::test]
async fn asking_often_fills_no_mailbox() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let (service, server) = mailing_with(backend, "on").await;
        let known = |user: &mut UserRow| user.email = trusted("ada@example.org");
        service.account_with("ada", Role::User, known).await.expect("an account");
        let unproven = |user: &mut UserRow| {
            let address = "bob@example.org".to_owned();
            user.email = Some(Email { address, source: EmailSource::Own, verified_at: None });
        };
        let bob = service.account_with("bob", Role::User, unproven).await.expect("an account");
        // Whoever asks is not told that the fourth mail within the hour is none.
        for address in ["ada@example.org", "ADA@example.org", "ada@example.ORG", "ada@example.org"] {
            let answer =
                service.client().post(FORGOT, &json!({ "email": address })).await.expect("an answer");
            assert_eq!(answer.success().expect("asked"), json!({ "success": true }));
            work(&service).await;
        }
        assert_eq!(server.received().len(), 3);

        let browser = service.browser_of(bob).await.expect("a browser");
        let send = async || browser.post("/api/auth/send-verify-email", &json!({})).await.expect("an answer");
        for _ in 0..5 {
            send().await.success().expect("sent");
        }
        assert_eq!(refusal(&send().await), refused(429, "rate_limited"));
    }
}

#[tokio::test]
async fn without_a_mail_server_who_may_know_is_told() {
    for_each_secured_service(async |service| {
        let unproven = |user: &mut UserRow| {
            let address = "ada@example.org".to_owned();
            user.email = Some(Email { address, source: EmailSource::Own, verified_at: None });
        };
        let ada = service.account_with("ada", Role::User, unproven).await.expect("an account");
        let bob = service.account("bob", Role::User).await.expect("an account");
        let send = async |user| {
            let browser = service.browser_of(user).await.expect("a browser");
            browser.post("/api/auth/send-verify-email", &json!({})).await.expect("an answer")
        };
        assert_eq!(refusal(&send(ada).await), refused(503, "smtp_not_configured"));
        assert_eq!(refusal(&send(bob).await), refused(409, "no_email"));
        let body = json!({ "email": "ada@example.org" });
        let answers = join_all((0..5).map(|_| service.client().post(FORGOT, &body))).await;
        assert!(answers.into_iter().all(|answer| answer.expect("an answer").status.as_u16() == 200));
        work(service).await;
        let limited = service.client().post(FORGOT, &body).await.expect("an answer");
        assert_eq!(refusal(&limited), refused(429, "rate_limited"));
        let nothing = service.client().post(FORGOT, &json!({})).await.expect("an answer");
        assert_eq!(nothing.status.as_u16(), 429, "counted before it is read");
        assert_eq!(sign_in(service.client(), "ada", PASSWORD).await.status.as_u16(), 200);
    })
    .await;
}
