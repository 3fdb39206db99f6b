//! The model among the settings: what is masked, where the key goes, and the
//! test of it.

use callboard_store::Backend;
use callboard_test_support::model_server::{MODEL, MODEL_KEY, redirect_to};
use callboard_test_support::{ModelServer, Play, Service, TestDatabase, for_each_backend};
use serde_json::json;

use super::{PROTOCOLS, cluster_of, configure, diagnose, edit, refused, settings_of, started};

async fn keys_stay_with_their_address(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    configure(client, &host, "chat-completions").await;
    let shown = client.json("/api/settings/ai").await.expect("settings");
    assert_eq!(shown["settings"]["roles"]["diagnosis"]["hasApiKey"], true);
    assert!(!shown.to_string().contains(MODEL_KEY), "{shown}");

    // Another address takes another key; clearing the address forgets the key.
    let elsewhere = json!({ "roles": { "diagnosis": { "baseUrl": "https://evil.example/v1" } } });
    let error = refused(&edit(client, elsewhere.clone()).await, 400, "missing_field");
    assert_eq!(error["data"]["field"], "roles.diagnosis.apiKey");
    let tried =
        client.post("/api/settings/ai/test", &elsewhere["roles"]["diagnosis"]).await.expect("an answer");
    refused(&tried, 400, "missing_field");
    edit(client, json!({ "roles": { "diagnosis": { "baseUrl": null } } })).await.success().expect("saved");
    let shown = client.json("/api/settings/ai").await.expect("settings");
    assert_eq!(
        (&shown["settings"]["enabled"], &shown["settings"]["roles"]["diagnosis"]["hasApiKey"]),
        (&json!(false), &json!(false))
    );
    let cleared = client.json("/api/audit?action=secret.cleared").await.expect("entries");
    assert_eq!(cleared["items"].as_array().map(Vec::len), Some(1));
    let audit = client.json("/api/audit").await.expect("entries").to_string();
    assert!(!audit.contains(MODEL_KEY), "{audit}");

    for (body, code, field) in [
        (json!({ "enabled": true }), "invalid_field", "enabled"),
        (
            json!({ "roles": { "diagnosis": { "provider": "magic" } } }),
            "invalid_field",
            "roles.diagnosis.provider",
        ),
        (
            json!({ "roles": { "diagnosis": { "baseUrl": "http://models.example/v1" } } }),
            "invalid_field",
            "roles.diagnosis.baseUrl",
        ),
        (
            json!({ "roles": { "diagnosis": { "baseUrl": "https://models.example" } } }),
            "missing_field",
            "roles.diagnosis.provider",
        ),
        (json!({ "limits": { "callsPerDay": -1 } }), "invalid_field", "limits.callsPerDay"),
    ] {
        let error = refused(&edit(client, body.clone()).await, 400, code);
        assert_eq!(error["data"]["field"], field, "{body}: {error}");
    }
}

#[tokio::test]
async fn a_key_is_never_shown_and_never_taken_to_another_address() {
    for_each_backend(keys_stay_with_their_address).await;
}

