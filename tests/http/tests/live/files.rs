//! Files of tests of a run that goes on.

use callboard_test_support::{Answer, Form, for_each_service};
use futures::future::join_all;
use serde_json::{Value, json};

use super::{Feeder, code, picked, start};
use crate::builders::{attempt, run, with};
use crate::rows::texts;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR-of-a-test";

/// A form with a picture of a test; without a token where that is empty.
pub(super) fn picture(title: &str, token: &str) -> Form {
    let form = Form::new().field("testCase", case(title, 0)).file("attach_file", "f.png", "image/png", PNG);
    if token.is_empty() { form } else { form.field("streamToken", token) }
}

pub(super) async fn send(feeder: &Feeder, form: Form) -> Answer {
    let path = format!("/api/test-runs/{}/case-files", feeder.run);
    let request = feeder.client.request(reqwest::Method::POST, &path);
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    Answer::send(request).await.expect("an answer")
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
        let shot = |form: Form| form.file("attach_file", "f.png", "image/png", PNG);
        assert_eq!(code(&send(&feeder, shot(named())).await), (422, "blob_missing".to_owned()));
        let wrong = || shot(named()).file("trace", "trace.zip", "application/zip", b"another trace");
        for _ in 0..2 {
            assert_eq!(code(&send(&feeder, wrong()).await), (422, "hash_mismatch".to_owned()));
            let check = json!({ "projectName": "shop", "hashes": [hash] });
            let known = service.client().post_json("/api/traces/check", &check).await.expect("checked");
            assert_eq!(picked(&known, ["existing", "missing"]), [json!([]), json!([hash])]);
        }
        let run = format!("/api/test-runs/{}", feeder.run);
        let untouched = service.client().json(&run).await.expect("the run");
        assert_eq!(untouched["storage"]["files"], 0, "{untouched}");
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
async fn what_is_left_out_of_a_form_is_told_in_its_answer() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let mut form = Form::new()
            .field("streamToken", &feeder.token)
            .field("testCase", case("pays", 0))
            .field("trace_hash", "no hash")
            .field("attach_meta", "[{");
        for number in 0..102 {
            form = form.file("attach_file", "note.txt", "text/plain", format!("note {number}").as_bytes());
        }
        let answer = send(&feeder, form).await.success().expect("linked");
        assert_eq!(picked(&answer, ["traces", "attachments"]), [json!(0), json!(100)]);
        let told: Vec<_> =
            answer["warnings"].as_array().expect("warnings").iter().map(|w| &w["code"]).collect();
        assert_eq!(told, ["field_dropped", "field_dropped", "file_ignored"]);
    })
    .await;
}

#[tokio::test]
async fn files_that_are_known_take_no_room_of_others() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let send_notes = async |numbers: std::ops::Range<usize>| {
            let mut form = Form::new().field("streamToken", &feeder.token).field("testCase", case("pays", 0));
            for number in numbers {
                form =
                    form.file("attach_file", "note.txt", "text/plain", format!("note {number}").as_bytes());
            }
            let answer = send(&feeder, form).await.success().expect("linked");
            let told = answer["warnings"].as_array().map_or(0, Vec::len);
            (answer["attachments"].clone(), told)
        };
        assert_eq!(send_notes(0..60).await, (json!(60), 0));
        assert_eq!(send_notes(0..70).await, (json!(10), 0), "sixty of them are there");
        let (one, other) = tokio::join!(send_notes(70..95), send_notes(95..120));
        assert_eq!(one.0.as_i64().unwrap_or(0) + other.0.as_i64().unwrap_or(0), 30, "at the same time");
        assert_eq!(one.1 + other.1, 1, "one of them is told what was left out");
        assert_eq!(send_notes(0..70).await, (json!(0), 0), "none of those that are there is left out");
    })
    .await;
}

#[tokio::test]
async fn a_broken_form_is_refused_by_name() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let no_form = feeder.call("case-files", json!({})).await;
        assert_eq!(code(&no_form), (400, "invalid_multipart".to_owned()));
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
        let whole = || token(form().field("testCase", case("pays", 0)));
        let unknown = Feeder { run: 999_999, ..feeder.clone() };
        assert_eq!(code(&send(&unknown, whole()).await), (404, "run_not_found".to_owned()));
        let request = service.client().request(reqwest::Method::POST, "/api/test-runs/12abc/case-files");
        let request = request.header("content-type", Form::content_type()).body(whole().into_body());
        let misspelt = Answer::send(request).await.expect("an answer");
        assert_eq!(code(&misspelt), (400, "invalid_run_id".to_owned()));
        feeder.finish("passed").await;
        let late = token(form().field("testCase", case("pays", 0)));
        assert_eq!(code(&send(&feeder, late).await), (409, "run_finished".to_owned()));
    })
    .await;
}

