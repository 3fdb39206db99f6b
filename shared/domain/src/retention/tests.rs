use super::*;

fn body(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn edit(value: Value, level: Level) -> Edit {
    Edit::read(&body(value), level).unwrap()
}

#[test]
fn every_key_is_part_of_the_policy_and_every_part_of_the_policy_has_a_key() {
    fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    leaves(value, &path, found);
                }
            }
            _ => found.push(path.to_owned()),
        }
    }
    let mut found = Vec::new();
    leaves(&json!(Policy::default()), "", &mut found);
    let mut known: Vec<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn by_default_nothing_is_deleted() {
    let default = Policy::default();
    let days = KEYS.iter().filter(|(_, takes)| *takes == Takes::Days);
    for (key, _) in days {
        assert_eq!(default.at(key), Value::Null, "{key}");
    }
    assert_eq!(
        default.keep,
        KeepRules { last_green: true, first_failure: true, cluster_samples: 3 },
        "exceptions hold for whoever sets days"
    );
}

#[test]
fn what_is_set_replaces_what_would_hold_and_null_takes_it_back() {
    let mut set = Overrides::default();
    let wanted =
        json!({ "runs": { "days": 30, "keepLast": 5 }, "evidence": { "passedDays": null }, "other": 1 });
    let changed = set.apply(&edit(wanted, Level::Instance));
    assert_eq!(changed, ["evidence.passedDays", "runs.days", "runs.keepLast"]);
    let policy = set.over(&Policy::default());
    assert_eq!((policy.runs.days, policy.runs.keep_last, policy.evidence.passed_days), (Some(30), 5, None));
    assert_eq!(policy.evidence.failed_days, None);
    let stored = serde_json::to_string(&set).unwrap();
    assert_eq!(Overrides::from_json(&stored).unwrap(), set);

    assert_eq!(set.apply(&edit(json!({ "runs": { "days": 30 } }), Level::Instance)), [""; 0]);
    let back = set.apply(&edit(json!({ "runs": null, "evidence": null }), Level::Instance));
    assert_eq!(back.len(), 3);
    assert_eq!(set.over(&Policy::default()), Policy::default());

    let mut of_project = Overrides::default();
    of_project.apply(&edit(json!({ "runs": { "days": 9 } }), Level::Project));
    of_project.apply(&edit(json!({ "runs": { "days": null } }), Level::Project));
    assert_eq!(of_project, Overrides::default());
}

#[test]
fn a_wrong_value_names_its_key() {
    let wrong = |value: Value| Edit::read(&body(value), Level::Project).unwrap_err().to_string();
    assert_eq!(
        wrong(json!({ "files": { "trace": { "passedDays": 0 } } })),
        "files.trace.passedDays must be a whole number of days from 1 to 36500, or null, got 0."
    );
    assert_eq!(wrong(json!({ "files": { "trace": 7 } })), "files.trace must be an object, got 7.");
    assert_eq!(
        wrong(json!({ "keep": { "lastGreen": "yes" } })),
        "keep.lastGreen must be true or false, got \"yes\"."
    );
}

#[test]
fn time_is_over_at_the_end_of_a_day() {
    let noon = Timestamp(Day(20_000).start().millis() + 12 * 60 * 60 * 1000);
    assert_eq!(end_of(noon, Some(7)), Some(Day(20_008).start()));
    assert_eq!(end_of(noon, None), None);
    let rules = RunRules { days: Some(90), keep_last: 0, untracked_branch_days: Some(7) };
    assert_eq!(rules.end(noon, true), Some(Day(20_091).start()));
    assert_eq!(rules.end(noon, false), Some(Day(20_008).start()));
}

#[test]
fn branches_are_tracked_by_name_or_pattern() {
    let patterns = ["release/*".to_owned(), "*-stable".to_owned()];
    let tracked = |branch| is_tracked(branch, Some("main"), &patterns);
    for branch in ["main", "", "release/1.0", "release/a/b", "2-stable"] {
        assert!(tracked(branch), "{branch}");
    }
    for branch in ["feature", "mainly", "xrelease/1", "2-stable-x"] {
        assert!(!tracked(branch), "{branch}");
    }
    assert!(is_tracked("anything", None, &[]));
}
