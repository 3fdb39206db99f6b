//! Who is sent what: bots of Slack, secrets that are replaced, conditions of subscriptions, access that was taken away,
//! tests and failures that became others.

use std::collections::BTreeSet;

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, RunId, UserId};
use callboard_query::notifications;
use callboard_store::accounts::assignments;
use callboard_store::{Backend, jobs};
use callboard_test_support::accounts::secured_settings;
use callboard_test_support::{Client, Service, SlackServer, TestDatabase, for_each_backend};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::builders::{attempt, with};
use crate::cluster_rules::execute;
use crate::comparison::submit;
use crate::live::{context, later};
use crate::notification_schedules::worked_later;
use crate::notifications::{KEY, Recipient, channel, recent, started};
use crate::rows::{settled, texts};

const TOKEN: &str = "xoxb-1234-5678-aVerySecretToken";

async fn subscribe(client: &Client, body: Value) -> Value {
    client.post_json("/api/subscriptions", &body).await.expect("a subscription")["subscription"].clone()
}

async fn patch(client: &Client, path: &str, body: Value) -> (u16, Value) {
    let answer = client.send_json(Method::PATCH, path, &body).await.expect("an answer");
    (answer.status.as_u16(), answer.json().expect("JSON"))
}

async fn refused(client: &Client, path: &str, body: Value) -> (u16, Value) {
    let answer = client.post(path, &body).await.expect("an answer");
    (answer.status.as_u16(), answer.json().expect("JSON"))
}

async fn service_with(backend: Backend, more: &[(&str, &str)]) -> Service {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings: Vec<_> =
        more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Service::over(database, &settings).await.expect("a service")
}

async fn a_bot(backend: Backend) {
    let slack = SlackServer::start().await.expect("a server");
    let settings = [("SERVICE_SECRET_KEY", KEY), ("SERVICE_SLACK_API_URL", slack.url())];
    let service = service_with(backend, &settings).await;
    let client = service.client();
    let body = |config: Value| json!({ "name": "#releases", "type": "slack", "config": config });
    for (config, code, field) in [
        (json!({ "channel": "C0123456789" }), "missing_field", "config.botToken"),
        (json!({ "botToken": TOKEN }), "missing_field", "config.channel"),
        (json!({ "botToken": "secret", "channel": "C0123456789" }), "invalid_field", "botToken"),
        (json!({ "botToken": TOKEN, "channel": "#releases" }), "invalid_field", "channel"),
        (
            json!({ "botToken": TOKEN, "channel": "C01", "webhookUrl": "https://hooks.example.com/x" }),
            "invalid_field",
            "channel",
        ),
    ] {
        let (status, error) = refused(client, "/api/channels", body(config)).await;
        assert_eq!((status, &error["code"]), (400, &json!(code)), "{error}");
        assert!(error.to_string().contains(field), "{error}");
        assert!(!error.to_string().contains("aVerySecretToken"), "{error}");
    }
    let config = json!({ "botToken": TOKEN, "channel": "C0123456789" });
    let made = client.post_json("/api/channels", &body(config)).await.expect("a channel")["channel"].clone();
    assert_eq!((&made["target"], &made["verified"]), (&json!("channel C0123456789"), &json!(false)));
    let path = format!("/api/channels/{}", made["id"]);
    subscribe(client, json!({ "channelId": made["id"], "events": ["run.failed"] })).await;
    submit(client, recent(&service, 5, "main", "failed")).await;
    settled(&service).await;
    let posted = slack.take();
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].authorization, format!("Bearer {TOKEN}"));
    assert_eq!(posted[0].body["channel"], "C0123456789");
    let blocks = posted[0].body["blocks"].to_string();
    assert!(blocks.contains("Shop › pays") && blocks.contains("went wrong"), "{blocks}");

    let shown = client.json("/api/channels").await.expect("channels");
    assert_eq!(shown["items"][0]["verified"], true, "something has arrived");

    // What Slack refuses is one sentence; only what may pass is tried again.
    let deliveries = format!("{path}/deliveries?limit=1");
    for (answer, words, state) in [
        ((200, None, "channel_not_found"), "invite the bot", "failed"),
        ((200, None, "invalid_auth"), "does not accept the bot token", "failed"),
        ((429, Some(120), "ratelimited"), "no more messages", "pending"),
        ((500, None, "internal_error"), "its service has a problem", "pending"),
    ] {
        slack.refuse(Some(answer));
        client.post_json(&format!("{path}/test"), &json!({})).await.expect("queued");
        settled(&service).await;
        let log = client.json(&deliveries).await.expect("a log")["items"][0].clone();
        assert_eq!((&log["state"], &log["responseStatus"]), (&json!(state), &json!(answer.0)), "{log}");
        assert!(log["error"].as_str().is_some_and(|error| error.contains(words)), "{log}");
    }
    slack.refuse(None);
    assert_eq!(slack.take().len(), 4);

    // A new channel keeps the token, a webhook needs none, and a bot without a token sends nothing.
    assert_eq!(patch(client, &path, json!({ "config": { "channel": "C0ANOTHER" } })).await.0, 200);
    client.post_json(&format!("{path}/test"), &json!({})).await.expect("queued");
    settled(&service).await;
    let posted = slack.take();
    assert_eq!(
        (&posted[0].body["channel"], posted[0].authorization.as_str()),
        (&json!("C0ANOTHER"), &*format!("Bearer {TOKEN}"))
    );
    let hook = json!({ "config": { "webhookUrl": "https://hooks.example.com/services/secret-path" } });
    let (status, changed) = patch(client, &path, hook).await;
    let changed = &changed["channel"];
    assert_eq!(
        (status, &changed["target"], &changed["verified"]),
        (200, &json!("hooks.example.com/…path"), &json!(false))
    );
    let (status, error) = patch(client, &path, json!({ "config": { "channel": "C0ANOTHER" } })).await;
    assert_eq!((status, &error["code"]), (400, &json!("missing_field")), "{error}");

    let shown = client.json("/api/channels").await.expect("channels").to_string();
    let audit = client.json("/api/audit").await.expect("a log").to_string();
    let page = client.get("/settings/notifications").await.expect("a page").text();
    let rows = texts(&service, "SELECT config FROM channels").await;
    for text in [&shown, &audit, &page, &rows[0]] {
        assert!(!text.contains("aVerySecretToken") && !text.contains("secret-path"), "{text}");
    }
}

