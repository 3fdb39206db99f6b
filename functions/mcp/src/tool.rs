//! A tool: one row that says what it is called, who may call it, what it can
//! be told and which function answers. `run` is the one way to call it: role,
//! arguments, work, clean text, bounded length.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use callboard_auth::routes::Roles;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::budget::{self, RESULT_CHARS, Sections};
use crate::clean::tidy;
use crate::context::Context;
use crate::cursor::Pages;
use crate::error::ToolError;
use crate::parameter::{Parameter, schema};

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
    /// What answers.
    pub call: Call,
}

/// The function behind a tool.
pub(crate) type Call = for<'a> fn(Asked<'a>) -> BoxFuture<'a, Result<Value, ToolError>>;

/// Toolsets a client can narrow its list to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Projects and what spans them.
    Projects,
    /// Runs, executions and test cases.
    Runs,
}

impl Group {
    /// All toolsets.
    pub(crate) const ALL: [Self; 2] = [Self::Projects, Self::Runs];

    /// The word in `?toolsets=`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Projects => "projects",
            Self::Runs => "runs",
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
}

/// One call: the caller's context and arguments.
#[derive(Debug, Clone)]
pub(crate) struct Asked<'a> {
    /// Who asks, and what answers are made from.
    pub context: &'a Context,
    tool: &'static str,
    arguments: Arguments,
}

impl Asked<'_> {
    /// The arguments as the tool's own type. Its fields mirror the parameters.
    ///
    /// # Errors
    /// When they do not: a fault of ours.
    pub(crate) fn input<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        T::deserialize(Value::Object(self.arguments.values().clone())).map_err(ToolError::fault)
    }

    /// The list that the cursors of this call belong to.
    pub(crate) fn pages(&self) -> Pages {
        Pages::of(self.tool, self.arguments.values(), self.context.scope())
    }
}

/// An answer as JSON.
///
/// # Errors
/// For a value that has none.
pub(crate) fn answer(value: &impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(value).map_err(ToolError::fault)
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

    /// Calls the tool. What comes back is the text of the result.
    ///
    /// # Errors
    /// [`ToolError`]; a panic and a call that takes too long are faults.
    pub(crate) async fn run(
        &'static self,
        context: &Context,
        given: Option<Value>,
    ) -> Result<String, ToolError> {
        let yours = context.role();
        if !yours.is_some_and(|role| self.roles.contains(role)) {
            return Err(ToolError::Role { needed: self.roles, yours });
        }
        if context.narrowing.is_read_only && !self.hints.read_only {
            return Err(ToolError::ReadOnly);
        }
        let arguments = Arguments::read(given, self.parameters)?;
        let work = AssertUnwindSafe(self.answer(context, arguments)).catch_unwind();
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => Err(ToolError::fault(format!("panic: {}", said(&*panic)))),
            Err(_) => Err(ToolError::fault(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }

    async fn answer(&self, context: &Context, mut arguments: Arguments) -> Result<String, ToolError> {
        let mut shortened = false;
        loop {
            let asked = Asked { context, tool: self.name, arguments: arguments.clone() };
            let mut answer = tidy((self.call)(asked).await?);
            if shortened {
                answer = budget::mark(
                    answer,
                    RESULT_CHARS,
                    &["rows".to_owned()],
                    Some("pass nextCursor as cursor".to_owned()),
                );
            }
            let text = answer.to_string();
            if budget::fits(&text, RESULT_CHARS) {
                return Ok(text);
            }
            match arguments.page_size() {
                // Fewer rows come with the cursor that belongs behind them.
                Some(rows) if rows > 1 => arguments = arguments.with_page_size(rows / 2),
                _ => return Ok(budget::shrink(answer, self.name, self.sections, RESULT_CHARS).to_string()),
            }
            shortened = true;
        }
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
