//! Session cookies that somebody made themselves.

use callboard_auth::cookies::CookieForm;
use callboard_auth::oauth::{OauthTransaction, Provider};
use callboard_auth::session_cookie::DeviceClaims;
use callboard_domain::account::{KeyPermission, Role};
use callboard_test_support::{Answer, Client, Service, for_each_secured_service};
use reqwest::Method;

use super::{refusal, refused};

const NAME: &str = "svc_session";
/// The digits of base64url, six bits each.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const FLIPS: usize = 200;

fn presenting(service: &Service, value: &str) -> Client {
    service.client().with_header("cookie", &format!("{NAME}={value}")).expect("a header")
}

/// Neither lets anybody in nor tells that it nearly did.
async fn opens_nothing(client: &Client, what: &str) {
    let answer = client.get("/api/projects").await.expect("an answer");
    assert_eq!(refusal(&answer), refused(401, "authentication_required"), "{what}");
    let me = client.json("/api/auth/me").await.expect("me");
    assert!(me["authenticated"] == false && me["user"].is_null(), "{what}: {me}");
}

#[tokio::test]
async fn one_flipped_bit_closes_a_session_cookie() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::Administrator).await.expect("an account");
        let value = service.browser_of(ada).await.expect("a browser").cookie(NAME).expect("a cookie");
        assert!(
            presenting(service, &value).get("/api/projects").await.expect("an answer").status.is_success()
        );
        let bits = value.len() * 6;
        for flip in 0..FLIPS {
            // Spread over the whole value, and on each of the six bits of a digit.
            let bit = flip * (bits - 1) / (FLIPS - 1);
            let mut altered = value.clone().into_bytes();
            let digit = DIGITS.iter().position(|digit| *digit == altered[bit / 6]).expect("a digit");
            altered[bit / 6] = DIGITS[digit ^ (1 << (bit % 6))];
            let altered = String::from_utf8(altered).expect("ASCII");
            assert_ne!(altered, value);
            opens_nothing(&presenting(service, &altered), &format!("bit {bit}")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_sealed_value_of_another_kind_is_no_session() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::User).await.expect("an account");
        let (cookies, now) = (service.state().cookies(), service.state().now());
        let device = DeviceClaims::start(ada, now).expect("claims");
        let begun = OauthTransaction::begin(Provider::Idp, None, now).expect("a transaction");
        let set = [
            cookies.set(&device, CookieForm::Plain).expect("a cookie"),
            cookies.set(&begun, CookieForm::Plain).expect("a cookie"),
        ];
        for set in set {
            let pair = set.to_str().expect("ASCII").split(';').next().expect("a pair").to_owned();
            let (kind, value) = pair.split_once('=').expect("a pair");
            opens_nothing(&presenting(service, value), kind).await;
        }
    })
    .await;
}

#[tokio::test]
async fn two_credentials_of_a_kind_are_none() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::User).await.expect("an account");
        let value = service.browser_of(ada).await.expect("a browser").cookie(NAME).expect("a cookie");
        let twice = format!("{NAME}={value}; {NAME}={value}");
        opens_nothing(&service.client().with_header("cookie", &twice).expect("a header"), "twice").await;
        // Nor is one of two keys chosen, whichever of them is right.
        let key = service.program_of(ada, KeyPermission::Full).await.expect("a key");
        let right = key.request(Method::GET, "/").build().expect("a request");
        let right = right.headers()["authorization"].to_str().expect("ASCII").to_owned();
        for header in ["authorization", "x-api-key"] {
            for (first, second) in [(right.as_str(), "Bearer pd_x"), ("Basic eA==", right.as_str())] {
                let [first, second] = [first, second].map(|text| match header {
                    "authorization" => text,
                    _ => text.trim_start_matches("Bearer "),
                });
                let request = service.client().request(Method::GET, "/api/projects").header(header, first);
                let answer = Answer::send(request.header(header, second)).await.expect("an answer");
                assert_eq!(refusal(&answer), refused(400, "invalid_header"), "{header}: {first}, {second}");
            }
        }
        // Credentials are read from where they belong.
        for path in [format!("/api/projects?{NAME}={value}"), format!("/api/projects?session={value}")] {
            let answer = service.client().get(&path).await.expect("an answer");
            assert_eq!(refusal(&answer), refused(401, "authentication_required"));
        }
    })
    .await;
}
