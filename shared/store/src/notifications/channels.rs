//! Channels: where notifications go.

use callboard_domain::ids::{ChannelId, UserId};
use callboard_domain::notifications::ChannelKind;
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelRow {
    /// Id.
    pub id: ChannelId,
    /// What people call it.
    pub name: String,
    /// Kind.
    pub kind: ChannelKind,
    /// Sealed configuration.
    pub config: String,
    /// Its address as it may be shown.
    pub target: String,
    /// Deliveries that failed one after another.
    pub failures: i64,
    /// Since when nothing is sent.
    pub paused_at: Option<Timestamp>,
    /// What the last failed delivery said.
    pub last_error: Option<String>,
    /// Messages of one hour; what comes beyond waits until the hour is over and becomes one.
    pub hourly_limit: i64,
    /// Whose it is; `None` belongs to the instance.
    pub user: Option<UserId>,
    /// Who created it.
    pub created_by: Option<UserId>,
    /// When something arrived at its present address for the first time.
    pub verified_at: Option<Timestamp>,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT id, name, kind, config, target, failures, paused_at, last_error, hourly_limit, user_id, created_by, verified_at, created_at, updated_at \
             FROM channels ",
            $tail
        )
    };
}

statements! {
    /// A new channel.
    INSERT = "INSERT INTO channels (id, name, kind, config, target, hourly_limit, user_id, created_by, created_at, updated_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) ON CONFLICT DO NOTHING";
    /// One channel. PK
    BY_ID = select!("WHERE id = $1");
    /// One channel, locked. PK
    LOCK = select!("WHERE id = $1 for_update()");
    /// Channels after an id. PK
    LIST = select!("WHERE id > $1 ORDER BY id LIMIT $2");
    /// Channels of the instance and of a person, after an id. ix: channels_of_user
    VISIBLE = select!("WHERE id > $1 AND (user_id = $3 OR user_id IS NULL) ORDER BY id LIMIT $2");
    /// The channel of a kind that a person has once. ix: channels_of_user
    OWN = select!("WHERE user_id = $1 AND kind = $2 ORDER BY id LIMIT 1");
    /// Some channels. PK
    SOME = select!("WHERE id in_ints($1)");
    /// How many channels the instance has, up to a number. ix: channels_of_user
    COUNT_OF_INSTANCE = "SELECT COUNT(*) FROM (SELECT 1 FROM channels WHERE user_id IS NULL LIMIT $1) c";
    /// How many channels a person has, up to a number. ix: channels_of_user
    COUNT_OF_USER = "SELECT COUNT(*) FROM (SELECT 1 FROM channels WHERE user_id = $1 LIMIT $2) c";
    /// Changes a channel. PK
    SAVE = "UPDATE channels SET name = $2, config = $3, target = $4, failures = $5, paused_at = $6, last_error = $7, \
        hourly_limit = $8, updated_at = $9, verified_at = $10 WHERE id = $1";
    /// Another sealed form of the same configuration, unless it changed. PK
    RESEAL = "UPDATE channels SET config = $3 WHERE id = $1 AND config = $2";
    /// Removes a channel. PK
    DELETE = "DELETE FROM channels WHERE id = $1";
    /// Removes its subscriptions. ix: subscriptions_of_channel
    DELETE_SUBSCRIPTIONS = "DELETE FROM subscriptions WHERE channel_id = $1";
    /// Removes what waits for it. ix: held_notifications_of_channel
    DELETE_HELD = "DELETE FROM held_notifications WHERE channel_id = $1";
    /// Channels of a person. ix: channels_of_user
    OF_USER = "SELECT id FROM channels WHERE user_id = $1 ORDER BY id";
    /// Removes its log. ix: deliveries_of_channel
    DELETE_DELIVERIES = "DELETE FROM deliveries WHERE channel_id = $1";
}

