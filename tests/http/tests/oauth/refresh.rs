//! What a provider's profile changes of an account: nothing when it is linked,
//! name, avatar and address when its person signs in there again. Whoever had
//! the address before is told.

use callboard_store::Db;

use super::*;
use crate::users::signed_in_at;

/// Addresses of the notices that were enqueued, with what they are about, oldest first.
async fn notices(world: &World) -> Vec<(String, String)> {
    const NOTICES: &str = "SELECT payload FROM jobs WHERE kind = 'mail_notice' ORDER BY id";
    let payloads: Vec<String> = match world.service.state().store().db() {
        Db::Sqlite { readers, .. } => {
            let mut connection = readers.get().await.expect("a connection");
            sqlx::query_scalar(NOTICES).fetch_all(&mut *connection).await.expect("rows")
        }
        Db::Postgres(pool) => {
            let mut connection = pool.get().await.expect("a connection");
            sqlx::query_scalar(NOTICES).fetch_all(&mut *connection).await.expect("rows")
        }
    };
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let read = payloads.iter().map(|payload| serde_json::from_str::<Value>(payload).expect("JSON"));
    read.map(|payload| (text(&payload["address"]), text(&payload["notice"]))).collect()
}

/// Entries of the audit log about an account, oldest first.
async fn audited(world: &World, id: UserId) -> Vec<(String, Value)> {
    let mut session = world.service.state().store().db().read().await.expect("a connection");
    let of_user = AuditFilter { target_id: Some(id.get()), ..AuditFilter::default() };
    let entries = audit::list(&mut session, &of_user, 100).await.expect("entries");
    let detail = |text: &str| serde_json::from_str(text).expect("a detail");
    entries.into_iter().rev().map(|entry| (entry.action, detail(&entry.detail))).collect()
}

async fn browser_of(world: &World, id: UserId) -> Browser {
    let now = world.service.state().now();
    let cookie = signed_in_at(&world.service, id, now).await.cookie("svc_session").expect("a cookie");
    Browser(vec![("svc_session".to_owned(), cookie)])
}

#[tokio::test]
async fn linking_changes_neither_name_nor_address() {
    on_both(&[], async |world| {
        let old = "ada@corp.example";
        let id = world.account("ada", Some((old, EmailSource::Verified))).await;
        let before = world.stored(id).await;
        let mut browser = browser_of(world, id).await;
        world.provider.set_profile(person("7", "thief@elsewhere.example", true));
        assert_eq!(world.sign_in(&mut browser, "idp", "?link=1").await, "/settings/account?linked=1");
        let linked = world.stored(id).await;
        assert!(linked.oauth.is_some());
        assert_eq!((&linked.name, &linked.email), (&before.name, &before.email));
        assert_eq!(linked.avatar.as_deref(), Some("https://pictures.example/ada.png"), "there was none");
        assert_eq!(notices(world).await, [(old.to_owned(), "provider_linked".to_owned())]);

        let unlink = world.service.client().request(Method::POST, "/api/auth/oauth/idp/unlink");
        let answer = Answer::send(unlink.header(COOKIE, browser.cookies())).await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let told = (old.to_owned(), "provider_unlinked".to_owned());
        assert_eq!(notices(world).await.last(), Some(&told));

        // Another picture does not replace the one that is there.
        browser.keep(&answer);
        let mut other = person("8", "thief@elsewhere.example", true);
        other["picture"] = json!("https://pictures.example/other.png");
        world.provider.set_profile(other);
        assert_eq!(world.sign_in(&mut browser, "idp", "?link=1").await, "/settings/account?linked=1");
        assert_eq!(world.stored(id).await.avatar, linked.avatar);
    })
    .await;
}

#[tokio::test]
async fn an_account_that_is_found_by_its_address_keeps_how_it_was_proven() {
    on_both(&[], async |world| {
        let id = world.account("ada", Some(("ada@corp.example", EmailSource::Admin))).await;
        let before = world.stored(id).await;
        world.provider.set_profile(person("7", "Ada@corp.example", true));
        assert_eq!(world.sign_in(&mut Browser::default(), "idp", "").await, "/");
        let linked = world.stored(id).await;
        assert!(linked.oauth.is_some());
        assert_eq!((&linked.name, &linked.email), (&before.name, &before.email));
    })
    .await;
}

#[tokio::test]
async fn a_returning_sign_in_refreshes_the_account_and_tells_the_address_before() {
    on_both(&[], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(person("7", "ada@corp.example", true));
        let mut first = Browser::default();
        assert_eq!(world.sign_in(&mut first, "idp", "").await, "/");
        let id = UserId(world.me(&mut first).await["id"].as_i64().expect("an id"));
        assert_eq!(world.sign_in(&mut Browser::default(), "idp", "").await, "/");
        assert_eq!(world.stored(id).await.session_epoch, 0, "nothing changed");

        let mut profile = person("7", "countess@other.example", true);
        profile["name"] = json!("Countess of Lovelace");
        world.provider.set_profile(profile);
        let mut second = Browser::default();
        assert_eq!(world.sign_in(&mut second, "idp", "").await, "/");
        let own = world.me(&mut second).await;
        assert_eq!(
            (&own["name"], &own["email"]),
            (&json!("Countess of Lovelace"), &json!("countess@other.example"))
        );
        assert_eq!(world.me(&mut first).await, Value::Null, "sessions from before the change end");
        assert_eq!(notices(world).await, [("ada@corp.example".to_owned(), "email_changed".to_owned())]);

        let audited = audited(world, id).await;
        let changes: Vec<_> = audited.iter().filter(|(action, _)| action == "user.changed").collect();
        let expected = json!({
            "provider": "idp",
            "changed": ["name", "email"],
            "name": { "from": "A…", "to": "C…" },
            "email": { "from": "a…@corp.example", "to": "c…@other.example" },
        });
        assert!(changes.len() == 1 && changes[0].1 == expected, "{audited:?}");
    })
    .await;
}
