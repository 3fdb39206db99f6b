//! Words: how a text is taken apart to be found, and how a question is.
//!
//! Invariant: a question made of a text's own words finds that text, because
//! both are taken apart by the same function.

use unicode_normalization::UnicodeNormalization;

/// Most characters of a word; longer ones are cut.
pub const MAX_WORD_CHARS: usize = 40;

/// Most words that are kept of one thing.
pub const MAX_WORDS: usize = 48;

/// Most words of a question.
pub const MAX_ASKED: usize = 5;

/// The words of some texts, each once: split at everything that is neither
/// letter nor digit and where a lower-case letter or digit meets an upper-case
/// one, folded to lower case and to the compatibility form of Unicode.
#[must_use]
pub fn words<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        each_word(text, |word| {
            if found.len() < MAX_WORDS && !found.contains(&word) {
                found.push(word);
            }
        });
    }
    found
}

fn each_word(text: &str, mut take: impl FnMut(String)) {
    let mut word = String::new();
    let mut chars = 0;
    let mut previous_is_small = false;
    let mut end = |word: &mut String, chars: &mut usize| {
        if !word.is_empty() {
            take(std::mem::take(word));
        }
        *chars = 0;
    };
    for letter in text.nfkc() {
        if !letter.is_alphanumeric() {
            end(&mut word, &mut chars);
            previous_is_small = false;
            continue;
        }
        if letter.is_uppercase() && previous_is_small {
            end(&mut word, &mut chars);
        }
        previous_is_small = !letter.is_uppercase();
        for small in letter.to_lowercase() {
            if chars < MAX_WORD_CHARS && small.is_alphanumeric() {
                word.push(small);
                chars += 1;
            }
        }
    }
    end(&mut word, &mut chars);
}

/// The word under which a commit is found.
#[must_use]
pub fn commit_word(commit: &str) -> String {
    commit.chars().take(MAX_WORD_CHARS).collect::<String>().to_ascii_lowercase()
}

/// A question: its words, the most telling first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Words with whether longer ones that begin so count too.
    pub words: Vec<(String, bool)>,
}

impl Question {
    /// Takes a question apart. The last word counts as the beginning of one;
    /// the longest word leads, because it is likely the rarest.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut words = words([text]);
        words.truncate(MAX_ASKED);
        let last = words.len().saturating_sub(1);
        let mut words: Vec<(String, bool)> =
            words.into_iter().enumerate().map(|(at, word)| (word, at == last)).collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.chars().count()));
        Self { words }
    }
}

/// How well something fits: 2 for a word found as it is, 1 for the beginning
/// of one, halved for every 30 days of age.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a rank, not a sum")]
pub fn rank(exact: usize, prefix: usize, age_ms: i64) -> f64 {
    const HALF_LIFE_MS: f64 = 30.0 * 86_400_000.0;
    (2 * exact + prefix) as f64 * (-(age_ms.max(0) as f64) / HALF_LIFE_MS).exp2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_end_at_signs_and_where_the_case_changes() {
        assert_eq!(
            words(["adds toCart again", "tests/checkout-flow.spec.ts"]),
            ["adds", "to", "cart", "again", "tests", "checkout", "flow", "spec", "ts"]
        );
        assert_eq!(
            words(["HTTPServer 2FA_login ﬁle ÄRGER"]),
            ["httpserver", "2", "fa", "login", "file", "ärger"]
        );
        assert_eq!(words(["pay pay PAY"]), ["pay"]);
        assert_eq!(words([format!("{}!", "x".repeat(100)).as_str()]), ["x".repeat(40)]);
    }

    #[test]
    fn the_longest_word_leads_and_the_last_one_may_go_on() {
        let question = Question::of("to checkout pa");
        assert_eq!(
            question.words,
            [("checkout".to_owned(), false), ("to".to_owned(), false), ("pa".to_owned(), true)]
        );
        assert_eq!(Question::of("a b c d e f g").words.len(), MAX_ASKED);
        assert!(Question::of(" %_\\ ").words.is_empty());
    }

    #[test]
    fn what_is_new_and_exact_comes_first() {
        assert!(rank(1, 0, 0) > rank(0, 1, 0));
        assert!((rank(1, 0, 30 * 86_400_000) - rank(0, 1, 0)).abs() < 1e-9);
        assert!(rank(0, 1, -5) <= 1.0);
    }

    proptest! {
        #[test]
        fn the_words_of_a_text_are_words_already(text in ".{0,200}") {
            let found = words([text.as_str()]);
            for word in &found {
                prop_assert!(!word.is_empty() && word.chars().count() <= MAX_WORD_CHARS);
                prop_assert!(word.chars().all(char::is_alphanumeric));
            }
            prop_assert!(found.len() <= MAX_WORDS);
        }
    }
}
