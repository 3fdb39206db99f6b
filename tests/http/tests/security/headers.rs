//! Under which names the service answers, and to pages of which origin.

use callboard_store::Backend;
use callboard_test_support::{Service, TestDatabase, for_each_service};
use reqwest::Method;
use serde_json::json;

use super::{refusal, refused, send, settings};

#[tokio::test]
async fn behind_tls_browsers_are_told_to_stay_there() {
    let settings = settings(&[("SERVICE_SITE_URL", "https://tests.example.org")]);
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let service = Service::over(database, &settings).await.expect("a service");
    let client = service.client().with_header("host", "tests.example.org").expect("a header");
    for path in ["/api/projects", "/", "/api/nothing"] {
        let answer = client.get(path).await.expect("an answer");
        assert_eq!(answer.header("strict-transport-security"), "max-age=31536000", "{path}");
    }
}

#[tokio::test]
async fn the_service_answers_to_its_own_names_only() {
    let site = [("SERVICE_SITE_URL", "https://tests.example.org"), ("SERVICE_HOST", "0.0.0.0")];
    let listed = [("SERVICE_ALLOWED_HOSTS", "tests.example.org"), ("SERVICE_HOST", "0.0.0.0")];
    let local: [(&str, &str); 0] = [];
    for (more, own) in
        [(&local[..], None), (&site[..], Some("tests.example.org")), (&listed[..], Some("tests.example.org"))]
    {
        let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
        let service = Service::over(database, &settings(more)).await.expect("a service");
        let ask = async |host: &str, path: &str| {
            service.client().with_header("host", host).expect("a header").get(path).await.expect("an answer")
        };
        let good = ["10.0.0.7", "127.0.0.1:3000", "[::1]:3000", "callboard", "localhost:3000", "a.localhost"];
        for host in good.into_iter().chain(own) {
            assert_eq!(ask(host, "/api/projects").await.status, 200, "{host} with {more:?}");
        }
        for host in [
            "evil.example",
            "tests.example.org.evil.example",
            "tests.example.org.",
            "eviltests.example.org",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "a@tests.example.org",
        ] {
            let answer = ask(host, "/api/projects").await;
            assert_eq!(refusal(&answer), refused(421, "host_not_allowed"), "{host} with {more:?}");
            assert_eq!(ask(host, "/").await.status, 421, "{host} with {more:?}");
            let posted = service.client().with_header("host", host).expect("a header");
            let body = json!({ "text": "web", "color": "teal" });
            assert_eq!(send(&posted, Method::POST, "/api/tags", body).await.status, 421, "{host}");
            assert_eq!(ask(host, "/api/health").await.status, 200, "those who watch over it may ask");
        }
        assert_eq!(service.client().json("/api/tags").await.expect("tags")["items"], json!([]));
    }
}

#[tokio::test]
async fn an_origin_is_ours_whole_or_not_at_all() {
    for_each_service(async |service| {
        let own = service.base_url();
        let port: u16 = own.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        for origin in [
            "null".to_owned(),
            "https://evil.example".to_owned(),
            format!("https://127.0.0.1:{port}"),
            format!("http://127.0.0.1:{}", port ^ 1),
            "http://127.0.0.1".to_owned(),
            format!("http://127.0.0.1.:{port}"),
            format!("http://127.0.0.1:{port}."),
            format!("http://127.0.0.1:{port}.evil.example"),
            format!("http://127.0.0.1.evil.example:{port}"),
            format!("http://evil-127.0.0.1:{port}"),
            format!("http://evil.example:{port}"),
            format!("http://a@127.0.0.1:{port}"),
            format!("{own}/path"),
            format!("{own} {own}"),
        ] {
            let page = service.client().with_header("origin", &origin).expect("a header");
            let body = json!({ "text": "web", "color": "teal" });
            let answer = send(&page, Method::POST, "/api/tags", body).await;
            assert_eq!(refusal(&answer), refused(403, "origin_not_allowed"), "{origin}");
            assert_eq!(answer.header("access-control-allow-origin"), "");
        }
        assert_eq!(service.client().json("/api/tags").await.expect("tags")["items"], json!([]));
        let page = service.client().with_header("origin", own).expect("a header");
        let body = json!({ "text": "web", "color": "teal" });
        send(&page, Method::POST, "/api/tags", body).await.success().expect("one's own page may");
    })
    .await;
}