#[tokio::test]
async fn a_bot_writes_to_a_channel_of_slack() {
    for_each_backend(a_bot).await;
}

fn signed(secret: &str, time: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
    mac.update(format!("{time}.").as_bytes());
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

async fn a_secret_is_replaced(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let id = channel(client, &recipient).await;
    let (path, test) = (format!("/api/channels/{id}"), format!("/api/channels/{id}/test"));
    // Which of three secrets a request is signed with, in the order of the header.
    let signers = || {
        let received = recipient.take();
        assert_eq!(received.len(), 1);
        let header = received[0].header("x-service-signature").to_owned();
        let (time, signatures) = header.split_once(',').expect("its form");
        let time = time.strip_prefix("t=").expect("a time");
        let secrets = ["a-secret-of-the-webhook", "the-second-secret", "the-third-secret"];
        signatures
            .split(',')
            .map(|one| one.strip_prefix("v1=").expect("a signature"))
            .map(|one| {
                secrets
                    .iter()
                    .position(|secret| signed(secret, time, received[0].raw()) == one)
                    .expect("ours")
            })
            .collect::<Vec<_>>()
    };
    client.post_json(&test, &json!({})).await.expect("queued");
    settled(&service).await;
    assert_eq!(signers(), [0]);
    for (secret, expected) in [("the-second-secret", vec![1, 0]), ("the-third-secret", vec![2, 1])] {
        assert_eq!(patch(client, &path, json!({ "config": { "secret": secret } })).await.0, 200);
        client.post_json(&test, &json!({})).await.expect("queued");
        settled(&service).await;
        assert_eq!(signers(), expected);
    }
    client.post_json(&test, &json!({})).await.expect("queued");
    worked_later(&service, 24 * 60 + 1).await;
    assert_eq!(signers(), [2], "a day later the former secret signs no more");
}

#[tokio::test]
async fn a_secret_is_replaced_while_both_are_known() {
    for_each_backend(a_secret_is_replaced).await;
}

async fn a_test_becomes_flaky(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let id = channel(client, &recipient).await;
    subscribe(client, json!({ "channelId": id, "events": ["test.flaky"] })).await;
    let mut told = Vec::new();
    let mut reached = Vec::new();
    for at in 0..30 {
        let mut body = recent(&service, 60 - at, "main", "passed");
        if at % 3 == 2 {
            let retried = [attempt("pays", "failed", 0), attempt("pays", "passed", 1)];
            body["testCases"] = json!([retried[0], retried[1], attempt("ships", "passed", 0)]);
        }
        let run = submit(client, body).await;
        settled(&service).await;
        let flaky = client.json("/api/projects/1/flaky-tests?minScore=90").await.expect("a list");
        if flaky["items"].as_array().is_some_and(|items| !items.is_empty()) {
            reached.push(run);
        }
        told.extend(recipient.take().iter().map(|one| one.json()["payload"].clone()));
    }
    assert!(reached.len() > 3, "{reached:?}");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["headline"], "shop: a test became flaky on main");
    assert_eq!((&told[0]["facts"][0], &told[0]["runId"]), (&json!("pays"), &json!(reached[0])));
}