async fn round_trips(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let other = ModelServer::start().await.expect("a server");
    let test = async || client.post("/api/settings/ai/test", &json!({})).await.expect("an answer");
    refused(&test().await, 503, "not_configured");
    for protocol in PROTOCOLS {
        let host = ModelServer::start().await.expect("a server");
        configure(client, &host, protocol).await;
        let tested = test().await.success().expect("tested");
        let sentence = tested["message"].as_str().expect("a sentence");
        assert!(sentence.starts_with(&format!("{MODEL} answered in ")), "{sentence}");
        assert_eq!(host.take_calls()[0].key.as_deref(), Some(MODEL_KEY));

        let mut sentences = Vec::new();
        for play in [
            Play::Answers(401, vec![], MODEL_KEY.to_owned()),
            Play::Answers(404, vec![], "<h1>no</h1>".to_owned()),
            Play::Answers(429, vec![], String::new()),
            Play::Answers(429, vec![("retry-after", "600".to_owned())], String::new()),
            Play::Answers(500, vec![], String::new()),
            Play::Answers(200, vec![], "<html>hello</html>".to_owned()),
            Play::Floods(50_000_000),
            redirect_to(&format!("http://{}/v1/chat/completions", other.host())),
        ] {
            host.script([play]);
            let error = refused(&test().await, 502, "upstream_failed");
            let text = error.to_string();
            assert!(!text.contains(MODEL_KEY) && !text.contains("<h"), "{text}");
            sentences.push(error["message"].as_str().expect("a sentence").to_owned());
        }
        for (sentence, part) in sentences.iter().zip([
            "rejected the API key",
            "does not know the model",
            "limits requests of this key; try again later",
            "limits requests of this key until ",
            "answered with status 500",
            "is not JSON of this API",
            "larger than the 4 MB",
            "redirects to another address",
        ]) {
            assert!(sentence.contains(part), "{protocol}: {sentence}");
        }
        assert!(other.take_calls().is_empty(), "the key went to another host");
    }
    let usage = client.json("/api/settings/ai/usage?days=1").await.expect("usage");
    assert_eq!((&usage["totals"]["calls"], &usage["totals"]["failed"]), (&json!(18), &json!(16)));
}

#[tokio::test]
async fn a_test_is_a_round_trip_whose_failure_is_one_sentence() {
    for_each_backend(round_trips).await;
}

async fn private_addresses_are_refused(backend: Backend) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings = vec![("SERVICE_RATE_LIMITS".to_owned(), "off".to_owned())];
    let service = Service::over(database, &settings).await.expect("a service");
    let client = service.client();
    let host = ModelServer::start().await.expect("a server");
    // Without a key of the installation no key can be stored.
    let https = json!({ "roles": { "diagnosis": {
        "provider": "messages", "baseUrl": "https://127.0.0.1:9/", "model": MODEL, "apiKey": MODEL_KEY } } });
    refused(&edit(client, https).await, 503, "secret_key_not_configured");
    let mut plain = settings_of(&host, "chat-completions");
    plain["roles"]["diagnosis"]["baseUrl"] = json!("https://127.0.0.1:9/v1");
    plain["roles"]["diagnosis"].as_object_mut().expect("a model").remove("apiKey");
    edit(client, plain).await.success().expect("saved");
    let tested = client.post("/api/settings/ai/test", &json!({})).await.expect("an answer");
    let error = refused(&tested, 502, "upstream_failed");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("SERVICE_EGRESS_ALLOW")), "{error}");
    assert!(host.take_calls().is_empty());
}

#[tokio::test]
async fn private_addresses_are_called_only_where_the_environment_says_so() {
    for_each_backend(private_addresses_are_refused).await;
}

async fn nothing_is_configured(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let (_, cluster) = cluster_of(client, "shop", "pays").await;
    let error = refused(&diagnose(client, cluster, json!({})).await, 503, "not_configured");
    assert_eq!(error["data"]["setting"], "roles.diagnosis");
    let none = client.json(&format!("/api/failure-clusters/{cluster}/diagnosis")).await.expect("an answer");
    assert_eq!(none, json!({ "diagnosis": null }));
    assert_eq!(client.json("/api/ai/status").await.expect("a status")["configured"], false);
    let host = ModelServer::start().await.expect("a server");
    let mut off = settings_of(&host, "messages");
    off["enabled"] = json!(false);
    edit(client, off).await.success().expect("saved");
    let error = refused(&diagnose(client, cluster, json!({})).await, 503, "not_configured");
    assert_eq!(error["data"]["setting"], "enabled");
    assert!(host.take_calls().is_empty(), "nothing may be sent while it is off");
    // Evidence can be copied all the same.
    let path = format!("/api/failure-clusters/{cluster}/context?format=prompt");
    let prompt = client.get(&path).await.expect("an answer");
    assert!(prompt.text().contains("getByTestId('pay')") && prompt.text().contains("suggestedFix"));
}

#[tokio::test]
async fn diagnoses_are_off_by_default() {
    for_each_backend(nothing_is_configured).await;
}
