//! Run fields: what is required, bounded, ignored and refused.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ingest::test_values::json_value;

fn parse(body: Value, need: Need) -> Result<(RunFields, Warnings), FieldError> {
    let Value::Object(mut body) = body else { panic!("an object") };
    RunFields::parse(&mut body, need)
}

fn submit(extra: Value) -> Result<(RunFields, Warnings), FieldError> {
    let mut body =
        json!({"projectName": "shop", "status": "passed", "startTime": "2026-01-01T10:00:00.000Z"});
    if let (Value::Object(body), Value::Object(extra)) = (&mut body, extra) {
        body.extend(extra);
    }
    parse(body, Need::Submit)
}

fn accepted(extra: Value) -> RunFields {
    let (fields, warnings) = submit(extra).expect("is accepted");
    assert!(warnings.is_empty(), "{warnings:?}");
    fields
}

#[test]
fn the_minimal_submission_is_complete() {
    let fields = accepted(
        json!({"duration": "5000", "totalTests": 2, "passedTests": 1, "failedTests": 1, "skippedTests": 0}),
    );
    let totals = fields.claimed_totals.map(|claimed| claimed.totals());
    assert_eq!(totals.map(|totals| (totals.total_tests, totals.failed_tests)), Some((2, 1)));
    let expected = RunFields {
        project_name: Some("shop".into()),
        status: Some(RunStatus::Passed),
        start_time: Some(Timestamp(1_767_261_600_000)),
        duration_ms: Some(5_000),
        claimed_totals: fields.claimed_totals,
        is_full_run: true,
        ..RunFields::default()
    };
    assert_eq!(fields, expected);
}

#[test]
fn all_missing_fields_are_named_at_once() {
    let error = parse(json!({"projectName": " ", "status": null}), Need::Submit).expect_err("is refused");
    assert_eq!(error, FieldError::Missing { fields: vec!["projectName", "status", "startTime"] });
    assert_eq!(error.code(), "missing_field");
    assert_eq!(error.to_string(), "projectName, status and startTime are required; send them in the body.");
    assert_eq!(
        parse(json!({}), Need::Start).expect_err("is refused"),
        FieldError::Missing { fields: vec!["projectName"] }
    );
    for need in [Need::Begin, Need::Finish, Need::UploadNewRun] {
        assert!(parse(json!({}), need).is_ok(), "{need:?}");
    }
}

#[test]
fn project_names_are_trimmed_and_refused_when_impossible() {
    assert_eq!(accepted(json!({"projectName": "  Shop ü "})).project_name.as_deref(), Some("Shop ü"));
    assert!(submit(json!({"projectName": "x".repeat(255)})).is_ok());
    for name in ["x".repeat(256), "a\u{7}b".into(), "a\nb".into(), "a\u{fffd}b".into()] {
        assert_eq!(
            submit(json!({"projectName": name})).expect_err("is refused").code(),
            "invalid_project_name"
        );
    }
    assert_eq!(submit(json!({"projectName": 7})).expect_err("is refused").code(), "invalid_field");
}

#[test]
fn times_are_iso_or_epoch_within_bounds() {
    let ten = Some(Timestamp(1_767_261_600_000));
    for time in [json!("2026-01-01T12:00:00+02:00"), json!(1_767_261_600_000_i64), json!("1767261600000")] {
        assert_eq!(accepted(json!({"startTime": time})).start_time, ten);
    }
    for time in [json!("yesterday"), json!("2101-01-01T00:00:00Z"), json!(-1), json!(true), json!([])] {
        let error = submit(json!({"startTime": time})).expect_err("is refused");
        assert_eq!(error.code(), "invalid_field", "{error}");
    }
    let error = submit(json!({"startTime": "yesterday"})).expect_err("is refused");
    assert_eq!(
        error.to_string(),
        "startTime must be an ISO 8601 time between 1970 and 2100, got \"yesterday\"."
    );
}

#[test]
fn an_unknown_status_is_a_warning() {
    let (fields, warnings) = submit(json!({"status": "purple"})).expect("is accepted");
    assert_eq!(fields.status, None);
    assert_eq!(
        warnings.as_slice().iter().map(|warning| warning.code).collect::<Vec<_>>(),
        ["unknown_status"]
    );
    assert_eq!(accepted(json!({"status": "timedOut"})).status, Some(RunStatus::TimedOut));
}

