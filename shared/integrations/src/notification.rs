//! Sending one message to one channel.

use callboard_domain::notifications::{ChannelKind, Message};
use callboard_domain::time::Timestamp;
use callboard_platform::config::Config;
use callboard_platform::egress::{EgressError, FixedHost, UserUrl};
use callboard_platform::mail::{self, MailError};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
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
    /// Address of the channel: a URL, a mail address, or the id of a channel of Slack that a bot writes to.
    pub address: &'a str,
    /// Secrets that sign the request, the newest first; webhooks only.
    pub secrets: &'a [&'a str],
    /// Token of a bot; Slack only.
    pub bot_token: Option<&'a str>,
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
    if let (ChannelKind::Slack, Some(token)) = (sent.kind, sent.bot_token) {
        return post_as_bot(config, sent, token).await.map(Some);
    }
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
    let said = shown(&answer.body);
    let reason = if answer.status.is_redirection() {
        format!("The recipient answered {} and names another address; enter that one.", answer.status)
    } else if said.trim().is_empty() {
        format!("The recipient answered {}.", answer.status)
    } else {
        format!("The recipient answered {}: {}", answer.status, said.trim())
    };
    Err(Failure {
        status: Some(status),
        reason,
        retry_after_ms: retry_after_ms(&answer.headers),
        is_final: !may_pass(answer.status),
    })
}

/// Writes to a channel of Slack as a bot. The host is one of the environment; its answer has the status 200 also where
/// it refuses.
async fn post_as_bot(config: &Config, sent: &Notification<'_>, token: &str) -> Result<u16, Failure> {
    let answer = bot_request(config, sent, token).await.map_err(|error| unreachable(&error))?;
    let status = answer.status().as_u16();
    let retry_after_ms = retry_after_ms(answer.headers());
    let refused = match slack::answer(answer.body()) {
        slack::Answer::Taken if answer.status().is_success() => return Ok(status),
        slack::Answer::Refused(refused) => refused,
        slack::Answer::Taken | slack::Answer::Unknown => slack::Refusal {
            reason: format!("Slack answered {}.", answer.status()),
            may_pass: may_pass(answer.status()),
        },
    };
    let is_limited = answer.status() == StatusCode::TOO_MANY_REQUESTS;
    let is_final = !refused.may_pass && !is_limited;
    Err(Failure { status: Some(status), reason: refused.reason, retry_after_ms, is_final })
}

async fn bot_request(
    config: &Config,
    sent: &Notification<'_>,
    token: &str,
) -> Result<http::Response<Vec<u8>>, EgressError> {
    let mut authorization = HeaderValue::from_str(&format!("Bearer {token}")).map_err(http::Error::from)?;
    authorization.set_sensitive(true);
    let request = http::Request::post(format!("{}/chat.postMessage", config.slack_api_url))
        .header(AUTHORIZATION, authorization)
        .header(CONTENT_TYPE, "application/json; charset=utf-8")
        .body(slack::bot_body(sent.address, sent.message).to_string().into_bytes())?;
    FixedHost::new()?.send(request).await
}

/// The beginning of an answer, as the log may show it.
fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().filter(|char| !char.is_control()).take(MAX_SHOWN_CHARS).collect()
}

fn retry_after_ms(headers: &HeaderMap) -> Option<i64> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse::<i64>().ok()?;
    Some(seconds.saturating_mul(1_000))
}

/// Whether another attempt may succeed.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

fn headers(sent: &Notification<'_>, body: &[u8], now: Timestamp) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if sent.kind == ChannelKind::Webhook {
        if let Ok(event) = HeaderValue::from_str(sent.event) {
            headers.insert(EVENT, event);
        }
        headers.insert(DELIVERY, sent.delivery.into());
        if !sent.secrets.is_empty()
            && let Ok(mut value) = HeaderValue::from_str(&signature(sent.secrets, now.millis() / 1_000, body))
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
