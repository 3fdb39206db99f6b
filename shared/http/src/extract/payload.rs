//! Bodies that are kept whole: in memory up to [`IN_MEMORY_BYTES`], in a
//! temporary file above that. What they take comes out of the budget of the
//! process, and is given back with the reservation they come with.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};

use callboard_store::memory_budget::MAX_MEMORY_OF_ONE;
use callboard_store::{Reservation, Resource};

use crate::error::ApiError;

/// Most bytes of one body that are held in memory.
pub(crate) const IN_MEMORY_BYTES: usize = 8 * 1024 * 1024;
/// What is written to a file at a time.
const PIECE_BYTES: usize = 1024 * 1024;
/// How much space for a file is reserved at a time.
const DISK_STEP_BYTES: u64 = 8 * 1024 * 1024;
/// What parsing and applying a body takes besides, as a multiple of its length.
const PARSED_FACTOR: u64 = 3;
/// What applying a body from a file takes: it is read piece by piece.
const STREAMED_BYTES: u64 = 40 * 1024 * 1024;
/// From this size on a body is read off the async threads: others wait for those.
const LARGE_BODY_BYTES: usize = 128 * 1024;

/// The content of a body.
#[derive(Debug)]
pub enum Payload {
    /// One that fits into memory.
    Memory(Vec<u8>),
    /// One that lies in a file without a name, from its start.
    File(File),
}

/// A body with what it holds of the budget.
#[derive(Debug)]
pub struct Received {
    payload: Payload,
    reservation: Reservation,
}

impl Received {
    pub(crate) const fn from_payload(payload: Payload, reservation: Reservation) -> Self {
        Self { payload, reservation }
    }

    /// What `read` makes of it, with what it holds until that is stored; of many
    /// bytes off the async threads.
    ///
    /// # Errors
    /// 503 when there is no room for that, or those of `read`.
    pub async fn read<T, E>(
        self,
        read: impl FnOnce(Payload) -> Result<T, E> + Send + 'static,
    ) -> Result<(T, Reservation), ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let Self { payload, mut reservation } = self;
        let read = read_payload(payload, &mut reservation, read).await?;
        Ok((read, reservation))
    }

    pub(crate) fn into_parts(self) -> (Payload, Reservation) {
        (self.payload, self.reservation)
    }
}

/// What `read` makes of a body; of many bytes off the async threads. The
/// reservation grows by what that takes, and covers the result.
///
/// # Errors
/// 503 when there is no room for that, or those of `read`.
pub async fn read_payload<T, E>(
    payload: Payload,
    reservation: &mut Reservation,
    read: impl FnOnce(Payload) -> Result<T, E> + Send + 'static,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    E: Into<ApiError> + Send + 'static,
{
    let further = match &payload {
        Payload::Memory(bytes) => bytes.len() as u64 * PARSED_FACTOR,
        Payload::File(_) => STREAMED_BYTES,
    };
    let needed = reservation.held(Resource::Memory) + further;
    reservation.grow_to(needed.min(MAX_MEMORY_OF_ONE)).await?;
    if let Payload::Memory(bytes) = &payload
        && bytes.len() < LARGE_BODY_BYTES
    {
        return read(payload).map_err(Into::into);
    }
    let read = tokio::task::spawn_blocking(move || read(payload));
    read.await.map_err(ApiError::internal)?.map_err(Into::into)
}

impl Payload {
    /// All bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn into_bytes(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Memory(bytes) => Ok(bytes),
            Self::File(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
        }
    }
}

/// Where the pieces of a body are collected.
#[derive(Debug)]
pub(crate) struct Collector {
    limit: u64,
    /// Most bytes that stay in memory; all of them where no file may be made.
    in_memory: usize,
    /// Reserved memory that holds something else.
    base: u64,
    seen: u64,
    /// The body, or the end of it that is not yet in the file.
    memory: Vec<u8>,
    file: Option<File>,
    /// Reserved space that is not written to yet.
    space: u64,
}

impl Collector {
    /// Collects up to `limit` bytes; those of a larger body than fits into
    /// memory go to a file.
    pub(crate) fn spilling(reservation: &Reservation, limit: u64) -> Self {
        Self::new(reservation, limit, IN_MEMORY_BYTES)
    }

    /// Collects up to `limit` bytes in memory.
    pub(crate) fn in_memory(reservation: &Reservation, limit: u64) -> Self {
        Self::new(reservation, limit, usize::MAX)
    }

