//! The input, judged line by line and answered as a whole.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::HOST_LINE_MAX;
use super::super::wire::{
    Image, ImageBound, ImageFault, Input, InputFault, NO_INPUT, Refused, judge,
};
use crate::base64;
use crate::frame::{Split, SplitKind};
use crate::json::Members;
use crate::vocab::{Block, MediaKind, Source, Text};

/// What came so far. Beyond [`HOST_LINE_MAX`] bytes in all nothing more is kept, and the run is refused.
#[derive(Debug)]
pub(super) struct Judge {
    bound: ImageBound,
    members: Members,
    any: bool,
    texts: Vec<String>,
    images: Vec<Block>,
    bytes: usize,
    /// The first line that is wrong.
    refused: Option<Refused>,
    /// The first picture that is, which counts only if all lines are right.
    image: Option<ImageFault>,
}

impl Judge {
    pub(super) fn new(bound: ImageBound) -> Self {
        Judge {
            bound,
            members: Members::new(),
            any: false,
            texts: Vec::new(),
            images: Vec::new(),
            bytes: 0,
            refused: None,
            image: None,
        }
    }

    /// One more line.
    pub(super) fn line(&mut self, line: &Split<'_>) {
        if self.refused.is_some() {
            return;
        }
        let number = line.place.line;
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => content,
            SplitKind::TooLong { .. } => return self.refuse(number, InputFault::NotAnObject),
        };
        // White space of any kind is nothing, as the trimmed line that is read.
        if core::str::from_utf8(content).is_ok_and(|line| line.trim().is_empty()) {
            return;
        }
        self.any = true;
        let mut members = core::mem::take(&mut self.members);
        match Input::read(content, &mut members) {
            Ok(input) => self.take_in(&input),
            Err(fault) => self.refuse(number, fault),
        }
        self.members = members;
    }

    fn refuse(&mut self, line: u64, fault: InputFault) {
        self.refused = Some(Refused { line, fault });
    }

    fn take_in(&mut self, input: &Input<'_>) {
        let text = input.content().trim();
        let more = input.images().iter().fold(text.len(), |sum, image| {
            sum.saturating_add(image.data.len())
        });
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > HOST_LINE_MAX {
            self.texts = Vec::new();
            self.images = Vec::new();
            return;
        }
        if !text.is_empty() {
            self.texts.push(text.into());
        }
        for image in input.images() {
            match judge(image, self.bound) {
                Ok(mime) => self.images.push(media(mime, image)),
                Err(fault) => {
                    self.image.get_or_insert(fault);
                }
            }
        }
    }

    /// Why nothing may run.
    pub(super) fn refusal(&self) -> Option<String> {
        if let Some(refused) = &self.refused {
            return Some(refused.to_string());
        }
        if self.bytes > HOST_LINE_MAX {
            return Some(format!(
                "Stream-json input is longer than {HOST_LINE_MAX} bytes."
            ));
        }
        if let Some(fault) = &self.image {
            return Some(fault.to_string());
        }
        (!self.any).then(|| NO_INPUT.into())
    }

    /// The prompt: all texts, and all pictures of kinds that the model takes. Gives how many were left out.
    pub(super) fn take(&mut self, media: &[Text]) -> (Vec<Block>, usize) {
        let text = core::mem::take(&mut self.texts).join("\n\n");
        let mut images = core::mem::take(&mut self.images);
        let before = images.len();
        images.retain(|image| takes(media, image));
        let dropped = before - images.len();
        let mut content = Vec::new();
        if !text.is_empty() {
            content.push(Block::Text(text.into()));
        }
        content.append(&mut images);
        if content.is_empty() {
            // A picture alone, of which nothing is left.
            content.push(Block::Text("".into()));
        }
        (content, dropped)
    }
}

fn takes(media: &[Text], image: &Block) -> bool {
    match image {
        Block::Media {
            source: Source::Inline { mime, .. },
            ..
        } => media.iter().any(|known| known == mime),
        Block::Media { .. }
        | Block::Text(_)
        | Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => true,
    }
}

/// A picture, in the one spelling that its bytes have.
fn media(mime: &str, image: &Image<'_>) -> Block {
    let breaks = |char: char| char == '\r' || char == '\n';
    let mut data: String = image.data.split(breaks).collect();
    let mut bytes = Vec::new();
    if base64::decode(&data, &mut bytes).is_none() {
        bytes.clear();
        if base64::decode_lax(&data, &mut bytes).is_some() {
            let mut digits = Vec::new();
            base64::encode(&bytes, &mut digits);
            data = String::from_utf8(digits).unwrap_or_default();
        }
    }
    Block::Media {
        kind: MediaKind::Image,
        source: Source::Inline {
            mime: mime.into(),
            base64: data.into(),
        },
    }
}
