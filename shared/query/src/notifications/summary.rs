//! Sends what waited: for a digest, the end of quiet hours, or the next hour of a channel. What is due for a channel
//! at the same time becomes one message. A summary of several projects is stored with the project of each line: what
//! its recipient does not reach any more when it is sent is left out.

use callboard_domain::ids::{ChannelId, ProjectId};
use callboard_domain::notifications::{ChannelKind, Message, NotificationEvent, one_line};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::notifications::channels::{self, ChannelRow};
use callboard_store::notifications::deliveries::{self, DeliveryRow, NewDelivery};
use callboard_store::notifications::held::{self, HeldRow};
use callboard_store::{StoreError, boxed};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::dispatch::dispatch;
use super::message::read_message;
use super::recipients::Recipients;
use crate::{Context, Result};

/// Messages that one summary is made of at most; what is more goes into the next.
const MOST_AT_ONCE: i64 = 500;
/// Messages that a summary names, so that it stays below 3 KB.
const NAMED: usize = 12;
/// Longest line about one of them, characters.
const MAX_LINE_CHARS: usize = 200;

/// Queues the next summary that is due; false when none is.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn send_held(ctx: &Context, now: Timestamp) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let Some(id) = held::next_channel(&mut session, now).await? else { return Ok(false) };
    let channel = channels::get(&mut session, id).await?;
    let mut recipients = Recipients::default();
    let mut due = Vec::new();
    for row in held::due(&mut session, id, now, MOST_AT_ONCE).await? {
        if !held::delete(&mut session, &row.dedupe_key).await? {
            continue;
        }
        // What is about a project that was deleted meanwhile, or taken away from its recipient, is dropped.
        if let Some(channel) = &channel
            && recipients.check(ctx, &mut session, channel, row.project, now).await?.is_ok()
        {
            due.push(row);
        }
    }
    if let Some(channel) = &channel {
        // The list in the header of the pages needs no summary.
        let groups: Vec<&[HeldRow]> =
            if channel.kind == ChannelKind::Browser { due.chunks(1).collect() } else { vec![due.as_slice()] };
        for messages in groups {
            if let Some(new) = delivery(ctx, id, messages)? {
                dispatch(&mut session, channel, &new, now).await?;
            }
        }
    }
    session.commit().await?;
    Ok(true)
}

/// One message is sent as it is; several become a summary.
fn delivery(ctx: &Context, channel: ChannelId, due: &[HeldRow]) -> Result<Option<NewDelivery>> {
    let Some(first) = due.first() else { return Ok(None) };
    let is_alone = due.len() == 1;
    let is_one_project = due.iter().all(|row| row.project == first.project);
    let (event, payload, key) = if is_alone {
        (first.event, first.payload.clone(), first.dedupe_key.clone())
    } else {
        let stored = Stored::new(ctx, due)?;
        (NotificationEvent::Summary, json!(stored).to_string(), format!("summary:{}", first.dedupe_key))
    };
    let project = first.project.filter(|_| is_one_project);
    Ok(Some(NewDelivery { channel, project, event, dedupe_key: Some(key), payload }))
}

/// A summary as it is stored: the message, and what it is made of.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    message: Message,
    /// What it is made of; empty in summaries of earlier releases.
    #[serde(default)]
    parts: Vec<Part>,
}

/// What a summary says about a project, or about the instance.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    project: Option<i64>,
    name: Option<String>,
    /// How many messages there are.
    count: usize,
    /// One for each of the first of them.
    lines: Vec<String>,
}

impl Stored {
    fn new(ctx: &Context, due: &[HeldRow]) -> Result<Self> {
        let mut parts: Vec<Part> = Vec::new();
        for row in due {
            let message = read_message(&row.payload)?;
            let project = row.project.map(ProjectId::get);
            let at = parts.iter().position(|part| part.project == project).unwrap_or_else(|| {
                parts.push(Part { project, name: message.project_name.clone(), count: 0, lines: Vec::new() });
                parts.len() - 1
            });
            parts[at].count += 1;
            if parts[at].lines.len() < NAMED {
                parts[at].lines.push(line(&message));
            }
        }
        Ok(Self { message: summary(ctx, &parts), parts })
    }
}

/// What is left of a summary for its recipient, who may reach fewer projects than when it was made. `None` when nothing
/// is, or when nobody knows what it was made of. What is left out is forgotten.
pub(super) async fn still_allowed(
    ctx: &Context,
    session: &mut Session,
    channel: &ChannelRow,
    row: &DeliveryRow,
    now: Timestamp,
) -> Result<Option<Message>> {
    let stored: Stored =
        serde_json::from_str(&row.payload).map_err(|_| StoreError::Damaged("the message of a summary"))?;
    if row.project.is_some() {
        return Ok(Some(stored.message));
    }
    let mut recipients = Recipients::default();
    let (mut parts, before) = (Vec::new(), stored.parts.len());
    for part in stored.parts {
        if recipients.check(ctx, session, channel, part.project.map(ProjectId), now).await?.is_ok() {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    if parts.len() == before {
        return Ok(Some(stored.message));
    }
    let message = summary(ctx, &parts);
    let kept = Stored { message: message.clone(), parts };
    deliveries::set_payload(session, row.id, &json!(kept).to_string()).await?;
    Ok(Some(message))
}

fn summary(ctx: &Context, parts: &[Part]) -> Message {
    let count: usize = parts.iter().map(|part| part.count).sum();
    let of_one = parts.first().filter(|_| parts.len() == 1);
    let (project_id, project_name) = of_one.map(|part| (part.project, part.name.clone())).unwrap_or_default();
    let source = match &project_name {
        Some(name) => name.clone(),
        None if parts.len() == 1 => "Callboard".to_owned(),
        None => format!("{} projects", parts.len()),
    };
    let all: Vec<&String> = parts.iter().flat_map(|part| &part.lines).collect();
    let noun = if count == 1 { "notification" } else { "notifications" };
    let mut message = Message {
        headline: one_line(&format!("{count} {noun} from {source}"), MAX_LINE_CHARS),
        url: project_id.map_or_else(|| ctx.links.home(), |id| ctx.links.project(id)),
        project_id,
        project_name,
        ..Message::default()
    };
    // As many lines as fit; the last one says how many do not.
    for named in (1..=all.len().min(NAMED)).rev() {
        message.facts = all.iter().take(named).map(|line| (*line).clone()).collect();
        if count > named {
            message.facts.push(format!("and {} more", count - named));
        }
        if message.fits() {
            break;
        }
    }
    message.fitted()
}

/// What is new and the fact that says most, on one line.
fn line(message: &Message) -> String {
    let text = match message.facts.first() {
        Some(fact) => format!("{}: {fact}", message.headline),
        None => message.headline.clone(),
    };
    one_line(&text, MAX_LINE_CHARS)
}
