//! Files of tests of a run that goes on.

use callboard_test_support::{Answer, Form, for_each_service};
use serde_json::{Value, json};

use super::{Feeder, picked, start};
use crate::builders::{attempt, with};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR-of-a-test";

async fn send(feeder: &Feeder, form: Form) -> Answer {
    let path = format!("/api/test-runs/{}/case-files", feeder.run);
    let request = feeder.client.request(reqwest::Method::POST, &path);
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    Answer::of(request).await.expect("an answer")
}

fn code(answer: &Answer) -> (u16, String) {
    let told: Value = answer.json().expect("json");
    (answer.status.as_u16(), told["code"].as_str().unwrap_or_default().to_owned())
}

fn case(title: &str, retry: u32) -> String {
    json!({ "title": title, "location": "tests/shop.spec.ts:7:5", "retries": retry, "suitePath": ["Shop"] })
        .to_string()
}

#[tokio::test]
async fn files_follow_their_result_and_are_stored_once() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let hash = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(b"a trace"));
        let named = || {
            Form::new()
                .field("trace_hash", &hash)
                .field("testCase", case("pays", 1))
                .field("streamToken", &feeder.token)
        };
        assert_eq!(code(&send(&feeder, named()).await), (404, "case_not_found".to_owned()));
        feeder.results(vec![attempt("pays", "failed", 0), attempt("pays", "passed", 1)]).await;
        assert_eq!(code(&send(&feeder, named()).await), (422, "blob_missing".to_owned()));
        let wrong = named().file("trace", "trace.zip", "application/zip", b"another trace");
        assert_eq!(code(&send(&feeder, wrong).await), (422, "hash_mismatch".to_owned()));
        let whole = || {
            // Files before the fields that say what they are.
            Form::new()
                .file("trace", "trace.zip", "application/zip", b"a trace")
                .file("attach_file", "f.png", "image/png", PNG)
                .file("attach_file", "g.png", "image/png", &[PNG, b"2"].concat())
                .field(
                    "attach_meta",
                    r#"[{"name":"screenshot","contentType":"image/png"},{"name":"screenshot"}]"#,
                )
                .field("trace_hash", &hash)
                .field("testCase", case("pays", 1))
                .field("streamToken", &feeder.token)
        };
        let answer = send(&feeder, whole()).await.success().expect("linked");
        assert_eq!(picked(&answer, ["traces", "attachments"]), [json!(1), json!(2)]);
        assert_eq!(answer["executionId"], answer["testRunsCaseId"]);
        let again = send(&feeder, whole()).await.success().expect("known");
        assert_eq!(picked(&again, ["traces", "attachments"]), [json!(0), json!(0)]);
        let known = send(&feeder, named()).await.success().expect("the blob is stored now");
        assert_eq!(picked(&known, ["traces", "attachments"]), [json!(0), json!(0)]);
        let detail = service
            .client()
            .json(&format!("/api/test-run-cases/{}", answer["executionId"]))
            .await
            .expect("a page");
        assert_eq!(picked(&detail["counts"], ["traces", "attachments"]), [json!(1), json!(2)]);
        let told = super::run_events(service, feeder.run).await;
        assert_eq!(told.iter().filter(|kind| *kind == "case-files").count(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_broken_form_is_refused_by_name() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let form = || Form::new().file("attach_file", "f.png", "image/png", PNG);
        let token = |form: Form| form.field("streamToken", &feeder.token);
        assert_eq!(code(&send(&feeder, token(form())).await), (400, "missing_field".to_owned()));
        assert_eq!(
            code(&send(&feeder, token(form().field("testCase", "{"))).await),
            (400, "invalid_json".to_owned())
        );
        let nameless = form().field("testCase", r#"{"title":"pays"}"#);
        assert_eq!(code(&send(&feeder, token(nameless)).await), (400, "missing_field".to_owned()));
        let anonymous = form().field("testCase", case("pays", 0));
        assert_eq!(code(&send(&feeder, anonymous).await), (401, "missing_token".to_owned()));
        let foreign =
            Form::new().field("streamToken", "0".repeat(64)).file("attach_file", "f.png", "image/png", PNG);
        let foreign = foreign.field("testCase", case("pays", 0));
        assert_eq!(code(&send(&feeder, foreign).await), (403, "invalid_token".to_owned()));
        feeder.finish("passed").await;
        let late = token(form().field("testCase", case("pays", 0)));
        assert_eq!(code(&send(&feeder, late).await), (409, "run_finished".to_owned()));
    })
    .await;
}

/// A trace whose context was opened in a browser: one stored entry.
fn trace_of(browser: &str) -> Vec<u8> {
    let name = b"0-trace.trace";
    let text = format!(r#"{{"type":"context-options","browserName":"{browser}"}}"#);
    let number = |number: usize, bytes: usize| number.to_le_bytes()[..bytes].to_vec();
    let (size, named) = (number(text.len(), 4), number(name.len(), 2));
    let local = [
        b"PK\x03\x04".to_vec(),
        vec![0; 14],
        size.clone(),
        size.clone(),
        named.clone(),
        vec![0; 2],
        name.to_vec(),
        text.clone().into_bytes(),
    ]
    .concat();
    let central =
        [b"PK\x01\x02".to_vec(), vec![0; 16], size.clone(), size, named, vec![0; 16], name.to_vec()].concat();
    let end = [
        b"PK\x05\x06".to_vec(),
        vec![0; 6],
        number(1, 2),
        number(central.len(), 4),
        number(local.len(), 4),
        vec![0; 2],
    ]
    .concat();
    [local, central, end].concat()
}

#[tokio::test]
async fn traces_without_a_browser_project_find_their_executions() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let browsers = ["chromium", "firefox"];
        let cases = browsers.map(|name| {
            with(
                attempt("pays", "failed", 0),
                json!({ "browser": { "projectName": format!("{name} desktop"), "browserName": name } }),
            )
        });
        feeder.results(cases.to_vec()).await;
        let mut executions = Vec::new();
        for name in browsers {
            let form = Form::new()
                .field("streamToken", &feeder.token)
                .field("testCase", case("pays", 0))
                .file("trace", "trace.zip", "application/zip", &trace_of(name));
            executions.push(send(&feeder, form).await.success().expect("linked")["executionId"].clone());
        }
        for (name, execution) in browsers.into_iter().zip(executions) {
            let detail =
                service.client().json(&format!("/api/test-run-cases/{execution}")).await.expect("a page");
            assert_eq!(detail["browserName"], name);
            assert_eq!(detail["counts"]["traces"], 1);
        }
        let named = with(
            serde_json::from_str(&case("pays", 0)).expect("json"),
            json!({ "browserProject": "firefox desktop" }),
        );
        let form = Form::new().field("streamToken", &feeder.token).field("testCase", named.to_string()).file(
            "attach_file",
            "f.png",
            "image/png",
            PNG,
        );
        let answer = send(&feeder, form).await.success().expect("linked");
        let detail = service
            .client()
            .json(&format!("/api/test-run-cases/{}", answer["executionId"]))
            .await
            .expect("a page");
        assert_eq!(detail["browserProject"], "firefox desktop");
    })
    .await;
}
