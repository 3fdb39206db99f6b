//! Feeds over server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use callboard_domain::account::{KeyPermission, Role};
use callboard_test_support::{Client, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use super::{picked, start};
use crate::builders::{attempt, passing, with};

/// A stream that is being read.
struct Reader {
    response: reqwest::Response,
    text: String,
    lines: VecDeque<String>,
    /// Number of the last event.
    last: Option<i64>,
}

impl Reader {
    async fn open(client: &Client, path: &str, last: Option<i64>) -> Self {
        let mut request = client.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        Self::sent(request).await
    }

    async fn sent(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), lines: VecDeque::new(), last: None }
    }

    async fn line(&mut self) -> Option<String> {
        while self.lines.is_empty() {
            let chunk = self.response.chunk().await.expect("no broken stream")?;
            self.text.push_str(std::str::from_utf8(&chunk).expect("text"));
            while let Some(end) = self.text.find('\n') {
                let rest = self.text.split_off(end + 1);
                let line = std::mem::replace(&mut self.text, rest);
                self.lines.push_back(line.trim_end().to_owned());
            }
        }
        self.lines.pop_front()
    }

    /// The next message; `None` when the stream is closed.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.line().await?;
            if let Some(id) = line.strip_prefix("id: ") {
                self.last = Some(id.parse().expect("a number"));
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// Messages up to the first of a type.
    async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut found = Vec::new();
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("no {kind} among {found:#?}"));
            let is_last = message["type"] == kind;
            found.push(message);
            if is_last {
                return found;
            }
        }
    }

    /// Everything up to the end.
    async fn rest(&mut self) -> Vec<Value> {
        let mut found = Vec::new();
        while let Some(message) = self.next().await {
            found.push(message);
        }
        found
    }
}

fn kinds(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["type"].as_str().expect("a type")).collect()
}

#[tokio::test]
async fn a_run_is_watched_from_its_middle_to_its_end() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({ "totalTests": 2 })).await;
        let step = json!({ "title": "adds to the basket", "category": "test.step", "startedAt": 1_767_261_600_000_i64,
            "duration": 40, "status": "passed", "location": "/shop/tests/shop.spec.ts:8:3" });
        feeder.results(vec![with(attempt("pays", "failed", 0), json!({ "stepEvents": [step] }))]).await;
        let path = format!("/api/test-runs/{}/stream", feeder.run);
        let mut reader = Reader::open(service.client(), &path, None).await;
        let first = reader.until("test-completed").await;
        assert_eq!(first[1]["data"]["stepEvents"], json!([step]));
        let error = first[1]["data"]["error"].as_str().expect("an error");
        assert!(error.ends_with("at tests/shop.spec.ts:9:3"), "the whole error, as it is told live: {error}");
        assert_eq!(kinds(&first), ["init", "test-completed"]);
        let keys = ["id", "status", "totalTests", "failedTests", "plannedTests", "catchUpTruncated"];
        let expected = [json!(feeder.run), json!("running"), json!(1), json!(1), json!(2), json!(false)];
        assert_eq!(picked(&first[0]["data"], keys), expected);
        assert_eq!(
            picked(&first[1]["data"], ["replay", "title", "status"]),
            [json!(true), json!("pays"), json!("failed")]
        );
        feeder.results(vec![attempt("pays", "passed", 1), attempt("looks", "passed", 0)]).await;
        feeder.finish("passed").await;
        let live = reader.rest().await;
        assert_eq!(
            kinds(&live),
            ["test-completed", "test-completed", "run-progress", "run-progress", "run-finished"]
        );
        assert_eq!(
            picked(&live[0]["data"], ["title", "flaky", "retries"]),
            [json!("pays"), json!(true), json!(1)]
        );
        let numbers: Vec<i64> =
            live.iter().map(|message| message["seq"].as_i64().expect("a number")).collect();
        assert!(numbers.is_sorted() && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));

        let mut late = Reader::open(service.client(), &format!("{path}?catchUp=none"), None).await;
        assert_eq!(kinds(&late.rest().await), ["init", "run-finished"]);
        let mut resumed = Reader::open(service.client(), &path, Some(numbers[1])).await;
        assert_eq!(kinds(&resumed.rest().await), ["run-progress", "run-progress", "run-finished"]);
        let mut beyond = Reader::open(service.client(), &path, Some(9_999)).await;
        assert_eq!(kinds(&beyond.until("run-finished").await)[..2], ["reset", "init"]);
    })
    .await;
}

