//! Who may take power from whom, and that somebody always keeps it.

use std::collections::BTreeSet;

use callboard_domain::account::{KeyPermission, Role};
use callboard_store::accounts::users::UserFilter;
use callboard_test_support::for_each_secured_service;
use futures::future::join_all;
use serde_json::json;

use super::*;

#[tokio::test]
async fn nobody_changes_their_own_power_and_the_last_administrator_stays() {
    for_each_secured_service(async |service| {
        let (admin, admin_id) = administrator(service).await;
        let own = format!("/api/users/{admin_id}");
        for body in
            [json!({ "role": "user" }), json!({ "disabled": true }), json!({ "disabled": true, "name": "x" })]
        {
            refused(&patch(&admin, "/api/users/me", body).await, 400, "cannot_change_self");
        }
        refused(&delete(&admin, &own).await, 400, "cannot_change_self");
        refused(&delete(&admin, "/api/users/me").await, 400, "cannot_change_self");
        // What is as it is changes nothing.
        done(
            &patch(&admin, &own, json!({ "role": "administrator", "disabled": false, "name": "Root" })).await,
        );

        // Somebody without password counts for nothing.
        done(&post(&admin, "/api/users", new_user("nobody", "administrator")).await);
        let program = service.program_of(admin_id, KeyPermission::Full).await.expect("a key");
        let off = service.account("off", Role::Administrator).await.expect("an account");
        let other = service.browser_of(off).await.expect("a browser");
        done(&patch(&admin, &format!("/api/users/{off}"), json!({ "disabled": true })).await);
        assert!(!is_let_in(&other).await);
        refused(&delete(&program, &own).await, 400, "cannot_change_self");
        done(&patch(&admin, &format!("/api/users/{off}"), json!({ "disabled": false })).await);
        assert!(!is_let_in(&other).await, "an ended session stays ended");
        let other = service.browser_of(off).await.expect("a browser");
        done(&patch(&other, &own, json!({ "role": "reporter" })).await);
        assert!(!is_let_in(&admin).await);
    })
    .await;
}

#[tokio::test]
async fn a_person_does_not_raise_themselves() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let (ada, ada_id) = person(service, "ada", Role::User).await;
        let before = get(&admin, &format!("/api/users/{ada_id}")).await;
        // What no answer tells.
        let kept = async || {
            let mut session = service.state().store().db().read().await.expect("a connection");
            let row = users::get(&mut session, ada_id).await.expect("an answer").expect("an account");
            (row.password, row.session_epoch, row.oauth, row.disabled_at)
        };
        let kept_before = kept().await;
        for body in [
            json!({ "role": "administrator" }),
            json!({ "role": "user" }),
            json!({ "disabled": false }),
            json!({ "role": "administrator", "name": "Ada" }),
        ] {
            refused(&patch(&ada, "/api/users/me", body).await, 403, "insufficient_role");
        }
        let ignored = json!({ "sessionEpoch": 9, "emailVerified": true, "password": "another password", "projectIds": [1] });
        refused(&patch(&ada, "/api/users/me", ignored.clone()).await, 400, "no_fields");
        let mut with_name = ignored;
        with_name["name"] = json!("Ada");
        done(&patch(&ada, "/api/users/me", with_name).await);
        let after = get(&admin, &format!("/api/users/{ada_id}")).await;
        for field in ["username", "role", "email", "emailVerified", "hasPassword", "disabled", "isGlobal"] {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!(kept().await, kept_before);
        assert!(is_let_in(&ada).await);
        for path in ["/api/users/me/projects", "/api/invitations", "/api/audit"] {
            refused(&ada.get(path).await.expect("an answer"), 403, "insufficient_role");
        }
        refused(&delete(&ada, "/api/users/me").await, 403, "insufficient_role");
    })
    .await;
}

#[tokio::test]
async fn a_change_of_power_acts_on_the_next_request() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let (ada, ada_id) = person(service, "ada", Role::Reporter).await;
        service.assign(ada_id, None).await.expect("assigned");
        let path = format!("/api/users/{ada_id}");
        let program = service.program_of(ada_id, KeyPermission::Full).await.expect("a key");
        let submission = crate::builders::run("shop", "passed", Vec::new());
        assert_eq!(post(&program, "/api/test-runs/submit", submission.clone()).await.status, 200);

        done(&patch(&admin, &path, json!({ "role": "user" })).await);
        assert!(!is_let_in(&ada).await, "a change of the role ends sessions");
        refused(&post(&program, "/api/test-runs/submit", submission).await, 403, "insufficient_role");
        assert_eq!(program.get("/api/projects").await.expect("an answer").status, 200);

        done(&patch(&admin, &path, json!({ "disabled": true })).await);
        assert!(!is_let_in(&program).await);
        done(&patch(&admin, &path, json!({ "disabled": false })).await);
        assert!(is_let_in(&program).await);
        done(&delete(&admin, &path).await);
        assert!(!is_let_in(&program).await);
    })
    .await;
}

