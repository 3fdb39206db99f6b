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
    /// the longest word leads, because it is likely the rarest, and of many
    /// words the longest count. What the lists of test runners print around a
    /// test, such as `1) [chromium] › cart.spec.ts:9:5 › pays`, is left out
    /// where no text holds it.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let tokens = tokens(text);
        let words = words(tokens.iter().copied());
        let last = words.len().saturating_sub(1);
        let mut words: Vec<(String, bool)> =
            words.into_iter().enumerate().map(|(at, word)| (word, at == last)).collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.chars().count()));
        words.truncate(MAX_ASKED);
        Self { words }
    }
}

/// The texts that a filter looks for: the whole, or when it is a test as test
/// runners print it, such as `[chromium] › cart.spec.ts:9:5 › Cart › pays`,
/// its file and its titles, each of them.
#[must_use]
pub fn parts(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    if !text.contains('›') && tokens.len() != 1 {
        return vec![text.to_owned()];
    }
    let parts: Vec<String> = tokens
        .split(|token| *token == "›")
        .map(|part| part.join(" "))
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() { vec![text.to_owned()] } else { parts }
}

/// The parts of a question that a text may hold: without the number of a
/// failure, the browser project in front, and lines of files.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens: Vec<&str> = text.split_whitespace().collect();
    if tokens.len() > 1
        && tokens[0].strip_suffix(')').is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    {
        tokens.remove(0);
    }
    if tokens.first().is_some_and(|first| first.starts_with('['))
        && let Some(end) = tokens.iter().position(|token| token.ends_with(']'))
        && tokens.get(end + 1) == Some(&"›")
    {
        tokens.drain(..=end);
    }
    tokens.into_iter().map(without_line).collect()
}

/// A place such as `cart.spec.ts:9:5` without its line and column.
fn without_line(token: &str) -> &str {
    let mut place = token.trim_matches(['(', ')', ',']);
    for _ in 0..2 {
        place = match place.rsplit_once(':') {
            Some((file, line))
                if file.contains('.') && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) =>
            {
                file
            }
            _ => break,
        };
    }
    place
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
        let question = Question::from_text("to checkout pa");
        assert_eq!(
            question.words,
            [("checkout".to_owned(), false), ("to".to_owned(), false), ("pa".to_owned(), true)]
        );
        assert_eq!(Question::from_text("a b c d e f g").words.len(), MAX_ASKED);
        assert!(Question::from_text(" %_\\ ").words.is_empty());
    }

    #[test]
    fn what_a_test_runner_prints_is_a_question() {
        let asked =
            |text| Question::from_text(text).words.into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(asked("payment.spec.ts:9"), ["payment", "spec", "ts"]);
        assert_eq!(asked("payment.spec.ts:9:5"), ["payment", "spec", "ts"]);
        let whole = "  1) [Mobile Chrome] › tests/payment.spec.ts:9:5 › Payment › pays with a card";
        assert_eq!(asked(whole), ["payment", "tests", "spec", "pays", "with"]);
        assert_eq!(asked("at (tests/payment.spec.ts:9:5)"), ["payment", "tests", "spec", "at", "ts"]);
        assert_eq!(parts(whole), ["tests/payment.spec.ts", "Payment", "pays with a card"]);
        assert_eq!(parts("cart.spec.ts:9"), ["cart.spec.ts"]);
        assert_eq!(parts("pays with a card"), ["pays with a card"]);
        assert_eq!(parts("›"), ["›"]);
        // Nothing of this is a place.
        assert_eq!(asked("ratio 4:3"), ["ratio", "4", "3"]);
        assert_eq!(asked("[smoke] pays"), ["smoke", "pays"]);
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
