//! Microsoft Teams: an adaptive card for a workflow webhook. Texts are runs of
//! a rich text block, in which no markup is read.

use callboard_domain::notifications::{FailureLine, Message};
use serde_json::{Value, json};

pub(crate) fn body(message: &Message) -> Value {
    let mut blocks = vec![block(
        json!({ "type": "TextRun", "text": message.headline, "weight": "Bolder", "size": "Medium" }),
    )];
    blocks.extend(message.facts.iter().map(|fact| block(json!({ "type": "TextRun", "text": fact }))));
    blocks.extend(message.failures.iter().map(failure_block));
    blocks.extend(message.failures_left_out().map(|text| block(json!({ "type": "TextRun", "text": text }))));
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

fn failure_block(failure: &FailureLine) -> Value {
    let open = json!({ "type": "Action.OpenUrl", "url": failure.url });
    let title = json!({ "type": "TextRun", "text": failure.title, "selectAction": open });
    let details = failure.details();
    let mut inlines = vec![json!({ "type": "TextRun", "text": "• " }), title];
    if !details.is_empty() {
        inlines.push(json!({ "type": "TextRun", "text": details }));
    }
    json!({ "type": "RichTextBlock", "inlines": inlines })
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
