//! A function as TypeScript. Every text is written as a literal of its own and
//! joined with parameters by `+`, so there is one kind of literal and nothing
//! that could end it.

use std::fmt::Write as _;

use super::target::{Arg, Call, Target};
use super::{Action, FunctionKind, Param, ParamSource, ParamType, SourcePart, Step, TestFunction};
use crate::healing::candidates::quoted;

/// A piece of a text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Text.
    Literal(&'t str),
    /// What stands between the braces.
    Placeholder(&'t str),
}

/// The pieces of a text; a brace that is never closed is text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{")
        && let Some(length) = rest[open + 2..].find("}}")
    {
        if open > 0 {
            pieces.push(Piece::Literal(&rest[..open]));
        }
        pieces.push(Piece::Placeholder(rest[open + 2..open + 2 + length].trim()));
        rest = &rest[open + length + 4..];
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    pieces
}

impl TestFunction {
    /// The function as TypeScript, in the form its kind has.
    #[must_use]
    pub fn code(&self) -> String {
        let name = &self.name;
        let params: Vec<String> = self.params.iter().map(declared).collect();
        let steps = |indent: &str| {
            let mut body = String::new();
            for (at, step) in self.steps.iter().enumerate() {
                // Writing to a text cannot fail.
                let _ = writeln!(body, "{indent}{};", self.statement(at, step));
            }
            if self.returns_page {
                let _ = writeln!(body, "{indent}return {};", self.page());
            }
            body
        };
        let returned = if self.returns_page { "Page" } else { "void" };
        match self.kind {
            FunctionKind::Helper => {
                let params = std::iter::once("page: Page".to_owned()).chain(params).collect::<Vec<_>>();
                format!(
                    "export async function {name}({}): Promise<{returned}> {{\n{}}}\n",
                    params.join(", "),
                    steps("  ")
                )
            }
            FunctionKind::PageObjectMethod => {
                format!("async {name}({}): Promise<{returned}> {{\n{}}}\n", params.join(", "), steps("  "))
            }
            FunctionKind::Fixture => format!(
                "{name}: async ({{ page }}, use) => {{\n  await use(async ({}): Promise<{returned}> => {{\n{}  }});\n}}\n",
                params.join(", "),
                steps("    ")
            ),
        }
    }

    /// The elements of the steps as they are written; none for a step that
    /// opens an address.
    pub(super) fn locators(&self) -> Vec<Option<String>> {
        let has_element = |step: &Step| step.action != Action::Goto;
        let steps = self.steps.iter().enumerate();
        steps.map(|(at, step)| has_element(step).then(|| self.located(at, step))).collect()
    }

    const fn page(&self) -> &'static str {
        match self.kind {
            FunctionKind::PageObjectMethod => "this.page",
            FunctionKind::Helper | FunctionKind::Fixture => "page",
        }
    }

    fn statement(&self, at: usize, step: &Step) -> String {
        let expression = self.expression(at, step);
        match step.action {
            Action::AssertVisible => format!("await expect({expression}).toBeVisible()"),
            _ => format!("await {expression}"),
        }
    }

    fn expression(&self, at: usize, step: &Step) -> String {
        let value = || self.part(at, SourcePart::Value, step.value.as_deref().unwrap_or_default());
        if step.action == Action::Goto {
            return format!("{}.goto({})", self.page(), value());
        }
        let mut code = self.located(at, step);
        match step.action {
            Action::Goto | Action::AssertVisible => {}
            Action::Click | Action::Check | Action::Uncheck => {
                let _ = write!(code, ".{}()", step.action.as_str());
            }
            Action::Fill | Action::SelectOption | Action::Press => {
                let _ = write!(code, ".{}({})", step.action.as_str(), value());
            }
        }
        code
    }

    /// The element of a step. Only what was told apart, role, name and test id,
    /// can be what a parameter stands for.
    fn located(&self, at: usize, step: &Step) -> String {
        let page = self.page();
        match (&step.locator, &step.test_id, &step.role) {
            (None, Some(id), _) => {
                format!("{page}.getByTestId({})", self.part(at, SourcePart::TestId, id))
            }
            (None, None, Some(role)) => {
                let name = step.name.as_deref().unwrap_or_default();
                let is_named = step.name.is_some() || self.source(at, SourcePart::Text).is_some();
                let role = quoted(role, '\'');
                match is_named {
                    true => {
                        format!(
                            "{page}.getByRole({role}, {{ name: {} }})",
                            self.part(at, SourcePart::Text, name)
                        )
                    }
                    false => format!("{page}.getByRole({role})"),
                }
            }
            _ => step.target().map_or_else(|| page.to_owned(), |target| self.chain(&target)),
        }
    }

    fn chain(&self, target: &Target) -> String {
        target.0.iter().fold(self.page().to_owned(), |code, Call { name, args }| {
            let args: Vec<String> = args.iter().map(|arg| self.arg(arg)).collect();
            format!("{code}.{name}({})", args.join(", "))
        })
    }

    fn arg(&self, arg: &Arg) -> String {
        match arg {
            Arg::Text(text) => self.text(text),
            Arg::Pattern { source, flags } => format!("/{source}/{flags}"),
            Arg::Number(number) => number.to_string(),
            Arg::Flag(flag) => flag.to_string(),
            Arg::Object(options) => {
                let options: Vec<String> =
                    options.iter().map(|(name, arg)| format!("{name}: {}", self.arg(arg))).collect();
                format!("{{ {} }}", options.join(", "))
            }
            Arg::List(list) => {
                let list: Vec<String> = list.iter().map(|arg| self.arg(arg)).collect();
                format!("[{}]", list.join(", "))
            }
            Arg::Chain(target) => self.chain(target),
        }
    }

    fn source(&self, at: usize, part: SourcePart) -> Option<&ParamSource> {
        self.param_sources.iter().find(|source| source.step_index == at && source.from == part)
    }

    /// A part of a step: the parameter that stands for it, else its text.
    fn part(&self, at: usize, part: SourcePart, text: &str) -> String {
        match self.source(at, part) {
            Some(ParamSource { param, path: Some(path), .. }) => format!("{param}.{path}"),
            Some(ParamSource { param, path: None, .. }) => self.param(param),
            None => self.text(text),
        }
    }

    /// A text with its placeholders, as an expression that is a text.
    fn text(&self, text: &str) -> String {
        let written = pieces(text).into_iter().map(|piece| match piece {
            Piece::Literal(text) => quoted(text, '\''),
            Piece::Placeholder(place) if place.contains('.') => place.to_owned(),
            Piece::Placeholder(name) => self.param(name),
        });
        written.collect::<Vec<_>>().join(" + ")
    }

    /// A parameter as text.
    fn param(&self, name: &str) -> String {
        let param = self.params.iter().find(|param| param.name == name);
        match param.map(|param| param.kind) {
            Some(ParamType::Number | ParamType::Boolean) => format!("String({name})"),
            _ => name.to_owned(),
        }
    }
}

/// A parameter with its type.
fn declared(param: &Param) -> String {
    let name = &param.name;
    match param.kind {
        ParamType::String | ParamType::Number | ParamType::Boolean => {
            format!("{name}: {}", param.kind.as_str())
        }
        ParamType::Object if param.fields.is_empty() => format!("{name}: Record<string, string>"),
        ParamType::Object => {
            let fields: Vec<String> = param.fields.iter().map(|field| format!("{field}: string")).collect();
            format!("{name}: {{ {} }}", fields.join("; "))
        }
    }
}
