//! What a locator finds on a page, as far as what is known of it can tell.

use std::ops::Range;

use super::aria::is_field;
use super::element::Element;
use super::page::Page;
use callboard_domain::locator::{self, Call, Value};

/// What a locator finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Places among the elements of the page, in its order; `None` for what is
    /// not listed there.
    pub places: Vec<Option<usize>>,
    /// Whether it surely finds all of that: an accessibility tree often leaves
    /// open whether a name is also a text or a label.
    pub is_certain: bool,
}

impl Found {
    /// The listed element that is surely found alone.
    #[must_use]
    pub fn only(&self) -> Option<usize> {
        match self.places.as_slice() {
            [only] if self.is_certain => *only,
            _ => None,
        }
    }
}

/// What the locator a text begins with finds. `None` when that cannot be told:
/// for most styles, filters, patterns and frames.
#[must_use]
pub fn found_by(text: &str, page: &Page) -> Option<Found> {
    let chain = locator::parse(text)?;
    let mut within = page.all();
    let mut found: Vec<usize> = within.clone().collect();
    let mut is_certain = true;
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
                let is_sure;
                (found, is_sure) = found_within(text, call, page, within)?;
                is_certain &= is_sure;
                let is_last = calls[index + 1..].iter().all(|call| !call.is_finder());
                within = match found.as_slice() {
                    _ if is_last => page.all(),
                    [only] => page.inside(*only),
                    _ => return None,
                };
            }
        }
    }
    Some(Found { places: found.into_iter().map(|node| page.place_of(node)).collect(), is_certain })
}

/// The nodes that one call finds, and whether it surely finds all of them.
fn found_within(text: &str, call: &Call, page: &Page, within: Range<usize>) -> Option<(Vec<usize>, bool)> {
    let wanted = call.text().filter(|wanted| !wanted.trim().is_empty())?;
    let is_exact = match call.option("exact") {
        Some(exact) => text.get(exact.range.clone())?.parse().ok()?,
        None => false,
    };
    let lower = wanted.to_lowercase();
    let says = |value: &str| if is_exact { value == wanted } else { value.to_lowercase().contains(&lower) };
    let all = |matches: &dyn Fn(&Element) -> bool| -> Vec<usize> {
        within.clone().filter(|&node| matches(page.node(node))).collect()
    };
    Some(match call.name.as_str() {
        "getByRole" => (by_role(call, wanted, is_exact, &all)?, true),
        "getByText" => page.saying(wanted, is_exact, within.clone()),
        // Its name is its label, unless it is a placeholder or a title.
        "getByLabel" if !page.has_attributes() => {
            (all(&|element| is_field(&element.role) && says(&element.name)), false)
        }
        _ if !page.has_attributes() => return None,
        "getByTestId" => (all(&|element| element.test_id == wanted), true),
        "getByLabel" => (all(&|element| says(&element.label)), true),
        "getByPlaceholder" => (all(&|element| says(&element.placeholder)), true),
        "getByAltText" => (all(&|element| says(&element.alt)), true),
        "getByTitle" => (all(&|element| says(&element.title)), true),
        "locator" => {
            styled(wanted, &Element::default())?;
            (all(&|element| styled(wanted, element) == Some(true)), true)
        }
        _ => return None,
    })
}

type All<'a> = dyn Fn(&dyn Fn(&Element) -> bool) -> Vec<usize> + 'a;

fn by_role(call: &Call, role: &str, is_exact: bool, all: &All<'_>) -> Option<Vec<usize>> {
    let is_known = call.options().iter().all(|option| matches!(option.name.as_str(), "name" | "exact"));
    let name = match call.option("name").map(|name| &name.value) {
        _ if !is_known => return None,
        None => return Some(all(&|element| element.role == role)),
        Some(Value::Text(name)) => name,
        Some(_) => return None,
    };
    let lower = name.to_lowercase();
    let is_named = |own: &str| if is_exact { own == name } else { own.to_lowercase().contains(&lower) };
    Some(all(&|element| element.role == role && is_named(&element.name)))
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
    use crate::healing::{aria, locators};

    const PAGE: &str = r#"
- region "Orders":
  - heading "Orders"
  - button "Edit"
  - button "Edit all"
  - text: Nothing to edit yet
- region "Orders archive":
  - button "Edit"
- paragraph: Edit here
- img "Logo"
- textbox "Search"
- iframe "Help":
  - button "Ask"
"#;

    fn places(text: &str, page: &Page) -> Option<Vec<Option<usize>>> {
        found_by(text, page).filter(|found| found.is_certain).map(|found| found.places)
    }

    #[test]
    fn every_locator_that_is_written_finds_its_element_only() {
        let page = aria::page(PAGE);
        for index in 0..page.elements().len() {
            for priced in locators(&page, index) {
                let written = priced.locator.written('\'');
                let found = found_by(&written, &page).and_then(|found| found.only());
                assert_eq!(found, Some(index), "{written}");
            }
        }
    }

    #[test]
    fn what_a_page_cannot_tell_is_not_told() {
        let page = aria::page(PAGE);
        let found = |text: &str| places(text, &page);
        let at = |places: &[usize]| Some(places.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(found("getByRole('button', { name: 'edit' })"), at(&[2, 3, 5]));
        assert_eq!(found("getByRole('button', { name: 'edit', exact: false }).nth(2)"), at(&[5]));
        assert_eq!(found("getByRole('button', { name: 'Edit', exact: true }).last()"), at(&[5]));
        assert_eq!(found("getByRole('region', { name: 'archive' }).getByRole('button')"), at(&[5]));
        assert_eq!(found("getByRole('button', { name: 'Edit all' }).getByText('x')"), at(&[]));
        assert_eq!(found("getByText('edit here')"), at(&[6]));
        assert_eq!(found("getByText('Nothing to')"), Some(vec![None]), "it is there, and no element");
        assert_eq!(found("getByText('gone')"), at(&[]));
        assert_eq!(found("getByText('Logo')"), at(&[]), "an image says nothing");
        assert_eq!(found("getByRole('button', { name: 'Ask' })"), at(&[]), "a frame is another page");
        for unknown in [
            "getByRole('button', { name: /edit/ })",
            "getByRole('button', { name: 'Edit', exact: isExact })",
            "getByRole('button', { pressed: true })",
            "locator('div > button')",
            "locator('button')",
            "getByTestId('edit')",
            "getByText('Edit all')",
            "getByLabel('Search')",
            "getByRole('button').filter({ hasText: 'x' })",
            "getByRole('region').getByText('x')",
            "frameLocator('#f').getByText('x')",
            "locator('#f').contentFrame().getByText('x')",
        ] {
            assert_eq!(found(unknown), None, "{unknown}");
        }
        let perhaps = found_by("getByLabel('Search')", &page).expect("may be there");
        assert_eq!(perhaps, Found { places: vec![Some(8)], is_certain: false });
        assert_eq!(perhaps.only(), None);
    }
}
