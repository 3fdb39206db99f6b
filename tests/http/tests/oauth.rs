//! Signing in at a provider, and linking an account there, against a real
//! provider process on both databases.

mod organisations;
mod refresh;
mod refused;

use std::collections::BTreeMap;

use callboard_auth::oauth::OauthRefusal;
use callboard_domain::account::Role;
use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use callboard_store::accounts::invitations::{self, InvitationRow, InvitedScope};
use callboard_store::accounts::tokens::{self, NewAccountToken, TokenPurpose};
use callboard_store::accounts::users::{self, Email, EmailSource, UserRow};
use callboard_store::audit::{self, AuditFilter};
use callboard_test_support::{Answer, Provider, Service, Settings, TestDatabase};
use reqwest::Method;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A service that offers sign-in at a provider, and one account to begin with.
struct World {
    provider: Provider,
    service: Service,
}

/// A browser: it keeps cookies.
#[derive(Default, Clone)]
struct Browser(Vec<(String, String)>);

impl Browser {
    fn cookies(&self) -> String {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    fn keep(&mut self, answer: &Answer) {
        for set in answer.headers.get_all(SET_COOKIE) {
            let text = set.to_str().expect("a cookie in ASCII");
            let (name, value) = text.split(';').next().and_then(|pair| pair.split_once('=')).expect("a pair");
            self.0.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.0.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

impl World {
    async fn new(backend: Backend, more: &[(&str, &str)]) -> Self {
        let provider = Provider::start().await.expect("a provider");
        let mut settings: Settings = provider.settings();
        let own = [
            ("SERVICE_AUTH_ENABLED", "true"),
            ("SERVICE_AUTH_SECRET", "d41d8cd98f00b204e9800998ecf8427e0c5f3a11"),
        ];
        settings
            .extend(own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let service = Service::over(database, &settings).await.expect("a service");
        Self { provider, service }
    }

    /// An account that exists before anybody comes from the provider.
    async fn account(&self, name: &str, email: Option<(&str, EmailSource)>) -> UserId {
        let mut session = self.service.state().store().db().begin().await.expect("a transaction");
        let id = users::new_id(&mut session).await.expect("an id");
        let user = UserRow {
            id,
            username: name.to_owned(),
            username_key: name.to_owned(),
            password:
                "$scrypt$ln=15,r=8,p=3$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    .to_owned(),
            role: Role::User,
            name: None,
            email: email.map(|(address, source)| Email {
                address: address.to_owned(),
                source,
                verified_at: None,
            }),
            avatar: None,
            oauth: None,
            session_epoch: 0,
            disabled_at: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        };
        users::insert(&mut session, &user).await.expect("an account");
        session.commit().await.expect("stored");
        id
    }

    async fn stored(&self, id: UserId) -> UserRow {
        let mut session = self.service.state().store().db().read().await.expect("a connection");
        users::get(&mut session, id).await.expect("an answer").expect("an account")
    }

    async fn get(&self, browser: &mut Browser, path: &str) -> Answer {
        let request = self.service.client().request(Method::GET, path).header(COOKIE, browser.cookies());
        let answer = Answer::send(request).await.expect("an answer");
        browser.keep(&answer);
        answer
    }

    /// Begins at a provider; the address the browser is sent to.
    async fn begin(&self, browser: &mut Browser, provider: &str, query: &str) -> String {
        let answer = self.get(browser, &format!("/api/auth/oauth/{provider}/login{query}")).await;
        assert_eq!(answer.status, 302, "{}", answer.text());
        answer.header(LOCATION.as_str()).to_owned()
    }

    /// The whole way; where the browser ends.
    async fn sign_in(&self, browser: &mut Browser, provider: &str, query: &str) -> String {
        let authorize = self.begin(browser, provider, query).await;
        let back = self.provider.agree(&authorize).expect("a provider's page");
        let path = format!("{}?{}", back.path(), back.query().unwrap_or_default());
        let answer = self.get(browser, &path).await;
        assert_eq!(answer.status, 302, "{}", answer.text());
        answer.header(LOCATION.as_str()).to_owned()
    }

    async fn me(&self, browser: &mut Browser) -> Value {
        self.get(browser, "/api/auth/me").await.json().expect("JSON")["user"].clone()
    }
}

async fn on_both(settings: &[(&str, &str)], test: impl AsyncFn(&World)) {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        test(&World::new(backend, settings).await).await;
    }
}

fn person(id: &str, email: &str, verified: bool) -> Value {
    json!({ "sub": id, "name": "Ada Lovelace", "email": email, "email_verified": verified,
        "picture": "https://pictures.example/ada.png" })
}

#[tokio::test]
async fn somebody_new_gets_an_account_that_sees_nothing_and_is_known_the_next_time() {
    on_both(&[], async |world| {
        let mut early = Browser::default();
        world.provider.set_profile(person("7", "ada@corp.example", true));
        assert_eq!(world.sign_in(&mut early, "idp", "").await, "/login?error=setup-required");
        let mut session = world.service.state().store().db().read().await.expect("a connection");
        assert!(!users::any(&mut session).await.expect("an answer"), "nobody was let in");
        drop(session);
        let browser = world.service.client().with_header("accept", "text/html").expect("a header");
        let page = browser.get("/login?error=setup-required").await.expect("a page").text();
        assert!(page.contains(&OauthRefusal::SetupRequired.to_string()), "{page}");
        world.account("root", None).await;

        let mut browser = Browser::default();
        let authorize = world.begin(&mut browser, "idp", "").await;
        for part in ["code_challenge_method=S256", "scope=openid+email+profile", "redirect_uri="] {
            assert!(authorize.contains(part), "{part} is missing in {authorize}");
        }
        assert_eq!(world.sign_in(&mut browser, "idp", "").await, "/");
        let user = world.me(&mut browser).await;
        assert_eq!((&user["username"], &user["role"]), (&json!("ada@corp.example"), &json!("user")));
        let projects = world.get(&mut browser, "/api/projects").await.success().expect("a list");
        assert_eq!(projects["items"], json!([]));

        world.provider.set_profile(json!({ "sub": "7", "name": "Countess of Lovelace" }));
        let mut later = Browser::default();
        assert_eq!(world.sign_in(&mut later, "idp", "").await, "/");
        let again = world.me(&mut later).await;
        assert_eq!((&again["id"], &again["name"]), (&user["id"], &json!("Countess of Lovelace")));
        assert_eq!(again["email"], json!("ada@corp.example"), "an address that is not sent stays");
    })
    .await;
}

/// Invites an account; the hash of the token that sets its password.
async fn invite(world: &World, user: UserId, email: &str, expires_at: Timestamp) -> [u8; 32] {
    let hash = Sha256::digest(email).into();
    let now = world.service.state().now();
    let mut session = world.service.state().store().db().begin().await.expect("a transaction");
    let invitation = InvitationRow {
        id: invitations::new_id(&mut session).await.expect("an id"),
        user,
        email: email.to_owned(),
        role: Role::User,
        scope: InvitedScope::default(),
        invited_by: None,
        created_at: now,
        expires_at,
        accepted_at: None,
        revoked_at: None,
    };
    invitations::insert(&mut session, &invitation).await.expect("invited");
    let purpose = TokenPurpose::Invite;
    let new = NewAccountToken { hash, user, purpose, email: Some(email.to_owned()), created_at: now };
    tokens::insert(&mut session, &new).await.expect("a token");
    session.commit().await.expect("stored");
    hash
}

#[tokio::test]
async fn an_invitation_is_accepted_at_a_provider_once_and_in_time() {
    on_both(&[], async |world| {
        let now = world.service.state().now();
        let trusted = |address| Some((address, EmailSource::Admin));
        let invited = world.account("ada", trusted("ada@corp.example")).await;
        let sets_password = async |hash| {
            let mut session = world.service.state().store().db().read().await.expect("a connection");
            tokens::sets_password(&mut session, hash, now).await.expect("an answer")
        };
        let token = invite(world, invited, "ada@corp.example", Timestamp(now.millis() + 60_000)).await;
        assert!(sets_password(token).await);
        let late = world.account("bob", trusted("bob@corp.example")).await;
        invite(world, late, "bob@corp.example", Timestamp(now.millis() - 1)).await;

        world.provider.set_profile(person("8", "bob@corp.example", true));
        let mut browser = Browser::default();
        assert_eq!(world.sign_in(&mut browser, "idp", "").await, "/login?error=access-denied");
        assert_eq!(world.me(&mut browser).await, Value::Null, "its time was over");

        world.provider.set_profile(person("7", "ada@corp.example", true));
        let mut browser = Browser::default();
        assert_eq!(world.sign_in(&mut browser, "idp", "").await, "/");
        let mut session = world.service.state().store().db().read().await.expect("a connection");
        assert_eq!(invitations::open_until(&mut session, invited).await.expect("an answer"), None);
        drop(session);
        assert!(!sets_password(token).await, "whoever still holds the link is not asked for");
        assert_eq!(world.me(&mut browser).await["username"], json!("ada"), "the session goes on");
    })
    .await;
}

#[tokio::test]
async fn a_sign_in_begins_with_what_nobody_else_can_know() {
    on_both(&[], async |world| {
        for provider in ["idp", "codehost"] {
            let answer =
                world.get(&mut Browser::default(), &format!("/api/auth/oauth/{provider}/login")).await;
            let address = reqwest::Url::parse(answer.header(LOCATION.as_str())).expect("an address");
            let asked: BTreeMap<String, String> = address.query_pairs().into_owned().collect();
            assert_eq!(address.query_pairs().count(), asked.len(), "each once: {address}");
            // 32 random bytes are 43 letters, and so is a SHA-256.
            let is_random = |text: &str| {
                text.len() == 43
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            };
            assert!(is_random(&asked["state"]) && is_random(&asked["code_challenge"]), "{address}");
            assert_eq!(
                (asked["code_challenge_method"].as_str(), asked["response_type"].as_str()),
                ("S256", "code")
            );
            let back = format!("{}/api/auth/oauth/{provider}/callback", world.service.base_url());
            assert_eq!(asked["redirect_uri"], back);
            let sets: Vec<&str> =
                answer.headers.get_all(SET_COOKIE).iter().map(|set| set.to_str().expect("ASCII")).collect();
            assert_eq!(sets.len(), 1, "{sets:?}");
            assert!(
                sets[0].starts_with("svc_oauth=")
                    && sets[0].ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax"),
                "{sets:?}"
            );
            for secret in [&asked["state"], &asked["code_challenge"]] {
                assert!(!sets[0].contains(secret.as_str()), "the cookie is sealed");
            }
            let again = world.begin(&mut Browser::default(), provider, "").await;
            assert!(!again.contains(&asked["state"]) && !again.contains(&asked["code_challenge"]));
        }
    })
    .await;
}

#[tokio::test]
async fn a_code_counts_only_with_the_verifier_it_was_asked_for_with() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(person("7", "ada@corp.example", true));
        let (mut one, mut other) = (Browser::default(), Browser::default());
        let of_one = world.begin(&mut one, "idp", "").await;
        let of_other = world.begin(&mut other, "idp", "").await;
        let part = |address: &reqwest::Url, name: &str| {
            let found = address.query_pairs().find(|(key, _)| key == name).expect("a part");
            found.1.into_owned()
        };
        let state = part(&world.provider.agree(&of_one).expect("agreed"), "state");
        let code = part(&world.provider.agree(&of_other).expect("agreed"), "code");
        let path = format!("/api/auth/oauth/idp/callback?code={code}&state={state}");
        let answer = world.get(&mut one, &path).await;
        assert_eq!(answer.header("location"), "/login?error=oauth-failed");
        assert_eq!(world.provider.token_requests(), 1, "the provider looked at it");
        assert_eq!(world.me(&mut one).await, Value::Null);
    })
    .await;
}

#[tokio::test]
async fn only_a_trusted_address_attracts_a_provider_account() {
    on_both(&[], async |world| {
        let trusted = world.account("trusted", Some(("ada@corp.example", EmailSource::Admin))).await;
        let own = world.account("own", Some(("bob@corp.example", EmailSource::Own))).await;

        world.provider.set_profile(person("7", "ADA@corp.example", false));
        assert_eq!(world.sign_in(&mut Browser::default(), "idp", "").await, "/");
        assert_eq!(world.stored(trusted).await.oauth, None, "an address that nobody verified links nothing");

        world.provider.set_profile(person("8", "bob@corp.example", true));
        assert_eq!(world.sign_in(&mut Browser::default(), "idp", "").await, "/");
        assert_eq!(world.stored(own).await.oauth, None, "an address of one's own making attracts nothing");

        // The Kelvin sign is a small k in lower case, and another mailbox.
        let kim = world.account("kim", Some(("kim@corp.example", EmailSource::Admin))).await;
        world.provider.set_profile(person("10", "\u{212a}im@corp.example", true));
        assert_eq!(world.sign_in(&mut Browser::default(), "idp", "").await, "/");
        assert_eq!(world.stored(kim).await.oauth, None, "an address that only looks alike links nothing");

        world.provider.set_profile(person("9", "Ada@corp.example", true));
        let mut browser = Browser::default();
        assert_eq!(world.sign_in(&mut browser, "idp", "").await, "/");
        assert_eq!(world.me(&mut browser).await["username"], json!("trusted"));
        assert_eq!(world.stored(trusted).await.session_epoch, 1, "other sessions end");

        world.provider.set_profile(json!({ "id": 12, "login": "ada" }));
        world
            .provider
            .set_emails(json!([{ "email": "ada@corp.example", "primary": true, "verified": true }]));
        let end = world.sign_in(&mut Browser::default(), "codehost", "").await;
        assert_eq!(end, "/login?error=account-exists");
    })
    .await;
}

#[tokio::test]
async fn a_code_host_account_without_a_verified_address_gets_an_account_of_its_own() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(json!({ "id": 12, "login": "ada", "email": "public@corp.example" }));
        let mut browser = Browser::default();
        assert_eq!(world.sign_in(&mut browser, "codehost", "").await, "/");
        let user = world.me(&mut browser).await;
        assert_eq!((&user["username"], &user["email"]), (&json!("codehost-12"), &Value::Null));
    })
    .await;
}

