//! Uploads: files arrive byte by byte as they were sent, or not at all.

use std::io::Write as _;

use bytes::Bytes;
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_test_support::{Answer, Service, for_each_secured_service, for_each_service};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::builders::{attempt, run, with};

async fn upload(service: &Service, form: Form) -> Answer {
    let request = service.client().request(reqwest::Method::POST, "/api/test-runs/upload");
    Answer::send(request.multipart(form)).await.expect("an answer")
}

fn form(project: &str, run: &Value) -> Form {
    let cases = run["testCases"].to_string();
    Form::new()
        .text("projectName", project.to_owned())
        .text("testRun", run.to_string())
        .text("testCases", cases)
}

fn file(bytes: impl Into<Vec<u8>>, name: &str, content_type: &str) -> Part {
    Part::bytes(bytes.into()).file_name(name.to_owned()).mime_str(content_type).expect("a content type")
}

fn zip_of(seed: u8, len: usize) -> Vec<u8> {
    let mut bytes = b"PK\x03\x04".to_vec();
    bytes.extend((0..len).map(|n| (n as u8).wrapping_mul(31).wrapping_add(seed)));
    bytes
}

/// The record format of report archives, compressed.
fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for (path, content) in entries {
        encoder.write_all(&(path.len() as u32).to_le_bytes()).expect("written");
        encoder.write_all(path.as_bytes()).expect("written");
        encoder.write_all(&(content.len() as u32).to_le_bytes()).expect("written");
        encoder.write_all(content).expect("written");
    }
    encoder.finish().expect("compressed")
}

async fn first_execution(service: &Service, run: &Value) -> Value {
    let page =
        service.client().json(&format!("/api/test-runs/{run}/executions?sort=id")).await.expect("a page");
    page["items"][0].clone()
}

#[tokio::test]
async fn traces_and_attachments_come_back_byte_by_byte() {
    for_each_service(async |service| {
        let trace = zip_of(1, 300_000);
        let shot = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 900]].concat();
        let note = b"a note".to_vec();
        let metas = json!([
            { "name": "screenshot", "contentType": "image/png", "originalName": "test-failed-1.png" },
            { "name": "note", "contentType": "text/plain", "originalName": "note.txt" },
        ]);
        let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let form = form("shop", &submission)
            .text("trace_hashes", json!({ "0": hex::encode(Sha256::digest(&trace)) }).to_string())
            .part("trace_0", file(trace.clone(), "trace.zip", "application/zip"))
            .text("attach_meta_0", metas.to_string())
            .part("attach_file_0", file(shot.clone(), "a.png", "image/png"))
            .part("attach_file_0", file(note.clone(), "b.txt", "text/plain"));
        let answer = upload(service, form).await.success().expect("stored");
        let execution = first_execution(service, &answer["runId"]).await;
        assert_eq!(execution["counts"]["traces"], 1);
        assert_eq!(execution["counts"]["attachments"], 2);
        let files = service
            .client()
            .json(&format!("/api/test-run-cases/{}/files", execution["id"]))
            .await
            .expect("files");
        let expected = [("trace", &trace), ("screenshot", &shot), ("note", &note)];
        for (name, bytes) in expected {
            let item = files["items"]
                .as_array()
                .expect("items")
                .iter()
                .find(|item| item["name"] == name)
                .expect(name);
            assert_eq!(item["sha256"], json!(hex::encode(Sha256::digest(bytes))), "{name}");
            let found = service.client().get(&format!("/api/files/{}", item["id"])).await.expect("the file");
            assert!(found.body == *bytes, "{name} differs");
        }
    })
    .await;
}

/// A ZIP archive whose entries are not compressed.
fn archive_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let number = |number: usize, bytes: usize| number.to_le_bytes()[..bytes].to_vec();
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let size = number(content.len(), 4);
        let sizes = [size.clone(), size, number(name.len(), 2)].concat();
        let place = number(file.len(), 4);
        directory
            .extend([b"PK\x01\x02".as_slice(), &[0; 16], &sizes, &[0; 12], &place, name.as_bytes()].concat());
        file.extend([b"PK\x03\x04".as_slice(), &[0; 14], &sizes, &[0; 2], name.as_bytes(), content].concat());
    }
    let count = number(entries.len(), 2);
    let (length, place) = (number(directory.len(), 4), number(file.len(), 4));
    let end = [b"PK\x05\x06".as_slice(), &[0; 4], &count, &count, &length, &place, &[0; 2]].concat();
    [file, directory, end].concat()
}

