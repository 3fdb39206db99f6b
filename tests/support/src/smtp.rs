//! A mail server in the test process: it takes what is sent and keeps it, or
//! refuses as it is told. With encryption it wants to know who sends, too.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use base64ct::{Base64, Encoding as _};
use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufStream};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A mail as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMail {
    /// Sender of the envelope.
    pub from: String,
    /// Recipients of the envelope.
    pub to: Vec<String>,
    /// Headers and body as they were sent.
    pub content: String,
}

impl ReceivedMail {
    /// The value of a header, unfolded.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let head = self.content.split("\r\n\r\n").next()?.replace("\r\n ", " ");
        head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

/// How connections to a mail server are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// From the first byte on.
    FromStart,
    /// When the client asks for it (RFC 3207).
    Params,
}

/// A running mail server. Dropping it stops it.
#[derive(Debug)]
pub struct MailServer {
    port: u16,
    shared: Arc<Mutex<Shared>>,
    serving: JoinHandle<()>,
    encryption: Option<Encryption>,
    certificate: Option<NamedTempFile>,
}

#[derive(Debug, Default)]
struct Shared {
    received: Vec<ReceivedMail>,
    refusal: Option<String>,
    passwords: Vec<String>,
    connections: usize,
}

/// What a connection is served with.
#[derive(Clone)]
struct Service {
    shared: Arc<Mutex<Shared>>,
    encryption: Option<(Encryption, TlsAcceptor)>,
}

impl MailServer {
    /// Starts it on a free port of this machine, without encryption.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start() -> Result<Self> {
        Self::serve(None).await
    }

    /// Starts one that encrypts, with a certificate for `localhost` that only
    /// those trust who are told of it.
    ///
    /// # Errors
    /// When no port is free, or no certificate can be made.
    pub async fn start_encrypted(encryption: Encryption) -> Result<Self> {
        Self::serve(Some(encryption)).await
    }

    async fn serve(encryption: Option<Encryption>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::<Mutex<Shared>>::default();
        let mut service = Service { shared: Arc::clone(&shared), encryption: None };
        let mut certificate = None;
        if let Some(encryption) = encryption {
            let CertifiedKey { cert, signing_key } =
                rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
            let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
            let config =
                ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                    .with_safe_default_protocol_versions()?
                    .with_no_client_auth()
                    .with_single_cert(vec![cert.der().clone()], key)?;
            service.encryption = Some((encryption, TlsAcceptor::from(Arc::new(config))));
            let mut file = NamedTempFile::new()?;
            file.write_all(cert.pem().as_bytes())?;
            certificate = Some(file);
        }
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                lock(&service.shared).connections += 1;
                // A client that hangs up in the middle is its own test's business.
                tokio::spawn(async move {
                    match &service.encryption {
                        Some((Encryption::FromStart, acceptor)) => {
                            let stream = acceptor.accept(stream).await?;
                            converse(stream, &service, Stage::Encrypted).await.map(drop)
                        }
                        Some((Encryption::Params, acceptor)) => {
                            match converse(stream, &service, Stage::Plain).await? {
                                Some(stream) => {
                                    let stream = acceptor.accept(stream).await?;
                                    converse(stream, &service, Stage::Upgraded).await.map(drop)
                                }
                                None => Ok(()),
                            }
                        }
                        None => converse(stream, &service, Stage::Plain).await.map(drop),
                    }
                });
            }
        });
        Ok(Self { port, shared, serving, encryption, certificate })
    }

    /// Its address, for `SERVICE_SMTP_URL`; with a name and a password where
    /// it encrypts.
    #[must_use]
    pub fn url(&self) -> String {
        let port = self.port;
        match self.encryption {
            None => format!("smtp://127.0.0.1:{port}"),
            Some(Encryption::FromStart) => format!("smtps://sender:p%40ss@localhost:{port}"),
            Some(Encryption::Params) => format!("smtp://sender:p%40ss@localhost:{port}?tls=required"),
        }
    }

    /// The file that holds its certificate, where it encrypts.
    #[must_use]
    pub fn certificate(&self) -> Option<&Path> {
        self.certificate.as_ref().map(NamedTempFile::path)
    }

    /// The passwords that senders gave, oldest first.
    #[must_use]
    pub fn passwords(&self) -> Vec<String> {
        lock(&self.shared).passwords.clone()
    }

    /// How often somebody connected.
    #[must_use]
    pub fn connections(&self) -> usize {
        lock(&self.shared).connections
    }

    /// From now on answers every recipient with this line, or takes mails
    /// again.
    pub fn refuse(&self, answer: Option<&str>) {
        lock(&self.shared).refusal = answer.map(str::to_owned);
    }

    /// What has arrived, oldest first.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedMail> {
        lock(&self.shared).received.clone()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Plain,
    /// Encrypted before anything was said.
    Encrypted,
    /// Encrypted after it was asked for: the greeting is over.
    Upgraded,
}

