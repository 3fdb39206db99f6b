//! The mail server as administrators set it, where the environment names none.

use serde::{Deserialize, Serialize};

use crate::annotations::words;

words! {
    /// How the connection to the mail server is encrypted.
    SmtpSecurity {
        /// TLS from the start.
        Tls = "tls",
        /// STARTTLS, required.
        StartTls = "starttls",
        /// Not at all.
        None = "none",
    }
}

impl<'de> Deserialize<'de> for SmtpSecurity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::parse(&word).ok_or_else(|| serde::de::Error::custom("an unknown kind of encryption"))
    }
}

impl SmtpSecurity {
    /// The port that mail servers use for it.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Tls => 465,
            Self::StartTls => 587,
            Self::None => 25,
        }
    }
}

/// What is set. Mail is sent once there is a host and a sender.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SmtpSettings {
    /// Host of the mail server.
    pub host: Option<String>,
    /// Its port; the usual one of the encryption when it is not set.
    pub port: Option<u16>,
    /// How the connection is encrypted; TLS from the start when it is not set.
    pub security: Option<SmtpSecurity>,
    /// Name to sign in with.
    pub user: Option<String>,
    /// Password, sealed. It belongs to the host it was saved for.
    pub sealed_password: Option<String>,
    /// Sender of mails.
    pub from: Option<String>,
}

impl SmtpSettings {
    /// The name of the group.
    pub const NAME: &'static str = "smtp";

    /// How the connection is encrypted.
    #[must_use]
    pub fn encryption(&self) -> SmtpSecurity {
        self.security.unwrap_or(SmtpSecurity::Tls)
    }

    /// The port that is connected to.
    #[must_use]
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or_else(|| self.encryption().default_port())
    }
}
