//! Locators for an element, each with what it costs: the cheaper, the less a
//! change of the page will break it. The order of kinds is that of
//! Playwright's own generator. Only locators that find this element and
//! nothing else on the page are kept.

use serde_json::{Map, Value, json};

use super::element::Element;
use super::page::Page;
use super::resolve::found_by;

/// Longest text that is put into a locator, in characters.
const MAX_TEXT_CHARS: usize = 80;
/// From this cost on a locator is one of the last resort.
const LAST_RESORT: u64 = 500;
pub(crate) const COST_TEST_ID: u64 = 1;
pub(crate) const COST_ROLE_NAME: u64 = 100;
pub(crate) const COST_PLACEHOLDER: u64 = 120;
pub(crate) const COST_LABEL: u64 = 140;
pub(crate) const COST_ALT: u64 = 160;
pub(crate) const COST_TEXT: u64 = 180;
pub(crate) const COST_TITLE: u64 = 200;
pub(crate) const COST_ID: u64 = 500;
pub(crate) const COST_ROLE: u64 = 510;
const COST_TAG: u64 = 530;
pub(crate) const COST_NTH: u64 = 10_000;
pub(crate) const COST_CSS: u64 = 10_000_000;

/// One call of a chain, such as `getByRole('button', { name: 'Pay' })`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Method.
    pub method: &'static str,
    /// Arguments: texts, numbers, and objects of options.
    pub args: Vec<Value>,
}

/// A chain of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Locator(pub Vec<Call>);

/// A locator and its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    /// The chain.
    pub locator: Locator,
    /// The lower, the longer it will hold.
    pub cost: u64,
}

/// Which locator to use.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// What to write: of the kind the test uses, when that is good enough.
    pub recommended: Priced,
    /// What will hold longest.
    pub durable: Priced,
    /// Whether the recommended one uses the method the test used.
    pub preserves_convention: bool,
    /// Whether the most durable one is another one.
    pub has_durable_alternative: bool,
    /// Whether nothing good exists, and the element should get a test id.
    pub suggest_add_test_id: bool,
}

impl Locator {
    /// The method that finds the element: the last one that does not only
    /// narrow what another found.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.deciding().map_or("locator", |call| call.method)
    }

    /// Arguments of that method.
    #[must_use]
    pub fn args(&self) -> &[Value] {
        self.deciding().map_or(&[], |call| &call.args)
    }

    fn deciding(&self) -> Option<&Call> {
        self.0.iter().rev().find(|call| call.method != "nth")
    }

    /// The chain as code, texts between `quote`s (`'`, `"` or a backtick).
    #[must_use]
    pub fn written(&self, quote: char) -> String {
        let call = |call: &Call| {
            let args: Vec<String> = call.args.iter().map(|arg| literal(arg, quote)).collect();
            format!("{}({})", call.method, args.join(", "))
        };
        self.0.iter().map(call).collect::<Vec<_>>().join(".")
    }
}

/// A value as code. Texts are escaped, so what a page says never ends one.
fn literal(value: &Value, quote: char) -> String {
    match value {
        Value::String(text) => quoted(text, quote),
        Value::Object(fields) => {
            // The order people write them in.
            let (first, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| *key == "name");
            let fields = first.into_iter().chain(rest);
            let fields: Vec<String> =
                fields.map(|(key, value)| format!("{key}: {}", literal(value, quote))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// A text as a literal.
#[must_use]
pub fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            '\\' => out.push_str("\\\\"),
            '$' if quote == '`' => out.push_str("\\$"),
            char if char == quote => {
                out.push('\\');
                out.push(char);
            }
            char if char.is_control() => {}
            char => out.push(char),
        }
    }
    out.push(quote);
    out
}

/// Locators that find the element at `index` and nothing else, the cheapest
/// first.
#[must_use]
pub fn locators(page: &Page, index: usize) -> Vec<Priced> {
    let Some(element) = page.elements().get(index) else { return Vec::new() };
    let drafts = drafts(element);
    let mut found: Vec<Priced> = drafts.iter().filter_map(|draft| draft.alone(page, index, None)).collect();
    if let Some(anchor) = anchor(page, element) {
        let good = drafts.iter().filter(|draft| draft.cost < LAST_RESORT && draft.cost != COST_TEST_ID);
        found.extend(good.filter_map(|draft| draft.alone(page, index, Some(&anchor))));
    }
    found.extend(by_position(page, index));
    found.sort_by_key(|priced| priced.cost);
    found.dedup_by(|one, other| one.locator == other.locator);
    found.truncate(10);
    found
}

/// The element that a locator finds alone.
fn only(locator: &Locator, page: &Page) -> Option<usize> {
    found_by(&locator.written('\''), page)?.only()
}

/// What to use instead of a locator with the method `failing`.
#[must_use]
pub fn recommend(priced: &[Priced], failing: &str) -> Option<Recommendation> {
    let durable = priced.iter().min_by_key(|each| each.cost)?;
    let same = priced.iter().filter(|each| each.locator.method() == failing && each.cost < LAST_RESORT);
    let recommended = same.min_by_key(|each| each.cost).unwrap_or(durable);
    Some(Recommendation {
        preserves_convention: recommended.locator.method() == failing,
        has_durable_alternative: recommended != durable,
        suggest_add_test_id: durable.cost > LAST_RESORT,
        recommended: recommended.clone(),
        durable: durable.clone(),
    })
}

/// A call that may be written.
struct Draft<'a> {
    cost: u64,
    method: &'static str,
    /// What is looked for.
    text: &'a str,
    /// The name that goes with it.
    name: Option<&'a str>,
    /// Whether Playwright looks for a part of the text unless told otherwise.
    is_loose: bool,
}

