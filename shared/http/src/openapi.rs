//! The OpenAPI document: every function crate describes its own operations;
//! here they become one document, completed from the route table.

mod answers;
mod refusals;

use callboard_auth::ROUTES;
use callboard_auth::routes::{Access, Credentials, Method, Route};
use serde_json::json;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{HttpMethod, Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder, PathItem, RefOr, Required, Response, Schema};
use utoipa::{Number, PartialSchema};

/// Joins the documents of functions and completes every operation from its
/// row: who may call it and how (`x-required-roles`, `security`), and every error
/// it answers with.
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
    components.schemas.extend([refusals::schema()]);
    components.responses.extend(refusals::components());
    components.security_schemes.extend(SCHEMES.map(|(name, scheme)| (name.to_owned(), RefOr::T(scheme()))));
    for route in ROUTES {
        describe_below_run(&mut document, route);
        let path = route.pattern.replace("{*", "{");
        if let Some(operation) =
            document.paths.paths.get_mut(&path).and_then(|item| operation_of(item, route))
        {
            complete(operation, route);
        }
    }
    answers::require_keys(&mut document);
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
        Access::Public | Access::Grant | Access::Ticket | Access::RunToken | Access::System => Vec::new(),
        Access::Roles(roles) | Access::RolesOrRunToken(roles) | Access::BodyTokenOrRoles(roles) => {
            roles.as_slice().iter().map(|role| role.as_str()).collect()
        }
    };
    operation.operation_id = Some(route.id.name().to_owned());
    if !roles.is_empty() {
        let none: [&str; 0] = [];
        let ways =
            SCHEMES.iter().filter(|(name, _)| *name != SESSION || route.credentials == Credentials::Any);
        operation.security = Some(ways.map(|(name, _)| SecurityRequirement::new(*name, none)).collect());
    }
    operation
        .extensions
        .get_or_insert_default()
        .merge(ExtensionsBuilder::new().add("x-required-roles", json!(roles)).build());
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter {
            bound_id(parameter);
        }
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            leave_bytes_open(response);
        }
    }
    refusals::complete(operation, route);
}

/// What is said of an execution also holds for its longer address below a run.
fn describe_below_run(document: &mut OpenApi, route: &Route) {
    let Some(rest) = route.pattern.strip_prefix("/api/test-runs/{id}/cases/{caseId}") else { return };
    let short = format!("/api/test-run-cases/{{id}}{rest}");
    let Some(item) = document.paths.paths.get_mut(&short) else { return };
    let Some(mut operation) = operation_of(item, route).cloned() else { return };
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && parameter.parameter_in == ParameterIn::Path
        {
            "caseId".clone_into(&mut parameter.name);
        }
    }
    let run = ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("Run the execution belongs to"))
        .schema(Some(i64::schema()))
        .build();
    operation.parameters.get_or_insert_default().insert(0, RefOr::T(run));
    let method = if route.method == Method::Get { HttpMethod::Get } else { HttpMethod::Post };
    document.paths.add_path_operation(route.pattern, vec![method], operation);
}

const SESSION: &str = "session";

type MakeScheme = fn() -> SecurityScheme;

/// How callers show who they are, where they have to sign in.
const SCHEMES: [(&str, MakeScheme); 3] = [
    ("apiKey", || SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer))),
    ("apiKeyHeader", || SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")))),
    (SESSION, || SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("svc_session")))),
];

/// Ids in paths begin with 1 and survive a trip through JavaScript.
fn bound_id(parameter: &mut Parameter) {
    let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { return };
    if parameter.parameter_in == ParameterIn::Path && schema.schema_type == SchemaType::Type(Type::Integer) {
        schema.minimum.get_or_insert(Number::Int(1));
        schema.maximum.get_or_insert(Number::Int((1 << 53) - 1));
    }
}

/// Bytes are no list of numbers, and a stream is no text: nothing is said of
/// them but their type.
fn leave_bytes_open(response: &mut Response) {
    for (kind, content) in &mut response.content {
        if let RefOr::T(content) = content
            && matches!(kind.as_str(), "application/octet-stream" | "text/event-stream")
        {
            content.schema = None;
        }
    }
}
