//! Changes of retention: by default nothing is deleted, what keeps less waits
//! for a grace and can be undone, and every change says what it deletes.

use callboard_domain::time::Timestamp;
use callboard_http::{AppState, Clock};
use callboard_query::retention;
use callboard_store::{Backend, Db};
use callboard_test_support::form::report_archive;
use callboard_test_support::{Answer, Client, Form, Service, TestDatabase, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::detail_pages::page;
use crate::retention::{days_ago, evidence, kept, patch, runs_left, set, settled, submitted, worked};
use crate::rows::texts;

const INSTANCE: &str = "/api/settings/retention";
const HOUR_MS: i64 = 60 * 60 * 1000;

async fn service(backend: Backend, settings: &[(&str, &str)]) -> Service {
    over(TestDatabase::fresh(backend).await.expect("a database"), settings).await
}

async fn over(database: TestDatabase, settings: &[(&str, &str)]) -> Service {
    let own = [("SERVICE_GC_GRACE_SECONDS", "0")].iter().chain(settings);
    let settings: Vec<_> = own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Service::over(database, &settings).await.expect("a service")
}

/// The service as it is some hours from now.
fn hours_later(service: &Service, hours: i64) -> AppState {
    let at = Timestamp(service.state().now().millis() + hours * HOUR_MS);
    service.state().clone().with_clock(Clock::from_fn(move || at))
}

/// Does everything that is due some hours from now, and sweeps.
async fn work_hours_later(service: &Service, hours: i64) {
    settled(service).await;
    let state = hours_later(service, hours);
    worked(&state).await;
    while !retention::sweep(&state.background(), 0, state.now()).await.expect("swept").is_over() {}
    worked(&state).await;
}

/// Runs of 40 days ago, and two of yesterday.
async fn with_runs(service: &Service, old: usize) -> (Vec<i64>, Vec<i64>) {
    let passed = || vec![attempt("looks", "passed", 0)];
    let (mut aged, mut young) = (Vec::new(), Vec::new());
    for _ in 0..old {
        aged.push(submitted(service, &days_ago(service, 40), "passed", passed(), json!({})).await);
    }
    for _ in 0..2 {
        young.push(submitted(service, &days_ago(service, 1), "passed", passed(), json!({})).await);
    }
    settled(service).await;
    (aged, young)
}

/// A run of some days ago with steps, a file of each of its tests, and a report.
async fn uploaded(service: &Service, project: &str, days: i64) -> i64 {
    let cases = json!([
        with(attempt("passes", "passed", 0), evidence("open the shop")),
        with(attempt("looks", "passed", 0), evidence("look around")),
    ]);
    let note =
        json!([{ "name": "a note", "contentType": "text/plain", "originalName": "a.txt" }]).to_string();
    let report = report_archive(&[("index.html", b"<h1>Report</h1>")]).expect("an archive");
    let body = with(run(project, "passed", Vec::new()), json!({ "startTime": days_ago(service, days) }));
    let form = Form::new()
        .field("projectName", project)
        .field("testRun", body.to_string())
        .field("testCases", cases.to_string())
        .field("attach_meta_0", note.clone())
        .file("attach_file_0", "a.txt", "text/plain", b"of the first")
        .field("attach_meta_1", note)
        .file("attach_file_1", "a.txt", "text/plain", format!("of {project} {days}").as_bytes())
        .file("report_html", "report.gz", "application/gzip", &report);
    let request = service.client().request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
    stored["runId"].as_i64().expect("a run")
}

async fn delete(client: &Client, path: &str) -> Answer {
    client.send(client.request(Method::DELETE, path)).await.expect("an answer")
}

/// What the audit log says of an action, newest first.
async fn audited(client: &Client, action: &str) -> Vec<Value> {
    let found = client.json(&format!("/api/audit?action={action}")).await.expect("the log");
    found["items"].as_array().expect("entries").clone()
}

/// Sums a number over all receipts.
async fn receipted(client: &Client, path: &str) -> i64 {
    let found = client.json("/api/deletions?limit=200").await.expect("receipts");
    let receipts = found["items"].as_array().expect("receipts");
    receipts.iter().filter_map(|receipt| receipt.pointer(path)?.as_i64()).sum()
}

/// How many dates are stored, of runs, files, reports and evidence.
const DATES: &str = "SELECT CAST((SELECT COUNT(*) FROM test_runs WHERE expires_at IS NOT NULL) \
    + (SELECT COUNT(*) FROM files WHERE expires_at IS NOT NULL) \
    + (SELECT COUNT(*) FROM reports WHERE expires_at IS NOT NULL) \
    + (SELECT COUNT(*) FROM packs WHERE trim_at IS NOT NULL) AS TEXT)";

/// Changes rows behind the service; answers how many.
async fn execute(service: &Service, statement: &'static str) -> u64 {
    match service.state().store().db() {
        Db::Sqlite { writer, .. } => {
            let mut writer = writer.get().await.expect("a connection");
            sqlx::query(statement).execute(&mut *writer).await.expect("changed").rows_affected()
        }
        Db::Postgres(pool) => {
            let mut connection = pool.get().await.expect("a connection");
            sqlx::query(statement).execute(&mut *connection).await.expect("changed").rows_affected()
        }
    }
}

/// Dates everything as if its time was over long ago, as earlier defaults did.
async fn date_in_the_past(service: &Service) {
    for statement in [
        "UPDATE test_runs SET expires_at = 1",
        "UPDATE files SET expires_at = 1",
        "UPDATE reports SET expires_at = 1",
        "UPDATE packs SET trim_at = 1",
    ] {
        assert_ne!(execute(service, statement).await, 0, "{statement}");
    }
    assert_ne!(texts(service, DATES).await, ["0"]);
}

#[tokio::test]
async fn an_installation_that_nobody_configured_keeps_everything_whatever_dates_it_stores() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        let run = uploaded(&service, "shop", 900).await;
        settled(&service).await;
        assert_eq!(texts(&service, DATES).await, ["0"], "nothing is dated by the defaults");
        let is_whole = async || {
            assert_eq!(kept(client, run, "passes").await, (1, vec!["a note".to_owned()]));
            let detail = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
            assert_eq!(detail["reports"].as_array().map(Vec::len), Some(1));
            assert_eq!(client.json("/api/deletions").await.expect("receipts")["items"], json!([]));
        };

        // The sweep goes by the policy in force, and corrects the dates.
        date_in_the_past(&service).await;
        work_hours_later(&service, 0).await;
        is_whole().await;
        assert_eq!(texts(&service, DATES).await, ["0"]);

        // The first start of this release takes dates of earlier defaults back.
        let forget = "DELETE FROM instance_state WHERE key = 'retention_dated_to_keep'";
        assert_eq!(execute(&service, forget).await, 1);
        date_in_the_past(&service).await;
        retention::start(&service.state().background(), service.state().now()).await.expect("started");
        settled(&service).await;
        is_whole().await;
        assert_eq!(texts(&service, DATES).await, ["0"]);
    })
    .await;
}