impl Draft<'_> {
    /// The call, after `anchor` if there is one, when it finds the element at
    /// `index` alone; exact when it has to be.
    fn alone(&self, page: &Page, index: usize, anchor: Option<&Call>) -> Option<Priced> {
        let cost = self.cost + anchor.map_or(0, |_| 2 * COST_ROLE_NAME);
        let after_anchor = |call: Call| Locator(anchor.cloned().into_iter().chain([call]).collect());
        let loose = after_anchor(self.call(false));
        if only(&loose, page) == Some(index) {
            return Some(Priced { locator: loose, cost });
        }
        let exact = self.is_loose.then(|| after_anchor(self.call(true)));
        exact.filter(|exact| only(exact, page) == Some(index)).map(|locator| Priced { locator, cost })
    }

    fn call(&self, is_exact: bool) -> Call {
        let mut options = Map::new();
        if let Some(name) = self.name {
            options.insert("name".to_owned(), json!(name));
        }
        if is_exact {
            options.insert("exact".to_owned(), json!(true));
        }
        let options = (!options.is_empty()).then_some(Value::Object(options));
        Call { method: self.method, args: [json!(self.text)].into_iter().chain(options).collect() }
    }
}

fn drafts(element: &Element) -> Vec<Draft<'_>> {
    let usable = |text: &str| !text.is_empty() && text.chars().count() <= MAX_TEXT_CHARS;
    let mut found = Vec::new();
    let mut add = |cost, method, text, is_loose| {
        if usable(text) {
            found.push(Draft { cost, method, text, name: None, is_loose });
        }
    };
    add(COST_TEST_ID, "getByTestId", element.test_id.as_str(), false);
    add(COST_PLACEHOLDER, "getByPlaceholder", &element.placeholder, true);
    add(COST_LABEL, "getByLabel", &element.label, true);
    add(COST_ALT, "getByAltText", &element.alt, true);
    add(COST_TEXT, "getByText", &element.text, true);
    add(COST_TITLE, "getByTitle", &element.title, true);
    add(COST_ROLE, "getByRole", &element.role, false);
    if usable(&element.role) && usable(&element.name) {
        let (text, name) = (&element.role, Some(element.name.as_str()));
        found.push(Draft { cost: COST_ROLE_NAME, method: "getByRole", text, name, is_loose: true });
    }
    found
}

/// The nearest landmark with a name, for what is ambiguous in the page; none
/// when the landmark itself is.
fn anchor(page: &Page, element: &Element) -> Option<Call> {
    let (role, name) = element.landmarks.iter().find_map(|landmark| {
        landmark
            .split_once(':')
            .filter(|(_, label)| !label.is_empty() && label.chars().count() <= MAX_TEXT_CHARS)
    })?;
    let draft =
        Draft { cost: COST_ROLE_NAME, method: "getByRole", text: role, name: Some(name), is_loose: true };
    let calls = [draft.call(false), draft.call(true)];
    calls.into_iter().find(|call| only(&Locator(vec![call.clone()]), page).is_some())
}

/// By id, tag or place: what is left when nothing is said about the element.
fn by_position(page: &Page, index: usize) -> Vec<Priced> {
    let element = &page.elements()[index];
    let is_word = |text: &str| {
        !text.is_empty()
            && text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'))
            && !text.starts_with(|char: char| char.is_ascii_digit() || char == '-')
    };
    let mut drafts = Vec::new();
    let mut locate = |css: String, cost| {
        drafts.push(Priced {
            locator: Locator(vec![Call { method: "locator", args: vec![json!(css)] }]),
            cost,
        });
    };
    if is_word(&element.id) {
        locate(format!("#{}", element.id), COST_ID);
    }
    if is_word(&element.tag) {
        locate(element.tag.clone(), COST_TAG);
    }
    let classes: Vec<&String> = element.classes.iter().filter(|class| is_word(class)).take(3).collect();
    if is_word(&element.tag) && !classes.is_empty() {
        locate(classes.iter().fold(element.tag.clone(), |css, class| format!("{css}.{class}")), COST_CSS);
    }
    if !element.role.is_empty() && !element.name.is_empty() {
        let same = |each: &&Element| each.role == element.role && each.name == element.name;
        let place = page.elements()[..index].iter().filter(same).count();
        if page.elements().iter().filter(same).count() > 1 {
            let options = json!({ "name": element.name, "exact": true });
            let call = Call { method: "getByRole", args: vec![json!(element.role), options] };
            let nth = Call { method: "nth", args: vec![json!(place)] };
            drafts.push(Priced { locator: Locator(vec![call, nth]), cost: 2 * COST_ROLE_NAME + COST_NTH });
        }
    }
    drafts.retain(|draft| only(&draft.locator, page) == Some(index));
    drafts
}
