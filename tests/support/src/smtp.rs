//! A mail server in the test process: it takes what is sent and keeps it, or
//! refuses as it is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

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

/// A running mail server. Dropping it stops it.
#[derive(Debug)]
pub struct MailServer {
    port: u16,
    shared: Arc<Mutex<Shared>>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    received: Vec<ReceivedMail>,
    refusal: Option<String>,
}

impl MailServer {
    /// Starts it on a free port of this machine.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::<Mutex<Shared>>::default();
        let serving = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let shared = Arc::clone(&shared);
                    // A client that hangs up in the middle is its own test's business.
                    tokio::spawn(async move { converse(stream, &shared).await });
                }
            }
        });
        Ok(Self { port, shared, serving })
    }

    /// Its address, for `SERVICE_SMTP_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
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

/// One connection, as RFC 5321 has it.
async fn converse(stream: TcpStream, shared: &Mutex<Shared>) -> std::io::Result<()> {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    output.write_all(b"220 test.localhost ESMTP\r\n").await?;
    let mut mail = ReceivedMail { from: String::new(), to: Vec::new(), content: String::new() };
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let command = line.trim_end();
        let verb = command.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match verb.as_str() {
            "EHLO" | "HELO" => "250 test.localhost".to_owned(),
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
                output.write_all(b"354 go on\r\n").await?;
                mail.content = content(&mut input).await?;
                lock(shared).received.push(mail.clone());
                "250 OK".to_owned()
            }
            "QUIT" => {
                return output.write_all(b"221 bye\r\n").await;
            }
            "RSET" | "NOOP" => "250 OK".to_owned(),
            _ => "502 not here".to_owned(),
        };
        output.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
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
