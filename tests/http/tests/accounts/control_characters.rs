//! Control characters in passwords. scrypt cannot tell a password from the same
//! one with NULs behind it.

use callboard_domain::account::Role;
use callboard_query::accounts::mails;
use callboard_store::accounts::tokens::TokenPurpose;
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Client, for_each_secured_service};
use serde_json::{Value, json};

use super::{patiently, refusal, refused, sign_in, signed_in};

/// Eight characters, of which scrypt would see three; and others that nobody types.
const UNUSABLE: [&str; 4] = ["abc\0\0\0\0\0", "a long enough one\0", "tab\tand more", "line\r\nand more"];

async fn assert_refused(client: &Client, path: &str, body: impl Fn(&str) -> Value, field: &str) {
    for password in UNUSABLE {
        let answer = patiently(client, path, body(password)).await;
        assert_eq!(refusal(&answer), refused(400, "invalid_field"), "{path}: {password:?}");
        let error = answer.json().expect("JSON");
        let message = error["message"].as_str().expect("a sentence");
        assert!(message.starts_with(field) && message.contains("control characters"), "{message}");
        assert_eq!(error["data"]["field"], field);
    }
}

#[tokio::test]
async fn no_way_sets_a_password_with_control_characters() {
    for_each_secured_service(async |service| {
        let stranger = service.client();
        let first = |password: &str| json!({ "username": "ada", "password": password });
        assert_refused(stranger, "/api/auth/setup", first, "password").await;
        let ada = service.account("ada", Role::Administrator).await.expect("an account");

        let browser = signed_in(stranger, "ada").await;
        let changed = |password: &str| json!({ "currentPassword": PASSWORD, "newPassword": password });
        assert_refused(&browser, "/api/auth/change-password", changed, "newPassword").await;
        let created = |password: &str| json!({ "username": "eve", "role": "user", "password": password });
        assert_refused(&browser, "/api/users", created, "password").await;

        let (store, now) = (service.state().store(), service.state().now());
        for purpose in [TokenPurpose::Reset, TokenPurpose::Invite] {
            let token = mails::mint(store, ada, purpose, None, now).await.expect("a token").text;
            let reset = |password: &str| json!({ "token": token, "password": password });
            assert_refused(stranger, "/api/auth/reset-password", reset, "password").await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_password_with_a_nul_signs_nobody_in() {
    for_each_secured_service(async |service| {
        service.account("ada", Role::User).await.expect("an account");
        for padded in [format!("{PASSWORD}\0"), format!("{PASSWORD}\0\0\0")] {
            let answer = sign_in(service.client(), "ada", &padded).await;
            assert_eq!(refusal(&answer), refused(401, "invalid_credentials"), "{padded:?}");
        }
        sign_in(service.client(), "ada", PASSWORD).await.success().expect("signed in");
    })
    .await;
}
