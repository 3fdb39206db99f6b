//! Patches for files that only the repository has.

use callboard_store::Backend;
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{CodeHost, Dialect, Fault, ModelServer, Play, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use super::{configure, diagnosed, good, started};
use crate::builders::{attempt, run, with};

const FORM: &str = "export function Form() {\n  return <button>Buy</button>;\n}\n";

/// A good answer whose patch changes this line of a file of the application.
fn answer(file: &str, line: &str) -> String {
    let patch = format!(
        "--- a/{file}\n+++ b/{file}\n@@ -1,3 +1,3 @@\n export function Form() {{\n-  {line}\n+  return <button>Place order</button>;\n }}\n"
    );
    with(good(), json!({ "suggestedFix": { "description": "Name it as before.", "file": file, "code": null, "patch": patch } }))
        .to_string()
}

async fn patches_are_compared_with_the_repository(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = CodeHost::start().await.expect("a code host");
    let failing = host.commit("Open the shop", &[("src/form.tsx", Some(FORM.as_bytes()))]).expect("a commit");
    // What came later is not what the failing run had.
    host.commit("Rename it", &[("src/form.tsx", Some(b"export const form = 1;\n"))]).expect("a commit");
    let model = ModelServer::start().await.expect("a server");
    configure(client, &model, "messages").await;
    let submission = with(
        run("shop", "failed", vec![attempt("pays", "failed", 0)]),
        json!({ "branch": "main", "commit": failing }),
    );
    let stored = client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
    let project = format!("/api/projects/{}", stored["projectId"]);
    let clusters = client.json(&format!("{project}/failure-clusters")).await.expect("clusters");
    let cluster = clusters["items"][0]["id"].as_i64().expect("an id");
    let checked = async |answer: String| -> Value {
        model.script([Play::Says(answer)]);
        let found = diagnosed(&service, cluster, json!({ "force": true })).await;
        found["patchValidation"].clone()
    };

    let unknown = checked(answer("src/form.tsx", "return <button>Buy</button>;")).await;
    assert_eq!(unknown["status"], "unchecked", "{unknown}");

    let repository = json!({
        "repositoryUrl": host.address(Dialect::GitHub), "repositoryProvider": "github", "scmToken": TOKEN,
    });
    client
        .send_json(Method::PATCH, &project, &repository)
        .await
        .and_then(|answer| answer.success())
        .expect("saved");
    for (file, line, status) in [
        ("src/form.tsx", "return <button>Buy</button>;", "applies"),
        ("src/form.tsx", "return <button>Sell</button>;", "stale-file"),
        ("src/unknown.tsx", "return <button>Buy</button>;", "unchecked"),
    ] {
        let found = checked(answer(file, line)).await;
        assert_eq!(found["status"], status, "{file}, {line}: {found}");
    }
    // A code host that does not answer costs the check, not the diagnosis.
    host.set_fault(Some(Fault::Answers(500, Vec::new(), String::new())));
    let found = checked(answer("src/other.tsx", "return <button>Buy</button>;")).await;
    assert_eq!(found["status"], "unchecked", "{found}");
}

#[tokio::test]
async fn a_patch_is_compared_with_the_repository_at_the_failing_commit() {
    for_each_backend(patches_are_compared_with_the_repository).await;
}
