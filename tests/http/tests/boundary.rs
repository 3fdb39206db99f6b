//! What pages of other origins, and requests that pretend, can do: at every
//! route that changes something, with the powers of an administrator.

use callboard_auth::routes::{Access, BodyLimit, Method as Verb, OriginRule};
use callboard_auth::{ROUTES, Route};
use callboard_domain::account::Role;
use callboard_store::Backend;
use callboard_test_support::access::{Holding, address};
use callboard_test_support::{Answer, Client, Form, Service, for_each_secured_service};
use reqwest::Method;
use serde_json::json;

use crate::builders::{attempt, run};

/// A run in a project, for the routes that name one.
pub(crate) async fn something(client: &Client) -> Holding {
    let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
    let stored = client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
    let number = |name: &str| stored[name].as_i64().expect("an id");
    let run = number("runId");
    let executions = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
    let id = |name: &str| executions["items"][0][name].as_i64().expect("an id");
    Holding {
        project: number("projectId"),
        run,
        test_case: id("testCaseId"),
        execution: id("id"),
        ..Holding::missing()
    }
}

/// What a browser sends by itself to any address, from any page.
fn unsafe_routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| route.method != Verb::Get && !matches!(route.access, Access::System))
}

pub(crate) async fn send(client: &Client, route: &Route, path: &str, headers: &[(&str, &str)]) -> Answer {
    let method: Method = route.method.as_str().parse().expect("a method");
    let mut request = client.request(method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = match route.body_limit {
        BodyLimit::Upload => {
            let form = Form::new().field("projectName", "shop").field("testRun", "{}");
            request.header("content-type", Form::content_type()).body(form.into_body())
        }
        _ => request.header("content-type", "application/json").body("{}"),
    };
    Answer::send(request).await.expect("an answer")
}

/// Where a page may stand that is not ours, and what tells.
const FOREIGN: [(&str, &str); 8] = [
    ("origin", "https://evil.example"),
    ("origin", "null"),
    ("origin", "http://127.0.0.1:1"),
    ("origin", "http://127.0.0.1.evil.example"),
    ("origin", "http://localhost"),
    ("origin", ""),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-site", "same-site"),
];

async fn no_page_of_another_origin_changes_anything(client: &Client, holding: &Holding) {
    let before = shown(client).await;
    for route in unsafe_routes().filter(|route| route.origins == OriginRule::Site) {
        let path = address(route, holding, 1);
        for foreign in FOREIGN {
            let answer = send(client, route, &path, &[foreign]).await;
            let told = (answer.status.as_u16(), answer.json().expect("an error")["code"].clone());
            assert_eq!(
                told,
                (403, json!("origin_not_allowed")),
                "{} {path} {foreign:?}",
                route.method.as_str()
            );
        }
    }
    assert_eq!(shown(client).await, before);
}

/// What there is of everything that could be changed.
pub(crate) async fn shown(client: &Client) -> Vec<serde_json::Value> {
    let mut lists = Vec::new();
    for list in ["projects", "test-runs", "tags", "invitations", "deletions", "projects/1/quarantine"] {
        lists.push(client.json(&format!("/api/{list}")).await.expect("a list"));
    }
    lists
}

#[tokio::test]
async fn no_page_of_another_origin_acts_with_the_session_of_a_visitor() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let browser = service.browser_of(admin).await.expect("a browser");
        let holding = something(&browser).await;
        no_page_of_another_origin_changes_anything(&browser, &holding).await;
        // Its own pages may.
        let own = [("origin", service.base_url()), ("sec-fetch-site", "same-origin")];
        let kept =
            send(&browser, route("PinRun"), &format!("/api/test-runs/{}/pin", holding.run), &own).await;
        assert_eq!(kept.status, 200, "{}", kept.text());
    })
    .await;
}

#[tokio::test]
async fn no_page_of_another_origin_acts_where_nobody_signs_in() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let service = Service::start(backend).await.expect("a service");
        let holding = something(service.client()).await;
        no_page_of_another_origin_changes_anything(service.client(), &holding).await;
    }
}

fn route(name: &str) -> &'static Route {
    ROUTES.iter().find(|route| route.id.name() == name).expect("a route")
}

#[tokio::test]
async fn what_a_form_of_another_page_can_send_is_no_command() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let browser = service.browser_of(admin).await.expect("a browser");
        let holding = something(&browser).await;
        let is_command = |route: &&Route| {
            !matches!(route.body_limit, BodyLimit::Upload | BodyLimit::Submit | BodyLimit::Events)
                && route.origins == OriginRule::Site
                && matches!(route.access, Access::Roles(_))
        };
        for route in unsafe_routes().filter(is_command) {
            let path = address(route, &holding, 1);
            for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
            {
                let method: Method = route.method.as_str().parse().expect("a method");
                let request = browser.request(method, &path).header("content-type", kind).body("{}");
                let answer = Answer::send(request).await.expect("an answer");
                assert_eq!(answer.status, 415, "{} {path} {kind}: {}", route.method.as_str(), answer.text());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_method_is_what_the_request_line_says() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let browser = service.browser_of(admin).await.expect("a browser");
        let holding = something(&browser).await;
        let path = format!("/api/test-runs/{}", holding.run);
        for header in ["x-http-method-override", "x-http-method", "x-method-override"] {
            let read = browser.request(Method::GET, &path).header(header, "DELETE");
            assert_eq!(Answer::send(read).await.expect("an answer").status, 200, "{header}");
            let posted =
                browser.request(Method::POST, &format!("{path}?_method=DELETE")).header(header, "DELETE");
            assert_eq!(Answer::send(posted).await.expect("an answer").status, 405, "{header}");
        }
        browser.json(&path).await.expect("it is still there");
    })
    .await;
}

#[tokio::test]
async fn nobody_is_sent_to_another_site() {
    for_each_secured_service(async |service| {
        let client = service.client();
        for hint in ["next", "returnTo", "redirect", "redirect_uri", "return_to", "url", "continue"] {
            for target in
                ["https://evil.example/", "//evil.example/", "/%5Cevil.example", "javascript:alert(1)"]
            {
                for page in [
                    "/login",
                    "/setup",
                    "/reset",
                    "/verify",
                    "/api/auth/oauth/idp/login",
                    "/api/auth/verify-email",
                    "/unsubscribe",
                    "/api/unsubscribe",
                ] {
                    let answer = client.get(&format!("{page}?{hint}={target}")).await.expect("an answer");
                    let place = answer.header("location");
                    assert!(
                        !place.contains("evil") && !place.contains("javascript"),
                        "{page}?{hint}={target}: {place}"
                    );
                    assert!(!answer.text().contains("evil.example"), "{page}?{hint}={target}");
                }
            }
        }
    })
    .await;
}
