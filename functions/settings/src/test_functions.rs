//! Functions of suites that are worth reusing.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::ids::{ProjectId, TestFunctionId};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_playwright::test_functions::{Faults, FunctionKind, TestFunction};
use callboard_query::resolve;
use callboard_query::test_functions::{self, EditError, Origin, TestFunctionItem};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Done;

callboard_query::vocabularies! {
    /// What kind of function it is.
    KindWord => FunctionKind::WORDS;
}

/// The fields of a function.
const FIELDS: [&str; 10] = [
    "name",
    "kind",
    "module",
    "receiver",
    "importName",
    "params",
    "returnsPage",
    "urlPattern",
    "steps",
    "paramSources",
];

/// Which functions a list shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// `page-object-method`, `helper` or `fixture`.
    #[param(value_type = Option<KindWord>, inline)]
    kind: Option<FunctionKind>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { kind: query.word("kind", FunctionKind::WORDS, FunctionKind::parse)? })
    }
}

/// A function; when it is changed, an absent field stays and null clears it.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body; its fields are read by the domain")]
pub(crate) struct TestFunctionBody {
    /// Name, an identifier of at most 120 characters.
    #[schema(example = "payWithCard")]
    name: Option<String>,
    /// `page-object-method`, `helper` or `fixture`.
    #[schema(example = "page-object-method")]
    kind: Option<String>,
    /// What it is imported from, a relative path of at most 240 characters.
    #[schema(example = "./pages/checkout")]
    module: Option<String>,
    /// Class or object it is called on, an identifier.
    #[schema(example = "CheckoutPage")]
    receiver: Option<String>,
    /// What is imported, when that is not the name; an identifier.
    import_name: Option<String>,
    /// At most 10 of `{name, type, fields}`; `type` is string, number, boolean
    /// or object.
    #[schema(value_type = Option<Vec<Object>>, example = json!([{"name": "card", "type": "string"}]))]
    params: Option<Vec<Value>>,
    /// Whether it gives the page back.
    returns_page: Option<bool>,
    /// Pages it works on, at most 240 characters.
    url_pattern: Option<String>,
    /// 1 to 30 of `{action, role, name, testId, locator, value}`; `action` is
    /// goto, click, fill, check, uncheck, selectOption, press or assertVisible.
    /// Texts may hold `{{param}}`.
    #[schema(
        value_type = Option<Vec<Object>>,
        example = json!([{"action": "fill", "role": "textbox", "name": "Card", "value": "{{card}}"}])
    )]
    steps: Option<Vec<Value>>,
    /// At most 10 of `{param, path, stepIndex, from}`: parts of steps that
    /// parameters stand for; `from` is text, value or testId.
    #[schema(value_type = Option<Vec<Object>>)]
    param_sources: Option<Vec<Value>>,
}

/// A function was written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestFunctionWritten {
    /// Always true.
    success: bool,
    /// The function now.
    test_function: TestFunctionItem,
}

impl TestFunctionWritten {
    const fn new(test_function: TestFunctionItem) -> Json<Self> {
        Json(Self { success: true, test_function })
    }
}

fn refused(faults: &Faults) -> ApiError {
    ApiError::invalid_field(faults.field(), format!("{faults}."))
}

/// Functions of a project by module and name.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/test-functions", tag = "settings",
    operation_id = "list_test_functions",
    params(("id" = i64, Path, description = "Project"), Params, PageRequest),
    responses((status = 200, body = Page<TestFunctionItem>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<TestFunctionItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListTestFunctions, &(id, &asked))?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(test_functions::list(&ctx, project, asked.kind, after, page.rows()).await?)?))
}

/// Stores a function of a suite. Its code is written by the service; nothing
/// that is sent is executed.
///
/// # Errors
/// 400 `missing_field`, `invalid_field` with everything that is wrong; 404
/// `project_not_found`; 409 `already_exists` for a name the module has.
#[utoipa::path(post, path = "/api/projects/{id}/test-functions", tag = "settings",
    operation_id = "create_test_function",
    params(("id" = i64, Path, description = "Project")), request_body = TestFunctionBody,
    responses(
        (status = 201, body = TestFunctionWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`project_not_found`"),
        (status = 409, description = "`already_exists`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, ApiError> {
    fields.require(&["name", "kind", "module", "steps"])?;
    let function = TestFunction::read(fields.as_map()).map_err(|faults| refused(&faults))?;
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let stored = test_functions::create(&ctx, acting, project, &function, Origin::Manual).await?;
    Ok((StatusCode::CREATED, TestFunctionWritten::new(stored)).into_response())
}

/// Changes a function of a suite.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `function_not_found`; 409
/// `already_exists`.
#[utoipa::path(method(patch, put), path = "/api/test-functions/{id}", tag = "settings",
    operation_id = "edit_test_function",
    params(("id" = i64, Path, description = "Function")), request_body = TestFunctionBody,
    responses(
        (status = 200, body = TestFunctionWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`function_not_found`"),
        (status = 409, description = "`already_exists`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<TestFunctionId>,
    fields: Fields,
) -> Result<Json<TestFunctionWritten>, ApiError> {
    fields.require_any(&FIELDS)?;
    let ctx = state.context(&site);
    let project = test_functions::resolve_function(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let edited = test_functions::edit(&ctx, acting, project, id, fields.as_map()).await;
    edited.map(TestFunctionWritten::new).map_err(|error| match error {
        EditError::Faults(faults) => refused(&faults),
        EditError::Query(error) => error.into(),
    })
}

/// Removes a function of a suite.
///
/// # Errors
/// 404 `function_not_found`.
#[utoipa::path(delete, path = "/api/test-functions/{id}", tag = "settings", operation_id = "delete_test_function",
    params(("id" = i64, Path, description = "Function")),
    responses((status = 200, body = Done), (status = 404, description = "`function_not_found`")))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<TestFunctionId>,
) -> Result<Json<Done>, ApiError> {
    let ctx = state.context(&site);
    let project = test_functions::resolve_function(&ctx, caller.scope(), id).await?;
    test_functions::delete(&ctx, visit.acting(&caller, state.now()), project, id).await?;
    Ok(Done::answer())
}