#[tokio::test]
async fn a_test_that_became_flaky_is_reported_once() {
    for_each_backend(a_test_becomes_flaky).await;
}

async fn conditions(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let id = channel(client, &recipient).await;
    let wrong = json!({ "channelId": id, "events": ["run.failed"], "filters": { "statuses": ["running"] } });
    let (status, error) = refused(client, "/api/subscriptions", wrong).await;
    assert_eq!((status, &error["data"]["field"]), (400, &json!("statuses")));

    let owned = |owner: &str, tag: &str, status: &str, minutes: i64| {
        let mut body = recent(&service, minutes, "main", "failed");
        body["status"] = json!(status);
        body["testCases"][0] =
            with(attempt("pays", "failed", 0), json!({ "testMeta": { "owner": owner }, "tags": [tag] }));
        body
    };
    let made = subscribe(client, json!({ "channelId": id, "events": ["run.failed"] })).await;
    let path = format!("/api/subscriptions/{}", made["id"]);
    let mut minutes = 50;
    for (filters, expected) in [
        (json!({ "owners": ["ada"] }), vec!["run.failed"]),
        (json!({ "owners": ["grace"] }), vec![]),
        (json!({ "owners": null, "tags": ["@smoke"] }), vec!["run.failed"]),
        (json!({ "tags": ["slow"] }), vec![]),
        (json!({ "tags": [], "statuses": ["timedout"] }), vec![]),
        (json!({ "statuses": ["failed"] }), vec!["run.failed"]),
        // The test failed in the run before it, for the same cause.
        (json!({ "onlyNew": true }), vec![]),
        (
            json!({ "onlyNew": false, "flakinessThreshold": 95, "perfRegressionRate": 0.5 }),
            vec!["run.failed"],
        ),
    ] {
        let (status, changed) = patch(client, &path, json!({ "filters": filters })).await;
        assert_eq!(status, 200, "{changed}");
        minutes -= 1;
        submit(client, owned("ada", "@smoke", "failed", minutes)).await;
        settled(&service).await;
        assert_eq!(recipient.take_events(), expected, "{filters}");
    }
    let shown = client.json("/api/subscriptions").await.expect("a list")["items"][0]["filters"].clone();
    assert_eq!((&shown["statuses"], &shown["owners"]), (&json!(["failed"]), &json!([])));
    assert_eq!((&shown["flakinessThreshold"], &shown["perfRegressionRate"]), (&json!(95), &json!(0.5)));

    // Back-filled runs are silent unless somebody asks for them.
    submit(client, owned("ada", "@smoke", "failed", 3 * 24 * 60)).await;
    settled(&service).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());
    assert_eq!(patch(client, &path, json!({ "filters": { "includeBackfilled": true } })).await.0, 200);
    submit(client, owned("ada", "@smoke", "failed", 2 * 24 * 60)).await;
    settled(&service).await;
    assert_eq!(recipient.take_events(), ["run.failed"]);
    let page = client.get(&format!("/settings/notifications?edit={}", made["id"])).await.expect("a page");
    assert!(page.text().contains("More conditions"));
}

#[tokio::test]
async fn a_subscription_is_limited_to_owners_tags_and_statuses() {
    for_each_backend(conditions).await;
}

