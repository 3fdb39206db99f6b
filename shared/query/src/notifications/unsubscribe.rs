//! What ends the mails of a channel: a token that each of them brings. It names channel and address, sealed, so that it
//! opens nothing else, needs no table, and ends nothing after the channel was given another address.

use callboard_auth::sealed::{Place, StoredSecrets};
use callboard_domain::account::email_key;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::ChannelId;
use callboard_domain::notifications::ChannelKind;
use callboard_store::accounts::users;
use callboard_store::notifications::channels;
use serde_json::json;

use super::channels::opened;
use crate::accounts::Acting;
use crate::accounts::refusal::AccountRefusal;
use crate::{Context, Result};

/// How tokens begin, so that pages tell them from those of accounts.
const KIND: &str = "sun";
/// Sealed texts are separated by colons, which links may not hold as they are.
const SEALED: &str = ":";
const LINKED: &str = ".";

fn place(channel: ChannelId) -> Place {
    Place::new("channels", "unsubscribe", channel)
}

/// The token that ends the mails of a channel to an address.
///
/// # Errors
/// [`QueryError::Secret`](crate::QueryError::Secret) without a key to seal it.
pub fn unsubscribe_token(secrets: &StoredSecrets, channel: ChannelId, address: &str) -> Result<String> {
    let sealed = secrets.seal(&place(channel), &email_key(address))?;
    Ok(format!("{KIND}{channel}{LINKED}{}", sealed.replace(SEALED, LINKED)))
}

/// Pauses the channel that a token names, if it still sends to the address for which it was made.
///
/// # Errors
/// [`AccountRefusal::InvalidOrExpiredToken`] for what is no such token.
pub async fn unsubscribe(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    token: &str,
) -> Result<()> {
    let (channel, address) = read(secrets, token).ok_or(AccountRefusal::InvalidOrExpiredToken)?;
    let mut session = ctx.store.db().begin().await?;
    let Some(mut row) = channels::lock(&mut session, channel).await? else { return Ok(()) };
    let present = match (row.kind, row.user) {
        (ChannelKind::Email, _) => Some(opened(secrets, &row)?.address),
        (ChannelKind::PersonalEmail, Some(user)) => {
            users::get(&mut session, user).await?.and_then(|user| user.email).map(|email| email.address)
        }
        _ => None,
    };
    if row.paused_at.is_some() || present.is_none_or(|present| email_key(&present) != address) {
        return Ok(());
    }
    row.paused_at = Some(acting.now);
    row.last_error = Some("The recipient unsubscribed.".to_owned());
    row.updated_at = acting.now;
    channels::save(&mut session, &row).await?;
    let (target, detail) = (("channel", channel.get()), json!({ "name": row.name, "target": row.target }));
    let recorded =
        acting.record(&mut session, AuditAction::ChannelUnsubscribed, target, None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}

fn read(secrets: &StoredSecrets, token: &str) -> Option<(ChannelId, String)> {
    let (channel, sealed) = token.strip_prefix(KIND)?.split_once(LINKED)?;
    let channel = ChannelId(channel.parse().ok()?);
    let sealed = sealed.replace(LINKED, SEALED);
    Some((channel, secrets.open(&place(channel), &sealed).ok()?.to_string()))
}
