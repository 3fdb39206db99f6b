//! How much memory the files of all calls of a process take while they are
//! received. It is a bound and no promise: what finds no room is staged.

use std::sync::{Arc, LazyLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of one file that are worth keeping in memory.
pub const IN_MEMORY_BYTES: usize = 1024 * 1024;
/// Most bytes of all files together.
const TOGETHER: usize = 32 * 1024 * 1024;

static MEMORY: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(TOGETHER)));

/// Memory that one file may take.
#[derive(Debug)]
pub struct Room(Option<OwnedSemaphorePermit>);

impl Room {
    /// Room for so many bytes; for none when others have taken it all.
    #[must_use]
    pub fn take(bytes: usize) -> Self {
        let bytes = u32::try_from(bytes.min(IN_MEMORY_BYTES)).unwrap_or_default();
        Self(Arc::clone(&MEMORY).try_acquire_many_owned(bytes).ok())
    }

    /// How many bytes fit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Gives back all but so many bytes.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let unused = self.bytes().saturating_sub(bytes);
        drop(self.0.as_mut().and_then(|room| room.split(unused)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_find_as_much_room_as_there_is() {
        let mut rooms: Vec<Room> = Vec::new();
        while let Some(room) = Some(Room::take(IN_MEMORY_BYTES)).filter(|room| room.bytes() > 0) {
            rooms.push(room);
        }
        assert!(!rooms.is_empty() && rooms.len() <= TOGETHER / IN_MEMORY_BYTES);
        rooms[0].shrink(IN_MEMORY_BYTES - 100);
        assert_eq!(rooms[0].bytes(), IN_MEMORY_BYTES - 100);
        assert_eq!(Room::take(IN_MEMORY_BYTES).bytes(), 0);
        assert_eq!(Room::take(100).bytes(), 100);
        rooms.clear();
        assert_eq!(Room::take(IN_MEMORY_BYTES).bytes(), IN_MEMORY_BYTES);
    }
}
