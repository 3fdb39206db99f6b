//! Invitations: a link that sets the first password, once, for three days.

use callboard_domain::account::Role;
use callboard_test_support::accounts::{PASSWORD, trusted};
use callboard_test_support::for_each_secured_service;
use serde_json::json;

use super::*;

fn invitation(email: &str) -> Value {
    json!({ "email": email, "role": "reporter", "isGlobal": true })
}

/// The token in the link of an answer.
fn token(answer: &Answer) -> String {
    let url = done(answer)["acceptUrl"].as_str().expect("a link").to_owned();
    url.split_once("/reset#token=").expect("the page that sets a password").1.to_owned()
}

async fn accept(service: &Service, token: &str) -> Answer {
    let body = json!({ "token": token, "password": PASSWORD });
    post(service.client(), "/api/auth/reset-password", body).await
}

async fn login(service: &Service, username: &str) -> u16 {
    let body = json!({ "username": username, "password": PASSWORD });
    post(service.client(), "/api/auth/login", body).await.status.as_u16()
}

#[tokio::test]
async fn an_invitation_is_accepted_once() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let answer = post(&admin, "/api/invitations", invitation("ada@example.org")).await;
        assert_eq!(answer.status, 201);
        let body = done(&answer);
        insta::assert_json_snapshot!("invitation", body["invitation"], {
            ".createdAt" => "[time]", ".expiresAt" => "[time]",
        });
        let user = get(&admin, &format!("/api/users/{}", body["invitation"]["userId"])).await;
        assert_eq!((&user["username"], &user["hasPassword"]), (&json!("ada@example.org"), &json!(false)));
        assert_eq!(login(service, "ada@example.org").await, 401);
        let token = token(&answer);
        let listed = get(&admin, "/api/invitations").await;
        assert_eq!(listed["items"], json!([body["invitation"]]));
        assert!(!listed.to_string().contains(&token));

        assert_eq!(accept(service, &token).await.status, 200);
        assert_eq!(login(service, "ada@example.org").await, 200);
        refused(&accept(service, &token).await, 400, "invalid_or_expired_token");
        let listed = get(&admin, "/api/invitations").await;
        assert!(listed["items"][0]["acceptedAt"].is_string());
        let path = format!("/api/invitations/{}", body["invitation"]["id"]);
        refused(&delete(&admin, &path).await, 409, "not_pending");
        refused(&post(&admin, &format!("{path}/resend"), json!({})).await, 409, "not_pending");
        refused(&post(&admin, "/api/invitations", invitation("ADA@example.org")).await, 409, "email_taken");
        let words = audited(&admin, "&action=invitation.").await;
        assert_eq!(words, ["invitation.created", "invitation.accepted"]);
    })
    .await;
}

#[tokio::test]
async fn an_invitation_that_is_sent_again_replaces_its_link() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let answer = post(&admin, "/api/invitations", invitation("ada@exmaple.org")).await;
        let first = token(&answer);
        let invited = done(&answer)["invitation"].clone();
        let user = format!("/api/users/{}", invited["userId"]);
        let resend = format!("/api/invitations/{}/resend", invited["id"]);
        // The address had a slip: what was sent there opens nothing once it is put right.
        done(&patch(&admin, &user, json!({ "email": "ada@example.org" })).await);
        refused(&accept(service, &first).await, 400, "invalid_or_expired_token");
        let second = token(&post(&admin, &resend, json!({})).await);
        let answer = post(&admin, &resend, json!({})).await;
        assert_eq!(done(&answer)["invitation"]["email"], "ada@example.org");
        refused(&accept(service, &second).await, 400, "invalid_or_expired_token");
        assert_eq!(accept(service, &token(&answer)).await.status, 200);
        let words = audited(&admin, "&action=invitation.resent").await;
        assert_eq!(words.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_invitation_that_is_taken_back_closes_the_account() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let answer = post(&admin, "/api/invitations", invitation("ada@example.org")).await;
        refused(&post(&admin, "/api/invitations", invitation("ada@example.org")).await, 409, "email_taken");
        let invited = done(&answer)["invitation"].clone();
        let path = format!("/api/invitations/{}", invited["id"]);
        done(&delete(&admin, &path).await);
        refused(&delete(&admin, &path).await, 409, "not_pending");
        refused(&post(&admin, &format!("{path}/resend"), json!({})).await, 409, "not_pending");
        refused(&accept(service, &token(&answer)).await, 400, "invalid_or_expired_token");
        let words = audited(&admin, "&action=invitation.").await;
        assert_eq!(words, ["invitation.created", "invitation.revoked"]);
        let user = format!("/api/users/{}", invited["userId"]);
        assert_eq!(get(&admin, &user).await["disabled"], true);
        refused(&post(&admin, &format!("{user}/invite"), json!({})).await, 409, "not_pending");

        // The same person can be invited anew, as somebody else.
        let again = json!({ "email": "ada@example.org", "role": "user", "name": "Ada" });
        let answer = post(&admin, "/api/invitations", again).await;
        assert_eq!(done(&answer)["invitation"]["userId"], invited["userId"]);
        let shown = get(&admin, &user).await;
        let fields = ["role", "name", "disabled", "isGlobal"].map(|field| shown[field].clone());
        assert_eq!(json!(fields), json!(["user", "Ada", false, false]));
        assert_eq!(accept(service, &token(&answer)).await.status, 200);
        assert_eq!(login(service, "ada@example.org").await, 200);
    })
    .await;
}

