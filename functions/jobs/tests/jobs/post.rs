//! Mails go through a mail server, once, and are tried again when it is busy.

use std::time::Duration;

use callboard_auth::username::username_key;
use callboard_domain::account::Role;
use callboard_domain::ids::UserId;
use callboard_fn_jobs::{Budget, run_due};
use callboard_http::AppState;
use callboard_platform::mail::is_configured;
use callboard_query::accounts::mails::{Notice, NoticeMail, ResetMail};
use callboard_store::Db;
use callboard_store::accounts::users::{self, Email, EmailSource, Saved, UserRow};
use callboard_store::jobs::{self, Payload};
use callboard_test_support::{MailServer, TestDatabase, for_each_database};
use sqlx::Row as _;

use crate::support::{Time, state};

const ADDRESS: &str = "ada@example.org";

async fn mailing(database: &TestDatabase, time: &Time, server: &MailServer) -> AppState {
    let url = server.url();
    let settings = [
        ("SERVICE_SMTP_URL", url.as_str()),
        ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
        ("SERVICE_SITE_URL", "https://tests.example.org"),
    ];
    state(database, time, &settings).await
}

/// An account whose address is trusted.
async fn account(state: &AppState, name: &str) -> UserId {
    let mut session = state.store().db().begin().await.expect("a transaction");
    let id = users::new_id(&mut session).await.expect("done");
    let user = UserRow {
        id,
        username: name.to_owned(),
        username_key: username_key(name),
        password: "$scrypt$".to_owned(),
        role: Role::User,
        name: None,
        email: Some(Email {
            address: ADDRESS.to_owned(),
            source: EmailSource::Verified,
            verified_at: Some(state.now()),
        }),
        avatar: None,
        oauth: None,
        session_epoch: 0,
        disabled_at: None,
        created_at: state.now(),
        updated_at: state.now(),
    };
    assert_eq!(users::insert(&mut session, &user).await.expect("done"), Saved::Done);
    session.commit().await.expect("committed");
    id
}

async fn enqueue<P: Payload>(state: &AppState, payload: &P) {
    let mut session = state.store().db().begin().await.expect("a transaction");
    assert!(jobs::enqueue(&mut session, "mail:7", None, payload, state.now()).await.expect("done"));
    session.commit().await.expect("committed");
}

fn notice(user: UserId) -> NoticeMail {
    NoticeMail { user: user.get(), address: ADDRESS.to_owned(), notice: Notice::PasswordChanged }
}

async fn run(state: &AppState) {
    run_due(state, Budget::new(Duration::from_secs(20))).await.expect("done");
}

/// State, attempts, payload and error of the mail's job.
async fn job(state: &AppState) -> (String, i64, String, String) {
    const JOB: &str =
        "SELECT state, CAST(attempts AS BIGINT), payload, COALESCE(error, '') FROM jobs WHERE key = 'mail:7'";
    match state.store().db() {
        Db::Sqlite { readers, .. } => {
            let row = sqlx::query(JOB)
                .fetch_one(&mut *readers.get().await.expect("a connection"))
                .await
                .expect("rows");
            (row.get(0), row.get(1), row.get(2), row.get(3))
        }
        Db::Postgres(pool) => {
            let row = sqlx::query(JOB)
                .fetch_one(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("rows");
            (row.get(0), row.get(1), row.get(2), row.get(3))
        }
    }
}

#[tokio::test]
async fn a_mail_arrives_once_and_with_its_headers() {
    for_each_database(async |database| {
        let (time, server) = (Time::new(), MailServer::start().await.unwrap());
        let state = mailing(database, &time, &server).await;
        assert!(is_configured(state.config()));
        account(&state, "ada <ada>").await;
        enqueue(&state, &ResetMail { address: ADDRESS.to_owned() }).await;
        run(&state).await;

        let received = server.received();
        assert_eq!(received.len(), 1, "{:?}", job(&state).await);
        let mail = &received[0];
        assert_eq!(
            (mail.from.as_str(), mail.to.as_slice()),
            ("tests@example.org", &[ADDRESS.to_owned()][..])
        );
        assert_eq!(mail.header("From").as_deref(), Some("Callboard <tests@example.org>"));
        assert_eq!(mail.header("To").as_deref(), Some(ADDRESS));
        assert_eq!(mail.header("Subject").as_deref(), Some("Reset your password"));
        assert_eq!(mail.header("Date").as_deref(), Some("Thu, 01 Jan 2026 10:00:00 +0000"));
        assert_eq!(mail.header("Auto-Submitted").as_deref(), Some("auto-generated"));
        assert!(mail.header("Message-ID").unwrap().ends_with("@example.org>"));
        assert!(mail.header("Content-Type").unwrap().starts_with("multipart/alternative"));
        // Long lines are folded with soft breaks.
        let content = mail.content.replace("=\r\n", "").replace("=3D", "=");
        assert!(content.contains("https://tests.example.org/reset#token=srp_"), "{content}");
        assert!(content.contains("&lt;ada&gt;"), "{content}");

        let (ended, _, payload, _) = job(&state).await;
        assert_eq!((ended.as_str(), payload.as_str()), ("done", "{}"));
        time.advance_ms(10 * 60 * 1000);
        run(&state).await;
        assert_eq!(server.received().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_and_in_the_end_no_more() {
    for_each_database(async |database| {
        let (time, server) = (Time::new(), MailServer::start().await.unwrap());
        let state = mailing(database, &time, &server).await;
        server.refuse(Some("450 4.2.0 come back later"));
        let user = account(&state, "ada").await;
        enqueue(&state, &notice(user)).await;
        for attempt in 1..8 {
            run(&state).await;
            let (waiting, attempts, _, error) = job(&state).await;
            assert_eq!((waiting.as_str(), attempts), ("queued", attempt), "{error}");
            assert!(error.contains("450"), "{error}");
            time.advance_ms(5_000 << attempt);
        }
        run(&state).await;
        let (parked, attempts, ..) = job(&state).await;
        assert_eq!((parked.as_str(), attempts), ("parked", 8));
        assert_eq!(server.received(), []);
        let counts = jobs::counts(&mut state.store().db().read().await.unwrap()).await.unwrap();
        assert_eq!(counts.parked, 1);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_back_gets_the_mail() {
    for_each_database(async |database| {
        let (time, server) = (Time::new(), MailServer::start().await.unwrap());
        let state = mailing(database, &time, &server).await;
        account(&state, "ada").await;
        enqueue(&state, &ResetMail { address: ADDRESS.to_owned() }).await;
        server.refuse(Some("450 4.2.0 come back later"));
        for attempt in 1..6 {
            run(&state).await;
            time.advance_ms(5_000 << attempt);
        }
        server.refuse(None);
        run(&state).await;
        assert_eq!((server.received().len(), job(&state).await.0.as_str()), (1, "done"));
    })
    .await;
}

#[tokio::test]
async fn a_mail_that_can_never_arrive_is_given_up_at_once_and_forgotten() {
    for_each_database(async |database| {
        let (time, server) = (Time::new(), MailServer::start().await.unwrap());
        let state = mailing(database, &time, &server).await;
        server.refuse(Some("550 5.1.1 nobody of that name"));
        account(&state, "ada").await;
        enqueue(&state, &ResetMail { address: ADDRESS.to_owned() }).await;
        run(&state).await;
        let (parked, attempts, payload, error) = job(&state).await;
        assert_eq!((parked.as_str(), attempts, payload.as_str()), ("parked", 1, "{}"), "{error}");
    })
    .await;
}
