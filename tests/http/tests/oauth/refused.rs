//! Why somebody who comes from a provider is turned away, and what they read
//! then.

use callboard_auth::oauth::OauthRefusal;

use super::*;
use crate::users::signed_in_at;

const MINUTE_MS: i64 = 60_000;

/// Begins at the provider, agrees there, and comes back with another query.
async fn back_with(world: &World, browser: &mut Browser, change: impl Fn(&str) -> String) -> String {
    let authorize = world.begin(browser, "idp", "").await;
    let back = world.provider.agree(&authorize).expect("agreed");
    let query = change(back.query().expect("a query"));
    let answer = world.get(browser, &format!("{}?{query}", back.path())).await;
    answer.header("location").to_owned()
}

#[tokio::test]
async fn an_answer_that_cannot_be_a_sign_in_is_not_taken_to_the_provider() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(person("7", "ada@corp.example", true));
        let mut browser = Browser::default();
        let without_code = |query: &str| query.replacen("code=", "node=", 1);
        let end = back_with(world, &mut browser, without_code).await;
        assert_eq!(end, "/login?error=missing-code");
        let of_another = |query: &str| format!("{query}&iss=https%3A%2F%2Fevil.example");
        let end = back_with(world, &mut browser, of_another).await;
        assert_eq!(end, "/login?error=invalid-state");
        assert_eq!(world.provider.token_requests(), 0);
        assert_eq!(world.me(&mut browser).await, Value::Null);
    })
    .await;
}

#[tokio::test]
async fn a_disabled_account_is_closed_to_its_provider_too() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(person("7", "ada@corp.example", true));
        let mut browser = Browser::default();
        assert_eq!(world.sign_in(&mut browser, "idp", "").await, "/");
        let id = UserId(world.me(&mut browser).await["id"].as_i64().expect("an id"));
        let mut session = world.service.state().store().db().begin().await.expect("a transaction");
        let mut user = users::lock(&mut session, id).await.expect("an answer").expect("an account");
        user.disabled_at = Some(Timestamp(1));
        users::save(&mut session, &user).await.expect("saved");
        session.commit().await.expect("stored");
        let mut again = Browser::default();
        assert_eq!(world.sign_in(&mut again, "idp", "").await, "/login?error=access-denied");
        for browser in [&mut browser, &mut again] {
            assert_eq!(world.me(browser).await, Value::Null);
        }
    })
    .await;
}

#[tokio::test]
async fn linking_takes_a_recent_sign_in_our_own_page_and_one_session_all_the_way() {
    on_both(&[], async |world| {
        world.provider.set_profile(person("7", "ada@corp.example", true));
        let ada = world.account("ada", None).await;
        let now = world.service.state().now().millis();
        let session = async |minutes_ago: i64| {
            let at = Timestamp(now - minutes_ago * MINUTE_MS);
            let cookie = signed_in_at(&world.service, ada, at).await.cookie("svc_session");
            Browser(vec![("svc_session".to_owned(), cookie.expect("a cookie"))])
        };
        let begun = world.begin(&mut session(16).await, "idp", "?link=1").await;
        assert_eq!(begun, "/settings/account?error=reauth-required");

        let mut browser = session(1).await;
        let elsewhere = world.service.client().request(Method::GET, "/api/auth/oauth/idp/login?link=1");
        let elsewhere = elsewhere.header(COOKIE, browser.cookies()).header("sec-fetch-site", "cross-site");
        let answer = Answer::send(elsewhere).await.expect("an answer");
        assert_eq!(answer.header("location"), "/settings/account?error=invalid-state");
        assert_eq!(answer.headers.get_all(SET_COOKIE).iter().count(), 0, "nothing was begun");

        let authorize = world.begin(&mut browser, "idp", "?link=1").await;
        let back = world.provider.agree(&authorize).expect("agreed");
        let other = session(1).await;
        browser.0.retain(|(name, _)| name != "svc_session");
        browser.0.extend(other.0);
        let path = format!("{}?{}", back.path(), back.query().expect("a query"));
        let answer = world.get(&mut browser, &path).await;
        assert_eq!(answer.header("location"), "/settings/account?error=link-requires-login");
        assert_eq!(world.stored(ada).await.oauth, None);
    })
    .await;
}

#[tokio::test]
async fn what_a_failure_ends_is_not_begun_any_more() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        let mut browser = Browser::default();
        let authorize = world.begin(&mut browser, "idp", "").await;
        let back = world.provider.agree(&authorize).expect("agreed");
        world.service.state().store().db().close().await;
        let path = format!("{}?{}", back.path(), back.query().expect("a query"));
        let answer = world.get(&mut browser, &path).await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(browser.0.is_empty(), "{:?}", browser.0);
        assert_eq!(world.provider.token_requests(), 0);
    })
    .await;
}

#[tokio::test]
async fn where_nobody_signs_in_there_is_no_provider_either() {
    on_both(&[("SERVICE_AUTH_ENABLED", "false")], async |world| {
        for step in ["login", "login?link=1", "callback?code=x&state=y"] {
            let path = format!("/api/auth/oauth/idp/{step}");
            let answer = world.get(&mut Browser::default(), &path).await;
            let location = answer.header("location");
            assert!(location.ends_with("?error=auth-disabled"), "{step}");
            let client = world.service.client().with_header("accept", "text/html").expect("a header");
            let page = client.get(location).await.expect("a page").text();
            let is_told = page.contains("Authentication is off") || page.contains("Sign-in is off");
            assert!(is_told, "{step}: {page}");
        }
        assert_eq!(world.provider.token_requests(), 0);
    })
    .await;
}

#[tokio::test]
async fn every_refusal_is_a_sentence_on_the_page_it_leads_to() {
    on_both(&[], async |world| {
        let ada = world.account("ada", None).await;
        let browser = world.service.browser_of(ada).await.expect("a browser");
        for refusal in OauthRefusal::ALL {
            let sentence = refusal.to_string().replace('\'', "&#39;");
            for (client, page) in [(world.service.client(), "/login"), (&browser, "/settings/account")] {
                let path = format!("{page}?error={}", refusal.code());
                let client = client.with_header("accept", "text/html").expect("a header");
                let shown = client.get(&path).await.expect("a page");
                assert!(shown.status == 200 && shown.text().contains(&sentence), "{path}: {sentence}");
            }
        }
    })
    .await;
}
