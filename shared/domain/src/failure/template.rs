//! Wordings of free text that differ where masks see no data: a name, a word.
//! Templates are consulted only for fingerprints nobody has seen; a template
//! that a new text resembles takes it in and forgets the words that differ.
//!
//! Source: the fixed-depth parse tree of Drain (He et al., 2017) with a
//! similarity of 0.6, its tree replaced by a hash of what must be equal.

use sha2::{Digest, Sha256};

use super::{Kind, Signature};

/// Share of equal words that makes a text one of a template.
const SIMILARITY: f64 = 0.6;
/// Templates of one bucket that are compared.
pub const MAX_COMPARED: usize = 100;
/// Characters between quotes that are taken for one word.
const MAX_QUOTED_CHARS: usize = 60;
/// Capital letters from which on a word is a constant; codes of countries and
/// currencies have fewer.
const MIN_CONSTANT_CHARS: usize = 4;
/// A word that may be anything.
const ANY: &str = "<*>";

/// The words of a text. What stands between quotes is one word, however many
/// words it has: names and titles do.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(one) = rest.chars().next() {
        let inner = quoted(rest).filter(|_| opens_in_prose(text, rest));
        let length = if let Some(inner) = inner {
            words.push(inner.to_owned());
            inner.len() + one.len_utf8() + closing(one).map_or(0, char::len_utf8)
        } else if is_separator(one) {
            one.len_utf8()
        } else {
            let end = rest.find(is_separator).unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            end
        };
        rest = &rest[length..];
    }
    words
}

fn is_separator(one: char) -> bool {
    one.is_whitespace() || "=:,;()[]\"'“”„«»、。：（）「」".contains(one)
}

const fn closing(opening: char) -> Option<char> {
    match opening {
        '"' | '\'' => Some(opening),
        '“' => Some('”'),
        '„' => Some('“'),
        '«' => Some('»'),
        '「' => Some('」'),
        _ => None,
    }
}

/// What stands between the quotes a text begins with; a quote behind which a
/// word goes on is an apostrophe.
fn quoted(text: &str) -> Option<&str> {
    let opening = text.chars().next()?;
    let closing = closing(opening)?;
    let inner = &text[opening.len_utf8()..];
    let inner = &inner[..inner.char_indices().take(MAX_QUOTED_CHARS).find(|(_, one)| *one == closing)?.0];
    let behind = text[opening.len_utf8() + inner.len() + closing.len_utf8()..].chars().next();
    let is_whole = !inner.trim().is_empty() && !behind.is_some_and(char::is_alphanumeric);
    is_whole.then_some(inner)
}

/// Whether what stands right before the rest of a text lets a quote open in
/// it: an apostrophe stands behind a letter, and what JSON quotes are messages
/// as well as data.
fn opens_in_prose(text: &str, rest: &str) -> bool {
    let before = text[..text.len() - rest.len()].chars().next_back();
    before.is_none_or(|before| before.is_whitespace() || before == '(')
}

/// Whether a word is a name that code gives: `users_email_key`, `FORBIDDEN`,
/// `users.json`, `/api/users/<*>`. People and random data are not called so.
fn is_name(word: &str) -> bool {
    let path = word.strip_prefix("<URL>").unwrap_or(word);
    if path.starts_with('/') && path.contains(char::is_alphabetic) {
        return true;
    }
    if let Some(path) = word.strip_prefix("<PATH>/") {
        return path.contains('.') && !path.contains('<');
    }
    let is_constant = word.len() >= MIN_CONSTANT_CHARS && word.bytes().all(|one| one.is_ascii_uppercase());
    let is_part = |part: &str| part.len() > 1 && part.bytes().all(|one| one.is_ascii_alphabetic());
    is_constant || word.contains('_') && word.split('_').all(is_part)
}

/// What a failure looks for among the templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// SHA-256 of everything that has to be equal.
    pub bucket: [u8; 32],
    /// The words.
    pub tokens: Vec<String>,
}

/// The template a wording belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Which of the candidates.
    pub index: usize,
    /// The template without the words that differ; `None` when none does.
    pub generalised: Option<Vec<String>>,
}

impl Wording {
    /// `None` when the failure is not told by free text.
    #[must_use]
    pub fn from_signature(signature: &Signature) -> Option<Self> {
        if !signature.is_free_text || signature.template.is_empty() {
            return None;
        }
        let tokens = words(&signature.template);
        let start: Vec<&str> = tokens
            .iter()
            .take(2)
            .map(
                |token| {
                    if token.contains(|one: char| one.is_ascii_digit() || one == '<') { ANY } else { token }
                },
            )
            .collect();
        let quoted: Vec<&str> = if signature.kind == Kind::Script {
            signature.template.split('\'').skip(1).step_by(2).collect()
        } else {
            Vec::new()
        };
        let names: Vec<&str> = tokens.iter().map(String::as_str).filter(|token| is_name(token)).collect();
        let rest = Signature { template: String::new(), ..signature.clone() };
        let key = serde_json::json!([rest.fingerprint().to_hex(), tokens.len(), start, quoted, names]);
        Some(Self { bucket: Sha256::digest(key.to_string().as_bytes()).into(), tokens })
    }

    /// The words as one text, as they are stored.
    #[must_use]
    pub fn joined(tokens: &[String]) -> String {
        tokens.join(" ")
    }

    /// SHA-256 of the words.
    #[must_use]
    pub fn hash(tokens: &[String]) -> [u8; 32] {
        Sha256::digest(Self::joined(tokens).as_bytes()).into()
    }

    /// Finds the template that resembles the wording most, the first of equal
    /// ones. `candidates` are the stored words, oldest first.
    #[must_use]
    pub fn find(&self, candidates: &[Vec<String>]) -> Option<Match> {
        let count = self.tokens.len();
        let equal = |template: &Vec<String>| {
            let pairs = template.iter().zip(&self.tokens);
            pairs.filter(|(known, new)| known == new && known.as_str() != ANY).count()
        };
        let (index, best) = candidates
            .iter()
            .enumerate()
            .take(MAX_COMPARED)
            .filter(|(_, template)| template.len() == count)
            .map(|(index, template)| (index, equal(template)))
            .max_by_key(|(index, equal)| (*equal, std::cmp::Reverse(*index)))?;
        #[expect(clippy::cast_precision_loss, reason = "a few hundred words")]
        let share = best as f64 / count as f64;
        if share < SIMILARITY {
            return None;
        }
        let template = &candidates[index];
        let merged: Vec<String> = template
            .iter()
            .zip(&self.tokens)
            .map(|(known, new)| if known == new { known.clone() } else { ANY.to_owned() })
            .collect();
        Some(Match { index, generalised: (merged != *template).then_some(merged) })
    }
}
