//! Mail: what is sent to whom ([`Mail`], [`send_notification`]), and how. Only
//! handlers of jobs send: a request enqueues, so that it neither waits for a mail server
//! nor tells by its time whether a mail is sent.

mod letter;
mod server;

use std::time::{Duration, SystemTime};

use callboard_domain::notifications::Message as Notification;
use callboard_domain::time::Timestamp;
use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, AsyncTransport as _, Message};
use sha2::{Digest as _, Sha256};

use crate::config::Config;
use letter::Letter;

/// Refusals of a sender that has yet to authenticate, or with another password:
/// the operator can mend them.
const MENDABLE: [u16; 5] = [530, 534, 535, 538, 454];

/// A mail to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// Address of the recipient.
    pub to: String,
    /// What it says.
    pub about: About,
}

/// What a mail is about, with the values that stand in it.
#[derive(Clone, PartialEq, Eq)]
pub enum About {
    /// Proves that the address belongs to the account; 24 hours.
    VerifyEmail {
        /// Name of the account.
        username: String,
        /// Token of the link.
        token: String,
    },
    /// Sets a new password; one hour.
    ResetPassword {
        /// Name of the account.
        username: String,
        /// Token of the link.
        token: String,
    },
    /// Invites to an account that exists and has no password; 72 hours.
    Invite {
        /// Name of the account.
        username: String,
        /// Who invites.
        invited_by: Option<String>,
        /// Token of the link.
        token: String,
    },
    /// The password was changed.
    PasswordChanged {
        /// Name of the account.
        username: String,
        /// API keys that still open the account, as the settings show them.
        api_keys: Vec<String>,
    },
    /// The address was changed; goes to the old one.
    EmailChanged {
        /// Name of the account.
        username: String,
    },
    /// The account can now be entered by signing in at a provider.
    OauthLinked {
        /// Name of the account.
        username: String,
        /// The provider, as people know it.
        provider: String,
    },
    /// The account can no longer be entered by signing in at a provider.
    OauthUnlinked {
        /// Name of the account.
        username: String,
    },
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mail")
    }
}

impl std::fmt::Debug for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("About")
    }
}

/// Whether mails with links can be sent: there is a mail server, and the
/// public address is known. Links are never made of what a request says.
#[must_use]
pub const fn is_configured(config: &Config) -> bool {
    config.mail.is_some() && config.site_url.is_some()
}

/// Whether a text names a sender, such as `Callboard <tests@example.org>`.
#[must_use]
pub fn is_sender(text: &str) -> bool {
    text.parse::<Mailbox>().is_ok()
}

/// Why a mail was not sent. Holds no value of the mail and no password.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// There is no mail server, or no public address for its link.
    #[error("mail is not configured (SERVICE_SMTP_URL, SERVICE_MAIL_FROM, SERVICE_SITE_URL)")]
    NotConfigured,
    /// The mail server of the settings is at an address that this service does not reach.
    #[error("the mail server is at an address that is not reached from here")]
    NotReached,
    /// The name of the mail server leads nowhere.
    #[error("the name of the mail server is not known")]
    UnknownHost,
    /// The address of the recipient is none.
    #[error("the recipient has no valid mail address")]
    Recipient,
    /// The parts make no message.
    #[error("the mail cannot be put together: {0}")]
    Message(#[from] lettre::error::Error),
    /// The mail server will not take it, now or later.
    #[error("the mail server refused: {0}")]
    Refused(lettre::transport::smtp::Error),
    /// The mail server could not be reached or asks to come back.
    #[error("the mail server does not take it now: {0}")]
    Later(lettre::transport::smtp::Error),
}

impl MailError {
    /// Whether another attempt cannot help.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::Later(_) | Self::UnknownHost)
    }

    /// One sentence for people. What the server said is left out: it may contain the address.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::NotConfigured => {
                "No mail server is set up; an administrator can set one up in the settings, together with SERVICE_SITE_URL."
            }
            Self::NotReached => {
                "The mail server is in a private network; SERVICE_EGRESS_ALLOW can allow its host."
            }
            Self::UnknownHost => "The host of the mail server cannot be found; check its name.",
            Self::Recipient => "The mail address is not valid.",
            Self::Message(_) => "The mail could not be put together.",
            Self::Refused(error) | Self::Later(error) => match error.status().map(u16::from) {
                Some(530 | 534 | 535 | 538 | 454) => {
                    "The mail server did not accept the user name and password."
                }
                Some(550..=553) => "The mail server refused the sender or the recipient.",
                Some(_) => "The mail server refused the message.",
                None if error.is_tls() => {
                    "No encrypted connection to the mail server could be made; check its port and encryption."
                }
                None if error.is_timeout() => {
                    "The mail server did not answer in time; check its host and port."
                }
                None => "The mail server could not be reached; check its host and port.",
            },
        }
    }

    /// The reply code of the mail server, if it answered.
    #[must_use]
    pub fn smtp_code(&self) -> Option<u16> {
        match self {
            Self::Refused(error) | Self::Later(error) => error.status().map(u16::from),
            Self::NotConfigured
            | Self::NotReached
            | Self::UnknownHost
            | Self::Recipient
            | Self::Message(_) => None,
        }
    }
}

