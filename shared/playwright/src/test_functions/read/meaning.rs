//! Whether the parts of a function fit together: placeholders mean parameters,
//! and what is written reads as what was meant.

use std::collections::BTreeSet;

use super::{Reader, is_identifier};
use crate::test_functions::code::{Piece, pieces};
use crate::test_functions::target::Target;
use crate::test_functions::{Param, ParamType, SourcePart, TestFunction};
use callboard_domain::locator;

impl Reader {
    /// Every placeholder means a parameter, and every parameter is used.
    pub(super) fn placeholders(&mut self, function: &TestFunction) {
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
    pub(super) fn written(&mut self, function: &TestFunction) {
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
pub(super) fn place(params: &[Param], name: &str, path: Option<&str>) -> Result<(), String> {
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
