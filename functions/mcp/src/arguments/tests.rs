use proptest::prelude::*;
use serde_json::json;

use super::*;

const WORDS: &[&str] = &["failed", "timedout", "all"];
static STEP: [Parameter; 3] = [
    Parameter::choice("action", &["goto", "fill"], None),
    Parameter::text("testId"),
    Parameter::place("at", 9),
];
static PARAMETERS: [Parameter; 13] = [
    Parameter::id("runId", "list_runs").also(&["id"]),
    Parameter::choice("statusFilter", WORDS, Some("failed")).spelled(&[("expired", "timedout")]),
    Parameter::choices("include", &["steps", "webVitals"]),
    Parameter::texts("tags"),
    Parameter::query(),
    Parameter::branch(),
    Parameter::page_size(50, 10),
    Parameter::cursor(),
    Parameter::flag("force"),
    Parameter::commit("sha"),
    Parameter::note(),
    Parameter::objects("steps", 2, &STEP),
    Parameter::choice("feedback", &["up", "none"], None).spelled(&[("", "none")]).null_is("none"),
];

fn read(given: Value) -> Result<Value, String> {
    Arguments::read(Some(given), &PARAMETERS)
        .map(|read| Value::Object(read.values().clone()))
        .map_err(|error| error.to_string())
}

fn read_one(name: &str, value: Value) -> Result<Value, String> {
    let mut given = json!({"runId": 1});
    given[name] = value;
    let name = match name {
        "run_id" | "id" => "runId",
        "status_filter" => "statusFilter",
        "limit" | "page_size" => "pageSize",
        "q" => "query",
        "triageNote" | "feedback_note" => "note",
        other => other,
    };
    read(given).map(|read| read.get(name).cloned().unwrap_or(Value::Null))
}

#[test]
fn what_can_only_mean_one_thing_is_accepted() {
    let table = [
        ("runId", json!("12"), json!(12)),
        ("runId", json!(12.0), json!(12)),
        ("runId", json!(" 7 "), json!(7)),
        ("runId", json!(i64::MAX), json!(i64::MAX)),
        ("statusFilter", json!("ALL"), json!("all")),
        ("statusFilter", json!("timedOut"), json!("timedout")),
        ("statusFilter", json!("Expired"), json!("timedout")),
        ("statusFilter", json!(""), json!("failed")),
        ("status_filter", json!("all"), json!("all")),
        ("include", json!("steps"), json!(["steps"])),
        ("include", json!("steps, WEBVITALS,steps"), json!(["steps", "webVitals"])),
        ("include", json!("[\"steps\"]"), json!(["steps"])),
        ("include", json!([]), json!([])),
        ("tags", json!("a,b"), json!(["a", "b"])),
        ("tags", json!(["a,b"]), json!(["a,b"])),
        (
            "steps",
            json!([{"ACTION": 1, "action": "GOTO", "test_id": "a", "at": "3"}]),
            json!([
                {"ACTION": 1, "action": "goto", "testId": "a", "at": 3},
            ]),
        ),
        ("steps", json!("[{\"action\": \"hover\", \"at\": 1.5}]"), json!([{"action": "hover", "at": 1.5}])),
        ("query", json!(""), Value::Null),
        ("q", json!("x"), json!("x")),
        ("branch", json!("feature/-x"), json!("feature/-x")),
        ("pageSize", json!(1_000_000_000), json!(50)),
        ("pageSize", json!(1e300), json!(50)),
        ("pageSize", json!(u64::MAX), json!(50)),
        ("pageSize", json!(0), json!(1)),
        ("pageSize", json!("-7"), json!(1)),
        ("limit", json!(3), json!(3)),
        ("page_size", json!(3), json!(3)),
        ("cursor", json!(""), Value::Null),
        ("force", json!("TRUE"), json!(true)),
        ("force", json!(false), json!(false)),
        ("force", Value::Null, json!(false)),
        ("sha", json!(" ABCDEF1 "), json!("abcdef1")),
        ("sha", json!(""), Value::Null),
        ("note", json!(""), json!("")),
        ("note", Value::Null, Value::Null),
        ("triageNote", json!("x"), json!("x")),
        ("feedback_note", json!("x"), json!("x")),
        ("feedback", Value::Null, json!("none")),
        ("feedback", json!("UP"), json!("up")),
    ];
    for (name, value, expected) in table {
        assert_eq!(read_one(name, value.clone()), Ok(expected), "{name} = {value}");
    }
}

