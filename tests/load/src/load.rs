//! A closed loop of requests: each of a few clients sends its next request
//! when the last one was answered. Bounded in number and in time.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::task::JoinSet;

/// How often, by how many and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Requests in flight.
    pub concurrency: usize,
    /// Most requests.
    pub requests: usize,
    /// No request begins after this.
    pub budget: Duration,
}

/// How long requests took.
#[derive(Debug, Default)]
pub struct Measured {
    /// Each answered request in the order of its end.
    latencies: Vec<Duration>,
    /// From the first beginning to the last end.
    wall: Duration,
    /// What the first refused request was told.
    pub refusal: Option<String>,
}

/// Sends requests; `send` gets the number of the request from 0 on.
///
/// # Errors
/// When no request at all was answered.
pub async fn drive<F, S>(plan: Plan, send: F) -> Result<Measured>
where
    F: Fn(usize) -> S + Clone + Send + 'static,
    S: Future<Output = Result<()>> + Send + 'static,
{
    let next = std::sync::Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..plan.concurrency {
        let (next, send) = (next.clone(), send.clone());
        clients.spawn(async move {
            let (mut latencies, mut refusal) = (Vec::new(), None);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= plan.requests || begun.elapsed() > plan.budget {
                    return (latencies, refusal);
                }
                let sent = Instant::now();
                match send(number).await {
                    Ok(()) => latencies.push((begun.elapsed(), sent.elapsed())),
                    Err(error) => refusal = refusal.or(Some(format!("{error:#}"))),
                }
            }
        });
    }
    let mut ended: Vec<(Duration, Duration)> = Vec::new();
    let mut refusal = None;
    while let Some(client) = clients.join_next().await {
        let (latencies, refused) = client?;
        ended.extend(latencies);
        refusal = refusal.or(refused);
    }
    let wall = begun.elapsed();
    if ended.is_empty() {
        bail!("nothing was answered: {}", refusal.unwrap_or_else(|| "no time".to_owned()));
    }
    ended.sort_unstable();
    Ok(Measured { latencies: ended.into_iter().map(|(_, latency)| latency).collect(), wall, refusal })
}

impl Measured {
    /// From the first beginning to the last end.
    #[must_use]
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// Answered requests.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.latencies.len()
    }

    /// A quantile (0..=1) of the latencies in milliseconds, by nearest rank.
    #[must_use]
    pub fn quantile_ms(&self, q: f64) -> f64 {
        quantile_ms(&self.latencies, q)
    }

    /// Answered requests per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.answered() as f64 / self.wall.as_secs_f64()
    }

    /// The latencies in the order in which requests ended.
    #[must_use]
    pub fn latencies(&self) -> &[Duration] {
        &self.latencies
    }
}

/// A quantile (0..=1) in milliseconds, by nearest rank; 0 for none.
#[must_use]
pub fn quantile_ms(latencies: &[Duration], q: f64) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    // A rank lies between 1 and the number of values.
    let rank = (sorted.len() as f64 * q).ceil().max(1.0) as usize;
    sorted.get(rank - 1).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_nearest_rank() {
        let latencies: Vec<Duration> = (1..=20).map(Duration::from_millis).collect();
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(close(quantile_ms(&latencies, 0.5), 10.0));
        assert!(close(quantile_ms(&latencies, 0.95), 19.0));
        assert!(close(quantile_ms(&latencies[..1], 0.95), 1.0));
        assert!(close(quantile_ms(&[], 0.5), 0.0));
    }

    #[tokio::test]
    async fn a_refusal_is_kept_and_does_not_end_the_loop() {
        let plan = Plan { concurrency: 2, requests: 6, budget: Duration::from_secs(60) };
        let send = |number| async move {
            anyhow::ensure!(number != 3, "no");
            Ok(())
        };
        let measured = drive(plan, send).await.unwrap();
        assert_eq!((measured.answered(), measured.refusal.as_deref()), (5, Some("no")));
    }
}
