//! Input that is broken: each gets the contract's answer and loses nothing.

use std::io::Write as _;

use callboard_test_support::{Answer, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};

async fn send(service: &Service, body: impl Into<reqwest::Body>) -> Answer {
    let request = service.client().request(reqwest::Method::POST, "/api/test-runs/submit");
    Answer::send(request.header("content-type", "application/json").body(body)).await.expect("an answer")
}

async fn is_refused(service: &Service, body: impl Into<reqwest::Body>, status: u16, code: &str) -> Value {
    let answer = send(service, body).await;
    assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
    let body = answer.json().expect("a JSON error");
    assert_eq!(body["code"], code, "{body}");
    assert_eq!((&body["error"], &body["statusCode"]), (&json!(true), &json!(status)));
    assert!(body["message"].as_str().is_some_and(|message| message.ends_with('.')), "{body}");
    let mut keys: Vec<&str> = body.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.retain(|key| *key != "data");
    keys.sort_unstable();
    assert_eq!(keys, ["code", "error", "message", "statusCode"]);
    body
}

async fn nothing_is_stored(service: &Service) {
    let projects = service.client().json("/api/projects").await.expect("projects");
    assert_eq!(projects["items"], json!([]));
}

#[tokio::test]
async fn an_unusable_envelope_is_refused_by_name() {
    for_each_service(async |service| {
        is_refused(service, "", 400, "invalid_json").await;
        is_refused(service, "{", 400, "invalid_json").await;
        is_refused(service, "[]", 400, "invalid_body").await;
        is_refused(service, vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}'], 400, "invalid_json").await;
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        is_refused(service, deep, 400, "invalid_json").await;
        let missing = is_refused(service, "{}", 400, "missing_field").await;
        assert_eq!(missing["data"]["fields"], json!(["projectName", "status", "startTime"]));
        let valid = run("shop", "passed", Vec::new());
        for field in ["projectName", "status", "startTime"] {
            let mut body = valid.clone();
            body.as_object_mut().expect("an object").remove(field);
            let missing = is_refused(service, body.to_string(), 400, "missing_field").await;
            assert_eq!(missing["data"]["fields"], json!([field]));
        }
        let with_field = |set: Value| with(valid.clone(), set).to_string();
        is_refused(service, with_field(json!({ "testCases": {} })), 400, "invalid_field").await;
        let time =
            is_refused(service, with_field(json!({ "startTime": "yesterday" })), 400, "invalid_field").await;
        assert_eq!(time["data"]["field"], "startTime");
        assert!(time["message"].as_str().expect("a sentence").contains("yesterday"), "{time}");
        for blank in ["", "   "] {
            is_refused(service, with_field(json!({ "projectName": blank })), 400, "missing_field").await;
        }
        for name in ["a\u{7}b", "a\u{0}b", &"x".repeat(256)] {
            is_refused(service, with_field(json!({ "projectName": name })), 400, "invalid_project_name")
                .await;
        }
        is_refused(service, with_field(json!({ "shardIndex": 3, "shardTotal": 2 })), 400, "invalid_shard")
            .await;
        let many: Vec<Value> = (0..50_001).map(|_| json!(0)).collect();
        is_refused(service, with_field(json!({ "testCases": many })), 413, "too_many_items").await;
        nothing_is_stored(service).await;
    })
    .await;
}

#[tokio::test]
async fn one_broken_entry_among_fifty_costs_only_itself() {
    for_each_service(async |service| {
        let mut cases: Vec<Value> = (0..49).map(|n| attempt(&format!("test {n}"), "passed", 0)).collect();
        cases.insert(20, json!({ "status": "passed" }));
        cases[3]["duration"] = json!("soon");
        cases[4]["browser"] = json!(7);
        cases[5]["steps"] = json!("none");
        let submission =
            with(run("shop", "passed", cases), json!({ "label": 5, "nonsense": [1], "environment": null }));
        let answer = send(service, submission.to_string()).await.success().expect("stored");
        assert_eq!(answer["totalTests"], 49);
        let warnings = answer["warnings"].as_array().expect("warnings");
        assert!(warnings.iter().any(|warning| warning["index"] == 20), "{warnings:?}");
    })
    .await;
}