#[tokio::test]
async fn traces_that_share_resources_are_read_as_they_were_sent_and_store_them_once() {
    for_each_service(async |service| {
        let record = br#"{"type":"context-options","browserName":"chromium"}"#;
        let (shared, one, other) = (zip_of(1, 100_000), zip_of(2, 80_000), zip_of(3, 80_000));
        // Of one name, and not the same.
        let traces = [&one, &other].map(|page| {
            archive_of(&[
                ("0-trace.trace", record.as_slice()),
                ("resources/shared.png", &shared),
                ("resources/page.html", page),
            ])
        });
        let titles = ["pays", "looks"];
        let submission = run("shop", "failed", titles.map(|title| attempt(title, "failed", 0)).to_vec());
        let mut form = form("shop", &submission);
        for (entry, trace) in traces.iter().enumerate() {
            form = form.part(format!("trace_{entry}"), file(trace.clone(), "trace.zip", "application/zip"));
        }
        let answer = upload(service, form).await.success().expect("stored");
        crate::rows::settled(service).await;
        let parts = "SELECT CAST(COUNT(*) AS text) FROM blobs WHERE kind = 'pool'";
        assert_eq!(crate::rows::texts(service, parts).await, ["3"]);
        let path = format!("/api/test-runs/{}/executions", answer["runId"]);
        let page = service.client().json(&path).await.expect("a page");
        for row in page["items"].as_array().expect("items") {
            let entry = titles.iter().position(|title| row["title"] == *title).expect("a title");
            let path = format!("/api/test-run-cases/{}/files", row["id"]);
            let files = service.client().json(&path).await.expect("files");
            let path = format!("/api/files/{}", files["items"][0]["id"]);
            let whole = service.client().get(&path).await.expect("the trace");
            assert!(whole.body == traces[entry], "{} differs", titles[entry]);
            // From within what is shared to within what is not.
            let request = service.client().request(reqwest::Method::GET, &path);
            let part = Answer::send(request.header("range", "bytes=90000-140000")).await.expect("a part");
            assert_eq!(part.status.as_u16(), 206);
            assert!(part.body == traces[entry][90_000..=140_000], "a part of {} differs", titles[entry]);
        }
    })
    .await;
}

#[tokio::test]
async fn parts_may_come_in_any_order() {
    for_each_service(async |service| {
        let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let form = Form::new()
            .part("trace_0", file(zip_of(2, 50), "trace.zip", "application/zip"))
            .part(
                "htmlReport",
                file(archive(&[("index.html", b"<h1>Report</h1>")]), "html.gz", "application/gzip"),
            )
            .text("testCases", submission["testCases"].to_string())
            .text("testRun", submission.to_string())
            .text("unknown", "ignored")
            .text("projectName", "shop");
        let answer = upload(service, form).await.success().expect("stored");
        assert_eq!(answer["reports"][0]["label"], "HTML Report");
        let execution = first_execution(service, &answer["runId"]).await;
        assert_eq!(execution["counts"]["traces"], 1);
    })
    .await;
}

#[tokio::test]
async fn bytes_that_do_not_match_their_hash_store_nothing() {
    for_each_service(async |service| {
        let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let form = form("shop", &submission)
            .text("trace_hashes", json!({ "0": "00".repeat(32) }).to_string())
            .part("trace_0", file(zip_of(3, 2_000_000), "trace.zip", "application/zip"));
        let answer = upload(service, form).await;
        assert_eq!(answer.status.as_u16(), 422);
        assert_eq!(answer.json().expect("JSON")["code"], "hash_mismatch");
        let projects = service.client().json("/api/projects").await.expect("projects");
        assert_eq!(projects["items"], json!([]));
        assert_eq!(objects(service), 0, "staged bytes were left behind");
    })
    .await;
}

