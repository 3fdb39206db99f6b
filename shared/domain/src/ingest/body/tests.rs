//! Whole bodies: what is read, skipped and refused.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ingest::test_values::json_value;

fn body(text: &str) -> Result<SubmitBody, BodyError> {
    SubmitBody::parse(text.as_bytes().to_vec(), &Caps::default())
}

fn cases(value: &Value) -> TestCases {
    parse_test_cases(value.to_string().into_bytes(), &Caps::default()).expect("is accepted")
}

fn case(title: &str, location: &str) -> Value {
    json!({"title": title, "status": "passed", "duration": 1, "location": location})
}

#[test]
fn a_submission_is_read_in_one_pass() {
    let text = r#"{"projectName":"shop","testCases":[
        {"title":"a\ud800","status":"passed","location":"a.ts:7:5","retries":1,"unknown":{"x":[1]}},
        {"title":"b","status":"failed","location":"a.ts:9:5","error":"Error: \u0000"}],"label":null}"#;
    let read = body(text).expect("is accepted");
    assert_eq!(read.fields.keys().collect::<Vec<_>>(), ["label", "projectName"]);
    let cases = read.test_cases.expect("is accepted");
    assert!(cases.warnings.is_empty());
    assert_eq!(
        cases.entries.iter().map(|entry| entry.title.as_str()).collect::<Vec<_>>(),
        ["a\u{fffd}", "b"]
    );
    assert_eq!(cases.entries[1].error.as_deref(), Some("Error: \u{fffd}"));
}