async fn a_recompute(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let run = submit(client, recent(&service, 5, "main", "failed")).await;
    settled(&service).await;
    let id = channel(client, &recipient).await;
    subscribe(client, json!({ "channelId": id, "events": ["run.failed", "run.finished"] })).await;
    let recompute = async |key: &str| {
        let job = callboard_ingest::Recompute { project: ProjectId(1), run: RunId(run) };
        let mut session = service.state().store().db().begin().await.expect("a session");
        let now = service.state().now();
        jobs::enqueue(&mut session, key, Some(ProjectId(1)), &job, now).await.expect("queued");
        session.commit().await.expect("committed");
        settled(&service).await;
    };
    recompute("first").await;
    assert_eq!(recipient.take_events(), Vec::<String>::new(), "the run ended before anybody subscribed");
    // As after an upgrade: nothing is known about the run.
    execute(&service, "DELETE FROM told_states".to_owned()).await;
    recompute("second").await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());
    submit(client, recent(&service, 4, "main", "failed")).await;
    settled(&service).await;
    assert_eq!(recipient.take_events(), ["run.failed"], "the next run is new");
}

#[tokio::test]
async fn a_run_that_is_evaluated_again_is_no_news() {
    for_each_backend(a_recompute).await;
}

/// A service where a reporter with a webhook reaches two projects and subscribed to a digest of all.
struct TwoProjects {
    service: Service,
    recipient: Recipient,
    program: Client,
    reporter: UserId,
    client: Client,
    projects: [i64; 2],
    channel: i64,
}

impl TwoProjects {
    async fn start(backend: Backend) -> Self {
        let recipient = Recipient::start().await;
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let more = [("SERVICE_SECRET_KEY", KEY), ("SERVICE_EGRESS_ALLOW", recipient.host())];
        let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings: Vec<_> = secured_settings().into_iter().chain(more).collect();
        let service = Service::over(database, &settings).await.expect("a service");
        let admin = service.account("ada", Role::Administrator).await.expect("an account");
        let program = service.program_of(admin, KeyPermission::Full).await.expect("a program");
        let reporter = service.account("linus", Role::Reporter).await.expect("an account");
        let mut projects = [0; 2];
        for (project, name) in projects.iter_mut().zip(["shop", "bank"]) {
            let body = with(recent(&service, 60, "main", "passed"), json!({ "projectName": name }));
            let run = submit(&program, body).await;
            let shown = program.json(&format!("/api/test-runs/{run}")).await.expect("a run");
            *project = shown["projectId"].as_i64().expect("a project");
            service.assign(reporter, Some(ProjectId(*project))).await.expect("assigned");
        }
        settled(&service).await;
        let client = service.browser_of(reporter).await.expect("a browser");
        let body = json!({
            "name": "mine", "type": "webhook", "config": { "url": format!("http://{}/hook", recipient.host()) }
        });
        let made = client.post_json("/api/channels", &body).await.expect("a channel");
        let channel = made["channel"]["id"].as_i64().expect("an id");
        Self { service, recipient, program, reporter, client, projects, channel }
    }

    async fn fail(&self, minutes: i64) {
        for name in ["shop", "bank"] {
            let body = with(recent(&self.service, minutes, "main", "failed"), json!({ "projectName": name }));
            submit(&self.program, body).await;
        }
        settled(&self.service).await;
    }

    async fn take_away(&self, project: i64) {
        let mut session = self.service.state().store().db().begin().await.expect("a session");
        assignments::remove(&mut session, self.reporter, ProjectId(project)).await.expect("removed");
        session.commit().await.expect("committed");
    }
}

