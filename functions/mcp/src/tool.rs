//! A tool: one row that says what it is called, who may call it, what it can
//! be told and which function answers. `run` is the one way to call it: role,
//! arguments, work, clean text, bounded length.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use callboard_auth::Role;
use callboard_auth::routes::Roles;
use callboard_query::page::Slice;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::budget::{self, RESULT_CHARS, Sections};
use crate::clean::tidy;
use crate::context::Context;
use crate::cursor::Pages;
use crate::error::ToolError;
use crate::images::Image;
use crate::outputs::{self, Shape};
use crate::parameter::{Parameter, schema};
use crate::shapes::Page;

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(25);

/// One tool.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Name, as it is called.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// What it answers, for a model that decides whether to call it.
    pub description: &'static str,
    /// The toolset it belongs to.
    pub group: Group,
    /// Who may call it.
    pub roles: Roles,
    /// What it does to the world.
    pub hints: Hints,
    /// What it can be told.
    pub parameters: &'static [Parameter],
    /// What of its answer may go first when it is too long.
    pub sections: Sections,
    /// What its answer looks like.
    pub result: Shape,
    /// What answers.
    pub call: Call,
}

/// The function behind a tool.
pub(crate) type Call = for<'a> fn(ToolCall<'a>) -> BoxFuture<'a, Result<Answer, ToolError>>;

/// Toolsets a client can narrow its list to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Projects and what spans them.
    Projects,
    /// Runs, executions and test cases.
    Runs,
    /// Failure clusters.
    Clusters,
    /// Source control.
    Scm,
    /// What writes.
    Triage,
}

impl Group {
    /// All toolsets.
    pub(crate) const ALL: [Self; 5] = [Self::Projects, Self::Runs, Self::Clusters, Self::Scm, Self::Triage];

    /// The word in `?toolsets=`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Projects => "projects",
            Self::Runs => "runs",
            Self::Clusters => "clusters",
            Self::Scm => "scm",
            Self::Triage => "triage",
        }
    }
}

/// What a tool does to the world, for clients that ask before they call.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Hints {
    /// Changes nothing.
    #[serde(rename = "readOnlyHint")]
    pub read_only: bool,
    /// May destroy something.
    #[serde(rename = "destructiveHint")]
    pub destructive: bool,
    /// A second call changes nothing more.
    #[serde(rename = "idempotentHint")]
    pub idempotent: bool,
    /// Talks to other systems.
    #[serde(rename = "openWorldHint")]
    pub open_world: bool,
}

impl Hints {
    /// Reads what is stored here.
    pub(crate) const READ: Self =
        Self { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// Reads, and asks other systems.
    pub(crate) const READ_ELSEWHERE: Self = Self { open_world: true, ..Self::READ };
    /// Writes; repeating the call changes nothing more.
    pub(crate) const WRITE_ONCE: Self = Self { read_only: false, ..Self::READ };
    /// Writes; repeating the call does more.
    pub(crate) const WRITE: Self = Self { idempotent: false, ..Self::WRITE_ONCE };
    /// Writes, and asks other systems.
    pub(crate) const WRITE_ELSEWHERE: Self = Self { open_world: true, ..Self::WRITE };
}

/// One call: the caller's context and arguments.
#[derive(Debug, Clone)]
pub(crate) struct ToolCall<'a> {
    /// Who asks, and what answers are made from.
    pub context: &'a Context,
    tool: &'static str,
    arguments: Arguments,
}

impl ToolCall<'_> {
    /// The arguments as the tool's own type. Its fields mirror the parameters.
    ///
    /// # Errors
    /// When they do not: a fault of ours.
    pub(crate) fn input<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        T::deserialize(Value::Object(self.arguments.values().clone())).map_err(ToolError::fault)
    }

    /// The arguments under their advertised names.
    pub(crate) const fn fields(&self) -> &Map<String, Value> {
        self.arguments.values()
    }

    /// One argument by its advertised name; nothing where it was not given.
    ///
    /// # Errors
    /// When it is of another type: a fault of ours.
    pub(crate) fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        let value = self.fields().get(name).cloned().unwrap_or_default();
        T::deserialize(value).map_err(ToolError::fault)
    }

    /// The rows of the page that is asked for.
    pub(crate) fn page_size(&self) -> usize {
        self.arguments.page_size().and_then(|rows| usize::try_from(rows).ok()).unwrap_or(1)
    }

    /// The key behind which the page begins; `None` for the first page.
    ///
    /// # Errors
    /// For a cursor of another list, or none of ours.
    pub(crate) fn after<K: DeserializeOwned>(&self) -> Result<Option<K>, ToolError> {
        self.pages().after(self.fields().get("cursor").and_then(Value::as_str))
    }

    /// The rows of a page, and the cursor of the next one.
    ///
    /// # Errors
    /// For a key that has no JSON.
    pub(crate) fn split<T, K: Serialize>(
        &self,
        found: Slice<T, K>,
    ) -> Result<(Vec<T>, Option<String>), ToolError> {
        let next = found.next.map(|key| self.pages().cursor(&key)).transpose()?;
        Ok((found.items, next))
    }

    /// The answer of a tool that gives one list.
    ///
    /// # Errors
    /// For a key or a row that has no JSON.
    pub(crate) fn page<T: Serialize, K: Serialize>(&self, found: Slice<T, K>) -> Result<Answer, ToolError> {
        let (items, next_cursor) = self.split(found)?;
        answer(&Page { items, next_cursor })
    }

    /// The list that the cursors of this call belong to.
    fn pages(&self) -> Pages {
        Pages::new(self.tool, self.arguments.values(), self.context.scope())
    }
}

