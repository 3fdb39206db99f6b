//! Answers that arrive in pieces: everybody who looks sees the same, and nothing of it stays.

use std::time::Duration;

use callboard_store::Backend;
use callboard_test_support::{ModelServer, Play, for_each_backend};
use serde_json::{Value, json};

use super::{PROTOCOLS, UNTIL_QUEUED, cluster_of, configure, diagnose, good, started};
use crate::rows::settled;

/// How often a watcher looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

async fn answers_are_watched(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for protocol in PROTOCOLS {
        let host = ModelServer::start().await.expect("a server");
        configure(client, &host, protocol).await;
        let (_, cluster) = cluster_of(client, protocol, "pays").await;
        let whole = good().to_string();
        let (first, second) = whole.split_at(whole.find("Pay now, and has").expect("the cause"));
        host.script([Play::SaysHeld(first.to_owned(), second.to_owned())]);
        let queued = diagnose(client, cluster, json!({})).await.json().expect("JSON");
        assert_eq!((&queued["status"], &queued["progress"]), (&json!("running"), &json!(null)), "{queued}");
        let path = format!("/api/failure-clusters/{cluster}/diagnosis");
        let watching = async {
            tokio::time::sleep(UNTIL_QUEUED).await;
            let shown = async || client.json(&path).await.expect("a diagnosis")["diagnosis"].clone();
            loop {
                let seen = shown().await;
                assert_eq!(seen["status"], "running", "the model has not ended: {seen}");
                if seen["progress"]["text"].is_string() {
                    break;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            // The second one who watches, and the page, see what the first one saw.
            let seen = shown().await;
            assert_eq!(seen["progress"]["text"], "The button is named");
            assert_eq!(seen["progress"]["received"], json!(first.len()));
            assert_eq!(seen["stage"], "asking");
            let page = format!("/failure-clusters/{cluster}?tab=diagnosis");
            let page = client.get(&page).await.expect("a page").text();
            assert!(page.contains("The button is named") && page.contains("characters received"), "{page}");
            host.release();
        };
        let ((), ()) = tokio::join!(settled(&service), watching);
        let ended: Value = client.json(&path).await.expect("a diagnosis")["diagnosis"].clone();
        assert_eq!((&ended["status"], &ended["progress"]), (&json!("completed"), &json!(null)), "{ended}");
        assert!(
            ended["rootCause"].as_str().is_some_and(|cause| cause.starts_with("The button is named Pay now"))
        );
        assert_eq!((&ended["inputTokens"], &ended["outputTokens"]), (&json!(1200), &json!(340)));
    }
}

#[tokio::test]
async fn an_answer_is_shown_while_it_is_written() {
    for_each_backend(answers_are_watched).await;
}
