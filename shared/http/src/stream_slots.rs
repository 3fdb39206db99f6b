//! How many live streams a process serves at a time, in all and for one
//! identity. This bounds what the process holds for them; other processes count
//! their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};

use crate::error::ApiError;
use callboard_platform::config::registry::{SSE_MAX_PER_IDENTITY, SSE_MAX_STREAMS};

/// Seconds after which somebody may ask again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("30");

/// Counts the streams of a process.
#[derive(Debug, Clone)]
pub(crate) struct StreamSlots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    max_of_one: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_identity: HashMap<Vec<u8>, usize>,
}

/// The place of one stream, until it is dropped.
#[derive(Debug)]
pub struct StreamSlot {
    slots: StreamSlots,
    identity: Vec<u8>,
}

impl StreamSlots {
    pub(crate) fn new(max: usize, max_of_one: usize) -> Self {
        Self(Arc::new(Shared { max, max_of_one, open: Mutex::default() }))
    }

    /// Takes a place.
    ///
    /// # Errors
    /// 429 `too_many_streams` when there is none.
    pub(crate) fn take(&self, identity: Vec<u8>) -> Result<StreamSlot, ApiError> {
        let mut open = self.lock();
        let of_one = open.by_identity.get(&identity).copied().unwrap_or_default();
        if of_one >= self.0.max_of_one {
            return Err(too_many(format!(
                "{of_one} live streams are open for this account, key or address, which is as many as {} allows. \
                 Close one of them, or ask again later.",
                SSE_MAX_PER_IDENTITY.name
            )));
        }
        if open.all >= self.0.max {
            return Err(too_many(format!(
                "{} live streams are open, which is as many as {} allows. Ask again later.",
                open.all, SSE_MAX_STREAMS.name
            )));
        }
        open.all += 1;
        open.by_identity.insert(identity.clone(), of_one + 1);
        Ok(StreamSlot { slots: self.clone(), identity })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_many(message: String) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message)
        .with_header(RETRY_AFTER, RETRY_AFTER_SECONDS)
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.slots.lock();
        open.all -= 1;
        let of_one = open.by_identity.get(&self.identity).copied().unwrap_or_default();
        if of_one > 1 {
            open.by_identity.insert(std::mem::take(&mut self.identity), of_one - 1);
        } else {
            open.by_identity.remove(&self.identity);
        }
    }
}
