//! A project with something of every kind, and a word in every text of it.

use callboard_test_support::access::{Holding, diagnosis, suggestion};
use callboard_test_support::{Answer, Client, Form, Service, report_archive};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::rows::settled;

/// What a project holds, beyond what the route table names.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) ids: Holding,
    /// The green run before the red one.
    pub(super) green: i64,
    /// A test that is set aside.
    pub(super) quarantined: i64,
    /// Stored name of a report's entry page.
    pub(super) report: String,
    /// SHA-256 of a stored trace.
    pub(super) trace: String,
    /// What the client called the red run.
    pub(super) client_run: String,
}

impl Held {
    /// Everything that has a number here.
    pub(super) fn numbers(&self) -> Vec<i64> {
        let Holding {
            project,
            run,
            test_case,
            execution,
            file,
            link,
            marker,
            function,
            export,
            cluster,
            suggestion,
            diagnosis,
            policy,
            ..
        } = self.ids;
        [
            project,
            run,
            test_case,
            execution,
            file,
            link,
            marker,
            function,
            export,
            cluster,
            suggestion,
            diagnosis,
            policy,
            self.green,
            self.quarantined,
        ]
        .into()
    }
}

/// Fills a project. `word` and `secret` are in its name and in every text.
pub(crate) async fn fill(service: &Service, client: &Client, word: &str, secret: &str) -> Held {
    let words = format!("{word} {secret}");
    let mut address = reqwest::Url::parse(&format!("https://{word}.example/")).expect("an address");
    address.path_segments_mut().expect("segments").pop_if_empty().push(secret);
    let address = address.to_string();
    let case = |title: &str, status: &str| {
        let text = |what: &str| format!("{words} {what}");
        let case = attempt(&text(title), status, 0);
        with(
            case,
            json!({
                "location": format!("tests/{word}-{secret}.spec.ts:7:5"), "suitePath": [text("suite")], "tags": [word, secret],
                "steps": [{ "title": text("step"), "startTime": 1_767_261_600_000_i64, "duration": 5, "category": "action" }],
                "consoleLogs": [{ "type": "error", "text": text("console"), "timestamp": 1_767_261_600_000_i64 }],
                "networkRequests": [{ "method": "GET", "url": address, "status": 500, "duration": 4 }],
                "ariaSnapshot": format!("- heading \"{words}\""), "stdout": text("output"), "testSource": text("source"),
                "testAnnotations": [{ "type": "issue", "description": text("issue") }],
            }),
        )
    };
    let of_run = |hour: u8, status: &str| {
        let start = format!("2026-01-01T{hour:02}:00:00.000Z");
        with(
            run(&words, status, Vec::new()),
            json!({
                "startTime": start, "isFullRun": true, "branch": words, "label": words, "environment": words, "author": words,
                "commitMessage": words, "buildUrl": address,
                "clientRunId": format!("{word}-{hour}"), "metadata": { "scm": { "defaultBranch": words }, "note": words },
            }),
        )
    };
    let cases = |status: &str| vec![case("pays", status), case("refunds", "passed"), case("limps", status)];
    let green = with(of_run(9, "passed"), json!({ "testCases": cases("passed") }));
    let green = client.post_json("/api/test-runs/submit", &green).await.expect("stored");

    let trace = format!("PK\u{3}\u{4} {words}");
    let report = report_archive(&[("index.html", words.as_bytes())]).expect("an archive");
    let note =
        json!([{ "name": words, "contentType": "text/plain", "originalName": format!("{words}.txt") }]);
    let form = Form::new()
        .field("projectName", &words)
        .field("testRun", of_run(10, "failed").to_string())
        .field("testCases", json!(cases("failed")).to_string())
        .field("attach_meta_0", note.to_string())
        .file("attach_file_0", "note.txt", "text/plain", words.as_bytes())
        .file("trace_0", "trace.zip", "application/zip", trace.as_bytes())
        .file("report_html", "report.gz", "application/gzip", &report)
        .field("report_label_html", &words);
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
    crate::comparison::work(service).await;

    let number = |value: &Value| value.as_i64().expect("an id");
    let (project, run) = (number(&stored["projectId"]), number(&stored["runId"]));
    let failed =
        client.json(&format!("/api/test-runs/{run}/executions?status=failed")).await.expect("a list");
    let (first, second) = (&failed["items"][0], &failed["items"][1]);
    let execution = number(&first["id"]);
    let of_first = client.json(&format!("/api/test-run-cases/{execution}")).await.expect("an execution");
    let cluster = number(&of_first["cluster"]["id"]);
    let files = executions_file(client, &failed).await;

    let write = async |method: Method, path: String, body: Value| {
        let answer = client.send_json(method, &path, &body).await.expect("an answer");
        answer.success().unwrap_or_else(|error| panic!("{path}: {error:#}"))
    };
    let link = json!({ "entityType": "test_run", "entityId": run, "url": address, "title": words });
    let link = write(Method::POST, "/api/links".to_owned(), link).await;
    let marker = json!({ "label": words, "occurredAt": "2026-01-01", "category": "release" });
    let marker = write(Method::POST, format!("/api/projects/{project}/markers"), marker).await;
    let function = json!({
        "name": word, "kind": "helper", "module": format!("./{word}"),
        "steps": [{ "action": "fill", "testId": words, "value": words }],
    });
    let function = write(Method::POST, format!("/api/projects/{project}/test-functions"), function).await;
    let export = json!({ "kind": "run", "id": run, "format": "csv" });
    let export = write(Method::POST, "/api/exports".to_owned(), export).await;
    settled(service).await;
    let policy = json!({ "name": words, "policy": { "maxFailed": 0 } });
    let policy = write(Method::POST, format!("/api/projects/{project}/gate-policies"), policy).await;
    write(Method::POST, format!("/api/test-runs/{run}/gate"), json!({ "policy": words })).await;
    let aside = json!({ "testCaseId": second["testCaseId"], "reason": words });
    write(Method::POST, format!("/api/projects/{project}/quarantine"), aside).await;
    write(Method::PATCH, format!("/api/failure-clusters/{cluster}"), json!({ "title": words })).await;
    let status = json!({ "status": "open", "note": words });
    write(Method::PATCH, format!("/api/failure-clusters/{cluster}/status"), status).await;
    let (store, now) = (service.state().store(), service.state().now());
    let suggestion = suggestion(store, project, cluster, now).await.expect("a suggestion");
    let diagnosis = diagnosis(store, project, cluster, now).await.expect("a diagnosis");
    Held {
        ids: Holding {
            project,
            name: words,
            run,
            test_case: number(&first["testCaseId"]),
            execution,
            file: files,
            link: number(&link["link"]["id"]),
            marker: number(&marker["marker"]["id"]),
            function: number(&function["testFunction"]["id"]),
            export: number(&export["export"]["id"]),
            cluster,
            suggestion,
            diagnosis,
            policy: number(&policy["policy"]["id"]),
        },
        green: number(&green["runId"]),
        quarantined: number(&second["testCaseId"]),
        report: stored["reports"][0]["path"].as_str().expect("a report").to_owned(),
        trace: hex::encode(<sha2::Sha256 as sha2::Digest>::digest(trace.as_bytes())),
        client_run: format!("{word}-10"),
    }
}

/// A file of one of these executions.
async fn executions_file(client: &Client, executions: &Value) -> i64 {
    for execution in executions["items"].as_array().expect("executions") {
        let path = format!("/api/test-run-cases/{}/files", execution["id"]);
        let files = client.json(&path).await.expect("files");
        if let Some(id) = files["items"][0]["id"].as_i64() {
            return id;
        }
    }
    panic!("no execution has a file: {executions}")
}