#[tokio::test]
async fn a_shorter_policy_deletes_nothing_before_its_grace_is_over_and_all_that_is_due_after_it() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        let (old, young) = with_runs(&service, 12).await;
        let before = service.state().now().millis();
        let answer = set(client, INSTANCE, json!({ "runs": { "days": 30 } })).await;
        let shortened = &answer["shortened"];
        assert_eq!(shortened["keys"], json!(["runs.days", "runs.untrackedBranchDays"]));
        assert_eq!(
            (&shortened["preview"]["runs"], &shortened["preview"]["partial"]),
            (&json!(12), &json!(false))
        );
        let effective =
            Timestamp::parse_iso(shortened["effectiveAt"].as_str().expect("a time")).expect("a time");
        assert!((24..26).contains(&((effective.millis() - before) / HOUR_MS)), "{answer}");
        assert_eq!(answer["settings"]["runs"]["days"], Value::Null, "the old policy is in force");
        let pending = &answer["pending"];
        assert_eq!(
            (&pending["effectiveAt"], &pending["preview"]),
            (&shortened["effectiveAt"], &shortened["preview"])
        );
        let shown = page(client, "/settings/retention").await;
        assert!(shown.contains("12\u{a0}runs") && shown.contains("Undo"), "{shown}");

        work_hours_later(&service, 23).await;
        assert_eq!(runs_left(client).await.len(), 14);
        let detail = client.json(&format!("/api/test-runs/{}", old[0])).await.expect("the run");
        assert_eq!(detail["retention"]["runExpiresAt"], Value::Null);

        work_hours_later(&service, 25).await;
        assert_eq!(runs_left(client).await, young);
        assert_eq!(receipted(client, "/rows/runs").await, 12);
        let now = client.json(INSTANCE).await.expect("the policy");
        assert_eq!((&now["settings"]["runs"]["days"], &now["pending"]), (&json!(30), &Value::Null));
        let [queued, applied] =
            [audited(client, "retention.queued").await, audited(client, "retention.applied").await];
        assert_eq!((queued.len(), applied.len()), (1, 1));
        assert_eq!((&queued[0]["detail"]["runs"], &applied[0]["detail"]["runs"]), (&json!(12), &json!(12)));
        assert_eq!(applied[0]["actor"]["system"], true);
        assert_eq!(delete(client, "/api/settings/retention/pending").await.status, 409);
    })
    .await;
}