/// One connection, as RFC 5321 has it. Answers the stream when the client wants
/// it encrypted.
async fn converse<S>(stream: S, service: &Service, stage: Stage) -> std::io::Result<Option<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let shared = &service.shared;
    let mut stream = BufStream::new(stream);
    if stage != Stage::Upgraded {
        say(&mut stream, "220 test.localhost ESMTP").await?;
    }
    let can_encrypt = stage == Stage::Plain && service.encryption.is_some();
    // Whoever encrypts wants to know who sends.
    let mut is_known = service.encryption.is_none();
    let mut mail = ReceivedMail { from: String::new(), to: Vec::new(), content: String::new() };
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let command = line.trim_end();
        let verb = command.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match verb.as_str() {
            "EHLO" if can_encrypt => "250-test.localhost\r\n250 STARTTLS".to_owned(),
            "EHLO" if !is_known => "250-test.localhost\r\n250 AUTH PLAIN".to_owned(),
            "EHLO" | "HELO" => "250 test.localhost".to_owned(),
            "STARTTLS" if can_encrypt => {
                say(&mut stream, "220 go on").await?;
                return Ok(Some(stream.into_inner()));
            }
            "AUTH" => {
                let told = command.rsplit(' ').next().and_then(|word| Base64::decode_vec(word).ok());
                let told = String::from_utf8(told.unwrap_or_default()).unwrap_or_default();
                lock(shared).passwords.extend(told.rsplit('\0').next().map(str::to_owned));
                is_known = stage != Stage::Plain && told == "\0sender\0p@ss";
                if is_known { "235 welcome" } else { "535 not you" }.to_owned()
            }
            "MAIL" if !is_known => "530 who are you".to_owned(),
            "MAIL" => {
                mail = ReceivedMail { from: address(command), to: Vec::new(), content: String::new() };
                "250 OK".to_owned()
            }
            "RCPT" => match lock(shared).refusal.clone() {
                Some(refusal) => refusal,
                None => {
                    mail.to.push(address(command));
                    "250 OK".to_owned()
                }
            },
            "DATA" => {
                say(&mut stream, "354 go on").await?;
                mail.content = content(&mut stream).await?;
                lock(shared).received.push(mail.clone());
                "250 OK".to_owned()
            }
            "QUIT" => {
                say(&mut stream, "221 bye").await?;
                return Ok(None);
            }
            "RSET" | "NOOP" => "250 OK".to_owned(),
            _ => "502 not here".to_owned(),
        };
        say(&mut stream, &answer).await?;
    }
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), line: &str) -> std::io::Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    stream.flush().await
}

/// The address between angle brackets.
fn address(command: &str) -> String {
    let rest = command.split_once('<').map_or("", |(_, rest)| rest);
    rest.split('>').next().unwrap_or_default().to_owned()
}

/// Lines up to the one that is a dot; a doubled dot at the beginning is one.
async fn content(input: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> std::io::Result<String> {
    let mut content = String::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).await? == 0 || line == ".\r\n" {
            return Ok(content);
        }
        content.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}
