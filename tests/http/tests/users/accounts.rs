//! Creating, reading, listing, editing, deleting accounts.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::time::Timestamp;
use callboard_test_support::accounts::{PASSWORD, trusted};
use callboard_test_support::{for_each_secured_service, for_each_service};
use serde_json::{Value, json};

use super::*;

const MINUTE_MS: i64 = 60_000;

#[tokio::test]
async fn an_account_is_created_read_and_deleted() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let shop = project(service, "shop").await;
        let body = json!({
            "username": "Ada", "role": "reporter", "password": PASSWORD, "name": "Ada Lovelace",
            "email": "ada@example.org", "projectIds": [shop.get(), shop.get()], "unknown": { "is": "ignored" },
        });
        let answer = post(&admin, "/api/users", body).await;
        assert_eq!(answer.status, 201);
        let created = done(&answer)["user"].clone();
        let path = format!("/api/users/{}", created["id"]);
        insta::assert_json_snapshot!("users_created", created, {
            ".createdAt" => "[time]", ".updatedAt" => "[time]",
        });
        assert_eq!(get(&admin, &path).await, created);
        assert_eq!(
            get(&admin, &format!("{path}/projects")).await,
            json!({ "isGlobal": false, "projectIds": [shop.get()] })
        );
        let login = json!({ "username": "ADA", "password": PASSWORD });
        assert_eq!(post(service.client(), "/api/auth/login", login.clone()).await.status, 200);

        done(&delete(&admin, &path).await);
        refused(&delete(&admin, &path).await, 404, "user_not_found");
        refused(&admin.get(&path).await.expect("an answer"), 404, "user_not_found");
        assert_eq!(post(service.client(), "/api/auth/login", login).await.status, 401);
        let audited = audited(&admin, &format!("&targetType=user&targetId={}", created["id"])).await;
        assert_eq!(audited, ["user.created", "login.succeeded", "user.deleted", "change.refused"]);
        // The name is free again.
        assert_eq!(post(&admin, "/api/users", new_user("ada", "user")).await.status, 201);
    })
    .await;
}

#[tokio::test]
async fn who_is_no_administrator_finds_themselves_only() {
    for_each_secured_service(async |service| {
        let (admin, admin_id) = administrator(service).await;
        let (browser, ada) = person(service, "ada", Role::User).await;
        for path in ["/api/users", "/api/users?q=A", "/api/users?role=user&state=active"] {
            let found = get(&browser, path).await;
            assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{path}");
            assert_eq!(found["items"][0]["username"], "ada");
            assert_eq!(found["authEnabled"], true);
        }
        assert_eq!(get(&browser, "/api/users?role=administrator").await["items"], json!([]));
        assert_eq!(get(&browser, "/api/users/me").await["id"], ada.get());
        assert_eq!(get(&browser, &format!("/api/users/{ada}")).await["id"], ada.get());
        // What exists is not told.
        for id in [admin_id.get(), 4711] {
            let answer = browser.get(&format!("/api/users/{id}")).await.expect("an answer");
            refused(&answer, 403, "insufficient_role");
            refused(
                &patch(&browser, &format!("/api/users/{id}"), json!({ "name": "x" })).await,
                403,
                "insufficient_role",
            );
        }
        let names: Vec<Value> = all(&admin, "/api/users", "username", 200).await;
        assert_eq!(names, ["ada", "admin"]);
        assert!(get(&admin, "/api/users/me").await["lastSeenAt"].is_string());
    })
    .await;
}

#[tokio::test]
async fn a_list_of_accounts_is_filtered_and_shows_each_once() {
    const PEOPLE: usize = 230;
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        for n in 0..PEOPLE {
            let role = if n % 2 == 0 { Role::Reporter } else { Role::User };
            let change = |user: &mut users::UserRow| {
                user.name = Some(format!("Élan {}", n % 3));
                user.disabled_at = (n % 5 == 0).then_some(Timestamp(1));
            };
            service.account_with(&format!("Person {n:03}"), role, change).await.expect("an account");
        }
        for (path, expected) in [
            ("/api/users", PEOPLE + 1),
            ("/api/users?q=%C3%A9LAN", PEOPLE),
            ("/api/users?q=%C3%A9lan%202", PEOPLE / 3),
            ("/api/users?q=person%2000", 10),
            ("/api/users?q=%25", 0),
            ("/api/users?role=reporter", PEOPLE / 2),
            ("/api/users?state=disabled", PEOPLE / 5),
            ("/api/users?state=disabled&role=user&q=person", PEOPLE / 10),
        ] {
            let whole = all(&admin, path, "username", 200).await;
            assert_eq!(whole.len(), expected, "{path}");
            let mut once = whole.iter().map(Value::to_string).collect::<Vec<_>>();
            once.dedup();
            assert_eq!(once.len(), expected, "{path} repeats rows");
            assert_eq!(all(&admin, path, "username", 7).await, whole, "{path} by sevens");
        }
        let page = get(&admin, "/api/users?limit=1").await;
        let cursor = page["nextCursor"].as_str().expect("a next page");
        let answer = admin.get(&format!("/api/users?role=user&cursor={cursor}")).await.expect("an answer");
        refused(&answer, 400, "invalid_cursor");
    })
    .await;
}

