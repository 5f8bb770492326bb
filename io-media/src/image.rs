//! Images: decoded within bounds, and encoded again. What isn't a pixel is left behind: metadata, profiles, comments, and
//! whatever stands behind the end of the file.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngDecoder, PngEncoder};
use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, ImageDecoder, ImageError, RgbImage};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::{Limits, Refused};

/// What decoders may take besides the pixels.
const WORKING_BYTES: u64 = 64 << 20;
/// The most bytes of a pixel: four channels of 16 bits.
const PIXEL_BYTES: u64 = 8;
/// The most scans of a progressive JPEG: each costs a walk over all of its pixels.
const MOST_SCANS: usize = 32;
/// The quality with which a JPEG is written.
const QUALITY: u8 = 90;

fn within(width: u64, height: u64, limits: &Limits) -> Result<(), Refused> {
    let side = u64::from(limits.image_side);
    let pixels = width.saturating_mul(height);
    if width > side || height > side || pixels > limits.image_pixels {
        return Err(Refused::Rejected);
    }
    if pixels == 0 {
        return Err(Refused::Malformed);
    }
    Ok(())
}

/// A PNG, as a PNG of its (first) picture.
pub(crate) fn png(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, Refused> {
    let mut bounds = image::Limits::no_limits();
    bounds.max_alloc = Some(
        limits
            .image_pixels
            .saturating_mul(PIXEL_BYTES)
            .saturating_add(WORKING_BYTES),
    );
    let decoder = PngDecoder::with_limits(Cursor::new(bytes), bounds).map_err(why)?;
    let (width, height) = decoder.dimensions();
    within(width.into(), height.into(), limits)?;
    let picture = DynamicImage::from_decoder(decoder).map_err(why)?;
    let mut out = Vec::new();
    let encoder =
        PngEncoder::new_with_quality(&mut out, CompressionType::Default, FilterType::Adaptive);
    picture.write_with_encoder(encoder).map_err(why)?;
    Ok(out)
}

/// A JPEG, as a baseline JPEG that stands upright: how it is to be turned is metadata, and metadata doesn't stay.
pub(crate) fn jpeg(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, Refused> {
    // Strict: one that was cut off isn't filled up with grey.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_max_scans(MOST_SCANS);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let malformed = |_| Refused::Malformed;
    decoder.decode_headers().map_err(malformed)?;
    let info = decoder.info().ok_or(Refused::Malformed)?;
    within(info.width.into(), info.height.into(), limits)?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let space = if grey {
        ColorSpace::Luma
    } else {
        ColorSpace::RGB
    };
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let pixels = decoder.decode().map_err(malformed)?;
    let turn = decoder
        .exif()
        .and_then(|exif| Orientation::from_exif_chunk(exif));
    let (width, height) = (u32::from(info.width), u32::from(info.height));
    let mut picture = if grey {
        GrayImage::from_raw(width, height, pixels).map(DynamicImage::from)
    } else {
        RgbImage::from_raw(width, height, pixels).map(DynamicImage::from)
    }
    .ok_or(Refused::Malformed)?;
    picture.apply_orientation(turn.unwrap_or(Orientation::NoTransforms));
    let mut out = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut out, QUALITY);
    picture.write_with_encoder(encoder).map_err(why)?;
    Ok(out)
}

fn why(error: ImageError) -> Refused {
    match error {
        ImageError::Limits(_) => Refused::Rejected,
        ImageError::Unsupported(_) => Refused::Unsupported,
        ImageError::Decoding(_)
        | ImageError::Encoding(_)
        | ImageError::Parameter(_)
        | ImageError::IoError(_) => Refused::Malformed,
    }
}