#[tokio::test]
async fn the_person_of_an_account_is_invited_to_a_new_password() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let ada = service.account_with("ada", Role::User, |user| {
            user.email = trusted("ada@example.org");
            user.password = String::new();
        });
        let ada = ada.await.expect("an account");
        let path = format!("/api/users/{ada}/invite");
        let first = post(&admin, &path, json!({})).await;
        let second = post(&admin, &path, json!({})).await;
        refused(&accept(service, &token(&first)).await, 400, "invalid_or_expired_token");
        assert_eq!(accept(service, &token(&second)).await.status, 200);
        let listed = get(&admin, "/api/invitations").await;
        let items = listed["items"].as_array().expect("invitations");
        assert!(items[0]["acceptedAt"].is_string() && items[1]["revokedAt"].is_string(), "{listed}");
        // An address that its owner entered is not relied on.
        let (bob, bob_id) = person(service, "bob", Role::User).await;
        let address = json!({ "email": "bob@example.org", "currentPassword": PASSWORD });
        done(&patch(&bob, "/api/users/me", address).await);
        refused(&post(&admin, &format!("/api/users/{bob_id}/invite"), json!({})).await, 409, "no_email");
    })
    .await;
}

#[tokio::test]
async fn invitations_are_limited_and_listed_once_each() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        for n in 0..20 {
            done(&post(&admin, "/api/invitations", invitation(&format!("person{n}@example.org"))).await);
        }
        refused(&post(&admin, "/api/invitations", invitation("more@example.org")).await, 429, "rate_limited");
        let whole = all(&admin, "/api/invitations", "id", 200).await;
        assert_eq!(whole.len(), 20);
        assert_eq!(all(&admin, "/api/invitations", "id", 3).await, whole);
        // The page of the accounts shows the newest, another one all of them.
        let html = async |path: &str| admin.get(path).await.expect("a page").text();
        let accounts = html("/settings/users").await;
        assert!(
            accounts.contains("person10@example.org</td>") && !accounts.contains("person9@example.org</td>")
        );
        assert!(accounts.contains("href=\"/settings/users?show=invitations\""), "{accounts}");
        let first = html("/settings/users?show=invitations&limit=15").await;
        assert!(
            first.contains("15 of 20 open invitations") && first.contains("person5@example.org</td>"),
            "{first}"
        );
        let next = first.split("rel=\"next\"").next().and_then(|html| html.rsplit("href=\"").next());
        let second =
            html(&next.expect("a second page").trim_end_matches(['"', ' ']).replace("&#38;", "&")).await;
        assert!(
            second.contains("person4@example.org</td>") && second.contains("person0@example.org</td>"),
            "{second}"
        );
        assert!(!second.contains("person5@example.org</td>"), "{second}");
    })
    .await;
}
