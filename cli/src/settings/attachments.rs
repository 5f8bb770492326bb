//! `[attachments]`: whether a host may bring in images and documents, and how much of them.

use std::fmt;

use serde::Deserialize;
use serde::de::Error as _;
use turnwire::protocol::agentx::ImportLimits;

use super::Layer;

/// A number from 1 to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpTo<const MOST: u64>(u64);

impl<'de, const MOST: u64> Deserialize<'de> for UpTo<MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(input)?;
        match u64::try_from(number) {
            Ok(number) if (1..=MOST).contains(&number) => Ok(UpTo(number)),
            Ok(_) | Err(_) => Err(D::Error::custom(Bounds(MOST))),
        }
    }
}

struct Bounds(u64);

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from 1 to {}", self.0)
    }
}

/// `[attachments]`. No limit can be more than the contract of agentx allows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttachmentTable {
    /// Whether they are offered.
    pub enabled: Option<bool>,
    /// Bytes of one.
    pub item_bytes: Option<UpTo<20_971_520>>,
    /// Bytes of those of one prompt.
    pub prompt_bytes: Option<UpTo<41_943_040>>,
    /// How many a prompt may have.
    pub per_prompt: Option<UpTo<8>>,
    /// Uploads at once.
    pub uploads: Option<UpTo<8>>,
    /// Bytes of all that a session keeps.
    pub stored_bytes: Option<UpTo<536_870_912>>,
    /// Bytes of those in one request to the model; the newest are sent.
    pub request_bytes: Option<UpTo<41_943_040>>,
    /// Pixels of an image on one side.
    pub image_side: Option<UpTo<8_192>>,
    /// Pixels of an image.
    pub image_pixels: Option<UpTo<20_000_000>>,
    /// Pages of a PDF.
    pub pdf_pages: Option<UpTo<100>>,
    /// How long an upload may take, in seconds.
    pub timeout: Option<UpTo<120>>,
}

/// What the files say, the highest first, member by member; `None`: no attachments.
pub fn limits(files: &[Layer]) -> Option<ImportLimits> {
    let tables = || files.iter().map(|layer| &layer.settings.attachments);
    if tables().find_map(|table| table.enabled) == Some(false) {
        return None;
    }
    fn said<const MOST: u64>(value: Option<UpTo<MOST>>) -> u64 {
        value.map_or(MOST, |value| value.0)
    }
    fn narrow<T: TryFrom<u64>>(number: u64, most: T) -> T {
        T::try_from(number).unwrap_or(most)
    }
    let most = ImportLimits::CONTRACT;
    Some(ImportLimits {
        item_bytes: said(tables().find_map(|table| table.item_bytes)),
        prompt_bytes: said(tables().find_map(|table| table.prompt_bytes)),
        per_prompt: narrow(
            said(tables().find_map(|table| table.per_prompt)),
            most.per_prompt,
        ),
        uploads: narrow(said(tables().find_map(|table| table.uploads)), most.uploads),
        stored_bytes: said(tables().find_map(|table| table.stored_bytes)),
        request_bytes: said(tables().find_map(|table| table.request_bytes)),
        image_side: narrow(
            said(tables().find_map(|table| table.image_side)),
            most.image_side,
        ),
        image_pixels: said(tables().find_map(|table| table.image_pixels)),
        pdf_pages: narrow(
            said(tables().find_map(|table| table.pdf_pages)),
            most.pdf_pages,
        ),
        timeout_us: said(tables().find_map(|table| table.timeout)).saturating_mul(1_000_000),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use turnwire::protocol::agentx::SettingsSource;

    use super::*;

    fn layer(text: &str) -> Result<Layer, String> {
        let path = PathBuf::from("/p/turnwire.toml");
        Layer::read(SettingsSource::User, path, text).map_err(|stop| stop.to_string())
    }

    #[test]
    fn limits_are_the_contract_s_or_lower_and_can_be_none() {
        assert_eq!(limits(&[]), Some(ImportLimits::CONTRACT));
        let high = layer("[attachments]\nitem_bytes = 1000\ntimeout = 5\n").unwrap();
        let low = layer("[attachments]\nitem_bytes = 7\npdf_pages = 3\n").unwrap();
        let both = limits(&[high, low.clone()]).unwrap();
        assert_eq!(
            (both.item_bytes, both.timeout_us, both.pdf_pages),
            (1000, 5_000_000, 3)
        );
        assert_eq!(
            limits(&[layer("[attachments]\nenabled = false\n").unwrap(), low]),
            None
        );
        for (text, most) in [
            ("item_bytes = 20971521", "20971520"),
            ("uploads = 0", "1 to 8"),
            ("per_prompt = -1", "1 to 8"),
        ] {
            let fault = layer(&format!("[attachments]\n{text}\n")).unwrap_err();
            assert!(fault.contains(":2:") && fault.contains(most), "{fault}");
        }
    }
}