/// What a tool answers.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The JSON, as it is before it is tidied and bounded.
    pub json: Value,
    /// Images that follow it.
    pub images: Vec<Image>,
    /// A bound of its own on the length of the text.
    pub max_chars: Option<usize>,
    /// A key that is shown although its value is null.
    pub null: Option<&'static str>,
}

/// An answer of JSON alone; [`Answer::with_images`] says more.
///
/// # Errors
/// For a value that has no JSON.
pub(crate) fn answer(value: &impl Serialize) -> Result<Answer, ToolError> {
    let json = serde_json::to_value(value).map_err(ToolError::fault)?;
    Ok(Answer { json, images: Vec::new(), max_chars: None, null: None })
}

impl Answer {
    /// The same, followed by images. They are not counted into the length of
    /// the text; `images.rs` bounds them.
    pub(crate) fn with_images(self, images: Vec<Image>) -> Self {
        Self { images, ..self }
    }

    /// The same, with a key that says by null that there is nothing.
    pub(crate) fn with_null(self, key: &'static str) -> Self {
        Self { null: Some(key), ..self }
    }

    /// The same, within a bound of its own instead of that of all tools.
    pub(crate) fn within(self, max_chars: usize) -> Self {
        Self { max_chars: Some(max_chars), ..self }
    }
}

impl Tool {
    /// The entry of `tools/list`.
    pub(crate) fn listed(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema(self.parameters),
            "annotations": self.hints,
        })
    }

    /// The entry of `tools/list` for clients that want schemas of results.
    pub(crate) fn listed_with_output(&self) -> Value {
        let mut listed = self.listed();
        listed["outputSchema"] = outputs::shallow(&(self.result)());
        listed
    }

    /// Everything there is to say of it, for the document of the tools.
    #[cfg(test)]
    pub(crate) fn described(&self) -> Value {
        let mut described = self.listed();
        described["outputSchema"] = (self.result)();
        described["toolset"] = self.group.word().into();
        described["roles"] = self.roles.as_slice().iter().map(|role| role.as_str()).collect();
        described
    }

    /// Calls the tool.
    ///
    /// # Errors
    /// [`ToolError`]; a panic and a call that takes too long are faults.
    pub(crate) async fn run(
        &'static self,
        context: &Context,
        given: Option<Value>,
    ) -> Result<Answered, ToolError> {
        let yours = context.role();
        if !yours.is_some_and(|role| self.roles.contains(role)) {
            return Err(ToolError::Role { needed: self.roles, yours });
        }
        let is_instance_wide = !self.roles.contains(Role::Reporter);
        if is_instance_wide && !context.identity().reaches_everything() {
            return Err(ToolError::KeyNarrowed);
        }
        if context.narrowing.is_read_only && !self.hints.read_only {
            return Err(ToolError::ReadOnly);
        }
        if !self.hints.read_only {
            context.may_write().await?;
        }
        let arguments = Arguments::read(given, self.parameters)?;
        guarded(PATIENCE, self.answer(context, arguments)).await
    }

    /// The tool that gives the parts of an execution one by one, for whoever
    /// misses one in an answer of this tool.
    fn evidence_tool(&self) -> Option<&'static str> {
        let has = |name: &str| self.parameters.iter().any(|parameter| parameter.name == name);
        match (has("include"), has("executionId")) {
            (true, _) => Some(self.name),
            (false, true) => Some("get_test_run_case"),
            (false, false) => None,
        }
    }

    async fn answer(&self, context: &Context, mut arguments: Arguments) -> Result<Answered, ToolError> {
        let asked_for = arguments.max_chars();
        let mut shortened = false;
        loop {
            let asked = ToolCall { context, tool: self.name, arguments: arguments.clone() };
            let Answer { json, images, max_chars, null } = (self.call)(asked).await?;
            let limit = max_chars.or(asked_for).unwrap_or(RESULT_CHARS);
            let mut answer = tidy(json);
            if let Some(key) = null {
                answer[key] = Value::Null;
            }
            if shortened {
                let next = "pass nextCursor as cursor".to_owned();
                answer = budget::mark(answer, limit, &["rows".to_owned()], &next);
            }
            let text = answer.to_string();
            if budget::fits(&text, limit) {
                return Ok(Answered { json: answer, text, images });
            }
            match arguments.page_size() {
                // Fewer rows come with the cursor that belongs behind them.
                Some(rows) if rows > 1 => arguments = arguments.with_page_size(rows / 2),
                _ => {
                    let json = budget::shrink(answer, self.evidence_tool(), self.sections, limit);
                    return Ok(Answered { text: json.to_string(), json, images });
                }
            }
            shortened = true;
        }
    }
}

/// What goes out: bounded, and written once.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The JSON.
    pub json: Value,
    /// The same as text.
    pub text: String,
    /// Images that follow it.
    pub images: Vec<Image>,
}

/// Work that neither takes the connection down with it nor holds it for ever.
///
/// # Errors
/// Those of the work; a panic and work that takes too long are faults.
async fn guarded<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    match tokio::time::timeout(patience, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => Err(ToolError::fault(format!("panic: {}", said(&*panic)))),
        Err(_) => Err(ToolError::fault(format!("no answer within {} s", patience.as_secs()))),
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
