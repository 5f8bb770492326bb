//! Pictures of the input: how large they may be, what base64 is, which kinds there are. The texts are part of the contract.

use alloc::string::String;
use core::fmt;

use super::input::Image;
use crate::json::shorten;

/// How many bytes a picture may have: 10 MiB.
pub const IMAGE_BYTES: usize = 10 * 1024 * 1024;

/// The spellings that are known, and the media type that each stands for.
pub const MEDIA_TYPES: [(&str, &str); 8] = [
    ("png", "image/png"),
    ("image/png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("image/jpeg", "image/jpeg"),
    ("image/jpg", "image/jpeg"),
    ("gif", "image/gif"),
    ("image/gif", "image/gif"),
];

/// How the size of a picture is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageBound {
    /// As the contract says: [`IMAGE_BYTES`] decoded bytes pass.
    #[default]
    Decoded,
    /// As the known agent does: by the length of the base64 with its padding, which refuses a picture of exactly
    /// [`IMAGE_BYTES`].
    Padded,
}

/// Why a picture refuses the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageFault {
    /// It is larger than [`IMAGE_BYTES`].
    TooLarge,
    /// Its data isn't standard base64 from this byte on.
    Base64(usize),
    /// Nobody knows its media type.
    MediaType(String),
}

impl fmt::Display for ImageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageFault::TooLarge => {
                write!(f, "Stream-json image exceeds the {IMAGE_BYTES} byte limit.")
            }
            ImageFault::Base64(at) => write!(
                f,
                "Stream-json image data is not valid base64: illegal base64 data at input byte {at}"
            ),
            ImageFault::MediaType(name) => write!(
                f,
                "Stream-json image has an unsupported image media type \"{name}\"."
            ),
        }
    }
}

impl core::error::Error for ImageFault {}

/// The media type that a spelling stands for: letters of any case, white space around it and the wrapper of a data URL
/// count for nothing.
pub fn media_type(spelled: &str) -> Option<&'static str> {
    let lower = spelled.trim().to_ascii_lowercase();
    let inner = lower.strip_prefix("data:").unwrap_or(&lower);
    let inner = inner.split([';', ',']).next().unwrap_or_default().trim();
    if matches!(inner, "webp" | "image/webp") {
        return Some("image/webp");
    }
    let found = MEDIA_TYPES.iter().find(|(name, _)| *name == inner);
    found.map(|(_, media_type)| *media_type)
}

/// Judges a picture: its size, then its data, then its media type. Gives the media type.
pub(in crate::protocol::splice) fn judge(
    image: &Image<'_>,
    bound: ImageBound,
) -> Result<&'static str, ImageFault> {
    let size = match bound {
        ImageBound::Decoded => digits(&image.data) * 3 / 4,
        ImageBound::Padded => image.data.len() / 4 * 3,
    };
    if size > IMAGE_BYTES {
        return Err(ImageFault::TooLarge);
    }
    check_base64(image.data.as_bytes()).map_err(ImageFault::Base64)?;
    media_type(&image.media_type).ok_or_else(|| ImageFault::MediaType(shorten(&image.media_type)))
}

