//! Zstandard frames, made and read with working memory that each thread keeps:
//! getting it from the system each time takes longer than the small texts of
//! running clients.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

thread_local! {
    static COMPRESSOR: RefCell<Compressor<'static>> = RefCell::default();
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::default();
}

/// A frame that holds some bytes, and says how many.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn compress(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.set_compression_level(level)?;
        compressor.compress(bytes)
    })
}

/// The bytes that a frame holds, at most so many.
///
/// # Errors
/// When it is no frame, does not say how many bytes it holds, or holds more.
pub(crate) fn decompress(frame: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let size = content_size(frame, most)?;
    DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.decompress(frame, size))
}

/// How many bytes a frame says to hold.
///
/// # Errors
/// When it does not say so, or holds more than `most`.
pub(crate) fn content_size(frame: &[u8], most: usize) -> io::Result<usize> {
    let size = Decompressor::upper_bound(frame).filter(|size| *size <= most);
    size.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_keeps_does_not_show_in_what_it_makes() -> io::Result<()> {
        let texts = [vec![b'a'; 300_000], b"{}".to_vec(), Vec::new(), vec![7; 5_000]];
        for (text, level) in texts.iter().zip([3, 1, 3, 1]) {
            let frame = compress(text, level)?;
            assert_eq!(frame, zstd::bulk::compress(text, level)?);
            assert_eq!(decompress(&frame, text.len())?, *text);
        }
        Ok(())
    }

    #[test]
    fn a_frame_that_holds_too_much_is_not_read() -> io::Result<()> {
        let frame = compress(&[0; 1_000], 1)?;
        assert!(decompress(&frame, 999).is_err());
        assert!(decompress(&frame[..8], 1_000).is_err() && decompress(b"none", 1_000).is_err());
        // The next one is read as if nothing had happened.
        assert_eq!(decompress(&frame, 1_000)?, [0; 1_000]);
        Ok(())
    }
}
