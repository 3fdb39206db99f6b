//! Functions of a test suite that are worth reusing: a method of a page object,
//! a helper, a fixture, as steps on elements. [`TestFunction::read`] checks
//! what somebody sends, [`TestFunction::code`] writes it down as TypeScript.
//!
//! What is sent is data. Nothing of it is executed, and in the code it never
//! leaves the literals it stands in: names are identifiers, locators are read
//! by the chain parser and written anew from what it found.

mod code;
mod read;
mod target;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use read::{MAX_PARAMS, MAX_SOURCES, MAX_STEPS};

use self::target::Target;
use callboard_domain::secrets::{is_secret_name, masked};

/// A step that costs this much is not trusted at all; see [`TestFunction::confidence`].
const COST_OF_NO_TRUST: f64 = 1_000.0;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every spelling.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The spelling on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Reads a spelling.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// What kind of function it is.
    FunctionKind {
        /// A method of a class that stands for a page.
        PageObjectMethod = "page-object-method",
        /// A function that is given the page.
        Helper = "helper",
        /// What a test asks Playwright for by name.
        Fixture = "fixture",
    }
}

words! {
    /// Type of a parameter.
    ParamType {
        /// A text.
        String = "string",
        /// A number.
        Number = "number",
        /// Yes or no.
        Boolean = "boolean",
        /// Several texts under names.
        Object = "object",
    }
}

words! {
    /// What a step does.
    Action {
        /// Opens an address.
        Goto = "goto",
        /// Clicks an element.
        Click = "click",
        /// Sets the text of a field.
        Fill = "fill",
        /// Ticks a box.
        Check = "check",
        /// Unticks a box.
        Uncheck = "uncheck",
        /// Chooses from a list.
        SelectOption = "selectOption",
        /// Presses a key.
        Press = "press",
        /// Expects an element to be seen.
        AssertVisible = "assertVisible",
    }
}

words! {
    /// The part of a step that a parameter stands for.
    SourcePart {
        /// The name of the element.
        Text = "text",
        /// What is typed, chosen or opened.
        Value = "value",
        /// The test id of the element.
        TestId = "testId",
    }
}

impl Action {
    /// Whether the step has a value.
    #[must_use]
    pub const fn takes_value(self) -> bool {
        matches!(self, Self::Goto | Self::Fill | Self::SelectOption | Self::Press)
    }
}

/// A function of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestFunction {
    /// Name, an identifier.
    pub name: String,
    /// Kind.
    pub kind: FunctionKind,
    /// What it is imported from.
    pub module: String,
    /// Class or object it is called on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// What is imported, when that is not the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_name: Option<String>,
    /// Parameters in their order.
    #[serde(default)]
    pub params: Vec<Param>,
    /// Whether it gives the page back.
    #[serde(default)]
    pub returns_page: bool,
    /// Pages it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_pattern: Option<String>,
    /// What it does.
    pub steps: Vec<Step>,
    /// Parts of steps that parameters stand for.
    #[serde(default)]
    pub param_sources: Vec<ParamSource>,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Name, an identifier.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Names of what an object holds; any when none are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// A step of a function. Texts may hold `{{param}}` or `{{param.field}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// Role of the element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Accessible name of the element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Test id of the element; it finds the element when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_id: Option<String>,
    /// Locator as Playwright writes it; it finds the element when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locator: Option<String>,
    /// What is typed, chosen, pressed or opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A part of a step that a parameter stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParamSource {
    /// Parameter.
    pub param: String,
    /// Field of it, for an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which step, from 0.
    pub step_index: usize,
    /// Which part of it.
    pub from: SourcePart,
}

/// Something that is wrong with a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, such as `steps[2].value`.
    pub path: String,
    /// What has to be otherwise.
    pub message: String,
}

/// Everything that is wrong with a function, in the order it was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The faults, never none.
    #[must_use]
    pub fn as_slice(&self) -> &[Fault] {
        &self.0
    }

    /// The field of the function that the first fault is in.
    #[must_use]
    pub fn field(&self) -> &str {
        let path = self.0.first().map_or("", |fault| fault.path.as_str());
        path.split(['[', '.']).next().unwrap_or_default()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Fault { path, message }) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { "; " };
            write!(out, "{between}{path}: {message}")?;
        }
        Ok(())
    }
}

impl TestFunction {
    /// How far its locators can be relied on, 0 to 1: the mean over the steps of
    /// 1 − min(1, cost ⁄ 1000), costs as [`crate::healing::candidates`] has them.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        let trust = self.steps.iter().map(|step| {
            let cost = step.target().map_or(0, |target| target.cost());
            #[expect(clippy::cast_precision_loss, reason = "costs stay far below 2^53")]
            let share = cost as f64 / COST_OF_NO_TRUST;
            1.0 - share.min(1.0)
        });
        #[expect(clippy::cast_precision_loss, reason = "at most thirty steps")]
        let steps = self.steps.len().max(1) as f64;
        (trust.sum::<f64>() / steps * 10_000.0).round() / 10_000.0
    }

    /// What is allowed and will be regretted, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let mut warn = |what: &str| warnings.push(format!("steps[{at}]: {what}"));
            if let Some(target) = step.target() {
                if target.picks_by_position() {
                    warn("the element is found by its position; a name or a test id holds longer.");
                }
                if target.uses_css() {
                    warn(
                        "the element is found by a CSS selector; a role, a label or a test id holds longer.",
                    );
                }
            }
            let is_bound = self
                .param_sources
                .iter()
                .any(|source| source.step_index == at && source.from == SourcePart::Value);
            if !is_bound && step.types_secret() {
                warn("the value looks like a secret; make it a parameter.");
            }
        }
        warnings
    }
}

impl Step {
    /// What the step acts on; nothing for one that opens an address.
    fn target(&self) -> Option<Target> {
        Target::from_step(self).ok().flatten()
    }

    /// Whether a literal is typed that should not stand in code.
    fn types_secret(&self) -> bool {
        let Some(value) = self.value.as_deref().filter(|value| !value.is_empty()) else { return false };
        let is_for_secret = self.action == Action::Fill
            && [&self.name, &self.test_id, &self.locator]
                .into_iter()
                .flatten()
                .any(|name| is_secret_name(name));
        !value.contains("{{") && (is_for_secret || masked(value) != value)
    }
}
