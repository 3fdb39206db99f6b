//! The dictionary of evidence. Frames of one attempt are small, and the keys of
//! their JSON take more room in them than what differs: with those, and with what
//! Playwright says most often, in a dictionary, 6 KB of evidence take two thirds of
//! the bytes, 200 bytes half of them or less, and both take less time.
//!
//! Frames name their dictionary, so it never changes: a better one is another file
//! under another id, beside which this one stays to read what was stored with it.
//! It was made by `zstd --train --maxdict=16384 --dictID=1128398849` of the
//! evidence of some 1,200 attempts of demonstration suites, no more than 120 of them
//! with the same fields.

use std::cell::RefCell;
use std::io;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};

use crate::compression::content_size;

static DICTIONARY: &[u8] = include_bytes!("dictionary.zstd");
/// Speed over ratio: evidence is compressed while the client waits.
const COMPRESSION_LEVEL: i32 = 3;

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, COMPRESSION_LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A frame that holds some bytes of evidence.
///
/// # Errors
/// When there is no memory for it.
pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::with_prepared_dictionary(&ENCODER)?),
        };
        compressor.compress(bytes)
    })
}

/// The bytes that a frame holds, at most so many, whether it was made with the
/// dictionary or with none.
///
/// # Errors
/// When it is no frame, names another dictionary, does not say how many bytes it
/// holds, or holds more.
pub(super) fn decompress(frame: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let size = content_size(frame, most)?;
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::with_prepared_dictionary(&DECODER)?),
        };
        decompressor.decompress(frame, size)
    })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    const LEAN: &[u8] = br#"{"webVitals":{"vitals":{"lcp":731,"cls":0.04}},"browser":{"projectName":"desktop","browserName":"chromium","viewport":{"width":1440,"height":900},"isMobile":false,"locale":"de-DE"}}"#;

    /// [`LEAN`] in a frame.
    const STORED: &str = "28b52ffd2301004243b5a5010073c1049bcd058d16dc784aec554fd2543ca8a744bb250afc883411b76d709e25dd7e3d37dc3dc5340b2a1afa4e87ef99960c4d12";
    /// SHA-256 of the dictionary.
    const DIGEST: &str = "fed01488a7e5442cace795850678616b98c66e76dd79014dbcdc382b94cab655";

    #[test]
    fn a_stored_frame_can_always_be_read() -> io::Result<()> {
        let stored = hex::decode(STORED).map_err(io::Error::other)?;
        assert_eq!(decompress(&stored, LEAN.len())?, LEAN);
        let before_there_was_a_dictionary = zstd::bulk::compress(LEAN, 3)?;
        assert_eq!(decompress(&before_there_was_a_dictionary, LEAN.len())?, LEAN);
        let digest = hex::encode(Sha256::digest(DICTIONARY));
        assert_eq!(digest, DIGEST, "frames that name this dictionary need the one they were made with");
        Ok(())
    }

    #[test]
    fn what_is_small_becomes_a_fraction_and_nothing_is_lost() -> io::Result<()> {
        let frame = compress(LEAN)?;
        assert!(frame.len() * 2 < zstd::bulk::compress(LEAN, 3)?.len(), "{} bytes", frame.len());
        for text in [LEAN.to_vec(), b"{}".to_vec(), Vec::new(), vec![7; 300_000], LEAN.repeat(1_000)] {
            assert_eq!(decompress(&compress(&text)?, text.len())?, text);
        }
        Ok(())
    }

    #[test]
    fn a_frame_that_holds_too_much_is_not_read() -> io::Result<()> {
        let frame = compress(LEAN)?;
        assert!(decompress(&frame, LEAN.len() - 1).is_err());
        assert!(decompress(&frame[..8], LEAN.len()).is_err() && decompress(b"none", LEAN.len()).is_err());
        assert_eq!(decompress(&frame, LEAN.len())?, LEAN);
        Ok(())
    }
}
