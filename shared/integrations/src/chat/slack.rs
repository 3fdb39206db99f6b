//! Slack: blocks of an incoming webhook. Texts are `plain_text`, in which
//! Slack reads no markup, mention or link.

use callboard_domain::notifications::Message;
use serde_json::{Value, json};

/// Longest text of a header block, in characters.
const MAX_HEADER_CHARS: usize = 150;
/// Longest text of a section block, in characters.
const MAX_SECTION_CHARS: usize = 3_000;

pub(crate) fn body(message: &Message) -> Value {
    let mut blocks = vec![json!({
        "type": "header",
        "text": plain(&message.headline, MAX_HEADER_CHARS),
    })];
    if !message.facts.is_empty() {
        let facts = message.facts.join("\n");
        blocks.push(json!({ "type": "section", "text": plain(&facts, MAX_SECTION_CHARS) }));
    }
    blocks.push(json!({
        "type": "actions",
        "elements": [{
            "type": "button",
            "text": plain("Open", MAX_HEADER_CHARS),
            "url": message.url,
            "action_id": "open",
        }],
    }));
    // Shown where blocks are not, for instance on a lock screen.
    json!({ "text": escaped(&message.headline), "blocks": blocks, "unfurl_links": false, "unfurl_media": false })
}

fn plain(text: &str, max_chars: usize) -> Value {
    let text: String = text.chars().take(max_chars).collect();
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

/// The three characters that begin markup of Slack.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        insta::assert_json_snapshot!(body(&crate::chat::hostile()));
    }
}
