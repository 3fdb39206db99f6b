//! Sends what waited: for a digest, the end of quiet hours, or the next hour of a channel. What is due for a channel
//! at the same time becomes one message.

use std::collections::BTreeSet;

use callboard_domain::ids::ChannelId;
use callboard_domain::notifications::{ChannelKind, Message, NotificationEvent};
use callboard_domain::text::truncate_text;
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::notifications::channels;
use callboard_store::notifications::deliveries::NewDelivery;
use callboard_store::notifications::held::{self, HeldRow};
use serde_json::json;

use super::deliveries::read_message;
use super::dispatch::dispatch;
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
            && recipients.check(ctx, &mut session, channel, Some(row.project), now).await?.is_ok()
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
        let messages = due.iter().map(|row| read_message(&row.payload)).collect::<Result<Vec<_>>>()?;
        let message = summary(ctx, &messages);
        (NotificationEvent::Summary, json!(message).to_string(), format!("summary:{}", first.dedupe_key))
    };
    let project = is_one_project.then_some(first.project);
    Ok(Some(NewDelivery { channel, project, event, dedupe_key: Some(key), payload }))
}

fn summary(ctx: &Context, messages: &[Message]) -> Message {
    let projects: BTreeSet<Option<i64>> = messages.iter().map(|message| message.project_id).collect();
    let of_one = messages.first().filter(|_| projects.len() == 1);
    let (project_id, project_name) =
        of_one.map(|message| (message.project_id, message.project_name.clone())).unwrap_or_default();
    let source = match &project_name {
        Some(name) => name.clone(),
        None => format!("{} projects", projects.len()),
    };
    let mut facts: Vec<String> = messages.iter().take(NAMED).map(line).collect();
    if messages.len() > NAMED {
        facts.push(format!("and {} more", messages.len() - NAMED));
    }
    Message {
        headline: truncate_text(format!("{} notifications from {source}", messages.len()), MAX_LINE_CHARS),
        facts,
        url: project_id.map_or_else(|| ctx.links.home(), |id| ctx.links.project(id)),
        project_id,
        project_name,
        ..Message::default()
    }
}

/// What is new and the fact that says most, on one line.
fn line(message: &Message) -> String {
    let text = match message.facts.first() {
        Some(fact) => format!("{}: {fact}", message.headline),
        None => message.headline.clone(),
    };
    truncate_text(text, MAX_LINE_CHARS)
}