async fn a_digest(backend: Backend) {
    let scene = TwoProjects::start(backend).await;
    let [shop, bank] = scene.projects;
    let digest = json!({
        "channelId": scene.channel, "events": ["run.failed"], "mode": "digest", "digestAt": "08:00"
    });
    subscribe(&scene.client, digest).await;
    scene.fail(10).await;
    scene.fail(9).await;
    let ctx = context(&scene.service);
    let put_together = async |minutes: i64| {
        let now = later(&scene.service, minutes * 60_000);
        assert!(notifications::send_held(&ctx, now).await.expect("put together"), "something waited");
    };
    // The digest is made while both projects are in reach; one is not any more when it is sent.
    put_together(24 * 60 + 1).await;
    scene.take_away(bank).await;
    worked_later(&scene.service, 24 * 60 + 2).await;
    let received = scene.recipient.take();
    assert_eq!(received.len(), 1);
    let payload = received[0].json()["payload"].clone();
    assert_eq!(payload["headline"], "2 notifications from shop");
    assert_eq!(payload["projectId"], shop);
    assert!(!received[0].json().to_string().contains("bank"), "{payload}");
    let stored = texts(&scene.service, "SELECT payload FROM deliveries WHERE event = 'summary'").await;
    assert!(!stored[0].contains("bank"), "what is left out is forgotten: {stored:?}");

    // Nothing is left of one about projects that are all out of reach.
    scene.service.assign(scene.reporter, Some(ProjectId(bank))).await.expect("assigned");
    scene.fail(8).await;
    put_together(24 * 60 + 3).await;
    scene.take_away(bank).await;
    scene.take_away(shop).await;
    worked_later(&scene.service, 24 * 60 + 4).await;
    assert_eq!(scene.recipient.take_events(), Vec::<String>::new());
    let states =
        texts(&scene.service, "SELECT state FROM deliveries WHERE event = 'summary' ORDER BY id").await;
    assert_eq!(states, ["sent", "skipped"]);
}

#[tokio::test]
async fn a_digest_leaves_out_projects_that_were_taken_away() {
    for_each_backend(a_digest).await;
}

async fn limits(backend: Backend) {
    let scene = TwoProjects::start(backend).await;
    let mut statuses = BTreeSet::new();
    for at in 0..20 {
        let body = json!({
            "name": format!("channel {at}"), "type": "discord", "config": { "webhookUrl": "https://discord.example.com/x" }
        });
        let answer = scene.client.post("/api/channels", &body).await.expect("an answer");
        statuses.insert((at < 19, answer.status.as_u16()));
    }
    assert_eq!(statuses, BTreeSet::from([(true, 201), (false, 413)]), "twenty of a person");
    let own = scene.client.post_json("/api/channels", &json!({ "type": "browser" })).await;
    own.expect("what people have once is not limited");
}

#[tokio::test]
async fn a_person_has_a_limited_number_of_channels() {
    for_each_backend(limits).await;
}

async fn a_key_reads(backend: Backend) {
    let scene = TwoProjects::start(backend).await;
    let [shop, bank] = scene.projects;
    subscribe(&scene.client, json!({ "events": ["run.failed"], "projectId": shop })).await;
    subscribe(&scene.client, json!({ "events": ["run.failed"], "projectId": bank })).await;
    scene.fail(10).await;
    let items = scene.client.json("/api/notifications").await.expect("a list")["items"].clone();
    let of = |project: i64| {
        let found = items.as_array().expect("a list").iter().find(|item| item["projectId"] == project);
        found.expect("a notification")["id"].clone()
    };
    let narrow = scene.service.program_with(scene.reporter, |key| key.projects = Some(vec![ProjectId(shop)]));
    let narrow = narrow.await.expect("a program");
    let (status, error) = refused(&narrow, &format!("/api/notifications/{}/read", of(bank)), json!({})).await;
    assert_eq!((status, &error["code"]), (404, &json!("notification_not_found")));
    let newest = json!({ "upTo": of(shop).as_i64().max(of(bank).as_i64()) });
    let read = narrow.post_json("/api/notifications/read", &newest).await.expect("read");
    assert_eq!(read["count"], 1, "only what the key reaches");
    let unread = scene.client.json("/api/notifications?unread=true").await.expect("a list")["items"].clone();
    assert_eq!((unread.as_array().map(Vec::len), &unread[0]["projectId"]), (Some(1), &json!(bank)));
    assert_eq!(unread[0]["failures"][0]["title"], "Shop › pays");
}

#[tokio::test]
async fn a_key_marks_only_what_it_reaches_as_read() {
    for_each_backend(a_key_reads).await;
}

