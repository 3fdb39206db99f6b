//! Images in results. What was uploaded is never passed on as it is: it is
//! decoded within limits, scaled to what a model looks at and encoded anew, so
//! that every block is a whole image of a known kind and size. One that cannot
//! be is left out with its reason.
//!
//! For each of at most [`MAX_IMAGES`] files a tool waits for [`turn`], reads at most
//! [`MAX_SOURCE_BYTES`] of it, calls [`fitted`], and hands the results to
//! [`crate::tool::Answer::with_images`].

use std::io::Cursor;

use base64ct::{Base64, Encoding};
use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;

/// Most images of one result.
pub(crate) const MAX_IMAGES: usize = 3;
/// The largest file that is read for an image, bytes.
pub(crate) const MAX_SOURCE_BYTES: u64 = 32 << 20;
/// Longest edge of an image in a result.
const MAX_EDGE: u32 = 1568;
/// Largest encoded image in a result.
const MAX_BYTES: usize = 1_000_000;
/// Most pixels that are decoded.
const MAX_PIXELS: u64 = 50_000_000;
/// Longest edge of an image that is decoded: scaling a long one takes several
/// times the memory of its pixels.
const MAX_SIDE: u32 = 16_384;
/// Memory that one image may take at any moment, its file included.
const MAX_DECODING_BYTES: u64 = 256 << 20;
/// Edge to which a larger picture is averaged before it is resized: resizing takes
/// sixteen bytes for each pixel of a picture that is as wide as the source.
const AVERAGED_EDGE: u32 = 2 * MAX_EDGE;
/// Qualities tried one after the other.
const QUALITIES: [u8; 3] = [85, 70, 50];
/// Decoding takes memory by the hundred megabytes: the process does it for one image
/// at a time.
static DECODING: Semaphore = Semaphore::const_new(1);

/// The turn of one image, from reading its file to the end of its work.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Waits for the turn of an image.
pub(crate) async fn turn() -> Turn {
    // The semaphore is never closed; without a permit the work is only less bounded.
    Turn { _permit: DECODING.acquire().await.ok() }
}

/// An image as it goes into a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    media_type: &'static str,
    bytes: Vec<u8>,
}

/// Why an image is left out, as the words of `omitted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageError {
    /// Not PNG, JPEG or WebP, or broken.
    #[error("it cannot be read as PNG, JPEG or WebP")]
    Unreadable,
    /// Too many pixels or bytes to decode.
    #[error("it is larger than 50 megapixels, 16384 pixels on a side or 32 MiB, or takes too much memory")]
    TooLarge,
}

impl Image {
    /// The content block of a result.
    pub(crate) fn block(&self) -> Value {
        json!({"type": "image", "mimeType": self.media_type, "data": Base64::encode_string(&self.bytes)})
    }
}

/// The image in `bytes`, within the bounds of a result.
///
/// # Errors
/// [`ImageError`] for what cannot be shown.
pub(crate) async fn fitted(bytes: Bytes, turn: Turn) -> Result<Image, ImageError> {
    let work = spawn_blocking(move || {
        let _turn = turn;
        fit(&bytes)
    });
    work.await.unwrap_or(Err(ImageError::Unreadable))
}

fn fit(bytes: &[u8]) -> Result<Image, ImageError> {
    if bytes.len() as u64 > MAX_SOURCE_BYTES {
        return Err(ImageError::TooLarge);
    }
    let format = image::guess_format(bytes).map_err(|_| ImageError::Unreadable)?;
    let reader = || ImageReader::with_format(Cursor::new(bytes), format);
    let decoder = reader().into_decoder().map_err(|_| ImageError::Unreadable)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    let decoded = pixels * u64::from(decoder.color_type().bytes_per_pixel());
    drop(decoder);
    let left = MAX_DECODING_BYTES - bytes.len() as u64;
    let peak = (pixels * taken_by(format)).max(decoded + averaged_bytes(decoded, width.max(height)));
    if pixels > MAX_PIXELS || width.max(height) > MAX_SIDE || peak > left {
        return Err(ImageError::TooLarge);
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(left);
    let mut decoding = reader();
    decoding.limits(limits);
    let mut picture = decoding.decode().map_err(|error| match error {
        image::ImageError::Limits(_) => ImageError::TooLarge,
        _ => ImageError::Unreadable,
    })?;
    if width.max(height) > AVERAGED_EDGE {
        picture = picture.thumbnail(AVERAGED_EDGE, AVERAGED_EDGE);
    }
    if width.max(height) > MAX_EDGE {
        picture = picture.resize(MAX_EDGE, MAX_EDGE, FilterType::Triangle);
    }
    if format != ImageFormat::Jpeg
        && let Some(image) = as_png(&picture)
    {
        return Ok(image);
    }
    loop {
        if let Some(image) = QUALITIES.iter().find_map(|quality| as_jpeg(&picture, *quality)) {
            return Ok(image);
        }
        let edge = picture.width().max(picture.height()) / 2;
        if edge == 0 {
            return Err(ImageError::Unreadable);
        }
        picture = picture.resize(edge, edge, FilterType::Triangle);
    }
}

/// Bytes of a picture once it is averaged, which takes the decoded one besides.
fn averaged_bytes(decoded: u64, edge: u32) -> u64 {
    let (edge, averaged) = (u64::from(edge), u64::from(AVERAGED_EDGE));
    if edge > averaged { decoded * averaged / edge * averaged / edge } else { 0 }
}

/// Bytes that decoding takes for each pixel, where the decoder's own limit
/// leaves out what it keeps beside the picture.
const fn taken_by(format: ImageFormat) -> u64 {
    match format {
        // The picture, and of a progressive one the coefficients of all scans.
        ImageFormat::Jpeg => 3 + 3 * 2,
        // The picture, and the planes it is put together from.
        ImageFormat::WebP => 4 + 4,
        _ => 0,
    }
}

fn as_png(picture: &DynamicImage) -> Option<Image> {
    let mut bytes = Cursor::new(Vec::new());
    let eight_bit = DynamicImage::from(picture.to_rgba8());
    eight_bit.write_to(&mut bytes, ImageFormat::Png).ok()?;
    within(Image { media_type: "image/png", bytes: bytes.into_inner() })
}

fn as_jpeg(picture: &DynamicImage, quality: u8) -> Option<Image> {
    let mut bytes = Vec::new();
    picture.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality)).ok()?;
    within(Image { media_type: "image/jpeg", bytes })
}

fn within(image: Image) -> Option<Image> {
    (image.bytes.len() <= MAX_BYTES).then_some(image)
}

#[cfg(test)]
mod tests;
