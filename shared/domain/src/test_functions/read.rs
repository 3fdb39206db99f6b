//! Reading a function that somebody sends. Everything that is wrong is found
//! in one go, each fault with its place, so the next attempt can be right.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use url::Url;

use super::code::{Piece, pieces};
use super::target::Target;
use super::{
    Action, Fault, Faults, FunctionKind, Param, ParamSource, ParamType, SourcePart, Step, TestFunction,
};
use crate::locator::{self, MAX_CHAIN_BYTES};

/// Most parameters of a function.
pub const MAX_PARAMS: usize = 10;
/// Most steps of a function.
pub const MAX_STEPS: usize = 30;
/// Most parts of steps that parameters stand for.
pub const MAX_SOURCES: usize = 10;
const MAX_FIELDS: usize = 20;
const MAX_FIELD_CHARS: usize = 80;
const MAX_IDENTIFIER_CHARS: usize = 120;
const MAX_MODULE_CHARS: usize = 240;
const MAX_URL_PATTERN_CHARS: usize = 240;
const MAX_ROLE_CHARS: usize = 40;
const MAX_NAME_CHARS: usize = 500;
const MAX_TEST_ID_CHARS: usize = 240;
const MAX_VALUE_CHARS: usize = 2_000;
/// Faults that are told at once.
const MAX_FAULTS: usize = 20;
/// Names the written code uses itself.
const OUR_NAMES: [&str; 3] = ["page", "expect", "use"];
/// Words of JavaScript that name nothing (ECMA-262, 12.7.2, in strict mode).
const RESERVED: [&str; 49] = [
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

impl TestFunction {
    /// Reads a function from the fields it is sent with.
    ///
    /// # Errors
    /// Everything that is wrong with it, with its place.
    pub fn read(given: &Map<String, Value>) -> Result<Self, Faults> {
        let mut reader = Reader::default();
        let function = reader.function(given);
        if reader.faults.is_empty() {
            reader.placeholders(&function);
        }
        if reader.faults.is_empty() {
            reader.written(&function);
        }
        if reader.faults.is_empty() { Ok(function) } else { Err(Faults(reader.faults)) }
    }
}

/// Whether a text is an identifier of JavaScript in ASCII, and no word of the
/// language.
pub(super) fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$'));
    begins
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        && !RESERVED.contains(&text)
}