    fn new(reservation: &Reservation, limit: u64, in_memory: usize) -> Self {
        let base = reservation.held(Resource::Memory);
        Self { limit, in_memory, base, seen: 0, memory: Vec::new(), file: None, space: 0 }
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// 413 above the limit, 503 when there is no room, 500 when a file cannot be
    /// written.
    pub(crate) async fn add(&mut self, held: &mut Reservation, piece: &[u8]) -> Result<(), ApiError> {
        self.seen += piece.len() as u64;
        if self.seen > self.limit {
            return Err(ApiError::body_too_large(self.limit));
        }
        if self.file.is_none() && self.memory.len() + piece.len() > self.in_memory {
            self.spill(held).await?;
        }
        if self.file.is_none() {
            self.reserve(held, piece.len()).await?;
            self.memory.extend_from_slice(piece);
            return Ok(());
        }
        for piece in piece.chunks(PIECE_BYTES) {
            self.memory.extend_from_slice(piece);
            if self.memory.len() >= PIECE_BYTES {
                self.flush(held).await?;
            }
        }
        Ok(())
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`Collector::add`].
    pub(crate) async fn finish(mut self, held: &mut Reservation) -> Result<Payload, ApiError> {
        if self.file.is_none() {
            return Ok(Payload::Memory(self.memory));
        }
        self.flush(held).await?;
        let mut file = self.file.ok_or_else(|| ApiError::internal("the file of a body is gone"))?;
        file.rewind().map_err(ApiError::internal)?;
        held.shrink_to(self.base);
        Ok(Payload::File(file))
    }

    /// Makes room for so many more bytes in memory, growing by half as vectors do.
    async fn reserve(&mut self, held: &mut Reservation, further: usize) -> Result<(), ApiError> {
        let (length, capacity) = (self.memory.len(), self.memory.capacity());
        if length + further <= capacity {
            return Ok(());
        }
        let capacity = (length + further).max(capacity + capacity / 2);
        held.grow_to(self.base + capacity as u64).await?;
        self.memory.reserve_exact(capacity - length);
        Ok(())
    }

    /// Moves what came so far to a file, which has no name: it is gone with this
    /// process, however that ends.
    async fn spill(&mut self, held: &mut Reservation) -> Result<(), ApiError> {
        let made = tokio::task::spawn_blocking(tempfile::tempfile).await.map_err(ApiError::internal)?;
        self.file = Some(made.map_err(ApiError::internal)?);
        self.flush(held).await?;
        self.memory = Vec::with_capacity(2 * PIECE_BYTES);
        held.shrink_to(self.base + 2 * PIECE_BYTES as u64);
        Ok(())
    }

    async fn flush(&mut self, held: &mut Reservation) -> Result<(), ApiError> {
        let length = self.memory.len() as u64;
        if self.space < length {
            let step = (length - self.space).next_multiple_of(DISK_STEP_BYTES);
            held.grow(Resource::Disk, step).await?;
            self.space += step;
        }
        self.space -= length;
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let mut bytes = std::mem::take(&mut self.memory);
        let written = tokio::task::spawn_blocking(move || {
            file.write_all(&bytes)?;
            bytes.clear();
            Ok::<_, std::io::Error>((file, bytes))
        });
        let (file, bytes) = written.await.map_err(ApiError::internal)?.map_err(ApiError::internal)?;
        (self.file, self.memory) = (Some(file), bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use callboard_store::MemoryBudget;
    use callboard_store::memory_budget::MIN_MEMORY_BYTES;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn budget() -> MemoryBudget {
        MemoryBudget::new(MIN_MEMORY_BYTES).with_patience(Duration::ZERO)
    }

    async fn collected(budget: &MemoryBudget, pieces: u64) -> Result<Received, ApiError> {
        let mut held = budget.reserve();
        let mut collector = Collector::spilling(&held, MIN_MEMORY_BYTES);
        for number in 0..pieces {
            collector.add(&mut held, &vec![u8::try_from(number % 251).unwrap(); 100_000]).await?;
        }
        Ok(Received::from_payload(collector.finish(&mut held).await?, held))
    }

    #[tokio::test]
    async fn a_large_body_lies_in_a_file_and_is_the_same() {
        let budget = budget();
        let received = collected(&budget, 300).await.unwrap();
        assert!(budget.used(Resource::Memory) < 8 * MIB && budget.used(Resource::Disk) >= 30_000_000);
        let (bytes, reservation) = received
            .read(|payload| {
                assert!(matches!(payload, Payload::File(_)));
                payload.into_bytes().map_err(ApiError::internal)
            })
            .await
            .unwrap();
        assert_eq!(bytes.len(), 30_000_000);
        assert!(
            bytes
                .chunks(100_000)
                .zip(0..)
                .all(|(piece, number)| piece[0] == u8::try_from(number % 251).unwrap())
        );
        drop(reservation);
        assert_eq!((budget.used(Resource::Memory), budget.used(Resource::Disk)), (0, 0));
    }

    #[tokio::test]
    async fn a_body_without_room_is_answered_503_with_a_time_to_come_back() {
        let budget = budget();
        let mut oldest = budget.reserve();
        oldest.grow(Resource::Memory, 1).await.unwrap();
        let mut large = budget.reserve();
        large.grow(Resource::Memory, 16 * MIB).await.unwrap();
        let error = collected(&budget, 4).await.unwrap_err();
        assert_eq!((error.status().as_u16(), error.code()), (503, "busy"));
        drop(large);
        assert!(collected(&budget, 4).await.is_ok());
    }
}
