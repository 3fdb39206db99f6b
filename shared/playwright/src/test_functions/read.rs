//! Reading a function that somebody sends. Everything that is wrong is found
//! in one go, each fault with its place, so the next attempt can be right.

mod identifier;
mod meaning;
mod steps;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Fault, Faults, FunctionKind, Param, ParamType, TestFunction};

pub(super) use identifier::is_identifier;

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
/// Faults of one answer.
const MAX_FAULTS: usize = 20;
/// Names the written code uses itself.
const OUR_NAMES: [&str; 3] = ["page", "expect", "use"];

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
}
