//! The element a step acts on, as calls that find it. A locator that came as
//! text is taken apart by the chain parser; only what a locator can be made of
//! is kept, so writing it again cannot bring anything else along.

use super::Step;
use crate::healing::candidates::{
    COST_ALT, COST_CSS, COST_ID, COST_LABEL, COST_NTH, COST_PLACEHOLDER, COST_ROLE, COST_ROLE_NAME,
    COST_TEST_ID, COST_TEXT, COST_TITLE,
};
use callboard_domain::locator::{self, Argument, Chain, MAX_CHAIN_BYTES, Value};

/// Calls that find an element, in the order of the page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target(pub(super) Vec<Call>);

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// Method.
    pub(super) name: String,
    /// Arguments.
    pub(super) args: Vec<Arg>,
}

/// What an argument of a locator can be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Arg {
    /// A text, which may hold placeholders.
    Text(String),
    /// A regular expression, as it was written.
    Pattern { source: String, flags: String },
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Options.
    Object(Vec<(String, Arg)>),
    /// Several.
    List(Vec<Arg>),
    /// Another locator, such as that of `filter({ has: … })`.
    Chain(Target),
}

impl Target {
    /// What a step acts on; `None` when it names nothing.
    ///
    /// # Errors
    /// Says what is wrong with its locator.
    pub(super) fn from_step(step: &Step) -> Result<Option<Self>, String> {
        if let Some(locator) = &step.locator {
            return Self::read(locator).map(Some);
        }
        let call = |name: &str, args| Some(Self(vec![Call { name: name.to_owned(), args }]));
        if let Some(id) = &step.test_id {
            return Ok(call("getByTestId", vec![Arg::Text(id.clone())]));
        }
        let Some(role) = &step.role else { return Ok(None) };
        let mut args = vec![Arg::Text(role.clone())];
        if let Some(name) = &step.name {
            args.push(Arg::Object(vec![("name".to_owned(), Arg::Text(name.clone()))]));
        }
        Ok(call("getByRole", args))
    }

    /// Reads a locator: `getByRole('button', { name: 'Pay' })`, with or without
    /// `page.` before it.
    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_CHAIN_BYTES {
            return Err(format!("a locator has at most {MAX_CHAIN_BYTES} bytes"));
        }
        let chain = locator::parse(text).filter(|chain| chain.range.end == text.len());
        let chain = chain.ok_or("this is no locator as Playwright writes it, such as getByTestId('pay')")?;
        Self::of_chain(text, &chain)
    }

    fn of_chain(text: &str, chain: &Chain) -> Result<Self, String> {
        if !["", "page"].contains(&&text[chain.root.clone()]) {
            return Err("a locator begins with a call on the page".to_owned());
        }
        if !chain.calls.first().is_some_and(locator::Call::is_finder) {
            return Err("a locator begins with a call that finds, such as getByRole".to_owned());
        }
        let calls = chain.calls.iter().map(|call| {
            if !call.is_locator() {
                return Err(format!("{} is no part of a locator", call.name));
            }
            let args = call.arguments.iter().map(|argument| Arg::from_text(text, argument));
            Ok(Call { name: call.name.clone(), args: args.collect::<Result<_, _>>()? })
        });
        Ok(Self(calls.collect::<Result<_, _>>()?))
    }

    /// What it costs to rely on it: of the earlier calls the more, as all that
    /// follow rest on them.
    pub(super) fn cost(&self) -> u64 {
        let calls = self.0.iter().rev().enumerate();
        calls.map(|(behind, call)| call.cost().saturating_mul(behind as u64 + 1)).fold(0, u64::saturating_add)
    }

    /// Whether the element is one of several by its place.
    pub(super) fn picks_by_position(&self) -> bool {
        self.0.iter().any(|call| matches!(call.name.as_str(), "nth" | "first" | "last"))
    }

    /// Whether a selector finds it.
    pub(super) fn uses_css(&self) -> bool {
        self.0.iter().any(|call| matches!(call.name.as_str(), "locator" | "frameLocator"))
    }

    /// Every text in it, in the order written.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        self.0.iter().flat_map(|call| &call.args).for_each(|arg| arg.texts(&mut texts));
        texts
    }
}

impl Call {
    fn cost(&self) -> u64 {
        let first = match self.args.first() {
            Some(Arg::Text(text)) => text.as_str(),
            _ => "",
        };
        match self.name.as_str() {
            "getByTestId" => COST_TEST_ID,
            "getByRole" if self.args.len() > 1 => COST_ROLE_NAME,
            "getByRole" => COST_ROLE,
            "getByPlaceholder" => COST_PLACEHOLDER,
            "getByLabel" => COST_LABEL,
            "getByAltText" => COST_ALT,
            "getByText" => COST_TEXT,
            "getByTitle" => COST_TITLE,
            "nth" | "first" | "last" => COST_NTH,
            "locator" if is_id(first) => COST_ID,
            "locator" | "frameLocator" => COST_CSS,
            // They narrow what was found and cost nothing of their own.
            _ => 0,
        }
    }
}

/// Whether a selector is an id and nothing else.
fn is_id(selector: &str) -> bool {
    let is_word = |id: &str| id.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'));
    selector.strip_prefix('#').is_some_and(|id| !id.is_empty() && is_word(id))
}

impl Arg {
    fn from_text(text: &str, argument: &Argument) -> Result<Self, String> {
        let written = &text[argument.range.clone()];
        Ok(match &argument.value {
            Value::Text(_) if written.starts_with('`') => {
                return Err("a template text cannot stand in a locator; write it in quotes".to_owned());
            }
            Value::Text(text) => Self::Text(text.clone()),
            Value::Pattern { source, flags } => {
                let is_plain = !source.is_empty() && !source.chars().any(is_line_end_or_control);
                if !is_plain || !flags.chars().all(|flag| "gimsuy".contains(flag)) {
                    return Err("this is no regular expression that can be kept".to_owned());
                }
                Self::Pattern { source: source.clone(), flags: flags.clone() }
            }
            Value::Number(number) if number.is_finite() => Self::Number(*number),
            Value::Object(properties) => Self::Object(
                properties
                    .iter()
                    .map(|property| match super::read::is_identifier(&property.name) {
                        true => Ok((property.name.clone(), Self::from_text(text, &property.value)?)),
                        false => Err("the name of an option is an identifier".to_owned()),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Value::List(list) => {
                Self::List(list.iter().map(|each| Self::from_text(text, each)).collect::<Result<_, _>>()?)
            }
            Value::Chain(chain) => Self::Chain(Target::of_chain(text, chain)?),
            Value::Expression if written == "true" => Self::Flag(true),
            Value::Expression if written == "false" => Self::Flag(false),
            Value::Number(_) | Value::Expression => {
                return Err(
                    "only texts, numbers, patterns, options and locators can stand in a locator".to_owned()
                );
            }
        })
    }

    fn texts<'a>(&'a self, found: &mut Vec<&'a str>) {
        match self {
            Self::Text(text) => found.push(text),
            Self::Object(options) => options.iter().for_each(|(_, arg)| arg.texts(found)),
            Self::List(list) => list.iter().for_each(|arg| arg.texts(found)),
            Self::Chain(target) => found.extend(target.texts()),
            Self::Pattern { .. } | Self::Number(_) | Self::Flag(_) => {}
        }
    }
}

fn is_line_end_or_control(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}