#[tokio::test]
async fn an_edit_keeps_what_is_absent_and_clears_what_is_null() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let ada = service.account("ada", Role::Reporter).await.expect("an account");
        let path = format!("/api/users/{ada}");
        let fields = ["name", "email", "role", "disabled"];
        for (body, expected) in [
            (json!({ "name": "Ada" }), json!(["Ada", null, "reporter", false])),
            (json!({ "email": "ada@example.org" }), json!(["Ada", "ada@example.org", "reporter", false])),
            (json!({ "role": "user" }), json!(["Ada", "ada@example.org", "user", false])),
            (json!({ "disabled": true }), json!(["Ada", "ada@example.org", "user", true])),
            (json!({ "disabled": false, "name": "A." }), json!(["A.", "ada@example.org", "user", false])),
            (json!({ "name": null }), json!([null, "ada@example.org", "user", false])),
            (json!({ "email": null, "role": "reporter" }), json!([null, null, "reporter", false])),
            (json!({ "email": null, "name": null }), json!([null, null, "reporter", false])),
        ] {
            let user = done(&patch(&admin, &path, body.clone()).await)["user"].clone();
            assert_eq!(json!(fields.map(|field| user[field].clone())), expected, "{body}");
            assert_eq!(get(&admin, &path).await, user, "{body}");
        }
        let audited = audited(&admin, &format!("&targetType=user&targetId={ada}")).await;
        let expected = [
            "user.changed",
            "email.changed",
            "user.changed",
            "user.disabled",
            "user.enabled",
            "user.changed",
            "user.changed",
        ];
        assert_eq!(audited, expected, "the last edit changed nothing");
    })
    .await;
}

#[tokio::test]
async fn an_entity_that_the_client_has_is_not_sent_again() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let ada = service.account("ada", Role::User).await.expect("an account");
        let path = format!("/api/users/{ada}");
        let first = admin.get(&path).await.expect("an answer");
        let again = async || {
            let request = admin.request(Method::GET, &path).header("if-none-match", first.header("etag"));
            admin.send(request).await.expect("an answer").status.as_u16()
        };
        assert_eq!(again().await, 304);
        done(&patch(&admin, &path, json!({ "name": "Ada" })).await);
        assert_eq!(again().await, 200);
    })
    .await;
}

#[tokio::test]
async fn a_change_of_ones_own_address_takes_the_password_or_without_one_a_fresh_sign_in() {
    for_each_secured_service(async |service| {
        let ada = service.account_with("ada", Role::User, |user| user.email = trusted("old@example.org"));
        let ada = ada.await.expect("an account");
        let now = service.state().now().millis();
        let old = signed_in_at(service, ada, Timestamp(now - 16 * MINUTE_MS)).await;
        let other = signed_in_at(service, ada, Timestamp(now - 16 * MINUTE_MS)).await;
        let edit = |address: &str| json!({ "email": address });
        refused(&patch(&old, "/api/users/me", edit("new@example.org")).await, 400, "password_required");
        // The same address, and another field, take no proof.
        done(&patch(&old, "/api/users/me", edit("old@example.org")).await);
        done(&patch(&old, "/api/users/me", json!({ "name": "Ada" })).await);
        let wrong = json!({ "email": "new@example.org", "currentPassword": "a wrong one" });
        refused(&patch(&old, "/api/users/me", wrong).await, 401, "invalid_credentials currentPassword");
        assert!(is_let_in(&other).await);

        let right = json!({ "email": "new@example.org", "currentPassword": PASSWORD });
        let user = done(&patch(&old, "/api/users/me", right).await)["user"].clone();
        assert_eq!((&user["email"], &user["emailVerified"]), (&json!("new@example.org"), &json!(false)));
        assert!(is_let_in(&old).await, "the session that asked goes on");
        assert!(!is_let_in(&other).await, "every other session ended");

        let fresh = service.browser_of(ada).await.expect("a browser");
        refused(&patch(&fresh, "/api/users/me", edit("third@example.org")).await, 400, "password_required");
        let of_provider = service.account_with("eve", Role::User, |user| user.password.clear());
        let of_provider = of_provider.await.expect("an account");
        let late = signed_in_at(service, of_provider, Timestamp(now - 16 * MINUTE_MS)).await;
        refused(&patch(&late, "/api/users/me", edit("eve@example.org")).await, 400, "password_required");
        let fresh = service.browser_of(of_provider).await.expect("a browser");
        done(&patch(&fresh, "/api/users/me", edit("eve@example.org")).await);
        // A key proves nothing about the person.
        let program = service.program_of(ada, KeyPermission::Full).await.expect("a key");
        refused(
            &patch(&program, "/api/users/me", edit("fourth@example.org")).await,
            400,
            "password_required",
        );
    })
    .await;
}

