#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::cast_possible_truncation,
        reason = "a test may fail"
    )
)]
//! Attachments that nobody trusts: what they are is judged, and what is kept of them is written anew.
//!
//! Blocking work without a runtime, for whoever embeds a driver. [`judge`] looks at bytes: an image is decoded within
//! bounds and encoded again, so that nothing of its metadata and nothing behind its end is left; a PDF is read token by
//! token, and is refused where it could do more than show pages. [`Blobs`] keeps what was accepted, by its digest, in the
//! folder of a session, and takes the bytes of uploads until then.
//!
//! It is a crate of its own so that drivers, and embedders without attachments, decode no images.

mod image;
mod pdf;
mod refused;
mod store;

use std::panic::catch_unwind;

pub use refused::Refused;
pub use store::{Blobs, Error, Kept, Place, Upload};

/// How much is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one attachment, before and after.
    pub item_bytes: u64,
    /// Bytes of all blobs of a session.
    pub stored_bytes: u64,
    /// Attachments of a session.
    pub items: usize,
    /// Pixels of an image on one side.
    pub image_side: u32,
    /// Pixels of an image.
    pub image_pixels: u64,
    /// Pages of a PDF.
    pub pdf_pages: u32,
}

impl Default for Limits {
    /// Images of 20 megapixels, PDFs of 100 pages, 20 MiB each and 512 MiB in all.
    fn default() -> Self {
        Limits {
            item_bytes: 20_971_520,
            stored_bytes: 536_870_912,
            items: 100_000,
            image_side: 8_192,
            image_pixels: 20_000_000,
            pdf_pages: 100,
        }
    }
}

/// What can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `image/png`
    Png,
    /// `image/jpeg`
    Jpeg,
    /// `application/pdf`
    Pdf,
}

impl Format {
    /// The format of this MIME type.
    pub fn of_mime(mime: &str) -> Option<Format> {
        match mime {
            "image/png" => Some(Format::Png),
            "image/jpeg" => Some(Format::Jpeg),
            "application/pdf" => Some(Format::Pdf),
            _ => None,
        }
    }

    /// The format that bytes begin like.
    pub fn of_bytes(bytes: &[u8]) -> Option<Format> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Format::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(Format::Jpeg)
        } else if bytes.starts_with(b"%PDF-") {
            Some(Format::Pdf)
        } else {
            None
        }
    }

    /// Its MIME type.
    pub const fn mime(self) -> &'static str {
        match self {
            Format::Png => "image/png",
            Format::Jpeg => "image/jpeg",
            Format::Pdf => "application/pdf",
        }
    }
}

/// Judges bytes that are said to be of this format, and returns what is to be kept: an image written anew, a PDF as it is.
///
/// Time and memory are bounded by the limits, whatever the bytes are: an image takes up to about 16 bytes a pixel.
///
/// # Errors
/// [`Refused`].
pub fn judge(bytes: &[u8], format: Format, limits: &Limits) -> Result<Vec<u8>, Refused> {
    if Format::of_bytes(bytes) != Some(format) {
        return Err(Refused::Mime);
    }
    if bytes.len() as u64 > limits.item_bytes {
        return Err(Refused::Limit);
    }
    // A decoder that panics on crafted bytes has found out that they are malformed.
    let judged = catch_unwind(|| match format {
        Format::Png => image::png(bytes, limits),
        Format::Jpeg => image::jpeg(bytes, limits),
        Format::Pdf => pdf::check(bytes, limits).map(|()| bytes.to_vec()),
    })
    .unwrap_or(Err(Refused::Malformed))?;
    if judged.len() as u64 > limits.item_bytes {
        return Err(Refused::Limit);
    }
    Ok(judged)
}
