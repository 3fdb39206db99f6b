//! A file link is made for an account, and ends with what that account may
//! see.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use callboard_store::accounts::assignments;
use callboard_store::accounts::users::{self, UserRow};
use callboard_test_support::accounts::secured_settings;
use callboard_test_support::{Client, Service};
use reqwest::StatusCode;

use super::{ask, path_of, store};

async fn change(service: &Service, user: UserId, change: impl FnOnce(&mut UserRow)) {
    let mut session = service.state().store().db().begin().await.expect("a session");
    let mut row = users::lock(&mut session, user).await.expect("a row").expect("an account");
    change(&mut row);
    users::save(&mut session, &row).await.expect("saved");
    session.commit().await.expect("saved");
}

async fn links_end_with_what_their_holder_may_see(backend: Backend) {
    let open = Service::start(backend).await.expect("a service");
    let page = format!("/api/files/{}index.html", store(&open, "shop").await.report);
    store(&open, "other").await;
    let service = Service::over(open.into_database().await, &secured_settings()).await.expect("a service");
    let project: i64 =
        page["/api/files/project-".len()..].split('/').next().and_then(|id| id.parse().ok()).expect("an id");
    let project = ProjectId(project);

    let bob = service.account("bob", Role::User).await.expect("an account");
    service.assign(bob, Some(project)).await.expect("assigned");
    let browser = service.browser_of(bob).await.expect("a browser");
    let program = service.program_of(bob, KeyPermission::Read).await.expect("a program");
    let link = async |client: &Client| {
        let answer = ask(client, &page, &[]).await;
        assert_eq!(answer.status, StatusCode::FOUND, "{}", answer.text());
        path_of(answer.header("location")).to_owned()
    };
    // The link is all that is shown: no cookie and no key.
    let opens = async |path: &str| ask(service.client(), path, &[]).await.status;

    assert_eq!(ask(service.client(), &page, &[]).await.status, StatusCode::UNAUTHORIZED);
    for path in [link(&browser).await, link(&program).await] {
        assert_eq!(opens(&path).await, StatusCode::OK);
        let drawing = path.replace("index.html", "drawing.svg");
        assert_eq!(opens(&drawing).await, StatusCode::OK);

        let mut session = service.state().store().db().begin().await.expect("a session");
        assignments::remove(&mut session, bob, project).await.expect("removed");
        session.commit().await.expect("removed");
        assert_eq!(opens(&path).await, StatusCode::NOT_FOUND);
        let elsewhere = ProjectId(project.get() + 1);
        service.assign(bob, Some(elsewhere)).await.expect("assigned");
        assert_eq!(opens(&path).await, StatusCode::NOT_FOUND);
        service.assign(bob, Some(project)).await.expect("assigned");
        assert_eq!(opens(&path).await, StatusCode::OK);

        change(&service, bob, |row| row.disabled_at = Some(Timestamp(1))).await;
        assert_eq!(opens(&path).await, StatusCode::NOT_FOUND);
        change(&service, bob, |row| row.disabled_at = None).await;
        assert_eq!(opens(&path).await, StatusCode::OK);
    }
    let (revoked, kept) = (link(&program).await, link(&browser).await);
    crate::store::sql(&service, "UPDATE api_keys SET revoked_at = 1").await;
    assert_eq!((opens(&revoked).await, opens(&kept).await), (StatusCode::NOT_FOUND, StatusCode::OK));
    crate::store::sql(&service, "UPDATE api_keys SET revoked_at = NULL, expires_at = 1").await;
    assert_eq!(opens(&revoked).await, StatusCode::NOT_FOUND);
    let program = service.program_of(bob, KeyPermission::Read).await.expect("a program");
    let path = link(&program).await;
    change(&service, bob, |row| row.session_epoch += 1).await;
    assert_eq!(opens(&path).await, StatusCode::NOT_FOUND);
    assert_eq!(opens(&link(&program).await).await, StatusCode::OK);
}

#[tokio::test]
async fn links_end_with_what_their_holder_may_see_on_sqlite() {
    links_end_with_what_their_holder_may_see(Backend::Sqlite).await;
}

#[tokio::test]
async fn links_end_with_what_their_holder_may_see_on_postgres() {
    links_end_with_what_their_holder_may_see(Backend::Postgres).await;
}