#[tokio::test]
async fn guessing_the_current_password_is_limited() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::User).await.expect("an account");
        let now = service.state().now().millis();
        let browser = signed_in_at(service, ada, Timestamp(now - 16 * MINUTE_MS)).await;
        let guess = json!({ "email": "new@example.org", "currentPassword": "a guess" });
        for _ in 0..5 {
            refused(
                &patch(&browser, "/api/users/me", guess.clone()).await,
                401,
                "invalid_credentials currentPassword",
            );
        }
        let right = json!({ "email": "new@example.org", "currentPassword": PASSWORD });
        let answer = patch(&browser, "/api/users/me", right).await;
        refused(&answer, 429, "rate_limited");
        assert!(answer.header("retry-after").parse::<i64>().expect("seconds") >= 1);
    })
    .await;
}

#[tokio::test]
async fn an_address_is_relied_on_when_an_administrator_entered_it() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let (ada, ada_id) = person(service, "ada", Role::User).await;
        let (_, bob_id) = person(service, "bob", Role::User).await;
        let address = json!({ "email": "Ada@Example.org", "currentPassword": PASSWORD });
        done(&patch(&ada, "/api/users/me", address.clone()).await);
        // What somebody says of themselves keeps nobody from the address.
        done(&patch(&admin, &format!("/api/users/{bob_id}"), address.clone()).await);
        let other = json!({ "email": "ada@example.ORG", "currentPassword": PASSWORD });
        done(&patch(&ada, "/api/users/me", other).await);
        let taken = json!({ "username": "carl", "role": "user", "email": "ADA@example.org" });
        refused(&post(&admin, "/api/users", taken).await, 409, "email_taken");
        // An edit that names the present address does not make it trusted.
        let row = async || {
            let mut session = service.state().store().db().read().await.expect("a connection");
            users::get(&mut session, ada_id).await.expect("an answer").expect("an account")
        };
        done(
            &patch(
                &admin,
                &format!("/api/users/{ada_id}"),
                json!({ "email": "ada@example.ORG", "name": "A" }),
            )
            .await,
        );
        assert_eq!(row().await.email.map(|email| email.source), Some(users::EmailSource::Own));
    })
    .await;
}

#[tokio::test]
async fn accounts_are_made_while_authentication_is_off() {
    for_each_service(async |service| {
        let client = service.client();
        let created = done(&post(client, "/api/users", new_user("ada", "administrator")).await);
        assert_eq!(created["user"]["isGlobal"], true);
        assert_eq!(get(client, "/api/users").await["authEnabled"], false);
        refused(&client.get("/api/users/me").await.expect("an answer"), 404, "user_not_found");
        let path = format!("/api/users/{}", created["user"]["id"]);
        let key = done(&post(client, &format!("{path}/api-keys"), json!({ "name": "ci" })).await);
        assert_eq!(key["apiKey"]["createdBy"]["username"], "ada");
        done(&post(client, &format!("{path}/sign-out"), json!({})).await);
        // Nobody can sign in to it, so it is not the last administrator.
        done(&delete(client, &path).await);
        let entries = get(client, "/api/audit").await;
        assert_eq!(entries["items"][0]["actor"]["userId"], Value::Null);
    })
    .await;
}