#[derive(Default)]
struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    fn fault(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault { path: path.into(), message: message.into() });
        }
    }

    fn function(&mut self, given: &Map<String, Value>) -> TestFunction {
        let name = self.required_identifier(given, "name");
        let kind = self.word(given, "", "kind", FunctionKind::WORDS, FunctionKind::parse);
        let module = self.module(given);
        let receiver = self.identifier(given, "receiver");
        let import_name = self.identifier(given, "importName");
        let params = self.params(given);
        let returns_page = match given.get("returnsPage") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.fault("returnsPage", "must be true or false");
                false
            }
        };
        let url_pattern = self.text(given, "", "urlPattern", MAX_URL_PATTERN_CHARS);
        let steps = self.steps(given);
        let param_sources = self.sources(given, &params, &steps);
        TestFunction {
            name,
            kind: kind.unwrap_or(FunctionKind::Helper),
            module,
            receiver,
            import_name,
            params,
            returns_page,
            url_pattern,
            steps,
            param_sources,
        }
    }

    /// A text without control characters; nothing when it is blank or absent.
    fn text(&mut self, given: &Map<String, Value>, at: &str, key: &str, max_chars: usize) -> Option<String> {
        let text = match given.get(key) {
            None | Some(Value::Null) => return None,
            Some(Value::String(text)) if text.trim().is_empty() => return None,
            Some(Value::String(text)) => text.trim(),
            Some(_) => {
                self.fault(format!("{at}{key}"), "must be a text");
                return None;
            }
        };
        if text.chars().count() > max_chars || text.chars().any(char::is_control) {
            self.fault(
                format!("{at}{key}"),
                format!("must be one line of at most {max_chars} characters without control characters"),
            );
            return None;
        }
        Some(text.to_owned())
    }

    fn word<T>(
        &mut self,
        given: &Map<String, Value>,
        at: &str,
        key: &str,
        words: &[&str],
        parse: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = given.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let known = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        let found = known.and_then(|word| parse(word));
        if found.is_none() {
            self.fault(format!("{at}{key}"), format!("must be one of {}", words.join(", ")));
        }
        found
    }

    fn identifier(&mut self, given: &Map<String, Value>, key: &str) -> Option<String> {
        let text = self.text(given, "", key, MAX_IDENTIFIER_CHARS)?;
        self.named(key, text)
    }

    fn required_identifier(&mut self, given: &Map<String, Value>, key: &str) -> String {
        let before = self.faults.len();
        let found = self.identifier(given, key);
        if found.is_none() && self.faults.len() == before {
            self.fault(key, "is required");
        }
        found.unwrap_or_default()
    }

    fn named(&mut self, path: &str, text: String) -> Option<String> {
        if is_identifier(&text) {
            return Some(text);
        }
        self.fault(path, "must be an identifier: letters, digits, _ and $, no digit first, no reserved word");
        None
    }

    /// Where it is imported from: a path within the repository or a package.
    fn module(&mut self, given: &Map<String, Value>) -> String {
        let before = self.faults.len();
        let Some(module) = self.text(given, "", "module", MAX_MODULE_CHARS) else {
            if self.faults.len() == before {
                self.fault("module", "is required");
            }
            return String::new();
        };
        let is_plain = !module.contains(['\'', '"', '`', '\\', ':', '{', '}']);
        let leaves = module.split('/').any(|part| part == "..");
        if !is_plain || module.starts_with('/') || module.ends_with('/') || leaves {
            self.fault(
                "module",
                "must be a relative path with / and without .., quotes and backslashes, such as ./pages/checkout",
            );
        }
        module
    }

    /// A list of objects with their places; `least` of them at least.
    fn objects<'v>(
        &mut self,
        given: &'v Map<String, Value>,
        key: &str,
        (least, most): (usize, usize),
    ) -> Vec<(String, &'v Map<String, Value>)> {
        let list = match given.get(key) {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.fault(key, "must be a list");
                return Vec::new();
            }
        };
        if list.len() < least || list.len() > most {
            self.fault(key, format!("must be {least} to {most} entries, got {}", list.len()));
            return Vec::new();
        }
        let mut objects = Vec::new();
        for (at, entry) in list.iter().enumerate() {
            match entry.as_object() {
                Some(entry) => objects.push((format!("{key}[{at}]."), entry)),
                None => self.fault(format!("{key}[{at}]"), "must be an object"),
            }
        }
        objects
    }

    fn params(&mut self, given: &Map<String, Value>) -> Vec<Param> {
        let mut params: Vec<Param> = Vec::new();
        for (at, entry) in self.objects(given, "params", (0, MAX_PARAMS)) {
            let path = format!("{at}name");
            let name = match self.text(entry, &at, "name", MAX_IDENTIFIER_CHARS) {
                Some(name) => self.named(&path, name),
                None => {
                    self.fault(&path, "is required");
                    None
                }
            };
            let kind = self.word(entry, &at, "type", ParamType::WORDS, ParamType::parse);
            let fields = self.fields(entry, &at, kind);
            let (Some(name), Some(kind)) = (name, kind) else { continue };
            if OUR_NAMES.contains(&name.as_str()) {
                self.fault(path, format!("{name} is a name of the written code; choose another one"));
            } else if params.iter().any(|param| param.name == name) {
                self.fault(path, format!("{name} is there twice"));
            } else {
                params.push(Param { name, kind, fields });
            }
        }
        params
    }

    fn fields(&mut self, entry: &Map<String, Value>, at: &str, kind: Option<ParamType>) -> Vec<String> {
        let path = format!("{at}fields");
        let list = match entry.get("fields") {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.fault(path, "must be a list of names");
                return Vec::new();
            }
        };
        if kind.is_some_and(|kind| kind != ParamType::Object) && !list.is_empty() {
            self.fault(path, "only an object has fields");
            return Vec::new();
        }
        let mut names = BTreeSet::new();
        let mut fields = Vec::new();
        for field in list {
            match field.as_str() {
                Some(name) if is_identifier(name) && name.len() <= MAX_FIELD_CHARS && names.insert(name) => {
                    fields.push(name.to_owned());
                }
                _ => {
                    self.fault(
                        path,
                        format!("must be different identifiers of at most {MAX_FIELD_CHARS} characters"),
                    );
                    return Vec::new();
                }
            }
        }
        if fields.len() > MAX_FIELDS {
            self.fault(path, format!("must be at most {MAX_FIELDS} names"));
        }
        fields
    }

    fn steps(&mut self, given: &Map<String, Value>) -> Vec<Step> {
        let steps = self.objects(given, "steps", (1, MAX_STEPS));
        steps.into_iter().filter_map(|(at, entry)| self.step(&at, entry)).collect()
    }

    fn step(&mut self, at: &str, entry: &Map<String, Value>) -> Option<Step> {
        // Recorders tell the element as an object of its own.
        let nested = entry.get("target").and_then(Value::as_object);
        let mut of_element = |key: &str, max_chars: usize| {
            let own = self.text(entry, at, key, max_chars);
            own.or_else(|| self.text(nested?, &format!("{at}target."), key, max_chars))
        };
        let role = of_element("role", MAX_ROLE_CHARS);
        let name = of_element("name", MAX_NAME_CHARS);
        let test_id = of_element("testId", MAX_TEST_ID_CHARS);
        let locator = of_element("locator", MAX_CHAIN_BYTES);
        let action = self.word(entry, at, "action", Action::WORDS, Action::parse)?;
        let value = self.value(at, entry, action);
        let step = Step { action, role, name, test_id, locator, value };
        self.element(at.trim_end_matches('.'), &step);
        Some(step)
    }

    /// The value of a step: kept as it is, for a blank is something one can type.
    fn value(&mut self, at: &str, entry: &Map<String, Value>, action: Action) -> Option<String> {
        let path = format!("{at}value");
        let value = match entry.get("value") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(_) => {
                self.fault(path, "must be a text");
                return None;
            }
        };
        let is_line = |text: &str| {
            text.chars().count() <= MAX_VALUE_CHARS
                && !text.chars().any(|char| char.is_control() && !matches!(char, '\n' | '\t'))
        };
        match value {
            Some(text) if !action.takes_value() => {
                if !text.is_empty() {
                    self.fault(path, format!("{} takes none", action.as_str()));
                }
                None
            }
            Some(text) if !is_line(text) => {
                self.fault(
                    path,
                    format!("must be at most {MAX_VALUE_CHARS} characters without control characters"),
                );
                None
            }
            Some(text) => {
                if action == Action::Press && text.is_empty() {
                    self.fault(&path, "names the key, such as Enter");
                }
                if action == Action::Goto && !text.is_empty() && !is_address(text) {
                    self.fault(path, "must be a path that begins with /, or an address with http or https");
                }
                Some(text.to_owned())
            }
            None => None,
        }
    }

    fn element(&mut self, path: &str, step: &Step) {
        let is_told = [&step.role, &step.name, &step.test_id, &step.locator].into_iter().any(Option::is_some);
        if step.action == Action::Goto {
            if is_told {
                self.fault(path, "goto opens an address and has no element");
            }
            return;
        }
        if let Some(role) = &step.role
            && !role.bytes().all(|byte| byte.is_ascii_lowercase())
        {
            self.fault(format!("{path}.role"), "must be a role of ARIA, such as button");
        }
        match Target::of(step) {
            Ok(Some(_)) => {}
            Ok(None) if step.name.is_some() => {
                self.fault(format!("{path}.role"), "is required with a name; or send a testId");
            }
            Ok(None) => self.fault(path, "needs an element: role and name, or testId"),
            Err(message) => self.fault(format!("{path}.locator"), message),
        }
    }

    fn sources(&mut self, given: &Map<String, Value>, params: &[Param], steps: &[Step]) -> Vec<ParamSource> {
        let mut sources: Vec<ParamSource> = Vec::new();
        for (at, entry) in self.objects(given, "paramSources", (0, MAX_SOURCES)) {
            let param = self.text(entry, &at, "param", MAX_IDENTIFIER_CHARS).unwrap_or_default();
            let path = self.text(entry, &at, "path", MAX_FIELD_CHARS);
            let from = self.word(entry, &at, "from", SourcePart::WORDS, SourcePart::parse);
            if let Err(message) = place(params, &param, path.as_deref()) {
                self.fault(format!("{at}param"), message);
            }
            let step_index = entry.get("stepIndex").and_then(Value::as_u64);
            let step = step_index.and_then(|index| usize::try_from(index).ok());
            let Some((step_index, step)) = step.and_then(|index| Some((index, steps.get(index)?))) else {
                // With a step that is wrong the numbers say nothing.
                let most = steps.len().saturating_sub(1);
                self.fault(format!("{at}stepIndex"), format!("must be the number of a step, 0 to {most}"));
                continue;
            };
            let Some(from) = from else { continue };
            let has_part = match from {
                SourcePart::Value => step.action.takes_value(),
                SourcePart::Text => step.role.is_some() && step.test_id.is_none() && step.locator.is_none(),
                SourcePart::TestId => step.test_id.is_some() && step.locator.is_none(),
            };
            if !has_part {
                self.fault(
                    format!("{at}from"),
                    format!("step {step_index} has no {} to stand for", from.as_str()),
                );
            } else if sources.iter().any(|known| (known.step_index, known.from) == (step_index, from)) {
                self.fault(format!("{at}from"), "another parameter stands for this part");
            } else {
                sources.push(ParamSource { param, path, step_index, from });
            }
        }
        sources
    }

    /// Every placeholder means a parameter, and every parameter is used.
    fn placeholders(&mut self, function: &TestFunction) {
        let params = &function.params;
        let mut used: BTreeSet<&str> =
            function.param_sources.iter().map(|source| source.param.as_str()).collect();
        for (at, step) in function.steps.iter().enumerate() {
            let is_bound = |part| {
                function.param_sources.iter().any(|source| source.step_index == at && source.from == part)
            };
            if step.action.takes_value() && step.value.is_none() && !is_bound(SourcePart::Value) {
                self.fault(format!("steps[{at}].value"), format!("{} needs one", step.action.as_str()));
            }
            let target = step.target();
            let texts = target.iter().flat_map(Target::texts).chain(step.value.as_deref());
            for place in texts.flat_map(pieces).filter_map(|piece| match piece {
                Piece::Placeholder(place) => Some(place),
                Piece::Literal(_) => None,
            }) {
                let (name, path) =
                    place.split_once('.').map_or((place, None), |(name, path)| (name, Some(path)));
                if let Err(message) = self::place(params, name, path) {
                    self.fault(format!("steps[{at}]"), message);
                }
                if let Some(param) = params.iter().find(|param| param.name == name) {
                    used.insert(&param.name);
                }
            }
        }
        for (at, param) in params.iter().enumerate().filter(|(_, param)| !used.contains(param.name.as_str()))
        {
            self.fault(
                format!("params[{at}]"),
                format!(
                    "{} is not used; write {{{{{0}}}}} into a step or name it in paramSources",
                    param.name
                ),
            );
        }
    }

    /// What is written must read as what was meant.
    fn written(&mut self, function: &TestFunction) {
        for (at, written) in function.locators().into_iter().enumerate() {
            let reads =
                |code: &String| locator::parse(code).is_some_and(|chain| chain.range.end == code.len());
            if written.as_ref().is_some_and(|code| !reads(code)) {
                self.fault(format!("steps[{at}]"), "the element cannot be written as code; say it shorter");
            }
        }
    }
}

/// Whether a parameter, or a field of it, can stand in a text.
fn place(params: &[Param], name: &str, path: Option<&str>) -> Result<(), String> {
    let Some(param) = params.iter().find(|param| param.name == name) else {
        let shown: String = name.chars().take(40).collect();
        return Err(format!("{shown:?} is no parameter; declare it in params"));
    };
    match (param.kind, path) {
        (ParamType::Object, None) => Err(format!("{name} is an object; say which field, as {name}.field")),
        (ParamType::Object, Some(field)) => {
            let is_known = param.fields.is_empty() || param.fields.iter().any(|known| known == field);
            if is_identifier(field) && is_known { Ok(()) } else { Err(format!("this is no field of {name}")) }
        }
        (_, Some(_)) => Err(format!("{name} is no object and has no fields")),
        (_, None) => Ok(()),
    }
}

/// Whether a test can open it: a path of the site, or an address of the web.
fn is_address(text: &str) -> bool {
    if text.starts_with("{{") {
        return true;
    }
    if text.starts_with('/') {
        return !text.starts_with("//");
    }
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}
