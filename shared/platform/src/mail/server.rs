//! The mail server: as the environment names it, or as administrators set it. A host of theirs is reached only where
//! requests of theirs go, and the address that was checked is the one that is connected to.

use std::time::Duration;

use callboard_domain::smtp::SmtpSecurity;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, Tokio1Executor};

use super::MailError;
use crate::config::MailServer;
use crate::egress::{EgressError, reachable};

/// How long the mail server may take for a step.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connects to a mail server when something is sent.
pub(super) async fn transport(
    server: &MailServer,
    own_name: &str,
) -> Result<AsyncSmtpTransport<Tokio1Executor>, MailError> {
    let builder = match server {
        // An address was accepted at the start.
        MailServer::Url(url) => AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose())
            .map_err(|_| MailError::NotConfigured)?,
        MailServer::Set(set) => {
            let address =
                reachable(&set.host, set.port, &set.allowed).await.map_err(|error| match error {
                    EgressError::Refused => MailError::NotReached,
                    _ => MailError::UnknownHost,
                })?;
            let tls = || TlsParameters::new(set.host.clone()).map_err(|_| MailError::UnknownHost);
            let tls = match set.security {
                SmtpSecurity::Tls => Tls::Wrapper(tls()?),
                SmtpSecurity::StartTls => Tls::Required(tls()?),
                SmtpSecurity::None => Tls::None,
            };
            let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(address.to_string());
            let builder = builder.port(set.port).tls(tls);
            match &set.sign_in {
                Some((user, password)) => {
                    builder.credentials(Credentials::new(user.clone(), password.expose().to_owned()))
                }
                None => builder,
            }
        }
    };
    Ok(builder.timeout(Some(PATIENCE)).hello_name(ClientId::Domain(own_name.to_owned())).build())
}
