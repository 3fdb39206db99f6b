//! Mail: the server it goes through, and whom it is from.

use callboard_domain::account::email_key;
use callboard_domain::smtp::SmtpSecurity;
use lettre::message::Mailbox;
use lettre::{AsyncSmtpTransport, Tokio1Executor};

use super::Secret;
use super::reader::Reader;
use super::registry::{Kind, Value, Variable};
use crate::egress::Allowed;

/// `SERVICE_SMTP_URL`
pub const SMTP_URL: Variable = Variable {
    name: "SERVICE_SMTP_URL",
    kind: Kind::SecretAddress,
    default: Value::Unset,
    meaning: "Mail server: `smtps://user:password@host` for TLS from the start, `smtp://user:password@host:587?tls=required` for \
              STARTTLS, `smtp://host:25` for neither. Special characters of the password are percent-encoded. Not set: the \
              one of the settings is used.",
};
/// `SERVICE_MAIL_FROM`
pub const MAIL_FROM: Variable = Variable {
    name: "SERVICE_MAIL_FROM",
    kind: Kind::Text,
    default: Value::Unset,
    meaning: "Sender of mails, such as `Callboard <tests@example.org>`. Required with `SERVICE_SMTP_URL`. Mails with links are \
              sent only when `SERVICE_SITE_URL` is set too.",
};

/// `SERVICE_MAIL_ALLOW`
pub const MAIL_ALLOW: Variable = Variable {
    name: "SERVICE_MAIL_ALLOW",
    kind: Kind::Words,
    default: Value::Unset,
    meaning: "Whom notifications may be mailed to besides confirmed addresses of accounts: addresses and domains, such as \
              `releases@example.org, example.com`.",
};

/// `SERVICE_SLACK_API_URL`
pub const SLACK_API_URL: Variable = Variable {
    name: "SERVICE_SLACK_API_URL",
    kind: Kind::Address,
    default: Value::Text("https://slack.com/api"),
    meaning: "Where the Web API of Slack is, for channels with a bot token. For GovSlack: `https://slack-gov.com/api`.",
};

/// A mail server that administrators set.
#[derive(Debug, Clone)]
pub struct SetServer {
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// How the connection is encrypted.
    pub security: SmtpSecurity,
    /// Name and password to sign in with.
    pub sign_in: Option<(String, Secret)>,
    /// Targets that the environment opens.
    pub allowed: Allowed,
}

/// The mail server.
#[derive(Debug, Clone)]
pub enum MailServer {
    /// As the environment names it: a URL that may hold a password.
    Url(Secret),
    /// As administrators set it.
    Set(SetServer),
}

/// How mail is sent.
#[derive(Debug, Clone)]
pub struct MailConfig {
    /// The mail server.
    pub server: MailServer,
    /// Whom mails are from.
    pub from: Mailbox,
    /// Whether a password would cross a network unencrypted.
    pub is_password_exposed: bool,
}

/// Whether notifications may be mailed to an address that belongs to no account; `allowed` are addresses and domains in
/// lower case.
#[must_use]
pub fn allows(allowed: &[String], address: &str) -> bool {
    let key = email_key(address);
    let Some((_, domain)) = key.rsplit_once('@') else { return false };
    allowed.iter().any(|entry| *entry == key || entry == domain)
}

/// The variables of this part, in the order of the table.
pub(super) fn variables() -> [Variable; 4] {
    [SMTP_URL, MAIL_FROM, MAIL_ALLOW, SLACK_API_URL]
}

/// Whom notifications may be mailed to.
pub(super) fn read_allowed(reader: &Reader) -> Vec<String> {
    reader.words(&MAIL_ALLOW).iter().map(|entry| email_key(entry)).collect()
}

