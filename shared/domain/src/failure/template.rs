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
/// A word that may be anything.
const ANY: &str = "<*>";

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
    pub fn of(signature: &Signature) -> Option<Self> {
        if !signature.is_free_text || signature.template.is_empty() {
            return None;
        }
        let tokens: Vec<String> = signature
            .template
            .split(|one: char| one.is_whitespace() || "=:,;()[]\"'".contains(one))
            .filter(|token| !token.is_empty())
            .map(str::to_owned)
            .collect();
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
        let rest = Signature { template: String::new(), ..signature.clone() };
        let key = serde_json::json!([rest.fingerprint().to_hex(), tokens.len(), start, quoted]);
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