/// A trace whose context was opened in a browser: one stored entry.
fn trace_of(browser: &str) -> Vec<u8> {
    trace_with(&json!({ "type": "context-options", "browserName": browser }))
}

/// A trace that begins with a record: one stored entry.
fn trace_with(record: &Value) -> Vec<u8> {
    let name = b"0-trace.trace";
    let text = record.to_string();
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

#[tokio::test]
async fn files_of_projects_with_one_browser_find_their_executions_by_what_the_trace_tells() {
    const BEGAN: i64 = 1_767_261_600_000;
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let case_of = |name: &str, width: i64, began: i64| {
            let browser = json!({ "projectName": name, "browserName": "chromium",
                "viewport": { "width": width, "height": 800 } });
            with(attempt("pays", "failed", 0), json!({ "browser": browser, "startedAt": began }))
        };
        // Two of one size, which only their time tells apart.
        let projects = [("wide", 1280, BEGAN), ("narrow", 390, BEGAN + 700), ("guest", 390, BEGAN + 9_000)];
        feeder.results(projects.map(|(name, width, began)| case_of(name, width, began)).to_vec()).await;
        let send_trace = async |width: i64, began: i64| {
            let record = json!({ "type": "context-options", "browserName": "chromium", "wallTime": began + 40,
                "options": { "viewport": { "width": width, "height": 800 } } });
            let form = Form::new()
                .field("streamToken", &feeder.token)
                .field("testCase", case("pays", 0))
                .file("trace", "trace.zip", "application/zip", &trace_with(&record))
                .file("attach_file", "f.png", "image/png", &[PNG, width.to_string().as_bytes()].concat());
            send(&feeder, form).await.success().expect("linked")
        };
        let chosen = async |answer: &Value| {
            let path = format!("/api/test-run-cases/{}", answer["executionId"]);
            let detail = service.client().json(&path).await.expect("a page");
            (detail["browserProject"].clone(), picked(&detail["counts"], ["traces", "attachments"]))
        };
        for (name, width, began) in projects.into_iter().rev() {
            let answer = send_trace(width, began).await;
            assert_eq!(chosen(&answer).await, (json!(name), [json!(1), json!(1)]));
        }
        for (name, width, began) in projects {
            let again = send_trace(width, began).await;
            assert_eq!(picked(&again, ["traces", "attachments"]), [json!(0), json!(0)]);
            assert_eq!(chosen(&again).await.0, json!(name), "sent again it is known");
        }
    })
    .await;
}

const MORNING: i64 = 1_767_261_600_000;

/// A trace of a page of this width, recorded at this moment.
fn recorded(width: i64, began: i64) -> Vec<u8> {
    let viewport = json!({ "width": width, "height": 800 });
    trace_with(&json!({ "type": "context-options", "browserName": "chromium", "wallTime": began,
        "options": { "viewport": viewport } }))
}

#[tokio::test]
async fn a_trace_that_comes_before_its_result_waits_for_it() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let result = |name: &str, width: i64| {
            let viewport = json!({ "width": width, "height": 800 });
            let browser = json!({ "projectName": name, "browserName": "chromium", "viewport": viewport });
            with(attempt("pays", "failed", 0), json!({ "browser": browser, "startedAt": MORNING }))
        };
        let trace = async |width: i64| {
            let form = Form::new().field("streamToken", &feeder.token).field("testCase", case("pays", 0));
            send(&feeder, form.file("trace", "trace.zip", "application/zip", &recorded(width, MORNING + 10)))
                .await
        };
        feeder.results(vec![result("desktop", 1280)]).await;
        let desktop = trace(1280).await.success().expect("linked");
        assert_eq!(code(&trace(390).await), (404, "case_not_found".to_owned()));
        feeder.results(vec![result("mobile", 390)]).await;
        let mobile = trace(390).await.success().expect("linked");
        assert_eq!(mobile["traces"], 1);
        assert_ne!(desktop["executionId"], mobile["executionId"]);
        let again = trace(1280).await.success().expect("known");
        assert_eq!((&again["executionId"], &again["traces"]), (&desktop["executionId"], &json!(0)));
    })
    .await;
}