#[tokio::test]
async fn a_callback_counts_once_in_the_browser_that_began_it() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(person("7", "ada@corp.example", true));
        let mut browser = Browser::default();
        let authorize = world.begin(&mut browser, "idp", "").await;
        let back = world.provider.agree(&authorize).expect("agreed");
        let query = back.query().expect("a query").to_owned();
        let state = query.split("state=").nth(1).expect("a state").to_owned();
        let refused = "/login?error=invalid-state";
        let end = async |mut browser: Browser, path: &str| {
            world.get(&mut browser, path).await.header("location").to_owned()
        };
        let callback = "/api/auth/oauth/idp/callback";
        assert_eq!(
            end(Browser::default(), &format!("{callback}?{query}")).await,
            refused,
            "without the cookie"
        );
        for wrong in ["state=AAAA", "state=", &format!("state={state}&state={state}"), ""] {
            let path = format!("{callback}?code=code-1&{wrong}");
            assert_eq!(end(browser.clone(), &path).await, refused, "{wrong}");
        }
        let other = format!("/api/auth/oauth/codehost/callback?{query}");
        assert_eq!(end(browser.clone(), &other).await, refused, "at another provider");
        assert_eq!(world.provider.token_requests(), 0, "nobody was asked about any of these");

        let mut before = browser.clone();
        assert_eq!(end(browser.clone(), &format!("{callback}?{query}")).await, "/");
        let again = world.get(&mut before, &format!("{callback}?{query}")).await;
        assert_eq!(again.header("location"), refused, "a second time");
        let sets: Vec<_> = again.headers.get_all(SET_COOKIE).iter().collect();
        assert!(sets.len() == 1 && sets[0].to_str().expect("ASCII").starts_with("svc_oauth=;"), "{sets:?}");
        assert_eq!(world.provider.token_requests(), 1);

        let mut declined = Browser::default();
        let authorize = world.begin(&mut declined, "idp", "").await;
        let state = world.provider.agree(&authorize).expect("agreed");
        let state = state.query().and_then(|query| query.split("state=").nth(1)).expect("a state").to_owned();
        let path = format!("{callback}?error=access_denied&state={state}");
        assert_eq!(end(declined, &path).await, "/login?error=access-denied");
        assert_eq!(
            end(Browser::default(), "/api/auth/oauth/other/login").await,
            "/login?error=invalid-provider"
        );
    })
    .await;
}

