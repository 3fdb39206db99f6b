//! What answers are made of: nulls are written and keys are never left out, so
//! a key of an answer is required even when its value may be null. Of a body
//! the opposite holds: what may be null may be left out. What an answer does
//! leave out is declared as never null.

use std::collections::BTreeSet;

use utoipa::openapi::schema::{ArrayItems, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr, Schema};

const PREFIX: &str = "#/components/schemas/";

/// Requires every key of the schemas that only answers use.
pub(super) fn require_keys(document: &mut OpenApi) {
    let sent = sent(document);
    let Some(components) = &mut document.components else { return };
    for (name, schema) in &mut components.schemas {
        if !sent.contains(name)
            && let RefOr::T(schema) = schema
        {
            require(schema);
        }
    }
}

/// The names of all schemas that bodies of requests are made of.
fn sent(document: &OpenApi) -> BTreeSet<String> {
    let operations =
        document.paths.paths.values().flat_map(|item| {
            [&item.get, &item.post, &item.put, &item.patch, &item.delete].into_iter().flatten()
        });
    let mut unread: Vec<String> = Vec::new();
    for body in operations.filter_map(|operation| operation.request_body.as_ref()) {
        let RefOr::T(body) = body else { continue };
        for content in body.content.values() {
            if let RefOr::T(content) = content
                && let Some(schema) = &content.schema
            {
                names(schema, &mut unread);
            }
        }
    }
    let mut sent = BTreeSet::new();
    while let Some(name) = unread.pop() {
        let schemas = document.components.as_ref().map(|components| &components.schemas);
        if let Some(schema) = schemas.and_then(|schemas| schemas.get(&name))
            && sent.insert(name)
        {
            names(schema, &mut unread);
        }
    }
    sent
}

/// Adds the schemas that a schema is made of.
fn names(schema: &RefOr<Schema>, found: &mut Vec<String>) {
    match schema {
        RefOr::Ref(reference) => {
            found.extend(reference.ref_location.strip_prefix(PREFIX).map(str::to_owned));
        }
        RefOr::T(Schema::Object(object)) => {
            object.properties.values().for_each(|schema| names(schema, found));
        }
        RefOr::T(Schema::Array(array)) => {
            if let ArrayItems::RefOrSchema(schema) = &array.items {
                names(schema, found);
            }
        }
        RefOr::T(Schema::OneOf(choice)) => choice.items.iter().for_each(|schema| names(schema, found)),
        RefOr::T(Schema::AllOf(parts)) => parts.items.iter().for_each(|schema| names(schema, found)),
        RefOr::T(Schema::AnyOf(choice)) => choice.items.iter().for_each(|schema| names(schema, found)),
        RefOr::T(_) => {}
    }
}

fn require(schema: &mut Schema) {
    let inner = |schemas: &mut Vec<RefOr<Schema>>| {
        for schema in schemas {
            if let RefOr::T(schema) = schema {
                require(schema);
            }
        }
    };
    match schema {
        Schema::Object(object) => {
            for (name, property) in &mut object.properties {
                if is_nullable(property) && !object.required.contains(name) {
                    object.required.push(name.clone());
                }
                if let RefOr::T(property) = property {
                    require(property);
                }
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items
                && let RefOr::T(items) = items.as_mut()
            {
                require(items);
            }
        }
        Schema::OneOf(choice) => inner(&mut choice.items),
        Schema::AllOf(parts) => inner(&mut parts.items),
        Schema::AnyOf(choice) => inner(&mut choice.items),
        _ => {}
    }
}

fn is_nullable(property: &RefOr<Schema>) -> bool {
    let RefOr::T(schema) = property else { return false };
    match schema {
        Schema::Object(object) => has_null(&object.schema_type),
        Schema::Array(array) => has_null(&array.schema_type),
        Schema::OneOf(choice) => has_null(&choice.schema_type) || choice.items.iter().any(is_nullable),
        Schema::AnyOf(choice) => has_null(&choice.schema_type) || choice.items.iter().any(is_nullable),
        _ => false,
    }
}

fn has_null(types: &SchemaType) -> bool {
    match types {
        SchemaType::Type(of) => *of == Type::Null,
        SchemaType::Array(types) => types.contains(&Type::Null),
        SchemaType::AnyValue => false,
    }
}
