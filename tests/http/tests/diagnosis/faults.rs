//! Endpoints and models that misbehave: each ends in a stored diagnosis that
//! says what was wrong.

use std::time::Duration;

use callboard_store::Backend;
use callboard_test_support::model_server::MODEL_KEY;
use callboard_test_support::{ModelServer, Play, for_each_backend};
use serde_json::json;

use super::{PROTOCOLS, cluster_of, configure, diagnosed, edit, good, started};

async fn faults_are_stored(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    // Each protocol on one engine: what is stored does not depend on the protocol.
    let protocol = PROTOCOLS[usize::from(backend == Backend::Postgres)];
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, protocol).await;
    edit(client, json!({ "limits": { "timeoutSeconds": 5 } })).await.success().expect("saved");
    let whole = good().to_string();
    let half = whole[..whole.len() / 2].to_owned();
    let answers = |status, more: &[(&'static str, &str)]| {
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Play::Answers(status, more, format!("<html>{MODEL_KEY}</html>"))
    };
    let cases = [
        (vec![answers(401, &[])], "key_rejected", "rejected the API key", 1),
        (vec![answers(429, &[("retry-after", "3600")])], "rate_limited", "until ", 1),
        (vec![answers(429, &[]), answers(429, &[])], "rate_limited", "try again later", 2),
        (vec![answers(503, &[]), answers(503, &[])], "endpoint_failed", "status 503", 2),
        (vec![answers(200, &[])], "answer_unreadable", "is not JSON of this API", 1),
        (vec![Play::Floods(50_000_000)], "answer_too_large", "larger than the 4 MB", 1),
        (vec![Play::Breaks(half.clone())], "answer_cut_off", "before its answer was complete", 1),
        (
            vec![Play::FailsInStream(half.clone()), Play::FailsInStream(half.clone())],
            "endpoint_failed",
            "answered with status",
            2,
        ),
        (vec![Play::CallsTool], "no_answer", "no answer", 1),
        (vec![Play::StopsEarly], "answer_cut_off", "before its answer was complete", 1),
        (vec![Play::SaysAfter(Duration::from_secs(30), whole.clone())], "too_slow", "within 5 s", 1),
        (
            vec![Play::Says(half.clone()), Play::Says("Das weiß ich leider nicht.".to_owned())],
            "answer_invalid",
            "also after a second try",
            2,
        ),
    ];
    for (plays, code, part, calls) in cases {
        let (_, cluster) = cluster_of(client, &format!("{protocol} {code} {calls}"), "pays").await;
        host.script(plays);
        let found = diagnosed(&service, cluster, json!({})).await;
        assert_eq!(
            (&found["status"], &found["errorCode"]),
            (&json!("failed"), &json!(code)),
            "{protocol}: {found}"
        );
        let sentence = found["error"].as_str().expect("a sentence");
        assert!(sentence.contains(part), "{protocol} {code}: {sentence}");
        assert!(!found.to_string().contains(MODEL_KEY) && !found.to_string().contains("<html>"));
        assert_eq!(host.take_calls().len(), calls, "{protocol} {code}");
    }

    // What can be mended is mended.
    let (_, cluster) = cluster_of(client, &format!("{protocol} repaired"), "pays").await;
    host.script([answers(503, &[]), Play::Says(half), Play::Says(format!("Sure:\n```json\n{whole}\n```"))]);
    let found = diagnosed(&service, cluster, json!({})).await;
    assert_eq!(found["status"], "completed", "{protocol}: {found}");
    let calls = host.take_calls();
    assert!(calls[2].text().contains("the answer is not valid JSON"), "{}", calls[2].text());

    // Servers that know no schemas get instructions instead.
    let (_, cluster) = cluster_of(client, &format!("{protocol} plain"), "pays").await;
    host.script([Play::RefusesSchemas, Play::Says(whole.clone())]);
    let found = diagnosed(&service, cluster, json!({})).await;
    assert_eq!(found["status"], "completed", "{protocol}: {found}");
    let calls = host.take_calls();
    assert_eq!((calls.len(), calls[0].has_schema(), calls[1].has_schema()), (2, true, false));
    assert!(calls[1].text().contains("must match this JSON schema"));

    // Servers that do not stream are asked for a whole answer, and one that answers whole all the same is understood.
    for (play, calls) in [(Play::RefusesStreams, 4), (Play::SaysWhole(whole.clone()), 1)] {
        let (_, cluster) = cluster_of(client, &format!("{protocol} {calls} whole"), "pays").await;
        host.script([play, Play::Says(whole.clone())]);
        let found = diagnosed(&service, cluster, json!({})).await;
        assert_eq!(found["status"], "completed", "{protocol}: {found}");
        let taken = host.take_calls();
        // The messages API has no JSON mode that could be tried.
        let expected = if calls == 4 && protocol == "messages" { 3 } else { calls };
        assert_eq!((taken.len(), &taken[0].body["stream"]), (expected, &json!(true)));
        assert_eq!(taken[expected - 1].body["stream"], json!(calls == 1));
        host.discard_script();
    }

    let down = "http://127.0.0.1:9/v1";
    let model = json!({ "provider": "chat-completions", "baseUrl": down, "model": "m", "apiKey": null });
    edit(client, json!({ "roles": { "diagnosis": model } })).await.success().expect("saved");
    let (_, cluster) = cluster_of(client, "down", "pays").await;
    let found = diagnosed(&service, cluster, json!({})).await;
    assert_eq!((&found["status"], &found["errorCode"]), (&json!("failed"), &json!("unreachable")), "{found}");
}

#[tokio::test]
async fn whatever_goes_wrong_is_stored_as_one_sentence() {
    for_each_backend(faults_are_stored).await;
}

async fn answers_are_judged(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "messages").await;
    let (_, cluster) = cluster_of(client, "shop", "pays").await;
    let mut hostile = good();
    hostile["evidence"] =
        json!([{ "section": "sampleError", "quote": "<script>" }, { "section": "diary", "quote": "x" }]);
    hostile["rootCause"] = json!("<script>alert(1)</script> \u{1b}[31mred");
    hostile["suggestedFix"]["patch"] =
        json!("--- a/etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-root\n+toor\n");
    host.script([Play::Says(hostile.to_string())]);
    let found = diagnosed(&service, cluster, json!({})).await;
    assert_eq!((&found["confidenceScore"], &found["confidence"]), (&json!(70), &json!("high")), "{found}");
    assert_eq!(found["evidence"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["patchValidation"]["status"], "invalid");
    assert_eq!(found["suggestedFix"]["patch"], json!(null), "nobody can copy it");
    let page =
        client.get(&format!("/failure-clusters/{cluster}?tab=diagnosis")).await.expect("a page").text();
    assert!(!page.contains("<script>alert"), "a model writes no markup");
    assert!(page.contains("Not a valid patch"));

    let mut stale = good();
    let patch = stale["suggestedFix"]["patch"].as_str().expect("a patch").replace("'pay'", "'buy'");
    stale["suggestedFix"]["patch"] = json!(patch);
    host.script([Play::Says(stale.to_string())]);
    let found = diagnosed(&service, cluster, json!({ "force": true })).await;
    assert_eq!(found["patchValidation"]["status"], "stale-file", "{found}");
}

#[tokio::test]
async fn what_a_model_answers_is_judged_before_it_is_shown() {
    for_each_backend(answers_are_judged).await;
}