/// Number of objects in the service's folder.
fn objects(service: &Service) -> usize {
    fn count(folder: &std::path::Path) -> usize {
        let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
        entries.flatten().map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
    }
    let folder = service.database().storage_url();
    count(std::path::Path::new(folder.trim_start_matches("file://")))
}

#[tokio::test]
async fn a_hash_is_checked_beside_traces_that_have_none() {
    for_each_service(async |service| {
        let submission =
            run("shop", "failed", vec![attempt("pays", "failed", 0), attempt("looks", "failed", 0)]);
        let form = form("shop", &submission)
            .text("trace_hashes", json!({ "0": "00".repeat(32), "1": null }).to_string())
            .part("trace_0", file(zip_of(6, 100), "trace.zip", "application/zip"));
        assert_eq!(upload(service, form).await.status.as_u16(), 422);
    })
    .await;
}

#[tokio::test]
async fn a_trace_that_is_stored_need_only_be_named() {
    for_each_service(async |service| {
        let trace = zip_of(8, 3_000);
        let hash = hex::encode(Sha256::digest(&trace));
        let first = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let sent = form("shop", &first).part("trace_0", file(trace, "trace.zip", "application/zip"));
        upload(service, sent).await.success().expect("stored");
        let cases = ["pays", "looks", "signs in"].map(|title| attempt(title, "failed", 0)).to_vec();
        let second = with(run("shop", "failed", cases), json!({ "clientRunId": "names-its-traces" }));
        let hashes = json!({ "0": hash.to_uppercase(), "1": "ab".repeat(32), "2": "no hash", "7": hash });
        for _ in 0..2 {
            let named = form("shop", &second)
                .text("trace_hashes", hashes.to_string())
                .part("report_my type", file(zip_of(7, 100), "report.zip", "application/zip"));
            let answer = upload(service, named).await.success().expect("stored");
            let told: Vec<_> = answer["warnings"]
                .as_array()
                .expect("warnings")
                .iter()
                .map(|warning| (warning["code"].as_str().expect("a code"), warning["index"].as_u64()))
                .collect();
            let expected = [
                ("part_ignored", None),
                ("field_dropped", Some(2)),
                ("file_ignored", Some(7)),
                ("blob_missing", Some(1)),
            ];
            assert_eq!(told, expected, "what is not stored costs nothing but itself");
            let path = format!("/api/test-runs/{}/executions?limit=10", answer["runId"]);
            let page = service.client().json(&path).await.expect("a page");
            let mut traces: Vec<(&str, &Value)> = page["items"]
                .as_array()
                .expect("items")
                .iter()
                .map(|row| (row["title"].as_str().expect("a title"), &row["counts"]["traces"]))
                .collect();
            traces.sort_by_key(|(title, _)| *title);
            assert_eq!(traces, [("looks", &json!(0)), ("pays", &json!(1)), ("signs in", &json!(0))]);
        }
    })
    .await;
}

