//! Late results and re-runs correct what was sent, to those who were sent it, and repeat nothing else.

use std::collections::BTreeSet;

use callboard_domain::ids::DeliveryId;
use callboard_domain::time::Timestamp;
use callboard_query::notifications;
use callboard_store::Backend;
use callboard_test_support::{Client, MailServer, Service, TestDatabase, for_each_backend};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::builders::{attempt, with};
use crate::comparison::submit;
use crate::live::{Feeder, context, start};
use crate::notifications::{KEY, Recipient, recent};
use crate::rows::settled;

/// One of the things that may happen.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A new full run on main.
    Run(Outcome),
    /// A new full run on main, one test in each of two shards.
    Sharded(Outcome),
    /// The newest run is repeated, as a CI job is.
    Rerun(Outcome),
    /// The same finish arrives again.
    FinishAgain,
    /// The process ends after the newest mail was sent, before that is written down.
    Crash,
}

/// Whether each of two tests passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    pays: bool,
    ships: bool,
}

impl Outcome {
    const fn failed(self) -> usize {
        !self.pays as usize + !self.ships as usize
    }

    const fn status(self) -> &'static str {
        if self.failed() == 0 { "passed" } else { "failed" }
    }
}

fn outcome() -> impl Strategy<Value = Outcome> {
    (any::<bool>(), any::<bool>()).prop_map(|(pays, ships)| Outcome { pays, ships })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => outcome().prop_map(Step::Run),
        2 => outcome().prop_map(Step::Sharded),
        3 => outcome().prop_map(Step::Rerun),
        1 => Just(Step::FinishAgain),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 6..10)
}

/// How a run is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    status: String,
    failed: i64,
}

/// What has to be sent, by the rules people are told: a branch that turns, a run that failed, and a correction of what was
/// sent about a run.
#[derive(Default)]
struct Expected {
    is_red: Option<bool>,
    /// The newest run as it was sent last; `None` when nothing was.
    sent: Option<Shown>,
    /// Whether it was sent that this run failed.
    is_failure_sent: bool,
}

impl Expected {
    fn run(&mut self, shown: Shown) -> Vec<&'static str> {
        (self.sent, self.is_failure_sent) = (None, false);
        self.changed(shown)
    }

    fn changed(&mut self, shown: Shown) -> Vec<&'static str> {
        let mut events = Vec::new();
        let is_red = shown.status != "passed";
        let turned = self.is_red.is_some_and(|was| was != is_red);
        self.is_red = Some(is_red);
        if turned {
            events.push(if is_red { "run.failed.default_branch" } else { "run.recovered" });
            // Whoever got this knows how the run stands.
            self.sent = Some(shown.clone());
        }
        if self.sent.as_ref().is_some_and(|sent| *sent != shown) {
            events.push("run.revised");
            self.sent = Some(shown);
        } else if is_red && !self.is_failure_sent {
            events.push("run.failed");
            self.is_failure_sent = true;
            self.sent = Some(shown);
        }
        events
    }
}

struct Scene {
    service: Service,
    recipient: Recipient,
    mails: MailServer,
    mail_channel: i64,
    newest: Option<(Feeder, u32, Outcome)>,
    runs: u32,
}

impl Scene {
    async fn start(backend: Backend) -> Self {
        let (recipient, mails) = (Recipient::start().await, MailServer::start().await.expect("a server"));
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let url = mails.url();
        let settings = [
            ("SERVICE_SECRET_KEY", KEY),
            ("SERVICE_EGRESS_ALLOW", recipient.host()),
            ("SERVICE_SMTP_URL", url.as_str()),
            ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
            ("SERVICE_SITE_URL", "https://tests.example.org"),
            ("SERVICE_MAIL_ALLOW", "example.com"),
        ];
        let settings: Vec<_> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let service = Service::over(database, &settings).await.expect("a service");
        let client = service.client();
        let hook = json!({
            "name": "hook", "type": "webhook", "hourlyLimit": 1000,
            "config": { "url": format!("http://{}/hook", recipient.host()) }
        });
        let mail = json!({
            "name": "mail", "type": "email", "hourlyLimit": 1000, "config": { "address": "all@example.com" }
        });
        let mut channels = Vec::new();
        for body in [hook, mail] {
            let made = client.post_json("/api/channels", &body).await.expect("a channel");
            let channel = made["channel"]["id"].as_i64().expect("an id");
            let events = ["run.failed", "run.failed.default_branch", "run.recovered"];
            let body = json!({ "channelId": channel, "events": events });
            client.post_json("/api/subscriptions", &body).await.expect("a subscription");
            channels.push(channel);
        }
        Self { mail_channel: channels[1], service, recipient, mails, newest: None, runs: 0 }
    }

    fn client(&self) -> &Client {
        self.service.client()
    }