pub(super) fn read(reader: &Reader) -> Option<MailConfig> {
    let (url, from) = (reader.optional_text(&SMTP_URL), reader.optional_text(&MAIL_FROM));
    let from = match (&url, from) {
        (Some(_), None) => {
            reader.refuse(
                &MAIL_FROM,
                "is required when SERVICE_SMTP_URL is set, e.g. Callboard <tests@example.org>",
            );
            None
        }
        (_, Some(text)) => match text.parse::<Mailbox>() {
            Ok(from) => Some(from),
            Err(_) => {
                reader.refuse(
                    &MAIL_FROM,
                    format!("must be a mail address such as Callboard <tests@example.org>, got {text:?}"),
                );
                None
            }
        },
        (None, None) => None,
    };
    let url = url?;
    if AsyncSmtpTransport::<Tokio1Executor>::from_url(&url).is_err() {
        reader.refuse(
            &SMTP_URL,
            "must be smtps://user:password@host, smtp://user:password@host:587?tls=required or smtp://host:25",
        );
        return None;
    }
    let is_password_exposed = url::Url::parse(&url).is_ok_and(|url| {
        let is_local = url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
        let is_encrypted = url.scheme() == "smtps" || url.query_pairs().any(|(name, _)| name == "tls");
        url.password().is_some() && !is_local && !is_encrypted
    });
    Some(MailConfig { server: MailServer::Url(Secret::new(&url)), from: from?, is_password_exposed })
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn config(pairs: &[(&str, &str)]) -> Result<Config, String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::from_env(pairs).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_server_and_a_sender_make_mail() {
        let from = ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>");
        for url in [
            "smtps://u:p4ss@mail.example.org",
            "smtp://u:p4ss@mail.example.org:587?tls=required",
            "smtp://localhost:1025",
        ] {
            let config = config(&[("SERVICE_SMTP_URL", url), from]).unwrap();
            assert_eq!(config.warnings, Vec::<String>::new(), "{url}");
            assert!(!format!("{config:?}").contains("p4ss"));
            assert!(config.mail.is_some());
        }
        let exposed = config(&[("SERVICE_SMTP_URL", "smtp://u:p4ss@mail.example.org"), from]).unwrap();
        assert_eq!(exposed.warnings.len(), 1);
        assert!(config(&[from]).unwrap().mail.is_none());
    }

    #[test]
    fn notifications_are_mailed_to_the_addresses_and_domains_that_are_named() {
        let config = config(&[
            ("SERVICE_SMTP_URL", "smtp://localhost:1025"),
            ("SERVICE_MAIL_FROM", "tests@example.org"),
            ("SERVICE_MAIL_ALLOW", "Releases@example.org, example.com"),
        ]);
        let config = config.unwrap();
        for address in ["releases@example.org", "RELEASES@EXAMPLE.ORG", "anybody@example.com"] {
            assert!(config.mails_to(address), "{address}");
        }
        for address in ["ada@example.org", "ada@sub.example.com", "example.com", "ada@notexample.com", ""] {
            assert!(!config.mails_to(address), "{address}");
        }
    }

    #[test]
    fn half_or_unreadable_settings_are_refused_without_the_password() {
        let refused = [
            (vec![("SERVICE_SMTP_URL", "smtps://u:p4ss@mail.example.org")], "SERVICE_MAIL_FROM is required"),
            (
                vec![
                    ("SERVICE_SMTP_URL", "https://u:p4ss@mail.example.org"),
                    ("SERVICE_MAIL_FROM", "a@example.org"),
                ],
                "SERVICE_SMTP_URL must be smtps://",
            ),
            (
                vec![
                    ("SERVICE_SMTP_URL", "smtp://u:p4ss@mail.example.org?tls=maybe"),
                    ("SERVICE_MAIL_FROM", "a@example.org"),
                ],
                "SERVICE_SMTP_URL must be smtps://",
            ),
            (vec![("SERVICE_MAIL_FROM", "nobody")], "SERVICE_MAIL_FROM must be a mail address"),
        ];
        for (pairs, expected) in refused {
            let error = config(&pairs).unwrap_err();
            assert!(error.contains(expected) && !error.contains("p4ss"), "{error}");
        }
    }
}
