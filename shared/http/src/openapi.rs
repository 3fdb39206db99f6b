//! The OpenAPI document: every function crate describes its own operations;
//! here they become one document, completed from the route table.

use callboard_auth::ROUTES;
use callboard_auth::routes::{Access, Method, Route};
use serde_json::json;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, Ref, RefOr, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

use crate::error::ErrorBody;

/// Joins the documents of functions and completes every operation from its
/// row: who may call it (`x-required-roles`) and the errors common to all.
#[must_use]
pub fn document(parts: impl IntoIterator<Item = OpenApi>) -> OpenApi {
    let info = InfoBuilder::new()
        .title("Callboard")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Test results of Playwright, kept and understood."))
        .build();
    let mut document = OpenApiBuilder::new().info(info).build();
    for part in parts {
        document.merge(part);
    }
    let components = document.components.get_or_insert_default();
    components.schemas.insert(ErrorBody::name().into_owned(), ErrorBody::schema());
    for route in ROUTES {
        let path = route.pattern.replace("{*", "{");
        if let Some(operation) =
            document.paths.paths.get_mut(&path).and_then(|item| operation_of(item, route))
        {
            complete(operation, route);
        }
    }
    document
}

/// The operations of a document as `METHOD /path`, for comparison with the
/// route table.
#[must_use]
pub fn operations(document: &OpenApi) -> Vec<String> {
    let mut operations = Vec::new();
    for (path, item) in &document.paths.paths {
        for (method, operation) in [
            ("GET", &item.get),
            ("POST", &item.post),
            ("PUT", &item.put),
            ("PATCH", &item.patch),
            ("DELETE", &item.delete),
        ] {
            if operation.is_some() {
                operations.push(format!("{method} {path}"));
            }
        }
    }
    operations
}

fn operation_of<'d>(item: &'d mut PathItem, route: &Route) -> Option<&'d mut Operation> {
    match route.method {
        Method::Get => item.get.as_mut(),
        Method::Post => item.post.as_mut(),
        Method::Put => item.put.as_mut(),
        Method::Patch => item.patch.as_mut(),
        Method::Delete => item.delete.as_mut(),
    }
}

fn complete(operation: &mut Operation, route: &Route) {
    let roles: Vec<&str> = match route.access {
        Access::Public | Access::Grant | Access::RunToken | Access::System => Vec::new(),
        Access::Roles(roles) | Access::RolesOrRunToken(roles) => {
            roles.as_slice().iter().map(|role| role.as_str()).collect()
        }
    };
    operation.operation_id = Some(route.id.name().to_owned());
    operation
        .extensions
        .get_or_insert_default()
        .merge(ExtensionsBuilder::new().add("x-required-roles", json!(roles)).build());
    let error = || {
        let schema = RefOr::Ref(Ref::from_schema_name(ErrorBody::name()));
        let content = Content::new(Some(schema));
        RefOr::T(
            ResponseBuilder::new()
                .description("The service's error body.")
                .content("application/json", content)
                .build(),
        )
    };
    operation.responses.responses.entry("default".to_owned()).or_insert_with(error);
}
