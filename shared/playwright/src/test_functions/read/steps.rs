//! The steps of a function, and the parts of them that parameters stand for.

use serde_json::{Map, Value};
use url::Url;

use super::meaning::place;
use super::{MAX_FIELD_CHARS, MAX_IDENTIFIER_CHARS, MAX_SOURCES, MAX_STEPS, Reader};
use crate::test_functions::target::Target;
use crate::test_functions::{Action, Param, ParamSource, SourcePart, Step};
use callboard_domain::locator::MAX_CHAIN_BYTES;

const MAX_ROLE_CHARS: usize = 40;
const MAX_NAME_CHARS: usize = 500;
const MAX_TEST_ID_CHARS: usize = 240;
const MAX_VALUE_CHARS: usize = 2_000;

impl Reader {
    pub(super) fn steps(&mut self, given: &Map<String, Value>) -> Vec<Step> {
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
        match Target::from_step(step) {
            Ok(Some(_)) => {}
            Ok(None) if step.name.is_some() => {
                self.fault(format!("{path}.role"), "is required with a name; or send a testId");
            }
            Ok(None) => self.fault(path, "needs an element: role and name, or testId"),
            Err(message) => self.fault(format!("{path}.locator"), message),
        }
    }

    pub(super) fn sources(
        &mut self,
        given: &Map<String, Value>,
        params: &[Param],
        steps: &[Step],
    ) -> Vec<ParamSource> {
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
