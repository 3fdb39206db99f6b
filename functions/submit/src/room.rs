//! How much of what was sent is taken apart at the same time. A body in pieces
//! takes several times its size, so this bounds the memory of the process
//! whatever is sent to it at once; who finds no room waits, in the order of
//! coming.

use tokio::sync::{Semaphore, SemaphorePermit};

/// What one permit stands for.
const UNIT_BYTES: usize = 64 * 1024;
/// Room for bodies of 8 MiB together: some thirty runs of a hundred tests, or
/// one body that is larger.
const UNITS: u32 = 128;

static ROOM: Semaphore = Semaphore::const_new(UNITS as usize);

/// Waits for the room that a body of so many bytes takes; holds it as long as
/// what is answered lives.
pub(crate) async fn room_for(bytes: usize) -> Option<SemaphorePermit<'static>> {
    // Nobody closes it, so there is always a permit in the end.
    ROOM.acquire_many(units(bytes)).await.ok()
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes / UNIT_BYTES + 1).unwrap_or(UNITS).min(UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_takes_room_and_none_more_than_there_is() {
        assert_eq!(units(0), 1);
        assert_eq!(units(UNIT_BYTES), 2);
        assert_eq!(units(UNIT_BYTES * UNITS as usize), UNITS);
        assert_eq!(units(usize::MAX), UNITS);
    }
}
