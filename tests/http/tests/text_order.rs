//! Lists that are ordered by texts: by their bytes, on both engines, whatever
//! language the database speaks.

use callboard_store::Db;
use callboard_test_support::{Client, Service, for_each_service};
use serde_json::{Value, json};
use sqlx::Row as _;

use crate::builders::{attempt, run, with};
use crate::comparison::submit;

/// Words that languages order otherwise than their bytes.
const WORDS: [&str; 10] = ["b", "B", "a", "A b", "a-c", "ab", "_x", "\u{c4}", "Z", "10"];

/// A text of every row of a list, two rows at a time.
async fn texts(client: &Client, list: &str, key: &str) -> Vec<String> {
    let (mut texts, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.json(&format!("{list}&limit=2{cursor}")).await.expect(list);
        for item in page["items"].as_array().expect("items") {
            texts.push(item[key].as_str().expect(key).to_owned());
        }
        let Some(next) = page["nextCursor"].as_str() else { return texts };
        cursor = format!("&cursor={next}");
    }
}

/// Some texts in the order of their bytes.
fn by_bytes(of: impl Fn(&str) -> String) -> Vec<String> {
    let mut texts: Vec<String> = WORDS.iter().map(|word| of(word)).collect();
    texts.sort_unstable();
    texts
}

#[tokio::test]
async fn pages_follow_the_bytes_of_texts_and_lose_none() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let file = |word: &str| format!("tests/{word}.spec.ts");
        let case = |word: &&str| {
            with(attempt(word, "passed", 0), json!({ "location": format!("{}:7:5", file(word)) }))
        };
        let first = submit(client, run("shop", "passed", WORDS.iter().map(case).collect())).await;
        let same = |word: &str| word.to_owned();
        let tests = "/api/projects/1/test-cases";
        assert_eq!(texts(client, &format!("{tests}?sort=title"), "title").await, by_bytes(same));
        let mut reversed = by_bytes(same);
        reversed.reverse();
        assert_eq!(texts(client, &format!("{tests}?sort=title&dir=desc"), "title").await, reversed);
        assert_eq!(texts(client, &format!("{tests}?sort=file"), "filePath").await, by_bytes(file));
        let executions = format!("/api/test-runs/{first}/executions?sort=file");
        assert_eq!(texts(client, &executions, "filePath").await, by_bytes(file));

        for word in WORDS {
            submit(client, run(word, "passed", vec![])).await;
            let policy = json!({ "name": word, "policy": { "maxFailed": 0 } });
            client.post_json("/api/projects/1/gate-policies", &policy).await.expect("a policy");
        }
        let mut projects = by_bytes(same);
        projects.push("shop".to_owned());
        projects.sort_unstable();
        assert_eq!(texts(client, "/api/projects?sort=name", "name").await, projects);
        let policies = client.json("/api/projects/1/gate-policies").await.expect("policies");
        let names: Vec<&Value> =
            policies["items"].as_array().expect("policies").iter().map(|one| &one["name"]).collect();
        assert_eq!(json!(names), json!(by_bytes(same)));
    })
    .await;
}

#[tokio::test]
async fn every_text_of_the_database_is_ordered_by_its_bytes() {
    for_each_service(async |service: &Service| {
        let Db::Postgres(pool) = service.state().store().db() else { return };
        let mut connection = pool.get().await.expect("a connection");
        let others = "SELECT c.relname || '.' || a.attname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'schema_migrations' \
             AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'text'::regtype AND a.attcollation <> '\"C\"'::regcollation";
        let others = sqlx::query(others).fetch_all(&mut *connection).await.expect("columns");
        let others: Vec<String> = others.iter().map(|row| row.get("name")).collect();
        assert_eq!(others, [""; 0], "declare them with COLLATE \"C\"");
    })
    .await;
}
