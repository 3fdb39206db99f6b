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
/// Characters of a canonical chain, and of one text in it.
const MAX_CHARS: usize = 400;
const MAX_TEXT_CHARS: usize = 120;

/// The canonical form of the locator that a chain begins with; empty when it
/// begins with none.
pub(super) fn canonical(chain: &Chain, source: &Source<'_>) -> String {
    let parts: Vec<String> = chain.locator_calls().iter().filter_map(|call| part(call, source)).collect();
    cut_str(&parts.join(" >> "), MAX_CHARS).to_owned()
}

/// The canonical form of a selector from before there were locators.
pub(super) fn selector(text: &str) -> String {
    cut_str(&by_selector(text), MAX_CHARS).to_owned()
}

fn part(call: &Call, source: &Source<'_>) -> Option<String> {
    let text = |key: &str| Some(format!("{key}={}", argument(call, None, call.arguments.first(), source)));
    match call.name.as_str() {
        "getByRole" => Some(role(call, source)),
        "getByTestId" => text("testid"),
        "getByText" => text("text"),
        "getByLabel" => text("label"),
        "getByPlaceholder" => text("ph"),
        "getByAltText" => text("alt"),
        "getByTitle" => text("title"),
        "locator" => Some(
            match call.text() {
                Some(given) => match source.without_data("locator", None, given) {
                    None => by_selector(given),
                    Some(shape) if shape == ANY => format!("css={ANY}"),
                    Some(shape) => by_selector(&shape),
                },
                None => format!("css={ANY}"),
            } + &filters(call),
        ),
        "frameLocator" => Some(match call.text() {
            Some(given) => {
                let said = source.without_data("frameLocator", None, given);
                let said = said.as_deref().unwrap_or(given);
                format!("frame={}", mask::identifier(cut_str(said, MAX_TEXT_CHARS)))
            }
            None => format!("frame={ANY}"),
        }),
        "contentFrame" => Some("frame".to_owned()),
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