#[tokio::test]
async fn nul_and_lone_surrogates_become_the_replacement_character() {
    for_each_service(async |service| {
        let body = run("shop", "failed", vec![attempt("TITLE", "failed", 0)]).to_string();
        let body = body.replace("TITLE", r"a\ud83d b\u0000 c \\ud83d \ud83d\ude00");
        let answer = send(service, body).await.success().expect("stored");
        let page = service
            .client()
            .json(&format!("/api/test-runs/{}/executions", answer["runId"]))
            .await
            .expect("a page");
        assert_eq!(page["items"][0]["title"], "a\u{fffd} b\u{fffd} c \\ud83d \u{1f600}");
    })
    .await;
}

#[tokio::test]
async fn metacharacters_are_text() {
    for_each_service(async |service| {
        let nasty = r#"'; DROP TABLE test_runs; -- %_\ "<img src=x onerror=alert(1)>"#;
        let case = with(attempt(nasty, "failed", 0), json!({
            "location": format!("tests/{nasty}.ts:1:1"), "error": nasty, "tags": [nasty], "suitePath": [nasty],
            "testMeta": { "owner": nasty },
        }));
        let submission = with(run(nasty, "failed", vec![case]), json!({ "branch": nasty, "environment": nasty, "label": nasty }));
        let answer = send(service, submission.to_string()).await.success().expect("stored");
        let page = service.client().json(&format!("/api/test-runs/{}/executions", answer["runId"])).await.expect("a page");
        assert_eq!(page["items"][0]["title"], nasty);
        let found = service.client().json(&format!("/api/test-runs/{}", answer["runId"])).await.expect("the run");
        assert_eq!((&found["branch"], &found["label"]), (&json!(nasty), &json!(nasty)));
        for path in ["/api/projects?q=%25", "/api/projects?q=_", "/api/projects?q=zzz%27"] {
            let hits = service.client().json(path).await.expect(path);
            let expected = usize::from(!path.contains("zzz"));
            assert_eq!(hits["items"].as_array().map(Vec::len), Some(expected), "{path}");
        }
        // Whatever is filtered or searched for, nothing but what was asked for is found.
        let document = service.client().json("/api/openapi.json").await.expect("the document");
        let mut asked = 0;
        for (path, item) in document["paths"].as_object().expect("paths") {
            let parameters = item["get"]["parameters"].as_array().into_iter().flatten();
            let names = parameters.filter(|parameter| parameter["in"] == "query");
            for name in names.filter_map(|parameter| parameter["name"].as_str()) {
                for text in [nasty, "' OR 1=1 --", "%' ESCAPE '%", "\\", "\" NEAR/9 *", "a\u{301}\u{202e}(NOT"] {
                    let filled = path.replace("{id}", "1").replace("{caseId}", "1048577").replace("{sha}", "0a1b2c3d");
                    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
                    let request = service.client().request(Method::GET, &format!("{filled}?{name}={encoded}"));
                    let answer = Answer::send(request.header("accept", "application/json")).await.expect("an answer");
                    assert!(!answer.is_fault(), "{filled} {name}={text}: {}", answer.text());
                    let is_word = matches!(name, "q" | "owner" | "tag") || (path == "/api/test-runs" && name == "branch");
                    if answer.status.is_success() && is_word && text.starts_with("' OR") {
                        let items = answer.json().expect("JSON")["items"].clone();
                        assert!(items.as_array().is_none_or(Vec::is_empty), "{filled} {name}={text}: {items}");
                    }
                    asked += 1;
                }
            }
        }
        assert!(asked > 500, "{asked} questions");
    })
    .await;
}

