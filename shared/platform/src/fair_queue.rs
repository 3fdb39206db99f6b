//! Turns at work of which only so much goes on at the same time.
//!
//! Who has to wait stands in a line with those of the same origin, and the
//! lines take turns: a crowd from one address delays itself and not everybody
//! else. A crowd from many addresses delays strangers only: who is known comes
//! before all of them. Turns nobody waits for any more are passed on, and so many
//! wait at most that waiting takes little memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// Gives turns.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Mutex<Lines>>);

/// A turn, until it is dropped.
pub(crate) struct Turn(Option<Turns>);

/// Whether whoever asks has proven before who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// They have: they come first.
    Known,
    /// Nothing is known of them.
    Stranger,
}

struct Lines {
    free: usize,
    known: Crowd,
    strangers: Crowd,
}

/// Those of one standing who wait. There are none while a turn is free.
struct Crowd {
    most_waiting: usize,
    /// In the order in which they are next. None is empty.
    lines: VecDeque<(Vec<u8>, VecDeque<oneshot::Sender<Turn>>)>,
}

impl Turns {
    /// This many concurrent turns, for which a given number of others of each standing may
    /// wait.
    pub(crate) fn new(at_once: usize, most_waiting: usize) -> Self {
        let crowd = || Crowd { most_waiting, lines: VecDeque::new() };
        Self(Arc::new(Mutex::new(Lines { free: at_once, known: crowd(), strangers: crowd() })))
    }

    /// How many turns are free.
    pub(crate) fn free(&self) -> usize {
        self.lock().free
    }

    /// A turn, after waiting for it among those of the same origin. `None`
    /// when it takes too long, or too many wait already.
    pub(crate) async fn take(
        &self,
        standing: Standing,
        origin: &[u8],
        longest_wait: Duration,
    ) -> Option<Turn> {
        let given = self.lock().join(standing, origin)?;
        match given {
            Place::Free => Some(Turn(Some(self.clone()))),
            Place::InLine(given) => tokio::time::timeout(longest_wait, given).await.ok()?.ok(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(&self) {
        loop {
            let next = {
                let mut lines = self.lock();
                let next = lines.next();
                if next.is_none() {
                    lines.free += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // Who stood here has left; this turn is still to be given.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

enum Place {
    Free,
    InLine(oneshot::Receiver<Turn>),
}

impl Lines {
    fn join(&mut self, standing: Standing, origin: &[u8]) -> Option<Place> {
        if self.free > 0 {
            self.free -= 1;
            return Some(Place::Free);
        }
        match standing {
            Standing::Known => self.known.join(origin),
            Standing::Stranger => self.strangers.join(origin),
        }
        .map(Place::InLine)
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        self.known.next().or_else(|| self.strangers.next())
    }
}

impl Crowd {
    fn join(&mut self, origin: &[u8]) -> Option<oneshot::Receiver<Turn>> {
        if self.waiting() >= self.most_waiting {
            self.forget_who_left();
        }
        if self.waiting() >= self.most_waiting {
            return None;
        }
        let (give, given) = oneshot::channel();
        match self.lines.iter_mut().find(|(known, _)| known == origin) {
            Some((_, line)) => line.push_back(give),
            None => self.lines.push_back((origin.to_vec(), VecDeque::from([give]))),
        }
        Some(given)
    }

    fn waiting(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    fn forget_who_left(&mut self) {
        for (_, line) in &mut self.lines {
            line.retain(|give| !give.is_closed());
        }
        self.lines.retain(|(_, line)| !line.is_empty());
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let (origin, mut line) = self.lines.pop_front()?;
        let next = line.pop_front();
        if !line.is_empty() {
            self.lines.push_back((origin, line));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use futures::future::{FutureExt as _, join_all};

    use super::*;

    const SHORT: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn lines_take_turns_and_who_came_first_is_first_in_its_line() {
        let turns = Turns::new(1, 100);
        let held = turns.take(Standing::Stranger, b"before", LONG).await.expect("free");
        let order = Mutex::new(Vec::new());
        let come = async |origin: &[u8], name: &'static str| {
            let _turn = turns.take(Standing::Stranger, origin, LONG).await.expect("a turn");
            order.lock().unwrap().push(name);
        };
        let everybody = [
            come(b"crowd", "crowd 1"),
            come(b"crowd", "crowd 2"),
            come(b"crowd", "crowd 3"),
            come(b"ada", "ada 1"),
            come(b"bob", "bob 1"),
            come(b"ada", "ada 2"),
        ];
        let mut all = Box::pin(join_all(everybody));
        assert!(all.as_mut().now_or_never().is_none(), "all of them wait");
        drop(held);
        all.await;
        let order = order.into_inner().unwrap();
        assert_eq!(order, ["crowd 1", "ada 1", "bob 1", "crowd 2", "ada 2", "crowd 3"]);
        assert_eq!(turns.free(), 1);
    }

    #[tokio::test]
    async fn a_turn_that_nobody_waits_for_any_more_goes_to_the_next() {
        let turns = Turns::new(1, 2);
        let held = turns.take(Standing::Stranger, b"a", LONG).await.expect("free");
        let mut gone = Box::pin(turns.take(Standing::Stranger, b"a", LONG));
        assert!(gone.as_mut().now_or_never().is_none());
        let mut given_too_late = Box::pin(turns.take(Standing::Stranger, b"a", LONG));
        assert!(given_too_late.as_mut().now_or_never().is_none());
        assert!(turns.take(Standing::Stranger, b"b", LONG).await.is_none(), "two wait, and no more");
        drop(gone);
        let mut patient = Box::pin(turns.take(Standing::Stranger, b"b", LONG));
        assert!(patient.as_mut().now_or_never().is_none(), "there is room for one who left");
        drop(held);
        // It was given to the one before, who leaves without having seen it.
        drop(given_too_late);
        assert!(patient.await.is_some());
        assert_eq!(turns.free(), 1);
        let held = turns.take(Standing::Stranger, b"a", SHORT).await.expect("free again");
        assert!(turns.take(Standing::Stranger, b"b", SHORT).await.is_none(), "nobody waits for ever");
        drop(held);
        assert_eq!(turns.free(), 1);
    }
    #[tokio::test]
    async fn who_is_known_comes_before_every_stranger_and_finds_room() {
        let turns = Turns::new(1, 3);
        let held = turns.take(Standing::Stranger, b"before", LONG).await.expect("free");
        let order = Mutex::new(Vec::new());
        let come = async |standing, origin: &[u8], name: &'static str| {
            let turn = turns.take(standing, origin, LONG).await;
            order.lock().unwrap().push((name, turn.is_some()));
        };
        let everybody = [
            come(Standing::Stranger, b"a", "a"),
            come(Standing::Stranger, b"b", "b"),
            come(Standing::Stranger, b"c", "c"),
            come(Standing::Stranger, b"d", "one too many"),
            come(Standing::Known, b"ada", "ada"),
            come(Standing::Known, b"bob", "bob"),
        ];
        let mut all = Box::pin(join_all(everybody));
        assert!(all.as_mut().now_or_never().is_none(), "most of them wait");
        drop(held);
        all.await;
        let order = order.into_inner().unwrap();
        let came = |name| (name, true);
        assert_eq!(
            order,
            [("one too many", false), came("ada"), came("bob"), came("a"), came("b"), came("c")]
        );
    }
}
