//! Sending one message to one channel.

use callboard_domain::notifications::{ChannelKind, Message};
use callboard_domain::time::Timestamp;
use callboard_platform::config::Config;
use callboard_platform::egress::{EgressError, UserUrl};
use callboard_platform::mail::{self, MailError};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::chat::{discord, slack, teams};
use crate::signature::signature;

const EVENT: HeaderName = HeaderName::from_static("x-service-event");
const DELIVERY: HeaderName = HeaderName::from_static("x-service-delivery");
const SIGNATURE: HeaderName = HeaderName::from_static("x-service-signature");
/// Characters of an answer that the log shows.
const MAX_SHOWN_CHARS: usize = 200;

/// A message on its way to a channel.
#[derive(Debug)]
pub struct Notification<'a> {
    /// Kind of channel.
    pub kind: ChannelKind,
    /// Address of the channel: a URL, or a mail address.
    pub address: &'a str,
    /// Secret that signs the request; webhooks only.
    pub secret: Option<&'a str>,
    /// Token that ends the mails of this channel; mail only.
    pub unsubscribe: Option<&'a str>,
    /// Id of the delivery, the same at every attempt.
    pub delivery: i64,
    /// Event.
    pub event: &'a str,
    /// When the event was handled.
    pub at: Timestamp,
    /// What to say.
    pub message: &'a Message,
}

/// Why a message did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Status of the answer, if there was one.
    pub status: Option<u16>,
    /// One sentence for people.
    pub reason: String,
    /// When the recipient wants to be asked again at the earliest, ms from now.
    pub retry_after_ms: Option<i64>,
    /// Whether another attempt is pointless.
    pub is_final: bool,
}

/// Sends a message. Returns the status of the answer; `None` for mail.
///
/// # Errors
/// [`Failure`], with a sentence that never contains the address.
pub async fn send(config: &Config, sent: &Notification<'_>, now: Timestamp) -> Result<Option<u16>, Failure> {
    let body = match sent.kind {
        ChannelKind::Email | ChannelKind::PersonalEmail => {
            return send_mail(config, sent, now).await.map(|()| None);
        }
        // Arrives where it is stored.
        ChannelKind::Browser => return Ok(None),
        ChannelKind::Slack => slack::body(sent.message),
        ChannelKind::Discord => discord::body(sent.message),
        ChannelKind::Teams => teams::body(sent.message),
        ChannelKind::Webhook => json!({
            "id": sent.delivery,
            "event": sent.event,
            "payload": sent.message,
            "timestamp": sent.at.to_iso(),
        }),
    };
    post(config, sent, &body, now).await.map(Some)
}

async fn send_mail(config: &Config, sent: &Notification<'_>, now: Timestamp) -> Result<(), Failure> {
    let key = format!("delivery:{}", sent.delivery);
    let mail =
        mail::NotificationMail { to: sent.address, message: sent.message, unsubscribe: sent.unsubscribe };
    mail::send_notification(config, &mail, &key, now).await.map_err(|error: MailError| Failure {
        status: error.smtp_code(),
        reason: error.sentence().to_owned(),
        retry_after_ms: None,
        is_final: error.is_final(),
    })
}

async fn post(
    config: &Config,
    sent: &Notification<'_>,
    body: &Value,
    now: Timestamp,
) -> Result<u16, Failure> {
    let client = UserUrl::new(config.egress_allow.clone());
    let body = body.to_string().into_bytes();
    let answer = client.send_once(Method::POST, sent.address, headers(sent, &body, now), body).await;
    let answer = answer.map_err(|error| unreachable(&error))?;
    let status = answer.status.as_u16();
    if answer.status.is_success() {
        return Ok(status);
    }
    let said: String = String::from_utf8_lossy(&answer.body)
        .chars()
        .filter(|char| !char.is_control())
        .take(MAX_SHOWN_CHARS)
        .collect();
    let reason = if answer.status.is_redirection() {
        format!("The recipient answered {} and names another address; enter that one.", answer.status)
    } else if said.trim().is_empty() {
        format!("The recipient answered {}.", answer.status)
    } else {
        format!("The recipient answered {}: {}", answer.status, said.trim())
    };
    let seconds = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<i64>().ok());
    let may_pass = answer.status.is_server_error()
        || matches!(answer.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    Err(Failure {
        status: Some(status),
        reason,
        retry_after_ms: seconds.map(|seconds| seconds.saturating_mul(1_000)),
        is_final: !may_pass,
    })
}

fn headers(sent: &Notification<'_>, body: &[u8], now: Timestamp) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if sent.kind == ChannelKind::Webhook {
        if let Ok(event) = HeaderValue::from_str(sent.event) {
            headers.insert(EVENT, event);
        }
        headers.insert(DELIVERY, sent.delivery.into());
        if let Some(secret) = sent.secret
            && let Ok(mut value) = HeaderValue::from_str(&signature(secret, now.millis() / 1_000, body))
        {
            value.set_sensitive(true);
            headers.insert(SIGNATURE, value);
        }
    }
    headers
}

/// The texts of HTTP errors contain the address, which is a secret here.
fn unreachable(error: &EgressError) -> Failure {
    let (reason, is_final) = match error {
        EgressError::Refused => (
            "The address is not reachable from this service; an administrator can allow its host with SERVICE_EGRESS_ALLOW.",
            true,
        ),
        EgressError::TooSlow => ("The recipient did not answer within 10 seconds.", false),
        _ => ("The recipient could not be reached.", false),
    };
    Failure { status: None, reason: reason.to_owned(), retry_after_ms: None, is_final }
}
