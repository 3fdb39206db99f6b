//! What a tool can be told. One description per parameter serves both sides:
//! the JSON schema that is advertised is written from it, and arguments are
//! read by it (see `arguments.rs`), so the two cannot disagree.

use serde_json::{Map, Value, json};

/// Largest id that survives a trip through JavaScript numbers; all ids do.
const MAX_ID: i64 = (1 << 53) - 1;
/// Longest search text, characters.
pub(crate) const QUERY_CHARS: usize = 500;
/// Longest branch name, characters.
pub(crate) const BRANCH_CHARS: usize = 255;
/// Longest text where nothing else is said, characters.
pub(crate) const TEXT_CHARS: usize = 2_000;
/// Most texts of a list where nothing else is said.
const MAX_TEXTS: usize = 100;

/// What a parameter means, where its name and its schema leave that open. A
/// name means the same in every tool.
const MEANINGS: [(&str, &str); 23] = [
    ("branch", "Exact name"),
    ("baseCommit", "Compare from here instead of the last green run"),
    ("buckets", "Parts of the last 200 executions"),
    ("commit", "Empty clears it"),
    ("content", "Also return the images"),
    ("cursor", "nextCursor of the page before"),
    ("days", "Days up to today"),
    ("detail", "How much evidence to add"),
    ("feedback", "none takes the vote back"),
    ("file", "Only this file, with more of its patch"),
    ("force", "Anew, even if there is one"),
    ("include", "Parts to return whole"),
    ("limit", "Newest ones"),
    ("maxChars", "Length of the text"),
    ("module", "Path it is imported from"),
    ("note", "Left out: kept; empty: cleared"),
    ("pageSize", "Rows per page"),
    ("owner", "Exact name"),
    ("query", "Part of title, file or name"),
    ("receiver", "Object it is a method of"),
    ("runs", "Newest runs to look at"),
    ("selectedCommitShas", "Commits to tell about"),
    ("tags", "All of them"),
];

/// One parameter of a tool.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// Advertised name.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Whether it has to be given.
    pub need: Need,
    /// Further names it is accepted under.
    pub also: &'static [&'static str],
    /// Whether it is advertised; others work for clients that know them.
    pub is_advertised: bool,
    /// Whether a blank text is a value of its own, and not the same as none.
    pub keeps_blank: bool,
    /// What null stands for; mostly for nothing at all.
    pub null_is: Option<&'static str>,
}

/// What the values of a parameter are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// An id; `from` names the tools that yield it.
    Id {
        /// Tools, as a sentence names them.
        from: &'static str,
    },
    /// A number; values outside are clamped.
    Count {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
        /// When it is not given.
        default: Option<i64>,
    },
    /// Text of at most so many characters.
    Text(usize),
    /// Name of a branch.
    Branch,
    /// Digits of a commit, 7 to 64 of them.
    Commit,
    /// Where to read on.
    Cursor,
    /// One of some words; case does not matter.
    Choice {
        /// The words.
        words: &'static [&'static str],
        /// Accepted besides: another spelling and the word it stands for.
        spellings: &'static [(&'static str, &'static str)],
        /// When it is not given.
        default: Option<&'static str>,
    },
    /// Any of some words.
    Choices(&'static [&'static str]),
    /// So many texts at most.
    Texts(usize),
    /// Yes or no; not given means no.
    Flag,
    /// A place in a list, counted from 0, at most this. What lies beyond is told
    /// by who reads the list.
    Place(i64),
    /// A list of so many flat objects at most. Their fields are put under their
    /// advertised names; what is wrong inside is told by who reads them.
    Objects {
        /// Fields of one.
        fields: &'static [Parameter],
        /// Most of them.
        max: usize,
    },
}

/// Whether a parameter has to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It may be left out.
    Optional,
    /// It may not.
    Required,
    /// It may be left out when this other one is given.
    RequiredWithout(&'static str),
}

