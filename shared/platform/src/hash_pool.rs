//! Room for the work of passwords. Each hash takes 32 MiB and a core for a
//! fifth of a second, so few run concurrently, on threads that may block.
//! Others wait for their turn, those of one address in one line (`Turns`),
//! and those who signed in before ahead of all others: guesses from everywhere
//! at the same time do not keep people out of their browsers. Who waits too long is sent
//! away.
//!
//! Pipelines sign in with one account from dozens of machines at the same time.
//! Checks of the same password for the same account that are under way at the
//! same time are therefore one piece of work. Nothing of it outlives them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callboard_auth::client_address::ClientAddress;
use callboard_auth::password::{self, Verdict};
use futures::FutureExt as _;
use futures::future::{BoxFuture, WeakShared};
use sha2::{Digest, Sha256};

use crate::fair_queue::{Standing, Turns};

/// Memory counted for one hash, with room for what is around it.
const BYTES_PER_WORK: u64 = 64 * 1024 * 1024;
/// How long a request waits for its turn: long enough for hundreds of others
/// on a small machine, shorter than the minute that proxies wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// Requests that wait for their turn at the same time.
const MOST_WAITING: usize = 1000;

/// Runs the work of passwords.
#[derive(Clone)]
pub struct PasswordWork {
    turns: Turns,
    longest_wait: Duration,
    checks: Arc<Mutex<HashMap<CheckName, Check>>>,
}

/// A hash of what is checked.
type CheckName = [u8; 32];
type Check = WeakShared<BoxFuture<'static, Result<Verdict, Busy>>>;

impl std::fmt::Debug for PasswordWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PasswordWork({} free)", self.turns.free())
    }
}

/// Who asks for work.
#[derive(Debug, Clone, Copy)]
pub struct Asker {
    address: ClientAddress,
    standing: Standing,
}

impl Asker {
    /// Somebody at an address.
    #[must_use]
    pub const fn stranger(address: ClientAddress) -> Self {
        Self { address, standing: Standing::Stranger }
    }

    /// Somebody at an address who is signed in, or who comes with what only an
    /// earlier sign-in or a mail can have brought them.
    #[must_use]
    pub const fn known(address: ClientAddress) -> Self {
        Self { address, standing: Standing::Known }
    }
}

/// There was no room in time (503).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Too many sign-ins at once. Try again in a moment.")]
pub struct Busy;

impl PasswordWork {
    /// Concurrent operations; at least one.
    #[must_use]
    pub fn with_room(at_once: usize) -> Self {
        Self {
            turns: Turns::new(at_once.max(1), MOST_WAITING),
            longest_wait: LONGEST_WAIT,
            checks: Arc::default(),
        }
    }

    /// As much room as this machine has cores, and memory for.
    #[must_use]
    pub fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let by_memory =
            memory_bytes().map_or(cores, |bytes| usize::try_from(bytes / BYTES_PER_WORK).unwrap_or(cores));
        Self::with_room(cores.min(by_memory))
    }

    /// Checks a password against the stored hash of an account, or does the
    /// same work for an account that has none. `account` is the key of the
    /// name that was given, so that names nobody has behave alike.
    ///
    /// # Errors
    /// [`Busy`] after waiting too long.
    pub async fn verify(
        &self,
        from: Asker,
        account: &str,
        password: String,
        stored: Option<String>,
    ) -> Result<Verdict, Busy> {
        let name = check_name(account, &password, stored.as_deref());
        let check = {
            let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
            match checks.get(&name).and_then(WeakShared::upgrade) {
                Some(under_way) => under_way,
                None => {
                    checks.retain(|_, check| check.upgrade().is_some());
                    let here = self.clone();
                    let work = move || password::verify(&password, stored.as_deref());
                    let check = async move { here.run(from, work).await };
                    let check = check.boxed().shared();
                    checks.extend(check.downgrade().map(|weak| (name, weak)));
                    check
                }
            }
        };
        let verdict = check.await;
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if checks.get(&name).is_some_and(|check| check.upgrade().is_none()) {
            checks.remove(&name);
        }
        verdict
    }

    /// Runs work that hashes, when it is the turn of who asks for it.
    ///
    /// # Errors
    /// [`Busy`] after waiting too long.
    pub async fn run<T, W>(&self, from: Asker, work: W) -> Result<T, Busy>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let turn =
            self.turns.take(from.standing, &from.address.subject(), self.longest_wait).await.ok_or(Busy)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            // Held by the work itself: a client that hangs up makes no room.
            drop(turn);
            done
        });
        match done.await {
            Ok(done) => Ok(done),
            Err(stopped) if stopped.is_panic() => std::panic::resume_unwind(stopped.into_panic()),
            // The runtime stops.
            Err(_) => Err(Busy),
        }
    }
}

/// Each part is preceded by its length, so that parts cannot run together.
fn check_name(account: &str, password: &str, stored: Option<&str>) -> CheckName {
    let mut hash = Sha256::new();
    for part in [account, password, stored.unwrap_or_default()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// The memory this process may use, where the system says: the limit of its
/// control group, else the machine's.
fn memory_bytes() -> Option<u64> {
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
    });
    group.into_iter().chain(machine).min()
}

#[cfg(test)]
mod tests {
    use callboard_auth::client_address::{Peer, TrustProxy};
    use http::HeaderMap;

    use super::*;

    fn somewhere() -> Asker {
        let peer = Peer([192, 0, 2, 1].into());
        Asker::stranger(TrustProxy::Nobody.client(Some(peer), &HeaderMap::new()))
    }

    #[tokio::test]
    async fn who_finds_no_room_is_sent_away_and_room_comes_back() {
        let work = PasswordWork { longest_wait: Duration::ZERO, ..PasswordWork::with_room(1) };
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let first = tokio::spawn({
            let work = work.clone();
            async move {
                work.run(somewhere(), move || {
                    let _ = started.send(());
                    released.recv().is_ok()
                })
                .await
            }
        });
        has_started.await.unwrap();
        assert_eq!(work.run(somewhere(), || ()).await, Err(Busy));
        release.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Ok(true));
        assert_eq!(work.run(somewhere(), || 7).await, Ok(7));
    }

    #[tokio::test]
    async fn the_same_check_at_the_same_time_is_done_once() {
        let work = PasswordWork { longest_wait: Duration::ZERO, ..PasswordWork::with_room(1) };
        let stored = password::hash("correct horse battery").unwrap();
        let check = |account: &'static str, password: &str, stored: &Option<String>| {
            let (work, password, stored) = (work.clone(), password.to_owned(), stored.clone());
            async move { work.verify(somewhere(), account, password, stored).await }
        };
        let stored = Some(stored);
        let right = (0..20).map(|_| check("ada", "correct horse battery", &stored));
        let verdicts = futures::future::join_all(right).await;
        assert!(verdicts.iter().all(|verdict| *verdict == Ok(Verdict::Right { needs_rehash: false })));
        // There is room for one: whatever differs is work of its own.
        let others =
            [check("bob", "wrong", &None), check("eve", "wrong", &None), check("bob", "wrong", &None)];
        let verdicts = futures::future::join_all(others).await;
        assert_eq!(verdicts, [Ok(Verdict::Wrong), Err(Busy), Ok(Verdict::Wrong)]);
        assert_eq!(check("ada", "correct horse batterz", &stored).await, Ok(Verdict::Wrong));
    }

    #[test]
    fn this_machine_has_room_for_one_at_least() {
        assert!(PasswordWork::for_this_machine().turns.free() >= 1);
    }
}