#[tokio::test]
async fn strangers_do_not_fill_the_audit_log() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        for _ in 0..30 {
            let answer =
                world.get(&mut Browser::default(), "/api/auth/oauth/idp/callback?code=x&state=y").await;
            assert_eq!(answer.header("location"), "/login?error=invalid-state");
        }
        let mut session = world.service.state().store().db().read().await.expect("a connection");
        let noted = audit::list(&mut session, &AuditFilter::default(), 100).await.expect("entries");
        let refused = noted.iter().filter(|entry| entry.action == "oauth.refused").count();
        assert_eq!(refused, 20);
    })
    .await;
}

#[tokio::test]
async fn allowlists_are_asked_at_every_sign_in() {
    let lists = [
        ("SERVICE_OAUTH_ALLOWED_DOMAINS", "corp.example"),
        ("SERVICE_OAUTH_CODEHOST_ALLOWED_ORGS", "acme, other"),
    ];
    on_both(&lists, async |world| {
        world.account("root", None).await;
        for (email, verified, end) in [
            ("ada@other.example", true, "/login?error=domain-not-allowed"),
            ("ada@sub.corp.example", true, "/login?error=domain-not-allowed"),
            ("ada@other.example@corp.example", true, "/login?error=domain-not-allowed"),
            ("ada@corp.example.evil", true, "/login?error=domain-not-allowed"),
            ("ada@corp.example", false, "/login?error=domain-not-allowed"),
            ("ada@CORP.example", true, "/"),
        ] {
            world.provider.set_profile(person("7", email, verified));
            assert_eq!(world.sign_in(&mut Browser::default(), "idp", "").await, end, "{email}");
        }
        world.provider.set_profile(json!({ "id": 12, "login": "ada" }));
        world
            .provider
            .set_emails(json!([{ "email": "eve@corp.example", "primary": true, "verified": true }]));
        let many =
            |last: &str| (0..150).map(|n| format!("org-{n}")).chain([last.to_owned()]).collect::<Vec<_>>();
        world.provider.set_organisations(many("stranger"));
        let end = world.sign_in(&mut Browser::default(), "codehost", "").await;
        assert_eq!(end, "/login?error=org-not-allowed");
        world.provider.set_organisations(many("Acme"));
        let mut browser = Browser::default();
        assert!(world.begin(&mut browser, "codehost", "").await.contains("read%3Aorg"));
        assert_eq!(world.sign_in(&mut browser, "codehost", "").await, "/");
    })
    .await;
}

