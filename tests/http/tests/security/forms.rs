//! What account routes are sent that is no account's.

use callboard_domain::account::Role;
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Answer, Client, for_each_secured_service};
use reqwest::Method;
use serde_json::json;

use crate::rows::{changed, every_row};

/// What trying leaves behind, whatever comes of it.
const MAY_CHANGE: [&str; 6] =
    ["rate_limits", "audit_events", "jobs", "id_counters", "sessions", "instance_state"];

async fn sent(client: &Client, method: &Method, path: &str, kind: &str, body: Vec<u8>) -> Answer {
    let request = client.request(method.clone(), path).header("content-type", kind);
    client.send(request.body(body)).await.expect("an answer")
}

#[tokio::test]
async fn nonsense_opens_no_account_and_breaks_nothing() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let browser = service.browser_of(admin).await.expect("a browser");
        let routes = [
            (Method::POST, "/api/auth/login"),
            (Method::POST, "/api/auth/setup"),
            (Method::POST, "/api/auth/reset-password"),
            (Method::POST, "/api/auth/change-password"),
            (Method::POST, "/api/users"),
            (Method::PATCH, "/api/users/me"),
            (Method::POST, "/api/users/me/api-keys"),
            (Method::POST, "/api/invitations"),
            (Method::PUT, "/api/users/me/projects"),
        ];
        let fields = [
            "username",
            "password",
            "name",
            "email",
            "role",
            "token",
            "currentPassword",
            "newPassword",
            "permission",
            "expiresAt",
            "isGlobal",
        ];
        let of = |value: serde_json::Value| {
            let all: serde_json::Map<_, _> =
                fields.iter().map(|field| ((*field).to_owned(), value.clone())).collect();
            json!(all).to_string().into_bytes()
        };
        let mut bodies: Vec<Vec<u8>> = vec![
            b"".to_vec(),
            b"null".to_vec(),
            b"[]".to_vec(),
            b"\"admin\"".to_vec(),
            b"{".to_vec(),
            b"{\"username\":\"admin\",\"password\":".to_vec(),
            b"\xef\xbb\xbf{}".to_vec(),
            b"{\"username\":\"\xff\xfe\"}".to_vec(),
            b"username=admin&password=x".to_vec(),
            format!("{{\"username\":\"admin\",\"username\":[\"admin\"],\"password\":\"{PASSWORD}\"}}")
                .into_bytes(),
        ];
        for value in [
            json!(null),
            json!(true),
            json!(7),
            json!(1e300),
            json!([]),
            json!(["admin"]),
            json!({ "$ne": null }),
            json!({ "toString": "admin" }),
            json!("\u{0}"),
            json!("admin\r\nSet-Cookie: svc_session=x"),
            json!("\u{202e}nimda"),
            json!("' OR 1=1 --"),
            json!("%"),
            json!("x".repeat(1500)),
        ] {
            bodies.push(of(value));
        }
        let before = every_row(service, &MAY_CHANGE).await;
        for (method, path) in &routes {
            for body in &bodies {
                for client in [service.client(), &browser] {
                    let answer = sent(client, method, path, "application/json", body.clone()).await;
                    let shown = String::from_utf8_lossy(body).into_owned();
                    assert!(answer.status.is_client_error(), "{method} {path} {shown}: {}", answer.text());
                    assert_eq!(answer.header("content-type"), "application/json", "{path}");
                    assert!(answer.headers.get("set-cookie").is_none(), "{path} {shown}");
                    let told = answer.text();
                    for inside in ["SELECT", "sqlx", "panicked", "/src/", "$scrypt$"] {
                        assert!(!told.contains(inside), "{path} {shown}: {told}");
                    }
                }
            }
            for kind in [
                "text/plain",
                "application/x-www-form-urlencoded",
                "application/jsonp",
                "multipart/form-data",
            ] {
                let answer = sent(&browser, method, path, kind, of(json!("admin"))).await;
                assert_eq!(answer.status, 415, "{method} {path} {kind}: {}", answer.text());
            }
            for other in
                [Method::PUT, Method::DELETE, Method::TRACE, Method::from_bytes(b"BREW").expect("a method")]
            {
                if other == *method || *path == "/api/users/me" {
                    continue;
                }
                let answer = sent(&browser, &other, path, "application/json", b"{}".to_vec()).await;
                assert_eq!(answer.status, 405, "{other} {path}: {}", answer.text());
                assert!(!answer.header("allow").is_empty(), "{other} {path}");
            }
        }
        assert_eq!(changed(&before, &every_row(service, &MAY_CHANGE).await), Vec::<&str>::new());
    })
    .await;
}