#[test]
fn a_number_out_of_reach_costs_its_field_only() {
    let read = body(r#"{"duration":1e999,"testCases":[{"title":"a","status":"passed","duration":-1e999}]}"#);
    let read = read.expect("is accepted");
    assert_eq!(read.fields["duration"], "1e999");
    let cases = read.test_cases.expect("is accepted");
    assert_eq!(cases.entries[0].duration_ms, 0);
    assert_eq!(cases.warnings.as_slice().len(), 1, "{:?}", cases.warnings);
    assert!(parse_object(br#"{"a":1e999}"#.to_vec()).is_ok());
    assert!(body(r#"{"a":1e999"#).is_err());
}

#[test]
fn one_broken_entry_among_fifty_is_one_warning() {
    let mut list: Vec<Value> = (0..50).map(|n| case(&n.to_string(), "a.ts:1:1")).collect();
    list[7] = json!("broken");
    let read = cases(&Value::Array(list));
    assert_eq!(read.entries.len(), 49);
    assert_eq!(read.entries[7].index, 8);
    let warnings = read.warnings.as_slice();
    assert_eq!(
        warnings.iter().map(|warning| (warning.code, warning.index)).collect::<Vec<_>>(),
        [("invalid_entry", Some(7))]
    );
}

#[test]
fn at_most_twenty_warnings_are_kept() {
    assert_eq!(cases(&json!(vec![7; 50])).warnings.as_slice().len(), 20);
}

#[test]
fn envelopes_that_are_not_right_are_refused() {
    for (text, code) in [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("{} x", "invalid_json"),
        ("[]", "invalid_body"),
        ("7", "invalid_body"),
        ("\"x\"", "invalid_body"),
        (r#"{"testCases":{}}"#, "invalid_field"),
        (r#"{"testCases":7}"#, "invalid_field"),
    ] {
        assert_eq!(body(text).expect_err("is refused").code(), code, "{text}");
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(body(&deep).expect_err("is refused").code(), "invalid_json");
    assert_eq!(
        body(&format!(r#"{{"testCases":[{{"title":"x","x":{deep}}}]}}"#)).expect_err("is refused").code(),
        "invalid_json"
    );
    assert_eq!(
        SubmitBody::parse(b"{\"a\":\"\xff\"}".to_vec(), &Caps::default()).expect_err("is refused").code(),
        "invalid_json"
    );
    for absent in ["{}", r#"{"testCases":null}"#] {
        assert!(body(absent).expect("is accepted").test_cases.is_none());
    }
}

#[test]
fn the_number_of_test_cases_is_bounded() {
    let case = |number: usize| format!(r#"{{"title":"x{number}","status":"ok"}}"#);
    let list = |count: usize| format!("[{}]", (0..count).map(case).collect::<Vec<_>>().join(","));
    let parse = |text: String| parse_test_cases(text.into_bytes(), &Caps::default());
    assert_eq!(parse(list(MAX_TEST_CASES)).map(|cases| cases.entries.len()).ok(), Some(MAX_TEST_CASES));
    assert_eq!(parse(list(MAX_TEST_CASES + 1)).expect_err("is refused").code(), "too_many_items");
}

#[test]
fn a_repeated_key_fails_nothing_and_the_last_one_counts() {
    let read = body(
        r#"{"testCases":[{"title":"a","title":"b","status":"passed","steps":[{"title":"s","title":"t"}]}]}"#,
    )
    .expect("is accepted");
    let entry = &read.test_cases.expect("is accepted").entries[0];
    assert_eq!(entry.title, "b");
    assert_eq!(entry.evidence.as_ref().map(|evidence| evidence.steps[0].title.clone()).as_deref(), Some("t"));
}

#[test]
fn of_what_is_wide_only_so_much_is_kept() {
    let ones = format!("[{}1]", "1,".repeat(1_000_000));
    let keys: Vec<String> = (0..20_000).map(|n| format!(r#""k{n}":0"#)).collect();
    let kept = |fields: &Map<String, Value>| fields["x"].as_array().map(Vec::len);
    let text = format!(
        r#"{{"x":{ones},"metadata":{{"y":{ones}}},"z":7,"testCases":[{{"title":"a","title":"b","status":"passed","x":{ones}}}]}}"#
    );
    let read = body(&text).expect("is accepted");
    assert!(kept(&read.fields).is_some_and(|count| count < 500_000));
    assert_eq!(read.fields["z"], 7, "what stands behind it is kept");
    assert_eq!(read.test_cases.expect("is accepted").entries[0].title, "b");
    let fields = parse_object(text.into_bytes()).expect("is accepted");
    assert!(kept(&fields).is_some_and(|count| count < 500_000));
    assert_eq!(fields["z"], 7);
    let fields = parse_object(format!("{{{}}}", keys.join(",")).into_bytes()).expect("is accepted");
    assert!(fields.len() < 15_000, "{}", fields.len());
}

#[test]
fn an_entry_that_repeats_a_key_leaves_the_others_and_the_fields_alone() {
    let read = body(
        r#"{"z":1,"testCases":[{"title":"a","status":"passed"},7,{"title":"b","title":"c","status":"passed"},
            {"title":"d","status":"failed"}],"z":2}"#,
    )
    .expect("is accepted");
    assert_eq!(read.fields["z"], 2);
    let cases = read.test_cases.expect("is accepted");
    let told: Vec<_> = cases.entries.iter().map(|entry| (entry.index, entry.title.as_str())).collect();
    assert_eq!(told, [(0, "a"), (2, "c"), (3, "d")]);
    assert_eq!(cases.warnings.as_slice().len(), 1);
}

#[test]
fn direct_submissions_tell_tests_apart_by_line() {
    let read = cases(&json!([
        case("x", "a.ts:30:1"), case("x", "a.ts:10:1"), case("x", "a.ts:20:1"), case("x", "a.ts:10:1"), case("x", "a.ts"),
        case("x", "b.ts:30:1"), case("y", "a.ts:30:1"),
        {"title": "x", "status": "passed", "location": "a.ts:40:1", "suitePath": []},
    ]));
    let suites: Vec<String> =
        read.entries.iter().map(|entry| entry.suite_path.as_deref().unwrap_or_default().join("/")).collect();
    assert_eq!(suites, ["#3", "", "#2", "", "", "", "", ""]);
    assert_eq!(read.entries[1].identity, read.entries[3].identity);
    assert_ne!(read.entries[0].identity, read.entries[2].identity);
}

#[test]
fn importers_get_the_same_entries_from_values() {
    let list = vec![case("x", "a.ts:30:1"), json!(7), case("x", "a.ts:10:1")];
    let from_values = TestCases::from_values(list.clone(), &Caps::default());
    let from_text = cases(&Value::Array(list));
    assert_eq!(from_values.entries, from_text.entries);
    assert_eq!(from_values.warnings, from_text.warnings);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        let _ = SubmitBody::parse(bytes.clone(), &Caps::default());
        let _ = parse_test_cases(bytes.clone(), &Caps::default());
        let _ = parse_object(bytes);
    }

    #[test]
    fn any_json_is_read_or_refused(value in json_value()) {
        let _ = body(&value.to_string());
        let list = parse_test_cases(json!([value]).to_string().into_bytes(), &Caps::default()).expect("is accepted");
        prop_assert!(list.entries.len() <= 1);
    }
}

#[test]
fn bodies_go_as_deep_as_128_levels_and_no_deeper() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    // Beside the object itself, and the list and the entry.
    let field = |levels: usize| format!(r#"{{"metadata":{}}}"#, nested(levels));
    let in_case = |levels: usize| {
        format!(r#"{{"testCases":[{{"title":"a","status":"passed","pageState":{}}}]}}"#, nested(levels))
    };
    for (text, is_taken) in
        [(field(127), true), (field(128), false), (in_case(125), true), (in_case(126), false)]
    {
        assert_eq!(body(&text).is_ok(), is_taken, "{text}");
        assert_eq!(parse_object(text.clone().into_bytes()).is_ok(), is_taken, "{text}");
    }
    let read = body(&field(127)).expect("is accepted");
    assert_eq!(read.fields["metadata"].to_string(), nested(127));
    assert_eq!(
        body(&in_case(125)).expect("is accepted").test_cases.map(|cases| cases.entries.len()),
        Some(1)
    );
    assert!(parse_test_cases(nested(128).into_bytes(), &Caps::default()).is_ok());
}