#[tokio::test]
async fn every_stored_result_is_told_again_before_what_happens_then() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(passing(120)).await;
        let path = format!("/api/test-runs/{}/stream", feeder.run);
        let mut reader = Reader::open(service.client(), &path, None).await;
        reader.until("init").await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        feeder.finish("passed").await;
        let told = reader.rest().await;
        let is_replayed: Vec<bool> = told.iter().map(|message| message["data"]["replay"] == true).collect();
        assert_eq!(is_replayed.iter().filter(|is_replayed| **is_replayed).count(), 120);
        assert!(is_replayed[..120].iter().all(|is_replayed| *is_replayed), "before anything else");
        let live = ["test-completed", "run-progress", "run-progress", "run-finished"];
        assert_eq!(kinds(&told[120..]), live);
        let mut late = Reader::open(service.client(), &path, None).await;
        let told = late.rest().await;
        assert_eq!((told.len(), told[122]["type"].clone()), (123, json!("run-finished")));
    })
    .await;
}

#[tokio::test]
async fn what_is_told_again_is_all_there_and_no_longer_than_a_function_may_answer() {
    for_each_service(async |service| {
        let error = format!("Error: it broke\n{}", "x".repeat(3_000));
        let failing = |n: u32| with(attempt(&format!("test {n}"), "failed", 0), json!({ "error": error }));
        let batch = crate::builders::run("shop", "failed", (0..2_000).map(failing).collect());
        let run = service.client().post_json("/api/test-runs/submit", &batch).await.expect("stored");
        let path = format!("/api/test-runs/{}/stream", run["runId"]);
        let told = Reader::open(service.client(), &path, None).await.rest().await;
        let bytes: usize = told.iter().map(|message| message.to_string().len()).sum();
        assert!(bytes < 5 * 1024 * 1024, "{bytes} bytes");
        let errors: Vec<&str> = told.iter().filter_map(|message| message["data"]["error"].as_str()).collect();
        assert_eq!(errors.len(), 2_000);
        assert_eq!(
            errors.iter().filter(|error| **error == "Error: it broke").count() + whole(&errors),
            2_000
        );
        assert!(errors[0].len() == 2_000 && errors[1_999].len() < 100 && whole(&errors) > 1_000);
    })
    .await;
}

/// How many of the errors are told as far as a feed tells them.
fn whole(errors: &[&str]) -> usize {
    errors.iter().filter(|error| error.len() == 2_000).count()
}

