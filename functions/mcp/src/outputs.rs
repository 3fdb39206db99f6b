//! The shapes of results, made from the types that are written: what the
//! document of the tools says of each, and the shallow form of it for clients
//! that ask for structured content. Fields are left out when they say nothing,
//! so only `items` is required; shapes are open, `nextCursor` and `truncated`
//! belong to all of them and are not described.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// Makes the shape of a tool's result.
pub(crate) type Shape = fn() -> Value;

/// The shape of a page of such rows.
pub(crate) fn page_of<Row: ToSchema>() -> Value {
    let rows = json!({"type": "array", "items": whole::<Row>()});
    json!({"type": "object", "properties": {"items": rows}, "required": ["items"]})
}

/// The shape of a result of this type.
pub(crate) fn schema<T: ToSchema>() -> Value {
    let mut shape = whole::<T>();
    if let Some(fields) = shape["properties"].as_object_mut() {
        fields.remove("nextCursor");
        if fields.contains_key("items") {
            shape["required"] = json!(["items"]);
        }
    }
    shape
}

/// The schema of a type, without references.
fn whole<T: ToSchema>() -> Value {
    let mut collected = Vec::new();
    T::schemas(&mut collected);
    let named: HashMap<String, Value> =
        collected.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    plain(&json!(T::schema()), &named)
}

/// The shape of a result without fields.
#[cfg(test)]
pub(crate) fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

/// The same shape without what is inside its fields.
pub(crate) fn shallow(shape: &Value) -> Value {
    let fields = shape["properties"].as_object().into_iter().flatten();
    let properties: Map<String, Value> =
        fields.map(|(name, field)| (name.clone(), json!({"type": field["type"]}))).collect();
    let mut shallow = json!({"type": "object", "properties": properties});
    if let Some(required) = shape.get("required") {
        shallow["required"] = required.clone();
    }
    shallow
}

/// A schema of what is really written: one type, references resolved,
/// flattened structs joined, and no null, for what is null is left out.
fn plain(schema: &Value, named: &HashMap<String, Value>) -> Value {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return plain(named.get(name).unwrap_or(&Value::Null), named);
    }
    if let Some(joined) = schema["allOf"].as_array() {
        let mut fields = Map::new();
        for part in joined.iter().map(|part| plain(part, named)) {
            if let Some(more) = part["properties"].as_object() {
                fields.extend(more.clone());
            }
        }
        return json!({"type": "object", "properties": fields});
    }
    let alternatives = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(said) = alternatives.and_then(|each| each.iter().find(|one| one["type"] != "null")) {
        return plain(said, named);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").cloned(),
        Value::String(kind) => Some(json!(kind)),
        _ => None,
    };
    let kind = kind.unwrap_or_else(|| json!("object"));
    let mut plainly = json!({"type": kind});
    if let Some(fields) = schema["properties"].as_object() {
        let fields = fields.iter().map(|(name, field)| (name.clone(), plain(field, named)));
        plainly["properties"] = Value::Object(fields.collect());
    }
    if kind == "array" {
        plainly["items"] = plain(&schema["items"], named);
    }
    if let Some(words) = schema["enum"].as_array() {
        plainly["enum"] = words.iter().filter(|word| !word.is_null()).cloned().collect();
    }
    plainly
}

#[cfg(test)]
#[expect(dead_code, reason = "only the shapes of the types matter")]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Serialize, ToSchema)]
    #[serde(rename_all = "camelCase")]
    struct Inner {
        first_id: i64,
        rate: Option<f64>,
    }

    #[derive(Serialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Up,
        Down,
    }

    #[derive(Serialize, ToSchema)]
    struct Row {
        #[serde(flatten)]
        inner: Inner,
        word: Option<Word>,
        lists: Vec<Vec<Inner>>,
    }

    #[derive(Serialize, ToSchema)]
    #[serde(rename_all = "camelCase")]
    struct Listed {
        items: Vec<Row>,
        next_cursor: Option<String>,
        is_new: bool,
    }

    #[test]
    fn a_shape_says_what_is_written() {
        let inner = json!({"type": "object", "properties": {"firstId": {"type": "integer"}, "rate": {"type": "number"}}});
        let row = json!({"type": "object", "properties": {
            "firstId": {"type": "integer"}, "rate": {"type": "number"},
            "word": {"type": "string", "enum": ["up", "down"]},
            "lists": {"type": "array", "items": {"type": "array", "items": inner}},
        }});
        let whole = schema::<Listed>();
        assert_eq!(
            whole,
            json!({
                "type": "object", "required": ["items"],
                "properties": {"items": {"type": "array", "items": row}, "isNew": {"type": "boolean"}},
            })
        );
        assert_eq!(page_of::<Row>()["properties"]["items"], whole["properties"]["items"]);
        assert_eq!(
            shallow(&whole),
            json!({
                "type": "object", "required": ["items"],
                "properties": {"items": {"type": "array"}, "isNew": {"type": "boolean"}},
            })
        );
    }
}
