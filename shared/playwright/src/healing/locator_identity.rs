//! What makes two locators the same one: the method that finds the element and
//! its arguments, however they are written and whatever narrows them.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use callboard_domain::ingest::UsedLocator;
use callboard_domain::locator::{self, Argument, Property, Value as Written};

/// Longest list of arguments that is compared.
const MAX_ARGS: usize = 10;

/// The finding call of a locator.
#[derive(Debug, Clone, PartialEq)]
pub struct Finder {
    /// Method, such as `getByRole`.
    pub method: String,
    /// Its arguments; patterns as `/source/flags`, other expressions as null.
    pub args: Vec<Value>,
    /// The first argument, when it is a text.
    text: Option<String>,
    /// The option `name`, when it is a text.
    name: Option<String>,
}

impl Finder {
    /// The last finding call of a locator as it is written or logged.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let chain = locator::parse(text).or_else(|| locator::first_chain(text))?;
        let call = chain.locator_calls().iter().rev().find(|call| call.is_finder())?;
        let args = call.arguments.iter().take(MAX_ARGS).map(|argument| value_of(text, argument)).collect();
        let name = call.option("name").and_then(|name| name.value.as_text());
        Some(Self {
            method: call.name.clone(),
            args,
            text: call.text().map(str::to_owned),
            name: name.map(str::to_owned),
        })
    }

    /// The call a client says it used: from the text when it can be read, so
    /// that both sides are read by the same rules.
    #[must_use]
    pub fn of_capture(used: &UsedLocator) -> Self {
        Self::of_text(&used.raw).unwrap_or_else(|| {
            let args = used.args.as_array().cloned().unwrap_or_default();
            let text = |value: Option<&Value>| {
                let text = value.and_then(Value::as_str).filter(|text| !is_written_as_pattern(text));
                text.map(str::to_owned)
            };
            let name = text(args.get(1).and_then(|options| options.get("name")));
            Self { method: used.method.clone(), text: text(args.first()), name, args }
        })
    }

    /// SHA-256 of the call.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(canonical(&json!([self.method, self.args]))).into()
    }

    /// What is known of the element from the locator alone.
    #[must_use]
    pub fn target(&self) -> super::Element {
        let mut target = super::Element::default();
        let text = self.text.clone().unwrap_or_default();
        match self.method.as_str() {
            "getByRole" => {
                target.role = text;
                target.name = self.name.clone().unwrap_or_default();
            }
            "getByTestId" => target.test_id = text,
            "getByText" => {
                target.name.clone_from(&text);
                target.text = text;
            }
            "getByLabel" => {
                target.name.clone_from(&text);
                target.label = text;
            }
            "getByPlaceholder" => {
                target.name.clone_from(&text);
                target.placeholder = text;
            }
            "getByAltText" => {
                target.name.clone_from(&text);
                target.alt = text;
            }
            "getByTitle" => {
                target.name.clone_from(&text);
                target.title = text;
            }
            _ => {
                if let Some(id) = text.strip_prefix('#').filter(|id| !id.contains([' ', '.', '[', '>', ':']))
                {
                    target.id = id.to_owned();
                }
            }
        }
        target
    }
}

/// The locator an error speaks of, as it is written in the test: what was
/// waited for, else the first chain in the text.
#[must_use]
pub fn chain_in_error(message: &str) -> Option<String> {
    let after = |words: &str| {
        message.lines().find_map(|line| {
            let at = line.find(words)?;
            let text = line[at + words.len()..].trim();
            let chain = locator::parse(text)?;
            text.get(chain.locator_range()?).map(str::to_owned)
        })
    };
    let first = || message.get(locator::first_chain(message)?.locator_range()?).map(str::to_owned);
    after("Locator:").or_else(|| after("waiting for ")).or_else(first)
}

fn value_of(text: &str, argument: &Argument) -> Value {
    match &argument.value {
        Written::Text(text) => json!(text),
        Written::Pattern { source, flags } => json!(format!("/{source}/{flags}")),
        Written::Number(number) => json!(number),
        Written::Object(properties) => {
            let field = |property: &Property| (property.name.clone(), value_of(text, &property.value));
            Value::Object(properties.iter().map(field).collect())
        }
        Written::List(items) => items.iter().map(|item| value_of(text, item)).collect(),
        Written::Chain(_) | Written::Expression => match text.get(argument.range.clone()) {
            Some("true") => json!(true),
            Some("false") => json!(false),
            _ => Value::Null,
        },
    }
}

/// Whether an argument that came as a value reads like a regular expression:
/// an address such as `/home` does not.
fn is_written_as_pattern(text: &str) -> bool {
    let parts = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    parts.is_some_and(|(source, flags)| {
        !source.is_empty() && flags.chars().all(|flag| "dgimsuvy".contains(flag))
    })
}

/// JSON with sorted keys, whatever order they came in.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = Map::iter(fields).collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(key, value)| format!("{}:{}", json!(key), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_is_the_same_however_it_is_written() {
        let logged =
            Finder::of_text("getByRole('button', { name: 'Log in', exact: true }).first()").expect("is read");
        let captured = Finder::of_capture(&UsedLocator {
            method: "getByRole".into(),
            args: json!(["button", {"exact": true, "name": "Log in"}]),
            raw: "page.getByRole(\"button\", {exact: true, name: \"Log in\"})".into(),
        });
        let unread = Finder::of_capture(&UsedLocator {
            raw: "(".into(),
            method: "getByRole".into(),
            args: json!(["button", {"name": "Log in", "exact": true}]),
        });
        assert_eq!(logged.fingerprint(), captured.fingerprint());
        assert_eq!(logged.fingerprint(), unread.fingerprint());
        assert_ne!(
            logged.fingerprint(),
            Finder::of_text("getByRole('button', { name: 'Log in' })").expect("is read").fingerprint()
        );
        assert_eq!((logged.target().role, logged.target().name), ("button".into(), "Log in".into()));
        assert_eq!(
            Finder::of_text("page.getByTestId('pay').click()").expect("is read").target().test_id,
            "pay"
        );
    }

    #[test]
    fn a_pattern_is_no_name_and_an_address_is() {
        let target = |text: &str| Finder::of_text(text).expect("is read").target();
        assert_eq!(target("getByRole('link', { name: '/home' })").name, "/home");
        assert_eq!(target("getByText('/home/')").text, "/home/");
        for pattern in
            ["getByText(/order #\\d+/i)", "getByLabel(/name/)", "getByRole('link', { name: /home/ })"]
        {
            assert_eq!(target(pattern).name, "", "{pattern}");
        }
        // Where the text cannot be read, a value that looks like a pattern is taken for one.
        let unread = |args: serde_json::Value| {
            let used = UsedLocator { method: "getByText".into(), args, raw: "(".into() };
            Finder::of_capture(&used).target().text
        };
        assert_eq!((unread(json!(["/order/i"])), unread(json!(["/home"]))), (String::new(), "/home".into()));
    }
}
