//! A body in a file says the same as one in memory.

use std::io::Write as _;

use serde_json::json;

use super::super::body::{SubmitBody, parse_test_cases};
use super::*;

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file
}

fn entries(cases: &mut StoredCases) -> Vec<TestCaseEntry> {
    (0..cases.len()).map(|position| cases.read(position).expect("is read")).collect()
}

const BODY: &str = r#"{"projectName":"shop","metadata":{"a":[1,{"b":null}]},"unknown":1e999,"status":"failed",
    "testCases":[
        {"title":"a\ud800","status":"passed","location":"a.ts:7:5","retries":1,"unknown":{"x":[1]},"startedAt":5000,"duration":100},
        {"title":"a\ud800","status":"failed","location":"a.ts:9:5","error":"Error: \u0000","consoleLogs":[{"type":"log","text":"x"}]},
        {"title":"b","title":"c","status":"passed","duration":1e999},
        7, {"status":"passed"}, {"title":"d","location":"a.ts:1:1"},
        {"title":"e","status":"passed","suitePath":["S"],"browserProject":"chromium","startedAt":9000,"duration":50}
    ],"label":null,"status":"passed"}"#;

#[test]
fn a_submission_in_a_file_is_read_as_one_in_memory() {
    let caps = Caps::default();
    let read = SubmitBody::parse(BODY.as_bytes().to_vec(), &caps).expect("is accepted");
    let in_memory = read.test_cases.expect("a list");
    let stored = read_stored_submit(file(BODY.as_bytes()), &caps).expect("is accepted");
    let mut cases = stored.test_cases.expect("a list");
    assert_eq!(stored.fields, read.fields);
    assert_eq!(stored.warnings.as_slice(), in_memory.warnings.as_slice());
    assert_eq!(entries(&mut cases), in_memory.entries);
    assert_eq!(cases.indices().collect::<Vec<_>>(), [0, 1, 2, 6]);
    assert_eq!(cases.span_ms(), Some(4050));
    assert_eq!(cases.title(6), Ok(Some("e".to_owned())));
    assert_eq!(cases.title(3), Ok(None), "it was skipped");

    let list = &BODY[BODY.find('[').expect("metadata") + 1..];
    let list = &list[list.find("[\n").expect("the list")..=list.rfind(']').expect("its end")];
    let in_memory = parse_test_cases(list.as_bytes().to_vec(), &caps).expect("is accepted");
    let (mut cases, warnings) = read_stored_cases(file(list.as_bytes()), &caps).expect("is accepted");
    assert_eq!(
        (entries(&mut cases), warnings.as_slice()),
        (in_memory.entries, in_memory.warnings.as_slice())
    );
}

#[test]
fn events_in_a_file_are_read_as_those_in_memory() {
    let caps = Caps::default();
    let body = r#"{"testCase":{"type":"complete","title":"last","status":"passed"},"streamToken":"t\u0000","testCases":[
        {"type":"step-end","title":"s","parentTitle":"a"},{"type":"begin","title":"a"},
        {"type":"complete","title":"a","status":"passed"},{"type":"complete"},{"type":"other"},5,
        {"type":"step-begin","title":"s","parentTitle":"a"}],"more":[1]}"#;
    let read = EventsBody::parse(body.as_bytes().to_vec(), &caps).expect("is accepted");
    let StoredEvents { events, mut completes } =
        read_stored_events(file(body.as_bytes()), &caps).expect("is accepted");
    assert_eq!(events.stream_token, read.stream_token);
    assert_eq!((&events.begun, &events.steps), (&read.begun, &read.steps));
    assert_eq!((events.processed, events.ignored), (read.processed, read.ignored));
    assert_eq!(events.completes.warnings.as_slice(), read.completes.warnings.as_slice());
    assert_eq!(entries(&mut completes), read.completes.entries);
}

