//! Who may call: keys and nothing else, refused in the order of the checks.

use callboard_domain::account::{KeyPermission, Role};
use callboard_store::Backend;
use callboard_test_support::accounts::{for_each_secured_service, secured_settings};
use callboard_test_support::{Answer, Service, TestDatabase};
use reqwest::Method;

use super::agent::Agent;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const NO_KEY: &str = "Bearer realm=\"callboard-mcp\"";

#[tokio::test]
async fn a_key_opens_the_endpoint_and_nothing_else_does() {
    for_each_secured_service(async |service| {
        let user = service.account("ada", Role::User).await.unwrap();
        let program = service.program_of(user, KeyPermission::Full).await.unwrap();
        let sent = program.request(Method::POST, "/mcp").build().unwrap();
        let bearer = sent.headers()["authorization"].to_str().unwrap().to_owned();
        let key = bearer.trim_start_matches("Bearer ");
        let anybody = Agent::at(service.client().clone(), "/mcp");
        let lower_case = format!("bearer {key}");
        let opened: [&[(&str, &str)]; 4] = [
            &[("authorization", &bearer)],
            &[("authorization", &lower_case)],
            &[("x-api-key", key)],
            &[("authorization", &bearer), ("x-api-key", "pd_nonsense")],
        ];
        for headers in opened {
            assert_eq!(anybody.post(headers, PING).await.status, 200, "{headers:?}");
        }
        let short = &bearer[..bearer.len() - 1];
        let refused: [&[(&str, &str)]; 5] = [
            &[("authorization", short)],
            &[("authorization", "Bearer garbage")],
            &[("authorization", "Basic eA==")],
            &[("x-api-key", "pd_nonsense")],
            &[("authorization", "Bearer pd_nonsense"), ("x-api-key", key)],
        ];
        for headers in refused {
            let answer = anybody.post(headers, PING).await;
            assert_eq!(answer.status, 401, "{headers:?}");
            let challenge = answer.header("www-authenticate");
            assert!(challenge.starts_with(&format!("{NO_KEY}, error=\"invalid_token\"")), "{challenge}");
            assert!(challenge.contains("error_description=\"") && !challenge.contains("resource_metadata"));
        }

        let nothing = anybody.post(&[], PING).await;
        assert_eq!((nothing.status.as_u16(), nothing.header("www-authenticate")), (401, NO_KEY));
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        assert_eq!(anybody.post(&[], initialize).await.status, 401);
        let in_query = Answer::send(anybody.0.request(Method::POST, &format!("/mcp?key={key}")).body(PING));
        assert_eq!(in_query.await.unwrap().status, 401);

        let browser = Agent::at(service.browser_of(user).await.unwrap(), "/mcp");
        let by_cookie = browser.post(&[], PING).await;
        assert_eq!((by_cookie.status.as_u16(), by_cookie.header("www-authenticate")), (401, NO_KEY));
        assert!(by_cookie.json().unwrap()["message"].as_str().unwrap().contains("API key"));

        let page = service.client().get("/mcp").await.unwrap();
        assert_eq!(page.status, 200);
        assert!(page.text().contains("Authorization: Bearer pd_"));
    })
    .await;
}

#[tokio::test]
async fn the_form_of_a_request_is_judged_before_its_key() {
    for_each_secured_service(async |service| {
        let anybody = service.client();
        let send = async |kind: &str, origin: Option<&str>, bytes: usize| {
            let request = anybody.request(Method::POST, "/mcp").header("content-type", kind);
            let request =
                origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
            Answer::send(request.body(vec![b' '; bytes])).await.unwrap().status.as_u16()
        };
        assert_eq!(send("text/plain", Some("https://evil.example"), 2_000_000).await, 413);
        assert_eq!(send("text/plain", Some("https://evil.example"), 10).await, 403);
        assert_eq!(send("text/plain", None, 10).await, 415);
        assert_eq!(send("application/json", None, 10).await, 401);
    })
    .await;
}

#[tokio::test]
async fn where_a_key_is_needed_pages_of_the_own_origin_may_call() {
    for_each_secured_service(async |service| {
        let user = service.account("ada", Role::User).await.unwrap();
        let agent = Agent::at(service.program_of(user, KeyPermission::Read).await.unwrap(), "/mcp");
        let named = [("host", "tests.localhost"), ("origin", "http://tests.localhost")];
        let own = agent.post(&named, PING).await;
        assert_eq!((own.status.as_u16(), own.header("access-control-allow-origin")), (200, named[1].1));
        assert_eq!(agent.post(&[named[0], ("origin", "http://other.localhost")], PING).await.status, 403);
    })
    .await;
}

#[tokio::test]
async fn every_origin_is_let_in_only_where_a_key_is_needed() {
    let with_star = |mut settings: Vec<(String, String)>| {
        settings.push(("SERVICE_MCP_ALLOWED_ORIGINS".to_owned(), "*".to_owned()));
        settings
    };
    for (settings, status) in [(with_star(secured_settings()), 401), (with_star(Vec::new()), 403)] {
        let database = TestDatabase::fresh(Backend::Sqlite).await.unwrap();
        let service = Service::over(database, &settings).await.unwrap();
        let agent = Agent::at(service.client().clone(), "/mcp");
        let answer = agent.post(&[("origin", "https://agent.example")], PING).await;
        assert_eq!(answer.status, status);
        let sandboxed = agent.post(&[("origin", "null")], PING).await;
        assert_eq!(sandboxed.status, 403);
    }
}

#[tokio::test]
async fn messages_are_counted_one_by_one_for_each_key() {
    for_each_secured_service(async |service| {
        let user = service.account("ada", Role::User).await.unwrap();
        let agent = Agent::at(service.program_of(user, KeyPermission::Full).await.unwrap(), "/mcp");
        let batch = format!("[{}]", [PING; 50].join(","));
        // A burst of 100, and what comes back while these run: never a whole third batch.
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let answer = agent.post(&[], &batch).await;
            if answer.status == 429 {
                assert!(answer.header("retry-after").parse::<u32>().unwrap() >= 1);
            }
            statuses.push(answer.status.as_u16());
        }
        assert_eq!(statuses, [200, 200, 429]);
        let another = Agent::at(service.program_of(user, KeyPermission::Full).await.unwrap(), "/mcp");
        assert_eq!(another.post(&[], &batch).await.status, 200);
    })
    .await;
}