    /// What the reporter of a CI job says.
    fn job(&self, run: u32, attempt: u32) -> Value {
        let now = self.service.state().now().millis();
        let begun = Timestamp(now - (60 - i64::from(run)) * 60_000 + i64::from(attempt) * 1_000).to_iso();
        json!({
            "startTime": begun, "branch": "main", "isFullRun": true,
            "instanceId": format!("{run:016x}"),
            "metadata": {
                "ci": {
                    "provider": "GitHub Actions", "buildId": format!("{run}"), "jobName": "e2e",
                    "runAttempt": attempt.to_string(), "jobUrl": format!("https://ci.example/jobs/{run}/{attempt}")
                },
                "scm": { "commit": "abc", "branch": "main", "defaultBranch": "main" }
            }
        })
    }

    /// Feeds a run; answers how it is shown then.
    async fn feed(&self, run: u32, job: u32, outcome: Outcome) -> (Feeder, Shown) {
        let feeder = start(self.client(), self.job(run, job)).await;
        let word = |passes: bool| if passes { "passed" } else { "failed" };
        let cases = [attempt("pays", word(outcome.pays), 0), attempt("ships", word(outcome.ships), 0)];
        feeder.results(cases.into()).await;
        feeder.finish(outcome.status()).await;
        settled(&self.service).await;
        let shown = feeder.shown().await;
        let failed = shown["failedTests"].as_i64().expect("a number");
        let status = shown["status"].as_str().expect("a status").to_owned();
        (feeder, Shown { status, failed })
    }

    /// Feeds a run in two shards; answers how it is shown when both have finished.
    async fn feed_shards(&self, run: u32, outcome: Outcome) -> Shown {
        let mut shards = Vec::new();
        for (index, title, passes) in [(1, "pays", outcome.pays), (2, "ships", outcome.ships)] {
            let mut job = self.job(run, 1);
            job["metadata"]["ci"]["jobUrl"] = json!(format!("https://ci.example/jobs/{run}/shard-{index}"));
            let shard = with(job, json!({ "shardIndex": index, "shardTotal": 2 }));
            let word = if passes { "passed" } else { "failed" };
            shards.push((start(self.client(), shard).await, title, word));
        }
        for (feeder, title, word) in &shards {
            feeder.results(vec![attempt(title, word, 0)]).await;
            feeder.finish(word).await;
            settled(&self.service).await;
        }
        assert_eq!(shards[0].0.run, shards[1].0.run, "shards are one run");
        let shown = shards[0].0.shown().await;
        let status = shown["status"].as_str().expect("a status").to_owned();
        Shown { status, failed: shown["failedTests"].as_i64().expect("a number") }
    }

    async fn deliveries(&self) -> Vec<Value> {
        let path = format!("/api/channels/{}/deliveries?limit=100", self.mail_channel);
        self.client().json(&path).await.expect("a log")["items"].as_array().expect("a list").clone()
    }

    /// What a job finds that follows one which ended between sending and writing that down.
    async fn crash(&self) {
        let Some(newest) = self.deliveries().await.first().cloned() else { return };
        let id = newest["id"].as_i64().expect("an id");
        let mut session = self.service.state().store().db().begin().await.expect("a session");
        let row = callboard_store::notifications::deliveries::lock(&mut session, DeliveryId(id)).await;
        let mut row = row.expect("a row").expect("a delivery");
        row.state = callboard_domain::notifications::DeliveryState::Sending;
        callboard_store::notifications::deliveries::save(&mut session, &row).await.expect("saved");
        session.commit().await.expect("committed");
        let (ctx, state) = (context(&self.service), self.service.state());
        let begun = notifications::begin(&ctx, state.stored_secrets(), DeliveryId(id), state.now()).await;
        assert!(begun.expect("an answer").is_none(), "a mail is not sent twice");
        let shown = self.deliveries().await;
        assert_eq!(shown[0]["state"], "unknown", "and the log says that it may have arrived");
    }

    async fn take(&mut self, step: Step, expected: &mut Expected) -> Vec<&'static str> {
        match step {
            Step::Run(outcome) => {
                self.runs += 1;
                let (feeder, shown) = self.feed(self.runs, 1, outcome).await;
                self.newest = Some((feeder, 1, outcome));
                expected.run(shown)
            }
            Step::Sharded(outcome) => {
                self.runs += 1;
                let shown = self.feed_shards(self.runs, outcome).await;
                self.newest = None;
                expected.run(shown)
            }
            Step::Rerun(outcome) => {
                let Some((known, job, _)) = self.newest.take() else { return Vec::new() };
                let (feeder, shown) = self.feed(self.runs, job + 1, outcome).await;
                assert_eq!(feeder.run, known.run, "a re-run joins its run");
                self.newest = Some((feeder, job + 1, outcome));
                expected.changed(shown)
            }
            Step::FinishAgain => {
                if let Some((feeder, _, outcome)) = &self.newest {
                    feeder.call("finish", json!({ "status": outcome.status(), "duration": 5000 })).await;
                    settled(&self.service).await;
                }
                Vec::new()
            }
            Step::Crash => {
                self.crash().await;
                Vec::new()
            }
        }
    }
}