#[tokio::test]
async fn compressed_bodies_are_read_and_counted_inflated() {
    for_each_service(async |service| {
        let gzip = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).expect("compressed");
            encoder.finish().expect("compressed")
        };
        let post = |body: Vec<u8>| {
            let request = service.client().request(reqwest::Method::POST, "/api/test-runs/submit");
            let request =
                request.header("content-type", "application/json").header("content-encoding", "gzip");
            Answer::send(request.body(body))
        };
        let submission = run("shop", "passed", vec![attempt("pays", "passed", 0)]).to_string();
        let stored = post(gzip(submission.as_bytes())).await.expect("an answer").success().expect("stored");
        assert_eq!(stored["totalTests"], 1);
        let bomb = gzip(&vec![b' '; 140 * 1024 * 1024]);
        assert!(bomb.len() < 1024 * 1024);
        assert_eq!(post(bomb).await.expect("an answer").status.as_u16(), 413);
        assert_eq!(post(b"not a gzip".to_vec()).await.expect("an answer").status.as_u16(), 400);
    })
    .await;
}

#[tokio::test]
async fn other_content_types_and_methods_are_refused() {
    for_each_service(async |service| {
        let request = service.client().request(reqwest::Method::POST, "/api/test-runs/submit");
        let answer =
            Answer::send(request.header("content-type", "text/plain").body("{}")).await.expect("an answer");
        assert_eq!(answer.status.as_u16(), 415);
        let request = service.client().request(reqwest::Method::DELETE, "/api/test-runs/submit");
        let answer = Answer::send(request).await.expect("an answer");
        assert_eq!(answer.status.as_u16(), 405);
        assert!(answer.header("allow").contains("POST"), "{}", answer.header("allow"));
        let missing = service.client().get("/api/nothing").await.expect("an answer");
        assert_eq!(missing.status.as_u16(), 404);
        assert_eq!(missing.json().expect("JSON")["code"], "route_not_found");
    })
    .await;
}

#[tokio::test]
async fn unknown_addresses_are_pages_for_people_and_json_for_programs() {
    for_each_service(async |service| {
        let ask = async |method: Method, path: &str| {
            let accept = "text/html,application/xhtml+xml,*/*;q=0.8";
            let request = service.client().request(method, path).header("accept", accept);
            let answer = Answer::send(request).await.expect("an answer");
            assert_eq!(answer.status.as_u16(), 404, "{path}");
            answer
        };
        for path in ["/nothing", "/projects/1/nothing/here"] {
            let page = ask(Method::GET, path).await;
            assert!(page.header("content-type").starts_with("text/html"), "{path}");
            assert!(page.text().contains("href=\"/projects\""), "no way on: {}", page.text());
        }
        for (method, path) in [
            (Method::GET, "/.well-known/oauth-authorization-server"),
            (Method::GET, "/api/nothing"),
            (Method::POST, "/nothing"),
        ] {
            assert_eq!(ask(method, path).await.json().expect("JSON")["code"], "route_not_found", "{path}");
        }
        let program = service.client().get("/nothing").await.expect("an answer");
        assert_eq!(program.json().expect("JSON")["code"], "route_not_found");
    })
    .await;
}

#[tokio::test]
async fn a_date_is_a_start_and_a_number_out_of_reach_is_left_out() {
    for_each_service(async |service| {
        let submission = with(
            run("shop", "passed", vec![attempt("pays", "passed", 0)]),
            json!({ "startTime": "2026-01-01", "duration": "LARGE" }),
        );
        let body = submission.to_string().replace("\"LARGE\"", "1e999");
        let answer = send(service, body).await.success().expect("stored");
        let warnings = answer["warnings"].as_array().expect("warnings");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let found =
            service.client().json(&format!("/api/test-runs/{}", answer["runId"])).await.expect("the run");
        assert_eq!(found["startTime"], "2026-01-01T00:00:00.000Z");
    })
    .await;
}
