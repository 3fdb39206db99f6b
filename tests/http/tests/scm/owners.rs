//! Owners of tests from the CODEOWNERS file of the repository.

use callboard_store::Backend;
use callboard_test_support::{Client, CodeHost, Dialect, Fault, Service, for_each_backend};
use serde_json::{Value, json};

use super::{connected, edit, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::mcp::Agent;
use crate::rows::settled;
use crate::store::sql;

/// The file of a provider: where it lies, and a rule for a folder.
fn rule(dialect: Dialect, folder: &str, owner: &str) -> (&'static str, String) {
    match dialect {
        Dialect::GitHub => (".github/CODEOWNERS", format!("* @everybody\n/{folder}/ {owner} @second\n")),
        Dialect::GitLab => (".gitlab/CODEOWNERS", format!("[Tests] {owner}\n/{folder}/\n")),
        Dialect::Gitea => (".gitea/CODEOWNERS", format!(".* @everybody\n{folder}/.*\\.ts {owner}\n")),
        Dialect::Bitbucket => (".bitbucket/CODEOWNERS", format!("* @everybody\n/{folder}/ {owner}\n")),
    }
}

/// Runs the job, as the clock does every quarter of an hour.
async fn refreshed(service: &Service) {
    sql(service, "UPDATE scm_cache SET fresh_until = 0 WHERE key NOT LIKE 'rate-limit%'").await;
    sql(service, "DELETE FROM jobs WHERE kind = 'refresh_owners'").await;
    settled(service).await;
}

/// Titles of tests with their owners, as a list has them.
fn owners(list: &Value) -> Vec<(String, Option<String>, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
    let mut found: Vec<_> = items
        .iter()
        .map(|item| {
            (text(&item["title"]).unwrap_or_default(), text(&item["owner"]), text(&item["ownerSource"]))
        })
        .collect();
    found.sort();
    found
}

fn named(title: &str, owner: &str, source: &str) -> (String, Option<String>, Option<String>) {
    (title.to_owned(), Some(owner.to_owned()), Some(source.to_owned()))
}

async fn page(client: &Client, path: &str) -> String {
    let client = client.with_header("accept", "text/html").expect("a header");
    client.get(path).await.expect("a page").text()
}

async fn owners_follow_the_file(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let agent = Agent::at(client.clone(), "/mcp");
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let (place, text) = rule(dialect, "tests", "@acme/shop");
        host.commit("Own the tests", &[(place, Some(text.as_bytes()))]).expect("a commit");
        let project = connected(client, &host, dialect).await;
        let name = format!("shop on {}", dialect.word());
        let tested = async |cases: Vec<Value>| {
            submit(client, run(&name, "failed", cases)).await;
            settled(&service).await;
        };
        let annotated = with(attempt("ships", "failed", 0), json!({ "testMeta": { "owner": "Ada" } }));
        tested(vec![attempt("pays", "failed", 0), annotated.clone()]).await;
        refreshed(&service).await;

        let tests = async |query: &str| {
            owners(&client.json(&format!("{project}/test-cases{query}")).await.expect("tests"))
        };
        let (code, own) = (named("pays", "@acme/shop", "codeowners"), named("ships", "Ada", "annotation"));
        assert_eq!(tests("").await, [code.clone(), own.clone()], "{dialect:?}");
        assert_eq!(tests("?owner=%40acme%2Fshop").await, vec![code.clone()], "{dialect:?}");
        assert_eq!(tests("?owner=Ada").await, [own], "{dialect:?}");
        let facets = client.json(&format!("{project}/facets")).await.expect("facets");
        assert_eq!(facets["owners"], json!(["@acme/shop", "Ada"]), "{dialect:?}");
        let flaky = client.json(&format!("{project}/flaky-tests?owner=%40acme%2Fshop&minScore=0")).await;
        flaky.expect("a list");

        // A run that tells nothing new about a test takes nothing away.
        tested(vec![attempt("pays", "failed", 0)]).await;
        assert_eq!(tests("?owner=%40acme%2Fshop").await, [code], "{dialect:?}");
        let run_id = client.json("/api/test-runs?limit=1").await.expect("runs")["items"][0]["id"].clone();
        let executions = format!("/api/test-runs/{run_id}/executions?owner=%40acme%2Fshop");
        let found = client.json(&executions).await.expect("executions");
        assert_eq!(found["items"][0]["title"], "pays", "{found}");
        let cluster = &found["items"][0]["clusterId"];
        let plan = agent.call("get_fix_plan", json!({ "clusterId": cluster })).await.expect("a plan");
        assert_eq!(plan["ownership"], json!({ "owner": "@acme/shop", "source": "codeowners" }), "{plan}");
        let case = &found["items"][0]["testCaseId"];
        assert!(page(client, &format!("/test-cases/{case}")).await.contains("@acme/shop"), "{dialect:?}");

        // A new test is matched; nobody asks for the file again as long as no commit came.
        tested(vec![attempt("returns", "failed", 0)]).await;
        let _ = host.take_requests();
        refreshed(&service).await;
        assert_eq!(tests("?owner=%40acme%2Fshop").await.len(), 2, "{dialect:?}");

        // The file changes: everything is matched again.
        let (place, text) = rule(dialect, "tests", "@acme/returns");
        host.commit("Pass them on", &[(place, Some(text.as_bytes()))]).expect("a commit");
        refreshed(&service).await;
        assert_eq!(tests("?owner=%40acme%2Freturns").await.len(), 2, "{dialect:?}");
        assert!(tests("?owner=%40acme%2Fshop").await.is_empty(), "{dialect:?}");

        // What cannot be read changes nothing; without a repository nobody owns by it.
        host.set_fault(Some(Fault::Answers(500, Vec::new(), String::new())));
        refreshed(&service).await;
        assert_eq!(tests("?owner=%40acme%2Freturns").await.len(), 2, "{dialect:?}");
        edit(client, &project, json!({ "repositoryUrl": null, "scmToken": null }))
            .await
            .success()
            .expect("saved");
        assert!(tests("").await.contains(&named("ships", "Ada", "annotation")), "{dialect:?}");
        assert!(tests("?owner=%40acme%2Freturns").await.is_empty(), "{dialect:?}");
    }
}

#[tokio::test]
async fn tests_are_owned_by_the_file_unless_they_name_an_owner() {
    for_each_backend(owners_follow_the_file).await;
}