#[tokio::test]
async fn every_repetition_gets_its_own_files_though_nobody_counts_them() {
    const REPETITIONS: &str =
        "SELECT CAST(repetition AS text) || ' ' || name FROM files ORDER BY repetition, name";
    let expected = ["0 screenshot", "0 trace", "1 screenshot", "1 trace"];
    for_each_service(async |service| {
        let began = [MORNING, MORNING + 5_000];
        let results = began.map(|began| with(attempt("pays", "failed", 0), json!({ "startedAt": began })));
        let feeder = start(service.client(), json!({})).await;
        feeder.results(results.to_vec()).await;
        for began in [began[1], began[0], began[1]] {
            let form = Form::new()
                .field("streamToken", &feeder.token)
                .field("testCase", case("pays", 0))
                .field("attach_meta", r#"[{"name":"screenshot","contentType":"image/png"}]"#)
                .file("trace", "trace.zip", "application/zip", &recorded(1280, began + 10))
                .file("attach_file", "f.png", "image/png", PNG);
            send(&feeder, form).await.success().expect("linked");
        }
        assert_eq!(texts(service, REPETITIONS).await, expected);
    })
    .await;
    for_each_service(async |service| {
        let results = [MORNING, MORNING + 5_000]
            .map(|began| with(attempt("pays", "failed", 0), json!({ "startedAt": began })));
        let mut form = Form::new()
            .field("projectName", "shop")
            .field("testRun", run("shop", "failed", results.to_vec()).to_string())
            .field("testCases", json!(results).to_string());
        for entry in 0..2 {
            form = form
                .file(&format!("trace_{entry}"), "trace.zip", "application/zip", &recorded(1280, entry))
                .field(
                    &format!("attach_meta_{entry}"),
                    r#"[{"name":"screenshot","contentType":"image/png"}]"#,
                )
                .file(&format!("attach_file_{entry}"), "f.png", "image/png", PNG);
        }
        let request = service.client().request(reqwest::Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
        assert_eq!(texts(service, REPETITIONS).await, expected);
    })
    .await;
}

#[tokio::test]
async fn attachments_alone_go_to_an_execution_that_has_none_yet() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let browser = |name: &str| json!({ "browser": { "projectName": name, "browserName": "chromium" } });
        let form = |note: &[u8]| {
            Form::new()
                .field("streamToken", &feeder.token)
                .field("testCase", case("pays", 0))
                .field("attach_meta", r#"[{"name":"note","contentType":"text/plain"}]"#)
                .file("attach_file", "note.txt", "text/plain", note)
        };
        let mut chosen = std::collections::BTreeSet::new();
        // As they are sent: a result, its files, and the next.
        for name in ["wide", "narrow"] {
            feeder.results(vec![with(attempt("pays", "passed", 0), browser(name))]).await;
            let answer = send(&feeder, form(b"the same note")).await.success().expect("linked");
            assert_eq!(answer["attachments"], 1, "{name}");
            chosen.insert(answer["executionId"].as_i64());
        }
        assert_eq!(chosen.len(), 2);
        let again = send(&feeder, form(b"the same note")).await.success().expect("known");
        assert_eq!(again["attachments"], 0);
    })
    .await;
}

#[tokio::test]
async fn attachments_that_come_together_go_to_one_execution_each() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let titles: Vec<String> = (0..12).map(|n| format!("test {n}")).collect();
        let mut results = Vec::new();
        for title in &titles {
            for name in ["wide", "narrow", "tall"] {
                let browser = json!({ "browser": { "projectName": name, "browserName": "chromium" } });
                results.push(with(attempt(title, "passed", 0), browser));
            }
        }
        feeder.results(results).await;
        let form = |title: &str| {
            Form::new()
                .field("streamToken", &feeder.token)
                .field("testCase", case(title, 0))
                .field("attach_meta", r#"[{"name":"note","contentType":"text/plain"}]"#)
                .file("attach_file", "note.txt", "text/plain", b"the same note")
        };
        let sent = titles.iter().flat_map(|title| [title; 3]).map(|title| send(&feeder, form(title)));
        for answer in join_all(sent).await {
            assert_eq!(answer.success().expect("linked")["attachments"], 1);
        }
        let files = "SELECT CAST(COUNT(*) AS text) FROM files GROUP BY execution_id";
        assert_eq!(texts(service, files).await, vec!["1"; 36]);
    })
    .await;
}

#[tokio::test]
async fn the_same_file_of_another_browser_waits_for_its_result() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let of = |title: &str, name: &str| {
            with(attempt(title, "passed", 0), json!({ "browser": { "projectName": name } }))
        };
        feeder.results(vec![of("looks", "wide"), of("looks", "narrow"), of("pays", "wide")]).await;
        let label = || {
            Form::new()
                .field("streamToken", &feeder.token)
                .field("testCase", case("pays", 0))
                .field("attach_meta", r#"[{"name":"label","contentType":"text/plain"}]"#)
                .file("attach_file", "label.txt", "text/plain", b"a label")
        };
        send(&feeder, label()).await.success().expect("linked");
        let early = send(&feeder, label()).await;
        assert_eq!(code(&early), (404, "case_not_found".to_owned()), "clients try again");
        feeder.results(vec![of("pays", "narrow")]).await;
        send(&feeder, label()).await.success().expect("linked");
        let owners = "SELECT b.name FROM files f JOIN executions e ON e.project_id = f.project_id AND e.id = f.execution_id \
             JOIN browser_projects b ON b.project_id = e.project_id AND b.id = e.browser_id ORDER BY b.name";
        assert_eq!(texts(service, owners).await, ["narrow", "wide"]);
        let again = send(&feeder, label()).await.success().expect("known");
        assert_eq!(again["attachments"], 0, "everybody has it");
    })
    .await;
}

