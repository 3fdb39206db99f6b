//! Microsoft Teams: an adaptive card for a workflow webhook. Texts are runs of
//! a rich text block, in which no markup is read.

use callboard_domain::notifications::Message;
use serde_json::{Value, json};

pub(crate) fn body(message: &Message) -> Value {
    let mut blocks = vec![block(
        json!({ "type": "TextRun", "text": message.headline, "weight": "Bolder", "size": "Medium" }),
    )];
    blocks.extend(message.facts.iter().map(|fact| block(json!({ "type": "TextRun", "text": fact }))));
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": blocks,
                "actions": [{ "type": "Action.OpenUrl", "title": "Open", "url": message.url }],
            },
        }],
    })
}

fn block(run: Value) -> Value {
    json!({ "type": "RichTextBlock", "inlines": [run] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        insta::assert_json_snapshot!(body(&crate::chat::hostile()));
    }
}
