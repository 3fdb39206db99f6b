//! Which accounts reach which projects: two views of the same rows.

use callboard_domain::account::Role;
use callboard_test_support::for_each_secured_service;
use futures::future::join_all;
use serde_json::json;

use super::*;

#[tokio::test]
async fn both_views_edit_the_same_assignments() {
    for_each_secured_service(async |service| {
        let (admin, admin_id) = administrator(service).await;
        let (shop, other) = (project(service, "shop").await, project(service, "other").await);
        let (ada, ada_id) = person(service, "ada", Role::Reporter).await;
        let bob = service.account("bob", Role::User).await.expect("an account");
        let carl = service.account("carl", Role::User).await.expect("an account");
        let of = |user: UserId| format!("/api/users/{user}/projects");
        let members = format!("/api/projects/{shop}/members");
        let sees = async || all(&ada, "/api/projects?sort=name", "name", 10).await;

        assert!(sees().await.is_empty());
        done(&put(&admin, &of(ada_id), json!({ "projectIds": [shop.get(), other.get()] })).await);
        assert_eq!(sees().await, ["other", "shop"]);
        let answer = done(&put(&admin, &of(bob), json!({ "global": true })).await);
        assert_eq!(answer, json!({ "success": true, "isGlobal": true, "projectIds": [] }));
        insta::assert_json_snapshot!("members", get(&admin, &members).await);

        // The project's view.
        done(&put(&admin, &members, json!({ "userIds": [carl.get(), bob.get()] })).await);
        assert_eq!(sees().await, ["other"]);
        assert_eq!(get(&admin, &of(bob)).await, json!({ "isGlobal": true, "projectIds": [shop.get()] }));
        assert_eq!(get(&admin, &of(carl)).await, json!({ "isGlobal": false, "projectIds": [shop.get()] }));
        done(&put(&admin, &members, json!({ "userIds": null })).await);
        assert_eq!(get(&admin, &of(bob)).await, json!({ "isGlobal": true, "projectIds": [] }));
        assert_eq!(get(&admin, &of(carl)).await, json!({ "isGlobal": false, "projectIds": [] }));

        // Absent stays.
        done(&put(&admin, &of(ada_id), json!({ "isGlobal": true })).await);
        assert_eq!(get(&admin, &of(ada_id)).await, json!({ "isGlobal": true, "projectIds": [other.get()] }));
        done(&put(&admin, &of(ada_id), json!({ "projectIds": [] })).await);
        assert_eq!(sees().await, ["other", "shop"]);
        done(&put(&admin, &of(ada_id), json!({ "isGlobal": false })).await);
        assert!(sees().await.is_empty());

        // An administrator is assigned nothing and reaches everything.
        assert_eq!(get(&admin, &of(admin_id)).await, json!({ "isGlobal": true, "projectIds": [] }));
        let words = audited(&admin, &format!("&action=assignments.&actor={admin_id}")).await;
        assert_eq!(words.len(), 7, "one for each change, none for what changed nothing: {words:?}");
        let in_project = audited(&admin, &format!("&project={shop}")).await;
        assert_eq!(in_project.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn members_are_listed_once_whatever_the_page_size() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let shop = project(service, "shop").await;
        for n in 0..60 {
            let user = service.account(&format!("person {n:02}"), Role::User).await.expect("an account");
            if n % 3 != 0 {
                service.assign(user, Some(shop)).await.expect("assigned");
            }
            if n % 4 == 0 {
                service.assign(user, None).await.expect("assigned");
            }
        }
        let path = format!("/api/projects/{shop}/members");
        let whole = all(&admin, &path, "id", 200).await;
        assert_eq!(whole.len(), 40 + 5 + 1);
        assert_eq!(all(&admin, &path, "id", 7).await, whole);
        let other = project(service, "other").await;
        let cursor = get(&admin, &format!("{path}?limit=1")).await["nextCursor"].clone();
        let foreign = format!("/api/projects/{other}/members?cursor={}", cursor.as_str().expect("a cursor"));
        refused(&admin.get(&foreign).await.expect("an answer"), 400, "invalid_cursor");
    })
    .await;
}

#[tokio::test]
async fn changes_from_both_sides_at_once_leave_a_state_that_somebody_asked_for() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let shop = project(service, "shop").await;
        let mut people = Vec::new();
        for n in 0..4 {
            people.push(service.account(&format!("person {n}"), Role::User).await.expect("an account"));
        }
        let members = format!("/api/projects/{shop}/members");
        let changes = (0..24).map(async |n: usize| {
            let user = people[n % 4];
            match n % 3 {
                0 => {
                    put(
                        &admin,
                        &members,
                        json!({ "userIds": people.iter().map(|id| id.get()).collect::<Vec<_>>() }),
                    )
                    .await
                }
                1 => put(&admin, &members, json!({ "userIds": [] })).await,
                _ => {
                    put(&admin, &format!("/api/users/{user}/projects"), json!({ "projectIds": [shop.get()] }))
                        .await
                }
            }
        });
        for answer in join_all(changes).await {
            done(&answer);
        }
        done(&put(&admin, &members, json!({ "userIds": [people[0].get()] })).await);
        let explicit = get(&admin, &members).await;
        let explicit =
            explicit["items"].as_array().expect("members").iter().filter(|item| item["source"] == "explicit");
        assert_eq!(explicit.count(), 1);
    })
    .await;
}