/// Sends a mail. `key` names it: the same mail sent twice after a crash
/// arrives under one message id; with another token it is another mail.
///
/// # Errors
/// [`MailError`].
pub async fn send(config: &Config, mail: &Mail, key: &str, now: Timestamp) -> Result<(), MailError> {
    let letter = Letter::about(&mail.about, config.site_url.as_ref()).ok_or(MailError::NotConfigured)?;
    let name = name_of(key, &letter);
    deliver(config, &mail.to, &letter, &name, None, now).await
}

/// Sends a mail that shows whether mail arrives. It holds no link, so that it needs no public address.
///
/// # Errors
/// [`MailError`].
pub async fn send_test(config: &Config, to: &str, now: Timestamp) -> Result<(), MailError> {
    let letter = Letter::test();
    let name = name_of(&format!("test:{}", now.millis()), &letter);
    deliver(config, to, &letter, &name, None, now).await
}

/// A notification on its way to an address.
#[derive(Debug)]
pub struct NotificationMail<'a> {
    /// Address.
    pub to: &'a str,
    /// What to say.
    pub message: &'a Notification,
    /// Token that ends these mails; without one the mail brings no link to do so.
    pub unsubscribe: Option<&'a str>,
}

/// Sends a notification. `key` names it, as in [`send`].
///
/// # Errors
/// [`MailError`].
pub async fn send_notification(
    config: &Config,
    mail: &NotificationMail<'_>,
    key: &str,
    now: Timestamp,
) -> Result<(), MailError> {
    let site = config.site_url.as_ref().ok_or(MailError::NotConfigured)?;
    let letter = Letter::notification(mail.message, site, mail.unsubscribe);
    let unsubscribe = mail.unsubscribe.map(|token| format!("<{site}/api/unsubscribe?token={token}>"));
    // A token is another one at every attempt.
    let name = name_of(key, &Letter::notification(mail.message, site, None));
    deliver(config, mail.to, &letter, &name, unsubscribe, now).await
}

async fn deliver(
    config: &Config,
    to: &str,
    letter: &Letter,
    name: &str,
    unsubscribe: Option<String>,
    now: Timestamp,
) -> Result<(), MailError> {
    let settings = config.mail.as_ref().ok_or(MailError::NotConfigured)?;
    let to: Address = to.parse().map_err(|_| MailError::Recipient)?;
    let domain = settings.from.email.domain();
    let millis = Duration::from_millis(u64::try_from(now.millis()).unwrap_or_default());
    let mut message = Message::builder()
        .from(settings.from.clone())
        .to(Mailbox::new(None, to))
        .subject(letter.subject())
        .date(SystemTime::UNIX_EPOCH + millis)
        .message_id(Some(format!("<{name}@{domain}>")))
        .header(AutoSubmitted);
    if let Some(unsubscribe) = unsubscribe {
        message = message.header(ListUnsubscribe(unsubscribe)).header(ListUnsubscribePost);
    }
    let message = message.multipart(MultiPart::alternative_plain_html(letter.text(), letter.html()))?;
    let own_name = config.site_url.as_ref().map_or(domain, |site| site.host());
    let server = server::transport(&settings.server, own_name).await?;
    match server.send(message).await {
        Ok(_) => Ok(()),
        Err(error) => {
            let code = error.status().map(u16::from);
            let is_final = error.is_permanent() && !code.is_some_and(|code| MENDABLE.contains(&code));
            Err(if is_final { MailError::Refused(error) } else { MailError::Later(error) })
        }
    }
}

/// A name that is the same for the same letter of the same job.
fn name_of(key: &str, letter: &Letter) -> String {
    let hash = Sha256::new().chain_update(key).chain_update([0]).chain_update(letter.text()).finalize();
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A header that lettre does not know, and that is only written.
macro_rules! written_header {
    ($(#[$doc:meta])* $name:ident $(($field:ty))? = $header:literal, $value:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        struct $name $(($field))?;

        impl Header for $name {
            fn name() -> HeaderName {
                HeaderName::new_from_ascii_str($header)
            }

            fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
                Err("it is only written".into())
            }

            fn display(&self) -> HeaderValue {
                let value: fn(&Self) -> String = $value;
                HeaderValue::new(Self::name(), value(self))
            }
        }
    };
}

written_header! {
    /// Tells automatic responders not to answer (RFC 3834).
    AutoSubmitted = "Auto-Submitted", |_| "auto-generated".to_owned()
}
written_header! {
    /// Where mail programs end these mails (RFC 2369).
    ListUnsubscribe(String) = "List-Unsubscribe", |header| header.0.clone()
}
written_header! {
    /// Says that one POST request there does it (RFC 8058).
    ListUnsubscribePost = "List-Unsubscribe-Post", |_| "List-Unsubscribe=One-Click".to_owned()
}