#[test]
fn a_body_that_cannot_be_read_says_why() {
    let caps = Caps::default();
    let code = |text: &str| {
        read_stored_submit(file(text.as_bytes()), &caps).map(drop).expect_err("is refused").code()
    };
    for (text, expected) in [
        (r#"{"testCases":{}}"#, "invalid_field"),
        (r#"{"testCases":"x"}"#, "invalid_field"),
        (r#"{"testCases":[{"title":}]}"#, "invalid_json"),
        (r#"{"testCases":[{]}"#, "invalid_json"),
        (r#"{"label":nul}"#, "invalid_json"),
        ("{\"label\":\"\u{fffd}", "invalid_json"),
        (&format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200)), "invalid_json"),
        (&format!("{{\"testCases\":[{}1]}}", "1,".repeat(MAX_TEST_CASES)), "too_many_items"),
    ] {
        assert_eq!(code(text), expected, "{}", text.chars().take(60).collect::<String>());
    }
    assert!(
        read_stored_submit(file(br#"{"testCases":null}"#), &caps).expect("is accepted").test_cases.is_none()
    );
    let invalid = [br#"{"label":""#.as_slice(), &[0xff], br#""}"#].concat();
    assert_eq!(
        read_stored_submit(file(&invalid), &caps).map(drop).expect_err("is refused").code(),
        "invalid_json"
    );
}

#[test]
fn what_is_too_large_by_itself_is_left_out_with_a_warning() {
    let caps = Caps::default();
    let filler = "x".repeat(usize::try_from(MAX_ENTRY_BYTES).expect("a length"));
    let body = json!({ "filler": filler, "testCases": [
        { "title": "large", "status": "failed", "stdout": filler }, { "title": "small", "status": "passed" },
    ] });
    let read = read_stored_submit(file(body.to_string().as_bytes()), &caps).expect("is accepted");
    let codes: Vec<&str> = read.warnings.as_slice().iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["field_dropped", "entry_too_large"]);
    let message = &read.warnings.as_slice()[1].message;
    assert_eq!(message, "testCases[0] was skipped: it has 8.0 MiB, and a test case may have 8 MiB.");
    let mut cases = read.test_cases.expect("a list");
    assert_eq!(entries(&mut cases).iter().map(|entry| entry.index).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_test_case_of_too_many_elements_is_cut_with_a_warning_and_costs_no_other_one() {
    // Some bytes of text each, of which a reader would make hundreds of megabytes.
    let logs = format!("[{}{{}}]", "{},".repeat(19_999));
    let request = format!(r#"{{"url":"/x","serverLogs":{logs}}}"#);
    let requests = vec![request; 100].join(",");
    let case = |title: &str, requests: &str| {
        format!(r#"{{"title":"{title}","status":"failed","networkRequests":[{requests}]}}"#)
    };
    let body =
        format!("[{},{}]", case("large", &requests), case("small", r#"{"url":"/y","serverLogs":[{}]}"#));
    let caps = Caps::default();
    let in_memory = parse_test_cases(body.clone().into_bytes(), &caps).expect("is accepted");
    let (mut cases, warnings) = read_stored_cases(file(body.as_bytes()), &caps).expect("is accepted");
    assert_eq!(
        (entries(&mut cases), warnings.as_slice()),
        (in_memory.entries.clone(), in_memory.warnings.as_slice())
    );
    let titles: Vec<&str> = in_memory.entries.iter().map(|entry| entry.title.as_str()).collect();
    assert_eq!(titles, ["large", "small"]);
    let told: Vec<_> = warnings.as_slice().iter().map(|warning| (warning.code, warning.index)).collect();
    assert_eq!(told, [("entry_cut", Some(0))]);
    assert!(warnings.as_slice()[0].message.starts_with("testCases[0] (\"large\") has more "), "{warnings:?}");
}

#[test]
fn parts_are_bounded_and_keep_the_entries_of_a_test_together() {
    let case = |title: &str, retry: u32| json!({ "title": title, "status": "failed", "retries": retry, "error": "Error: x" });
    let body = json!([case("a", 0), case("b", 0), case("a", 1), case("c", 0), case("d", 0), case("b", 1)]);
    let (cases, _) =
        read_stored_cases(file(body.to_string().as_bytes()), &Caps::default()).expect("is accepted");
    assert_eq!(cases.parts(3, u64::MAX), [vec![0, 2], vec![1, 5, 3], vec![4]]);
    assert_eq!(cases.parts(100, 1), [vec![0, 2], vec![1, 5], vec![3], vec![4]]);
    assert_eq!(cases.parts(100, u64::MAX), [vec![0, 2, 1, 5, 3, 4]]);
    let (none, _) = read_stored_cases(file(b"[]"), &Caps::default()).expect("is accepted");
    assert_eq!(none.parts(3, 3), [Vec::<usize>::new()]);
}

#[test]
fn attempts_of_one_test_are_bounded_and_the_worst_of_them_stay() {
    let attempt = |retry: usize, status: &str| json!({ "title": "retried", "status": status, "retries": retry, "startedAt": retry, "error": "Error: x" });
    let mut sent: Vec<Value> = (0..2_001).map(|retry| attempt(retry, "passed")).collect();
    sent.push(json!({ "title": "another", "status": "passed" }));
    sent.extend((2_001..2_004).map(|retry| attempt(retry, "failed")));
    let body = Value::from(sent).to_string();
    let caps = Caps::default();
    let in_memory = parse_test_cases(body.clone().into_bytes(), &caps).expect("is accepted");
    let (mut cases, warnings) = read_stored_cases(file(body.as_bytes()), &caps).expect("is accepted");
    assert_eq!(
        (entries(&mut cases), warnings.as_slice()),
        (in_memory.entries.clone(), in_memory.warnings.as_slice())
    );
    let indices: Vec<usize> = in_memory.entries.iter().map(|entry| entry.index).collect();
    let expected: Vec<usize> = (0..1_997).chain(2_001..2_005).collect();
    assert_eq!(indices, expected);
    let told: Vec<_> = warnings.as_slice().iter().map(|warning| (warning.code, warning.index)).collect();
    assert_eq!(told, [("attempts_dropped", Some(1_997))]);
    let message = &warnings.as_slice()[0].message;
    assert!(message.starts_with("4 attempts of one test, the first of them testCases[1997], "), "{message}");
}

#[test]
fn attempts_beyond_what_is_held_of_one_test_lose_their_details() {
    let log = json!({ "type": "log", "text": "x".repeat(1_000) });
    let attempt = |retry: usize, status: &str| {
        let error = "Error: x".repeat(1_000);
        let logs = vec![log.clone(); 1_000];
        json!({ "title": "retried", "status": status, "retries": retry, "error": error, "consoleLogs": logs })
    };
    let mut sent: Vec<Value> = (0..20).map(|retry| attempt(retry, "timedOut")).collect();
    sent.push(attempt(20, "failed"));
    let body = Value::from(sent).to_string();
    let (mut cases, warnings) =
        read_stored_cases(file(body.as_bytes()), &Caps::default()).expect("is accepted");
    let read = entries(&mut cases);
    let detailed: Vec<usize> =
        read.iter().filter(|entry| entry.evidence.is_some()).map(|entry| entry.index).collect();
    // A mebibyte each, and the worst one first.
    assert_eq!(detailed, (0..11).chain([20]).collect::<Vec<_>>());
    assert_eq!(read.len(), 21);
    assert!(read.iter().all(|entry| entry.error.is_some() && entry.failure.is_some()));
    let told: Vec<_> = warnings.as_slice().iter().map(|warning| (warning.code, warning.index)).collect();
    assert_eq!(told, [("entry_cut", Some(11))]);
}