#[test]
fn shards_are_checked() {
    let shard = |extra| submit(extra).map(|(fields, _)| fields.shard);
    let some = |index, total| Ok(Some(Shard { index, total }));
    assert_eq!(shard(json!({"shardIndex": 1, "shardTotal": 2})), some(Some(1), 2));
    assert_eq!(shard(json!({"shardIndex": "2", "shardTotal": "2"})), some(Some(2), 2));
    assert_eq!(shard(json!({"shardTotal": 1000})), some(None, 1_000));
    for unsharded in [
        json!({}),
        json!({"shardIndex": 3}),
        json!({"shardIndex": 1, "shardTotal": 1}),
        json!({"shardTotal": 0}),
        json!({"shardTotal": "x"}),
    ] {
        assert_eq!(shard(unsharded.clone()), Ok(None), "{unsharded}");
    }
    for (index, total) in [
        (json!(3), json!(2)),
        (json!(0), json!(2)),
        (json!(-1), json!(2)),
        (json!(1), json!(1001)),
        (json!(1.5), json!(2)),
    ] {
        let error = shard(json!({"shardIndex": index, "shardTotal": total})).expect_err("is refused");
        assert_eq!(error.code(), "invalid_shard");
        assert!(error.to_string().contains(&format!("shard {index} of {total}")), "{error}");
    }
}

#[test]
fn texts_are_trimmed_and_bounded_and_empty_ones_are_nothing() {
    let fields = accepted(
        json!({"environment": format!(" {}", "e".repeat(101)), "label": "  ", "projectDescription": "d".repeat(2_001), "reporterVersion": "v".repeat(51)}),
    );
    assert_eq!(fields.environment, Some("e".repeat(100)));
    assert_eq!(fields.label, None);
    assert_eq!(fields.project_description.map(|text| text.len()), Some(2_000));
    assert_eq!(fields.reporter_version.map(|text| text.len()), Some(50));
}

#[test]
fn wrong_types_are_left_out_with_a_warning_and_unknown_keys_without() {
    let (fields, warnings) = submit(json!({
        "environment": 7, "duration": "soon", "metadata": "text", "filterDetails": [], "setupSteps": {}, "instanceId": "a b",
        "clientRunId": "short", "label": null, "anything": {"else": 1}, "isFullRun": "false",
        "hasPendingUploads": "yes", "durations": [1],
    }))
    .expect("is accepted");
    let expected = RunFields {
        project_name: fields.project_name.clone(),
        status: fields.status,
        start_time: fields.start_time,
        is_full_run: true,
        ..RunFields::default()
    };
    assert_eq!(fields, expected);
    assert_eq!(warnings.as_slice().len(), 9, "{warnings:?}");
    assert!(warnings.as_slice().iter().all(|warning| warning.code == "field_dropped"));
}

#[test]
fn filters_set_up_steps_and_keys_are_read() {
    let fields = accepted(json!({
        "isFullRun": false, "instanceId": "0123456789abcdef", "clientRunId": "0d8f7a52-1c1f-4d6e-9d8a-0a4c8a5b7c11",
        "filterDetails": {"grep": "x".repeat(1_001), "files": vec!["a"; 201], "lastFailed": true, "onlyChanged": "main", "only": true, "more": 1},
        "setupSteps": (0..201).map(|n| json!({"title": format!("s{n}"), "category": "hook", "workerIndex": 1})).collect::<Vec<_>>(),
        "hasPendingUploads": true, "branch": "main", "metadata": {"scm": {"commit": "abc"}},
    }));
    let filter = fields.filter_details.expect("is accepted");
    assert_eq!((filter.grep.map(|text| text.len()), filter.files.len()), (Some(1_000), 200));
    assert_eq!(
        (filter.last_failed, filter.only_changed.as_deref(), filter.only),
        (Some(true), Some("main"), Some(true))
    );
    assert_eq!(fields.setup_steps.len(), 200);
    assert_eq!(fields.setup_steps[0].worker_index, Some(1));
    assert!(!fields.is_full_run && fields.has_pending_uploads);
    assert_eq!(fields.instance_id.as_deref(), Some("0123456789abcdef"));
    assert!(fields.client_run_id.is_some());
    assert_eq!(
        (fields.origin.branch.as_deref(), fields.origin.commit_sha.as_deref()),
        (Some("main"), Some("abc"))
    );
}

#[test]
fn planned_tests_of_a_streamed_run_may_come_as_its_total() {
    let start = json!({"projectName": "shop", "totalTests": 40});
    assert_eq!(parse(start.clone(), Need::Start).expect("is accepted").0.planned_tests, Some(40));
    assert_eq!(parse(start, Need::Setup).expect("is accepted").0.planned_tests, None);
    assert_eq!(accepted(json!({"plannedTests": 1e9})).planned_tests, Some(1_000_000));
}

proptest! {
    #[test]
    fn any_object_is_accepted_or_refused(body in prop::collection::btree_map(
        prop::sample::select(vec!["projectName", "status", "startTime", "duration", "totalTests", "environment", "label",
            "metadata", "instanceId", "shardIndex", "shardTotal", "isFullRun", "filterDetails", "setupSteps", "clientRunId",
            "plannedTests", "branch", "commit", "buildUrl", "pullRequest"]).prop_map(str::to_owned),
        json_value(), 0..12)) {
        let mut body: Map<String, Value> = body.into_iter().collect();
        let _ = RunFields::parse(&mut body, Need::Finish);
    }
}
