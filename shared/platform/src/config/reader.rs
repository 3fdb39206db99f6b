//! Reading variables by their row in the registry. Errors are collected, so
//! one start names everything that is wrong.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use callboard_auth::Origin;
use callboard_auth::client_address::TrustProxy;

use super::registry::{self, Kind, PORT_ALIAS, Value, Variable};

/// One variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {problem}")]
pub struct ConfigError {
    /// The variable.
    pub variable: &'static str,
    /// What came and what is accepted.
    pub problem: String,
}

/// Everything that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// The environment, read through the registry.
pub(super) struct Reader {
    values: BTreeMap<String, String>,
    errors: RefCell<Vec<ConfigError>>,
    read: RefCell<BTreeSet<&'static str>>,
}

/// What is set of these variables.
fn set(values: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let trimmed = values.into_iter().map(|(name, value)| (name, value.trim().to_owned()));
    trimmed.filter(|(_, value)| !value.is_empty()).collect()
}

impl Reader {
    /// Blank values count as not set.
    pub(super) fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut reader = Self { values: set(values), errors: RefCell::default(), read: RefCell::default() };
        reader.take_secrets();
        reader
    }

    /// Takes over what the secret of a store holds and is not set by itself.
    fn take_secrets(&mut self) {
        let Some(text) = self.optional_text(&registry::SECRETS) else { return };
        let Ok(held) = serde_json::from_str::<serde_json::Map<_, _>>(&text) else {
            self.refuse(&registry::SECRETS, "must be a JSON object of settings and their values");
            return;
        };
        let mut taken = Vec::new();
        for (name, value) in held {
            let value = match value {
                serde_json::Value::String(text) => text,
                serde_json::Value::Number(number) => number.to_string(),
                serde_json::Value::Bool(switch) => switch.to_string(),
                _ => {
                    let problem = format!("must hold texts; {name} is something else");
                    self.refuse(&registry::SECRETS, problem);
                    continue;
                }
            };
            if name.starts_with("SERVICE_") {
                taken.push((name, value));
            } else {
                let problem = format!("holds {name:?}, but only settings, whose names begin with SERVICE_");
                self.refuse(&registry::SECRETS, problem);
            }
        }
        for (name, value) in set(taken) {
            self.values.entry(name).or_insert(value);
        }
    }

    pub(super) fn into_errors(self) -> Vec<ConfigError> {
        self.errors.into_inner()
    }

    /// The variables among these that are set, as a page may show them:
    /// secrets only say that they are.
    pub(super) fn given(&self, variables: &[Variable]) -> BTreeMap<&'static str, String> {
        let shown = |variable: &Variable| {
            let alias = (variable.name == super::registry::PORT.name).then_some(PORT_ALIAS);
            let value =
                [Some(variable.name), alias].into_iter().flatten().find_map(|name| self.values.get(name))?;
            let value = if variable.kind.is_secret() { "set, not shown" } else { value.as_str() };
            Some((variable.name, value.to_owned()))
        };
        variables.iter().filter_map(shown).collect()
    }

    /// Names that were asked for so far.
    #[cfg(test)]
    pub(super) fn names_read(&self) -> BTreeSet<&'static str> {
        self.read.borrow().clone()
    }

    /// All names of the environment.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Notes a problem the kind of the variable cannot express.
    pub(super) fn refuse(&self, variable: &Variable, problem: impl Into<String>) {
        self.errors.borrow_mut().push(ConfigError { variable: variable.name, problem: problem.into() });
    }

    fn raw(&self, variable: &Variable) -> Option<&str> {
        self.read.borrow_mut().insert(variable.name);
        self.values.get(variable.name).map(String::as_str)
    }

    fn reject<T>(&self, variable: &Variable, came: &str) -> Option<T> {
        let accepted = variable.kind.accepted();
        let problem = if variable.kind.is_secret() {
            format!("is not {accepted}")
        } else {
            format!("must be {accepted}, got {came:?}")
        };
        self.refuse(variable, problem);
        None
    }

    /// A text, or the default.
    pub(super) fn text(&self, variable: &Variable) -> String {
        match (self.raw(variable), variable.default) {
            (Some(value), _) => value.to_owned(),
            (None, Value::Text(default)) => default.to_owned(),
            (None, _) => String::new(),
        }
    }

    /// A text without a default.
    pub(super) fn optional_text(&self, variable: &Variable) -> Option<String> {
        self.raw(variable).map(str::to_owned)
    }

    /// A number within the variable's bounds, or the default.
    pub(super) fn number(&self, variable: &Variable) -> u64 {
        let default = if let Value::Number(default) = variable.default { default } else { 0 };
        let Kind::Number { min, max } = variable.kind else {
            return default;
        };
        let raw = self.raw(variable).or_else(|| {
            let alias = (variable.name == super::registry::PORT.name).then_some(PORT_ALIAS)?;
            self.values.get(alias).map(String::as_str)
        });
        let Some(raw) = raw else { return default };
        raw.parse()
            .ok()
            .filter(|number| (min..=max).contains(number))
            .or_else(|| self.reject(variable, raw))
            .unwrap_or(default)
    }

    /// One of the words of its kind, or the default.
    pub(super) fn word(&self, variable: &Variable) -> &'static str {
        let default = if let Value::Text(default) = variable.default { default } else { "" };
        let Kind::OneOf(words) = variable.kind else { return default };
        let Some(raw) = self.raw(variable) else { return default };
        let known = words.iter().find(|word| word.eq_ignore_ascii_case(raw)).copied();
        known.or_else(|| self.reject(variable, raw)).unwrap_or(default)
    }

    /// A switch, or its default.
    pub(super) fn switch(&self, variable: &Variable) -> bool {
        let Some(raw) = self.raw(variable) else {
            return variable.default == Value::Text("true");
        };
        match raw.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => self.reject(variable, raw).unwrap_or(false),
        }
    }

    /// Whose forwarded headers are believed.
    pub(super) fn proxies(&self, variable: &Variable) -> TrustProxy {
        let Some(raw) = self.raw(variable) else {
            return TrustProxy::Nobody;
        };
        TrustProxy::parse(raw).or_else(|| self.reject(variable, raw)).unwrap_or_default()
    }

    /// One origin.
    pub(super) fn origin(&self, variable: &Variable) -> Option<Origin> {
        let raw = self.raw(variable)?;
        Origin::parse(raw).or_else(|| self.reject(variable, raw))
    }

    /// A list of origins.
    pub(super) fn origins(&self, variable: &Variable) -> Vec<Origin> {
        self.list(variable)
            .filter_map(|entry| Origin::parse(entry).or_else(|| self.reject(variable, entry)))
            .collect()
    }

    /// A list of origins, and whether `*` stands in it.
    pub(super) fn origins_or_any(&self, variable: &Variable) -> (Vec<Origin>, bool) {
        let any = self.list(variable).any(|entry| entry == "*");
        let named = self.list(variable).filter(|entry| *entry != "*");
        let origins =
            named.filter_map(|entry| Origin::parse(entry).or_else(|| self.reject(variable, entry))).collect();
        (origins, any)
    }

    /// A list of host names.
    pub(super) fn hosts(&self, variable: &Variable) -> Vec<String> {
        self.list(variable)
            .filter_map(|entry| {
                let is_host =
                    entry.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte));
                let has_port = !entry.starts_with('[') && entry.contains(':');
                if is_host && !has_port {
                    Some(entry.to_ascii_lowercase())
                } else {
                    self.reject(variable, entry)
                }
            })
            .collect()
    }

    /// A list of words.
    pub(super) fn words(&self, variable: &Variable) -> Vec<String> {
        self.list(variable).map(str::to_owned).collect()
    }

    /// Where another service answers, or the default.
    pub(super) fn address(&self, variable: &Variable) -> Option<String> {
        let default =
            if let Value::Text(default) = variable.default { Some(default.to_owned()) } else { None };
        let Some(raw) = self.raw(variable) else { return default };
        let is_safe = url::Url::parse(raw).is_ok_and(|address| {
            let is_local = match address.host() {
                Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
                Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
                Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
                None => false,
            };
            address.username().is_empty()
                && address.password().is_none()
                && (address.scheme() == "https" || (address.scheme() == "http" && is_local))
        });
        if is_safe { Some(raw.trim_end_matches('/').to_owned()) } else { self.reject(variable, raw) }
    }

    /// A list of secrets, the first of which seals.
    pub(super) fn secrets(&self, variable: &Variable) -> Vec<super::Secret> {
        const SHORTEST: usize = 16;
        const ADVICE: &str = "32 random bytes in hex (`openssl rand -hex 32`) will do";
        self.list(variable)
            .filter_map(|entry| {
                if entry.len() < SHORTEST {
                    self.refuse(
                        variable,
                        format!("holds a secret that is shorter than {SHORTEST} bytes; {ADVICE}"),
                    );
                    return None;
                }
                if super::is_guessable(entry) {
                    let problem = "holds a secret that can be guessed: it is made of words that examples use, \
                                   or repeats one character";
                    self.refuse(variable, format!("{problem}; {ADVICE}"));
                    return None;
                }
                Some(super::Secret::new(entry))
            })
            .collect()
    }

    fn list(&self, variable: &Variable) -> impl Iterator<Item = &str> {
        self.raw(variable).unwrap_or_default().split(',').map(str::trim).filter(|entry| !entry.is_empty())
    }
}