async fn subscriptions_follow(backend: Backend) {
    let scene = TwoProjects::start(backend).await;
    let shop = scene.projects[0];
    scene.fail(20).await;
    // A second failure of its own.
    let other = with(
        attempt("ships", "failed", 0),
        json!({ "error": "TimeoutError: locator.click: Timeout 5000ms exceeded.\n    at tests/other.spec.ts:9:3" }),
    );
    let body = with(
        recent(&scene.service, 15, "main", "failed"),
        json!({ "testCases": [attempt("pays", "passed", 0), other] }),
    );
    submit(&scene.program, body).await;
    settled(&scene.service).await;
    let clusters = scene.client.json(&format!("/api/projects/{shop}/failure-clusters?sort=id")).await;
    let clusters = clusters.expect("clusters")["items"].clone();
    let mut ids: Vec<i64> =
        clusters.as_array().expect("a list").iter().map(|one| one["id"].as_i64().expect("an id")).collect();
    ids.sort_unstable();
    let [old, new] = ids[..] else { panic!("{clusters}") };
    let watch = subscribe(&scene.client, json!({ "clusterId": new })).await;
    subscribe(&scene.client, json!({ "clusterId": old })).await;
    let into = json!({ "intoId": old });
    scene.program.post_json(&format!("/api/failure-clusters/{new}/merge"), &into).await.expect("merged");
    let left = scene.client.json("/api/subscriptions").await.expect("a list")["items"].clone();
    let left: Vec<&Value> = left.as_array().expect("a list").iter().map(|one| &one["clusterId"]).collect();
    assert_eq!(left, [&json!(old)], "one subscription to one failure is left; {watch}");

    // A test that was joined with another one is that one.
    let cases = scene.client.json(&format!("/api/projects/{shop}/test-cases")).await.expect("tests");
    let case = |title: &str| {
        let found = cases["items"].as_array().expect("a list").iter().find(|item| item["title"] == title);
        found.expect("a test")["id"].as_i64().expect("an id")
    };
    let (joined, kept) = (case("ships"), case("pays"));
    let watched = subscribe(&scene.client, json!({ "testCaseId": joined })).await;
    execute(&scene.service, format!("UPDATE test_cases SET joined_to = {kept} WHERE id = {joined}")).await;
    let again = subscribe(&scene.client, json!({ "testCaseId": kept })).await;
    assert_eq!(again["id"], watched["id"], "the page of the test shows that it is watched");
    let body = with(
        recent(&scene.service, 10, "main", "failed"),
        json!({ "testCases": [attempt("pays", "failed", 0)] }),
    );
    submit(&scene.program, body).await;
    settled(&scene.service).await;
    let items = scene.client.json("/api/notifications").await.expect("a list")["items"].clone();
    let failed = items.as_array().expect("a list").iter().find(|item| item["event"] == "test.failed");
    assert_eq!(failed.expect("a notification")["facts"][0], "pays");
}

#[tokio::test]
async fn subscriptions_follow_joined_tests_and_merged_failures() {
    for_each_backend(subscriptions_follow).await;
}

async fn a_quota_waits(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let id = channel(client, &recipient).await;
    let digest =
        json!({ "channelId": id, "events": ["storage.quota"], "mode": "digest", "digestAt": "08:00" });
    subscribe(client, digest).await;
    submit(client, recent(&service, 5, "main", "failed")).await;
    settled(&service).await;
    let keeps = "INSERT INTO storage_totals (project_id, kind, outcome_class, objects, bytes) VALUES (1, 'video', 'other', 1, 1900000)";
    execute(&service, keeps.to_owned()).await;
    let set = patch(client, "/api/settings/storage-quota", json!({ "quotaBytes": 2_000_000 })).await;
    assert_eq!(set.0, 200);
    worked_later(&service, 16).await;
    let waiting = texts(&service, "SELECT event FROM held_notifications WHERE project_id = 0").await;
    assert_eq!((waiting, recipient.take_events()), (vec!["storage.quota".to_owned()], Vec::new()));
    worked_later(&service, 24 * 60 + 16).await;
    let received = recipient.take();
    let headlines: Vec<Value> =
        received.iter().map(|one| one.json()["payload"]["headline"].clone()).collect();
    assert_eq!(headlines, [json!("Callboard: 95% of the storage quota is used")]);
}

#[tokio::test]
async fn what_is_about_the_instance_keeps_to_the_schedule() {
    for_each_backend(a_quota_waits).await;
}
