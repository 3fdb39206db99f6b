//! Caps at their boundary and one above, and what must not survive.

use serde_json::{Value, json};

use super::*;

fn bounded(evidence: Value) -> Evidence {
    let evidence: Evidence = serde_json::from_value(evidence).expect("is accepted");
    evidence.bounded(&Caps::default())
}

#[test]
fn lists_keep_their_first_elements() {
    let list = |count: usize, element: Value| Value::Array(vec![element; count]);
    let at = |count: usize| {
        bounded(json!({
            "steps": list(count * 500 / 500, json!({"title": "s"})),
            "stepEvents": list(count + 500, json!({"title": "e", "category": "hook"})),
            "testSourceFrames": list(count - 492, json!({"file": "a\\b.ts", "line": 1, "snippet": "x"})),
            "annotations": list(count - 450, json!({"type": "issue"})),
        }))
    };
    for (sent, kept) in [(500, (500, 1_000, 8, 50)), (501, (500, 1_000, 8, 50)), (499, (499, 999, 7, 49))] {
        let evidence = at(sent);
        let sizes = (
            evidence.steps.len(),
            evidence.step_events.len(),
            evidence.test_source_frames.len(),
            evidence.annotations.len(),
        );
        assert_eq!(sizes, kept, "{sent}");
        assert_eq!(evidence.test_source_frames[0].file, "a/b.ts");
    }
}

#[test]
fn texts_end_with_a_marker_above_their_cap() {
    let at = |extra: usize| {
        bounded(json!({
            "ariaSnapshot": "ä".repeat(100_000 + extra),
            "testSource": "ä".repeat(50_000 + extra),
            "stdout": "ä".repeat(20_000 + extra),
            "stderr": "ä".repeat(20_000 + extra),
            "testSourceFrames": [{"file": "a.ts", "snippet": "ä".repeat(4_000 + extra)}],
            "error": "ä".repeat(20_000 + extra),
        }))
    };
    let whole = at(0);
    assert_eq!(whole.aria_snapshot.as_deref().map(|text| text.chars().count()), Some(100_000));
    let cut = at(1);
    for (text, cap) in [
        (cut.aria_snapshot, 100_000),
        (cut.test_source, 50_000),
        (cut.stdout, 20_000),
        (cut.stderr, 20_000),
        (Some(cut.test_source_frames[0].snippet.clone()), 4_000),
    ] {
        assert_eq!(text, Some(format!("{}\n[truncated 1 chars]", "ä".repeat(cap))));
    }
    assert_eq!(whole.error, Some("ä".repeat(20_000)));
    let error = format!("{}… [truncated 1 chars] …{}", "ä".repeat(15_000), "ä".repeat(5_000));
    assert_eq!(cut.error, Some(error));
}

#[test]
fn step_categories_outside_the_vocabulary_are_other() {
    let evidence = bounded(json!({"steps": [
        {"title": "a", "category": "navigation", "failed": true, "error": {"message": "x".repeat(2_001)}, "location": "C:\\a.ts:1:1"},
        {"title": "t".repeat(501), "category": "magic", "error": {"message": ""}, "startTime": 1_767_261_600_000_i64},
    ]}));
    assert_eq!(
        serde_json::to_value(&evidence.steps).expect("is accepted"),
        json!([
            {"title": "a", "duration": 0, "category": "navigation", "failed": true, "error": {"message": "x".repeat(2_000)}, "location": "C:/a.ts:1:1"},
            {"title": "t".repeat(500), "duration": 0, "category": "other", "startTime": 1_767_261_600_000_i64},
        ])
    );
}

#[test]
fn ai_usage_without_entries_is_nothing() {
    assert!(bounded(json!({"aiUsage": {"entries": [], "intents": [{"kind": "run"}]}})).is_empty());
    let evidence = bounded(json!({"aiUsage": {"entries": ["x".repeat(401), 7], "intents": [
        {"template": "t".repeat(301), "locator": "l", "kind": "run"}, {"template": "t", "locator": "l", "kind": "magic"}]}}));
    let usage = evidence.ai_usage.expect("is accepted");
    assert_eq!((usage.entries.len(), usage.entries[0].len()), (1, 400));
    assert_eq!((usage.intents.len(), usage.intents[0].template.len()), (1, 300));
}

#[test]
fn a_browser_configuration_stays_below_four_kibibytes() {
    let long = "\u{10348}".repeat(1_000);
    let evidence = bounded(
        json!({"browser": {"projectName": long, "browserName": long, "channel": long, "userAgent": long,
        "locale": long, "timezoneId": long, "colorScheme": long, "reducedMotion": long, "forcedColors": long,
        "serviceWorkers": long, "viewport": {"width": 1, "height": 1}, "isMobile": true, "extraHTTPHeaders": {"a": "s3cret"}}}),
    );
    let json = serde_json::to_string(&evidence.browser).expect("is accepted");
    assert!(json.len() <= 4_096 && !json.contains("s3cret"), "{}", json.len());
}

#[test]
fn no_secret_survives_anywhere() {
    let evidence = bounded(json!({
        "networkRequests": [{"method": "GET", "url": "https://u:s3cret@a.test/x?s3cret&k=s3cret#s3cret", "status": 500,
            "requestHeaders": {"cookie": "s3cret"}, "body": "s3cret",
            "serverLogs": [{"Message": "slow", "Level": "Warning", "Timestamp": 5, "Stack": ["f1", "f2", "f3", "f4", "f5", "f6"], "State": "s3cret"}],
            "serverTraces": [{"id": 1, "name": "GET", "startMs": 0, "durMs": 2.5, "attrs": {"http.url": "https://a.test/?s3cret", "url.query": "s3cret", "http.status_code": 500}}]}],
        "consoleLogs": [{"type": "error", "text": "failed", "location": "https://a.test/a.js?s3cret:1:2", "args": "s3cret"}],
        "webVitals": {"navigation": {"url": "https://a.test/?s3cret", "ttfb": 1}},
        "steps": [{"title": "Navigate to \"/?token=s3cret&c=3\"", "duration": 1, "category": "navigation"}],
        "stepEvents": [{"title": "GET a.test/x?s3cret", "category": "pw:api", "duration": 1}],
        "pageState": {"url": "https://a.test/?s3cret", "cookies": [{"name": "a", "value": "s3cret"}],
            "localStorage": [{"key": "k", "value": "s3cret", "length": 6}], "sessionStorage": [{"key": "k", "value": "s3cret"}]},
    }));
    let json = serde_json::to_value(&evidence).expect("is accepted");
    assert!(!json.to_string().contains("s3cret"), "{json}");
    assert!(json.to_string().contains("/?token=<redacted>&c=3"), "harmless parameters of steps stay: {json}");
    let request = &json["networkRequests"][0];
    assert_eq!(request["normalizedUrl"], "/x?k=<redacted>");
    assert_eq!(
        request["serverLogs"],
        json!([{"message": "slow", "level": "Warning", "category": "", "timestamp": 5, "stack": ["f1", "f2", "f3", "f4", "f5"]}])
    );
    assert_eq!(
        request["serverTraces"][0]["attrs"],
        json!({"http.status_code": 500, "http.url": "https://a.test/"})
    );
}
