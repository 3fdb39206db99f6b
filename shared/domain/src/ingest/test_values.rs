//! Arbitrary JSON for property tests.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// Any JSON value of moderate size, with the keys clients use among others.
pub(crate) fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "(|passed|failed|flaky|a/b\\.ts:1:2|https://u:p@h\\.test/a\\?q=1#f|@tag|callboard:owner|fail|123|inf|-1|2026-01-01T00:00:00Z)"
            .prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "title",
        "name",
        "status",
        "error",
        "message",
        "stack",
        "location",
        "duration",
        "category",
        "type",
        "text",
        "url",
        "description",
        "browserName",
        "projectName",
        "viewport",
        "entries",
        "intents",
        "kind",
        "used",
        "element",
        "attributes",
        "method",
        "args",
        "alternatives",
        "navigation",
        "vitals",
        "cls",
        "cookies",
        "localStorage",
        "key",
        "serverLogs",
        "Message",
        "serverTraces",
        "attrs",
        "retry",
        "mode",
        "annotations",
        "owner",
        "link",
        "scm",
        "ref",
        "file",
        "snippet",
        "line",
        "other",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}
