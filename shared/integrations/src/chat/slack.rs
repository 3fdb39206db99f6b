//! Slack: blocks of an incoming webhook, or of a message that a bot writes.
//! Texts are `plain_text` or elements of rich text, in which Slack reads no
//! markup, mention or link.

use callboard_domain::notifications::{FailureLine, Message};
use serde::Deserialize;
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
    if !message.failures.is_empty() {
        let items: Vec<Value> = message.failures.iter().map(item).collect();
        let mut elements = vec![json!({ "type": "rich_text_list", "style": "bullet", "elements": items })];
        elements.extend(
            message.failures_left_out().map(|text| section(&[json!({ "type": "text", "text": text })])),
        );
        blocks.push(json!({ "type": "rich_text", "elements": elements }));
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

/// The arguments of `chat.postMessage`.
pub(crate) fn bot_body(channel: &str, message: &Message) -> Value {
    let mut body = body(message);
    body["channel"] = json!(channel);
    body
}

fn item(failure: &FailureLine) -> Value {
    let details = failure.details();
    let mut elements = vec![json!({ "type": "link", "url": failure.url, "text": failure.title })];
    // An element without a text is refused.
    if !details.is_empty() {
        elements.push(json!({ "type": "text", "text": details }));
    }
    section(&elements)
}

fn section(elements: &[Value]) -> Value {
    json!({ "type": "rich_text_section", "elements": elements })
}

fn plain(text: &str, max_chars: usize) -> Value {
    let text: String = text.chars().take(max_chars).collect();
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

/// The three characters that begin markup of Slack.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What the Web API said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Taken,
    Refused(Refusal),
    /// No answer of that API.
    Unknown,
}

/// Why a message was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// One sentence for people.
    pub(crate) reason: String,
    /// Whether another attempt may succeed.
    pub(crate) may_pass: bool,
}

/// Reads an answer of the Web API.
pub(crate) fn answer(body: &[u8]) -> Answer {
    #[derive(Deserialize)]
    struct Body {
        ok: bool,
        error: Option<String>,
    }
    match serde_json::from_slice::<Body>(body) {
        Ok(Body { ok: true, .. }) => Answer::Taken,
        Ok(Body { error: Some(code), .. }) => Answer::Refused(refusal(&code)),
        _ => Answer::Unknown,
    }
}

fn refusal(code: &str) -> Refusal {
    let known = match code {
        "channel_not_found" => {
            "Slack does not know this channel, or the bot may not see it; check the channel id and invite the bot."
        }
        "not_in_channel" => "The bot is not in this Slack channel; invite it there.",
        "is_archived" => "This Slack channel is archived.",
        "invalid_auth" | "not_authed" => "Slack does not accept the bot token; enter a new one.",
        "token_revoked" | "token_expired" | "account_inactive" => {
            "The bot token was revoked or has expired; enter a new one."
        }
        "missing_scope" | "not_allowed_token_type" | "no_permission" => {
            "The bot token lacks the scope chat:write; add it and install the app again."
        }
        "restricted_action" | "restricted_action_read_only_channel" | "ekm_access_denied" => {
            "The settings of the Slack workspace do not let the bot write to this channel."
        }
        "ratelimited" | "rate_limited" => "Slack accepts no more messages for now.",
        "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => {
            "Slack could not handle the message; its service has a problem."
        }
        _ => "",
    };
    let may_pass = matches!(
        code,
        "ratelimited"
            | "rate_limited"
            | "internal_error"
            | "fatal_error"
            | "service_unavailable"
            | "request_timeout"
    );
    let code: String = code.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect();
    let reason = if known.is_empty() {
        format!("Slack refused the message: {code}.")
    } else {
        format!("{known} ({code})")
    };
    Refusal { reason, may_pass }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        insta::assert_json_snapshot!(body(&crate::chat::hostile()));
    }

    #[test]
    fn a_bot_says_the_same() {
        insta::assert_json_snapshot!(bot_body("C0123456789", &crate::chat::hostile()));
    }

    #[test]
    fn an_answer_is_told_in_a_sentence() {
        assert_eq!(answer(br#"{"ok":true,"ts":"1.2"}"#), Answer::Taken);
        assert_eq!(answer(b"<html>"), Answer::Unknown);
        for (code, words, may_pass) in [
            ("channel_not_found", "invite the bot", false),
            ("not_in_channel", "invite it there", false),
            ("invalid_auth", "does not accept the bot token", false),
            ("ratelimited", "no more messages", true),
            ("<!channel>x", "Slack refused the message: channelx.", false),
        ] {
            let body = json!({ "ok": false, "error": code }).to_string();
            let Answer::Refused(refused) = answer(body.as_bytes()) else { panic!("{code}") };
            assert!(refused.reason.contains(words), "{refused:?}");
            assert_eq!(refused.may_pass, may_pass, "{code}");
        }
    }
}
