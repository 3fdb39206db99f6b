//! What a failure says once everything is left out that changes from run to
//! run: its fingerprint. Failures with equal fingerprints have, as far as
//! their text tells, the same cause.
//!
//! The text is not compared as a whole. It is taken apart into fields first
//! (what was done, on which element, why it could not be done), then each field
//! is masked. Reworded messages, other data and another version of Playwright
//! therefore leave a fingerprint as it is, while another element or another
//! obstacle changes it. `segment` cuts the text, `fields` reads the fields,
//! `target` writes a locator in one canonical way, `mask` replaces data,
//! [`template`] brings wordings of free text together that masks leave apart.
//!
//! Everything is linear in the text, and no text makes it panic.

mod code;
mod error_line;
mod expectation;
mod fields;
mod mask;
mod segment;
mod source;
mod target;
pub mod template;
#[cfg(test)]
mod tests;
mod title;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use error_line::error_line;
pub use source::{QuotedSource, SourceText};

use segment::Segments;

/// Number of the rules that made a fingerprint; it grows when they change.
pub const VERSION: i64 = 4;

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A locator found several elements where one was meant.
    Strict,
    /// The page, the context or the browser was closed or crashed.
    Closed,
    /// An expectation was not met.
    Assert,
    /// The browser could not load an address.
    Navigation,
    /// An action or a wait took too long.
    Timeout,
    /// The test as a whole took too long, and nothing says where.
    TestTimeout,
    /// An error of the language: `TypeError` and the like.
    Script,
    /// Anything else that was thrown.
    App,
}

impl Kind {
    /// Its name inside fingerprints.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Closed => "closed",
            Self::Assert => "assert",
            Self::Navigation => "nav",
            Self::Timeout => "timeout",
            Self::TestTimeout => "test-timeout",
            Self::Script => "js",
            Self::App => "app",
        }
    }

    /// The type of error people filter by.
    #[must_use]
    pub const fn error_type(self) -> ErrorType {
        match self {
            Self::Strict => ErrorType::StrictMode,
            Self::Closed => ErrorType::Crash,
            Self::Assert => ErrorType::Assertion,
            Self::Navigation => ErrorType::Navigation,
            Self::Timeout | Self::TestTimeout => ErrorType::Timeout,
            Self::Script | Self::App => ErrorType::Unknown,
        }
    }
}

/// Types of errors as people filter by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// Something took too long.
    Timeout,
    /// An expectation was not met.
    Assertion,
    /// A locator found several elements.
    StrictMode,
    /// An address could not be loaded.
    Navigation,
    /// A page or browser went away.
    Crash,
    /// None of these.
    Unknown,
}

impl ErrorType {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Timeout, Self::Assertion, Self::StrictMode, Self::Navigation, Self::Crash, Self::Unknown];

    /// The word used on the wire and in columns.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Assertion => "assertion",
            Self::StrictMode => "strict-mode",
            Self::Navigation => "navigation",
            Self::Crash => "crash",
            Self::Unknown => "unknown",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

/// SHA-256 of the fields that tell causes apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// As 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(self) -> String {
        hex::encode(self.0)
    }

    /// Reads what [`Self::to_hex`] wrote.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Takes over stored bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl serde::Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> serde::Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("not a fingerprint"))
    }
}

/// The fields of a failure, masked. Empty where they do not apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Kind of failure.
    pub kind: Kind,
    /// It happened in a hook, not in the test itself.
    pub in_hook: bool,
    /// Name of the action or matcher, such as `click` or `toHaveText`.
    pub api: String,
    /// The expectation was negated.
    pub negated: bool,
    /// The element: a canonical locator chain.
    pub target: String,
    /// Why the element could not be used, one of a few words.
    pub reason: Cow<'static, str>,
    /// Class of the error when it is not plain `Error`.
    pub class: String,
    /// Codes that tell causes apart, sorted: `net::…`, `ENOENT`, `http503`, `exp200`, `got401`.
    pub codes: Vec<String>,
    /// Masked text, where text is what tells causes apart.
    pub template: String,
    /// Whether `template` is free text that a person wrote.
    pub is_free_text: bool,
    /// File and function of the first frame that is no library's; shown, never part of the fingerprint.
    pub site: Option<String>,
}

impl Signature {
    /// What routes the failure to its cluster.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.hash(&self.target, &self.template, "f1")
    }

    /// The family of the failure: its fingerprint without element and text.
    #[must_use]
    pub fn family(&self) -> Fingerprint {
        self.hash("", "", "f2")
    }

    fn hash(&self, target: &str, template: &str, mark: &str) -> Fingerprint {
        let kind = self.kind_with_hook();
        let fields = serde_json::json!([
            mark,
            kind,
            self.api,
            self.negated,
            target,
            self.reason,
            self.class,
            self.codes,
            template
        ]);
        Fingerprint(Sha256::digest(fields.to_string().as_bytes()).into())
    }

    fn kind_with_hook(&self) -> String {
        format!("{}{}", self.kind.as_str(), if self.in_hook { "@hook" } else { "" })
    }

    /// The type people filter by.
    #[must_use]
    pub const fn error_type(&self) -> ErrorType {
        self.kind.error_type()
    }

    /// The fields that are not empty, with their names for people: what
    /// failures of one cluster have in common.
    #[must_use]
    pub fn grouped_by(&self) -> Vec<(&'static str, String)> {
        let fields = [
            ("kind", self.kind_with_hook()),
            ("action", self.api.clone()),
            ("negated", if self.negated { "yes".to_owned() } else { String::new() }),
            ("locator", self.target.clone()),
            ("reason", self.reason.clone().into_owned()),
            ("error", self.class.clone()),
            ("codes", self.codes.join(" ")),
            ("text", self.template.clone()),
        ];
        fields.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// One error of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorText<'a> {
    /// Message; clients that know only one text put stack frames here too.
    pub message: &'a str,
    /// Stack, which may repeat the message.
    pub stack: Option<&'a str>,
}

impl<'a> ErrorText<'a> {
    /// The errors of an attempt that came as one text: messages are separated
    /// by a line of three dashes.
    #[must_use]
    pub fn split(text: &'a str) -> Vec<Self> {
        text.split("\n---\n").map(|message| Self { message, stack: None }).collect()
    }
}

/// Reads the fields of an attempt's failure. `source` are the lines around the
/// place of the error, when they are known. `None` without any text.
///
/// Source: own rules, after the observation that structure outranks wording
/// when failures are grouped; the masks follow the practice of log parsing.
#[must_use]
pub fn signature(errors: &[ErrorText<'_>], source: &[SourceText<'_>]) -> Option<Signature> {
    let cleaned: Vec<String> = errors.iter().map(|error| segment::clean(error.message)).collect();
    let parts: Vec<Segments<'_>> =
        cleaned.iter().filter(|text| !text.trim().is_empty()).map(|text| Segments::from_text(text)).collect();
    let primary = fields::primary(&parts)?;
    let mut signature = fields::read(&parts[primary], &parts, source);
    if signature.site.is_none() {
        let stack = errors.iter().filter_map(|error| error.stack).map(segment::clean);
        signature.site = stack.into_iter().find_map(|stack| segment::site(&Segments::from_text(&stack)));
    }
    Some(signature)
}
