//! Locators for an element, each with what it costs: the cheaper, the less a
//! change of the page will break it. The order of kinds is that of
//! Playwright's own generator. Only locators that find exactly one element of
//! the page are kept.

use serde_json::{Map, Value, json};

use super::element::Element;

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

/// Locators that find `page[index]` and nothing else, the cheapest first.
#[must_use]
pub fn locators(page: &[Element], index: usize) -> Vec<Priced> {
    let Some(element) = page.get(index) else { return Vec::new() };
    let mut found: Vec<Priced> = drafts(element)
        .into_iter()
        .filter_map(|draft| {
            let call = draft.only_on(page)?;
            Some(Priced { locator: Locator(vec![call]), cost: draft.cost })
        })
        .collect();
    found.extend(anchored(page, element));
    found.extend(by_position(page, index));
    found.sort_by_key(|priced| priced.cost);
    found.dedup_by(|one, other| one.locator == other.locator);
    found.truncate(10);
    found
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

/// A call that may be written, and which property it compares.
struct Draft<'a> {
    cost: u64,
    method: &'static str,
    /// Arguments before the compared text, such as the role.
    role: Option<&'a str>,
    text: &'a str,
    read: fn(&Element) -> &str,
    /// Whether Playwright looks for a part of the text unless told otherwise.
    is_loose: bool,
}

impl Draft<'_> {
    fn matches(&self, element: &Element, exact: bool) -> bool {
        let value = (self.read)(element);
        self.role.is_none_or(|role| element.role == role)
            && if self.is_loose && !exact {
                value.to_lowercase().contains(&self.text.to_lowercase())
            } else {
                value == self.text
            }
    }

    /// The call, when it finds one element; exact when it has to be.
    fn only_on(&self, page: &[Element]) -> Option<Call> {
        let count = |exact| page.iter().filter(|element| self.matches(element, exact)).take(2).count();
        match (count(false), self.is_loose) {
            (1, _) => Some(self.call(false)),
            (2, true) if count(true) == 1 => Some(self.call(true)),
            _ => None,
        }
    }

    fn call(&self, exact: bool) -> Call {
        let mut options = Map::new();
        let mut args = Vec::new();
        match self.role {
            Some(role) => {
                args.push(json!(role));
                if !self.text.is_empty() {
                    options.insert("name".to_owned(), json!(self.text));
                }
            }
            None => args.push(json!(self.text)),
        }
        if exact {
            options.insert("exact".to_owned(), json!(true));
        }
        if !options.is_empty() {
            args.push(Value::Object(options));
        }
        Call { method: self.method, args }
    }
}

fn drafts(element: &Element) -> Vec<Draft<'_>> {
    let usable = |text: &str| !text.is_empty() && text.chars().count() <= MAX_TEXT_CHARS;
    let mut found = Vec::new();
    let mut add = |cost, method, text, read: fn(&Element) -> &str, is_loose| {
        if usable(text) {
            found.push(Draft { cost, method, role: None, text, read, is_loose });
        }
    };
    add(COST_TEST_ID, "getByTestId", &element.test_id, |each| &each.test_id, false);
    add(COST_PLACEHOLDER, "getByPlaceholder", &element.placeholder, |each| &each.placeholder, true);
    add(COST_LABEL, "getByLabel", &element.label, |each| &each.label, true);
    add(COST_ALT, "getByAltText", &element.alt, |each| &each.alt, true);
    add(COST_TEXT, "getByText", &element.text, |each| &each.text, true);
    add(COST_TITLE, "getByTitle", &element.title, |each| &each.title, true);
    if !element.role.is_empty() && usable(&element.name) {
        let text = &element.name;
        let role = Some(element.role.as_str());
        found.push(Draft {
            cost: COST_ROLE_NAME,
            method: "getByRole",
            role,
            text,
            read: |each| &each.name,
            is_loose: true,
        });
    }
    if !element.role.is_empty() {
        let role = Some(element.role.as_str());
        found.push(Draft {
            cost: COST_ROLE,
            method: "getByRole",
            role,
            text: "",
            read: |_| "",
            is_loose: true,
        });
    }
    found
}

/// From the nearest landmark with a name, for what is ambiguous in the page.
fn anchored(page: &[Element], element: &Element) -> Vec<Priced> {
    let Some((landmark, role, label)) = element.landmarks.iter().find_map(|landmark| {
        let (role, label) = landmark.split_once(':')?;
        (!label.is_empty() && label.chars().count() <= MAX_TEXT_CHARS).then_some((landmark, role, label))
    }) else {
        return Vec::new();
    };
    let inside: Vec<Element> =
        page.iter().filter(|each| each.landmarks.contains(landmark)).cloned().collect();
    let anchor = Call { method: "getByRole", args: vec![json!(role), json!({ "name": label })] };
    drafts(element)
        .into_iter()
        .filter(|draft| draft.cost < LAST_RESORT && draft.cost != COST_TEST_ID)
        .filter_map(|draft| {
            let call = draft.only_on(&inside)?;
            let chain = vec![anchor.clone(), call];
            Some(Priced { locator: Locator(chain), cost: 2 * COST_ROLE_NAME + draft.cost })
        })
        .collect()
}

/// By id, tag or place: what is left when nothing is said about the element.
fn by_position(page: &[Element], index: usize) -> Vec<Priced> {
    let element = &page[index];
    let mut found = Vec::new();
    let locate = |css: String| Call { method: "locator", args: vec![json!(css)] };
    let single = |count: usize| count == 1;
    let is_word = |text: &str| {
        !text.is_empty()
            && text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'))
            && !text.starts_with(|char: char| char.is_ascii_digit() || char == '-')
    };
    if is_word(&element.id) && single(page.iter().filter(|each| each.id == element.id).count()) {
        found.push(Priced { locator: Locator(vec![locate(format!("#{}", element.id))]), cost: COST_ID });
    }
    if is_word(&element.tag) && single(page.iter().filter(|each| each.tag == element.tag).count()) {
        found.push(Priced { locator: Locator(vec![locate(element.tag.clone())]), cost: COST_TAG });
    }
    let classes: Vec<&String> = element.classes.iter().filter(|class| is_word(class)).take(3).collect();
    if is_word(&element.tag) && !classes.is_empty() {
        let same = page.iter().filter(|each| {
            each.tag == element.tag && classes.iter().all(|class| each.classes.contains(class))
        });
        if single(same.count()) {
            let css = classes.iter().fold(element.tag.clone(), |css, class| format!("{css}.{class}"));
            found.push(Priced { locator: Locator(vec![locate(css)]), cost: COST_CSS });
        }
    }
    if !element.role.is_empty() {
        let same = |each: &&Element| each.role == element.role && each.name == element.name;
        let place = page[..index].iter().filter(same).count();
        if page.iter().filter(same).count() > 1 && !element.name.is_empty() {
            let options = json!({ "name": element.name, "exact": true });
            let call = Call { method: "getByRole", args: vec![json!(element.role), options] };
            let nth = Call { method: "nth", args: vec![json!(place)] };
            found.push(Priced { locator: Locator(vec![call, nth]), cost: 2 * COST_ROLE_NAME + COST_NTH });
        }
    }
    found
}
