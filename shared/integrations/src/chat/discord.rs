//! Discord: an embed of a webhook. Markup is escaped, and nobody is mentioned.

use callboard_domain::notifications::{FailureLine, Message};
use serde_json::{Value, json};

/// Longest title of an embed, in characters.
const MAX_TITLE_CHARS: usize = 256;
/// Longest description of an embed, in characters.
const MAX_DESCRIPTION_CHARS: usize = 4_096;

pub(crate) fn body(message: &Message) -> Value {
    let mut lines: Vec<String> = message.facts.iter().map(|fact| escaped(fact)).collect();
    // A link that is cut would be none any more.
    let mut left = MAX_DESCRIPTION_CHARS;
    let failures = message.failures.iter().map(line);
    lines.extend(failures.chain(message.failures_left_out()));
    lines.retain(|line| {
        let chars = line.chars().count() + 1;
        let fits = chars <= left;
        left -= if fits { chars } else { left };
        fits
    });
    json!({
        "embeds": [{
            "title": cut(escaped(&message.headline), MAX_TITLE_CHARS),
            "description": lines.join("\n"),
            "url": message.url,
        }],
        "allowed_mentions": { "parse": [] },
    })
}

fn line(failure: &FailureLine) -> String {
    format!("• [{}]({}){}", escaped(&failure.title), failure.url, escaped(&failure.details()))
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