fn read(row: &Row) -> Result<ChannelRow> {
    let mut r = row.reader();
    Ok(ChannelRow {
        id: ChannelId(r.int()?),
        name: r.text()?,
        kind: ChannelKind::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown kind of channel"))?,
        config: r.text()?,
        target: r.text()?,
        failures: r.int()?,
        paused_at: r.opt_time()?,
        last_error: r.opt_text()?,
        hourly_limit: r.int()?,
        user: r.opt_int()?.map(UserId),
        created_by: r.opt_int()?.map(UserId),
        verified_at: r.opt_time()?,
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

/// Takes the id of a new channel.
///
/// # Errors
/// [`StoreError`].
pub async fn new_id(session: &mut Session) -> Result<ChannelId> {
    Ok(ChannelId(ids::allocate_one(session, Kind::Channel).await?))
}

/// Stores a new channel; false when the person has one of its kind already.
///
/// # Errors
/// [`StoreError`].
pub async fn insert(session: &mut Session, row: &ChannelRow) -> Result<bool> {
    let args = args![
        row.id,
        &row.name,
        row.kind.as_str(),
        &row.config,
        &row.target,
        row.hourly_limit,
        row.user,
        row.created_by,
        row.created_at
    ];
    Ok(session.execute(&INSERT, args).await? == 1)
}

/// One channel.
///
/// # Errors
/// [`StoreError`].
pub async fn get(session: &mut Session, id: ChannelId) -> Result<Option<ChannelRow>> {
    session.first(&BY_ID, args![id]).await?.as_ref().map(read).transpose()
}

/// Some channels.
///
/// # Errors
/// [`StoreError`].
pub async fn get_many(session: &mut Session, ids: Vec<i64>) -> Result<Vec<ChannelRow>> {
    session.all(&SOME, args![ids]).await?.iter().map(read).collect()
}

/// How many channels a person has, or the instance, up to `most`.
///
/// # Errors
/// [`StoreError`].
pub async fn count(session: &mut Session, user: Option<UserId>, most: i64) -> Result<i64> {
    let row = match user {
        Some(user) => session.one(&COUNT_OF_USER, args![user, most]).await?,
        None => session.one(&COUNT_OF_INSTANCE, args![most]).await?,
    };
    row.reader().int()
}

/// One channel, locked until the transaction ends.
///
/// # Errors
/// [`StoreError`].
pub async fn lock(session: &mut Session, id: ChannelId) -> Result<Option<ChannelRow>> {
    session.first(&LOCK, args![id]).await?.as_ref().map(read).transpose()
}

/// Channels by id, after one of them.
///
/// # Errors
/// [`StoreError`].
pub async fn list(session: &mut Session, after: Option<ChannelId>, limit: i64) -> Result<Vec<ChannelRow>> {
    let after = after.map_or(0, ChannelId::get);
    session.all(&LIST, args![after, limit]).await?.iter().map(read).collect()
}

/// Channels of the instance and of a person by id, after one of them.
///
/// # Errors
/// [`StoreError`].
pub async fn visible(
    session: &mut Session,
    user: Option<UserId>,
    after: Option<ChannelId>,
    limit: i64,
) -> Result<Vec<ChannelRow>> {
    let after = after.map_or(0, ChannelId::get);
    // No account has this id.
    let user = user.map_or(0, UserId::get);
    session.all(&VISIBLE, args![after, limit, user]).await?.iter().map(read).collect()
}

/// The channel of a kind that a person has once.
///
/// # Errors
/// [`StoreError`].
pub async fn own(session: &mut Session, user: UserId, kind: ChannelKind) -> Result<Option<ChannelRow>> {
    session.first(&OWN, args![user, kind.as_str()]).await?.as_ref().map(read).transpose()
}

/// Deletes the channels of a person, with all that belongs to them.
///
/// # Errors
/// [`StoreError`].
pub async fn delete_of_user(session: &mut Session, user: UserId) -> Result<()> {
    for row in session.all(&OF_USER, args![user]).await? {
        delete(session, ChannelId(row.reader().int()?)).await?;
    }
    Ok(())
}

/// Writes a channel that was read with [`lock`].
///
/// # Errors
/// [`StoreError`].
pub async fn save(session: &mut Session, row: &ChannelRow) -> Result<()> {
    let args = args![
        row.id,
        &row.name,
        &row.config,
        &row.target,
        row.failures,
        row.paused_at,
        row.last_error.clone(),
        row.hourly_limit,
        row.updated_at,
        row.verified_at
    ];
    session.execute(&SAVE, args).await?;
    Ok(())
}

/// Replaces the sealed configuration of a channel, unless it changed meanwhile.
///
/// # Errors
/// [`StoreError`].
pub async fn reseal(session: &mut Session, id: ChannelId, before: &str, after: &str) -> Result<bool> {
    Ok(session.execute(&RESEAL, args![id, before, after]).await? == 1)
}

/// Deletes a channel with its subscriptions, what waits for it, and its log.
///
/// # Errors
/// [`StoreError`].
pub async fn delete(session: &mut Session, id: ChannelId) -> Result<()> {
    for statement in [&DELETE_HELD, &DELETE_DELIVERIES, &DELETE_SUBSCRIPTIONS, &DELETE] {
        session.execute(statement, args![id]).await?;
    }
    Ok(())
}
