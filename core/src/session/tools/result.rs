//! What the model is told of its calls: one result each, in call order, directly behind their message (S-31).

use alloc::{format, string::String, sync::Arc, vec::Vec};

use super::Batch;
use crate::session::Session;
use crate::vocab::{Block, Message, MessageId, Origin, Role, Source};

impl Session {
    /// Puts the results of a batch into the history.
    pub(super) fn push_results(&mut self, batch: &mut Batch) {
        for tool in &mut batch.calls {
            let (content, error) = tool.result.take().unwrap_or_default();
            let role = Role::Tool {
                call: tool.call,
                name: tool.name.clone(),
                error,
            };
            let message = Message {
                id: MessageId(self.ids.message()),
                role,
                content: content.into_iter().map(Arc::new).collect(),
                origin: Origin::Harness,
                prompt: None,
                about: Some(tool.call),
                at_ms: self.now.unix_ms,
                details: None,
            };
            self.remember(Arc::new(message));
        }
    }
}

/// Cuts output to its limits: of all text the head and the tail stay, with a mark between; a medium that doesn't fit
/// is replaced by a note. Whether something was cut.
pub(in crate::session) fn keep_within(
    content: &mut Vec<Block>,
    (text_limit, media_limit): (usize, usize),
) -> bool {
    let mut cut = false;
    let mut media = 0_usize;
    for block in content.iter_mut() {
        if let Block::Media {
            source: Source::Inline { base64, .. },
            ..
        } = block
        {
            media = media.saturating_add(base64.len());
            if media > media_limit {
                *block = Block::Text("[a medium was left out: too large]".into());
                cut = true;
            }
        }
    }
    let text: usize = content.iter().map(text_len).sum();
    if text <= text_limit {
        return cut;
    }
    let head = text_limit / 2;
    let tail_from = text - (text_limit - head);
    let mut at = 0;
    let mut marked = false;
    for block in content.iter_mut() {
        let Block::Text(old) = block else { continue };
        let (from, to) = (at, at + old.len());
        at = to;
        if to <= head || from >= tail_from {
            continue;
        }
        let mut kept = String::new();
        kept.push_str(
            old.get(..floor(old, head.saturating_sub(from)))
                .unwrap_or_default(),
        );
        if !marked {
            marked = true;
            kept.push_str(&format!("\n[… {} bytes left out …]\n", tail_from - head));
        }
        kept.push_str(
            old.get(ceil(old, tail_from.saturating_sub(from).min(old.len()))..)
                .unwrap_or_default(),
        );
        *old = kept.into();
    }
    content.retain(|block| !matches!(block, Block::Text(text) if text.is_empty()));
    true
}

fn text_len(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.len(),
        Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::Media { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => 0,
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn cut(texts: &[&str], limit: usize) -> (Vec<String>, bool) {
        let mut content: Vec<Block> = texts
            .iter()
            .map(|text| Block::Text((*text).into()))
            .collect();
        let was_cut = keep_within(&mut content, (limit, 100));
        let texts = content
            .iter()
            .map(|block| String::from(block.text().unwrap()));
        (texts.collect(), was_cut)
    }

    #[test]
    fn output_is_kept_at_the_limit_and_cut_in_the_middle_beyond_it() {
        assert_eq!(cut(&["0123456789"], 11), (vec!["0123456789".into()], false));
        assert_eq!(cut(&["0123456789"], 10), (vec!["0123456789".into()], false));
        assert_eq!(
            cut(&["0123456789"], 4),
            (vec!["01\n[… 6 bytes left out …]\n89".into()], true)
        );
        assert_eq!(
            cut(&["01234", "xx", "56789"], 4),
            (
                vec!["01\n[… 8 bytes left out …]\n".into(), "89".into()],
                true
            )
        );
        // What lies before the cut or behind it stays as it is.
        assert_eq!(
            cut(&["ab", "cdefgh", "ij"], 4),
            (
                vec![
                    "ab".into(),
                    "\n[… 6 bytes left out …]\n".into(),
                    "ij".into()
                ],
                true
            )
        );
        // A character is never cut through.
        assert_eq!(
            cut(&["äääää"], 5),
            (vec!["ä\n[… 5 bytes left out …]\nä".into()], true)
        );
        assert_eq!(
            cut(&["äääää"], 6),
            (vec!["ä\n[… 4 bytes left out …]\nä".into()], true)
        );
    }

    #[test]
    fn media_are_kept_up_to_their_limit_and_replaced_by_a_note_beyond_it() {
        let medium = |bytes: usize| Block::Media {
            kind: crate::vocab::MediaKind::Image,
            source: Source::Inline {
                mime: "image/png".into(),
                base64: "x".repeat(bytes).as_str().into(),
            },
        };
        let note = Block::Text("[a medium was left out: too large]".into());
        let mut content = vec![medium(60), medium(40)];
        assert!(!keep_within(&mut content, (100, 100)));
        assert_eq!(content, [medium(60), medium(40)]);
        let mut content = vec![medium(60), medium(41), Block::Text("text".into())];
        assert!(keep_within(&mut content, (100, 100)));
        assert_eq!(content, [medium(60), note, Block::Text("text".into())]);
    }
}