impl Parameter {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            need: Need::Optional,
            also: &[],
            is_advertised: true,
            keeps_blank: false,
            null_is: None,
        }
    }

    /// An id that has to be given.
    pub(crate) const fn id(name: &'static str, from: &'static str) -> Self {
        Self { need: Need::Required, ..Self::new(name, Kind::Id { from }) }
    }

    /// A number with a default.
    pub(crate) const fn count(name: &'static str, min: i64, max: i64, default: i64) -> Self {
        Self::new(name, Kind::Count { min, max, default: Some(default) })
    }

    /// A number that older clients send; it is not advertised.
    pub(crate) const fn unadvertised_count(name: &'static str, min: i64, max: i64) -> Self {
        Self { is_advertised: false, ..Self::new(name, Kind::Count { min, max, default: None }) }
    }

    /// Rows per page.
    pub(crate) const fn page_size(max: i64, default: i64) -> Self {
        Self::count("pageSize", 1, max, default)
    }

    /// Where to read on.
    pub(crate) const fn cursor() -> Self {
        Self::new("cursor", Kind::Cursor)
    }

    /// A free text.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self::new(name, Kind::Text(TEXT_CHARS))
    }

    /// A remark that is kept when it is not given and cleared when it is blank.
    pub(crate) const fn note() -> Self {
        Self { keeps_blank: true, ..Self::text("note") }
    }

    /// Yes or no.
    pub(crate) const fn flag(name: &'static str) -> Self {
        Self::new(name, Kind::Flag)
    }

    /// A search text.
    pub(crate) const fn query() -> Self {
        Self::new("query", Kind::Text(QUERY_CHARS))
    }

    /// The name of a branch.
    pub(crate) const fn branch() -> Self {
        Self::new("branch", Kind::Branch)
    }

    /// A commit. A blank one counts where `keeping_blank` says so.
    pub(crate) const fn commit(name: &'static str) -> Self {
        Self::new(name, Kind::Commit)
    }

    /// The same, with blank as a value of its own.
    pub(crate) const fn keeping_blank(self) -> Self {
        Self { keeps_blank: true, ..self }
    }

    /// One of some words.
    pub(crate) const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: Option<&'static str>,
    ) -> Self {
        Self::new(name, Kind::Choice { words, spellings: &[], default })
    }

    /// Any of some words.
    pub(crate) const fn choices(name: &'static str, words: &'static [&'static str]) -> Self {
        Self::new(name, Kind::Choices(words))
    }

    /// A list of texts.
    pub(crate) const fn texts(name: &'static str) -> Self {
        Self::texts_within(name, MAX_TEXTS)
    }

    /// A list of so many texts at most.
    pub(crate) const fn texts_within(name: &'static str, max: usize) -> Self {
        Self::new(name, Kind::Texts(max))
    }

    /// A text of at most so many characters.
    pub(crate) const fn text_within(name: &'static str, max: usize) -> Self {
        Self::new(name, Kind::Text(max))
    }

    /// A place in a list.
    pub(crate) const fn place(name: &'static str, last: i64) -> Self {
        Self::new(name, Kind::Place(last))
    }

    /// A list of flat objects.
    pub(crate) const fn objects(name: &'static str, max: usize, fields: &'static [Self]) -> Self {
        Self::new(name, Kind::Objects { fields, max })
    }

    /// The same, with further names.
    pub(crate) const fn also(self, also: &'static [&'static str]) -> Self {
        Self { also, ..self }
    }

    /// The same, with further spellings of its words.
    pub(crate) const fn spelled(self, more: &'static [(&'static str, &'static str)]) -> Self {
        match self.kind {
            Kind::Choice { words, default, .. } => {
                Self { kind: Kind::Choice { words, spellings: more, default }, ..self }
            }
            _ => self,
        }
    }

    /// The same, with a word that null stands for.
    pub(crate) const fn null_is(self, word: &'static str) -> Self {
        Self { null_is: Some(word), ..self }
    }

    /// The same, for clients that know of it.
    pub(crate) const fn unadvertised(self) -> Self {
        Self { is_advertised: false, ..self }
    }

    /// The same, required.
    pub(crate) const fn required(self) -> Self {
        Self { need: Need::Required, ..self }
    }

    /// The same, optional.
    pub(crate) const fn optional(self) -> Self {
        Self { need: Need::Optional, ..self }
    }

    /// The same, required unless another one is given.
    pub(crate) const fn required_without(self, other: &'static str) -> Self {
        Self { need: Need::RequiredWithout(other), ..self }
    }

    /// What it means, in a few words.
    fn description(&self) -> Option<String> {
        match self.kind {
            Kind::Id { from } => Some(format!("From {from}")),
            _ => MEANINGS.iter().find(|(name, _)| *name == self.name).map(|(_, text)| (*text).to_owned()),
        }
    }

    /// The JSON schema of its values, with what it means.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = self.values();
        if let Some(description) = self.description() {
            schema["description"] = description.into();
        }
        schema
    }

    fn values(&self) -> Value {
        match self.kind {
            Kind::Id { .. } => json!({"type": "integer", "minimum": 1, "maximum": MAX_ID}),
            Kind::Count { min, max, default } => {
                json!({"type": "integer", "minimum": min, "maximum": max, "default": default})
            }
            Kind::Text(max) => json!({"type": "string", "maxLength": max}),
            Kind::Branch => json!({"type": "string", "maxLength": BRANCH_CHARS}),
            Kind::Commit | Kind::Cursor => json!({"type": "string"}),
            Kind::Choice { words, default: Some(default), .. } => {
                json!({"type": "string", "enum": words, "default": default})
            }
            Kind::Choice { words, .. } => json!({"type": "string", "enum": words}),
            Kind::Choices(words) => json!({"type": "array", "items": {"type": "string", "enum": words}}),
            Kind::Texts(_) => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Place(last) => json!({"type": "integer", "minimum": 0, "maximum": last}),
            Kind::Objects { fields, .. } => json!({"type": "array", "items": schema(fields)}),
        }
    }
}

/// The JSON schema of a tool's arguments.
pub(crate) fn schema(parameters: &[Parameter]) -> Value {
    let advertised = || parameters.iter().filter(|parameter| parameter.is_advertised);
    let properties: Map<String, Value> =
        advertised().map(|parameter| (parameter.name.to_owned(), parameter.schema())).collect();
    let required: Vec<&str> = advertised()
        .filter(|parameter| parameter.need != Need::Optional)
        .map(|parameter| parameter.name)
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}
