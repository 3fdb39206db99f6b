//! The mail server of the settings: used where the environment names none. Its password belongs to the host it was saved
//! for and never goes to another one.

use callboard_auth::sealed::{Place, StoredSecrets};
use callboard_domain::audit::AuditAction;
use callboard_domain::smtp::{SmtpSecurity, SmtpSettings};
use callboard_domain::time::Timestamp;
use callboard_platform::config::{Config, MailConfig, MailServer, Secret, SetServer};
use callboard_store::accounts::users;
use callboard_store::db::Session;
use callboard_store::settings::{self, StoredSettings};
use callboard_store::{Store, StoreError, boxed};
use serde_json::json;

use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::shapes::UserRef;
use crate::{Change, Context, Result};

fn password_place() -> Place {
    Place::new("settings", "smtp.password", 0)
}

fn parse(stored: Option<&StoredSettings>) -> Result<SmtpSettings> {
    let Some(stored) = stored else { return Ok(SmtpSettings::default()) };
    Ok(serde_json::from_str(&stored.value).map_err(|_| StoreError::Damaged("settings of mail"))?)
}

/// What is set, and when.
#[derive(Debug, Clone)]
pub struct StoredMail {
    /// What is set.
    pub settings: SmtpSettings,
    /// When it was set last.
    pub updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    pub updated_by: Option<UserRef>,
}

/// What is set about mail.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn stored(ctx: &Context) -> Result<StoredMail> {
    let mut session = ctx.store.db().read().await?;
    let stored = settings::get(&mut session, None, SmtpSettings::NAME).await?;
    let by = match stored.as_ref().and_then(|stored| stored.updated_by) {
        Some(user) => users::get_many(&mut session, vec![user.get()]).await?,
        None => Vec::new(),
    };
    Ok(StoredMail {
        settings: parse(stored.as_ref())?,
        updated_at: stored.map(|stored| stored.updated_at),
        updated_by: by.first().map(UserRef::from_row),
    })
}

/// How mail is sent: as the environment says, or else as it is set here.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn effective(
    store: &Store,
    secrets: &StoredSecrets,
    config: &Config,
) -> Result<Option<MailConfig>> {
    // A demo sends nothing.
    if config.mail.is_some() || config.demo {
        return Ok(config.mail.clone());
    }
    let stored = settings::get(&mut store.db().read().await?, None, SmtpSettings::NAME).await?;
    let set = parse(stored.as_ref())?;
    let port = set.port_or_default();
    let security = set.encryption();
    let (Some(host), Some(from)) = (set.host, set.from.and_then(|from| from.parse().ok())) else {
        return Ok(None);
    };
    let sign_in = match (set.user, set.sealed_password) {
        (Some(user), Some(sealed)) => match secrets.open(&password_place(), &sealed) {
            Ok(password) => Some((user, Secret::new(&password))),
            Err(error) => {
                tracing::error!(%error, "the stored password of the mail server does not open; no mail is sent");
                return Ok(None);
            }
        },
        _ => None,
    };
    let server = SetServer { host, port, security, sign_in, allowed: config.egress_allow.clone() };
    Ok(Some(MailConfig { server: MailServer::Set(server), from, is_password_exposed: false }))
}

/// Changes of the mail server.
#[derive(Debug, Clone, Default)]
pub struct MailEdit {
    /// Host; clearing it forgets the password.
    pub host: Change<String>,
    /// Port.
    pub port: Change<u16>,
    /// How the connection is encrypted.
    pub security: Change<SmtpSecurity>,
    /// Name to sign in with.
    pub user: Change<String>,
    /// Password in clear text.
    pub password: Change<String>,
    /// Sender.
    pub from: Change<String>,
}

/// Changes the mail server.
///
/// # Errors
/// [`AdministrationRule`]; [`crate::QueryError::Secret`] when no password can be stored.
pub async fn edit(ctx: &Context, acting: Acting<'_>, secrets: &StoredSecrets, edit: MailEdit) -> Result<()> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let locked = settings::lock(&mut session, None, SmtpSettings::NAME, acting.now).await?;
    let before = parse(Some(&locked))?;
    let sealed = edit.password.try_map(|plain| secrets.seal(&password_place(), &plain))?;
    let is_password_kept = sealed.is_keep();
    let mut after = SmtpSettings {
        host: edit.host.applied_to(before.host.clone()),
        port: edit.port.applied_to(before.port),
        security: edit.security.applied_to(before.security),
        user: edit.user.applied_to(before.user.clone()),
        sealed_password: sealed.applied_to(before.sealed_password.clone()),
        from: edit.from.applied_to(before.from.clone()),
    };
    if after.host.is_none() {
        after.sealed_password = None;
    }
    if after.sealed_password.is_some() && is_password_kept && after.host != before.host {
        return Err(AdministrationRule::MailPasswordOfAnotherHost.into());
    }
    if after.sealed_password.is_some() && after.encryption() == SmtpSecurity::None {
        return Err(AdministrationRule::MailPasswordExposed.into());
    }
    write(session, acting, &before, &after).await
}

async fn write(
    mut session: Session,
    acting: Acting<'_>,
    before: &SmtpSettings,
    after: &SmtpSettings,
) -> Result<()> {
    let by = acting.caller.user_id();
    let value = json!(after).to_string();
    settings::set(&mut session, None, SmtpSettings::NAME, &value, acting.now, by).await?;
    let shown = |set: &SmtpSettings| {
        json!({
            "host": set.host, "port": set.port, "security": set.security, "user": set.user, "from": set.from,
            "hasPassword": set.sealed_password.is_some(),
        })
    };
    let (old, new) = (shown(before), shown(after));
    let changed: serde_json::Map<String, serde_json::Value> = new
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, now)| old[key.as_str()] != **now)
        .map(|(key, now)| (key.clone(), json!({ "before": old[key.as_str()], "after": now })))
        .collect();
    let detail = json!({ "group": SmtpSettings::NAME, "changed": changed });
    let recorded =
        acting.record(&mut session, AuditAction::SettingsChanged, ("settings", 0), None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}

/// Seals the stored password under the first key of the ring: stored secrets, those sealed anew, and those that no key
/// opens.
pub(crate) async fn rotate(store: &Store, secrets: &StoredSecrets) -> Result<(u64, u64, u64)> {
    let mut session = store.db().begin().await?;
    let Some(stored) = settings::get(&mut session, None, SmtpSettings::NAME).await? else {
        return Ok((0, 0, 0));
    };
    let locked = settings::lock(&mut session, None, SmtpSettings::NAME, stored.updated_at).await?;
    let mut found = parse(Some(&locked))?;
    let Some(sealed) = &found.sealed_password else { return Ok((0, 0, 0)) };
    match secrets.reseal(&password_place(), sealed) {
        Ok(None) => Ok((1, 0, 0)),
        Ok(Some(anew)) => {
            found.sealed_password = Some(anew);
            let (at, by) = (locked.updated_at, locked.updated_by);
            settings::set(&mut session, None, SmtpSettings::NAME, &json!(found).to_string(), at, by).await?;
            session.commit().await?;
            Ok((1, 1, 0))
        }
        Err(unusable) => {
            tracing::error!(%unusable, "the stored password of the mail server was not sealed anew");
            Ok((1, 0, 1))
        }
    }
}