#[tokio::test]
async fn a_client_reads_its_own_run_with_its_token_and_no_other() {
    callboard_test_support::for_each_secured_service(async |service| {
        let user = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(user, None).await.expect("assigned");
        let program = service.program_of(user, KeyPermission::Ingest).await.expect("a key");
        let (own, other) =
            (start(&program, json!({})).await, start(&program, json!({ "startTime": "2026-02-01" })).await);
        let path = format!("/api/test-runs/{}/stream?catchUp=none", own.run);
        let nobody = service.client().get(&path).await.expect("an answer");
        assert_eq!(nobody.status, 401);
        let with_token =
            |token: &str| service.client().request(Method::GET, &path).header("x-stream-token", token);
        let refused = with_token(&other.token).send().await.expect("an answer");
        assert_eq!(refused.status(), 403);
        let mut reader = Reader::sent(with_token(&own.token)).await;
        assert_eq!(kinds(&reader.until("init").await), ["init"]);
        // The token counts beside a key that does not reach the project.
        let stranger = service.account("grace", Role::User).await.expect("an account");
        let stranger = service.program_of(stranger, KeyPermission::Read).await.expect("a key");
        assert_eq!(stranger.get(&path).await.expect("an answer").status, 403);
        let both = stranger.request(Method::GET, &path).header("x-stream-token", &own.token);
        assert_eq!(kinds(&Reader::sent(both).await.until("init").await), ["init"]);
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_set_up_is_waited_for() {
    for_each_service(async |service| {
        let fields = super::fields(json!({}));
        let setup = service.client().post_json("/api/test-runs/setup", &fields).await.expect("set up");
        let path = format!("/api/test-runs/{}/stream", setup["runId"]);
        let mut reader = Reader::open(service.client(), &path, None).await;
        assert_eq!(reader.until("init").await[0]["data"]["status"], "initializing");
        let body = json!({ "setupToken": setup["setupToken"] });
        service
            .client()
            .post_json(&format!("/api/test-runs/{}/begin", setup["runId"]), &body)
            .await
            .expect("begun");
        let told = reader.until("run-status").await;
        assert_eq!(told[0]["data"]["status"], "running");
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_has_nothing_to_tell_shows_that_it_is_there() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let quiet = async |path: &str| {
            let mut reader = Reader::open(service.client(), path, None).await;
            let mut lines = Vec::new();
            while lines.last().map(String::as_str) != Some(": heartbeat") {
                lines.push(reader.line().await.expect("a stream that goes on"));
            }
            assert_eq!(lines[0], "retry: 2000");
        };
        let run = format!("/api/test-runs/{}/stream?catchUp=none", feeder.run);
        let both = async { tokio::join!(quiet(&run), quiet("/api/stream")) };
        tokio::time::timeout(Duration::from_secs(30), both).await.expect("a sign of life");
    })
    .await;
}

#[tokio::test]
async fn all_runs_are_watched_and_gone_on_with() {
    for_each_service(async |service| {
        let mut reader = Reader::open(service.client(), "/api/stream", Some(0)).await;
        let feeder = start(service.client(), json!({})).await;
        let told = reader.until("run-started").await;
        assert_eq!(picked(&told[0], ["runId", "status"]), [json!(feeder.run), json!("running")]);
        feeder.finish("passed").await;
        assert_eq!(kinds(&reader.until("run-finished").await), ["run-finished"]);
        let mut again = Reader::open(service.client(), &format!("/api/stream?lastEventId={}", 1), None).await;
        assert_eq!(kinds(&again.until("run-finished").await), ["run-finished"]);
        // Who has heard of nothing yet knows where to go on as well.
        let mut new = Reader::open(service.client(), "/api/stream", None).await;
        while new.last.is_none() {
            let line = new.line().await.expect("a number");
            new.last = line.strip_prefix("id: ").map(|id| id.parse().expect("a number"));
        }
        assert_eq!(new.last, again.last);
        let mut lost = Reader::open(service.client(), "/api/stream", Some(77)).await;
        assert_eq!(kinds(&lost.until("reset").await), ["reset"]);
    })
    .await;
}

/// What is told up to the end of a run, by streams that are short: each goes on where the
/// one before was.
async fn told_by_short_streams(client: &Client, path: &str, mut last: Option<i64>) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    while !seen.iter().any(|message| message["type"] == "run-finished") {
        let mut reader = Reader::open(client, path, last).await;
        seen.extend(reader.rest().await);
        last = reader.last.or(last);
    }
    seen
}

#[tokio::test]
async fn what_one_service_takes_in_another_one_tells_without_loss_or_repetition() {
    for_each_service(async |service| {
        let short = [("SERVICE_SSE_MAX_SECONDS".to_owned(), "1".to_owned())];
        let other = service.beside(&short.into()).await.expect("a second service");
        let feeder = start(service.client(), json!({})).await;
        let path = format!("/api/test-runs/{}/stream?catchUp=none", feeder.run);
        let feeding = async {
            for n in 0..40 {
                feeder.results(vec![attempt(&format!("test {n}"), "passed", 0)]).await;
            }
            feeder.finish("passed").await;
        };
        let ((), seen, of_all) = tokio::join!(
            feeding,
            told_by_short_streams(other.client(), &path, None),
            told_by_short_streams(other.client(), "/api/stream", Some(0)),
        );
        let numbers: Vec<i64> = seen.iter().filter_map(|message| message["seq"].as_i64()).collect();
        let (head, live) = numbers.split_first().expect("an init");
        let expected: Vec<i64> = (head + 1..).take(live.len()).collect();
        assert_eq!(live, expected, "no event is lost, none comes twice");
        assert_eq!(seen.iter().filter(|message| message["type"] == "init").count(), 1);
        assert_eq!(kinds(&of_all), ["run-started", "run-finished"]);
        let shown = other.client().json(&format!("/api/test-runs/{}", feeder.run)).await.expect("the run");
        assert_eq!(picked(&shown, ["status", "totalTests"]), [json!("passed"), json!(40)]);
    })
    .await;
}

#[tokio::test]
async fn passing_events_go_first_and_a_reader_from_before_begins_anew() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let begun = json!({ "type": "begin", "title": "pays", "location": "tests/shop.spec.ts:7:5" });
        feeder.events(vec![begun]).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let path = format!("/api/test-runs/{}/stream", feeder.run);
        let purge = async |ms: i64| {
            let mut session = service.state().store().db().begin().await.expect("a transaction");
            callboard_store::feed::purge_runs(&mut session, super::later(service, ms), 100)
                .await
                .expect("purged");
            session.commit().await.expect("committed");
        };
        let first = async |last| {
            Reader::open(service.client(), &path, Some(last)).await.next().await.expect("a message")
        };
        assert_eq!(picked(&first(0).await, ["type", "seq"]), [json!("test-begin"), json!(1)]);
        purge(6 * 60 * 1000).await;
        assert_eq!(picked(&first(1).await, ["type", "seq"]), [json!("test-completed"), json!(2)]);
        purge(25 * 60 * 60 * 1000).await;
        assert_eq!(first(1).await["type"], "reset");
    })
    .await;
}