#[tokio::test]
async fn a_number_that_is_saved_and_emptied_again_loses_nothing() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        with_runs(&service, 12).await;
        set(client, INSTANCE, json!({ "runs": { "days": 1 } })).await;
        settled(&service).await;
        let back = set(client, INSTANCE, json!({ "runs": { "days": null } })).await;
        assert_eq!((&back["pending"], &back["shortened"]), (&Value::Null, &Value::Null));
        work_hours_later(&service, 25).await;
        work_hours_later(&service, 49).await;
        assert_eq!(runs_left(client).await.len(), 14);
        assert_eq!(client.json("/api/deletions").await.expect("receipts")["items"], json!([]));
        let changes = audited(client, "settings.changed").await;
        assert_eq!(changes[0]["detail"]["cancelled"], true, "{changes:?}");
        assert!(audited(client, "retention.applied").await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_pending_change_of_a_project_is_undone_and_waits_longer_only_when_it_deletes_more() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        with_runs(&service, 3).await;
        let path = "/api/projects/1/retention";
        let first = set(client, path, json!({ "runs": { "days": 20 } })).await;
        assert_eq!(
            (&first["settings"]["runs"]["days"], &first["shortened"]["preview"]["runs"]),
            (&Value::Null, &json!(3))
        );
        let time = |answer: &Value| answer["pending"]["effectiveAt"].as_str().expect("a time").to_owned();
        let longer = set(client, path, json!({ "runs": { "days": 30, "keepLast": 4 } })).await;
        assert_eq!(time(&longer), time(&first));
        assert_eq!(
            (&longer["effective"]["runs"]["keepLast"], &longer["pending"]["preview"]["runs"]),
            (&json!(4), &json!(1))
        );
        let more = set(client, path, json!({ "runs": { "days": 5 } })).await;
        assert!(time(&more) > time(&first), "{more}");
        assert!(page(client, "/projects/1?tab=settings").await.contains("Undo"));

        let undone = delete(client, "/api/projects/1/retention/pending").await.success().expect("undone");
        assert_eq!((&undone["pending"], &undone["effective"]["runs"]["days"]), (&Value::Null, &Value::Null));
        assert_eq!(undone["effective"]["runs"]["keepLast"], 4);
        assert_eq!(audited(client, "retention.undone").await[0]["detail"]["runs"], 1);
        let again = delete(client, "/api/projects/1/retention/pending").await;
        assert_eq!(
            (again.status.as_u16(), again.json().expect("an error")["code"].clone()),
            (409, json!("not_pending"))
        );
        work_hours_later(&service, 30).await;
        assert_eq!(runs_left(client).await.len(), 5);
        assert!(audited(client, "retention.applied").await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_environment_that_keeps_less_than_at_the_last_start_waits_as_well() {
    for_each_backend(async |backend| {
        let lean = [("SERVICE_RETENTION", r#"{"runs":{"days":30}}"#)];
        let first = service(backend, &[]).await;
        let (_, young) = with_runs(&first, 3).await;
        let second = over(first.into_database().await, &lean).await;
        let client = second.client();
        let shown = client.json(INSTANCE).await.expect("the policy");
        assert_eq!((&shown["settings"]["runs"]["days"], &shown["pending"]), (&Value::Null, &Value::Null));
        assert_eq!(shown["pendingEnvironment"]["preview"]["runs"], 3);
        let refused = delete(client, "/api/settings/retention/pending").await.json().expect("an error");
        assert_eq!(
            (&refused["code"], &refused["data"]["variable"]),
            (&json!("setting_locked"), &json!("SERVICE_RETENTION"))
        );
        let refused =
            patch(client, INSTANCE, &json!({ "runs": { "days": 99 } })).await.json().expect("an error");
        assert_eq!(refused["code"], "setting_locked");
        let queued = audited(client, "retention.queued").await;
        assert_eq!(
            (&queued[0]["detail"]["runs"], &queued[0]["detail"]["variable"]),
            (&json!(3), &json!("SERVICE_RETENTION"))
        );
        assert!(page(client, "/settings/retention").await.contains("3\u{a0}runs"));

        // Taken back before the grace is over: nothing is lost. Services finish their jobs, so that no lease outlives them.
        settled(&second).await;
        let third = over(second.into_database().await, &[]).await;
        assert_eq!(
            third.client().json(INSTANCE).await.expect("the policy")["pendingEnvironment"],
            Value::Null
        );
        work_hours_later(&third, 25).await;
        assert_eq!(runs_left(third.client()).await.len(), 5);

        // Another start with the same variable goes on waiting.
        let fourth = over(third.into_database().await, &lean).await;
        settled(&fourth).await;
        let waits = fourth.client().json(INSTANCE).await.expect("the policy")["pendingEnvironment"].clone();
        let fifth = over(fourth.into_database().await, &lean).await;
        let shown = fifth.client().json(INSTANCE).await.expect("the policy");
        assert_eq!(shown["pendingEnvironment"]["effectiveAt"], waits["effectiveAt"]);
        work_hours_later(&fifth, 25).await;
        assert_eq!(runs_left(fifth.client()).await, young);
        let shown = fifth.client().json(INSTANCE).await.expect("the policy");
        assert_eq!(
            (&shown["settings"]["runs"]["days"], &shown["pendingEnvironment"]),
            (&json!(30), &Value::Null)
        );
    })
    .await;
}

#[tokio::test]
async fn the_preview_of_the_installation_is_what_is_deleted_then() {
    for_each_backend(async |backend| {
        let service = service(backend, &[("SERVICE_RETENTION_GRACE_HOURS", "0")]).await;
        let client = service.client();
        for days in [400, 20] {
            uploaded(&service, "shop", days).await;
            uploaded(&service, "bank", days).await;
            uploaded(&service, "archive", days).await;
        }
        settled(&service).await;
        let projects = client.json("/api/projects?limit=50").await.expect("projects");
        let archive = projects["items"].as_array().expect("projects").iter().find(|each| each["name"] == "archive");
        let archive = archive.expect("the archive")["id"].clone();
        let own = json!({ "runs": { "days": 9_000 }, "evidence": { "passedDays": 9_000 } });
        set(client, &format!("/api/projects/{archive}/retention"), own).await;

        let wanted = json!({ "preset": "lean", "runs": { "days": 90 }, "evidence": { "passedDays": 10 }, "files": { "attachment": { "passedDays": 300 } } });
        let preview = client.post_json("/api/settings/retention/preview", &wanted).await.expect("a preview");
        assert_eq!((&preview["runs"], &preview["executions"], &preview["partial"]), (&json!(2), &json!(4), &json!(false)));
        assert!(preview["shortened"].as_array().expect("keys").contains(&json!("runs.days")), "{preview}");
        let nothing = client.post_json("/api/settings/retention/preview", &json!({ "keep": { "lastGreen": true } })).await;
        let nothing = nothing.expect("a preview");
        assert_eq!((&nothing["shortened"], &nothing["runs"], &nothing["files"]), (&json!([]), &json!(0), &json!(0)));

        let answer = set(client, INSTANCE, wanted).await;
        assert_eq!(answer["shortened"]["preview"]["runs"], preview["runs"]);
        assert_eq!(answer["pending"], Value::Null, "without a grace it is in force");
        let bytes = async || client.json("/api/admin/storage").await.expect("storage")["totals"]["bytes"].as_i64();
        let stored = bytes().await.expect("bytes");
        work_hours_later(&service, 0).await;
        assert_eq!(runs_left(client).await.len(), 4);
        for (of, path) in [("runs", "/rows/runs"), ("executions", "/rows/executions"), ("files", "/rows/files")] {
            assert_eq!(preview[of], receipted(client, path).await, "{of}: {preview}");
        }
        let left = bytes().await.expect("bytes");
        assert_eq!(preview["bytes"], stored - left, "{preview}");
    })
    .await;
}

#[tokio::test]
async fn the_storage_page_says_what_the_preset_frees_and_how_long_the_disk_lasts() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        uploaded(&service, "shop", 400).await;
        // The last green run, which is kept.
        uploaded(&service, "shop", 20).await;
        settled(&service).await;
        let (ctx, now) = (service.state().background(), service.state().now());
        retention::estimate_presets(&ctx, now).await.expect("counted");
        let storage = client.json("/api/admin/storage").await.expect("storage");
        let lean = &storage["presets"][0];
        assert_eq!(
            (&lean["name"], &lean["preview"]["files"], &lean["preview"]["runs"]),
            (&json!("lean"), &json!(3), &json!(0))
        );
        assert!(lean["preview"]["bytes"].as_i64() > Some(0), "{lean}");
        assert!(storage["growth"]["bytesPerDay"].as_f64() > Some(0.0), "{storage}");
        let disk = &storage["disk"];
        assert!(disk["freeBytes"].as_i64() > Some(0) && disk["daysLeft"].as_i64().is_some(), "{disk}");
        let shown = page(client, "/settings/storage").await;
        assert!(shown.contains("Free on disk") && shown.contains("Freed by the lean preset"), "{shown}");
        let policy = client.json(INSTANCE).await.expect("the policy");
        assert_eq!(
            policy["presets"][0]["settings"]["files"]["trace"],
            json!({ "passedDays": 7, "flakyDays": 30, "failedDays": 90 })
        );
        assert_eq!(policy["settings"], policy["defaults"]);
    })
    .await;
}

#[tokio::test]
async fn a_change_whose_time_came_while_its_project_was_deleted_waits_anew_when_it_is_restored() {
    for_each_backend(async |backend| {
        let service = service(backend, &[("SERVICE_RETENTION_GRACE_HOURS", "2")]).await;
        let client = service.client();
        let (old, young) = with_runs(&service, 1).await;
        set(client, "/api/projects/1/retention", json!({ "runs": { "days": 30 } })).await;
        let deleted = client.send_json(Method::DELETE, "/api/projects/1", &json!({ "confirm": "shop" })).await.expect("an answer").success().expect("deleted");
        // As after the job that found no project.
        execute(&service, "UPDATE jobs SET state = 'done' WHERE kind = 'apply_retention'").await;
        let passed = "UPDATE project_settings SET value = REPLACE(value, '\"effectiveAt\":', '\"effectiveAt\":1,\"before\":')";
        assert_eq!(execute(&service, passed).await, 1);
        let path = format!("/api/deletions/{}/restore", deleted["receipt"]["id"]);
        client.post(&path, &json!({})).await.expect("an answer").success().expect("restored");
        let shown = client.json("/api/projects/1/retention").await.expect("the policy");
        let effective_at = shown["pending"]["effectiveAt"].as_str().expect("a time").to_owned();
        assert!(effective_at > service.state().now().to_iso(), "{effective_at}");
        work_hours_later(&service, 1).await;
        assert_eq!(runs_left(client).await.len(), 3);
        work_hours_later(&service, 3).await;
        assert_eq!(runs_left(client).await, young, "{old:?} is deleted");
    })
    .await;
}

#[tokio::test]
async fn branches_that_are_no_longer_tracked_are_kept_until_the_grace_of_the_change_is_over() {
    for_each_backend(async |backend| {
        let service = service(backend, &[("SERVICE_RETENTION_GRACE_HOURS", "2")]).await;
        let client = service.client();
        for branch in ["main", "release/1"] {
            let cases = vec![attempt("looks", "passed", 0)];
            submitted(&service, &days_ago(&service, 40), "passed", cases, json!({ "branch": branch })).await;
        }
        settled(&service).await;
        let tracked = json!({ "defaultBranch": "main", "trackedBranches": ["release/*"] });
        set(client, "/api/projects/1", tracked).await;
        set(client, "/api/projects/1/retention", json!({ "runs": { "untrackedBranchDays": 30 } })).await;
        work_hours_later(&service, 3).await;
        assert_eq!(runs_left(client).await, [1, 2]);
        let pending = async || {
            client.json("/api/projects/1/retention").await.expect("the policy")["pendingBranches"].clone()
        };
        assert_eq!(pending().await, Value::Null);

        set(client, "/api/projects/1", json!({ "trackedBranches": [] })).await;
        let waits = pending().await;
        assert_eq!(waits["preview"]["runs"], 1, "{waits}");
        assert_eq!(audited(client, "retention.queued").await[0]["detail"]["runs"], 1);
        execute(&service, "UPDATE test_runs SET expires_at = 1").await;
        work_hours_later(&service, 1).await;
        assert_eq!(runs_left(client).await, [1, 2]);
        execute(&service, "UPDATE test_runs SET expires_at = 1").await;
        work_hours_later(&service, 3).await;
        assert_eq!(runs_left(client).await, [1]);
        assert_eq!(pending().await, Value::Null);
    })
    .await;
}

#[tokio::test]
async fn the_storage_of_all_projects_is_told_to_many_at_a_time() {
    for_each_backend(async |backend| {
        let service = Service::start(backend).await.expect("a service");
        let client = service.client();
        // More than there are connections: who holds one must not wait for another.
        let all =
            (0..64).map(async |_| client.get("/api/admin/storage").await.expect("an answer").status.as_u16());
        let answers = futures::future::join_all(all).await;
        assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    })
    .await;
}