async fn every_transition_is_sent_once(backend: Backend) {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    for _ in 0..4 {
        let steps = steps().new_tree(&mut runner).expect("steps").current();
        let mut scene = Scene::start(backend).await;
        let mut expected = Expected::default();
        let mut count = 0;
        let mut ids = BTreeSet::new();
        for (at, step) in steps.iter().enumerate() {
            let mut wanted = scene.take(*step, &mut expected).await;
            let received = scene.recipient.take();
            // Deliveries of one moment are sent side by side.
            let mut events: Vec<String> = received
                .iter()
                .map(|one| one.json()["event"].as_str().expect("an event").to_owned())
                .collect();
            wanted.sort_unstable();
            events.sort_unstable();
            assert_eq!(events, wanted, "step {at} of {steps:?}");
            assert!(received.iter().all(|one| ids.insert(one.json()["id"].as_i64())), "no delivery twice");
            count += wanted.len();
        }
        // Mails cannot be told apart by their recipients: each arrives once, or is shown as one that may have.
        let log = scene.deliveries().await;
        assert_eq!((log.len(), scene.mails.received().len()), (count, count), "{steps:?}");
        assert!(log.iter().all(|one| one["state"] == "sent" || one["state"] == "unknown"), "{log:?}");
    }
}

#[tokio::test]
async fn every_transition_of_random_runs_is_sent_once() {
    for_each_backend(every_transition_is_sent_once).await;
}

async fn a_rerun_corrects(backend: Backend) {
    let mut scene = Scene::start(backend).await;
    let mut expected = Expected::default();
    let both = Outcome { pays: false, ships: false };
    let one = Outcome { pays: true, ships: false };
    assert_eq!(scene.take(Step::Run(both), &mut expected).await, ["run.failed"]);
    scene.recipient.take();
    assert_eq!(scene.take(Step::Rerun(one), &mut expected).await, ["run.revised"]);
    let corrected = scene.recipient.take();
    let payload = corrected[0].json()["payload"].clone();
    let run = scene.newest.as_ref().expect("a run").0.run;
    assert_eq!(payload["headline"], format!("shop: run {run} on main changed and failed"));
    assert_eq!(payload["facts"][1], "Reported before: failed, 2 failed tests");
    assert_eq!((&payload["runId"], &payload["failedTests"]), (&json!(run), &json!(1)));
    assert_eq!(scene.take(Step::Rerun(one), &mut expected).await, Vec::<&str>::new());
    assert_eq!(scene.recipient.take_events(), Vec::<String>::new());
}

#[tokio::test]
async fn a_rerun_corrects_what_was_sent_about_its_run() {
    for_each_backend(a_rerun_corrects).await;
}

/// A service with a webhook that is subscribed to one event.
async fn subscribed(backend: Backend, event: &str) -> (Service, Recipient) {
    let recipient = Recipient::start().await;
    let service = crate::notifications::started(backend, &recipient).await;
    let channel = crate::notifications::channel(service.client(), &recipient).await;
    let body = json!({ "channelId": channel, "events": [event] });
    service.client().post_json("/api/subscriptions", &body).await.expect("a subscription");
    (service, recipient)
}

async fn a_test_becomes_slower(backend: Backend) {
    let (service, recipient) = subscribed(backend, "perf.regression").await;
    let mut received = Vec::new();
    for at in 0..24 {
        let duration = if at < 14 { 1_000 + at * 7 % 13 } else { 2_000 + at * 7 % 13 };
        let mut body = recent(&service, 60 - at, "main", "passed");
        body["testCases"][0]["duration"] = json!(duration);
        submit(service.client(), body).await;
        settled(&service).await;
        received.extend(recipient.take().iter().map(|one| one.json()["payload"].clone()));
    }
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["headline"], "shop: a test became slower on main");
    assert_eq!(received[0]["facts"][0], "pays");
    assert!(received[0]["facts"][1].as_str().is_some_and(|fact| fact.ends_with("in the median")));
}

#[tokio::test]
async fn a_test_that_became_slower_for_good_is_reported_once() {
    for_each_backend(a_test_becomes_slower).await;
}

async fn attempts_are_dropped(backend: Backend) {
    let (service, recipient) = subscribed(backend, "evidence.dropped").await;
    let mut body = recent(&service, 5, "main", "passed");
    body["testCases"] = (0..2_001).map(|retry| attempt("pays", "failed", retry)).collect();
    let run = submit(service.client(), body).await;
    settled(&service).await;
    let received = recipient.take();
    assert_eq!(received.len(), 1);
    let payload = received[0].json()["payload"].clone();
    assert_eq!(payload["headline"], format!("shop: evidence of run {run} was not stored"));
    assert!(payload["facts"][0].as_str().is_some_and(|fact| fact.contains("2000 of one test are kept")));
}

#[tokio::test]
async fn a_run_of_which_evidence_was_not_stored_is_reported() {
    for_each_backend(attempts_are_dropped).await;
}
