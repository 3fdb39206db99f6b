//! The binaries of this workspace as child processes, each with an
//! environment of its own. Dropping one kills it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::{Client, Settings};

/// How long a process may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// A running binary of this workspace.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    output: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    /// Its working folder, so that defaults under `.data` stay out of the tree.
    _folder: TempDir,
}

impl Process {
    /// Starts `callboard` (the local runner) or `callboard-<function>` with
    /// these variables and none of the test's own `SERVICE_` and `AWS_` ones.
    ///
    /// # Errors
    /// When the binary was not built or does not start.
    pub fn start(name: &str, settings: &Settings) -> Result<Self> {
        Self::command(name, &[], settings)
    }

    /// Starts a binary with arguments, such as a command of the local runner.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn command(name: &str, arguments: &[&str], settings: &Settings) -> Result<Self> {
        let path = binary(name)?;
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(&path);
        command.args(arguments);
        for (variable, _) in std::env::vars_os() {
            let text = variable.to_string_lossy();
            if text.starts_with("SERVICE_") || text.starts_with("AWS_") || text == "PORT" {
                command.env_remove(&variable);
            }
        }
        let mut child = command
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", path.display()))?;
        let output = Arc::new(Mutex::new(String::new()));
        let readers = [collect(child.stdout.take(), &output), collect(child.stderr.take(), &output)]
            .into_iter()
            .flatten();
        let readers = readers.collect();
        Ok(Self { name: name.to_owned(), child, output, readers, _folder: folder })
    }

    /// What it has printed so far, both streams together.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How it ended; `None` while it runs.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Asks it to stop, as a service manager does.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn terminate(&self) -> Result<()> {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(asked.success(), "kill ended with {asked}");
        Ok(())
    }

    /// Waits until it ends by itself. [`Process::output`] is whole then.
    ///
    /// # Errors
    /// When it still runs after 30 seconds.
    pub async fn end(&mut self) -> Result<ExitStatus> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(status) = self.ended()? {
                for reader in self.readers.drain(..) {
                    // A reader that panicked has told so.
                    let _ = reader.join();
                }
                return Ok(status);
            }
            tokio::time::sleep(PAUSE).await;
        }
        bail!("{} still runs after {PATIENCE:?}; it printed:\n{}", self.name, self.output())
    }

    /// Resident memory in bytes, as the system counts it.
    ///
    /// # Errors
    /// On a system without `/proc`, or after the process ended.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most resident memory it ever had, in bytes.
    ///
    /// # Errors
    /// As [`Process::resident_bytes`].
    pub fn peak_bytes(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &'static str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context(name)?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- output of {}\n{}---", self.name, self.output());
        }
    }
}

/// Reads a stream to its end in a thread, so that the process never waits for
/// a full pipe.
fn collect(
    stream: Option<impl Read + Send + 'static>,
    output: &Arc<Mutex<String>>,
) -> Option<JoinHandle<()>> {
    let stream = stream?;
    let output = Arc::clone(output);
    Some(std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            output.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }))
}

/// The path of a binary: beside the folder of the running test.
fn binary(name: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.ancestors().find(|folder| folder.ends_with("deps")).and_then(|deps| deps.parent());
    let path = folder.or_else(|| test.parent()).context("this test has no folder")?.join(name);
    ensure!(
        path.is_file(),
        "{} is missing: build it first with `cargo build --workspace --bins`",
        path.display()
    );
    Ok(path)
}

/// The local runner as a process, listening.
#[derive(Debug)]
pub struct Runner {
    client: Client,
    process: Process,
}

impl Runner {
    /// Starts it on a free port and waits until it answers.
    ///
    /// # Errors
    /// When it ends instead, or does not answer within 30 seconds; its output
    /// is in the message.
    pub async fn start(settings: &Settings) -> Result<Self> {
        let port = free_port()?;
        let mut settings = settings.clone();
        settings.push(("SERVICE_PORT".to_owned(), port.to_string()));
        let mut process = Process::start("callboard", &settings)?;
        let client = Client::new(format!("http://127.0.0.1:{port}"))?;
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(status) = process.ended()? {
                bail!(
                    "callboard ended with {status} instead of listening; it printed:\n{}",
                    process.output()
                );
            }
            if client.get("/api/health?probe=live").await.is_ok_and(|answer| answer.status.is_success()) {
                return Ok(Self { client, process });
            }
            tokio::time::sleep(PAUSE).await;
        }
        bail!("callboard did not answer within {PATIENCE:?}; it printed:\n{}", process.output())
    }

    /// A client of it.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Its process.
    #[must_use]
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A port nobody listens on. With a public address configured the runner
/// prints that one, so its port has to be chosen beforehand.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_binary_is_named_with_the_command_that_builds_it() {
        let error = Process::start("callboard-nothing", &Settings::new()).unwrap_err().to_string();
        assert!(error.contains("callboard-nothing is missing") && error.contains("cargo build"), "{error}");
    }
}
