//! What commits changed.

use callboard_store::Backend;
use callboard_test_support::{CodeHost, Dialect, for_each_backend};
use serde_json::{Value, json};

use super::{connected, encoded, refused, started};

const LOGO: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// The files of a page by name.
fn file<'p>(page: &'p Value, name: &str) -> &'p Value {
    let items = page["items"].as_array().expect("items");
    items.iter().find(|item| item["filename"] == name).unwrap_or_else(|| panic!("no {name} in {page}"))
}

async fn all_dialects_tell_the_same(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let long = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";
        let old = [
            ("cart.ts", Some(&b"a\nb\nc\n"[..])),
            ("gone.ts", Some(b"x\n")),
            ("old name.ts", Some(long.as_bytes())),
        ];
        let root = host.commit("Begin", &old).expect("a commit");
        let new = [
            ("cart.ts", Some(&b"a\n-- b\nc\n"[..])),
            ("gone.ts", None),
            ("logo.png", Some(LOGO)),
            ("old name.ts", None),
            ("src/ä <b>.ts", Some(long.as_bytes())),
        ];
        let tip = host.commit("Change", &new).expect("a commit");
        let project = connected(client, &host, dialect).await;

        let page = client.json(&format!("{project}/commits/{tip}/diff")).await.expect("a diff");
        assert_eq!((&page["commit"]["sha"], &page["commit"]["message"]), (&json!(tip), &json!("Change")));
        assert_eq!((&page["patchesOmitted"], &page["nextCursor"]), (&json!(0), &json!(null)), "{page}");
        let cart = json!({
            "filename": "cart.ts", "previousFilename": null, "status": "modified", "additions": 1, "deletions": 1,
            "patch": "@@ -1,3 +1,3 @@\n a\n-b\n+-- b\n c",
        });
        assert_eq!(*file(&page, "cart.ts"), cart, "{dialect:?}");
        let gone = file(&page, "gone.ts");
        assert_eq!((&gone["status"], &gone["patch"]), (&json!("removed"), &json!("@@ -1 +0,0 @@\n-x")));
        let logo = file(&page, "logo.png");
        assert_eq!((&logo["status"], &logo["patch"]), (&json!("added"), &json!(null)));
        let renamed = file(&page, "src/ä <b>.ts");
        // Gitea's API says of a rename that a file went and one came.
        if dialect != Dialect::Gitea {
            assert_eq!(
                (&renamed["status"], &renamed["previousFilename"]),
                (&json!("renamed"), &json!("old name.ts"))
            );
        }

        let one = client.json(&format!("{project}/commits/{tip}/diff?file={}", encoded("logo.png"))).await;
        let one = one.expect("a diff");
        assert_eq!(one["items"].as_array().map(Vec::len), Some(1));

        // Without parents everything is new.
        let first = client.json(&format!("{project}/commits/{root}/diff")).await.expect("a diff");
        assert_eq!(first["items"].as_array().map(Vec::len), Some(3), "{dialect:?}");
        assert_eq!(file(&first, "gone.ts")["status"], "added");
        assert_eq!(file(&first, "gone.ts")["patch"], "@@ -0,0 +1 @@\n+x");
    }
}

#[tokio::test]
async fn a_diff_says_the_same_whatever_the_provider() {
    for_each_backend(all_dialects_tell_the_same).await;
}

async fn large_commits_come_in_pages(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let names: Vec<String> = (0..70).map(|number| format!("file-{number:03}.txt")).collect();
        let line = "a line that takes some room\n".repeat(300);
        let files: Vec<(&str, Option<&[u8]>)> =
            names.iter().map(|name| (name.as_str(), Some(line.as_bytes()))).collect();
        let tip = host.commit("Many", &files).expect("a commit");
        let project = connected(client, &host, dialect).await;
        let (mut found, mut cursor, mut omitted) = (Vec::new(), String::new(), 0);
        loop {
            let page = client.json(&format!("{project}/commits/{tip}/diff{cursor}")).await.expect("a page");
            let items = page["items"].as_array().expect("items");
            assert!(items.len() <= 30 && page.to_string().len() < 1024 * 1024);
            found.extend(items.iter().map(|item| item["filename"].as_str().expect("a name").to_owned()));
            omitted += page["patchesOmitted"].as_u64().expect("a number");
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("?cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, names, "{dialect:?}");
        // Patches of 200 KB are kept, the rest says how much it is.
        assert!((40..60).contains(&omitted), "{dialect:?}: {omitted}");
    }
}

#[tokio::test]
async fn a_commit_with_many_files_comes_in_pages() {
    for_each_backend(large_commits_come_in_pages).await;
}

async fn unknown_commits_are_told(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        host.commit("Begin", &[]).expect("a commit");
        let project = connected(client, &host, dialect).await;
        let unknown = "0123456789abcdef0123456789abcdef01234567";
        let answer = client.get(&format!("{project}/commits/{unknown}/diff")).await.expect("an answer");
        let said = format!("The repository {} has no commit {unknown}.", dialect.repository());
        assert_eq!(refused(&answer, 502, "upstream_failed")["message"], json!(said));
        let _ = host.take_requests();
        for sha in ["main", "0a1b2c", "%2e%2e", "..%2f..%2fuser", "0a1b2c3%2f.."] {
            let answer = client.get(&format!("{project}/commits/{sha}/diff")).await.expect("an answer");
            assert!(matches!(answer.status.as_u16(), 400 | 404), "{sha}: {}", answer.text());
        }
        assert!(host.take_requests().is_empty(), "what is no commit is asked of nobody");
    }
}

#[tokio::test]
async fn what_is_no_commit_is_said() {
    for_each_backend(unknown_commits_are_told).await;
}