/// How many characters stand for bits.
fn digits(data: &str) -> usize {
    let others = |byte: &u8| matches!(byte, b'=' | b'\r' | b'\n');
    data.len() - data.as_bytes().iter().filter(|byte| others(byte)).count()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// Whether it is standard base64 with its padding; line breaks don't count, and neither do bits that no byte takes up.
/// The place of the fault is that of Go's reader, which is what the contract's text tells.
fn check_base64(data: &[u8]) -> Result<(), usize> {
    let mut at = 0;
    loop {
        let mut quantum = 0;
        while quantum < 4 {
            let Some(&byte) = data.get(at) else {
                return if quantum == 0 {
                    Ok(())
                } else {
                    Err(at - quantum)
                };
            };
            at += 1;
            match byte {
                b'\r' | b'\n' => {}
                byte if is_digit(byte) => quantum += 1,
                b'=' => return padded(data, at, quantum),
                _ => return Err(at - 1),
            }
        }
    }
}

/// The end of the data, from behind its first `=` on, which stands behind so many digits of a group.
fn padded(data: &[u8], mut at: usize, digits: usize) -> Result<(), usize> {
    let breaks = |at: &mut usize| {
        while matches!(data.get(*at), Some(b'\r' | b'\n')) {
            *at += 1;
        }
    };
    match digits {
        0 | 1 => return Err(at - 1),
        2 => {
            breaks(&mut at);
            match data.get(at) {
                None => return Err(data.len()),
                Some(b'=') => at += 1,
                Some(_) => return Err(at - 1),
            }
        }
        _ => {}
    }
    breaks(&mut at);
    if at < data.len() { Err(at) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn image<'a>(media_type: &'a str, data: &'a str) -> Image<'a> {
        Image {
            media_type: media_type.into(),
            data: data.into(),
        }
    }

    #[test]
    fn sp_a09_sp_02_base64_is_standard_and_padded() {
        for good in ["", "eA==", "eHg=", "eHh4", "e\nA=\r\n=\n", "eB==", "+/+/"] {
            assert_eq!(check_base64(good.as_bytes()), Ok(()), "{good:?}");
        }
        for (bad, at) in [
            ("not base64!!", 3),
            ("data:image/png;base64,aGVsbG8=", 4),
            ("eA", 0),
            ("_-8=", 0),
            ("eHh4eA", 4),
            ("=", 0),
            ("e===", 1),
            ("eA=", 3),
            ("eA=x", 2),
            ("eA==x", 4),
            ("eHg=eHg=", 4),
        ] {
            assert_eq!(check_base64(bad.as_bytes()), Err(at), "{bad:?}");
        }
    }

    #[test]
    fn sp_a09_sp_02_the_spellings_of_media_types() {
        for (name, media_type) in MEDIA_TYPES {
            assert_eq!(super::media_type(name), Some(media_type));
            assert_eq!(
                super::media_type(&name.to_ascii_uppercase()),
                Some(media_type)
            );
        }
        for (name, expected) in [
            (" image/PNG ", Some("image/png")),
            ("data:image/webp;base64,", Some("image/webp")),
            ("webp", Some("image/webp")),
            ("", None),
            ("image/svg+xml", None),
            ("image/svg", None),
            ("text/png", None),
        ] {
            assert_eq!(super::media_type(name), expected, "{name:?}");
        }
    }

    #[test]
    fn sp_a09_exactly_ten_mebibytes_pass_and_a_bit_gives_the_agent_s_bound() {
        // 10,485,760 = 3 · 3,495,253 + 1
        let exact = "AAAA".repeat(3_495_253) + "AA==";
        let more = "AAAA".repeat(3_495_253) + "AAA=";
        let less = "AAAA".repeat(3_495_253);
        let judged = |data: &str, bound| judge(&image("png", data), bound);
        assert_eq!(judged(&exact, ImageBound::Decoded), Ok("image/png"));
        assert_eq!(
            judged(&exact, ImageBound::Padded),
            Err(ImageFault::TooLarge)
        );
        assert_eq!(judged(&less, ImageBound::Padded), Ok("image/png"));
        for bound in [ImageBound::Decoded, ImageBound::Padded] {
            assert_eq!(judged(&more, bound), Err(ImageFault::TooLarge));
        }
        // Size comes before data, data before the media type.
        let long = "!".repeat(20_000_000);
        assert_eq!(
            judge(&image("x", &long), ImageBound::Decoded),
            Err(ImageFault::TooLarge)
        );
        assert_eq!(
            judge(&image("x", "!"), ImageBound::Decoded),
            Err(ImageFault::Base64(0))
        );
        assert_eq!(
            judge(&image("x", ""), ImageBound::Decoded)
                .unwrap_err()
                .to_string(),
            "Stream-json image has an unsupported image media type \"x\"."
        );
    }
}