#[tokio::test]
async fn much_may_be_told_of_attachments_and_what_is_no_list_is_left_out() {
    for_each_service(async |service| {
        let submission =
            run("shop", "failed", vec![attempt("pays", "failed", 0), attempt("looks", "failed", 0)]);
        let mut metas = vec![json!({ "name": "note", "contentType": "text/plain" })];
        metas.resize(20_000, json!({ "name": "beyond what an attempt may have" }));
        let note = || file(b"a note".to_vec(), "note.txt", "text/plain");
        let form = form("shop", &submission)
            .text("attach_meta_0", json!(metas).to_string())
            .part("attach_file_0", note())
            .text("attach_meta_1", "[{")
            .part("attach_file_1", note());
        let answer = upload(service, form).await.success().expect("stored");
        assert_eq!(answer["warnings"].as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(answer["warnings"][0]["index"], 1);
        let names = crate::rows::texts(service, "SELECT name FROM files ORDER BY name").await;
        assert_eq!(names, ["attachment", "note"]);
    })
    .await;
}

#[tokio::test]
async fn a_resent_upload_adds_nothing_and_equal_bytes_are_stored_once() {
    for_each_service(async |service| {
        let cases = vec![attempt("pays", "failed", 0), attempt("looks", "failed", 0)];
        let submission = with(run("shop", "failed", cases), json!({ "clientRunId": "upload-twice" }));
        let trace = zip_of(4, 1_500_000);
        let send = || {
            let form = form("shop", &submission)
                .part("trace_0", file(trace.clone(), "trace.zip", "application/zip"))
                .part("trace_1", file(trace.clone(), "trace.zip", "application/zip"))
                .part(
                    "report_html",
                    file(archive(&[("index.html", b"x"), ("data/a.png", b"y")]), "r.gz", "application/gzip"),
                );
            upload(service, form)
        };
        let first = send().await.success().expect("stored");
        let after_first = objects(service);
        let second = send().await.success().expect("known");
        assert_eq!(second["runId"], first["runId"]);
        assert_eq!(second["reports"][0]["path"], first["reports"][0]["path"]);
        assert_eq!(objects(service), after_first);
        let found =
            service.client().json(&format!("/api/test-runs/{}", first["runId"])).await.expect("the run");
        assert_eq!(found["storage"]["files"], 2);
        assert_eq!(found["reports"].as_array().map(Vec::len), Some(1));
    })
    .await;
}

#[tokio::test]
async fn a_report_joins_a_stored_run_and_an_unsafe_one_does_it_no_harm() {
    for_each_service(async |service| {
        let stored = service
            .client()
            .post_json("/api/test-runs/submit", &run("shop", "passed", vec![attempt("pays", "passed", 0)]))
            .await
            .expect("stored");
        let attach = |archive: Vec<u8>| {
            Form::new()
                .text("testRunId", stored["runId"].to_string())
                .text("projectName", "shop")
                .text("testRun", json!({ "status": "already-submitted" }).to_string())
                .text("testCases", "[]")
                .text("report_label_html", "Nightly")
                .part("report_html", file(archive, "html.gz", "application/gzip"))
        };
        let good_report = || archive(&[("index.html", b"hello"), ("data\\a.txt", b"there")]);
        let good = upload(service, attach(good_report())).await;
        let good = good.success().expect("stored");
        assert_eq!(good["reports"][0]["label"], "Nightly");
        assert_eq!(good["status"], "passed");
        let page = good["reports"][0]["path"].as_str().expect("a path");
        let beside = page.replace("index.html", "data/a.txt");
        let found = service.client().get(&format!("/api/files/{beside}")).await.expect("an answer");
        assert_eq!((found.status.as_u16(), found.text()), (200, "there".to_owned()));
        for bad in [
            archive(&[("../evil.html", b"x")]),
            archive(&[("index.html", b"x"), ("/etc/passwd", b"x")]),
            archive(&[("a", b"x"), ("a/b", b"x")]),
            archive(&[("index.html", b"x"), (&"n".repeat(254), b"x")]),
            b"junk".to_vec(),
        ] {
            let before = objects(service);
            let refused = upload(service, attach(bad)).await.success().expect("the run is unharmed");
            assert_eq!(refused["reports"], json!([]));
            assert_eq!(refused["warnings"][0]["code"], "unsafe_report");
            assert_eq!(objects(service), before, "entries of a refused report were left behind");
        }
        let reports = service
            .client()
            .json(&format!("/api/test-runs/{}/reports", stored["runId"]))
            .await
            .expect("reports");
        assert_eq!(reports["items"].as_array().map(Vec::len), Some(1));
        let missing = upload(
            service,
            Form::new().text("testRunId", "999").text("projectName", "x").text("testRun", "{}"),
        )
        .await;
        assert_eq!(missing.status.as_u16(), 404);
        // What is no number of a run leads to a new one, which says so.
        let misspelt = form("shop", &run("shop", "passed", vec![attempt("pays", "passed", 0)]));
        let misspelt = upload(service, misspelt.text("testRunId", "12abc")).await.success().expect("stored");
        assert_ne!(misspelt["runId"], stored["runId"]);
        assert_eq!(misspelt["warnings"][0]["code"], "field_dropped", "{misspelt}");
        // A later spelling leads to the run too; the words for none lead to a new one.
        let again = upload(service, attach(good_report()).text("runId", "")).await.success().expect("known");
        assert_eq!(again["runId"], stored["runId"]);
        let later = Form::new()
            .text("runId", stored["runId"].to_string())
            .text("projectName", "shop")
            .text("testRun", "{}");
        assert_eq!(upload(service, later).await.success().expect("attached")["runId"], stored["runId"]);
        for none in ["0", "null", "undefined", " "] {
            let fresh = form("shop", &run("shop", "passed", vec![attempt("pays", "passed", 0)]));
            let fresh = upload(service, fresh.text("testRunId", none)).await.success().expect("stored");
            assert_ne!(fresh["runId"], stored["runId"]);
            assert_eq!(fresh["warnings"], Value::Null, "{none}");
        }
        let nothing = upload(service, Form::new().text("testRunId", "1")).await;
        assert_eq!(nothing.json().expect("JSON")["code"], "missing_field");
        let request = service.client().request(reqwest::Method::POST, "/api/test-runs/upload");
        let no_form = Answer::send(request.header("content-type", "application/json").body("{}")).await;
        let no_form = no_form.expect("an answer");
        assert_eq!(
            (no_form.status.as_u16(), &no_form.json().expect("JSON")["code"]),
            (400, &json!("invalid_multipart"))
        );
    })
    .await;
}

#[tokio::test]
async fn a_report_belongs_to_the_run_it_names_whatever_project_the_form_names() {
    for_each_secured_service(async |service| {
        let admin = service.account("admin", Role::Administrator).await.expect("an account");
        let admin = service.program_of(admin, KeyPermission::Full).await.expect("a key");
        let stored = async |project: &str| {
            let run = run(project, "passed", vec![attempt("pays", "passed", 0)]);
            admin.post_json("/api/test-runs/submit", &run).await.expect("stored")
        };
        let (own, foreign) = (stored("shop").await, stored("bank").await);
        let user = service.account("ada", Role::Reporter).await.expect("an account");
        let project = ProjectId(own["projectId"].as_i64().expect("a project"));
        service.assign(user, Some(project)).await.expect("assigned");
        let program = service.program_of(user, KeyPermission::Ingest).await.expect("a key");
        let attach = async |run: &Value| {
            // The file comes before the field that says where it belongs.
            let form = Form::new()
                .text("projectName", "bank")
                .text("testRun", "{}")
                .part("report_html", file(archive(&[("index.html", b"x")]), "html.gz", "application/gzip"))
                .text("testRunId", run["runId"].to_string());
            let request = program.request(reqwest::Method::POST, "/api/test-runs/upload");
            Answer::send(request.multipart(form)).await.expect("an answer")
        };
        let attached = attach(&own).await.success().expect("attached");
        assert_eq!(
            (&attached["runId"], attached["reports"].as_array().map(Vec::len)),
            (&own["runId"], Some(1))
        );
        let refused = attach(&foreign).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json().expect("JSON")["code"]),
            (403, &json!("project_access_denied"))
        );
    })
    .await;
}

