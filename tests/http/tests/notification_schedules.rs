//! When notifications are sent: digests, quiet hours, and how many a channel takes in an hour.

use callboard_domain::notifications::TimeOfDay;
use callboard_domain::time::Timestamp;
use callboard_http::AppState;
use callboard_http::state::Clock;
use callboard_store::Backend;
use callboard_test_support::{Client, Service, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use crate::comparison::submit;
use crate::notifications::{Recipient, channel, recent, started};
use crate::retention::worked;
use crate::rows::settled;

const MINUTE_MS: i64 = 60_000;
const MINUTES_PER_DAY: i64 = 24 * 60;

/// The service as it is some minutes from now.
fn minutes_later(service: &Service, minutes: i64) -> AppState {
    let at = Timestamp(service.state().now().millis() + minutes * MINUTE_MS);
    service.state().clone().with_clock(Clock::from_fn(move || at))
}

/// Does what is due some minutes from now.
pub(crate) async fn worked_later(service: &Service, minutes: i64) {
    worked(&minutes_later(service, minutes)).await;
}

/// What a clock in UTC shows some minutes from now.
fn shown_in(service: &Service, minutes: i64) -> String {
    let now = service.state().now().millis() / MINUTE_MS;
    let minutes = (now + minutes).rem_euclid(MINUTES_PER_DAY);
    TimeOfDay::from_minutes(minutes).expect("a time of day").to_text()
}

async fn subscribe(client: &Client, channel: i64, schedule: Value) -> Value {
    let mut body = json!({ "channelId": channel, "events": ["run.failed"] });
    let fields = schedule.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(fields);
    client.post_json("/api/subscriptions", &body).await.expect("a subscription")["subscription"].clone()
}

async fn fail(service: &Service, times: i64) {
    for minutes_ago in (1..=times).rev() {
        submit(service.client(), recent(service, minutes_ago, "main", "failed")).await;
    }
    settled(service).await;
}

async fn a_digest(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    let at = shown_in(&service, 120);
    let told = subscribe(client, channel, json!({ "mode": "digest", "digestAt": at })).await;
    assert_eq!(
        (&told["mode"], &told["digestAt"], &told["digestDay"], &told["timeZone"], &told["quietHours"]),
        (&json!("digest"), &json!(at), &Value::Null, &json!("UTC"), &Value::Null)
    );

    fail(&service, 14).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());
    worked(&minutes_later(&service, 60)).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());
    worked(&minutes_later(&service, 125)).await;
    let told = recipient.take();
    assert_eq!(told.len(), 1);
    let message = told[0].json();
    assert_eq!(message["event"], "summary");
    assert_eq!(message["payload"]["headline"], "14 notifications from shop");
    let facts = message["payload"]["facts"].as_array().expect("facts");
    assert_eq!((facts.len(), facts[12].as_str()), (13, Some("and 2 more")));
    assert!(
        facts[0].as_str().is_some_and(|fact| fact.contains("on main failed: 1 failed, 1 passed")),
        "{facts:?}"
    );
    worked(&minutes_later(&service, 24 * 60 + 130)).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());
    let log = client.json(&format!("/api/channels/{channel}/deliveries")).await.expect("a log");
    let log = log["items"].as_array().expect("a list");
    assert_eq!((log.len(), &log[0]["event"], &log[0]["state"]), (1, &json!("summary"), &json!("sent")));
}

#[tokio::test]
async fn a_digest_puts_messages_together() {
    for_each_backend(a_digest).await;
}

async fn quiet(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    let hours = json!({ "from": shown_in(&service, -60), "to": shown_in(&service, 60) });
    let told = subscribe(client, channel, json!({ "quietHours": hours })).await;
    assert_eq!((&told["mode"], &told["quietHours"]), (&json!("realtime"), &hours));
    let path = format!("/api/subscriptions/{}", told["id"]);
    let edit = async |body: Value| {
        let answer = client.send_json(Method::PATCH, &path, &body).await.expect("an answer");
        assert_eq!(answer.status.as_u16(), 200);
    };

    fail(&service, 1).await;
    worked(&minutes_later(&service, 30)).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());
    worked(&minutes_later(&service, 61)).await;
    assert_eq!(recipient.take_events(), ["run.failed"], "one message is sent as it is");

    // Whoever turns a subscription off hears nothing more of what waits.
    fail(&service, 1).await;
    edit(json!({ "active": false })).await;
    worked(&minutes_later(&service, 61)).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());

    // A channel gets what comes first: this one has no quiet hours.
    edit(json!({ "active": true })).await;
    subscribe(client, channel, json!({})).await;
    fail(&service, 1).await;
    assert_eq!(recipient.take_events(), ["run.failed"]);
    worked(&minutes_later(&service, 61)).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_is_sent_in_quiet_hours() {
    for_each_backend(quiet).await;
}

async fn a_limit(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    subscribe(client, channel, json!({})).await;
    let path = format!("/api/channels/{channel}");
    let set = client.send_json(Method::PATCH, &path, &json!({ "hourlyLimit": 2 })).await.expect("an answer");
    assert_eq!(set.json().expect("a channel")["channel"]["hourlyLimit"], 2);

    fail(&service, 5).await;
    assert_eq!(recipient.take_events(), ["run.failed", "run.failed"]);
    worked(&minutes_later(&service, 61)).await;
    let told = recipient.take();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].json()["payload"]["headline"], "3 notifications from shop");
}

#[tokio::test]
async fn what_exceeds_a_channels_limit_becomes_one_message() {
    for_each_backend(a_limit).await;
}

async fn refused(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    for (field, schedule, advice) in [
        ("digestAt", json!({ "mode": "digest", "digestAt": "25:00" }), "00:00 to 23:59"),
        ("digestDay", json!({ "mode": "digest", "digestDay": "payday" }), "monday to sunday"),
        ("timeZone", json!({ "timeZone": "Mars/Base" }), "Europe/Berlin"),
        ("quietHours", json!({ "quietHours": { "from": "08:00", "to": "08:00" } }), "different times"),
        ("to", json!({ "quietHours": { "from": "08:00", "to": 9 } }), "00:00 to 23:59"),
        ("mode", json!({ "mode": "sometimes" }), "realtime, digest"),
    ] {
        let mut body = json!({ "channelId": channel, "events": ["run.failed"] });
        body.as_object_mut().expect("an object").extend(schedule.as_object().expect("an object").clone());
        let answer = client.post("/api/subscriptions", &body).await.expect("an answer");
        let error: Value = answer.json().expect("an error");
        assert_eq!((answer.status.as_u16(), &error["data"]["field"]), (400, &json!(field)), "{error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(advice)), "{error}");
    }
}

#[tokio::test]
async fn a_schedule_that_makes_no_sense_is_refused() {
    for_each_backend(refused).await;
}
