use image::{GenericImageView, Rgb, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use super::*;

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A picture that does not compress: its pixels are noise.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut seed = 1_u32;
    RgbImage::from_fn(width, height, |_, _| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = seed.to_be_bytes();
        Rgb([a, b, c])
    })
    .into()
}

fn decoded(image: &Image) -> DynamicImage {
    let format = ImageFormat::from_mime_type(image.media_type).unwrap();
    image::load_from_memory_with_format(&image.bytes, format).unwrap()
}

#[test]
fn an_image_is_scaled_and_encoded_anew_within_its_bounds() {
    let page = RgbaImage::from_fn(40, 3000, |_, y| Rgba([0, 0, u8::try_from(y % 256).unwrap(), 255])).into();
    for (picture, format, kind) in [
        (noise(30, 20), ImageFormat::Png, "image/png"),
        (noise(30, 20), ImageFormat::Jpeg, "image/jpeg"),
        (noise(30, 20), ImageFormat::WebP, "image/png"),
        (page, ImageFormat::Png, "image/png"),
        (noise(1600, 900), ImageFormat::Png, "image/jpeg"),
    ] {
        let (width, height) = picture.dimensions();
        let image = fit(&encoded(&picture, format)).unwrap();
        assert_eq!(image.media_type, kind, "{format:?} {width}x{height}");
        assert!(image.bytes.len() <= MAX_BYTES);
        let shown = decoded(&image);
        assert_eq!(shown.width().max(shown.height()), width.max(height).min(MAX_EDGE));
    }
}

#[test]
fn what_follows_the_image_in_its_file_is_not_passed_on() {
    let mut bytes = encoded(&noise(8, 8), ImageFormat::Png);
    bytes.extend_from_slice(b"<script>alert(1)</script>");
    let image = fit(&bytes).unwrap();
    assert!(!image.bytes.windows(8).any(|window| window == b"<script>"));
    assert_eq!(decoded(&image).to_rgb8(), noise(8, 8).to_rgb8());
}

#[test]
fn a_header_that_promises_too_much_is_refused_before_anything_is_decoded() {
    let mut bytes = encoded(&noise(8, 8), ImageFormat::Png);
    bytes[16..20].copy_from_slice(&100_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&100_000_u32.to_be_bytes());
    let crc = crc32fast::hash(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(fit(&bytes), Err(ImageError::TooLarge));
}

#[test]
fn what_takes_too_much_memory_is_refused() {
    let long = |width| encoded(&RgbImage::new(width, 1).into(), ImageFormat::Png);
    assert!(fit(&long(MAX_SIDE)).is_ok());
    assert_eq!(fit(&long(MAX_SIDE + 1)), Err(ImageError::TooLarge));

    let mut deep = encoded(&noise(8, 8), ImageFormat::Png);
    deep[16..20].copy_from_slice(&7_000_u32.to_be_bytes());
    deep[20..24].copy_from_slice(&5_000_u32.to_be_bytes());
    // Four channels of 16 bits.
    deep[24..26].copy_from_slice(&[16, 6]);
    let crc = crc32fast::hash(&deep[12..29]);
    deep[29..33].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(fit(&deep), Err(ImageError::TooLarge));

    let mut wide = encoded(&noise(8, 8), ImageFormat::Jpeg);
    let frame = wide.windows(2).position(|window| window == [0xff, 0xc0]).unwrap();
    wide[frame + 5..frame + 7].copy_from_slice(&6_000_u16.to_be_bytes());
    wide[frame + 7..frame + 9].copy_from_slice(&6_000_u16.to_be_bytes());
    assert_eq!(fit(&wide), Err(ImageError::TooLarge));
}

#[tokio::test]
async fn a_block_is_base64_of_the_whole_image() {
    let image = fitted(Bytes::from(encoded(&noise(4, 4), ImageFormat::Png)), turn().await).await.unwrap();
    let block = image.block();
    assert_eq!((&block["type"], &block["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(Base64::decode_vec(block["data"].as_str().unwrap()), Ok(image.bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn broken_files_are_left_out_and_never_panic(at in 0_usize..400, with in any::<u8>(), kept in 0_usize..400) {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let mut bytes = encoded(&noise(9, 7), format);
            bytes.truncate(kept.max(1));
            let at = at % bytes.len();
            bytes[at] ^= with;
            if let Ok(image) = fit(&bytes) {
                decoded(&image);
            }
        }
    }
}
