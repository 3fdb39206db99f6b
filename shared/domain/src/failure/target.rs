//! A locator chain in one canonical way, with its data left out:
//! `role=row[<*>] >> role=button[Remove]`.

use super::mask;
use super::source::Source;
use crate::locator::{Argument, Call, Chain, Value};
use crate::text::cut_str;

/// Roles whose names are what the application shows: a row is named by its
/// content.
const RECORD_ROLES: [&str; 10] =
    ["row", "listitem", "cell", "gridcell", "option", "treeitem", "article", "rowheader", "figure", "img"];
/// What stands for data.
const ANY: &str = "<*>";
/// A step into a frame.
const FRAME: &str = "frame";
/// Characters of a canonical chain, and of one text in it.
const MAX_CHARS: usize = 400;
const MAX_TEXT_CHARS: usize = 120;

/// The canonical form of the locator that a chain begins with; empty when it
/// begins with none.
pub(super) fn canonical(chain: &Chain, source: &Source<'_>) -> String {
    let calls = chain.locator_calls();
    let mut parts: Vec<String> = Vec::new();
    // `frameLocator('#pay').first()` is `locator('#pay').first().contentFrame()`.
    let mut enters_frame = false;
    for (at, call) in calls.iter().enumerate() {
        if enters_frame && !is_position(call) {
            parts.push(FRAME.to_owned());
            enters_frame = false;
        }
        let behind = calls[at + 1..].iter().find(|call| !is_position(call));
        let is_frame = call.name == "frameLocator" || behind.is_some_and(|call| call.name == "contentFrame");
        parts.extend(part(call, source, is_frame));
        enters_frame |= call.name == "frameLocator";
    }
    if enters_frame {
        parts.push(FRAME.to_owned());
    }
    cut_str(&parts.join(" >> "), MAX_CHARS).to_owned()
}

fn is_position(call: &Call) -> bool {
    matches!(call.name.as_str(), "first" | "last" | "nth")
}

/// The canonical form of a selector from before there were locators.
pub(super) fn selector(text: &str) -> String {
    cut_str(&by_selector(text), MAX_CHARS).to_owned()
}

/// One call. A locator of a frame was written as `frameLocator` or as
/// `locator`, whatever a version of Playwright calls it.
fn part(call: &Call, source: &Source<'_>, is_frame: bool) -> Option<String> {
    let text = |key: &str| Some(format!("{key}={}", argument(call, None, call.arguments.first(), source)));
    match call.name.as_str() {
        "getByRole" => Some(role(call, source)),
        "getByTestId" => text("testid"),
        "getByText" => text("text"),
        "getByLabel" => text("label"),
        "getByPlaceholder" => text("ph"),
        "getByAltText" => text("alt"),
        "getByTitle" => text("title"),
        "locator" | "frameLocator" => {
            let methods: &[&str] = if is_frame { &["locator", "frameLocator"] } else { &["locator"] };
            let selector = match call.text() {
                Some(given) => {
                    match methods.iter().find_map(|method| source.without_data(method, None, given)) {
                        None => by_selector(given),
                        Some(shape) if shape == ANY => format!("css={ANY}"),
                        Some(shape) => by_selector(&shape),
                    }
                }
                None => format!("css={ANY}"),
            };
            Some(selector + &filters(call))
        }
        "contentFrame" => Some(FRAME.to_owned()),
        "filter" => Some(format!("filter{}", filters(call))),
        "and" | "or" => {
            let inner = match call.arguments.first().map(|argument| &argument.value) {
                Some(Value::Chain(chain)) => canonical(chain, source),
                _ => ANY.to_owned(),
            };
            Some(format!("{}[{inner}]", call.name))
        }
        "first" | "last" | "nth" => Some(call.name.clone()),
        _ => None,
    }
}

fn role(call: &Call, source: &Source<'_>) -> String {
    let role = call.text().unwrap_or(ANY);
    match call.option("name") {
        None => format!("role={role}"),
        Some(_) if RECORD_ROLES.contains(&role) => format!("role={role}[{ANY}]"),
        given => format!("role={role}[{}]", argument(call, Some("name"), given, source)),
    }
}

fn argument(call: &Call, option: Option<&str>, given: Option<&Argument>, source: &Source<'_>) -> String {
    match given.map(|argument| &argument.value) {
        Some(Value::Text(text)) => {
            let said = source.without_data(&call.name, option, text);
            let said = cut_str(said.as_deref().unwrap_or(text).trim(), MAX_TEXT_CHARS);
            if call.name == "getByTestId" { mask::identifier(said) } else { mask::text(said) }
        }
        Some(Value::Pattern { source, .. }) => {
            format!("/{}/", mask::identifier(cut_str(source, MAX_TEXT_CHARS)))
        }
        _ => ANY.to_owned(),
    }
}

fn by_selector(text: &str) -> String {
    let text = cut_str(text.trim(), MAX_TEXT_CHARS);
    let has_engine = text.split_once('=').is_some_and(|(engine, _)| {
        matches!(engine, "xpath" | "text" | "id" | "role" | "data-testid" | "data-test" | "data-test-id")
            || engine.starts_with("internal:")
    });
    let text_or_path = if has_engine {
        text.to_owned()
    } else if text.starts_with("//") || text.starts_with("..") {
        format!("xpath={text}")
    } else {
        format!("css={}", text.strip_prefix("css=").unwrap_or(text))
    };
    mask::identifier(&text_or_path)
}

/// Which filters a call has, without their values.
fn filters(call: &Call) -> String {
    let mut names: Vec<&str> = call
        .options()
        .iter()
        .map(|property| property.name.as_str())
        .filter(|name| matches!(*name, "has" | "hasNot" | "hasText" | "hasNotText" | "visible"))
        .collect();
    names.sort_unstable();
    if names.is_empty() { String::new() } else { format!("[{}]", names.join(",")) }
}
