//! Finding things by their words: what fits, what comes first, and who may
//! see it.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_test_support::{Client, for_each_secured_service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::submit;

async fn search(client: &Client, query: &str) -> Value {
    client.json(&format!("/api/search?q={query}")).await.expect("an answer")
}

fn titles(found: &Value) -> Vec<&str> {
    found["cases"]
        .as_array()
        .expect("a found test")
        .iter()
        .map(|case| case["title"].as_str().expect("a found test"))
        .collect()
}

fn ids(found: &Value, group: &str) -> Vec<i64> {
    found[group]
        .as_array()
        .expect("what was found")
        .iter()
        .map(|found| found["id"].as_i64().expect("what was found"))
        .collect()
}

fn case(title: &str, file: &str) -> Value {
    with(attempt(title, "passed", 0), json!({ "location": format!("{file}:7:5") }))
}

#[tokio::test]
async fn words_find_tests_runs_and_projects_the_best_first() {
    for_each_service(async |service| {
        let client = service.client();
        let old = vec![case("pays later", "tests/checkoutFlow.spec.ts"), case("pay", "tests/cart.spec.ts")];
        let old = with(run("web-shop", "passed", old), json!({ "startTime": "2024-01-01T00:00:00.000Z" }));
        submit(client, old).await;
        let new = vec![case("payment by card", "tests/card.spec.ts"), case("100%_sure\\", "tests/signs.spec.ts")];
        let new = with(
            run("web-shop", "passed", new),
            json!({ "branch": "feature/fast-pay", "label": "Nightly", "commit": "ABCDEF0123456789ABCDEF0123456789ABCDEF01", "commitMessage": "Take cards" }),
        );
        let new = submit(client, new).await;

        let found = search(client, "pay").await;
        // Newer first, then the word itself before longer ones.
        assert_eq!(titles(&found), ["payment by card", "pay", "pays later"]);
        assert_eq!(ids(&found, "runs"), [new]);
        assert_eq!(found["runs"][0]["project"]["name"], "web-shop");
        let told = (&found["runs"][0]["branch"], &found["runs"][0]["commitMessage"]);
        assert_eq!(told, (&json!("feature/fast-pay"), &json!("Take cards")), "what it was found by");
        assert_eq!(found["clusters"], json!([]));
        assert_eq!(titles(&search(client, "checkout%20pay").await), ["pays later"]);
        assert_eq!(titles(&search(client, "flow").await), ["pays later"]);
        assert_eq!(titles(&search(client, "pay%20checkout").await), Vec::<&str>::new(), "only the last word may go on");
        assert_eq!(search(client, "WEB%20sho").await["projects"][0]["name"], "web-shop");
        assert_eq!(ids(&search(client, "nightly").await, "runs"), [new]);
        assert_eq!(ids(&search(client, "abcdef0").await, "runs"), [new]);
        assert_eq!(ids(&search(client, "abcdef").await, "runs"), Vec::<i64>::new());
        assert_eq!(ids(&search(client, &new.to_string()).await, "runs"), Vec::<i64>::new(), "a question has two letters");
        for named in [format!("run%20{new}"), format!("Run%20%23{new}")] {
            let found = search(client, &named).await;
            assert_eq!((ids(&found, "runs"), titles(&found)), (vec![new], vec![]), "{named}");
        }
        assert_eq!(titles(&search(client, "test%201").await).len(), 1);
        assert_eq!(titles(&search(client, "100%25_sure").await), ["100%_sure\\"]);
        for literal in ["%25%25", "__", "%5C%5C"] {
            assert_eq!(titles(&search(client, literal).await), Vec::<&str>::new(), "{literal}");
        }

        let broken = with(attempt("restocks", "failed", 0), json!({ "error": "Error: the warehouse is shut" }));
        submit(client, with(run("web-shop", "failed", vec![broken]), json!({ "isFullRun": false }))).await;
        let cluster = &search(client, "warehouse").await["clusters"][0];
        assert_eq!((&cluster["status"], &cluster["project"]["name"]), (&json!("open"), &json!("web-shop")), "{cluster}");

        let only = client.json("/api/search?q=pay&kinds=cases&limit=1").await.expect("an answer");
        assert_eq!((titles(&only), ids(&only, "runs")), (vec!["payment by card"], vec![]));
        let short = search(client, "p").await;
        assert!(short["hint"].is_string() && titles(&short).is_empty());
        for wrong in ["/api/search", "/api/search?q=pay&kinds=files", "/api/search?q=pay&limit=0"] {
            let answer = client.get(wrong).await.expect("an answer");
            assert_eq!((answer.status.as_u16(), &answer.json().expect("an error")["code"]), (400, &json!("invalid_query")), "{wrong}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_renamed_is_found_by_its_present_words_only() {
    for_each_service(async |service| {
        let client = service.client();
        let stored = submit(client, with(run("shop", "passed", vec![]), json!({ "label": "nightly" }))).await;
        let path = format!("/api/test-runs/{stored}");
        client
            .send_json(Method::PATCH, &path, &json!({ "label": "release" }))
            .await
            .and_then(|answer| answer.success())
            .expect("edited");
        assert_eq!(ids(&search(client, "nightly").await, "runs"), Vec::<i64>::new());
        assert_eq!(ids(&search(client, "release").await, "runs"), [stored]);
        client
            .send_json(Method::PATCH, "/api/projects/1", &json!({ "name": "market", "label": "Old town" }))
            .await
            .and_then(|answer| answer.success())
            .expect("edited");
        assert_eq!(ids(&search(client, "shop").await, "projects"), Vec::<i64>::new());
        for word in ["market", "town"] {
            assert_eq!(ids(&search(client, word).await, "projects"), [1]);
        }
        // Every run of the suite again: nothing is found twice.
        for _ in 0..2 {
            submit(client, run("market", "passed", vec![case("pays", "tests/a.spec.ts")])).await;
        }
        assert_eq!(titles(&search(client, "pays").await), ["pays"]);
    })
    .await;
}

#[tokio::test]
async fn what_others_have_neither_shows_nor_fills_the_page() {
    for_each_secured_service(async |service| {
        let admin = service.account("ada", Role::Administrator).await.expect("an account");
        let admin = service.program_of(admin, KeyPermission::Full).await.expect("a client");
        let own = submit(&admin, run("own", "passed", vec![case("pays own", "tests/a.spec.ts")])).await;
        let own_project =
            admin.json(&format!("/api/test-runs/{own}")).await.expect("a run")["projectId"].as_i64().unwrap();
        let others = (0..1500).map(|n| case(&format!("pays {n}"), "tests/b.spec.ts")).collect();
        let foreign = with(
            run("foreign pays", "passed", others),
            json!({ "commit": "0123456789abcdef", "branch": "pays" }),
        );
        let foreign = submit(&admin, foreign).await;
        let user = service.account("uma", Role::User).await.expect("an account");
        service.assign(user, Some(ProjectId(own_project))).await.expect("assigned");
        let user = service.program_of(user, KeyPermission::Read).await.expect("a client");
        let found = search(&user, "pays").await;
        assert_eq!(
            (titles(&found), ids(&found, "runs"), ids(&found, "projects")),
            (vec!["pays own"], vec![], vec![])
        );
        // By commit, and by the id of a test.
        assert_eq!(ids(&search(&user, "0123456789").await, "runs"), Vec::<i64>::new());
        assert_eq!(ids(&search(&user, "1200").await, "cases"), Vec::<i64>::new());
        assert_eq!(ids(&search(&admin, "1200").await, "cases")[0], 1200);
        assert_eq!(ids(&search(&admin, "0123456789").await, "runs"), [foreign]);
        assert_eq!(search(&admin, "pays").await["cases"].as_array().map(Vec::len), Some(5));
        let nobody = service.account("newcomer", Role::User).await.expect("an account");
        let nobody = service.program_of(nobody, KeyPermission::Read).await.expect("a client");
        assert_eq!(titles(&search(&nobody, "pays").await), Vec::<&str>::new());
    })
    .await;
}

#[tokio::test]
async fn a_word_that_one_project_is_full_of_is_found_in_the_others_too() {
    for_each_service(async |service| {
        let client = service.client();
        let at = |day: &str| json!({ "startTime": format!("2026-01-{day}T10:00:00.000Z") });
        let alone =
            |day| with(run("small", "passed", vec![case("opens", "tests/checkout.spec.ts")]), at(day));
        submit(client, alone("01")).await;
        let many = (0..401).map(|n| case(&format!("test {n}"), "tests/checkout.spec.ts")).collect();
        submit(client, with(run("large", "passed", many), at("02"))).await;
        let found = search(client, "checkout").await;
        assert!(!titles(&found).contains(&"opens"), "the newest come first: {found}");
        submit(client, alone("03")).await;
        let found = search(client, "checkout").await;
        assert_eq!(titles(&found)[0], "opens", "{found}");
    })
    .await;
}

#[tokio::test]
async fn the_beginning_of_a_word_that_one_project_is_full_of_is_found_in_the_others_too() {
    for_each_service(async |service| {
        let client = service.client();
        let at = |day: &str| json!({ "startTime": format!("2026-01-{day}T10:00:00.000Z") });
        let alone =
            |day| with(run("small", "passed", vec![case("opens", "tests/checkbox.spec.ts")]), at(day));
        submit(client, alone("01")).await;
        let many = (0..401).map(|n| case(&format!("test {n}"), "tests/checkout.spec.ts")).collect();
        submit(client, with(run("large", "passed", many), at("02"))).await;
        submit(client, alone("03")).await;
        for question in ["check", "spec%20check", "checkb"] {
            assert_eq!(titles(&search(client, question).await)[0], "opens", "{question}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_words_of_others_do_not_hide_longer_words_of_ones_own() {
    for_each_secured_service(async |service| {
        let admin = service.account("ada", Role::Administrator).await.expect("an account");
        let admin = service.program_of(admin, KeyPermission::Full).await.expect("a client");
        let others = (b'a'..=b'z').map(|end| case(&format!("checka{}", char::from(end)), "tests/b.spec.ts"));
        submit(&admin, run("of others", "passed", others.collect())).await;
        // The last words come first, and the newest tests.
        let many = (0..450).map(|n| case(&format!("checkzone {n}"), "tests/a.spec.ts")).collect();
        let mut own = Vec::new();
        for (name, day, cases) in
            [("large", 1, many), ("small", 3, vec![case("checkbox", "tests/a.spec.ts")])]
        {
            let start = json!({ "startTime": format!("2026-01-0{day}T10:00:00.000Z") });
            let stored = submit(&admin, with(run(name, "passed", cases), start)).await;
            let stored = admin.json(&format!("/api/test-runs/{stored}")).await.expect("a run");
            own.push(ProjectId(stored["projectId"].as_i64().expect("a project")));
        }
        let user = service.account("uma", Role::User).await.expect("an account");
        for project in own {
            service.assign(user, Some(project)).await.expect("assigned");
        }
        let user = service.program_of(user, KeyPermission::Read).await.expect("a client");
        let found = search(&user, "check&limit=20").await;
        assert_eq!(titles(&found)[0], "checkbox");
        // Of more than there is room for the newest are taken.
        let shown = ids(&found, "cases");
        assert_eq!(shown.len(), 20, "{found}");
        assert!(shown[1..].windows(2).all(|pair| pair[0] == pair[1] + 1), "{shown:?}");
    })
    .await;
}
