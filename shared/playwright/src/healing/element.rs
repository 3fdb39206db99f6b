//! An element of a page as far as it is known. Everything may be missing:
//! an accessibility snapshot knows role and name only.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use callboard_domain::text::cut_str;

/// Characters that are compared of one property.
const MAX_CHARS: usize = 160;
/// Landmarks kept, nearest first.
const MAX_LANDMARKS: usize = 12;
/// Roles that divide a page; an element is known by those it lies in.
pub const LANDMARKS: [&str; 11] = [
    "banner",
    "complementary",
    "contentinfo",
    "dialog",
    "form",
    "main",
    "navigation",
    "region",
    "search",
    "table",
    "alertdialog",
];

/// What is known of one element. An empty text is a property it does not have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Element {
    /// ARIA role.
    pub role: String,
    /// Accessible name.
    pub name: String,
    /// Own text, for elements that are found by it.
    pub text: String,
    /// Tag name, lower case.
    pub tag: String,
    /// `id` attribute.
    pub id: String,
    /// `name` attribute.
    pub name_attr: String,
    /// `type` attribute.
    pub r#type: String,
    /// Test id.
    pub test_id: String,
    /// Path of `href`, without query.
    pub href: String,
    /// `alt` attribute.
    pub alt: String,
    /// `title` attribute.
    pub title: String,
    /// `placeholder` attribute.
    pub placeholder: String,
    /// Label of a form field.
    pub label: String,
    /// Words of `class`.
    pub classes: Vec<String>,
    /// Landmarks around it, nearest first: `role` or `role:label`.
    pub landmarks: Vec<String>,
    /// Names of the four interactive elements before and after it.
    pub near: Vec<String>,
    /// Tags from the nearest ancestor with an id.
    pub path: String,
    /// Place among the elements of the page, 0 to 1.
    pub order: Option<f64>,
}

/// The name in lower case, as locators look for it, and the other properties.
pub(super) type Key<'a> = (String, [&'a str; 6]);

impl Element {
    /// Reads the description a reporter sent along with a locator.
    #[must_use]
    pub fn from_capture(captured: &Map<String, Value>, test_id_attribute: &str) -> Self {
        let empty = Map::new();
        let attributes = captured.get("attributes").and_then(Value::as_object).unwrap_or(&empty);
        let attribute = |name: &str| text_of(attributes.get(name));
        let of = |name: &str| text_of(captured.get(name));
        let tag = of("tagName").to_ascii_lowercase();
        let role = captured.get("rolePosition").and_then(|position| position.get("role"));
        let role = Some(text_of(role)).filter(|role| !role.is_empty());
        let aria_label = attribute("aria-label");
        let is_field = matches!(tag.as_str(), "input" | "select" | "textarea");
        let name = of("accessibleName");
        Self {
            role: role.unwrap_or_else(|| {
                implied_role(&tag, &|name| attributes.get(name).and_then(Value::as_str)).to_owned()
            }),
            label: if is_field && !name.is_empty() && name != attribute("placeholder") {
                name.clone()
            } else {
                aria_label
            },
            name,
            text: of("textContent"),
            id: attribute("id"),
            name_attr: attribute("name"),
            r#type: attribute("type"),
            test_id: attribute(test_id_attribute),
            href: path_of(&attribute("href")),
            alt: attribute("alt"),
            title: attribute("title"),
            placeholder: attribute("placeholder"),
            classes: words(&attribute("class")),
            landmarks: captured_landmarks(captured),
            near: list_of(captured.get("near")),
            path: captured_path(captured, &tag),
            order: captured.get("order").and_then(Value::as_f64),
            tag,
        }
    }

    /// What makes two elements the same one for the rule about elements that
    /// were there before.
    pub(super) fn key(&self) -> Key<'_> {
        let others = [&*self.role, &*self.href, &*self.id, &*self.test_id, &*self.name_attr, &*self.tag];
        (self.name.to_lowercase(), others)
    }

    /// The same for pages that know role and name only.
    pub(super) fn key_by_name(&self) -> Key<'_> {
        (self.name.to_lowercase(), [&*self.role, "", "", "", "", ""])
    }
}

fn text_of(value: Option<&Value>) -> String {
    cut_str(value.and_then(Value::as_str).unwrap_or_default().trim(), MAX_CHARS).to_owned()
}

fn list_of(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().take(MAX_LANDMARKS).map(|item| text_of(Some(item))).collect()
}

pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().take(30).map(str::to_owned).collect()
}

/// Without origin, query and fragment.
pub(super) fn path_of(href: &str) -> String {
    let href = href.split(['?', '#']).next().unwrap_or_default();
    let path = match href.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => href,
    };
    cut_str(path, MAX_CHARS).to_owned()
}

fn captured_landmarks(captured: &Map<String, Value>) -> Vec<String> {
    if captured.contains_key("landmarks") {
        return list_of(captured.get("landmarks"));
    }
    let ancestors =
        captured.get("ancestors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let landmark = |ancestor: &Value| {
        let role = text_of(ancestor.get("role"));
        let label = text_of(ancestor.get("ariaLabel"));
        LANDMARKS
            .contains(&role.as_str())
            .then(|| if label.is_empty() { role.clone() } else { format!("{role}:{label}") })
    };
    ancestors.iter().filter_map(landmark).take(MAX_LANDMARKS).collect()
}

/// Tags from the outermost known ancestor, or from the nearest one with an id.
fn captured_path(captured: &Map<String, Value>, tag: &str) -> String {
    if captured.contains_key("path") {
        return text_of(captured.get("path"));
    }
    let ancestors =
        captured.get("ancestors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut steps = vec![tag.to_owned()];
    for ancestor in ancestors {
        let id = text_of(ancestor.get("id"));
        if !id.is_empty() {
            steps.push(format!("#{id}"));
            break;
        }
        steps.push(text_of(ancestor.get("tag")));
    }
    steps.reverse();
    steps.join("/")
}

/// The role an element has without a `role` attribute, for the common tags;
/// empty for those without one. `attribute` reads an attribute.
pub(super) fn implied_role<'a>(tag: &str, attribute: &dyn Fn(&str) -> Option<&'a str>) -> &'static str {
    let input_type = attribute("type").unwrap_or("text");
    match tag {
        "a" if attribute("href").is_some() => "link",
        "article" => "article",
        "aside" => "complementary",
        "button" | "summary" => "button",
        "dialog" => "dialog",
        "footer" => "contentinfo",
        "form" if attribute("aria-label").is_some() => "form",
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => "heading",
        "header" => "banner",
        "img" => "img",
        "li" => "listitem",
        "main" => "main",
        "nav" => "navigation",
        "ol" | "ul" => "list",
        "option" => "option",
        "output" => "status",
        "progress" => "progressbar",
        "section" if attribute("aria-label").is_some() => "region",
        "select" if attribute("multiple").is_some() => "listbox",
        "select" => "combobox",
        "table" => "table",
        "td" => "cell",
        "th" => "columnheader",
        "tr" => "row",
        "textarea" => "textbox",
        "input" => match input_type {
            "button" | "submit" | "reset" | "image" => "button",
            "checkbox" => "checkbox",
            "radio" => "radio",
            "range" => "slider",
            "number" => "spinbutton",
            "search" => "searchbox",
            "email" | "tel" | "text" | "url" => "textbox",
            _ => "",
        },
        _ => "",
    }
}