#[tokio::test]
async fn a_key_narrowed_to_projects_administrates_none_of_the_accounts() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let shop = project(service, "shop").await;
        let ada = service.account("ada", Role::User).await.expect("an account");
        let body = json!({ "name": "narrow", "projectIds": [shop.get()] });
        let key = done(&post(&admin, "/api/users/me/api-keys", body).await)["key"].clone();
        let program =
            service.client().with_header("x-api-key", key.as_str().expect("a key")).expect("a header");
        let user = format!("/api/users/{ada}");
        let invitation = json!({ "email": "bob@example.org", "role": "user" });
        for answer in [
            post(&program, "/api/users", new_user("eve", "administrator")).await,
            patch(&program, &user, json!({ "role": "administrator" })).await,
            put(&program, &format!("{user}/projects"), json!({ "isGlobal": true })).await,
            post(&program, "/api/invitations", invitation).await,
            post(&program, &format!("{user}/invite"), json!({})).await,
            delete(&program, &user).await,
            // Accounts lie within no project: not even to be read, and no key is made for them.
            program.get(&user).await.expect("an answer"),
            program.get(&format!("{user}/sessions")).await.expect("an answer"),
            post(&program, &format!("{user}/api-keys"), json!({ "name": "another" })).await,
        ] {
            refused(&answer, 403, "key_scope_denied");
        }
        let listed = get(&program, "/api/users").await;
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "its owner only: {listed}");
        assert_eq!(get(&admin, &user).await["role"], "user");
        done(
            &put(&program, &format!("/api/projects/{shop}/members"), json!({ "userIds": [ada.get()] })).await,
        );
    })
    .await;
}

#[tokio::test]
async fn of_two_administrators_who_remove_each_other_one_remains() {
    const ROUNDS: usize = 100;
    for_each_secured_service(async |service| {
        let mut survivor = service.account("admin", Role::Administrator).await.expect("an account");
        for round in 0..ROUNDS {
            let rival =
                service.account(&format!("rival {round}"), Role::Administrator).await.expect("an account");
            let mut sides = Vec::new();
            for (one, other) in [(survivor, rival), (rival, survivor)] {
                sides.push((service.browser_of(one).await.expect("a browser"), other));
            }
            let duel = sides.into_iter().enumerate().map(async |(side, (browser, other))| {
                let path = format!("/api/users/{other}");
                match (round + side) % 3 {
                    0 => delete(&browser, &path).await,
                    1 => patch(&browser, &path, json!({ "role": "user" })).await,
                    _ => patch(&browser, &path, json!({ "disabled": true })).await,
                }
            });
            let answers = join_all(duel).await;
            let statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
            assert_eq!(
                statuses.iter().filter(|status| **status == 200).count(),
                1,
                "round {round}: {statuses:?}"
            );
            // Refused as the last one, too late as somebody who was removed, or with nobody left to remove.
            assert!(
                statuses.iter().all(|status| [200, 401, 403, 404, 409].contains(status)),
                "round {round}: {statuses:?}"
            );
            let wanted = UserFilter {
                role: Some(Role::Administrator),
                disabled: Some(false),
                ..UserFilter::default()
            };
            let mut session = service.state().store().db().read().await.expect("a connection");
            let left = users::list(&mut session, &wanted, None, 9).await.expect("accounts");
            assert_eq!(left.len(), 1, "round {round}");
            survivor = left[0].id;
        }
    })
    .await;
}

#[tokio::test]
async fn of_many_accounts_with_one_name_one_is_made() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let names = ["Ada", "ada", "ADA", "ａｄａ"];
        let answers =
            join_all((0..20).map(|n| post(&admin, "/api/users", new_user(names[n % 4], "user")))).await;
        let refusals: Vec<_> = answers.iter().filter(|answer| answer.status != 201).map(refusal).collect();
        assert_eq!(refusals.len(), 19);
        assert_eq!(BTreeSet::from_iter(refusals), BTreeSet::from([(409, "name_taken".to_owned())]));
        assert_eq!(all(&admin, "/api/users", "id", 200).await.len(), 2);
    })
    .await;
}
