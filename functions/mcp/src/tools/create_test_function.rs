//! `create_test_function`: keeps a method of a page object, a helper or a
//! fixture that the caller found in a suite. It is text to be checked and
//! stored; nothing of it is executed, and no model is asked.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_playwright::test_functions::{
    Action, FunctionKind, MAX_PARAMS, MAX_SOURCES, MAX_STEPS, ParamType, SourcePart, TestFunction,
};
use callboard_query::test_functions::{self, Origin, TestFunctionItem};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

const IDENTIFIER_CHARS: usize = 120;
const PATH_CHARS: usize = 240;
const TARGET_CHARS: usize = 500;

static PARAM: [Parameter; 3] = [
    Parameter::text_within("name", IDENTIFIER_CHARS).required(),
    Parameter::choice("type", ParamType::WORDS, None).required(),
    Parameter::texts("fields"),
];
static STEP: [Parameter; 5] = [
    Parameter::choice("action", Action::WORDS, None).required(),
    Parameter::text_within("role", TARGET_CHARS),
    Parameter::text_within("name", TARGET_CHARS),
    Parameter::text_within("testId", TARGET_CHARS),
    Parameter::text("value").keeping_blank(),
];
static SOURCE: [Parameter; 4] = [
    Parameter::text_within("param", IDENTIFIER_CHARS).required(),
    Parameter::text_within("path", PATH_CHARS),
    Parameter::place("stepIndex", MAX_STEPS as i64 - 1).required(),
    Parameter::choice("from", SourcePart::WORDS, None).required(),
];

pub(super) static TOOL: Tool = Tool {
    name: "create_test_function",
    title: "Store test function",
    description: "Validates and stores a page-object method, helper or fixture of the suite for reuse. Texts of steps may \
                  hold {{param}}; paramSources say which part of a step a parameter stands for. Nothing is executed. \
                  Needs the reporter role.",
    group: Group::Triage,
    roles: Roles::REPORTING,
    hints: Hints::WRITE,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::text_within("name", IDENTIFIER_CHARS).required(),
        Parameter::choice("kind", FunctionKind::WORDS, None).required(),
        Parameter::text_within("module", PATH_CHARS).required(),
        Parameter::text_within("receiver", IDENTIFIER_CHARS),
        Parameter::text_within("importName", IDENTIFIER_CHARS),
        Parameter::objects("params", MAX_PARAMS, &PARAM),
        Parameter::flag("returnsPage"),
        Parameter::text_within("urlPattern", PATH_CHARS),
        Parameter::objects("steps", MAX_STEPS, &STEP).required(),
        Parameter::objects("paramSources", MAX_SOURCES, &SOURCE),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(create(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    ok: bool,
    function_id: i64,
    id: i64,
    project_id: i64,
    name: String,
    kind: &'static str,
    module: String,
    source: String,
    warnings: Vec<String>,
}

async fn create(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let project_id: ProjectId = asked.argument("projectId")?;
    let context = asked.context;
    let function =
        TestFunction::read(asked.fields()).map_err(|faults| ToolError::Refused(format!("{faults}.")))?;
    let project = context.project(project_id).await?;
    let acting = context.acting(TOOL.name).await?;
    let stored = test_functions::create(&context.query, acting, project, &function, Origin::Agent).await?;
    let TestFunctionItem { id, function, source, warnings, .. } = stored;
    let TestFunction { name, kind, module, .. } = function;
    let kind = kind.as_str();
    let output = Output {
        ok: true,
        function_id: id,
        id,
        project_id: project_id.get(),
        name,
        kind,
        module,
        source,
        warnings,
    };
    answer(&output)
}