#[test]
fn what_is_wrong_is_told_with_what_was_expected() {
    let table = [
        ("runId", json!(0), "`runId` must be a positive integer, got 0. Get it from list_runs."),
        ("runId", json!(-1), "`runId` must be a positive integer, got -1. Get it from list_runs."),
        ("runId", json!(1.5), "`runId` must be a positive integer, got 1.5. Get it from list_runs."),
        (
            "runId",
            json!(u64::MAX),
            "`runId` must be a positive integer, got 18446744073709551615. Get it from list_runs.",
        ),
        (
            "runId",
            json!("9223372036854775808"),
            "`runId` must be a positive integer, got \"9223372036854775808\". Get it from list_runs.",
        ),
        ("runId", json!(true), "`runId` must be a positive integer, got true. Get it from list_runs."),
        ("runId", json!([1]), "`runId` must be a positive integer, got [1]. Get it from list_runs."),
        ("pageSize", json!("x"), "`pageSize` must be an integer from 1 to 50, got \"x\"."),
        ("pageSize", json!(1.5), "`pageSize` must be an integer from 1 to 50, got 1.5."),
        ("statusFilter", json!("red"), "`statusFilter` must be one of failed, timedout, all, got \"red\"."),
        (
            "include",
            json!(["steps", "x"]),
            "`include` must be a list of steps, webVitals, got [\"steps\",\"x\"].",
        ),
        (
            "include",
            json!("[\"steps\""),
            "`include` must be a list of steps, webVitals, got \"[\\\"steps\\\"\".",
        ),
        ("tags", json!([1]), "`tags` must be a list of strings, got [1]."),
        ("query", json!(404), "`query` must be a string of at most 500 characters, got 404."),
        (
            "branch",
            json!("--upload-pack=x"),
            "`branch` must be a branch name of at most 255 characters that does not begin with -, got \"--upload-pack=x\".",
        ),
        ("cursor", json!(7), "Invalid cursor. Omit `cursor` to start from the first page."),
        ("force", json!(1), "`force` must be true or false, got 1."),
        ("sha", json!("abc"), "`sha` must be 7 to 64 hexadecimal digits of a commit, got \"abc\"."),
    ];
    for (name, value, expected) in table {
        assert_eq!(read_one(name, value.clone()), Err(expected.to_owned()), "{name} = {value}");
    }
    let long = read_one("query", json!("x".repeat(501))).unwrap_err();
    assert!(long.chars().count() < 160 && long.ends_with("x…."), "{long}");
    assert_eq!(
        Arguments::read(Some(json!("runId=1")), &PARAMETERS).unwrap_err().to_string(),
        "`arguments` must be a JSON object, got \"runId=1\"."
    );
}

#[test]
fn a_missing_argument_is_named_with_its_source_and_with_what_came_instead() {
    assert_eq!(read(json!({})), Err("`runId` is required (integer). Get it from list_runs.".to_owned()));
    assert_eq!(read(json!({"runId": null})), read(json!({})));
    assert_eq!(
        read(json!({"run_ids": [1], "q": "x"})),
        Err("`runId` is required (integer). Get it from list_runs. (got `run_ids`; expected `runId`)"
            .to_owned())
    );
    assert_eq!(Arguments::read(None, &PARAMETERS), Arguments::read(Some(Value::Null), &PARAMETERS));
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    assert_eq!(
        read(json!({"pageSize": "x"})),
        Err("`pageSize` must be an integer from 1 to 50, got \"x\". `runId` is required (integer). Get it from list_runs."
            .to_owned())
    );
}

#[test]
fn the_advertised_name_wins_and_null_does_not_count() {
    assert_eq!(read(json!({"runId": 1, "id": 2, "run_id": 3})).unwrap()["runId"], 1);
    assert_eq!(read(json!({"runId": null, "id": 2, "run_id": 3})).unwrap()["runId"], 2);
    assert_eq!(read(json!({"run_id": 3})).unwrap()["runId"], 3);
}

#[test]
fn one_of_two_can_be_enough() {
    let either = [
        Parameter::id("projectId", "list_projects").required_without("runId"),
        Parameter::id("runId", "list_runs").optional(),
    ];
    assert!(Arguments::read(Some(json!({"runId": 1})), &either).is_ok());
    assert!(Arguments::read(Some(json!({"projectId": 1})), &either).is_ok());
    let error = Arguments::read(Some(json!({})), &either).unwrap_err().to_string();
    assert_eq!(error, "`projectId` is required (integer). Get it from list_projects.");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(?s).{0,30}".prop_map(Value::from),
        "[0-9.,\\[\\]\"a-z-]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["steps", "failed", "12", "[\"steps\"]", "null"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

proptest! {
    #[test]
    fn whatever_is_given_is_refused_or_read_to_the_advertised_types(
        given in prop::collection::btree_map(
            prop::sample::select(vec!["runId", "id", "run_id", "statusFilter", "status_filter", "include", "tags", "query",
                "q", "branch", "pageSize", "limit", "cursor", "other"]),
            any_json(), 0..8),
    ) {
        let Ok(read) = Arguments::read(Some(json!(given)), &PARAMETERS) else { return Ok(()) };
        let read = read.values();
        prop_assert!(read["runId"].as_i64().is_some_and(|id| id >= 1));
        prop_assert!(read["pageSize"].as_i64().is_some_and(|rows| (1..=50).contains(&rows)));
        prop_assert!(read["statusFilter"].as_str().is_some_and(|word| WORDS.contains(&word)));
        prop_assert!(read["include"].as_array().is_some_and(|list| list.iter().all(Value::is_string)));
        prop_assert!(read["tags"].as_array().is_some_and(|list| list.iter().all(Value::is_string)));
        for text in ["query", "branch", "cursor"] {
            prop_assert!(read.get(text).is_none_or(|value| value.as_str().is_some_and(|text| !text.trim().is_empty())));
        }
        // What was read once is read the same again.
        let again = Arguments::read(Some(Value::Object(read.clone())), &PARAMETERS).unwrap();
        prop_assert_eq!(again.values(), read);
    }

    #[test]
    fn numbers_mean_the_same_however_they_are_written(number in 1_i64..1_000_000) {
        let one = |value: Value| read_one("runId", value);
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let float = json!(number as f64);
        for value in [json!(number), json!(number.to_string()), float, json!(format!("{number}.0"))] {
            prop_assert_eq!(one(value), Ok(json!(number)));
        }
    }
}