#[tokio::test]
async fn a_report_of_many_files_is_unpacked_whole() {
    for_each_service(async |service| {
        let files: Vec<(String, Vec<u8>)> = (0..120_u8)
            .map(|n| {
                let size = if n % 50 == 49 { 1_500_000 } else { usize::from(n) };
                (format!("data/{}/{n}.bin", n % 7), vec![n; size])
            })
            .collect();
        let entries: Vec<(&str, &[u8])> =
            files.iter().map(|(path, content)| (path.as_str(), content.as_slice())).collect();
        let submission = run("shop", "passed", vec![attempt("pays", "passed", 0)]);
        let report = file(archive(&entries), "html.gz", "application/gzip");
        let answer = upload(service, form("shop", &submission).part("report_html", report)).await;
        let answer = answer.success().expect("stored");
        let (project, run) = (&answer["projectId"], &answer["runId"]);
        let reports = service.client().json(&format!("/api/test-runs/{run}/reports")).await.expect("reports");
        let report = &reports["items"][0]["id"];
        let folder = format!("objects/project-{project}/reports/{run}/{report}");
        for (path, content) in &files {
            let stored = std::fs::read(service.database().folder().join(&folder).join(path)).expect(path);
            assert!(&stored == content, "{path}");
        }
    })
    .await;
}