#[tokio::test]
async fn a_signed_in_person_links_and_unlinks_a_provider_account() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(person("1", "ada@corp.example", true));
        let mut ada = Browser::default();
        assert_eq!(world.sign_in(&mut ada, "idp", "").await, "/");
        assert_eq!(
            world.sign_in(&mut ada.clone(), "idp", "?link=1").await,
            "/settings/account?error=already-linked",
            "one provider account for one account"
        );
        let nobody = world.begin(&mut Browser::default(), "idp", "?link=1").await;
        assert_eq!(nobody, "/settings/account?error=link-requires-login");

        // Without a password nobody could sign in any more.
        let unlink = async |browser: &Browser| {
            let request = world.service.client().request(Method::POST, "/api/auth/oauth/idp/unlink");
            Answer::send(request.header(COOKIE, browser.cookies())).await.expect("an answer")
        };
        let refused = unlink(&ada).await;
        assert_eq!(
            (refused.status.as_u16(), refused.json().expect("JSON")["code"].clone()),
            (400, json!("password_required"))
        );
        let id = UserId(world.me(&mut ada).await["id"].as_i64().expect("an id"));
        let mut session = world.service.state().store().db().begin().await.expect("a transaction");
        let mut user = users::lock(&mut session, id).await.expect("an answer").expect("an account");
        user.password = "something".to_owned();
        users::save(&mut session, &user).await.expect("saved");
        session.commit().await.expect("stored");

        let mut elsewhere = Browser::default();
        assert_eq!(world.sign_in(&mut elsewhere, "idp", "").await, "/");
        let done = unlink(&ada).await;
        assert_eq!(done.status, 200, "{}", done.text());
        ada.keep(&done);
        assert_eq!(
            world.me(&mut ada).await["username"],
            json!("ada@corp.example"),
            "the acting session goes on"
        );
        assert_eq!(world.me(&mut elsewhere).await, Value::Null, "the others end");
        assert_eq!(unlink(&ada).await.json().expect("JSON")["code"], json!("not_linked"));

        world.provider.set_profile(json!({ "id": 12, "login": "ada" }));
        let end = world.sign_in(&mut ada, "codehost", "?link=1").await;
        assert_eq!(end, "/settings/account?linked=1");
        assert_eq!(world.me(&mut ada).await["username"], json!("ada@corp.example"));
        assert_eq!(world.stored(id).await.oauth.expect("a link").id, "12");

        // What is linked to one account is not linked to another.
        let root = world.account("eve", None).await;
        let browser = world.service.browser_of(root).await.expect("a browser");
        let cookie = browser.cookie("svc_session").expect("a cookie");
        let mut eve = Browser(vec![("svc_session".to_owned(), cookie)]);
        let end = world.sign_in(&mut eve, "codehost", "?link=1").await;
        assert_eq!(end, "/settings/account?error=already-linked");
        assert_eq!(world.stored(root).await.oauth, None);
        assert_eq!(world.stored(id).await.oauth.expect("a link").id, "12");

        // Each of these is noted once, the refusals with their reason.
        let mut session = world.service.state().store().db().read().await.expect("a connection");
        let noted = audit::list(&mut session, &AuditFilter::default(), 100).await.expect("entries");
        let noted: Vec<(String, Value)> = noted
            .into_iter()
            .rev()
            .filter(|entry| entry.action.starts_with("oauth."))
            .map(|entry| {
                let detail: Value = serde_json::from_str(&entry.detail).expect("a detail");
                (entry.action, detail["reason"].clone())
            })
            .collect();
        let expected = [
            ("oauth.succeeded", Value::Null),
            ("oauth.refused", json!("already-linked")),
            ("oauth.succeeded", Value::Null),
            ("oauth.unlinked", Value::Null),
            ("oauth.linked", Value::Null),
            ("oauth.refused", json!("already-linked")),
        ];
        assert_eq!(noted, expected.map(|(action, reason)| (action.to_owned(), reason)));
    })
    .await;
}
