//! What a locator finds on a page, as far as an inventory of it can tell.

use super::element::Element;
use crate::locator::{Call, Chain, Value};

/// Places of the elements a locator finds. `None` when that cannot be told
/// from the inventory: for styles, filters, patterns and frames.
#[must_use]
pub fn found_by(chain: &Chain, page: &[Element]) -> Option<Vec<usize>> {
    let mut found: Vec<usize> = (0..page.len()).collect();
    let mut within: Option<String> = None;
    let calls = chain.locator_calls();
    for (index, call) in calls.iter().enumerate() {
        match call.name.as_str() {
            "first" => found.truncate(1),
            "last" => found = found.last().copied().into_iter().collect(),
            "nth" => {
                let Value::Number(place) = call.arguments.first()?.value else { return None };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "bounded just before"
                )]
                let place = if (0.0..10_000.0).contains(&place) { place as usize } else { return None };
                found = found.get(place).copied().into_iter().collect();
            }
            _ if !call.is_finder() => return None,
            _ => {
                let in_landmark = |element: &Element| {
                    within.as_ref().is_none_or(|within| element.landmarks.contains(within))
                };
                let mut kept = Vec::new();
                for (place, element) in page.iter().enumerate() {
                    if in_landmark(element) && matches(call, element)? {
                        kept.push(place);
                    }
                }
                found = kept;
                let is_last = calls[index + 1..].iter().all(|call| !call.is_finder());
                if !is_last {
                    // Inside of a landmark is the only inside that is known.
                    let [only] = found.as_slice() else { return None };
                    let element = &page[*only];
                    if call.name != "getByRole" || !super::element::LANDMARKS.contains(&element.role.as_str())
                    {
                        return None;
                    }
                    within = Some(if element.name.is_empty() {
                        element.role.clone()
                    } else {
                        format!("{}:{}", element.role, element.name)
                    });
                }
            }
        }
    }
    Some(found)
}

/// Whether one call finds an element; `None` when that cannot be told.
fn matches(call: &Call, element: &Element) -> Option<bool> {
    let wanted = call.text()?;
    let is_exact = call.option("exact").is_some();
    let is_part = |value: &str, wanted: &str| {
        if is_exact { value == wanted } else { value.to_lowercase().contains(&wanted.to_lowercase()) }
    };
    Some(match call.name.as_str() {
        "getByRole" => {
            let name = match call.option("name").map(|name| &name.value) {
                None => None,
                Some(Value::Text(name)) => Some(name.as_str()),
                Some(_) => return None,
            };
            let is_known =
                call.options().iter().all(|option| matches!(option.name.as_str(), "name" | "exact"));
            if !is_known {
                return None;
            }
            element.role == wanted && name.is_none_or(|name| is_part(&element.name, name))
        }
        "getByTestId" => element.test_id == wanted,
        "getByText" => !element.text.is_empty() && is_part(&element.text, wanted),
        "getByLabel" => !element.label.is_empty() && is_part(&element.label, wanted),
        "getByPlaceholder" => !element.placeholder.is_empty() && is_part(&element.placeholder, wanted),
        "getByAltText" => !element.alt.is_empty() && is_part(&element.alt, wanted),
        "getByTitle" => !element.title.is_empty() && is_part(&element.title, wanted),
        "locator" => return styled(wanted, element),
        _ => return None,
    })
}

/// The few selectors that name one property: `#id`, `tag`, `.class`,
/// `tag.class`, `[name="value"]`.
fn styled(selector: &str, element: &Element) -> Option<bool> {
    let is_word = |text: &str| {
        !text.is_empty() && text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'))
    };
    if let Some(id) = selector.strip_prefix('#') {
        return is_word(id).then(|| element.id == id);
    }
    if let Some(name) = selector.strip_prefix("[name=\"").and_then(|rest| rest.strip_suffix("\"]")) {
        return (!name.contains('"')).then(|| element.name_attr == name);
    }
    let mut parts = selector.split('.');
    let tag = parts.next()?;
    let classes: Vec<&str> = parts.collect();
    if !(tag.is_empty() || is_word(tag)) || !classes.iter().all(|class| is_word(class)) || selector.is_empty()
    {
        return None;
    }
    Some(
        (tag.is_empty() || element.tag == tag)
            && classes.iter().all(|class| element.classes.iter().any(|own| own == class)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::healing::locators;
    use crate::locator::parse;

    fn page() -> Vec<Element> {
        let element = |role: &str, name: &str, landmarks: &[&str]| Element {
            role: role.into(),
            name: name.into(),
            text: name.into(),
            tag: "button".into(),
            id: format!("id-{name}").replace(' ', "-"),
            landmarks: landmarks.iter().map(|&landmark| landmark.to_owned()).collect(),
            ..Element::default()
        };
        vec![
            element("region", "Orders", &[]),
            element("button", "Edit", &["region:Orders"]),
            element("button", "Edit all", &["region:Orders"]),
            element("region", "Teams", &[]),
            element("button", "Edit", &["region:Teams"]),
        ]
    }

    #[test]
    fn every_locator_that_is_written_finds_its_element_only() {
        let page = page();
        for index in 0..page.len() {
            for priced in locators(&page, index) {
                let written = priced.locator.written('\'');
                let found = found_by(&parse(&written).expect("is a chain"), &page);
                assert_eq!(found, Some(vec![index]), "{written}");
            }
        }
    }

    #[test]
    fn what_an_inventory_cannot_tell_is_not_told() {
        let page = page();
        let found = |text: &str| found_by(&parse(text).expect("is a chain"), &page);
        assert_eq!(found("getByRole('button', { name: 'edit' })"), Some(vec![1, 2, 4]));
        assert_eq!(found("getByRole('button', { name: 'edit' }).nth(2)"), Some(vec![4]));
        assert_eq!(found("getByText('gone')"), Some(vec![]));
        for unknown in [
            "getByRole('button', { name: /edit/ })",
            "getByRole('button', { pressed: true })",
            "locator('div > button')",
            "getByRole('button').filter({ hasText: 'x' })",
            "getByRole('button', { name: 'Edit all' }).getByText('x')",
            "frameLocator('#f').getByText('x')",
        ] {
            assert_eq!(found(unknown), None, "{unknown}");
        }
    }
}