#[tokio::test]
async fn attachments_go_to_the_execution_that_announced_them() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let announced = |name: &str, attachments: Value| {
            let more = json!({ "browser": { "projectName": name }, "attachments": attachments });
            with(attempt("pays", "passed", 0), more)
        };
        // The later one attached a text, which is no file and is not sent.
        let text = json!([{ "name": "label", "contentType": "text/plain", "body": { "type": "Buffer", "data": [1] } }]);
        let file = json!([
            { "name": "trace", "path": "/builds/shop/trace.zip" },
            { "name": "label", "contentType": "text/plain", "path": "/builds/shop/label.txt" },
        ]);
        feeder.results(vec![announced("wide", file), announced("narrow", text)]).await;
        let form = Form::new()
            .field("streamToken", &feeder.token)
            .field("testCase", case("pays", 0))
            .field("attach_meta", r#"[{"name":"label","contentType":"text/plain"}]"#)
            .file("attach_file", "label.txt", "text/plain", b"a label");
        send(&feeder, form).await.success().expect("linked");
        let owner = "SELECT b.name FROM files f JOIN executions e ON e.project_id = f.project_id AND e.id = f.execution_id \
             JOIN browser_projects b ON b.project_id = e.project_id AND b.id = e.browser_id";
        assert_eq!(texts(service, owner).await, ["wide"]);
    })
    .await;
}

#[tokio::test]
async fn every_shard_sends_files_with_its_own_token() {
    for_each_service(async |service| {
        let shard =
            |index: u32| json!({ "instanceId": "0123456789abcdef", "shardIndex": index, "shardTotal": 2 });
        let first = start(service.client(), shard(1)).await;
        let setup = super::fields(shard(2));
        let setup = service.client().post_json("/api/test-runs/setup", &setup).await.expect("set up");
        let begin = json!({ "setupToken": setup["setupToken"], "shardIndex": 2, "shardTotal": 2 });
        let path = format!("/api/test-runs/{}/begin", setup["runId"]);
        let begun = service.client().post_json(&path, &begin).await.expect("begun");
        let token = begun["streamToken"].as_str().expect("a token").to_owned();
        let second = Feeder { token, ..first.clone() };
        assert_eq!(begun["runId"], json!(first.run));
        for (feeder, title) in [(&first, "pays"), (&second, "looks")] {
            feeder.results(vec![attempt(title, "failed", 0)]).await;
        }
        // A token opens the run: also what another shard has sent.
        for (feeder, title) in [(&first, "pays"), (&second, "looks"), (&second, "pays")] {
            let form = Form::new()
                .field("streamToken", &feeder.token)
                .field("testCase", case(title, 0))
                .file("attach_file", "note.txt", "text/plain", feeder.token.as_bytes());
            let answer = send(feeder, form).await.success().expect("linked");
            assert_eq!(answer["attachments"], 1, "{title}");
        }
        assert_eq!(first.finish("failed").await, "running");
        assert_eq!(second.finish("failed").await, "failed");
    })
    .await;
}

#[tokio::test]
async fn runs_that_send_the_same_files_in_another_order_are_both_served() {
    const ROUNDS: usize = 6;
    const FILES: usize = 12;
    for_each_service(async |service| {
        let client = service.client();
        let feeders = [
            start(client, json!({ "clientRunId": "one" })).await,
            start(client, json!({ "clientRunId": "other" })).await,
        ];
        for round in 0..ROUNDS {
            let title = format!("test {round}");
            let form = |feeder: &Feeder, is_turned: bool| {
                let mut form =
                    Form::new().field("streamToken", &feeder.token).field("testCase", case(&title, 0));
                for number in 0..FILES {
                    let number = if is_turned { FILES - 1 - number } else { number };
                    let bytes = format!("file {number} of round {round}");
                    form = form.file("attach_file", &format!("{number}.txt"), "text/plain", bytes.as_bytes());
                }
                form
            };
            for feeder in &feeders {
                feeder.results(vec![attempt(&title, "passed", 0)]).await;
            }
            let [one, other] = &feeders;
            let answers = tokio::join!(send(one, form(one, false)), send(other, form(other, true)));
            for answer in [answers.0, answers.1] {
                let linked = answer.success().expect("linked");
                assert_eq!(linked["attachments"], json!(FILES), "round {round}");
            }
        }
        let shared = "SELECT DISTINCT CAST(refs AS TEXT) FROM blobs";
        assert_eq!(texts(service, shared).await, ["2"]);
    })
    .await;
}
