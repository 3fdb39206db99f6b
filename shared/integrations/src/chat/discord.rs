//! Discord: an embed of a webhook. Markup is escaped, and nobody is mentioned.

use callboard_domain::notifications::Message;
use serde_json::{Value, json};

/// Longest title of an embed, in characters.
const MAX_TITLE_CHARS: usize = 256;
/// Longest description of an embed, in characters.
const MAX_DESCRIPTION_CHARS: usize = 4_096;

pub(crate) fn body(message: &Message) -> Value {
    let facts: Vec<String> = message.facts.iter().map(|fact| escaped(fact)).collect();
    json!({
        "embeds": [{
            "title": cut(escaped(&message.headline), MAX_TITLE_CHARS),
            "description": cut(facts.join("\n"), MAX_DESCRIPTION_CHARS),
            "url": message.url,
        }],
        "allowed_mentions": { "parse": [] },
    })
}

fn cut(text: String, max_chars: usize) -> String {
    text.chars().take(max_chars).collect()
}

/// Every ASCII punctuation character can be escaped; mentions and addresses are
/// broken by a word joiner as well, which nothing shows.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(
            char,
            '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '<' | '[' | ']' | '(' | ')' | '#' | '-' | '@'
        ) {
            escaped.push('\\');
        }
        escaped.push(char);
        if char == '@' {
            escaped.push('\u{2060}');
        }
    }
    escaped.replace("://", ":\u{2060}//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        insta::assert_json_snapshot!(body(&crate::chat::hostile()));
    }
}