/// A body that sends some chunks and then either ends, or breaks off.
fn streamed(head: String, chunk: Bytes, chunks: usize, tail: Option<String>) -> reqwest::Body {
    let start = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(head))]);
    let middle = futures::stream::iter((0..chunks).map(move |_| Ok(chunk.clone())));
    let end = futures::stream::iter([match tail {
        Some(tail) => Ok(Bytes::from(tail)),
        None => Err(std::io::Error::other("the client went away")),
    }]);
    use futures::StreamExt as _;
    reqwest::Body::wrap_stream(start.chain(middle).chain(end))
}

fn large_form_head(submission: &Value) -> String {
    let field = |name: &str, value: &str| {
        format!("--cut\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    format!(
        "{}{}{}--cut\r\nContent-Disposition: form-data; name=\"trace_0\"; filename=\"trace.zip\"\r\nContent-Type: application/zip\r\n\r\n",
        field("projectName", "large"),
        field("testRun", &submission.to_string()),
        field("testCases", &submission["testCases"].to_string()),
    )
}

#[tokio::test]
async fn a_large_upload_arrives_whole_and_one_that_breaks_off_leaves_nothing() {
    for_each_service(async |service| {
        let submission = run("large", "failed", vec![attempt("pays", "failed", 0)]);
        let chunk = Bytes::from(zip_of(5, 64 * 1024 - 4));
        let post = |body: reqwest::Body| {
            let request = service.client().request(reqwest::Method::POST, "/api/test-runs/upload");
            request.header("content-type", "multipart/form-data; boundary=cut").body(body).send()
        };
        let cut = post(streamed(large_form_head(&submission), chunk.clone(), 320, None)).await;
        assert!(cut.is_err(), "the client broke off");
        // The server notices when it reads on; nothing may be visible either way.
        wait_for(async || objects(service) == 0).await;
        let projects = service.client().json("/api/projects").await.expect("projects");
        assert_eq!(projects["items"], json!([]));

        let chunks = 200 * 16;
        let whole =
            streamed(large_form_head(&submission), chunk.clone(), chunks, Some("\r\n--cut--\r\n".to_owned()));
        let answer = post(whole).await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200);
        let answer: Value = answer.json().await.expect("JSON");
        let execution = first_execution(service, &answer["runId"]).await;
        let files = service
            .client()
            .json(&format!("/api/test-run-cases/{}/files", execution["id"]))
            .await
            .expect("files");
        let mut hasher = Sha256::new();
        (0..chunks).for_each(|_| hasher.update(&chunk));
        assert_eq!(files["items"][0]["sha256"], json!(hex::encode(hasher.finalize())));
        assert_eq!(files["items"][0]["size"], json!(chunks * chunk.len()));
        assert_eq!(objects(service), 1, "the trace; the evidence of the failure goes with its row");
    })
    .await;
}

/// Asks again until it is so; a test that waits in vain is ended by its runner.
async fn wait_for(is_so: impl AsyncFn() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn too_many_reports_are_refused_with_the_number_and_a_way_out() {
    for_each_service(async |service| {
        let of = |count: usize| {
            let submission = run("reports", "passed", vec![attempt("pays", "passed", 0)]);
            (0..count).fold(form("reports", &submission), |form, n| {
                form.part(
                    format!("report_r{n}"),
                    file(archive(&[("index.html", b"x")]), "r.gz", "application/gzip"),
                )
            })
        };
        let refused = upload(service, of(51)).await;
        assert_eq!(refused.status.as_u16(), 413, "{}", refused.text());
        let error = refused.json().expect("JSON");
        assert_eq!((&error["code"], &error["data"]["limit"]), (&json!("too_many_items"), &json!(50)));
        let message = error["message"].as_str().expect("a sentence");
        assert!(message.contains("at most 50 reports") && message.contains("one archive"), "{message}");
        let runs = service.client().json("/api/test-runs").await.expect("runs");
        assert_eq!(runs["items"], json!([]), "nothing of it is stored");
        let stored = upload(service, of(50)).await.success().expect("stored");
        assert_eq!(stored["reports"].as_array().map(Vec::len), Some(50));
    })
    .await;
}
