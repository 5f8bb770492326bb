//! What a call of a server's tool came back with, for the session.

use serde_json::Value;
use turnwire::vocab::{Block, MediaKind, RawJson, Show, Source, Text, ToolOutcome, ToolUpdate};

/// Pictures that models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The largest picture that models take, in characters of base64.
const LARGEST: usize = 5 * 1024 * 1024;

/// The end of a call, from the `result` of `tools/call`. What a model can't take is named in its place; nothing that a
/// server writes here makes it fail.
pub fn finished(result: &Value) -> ToolUpdate {
    let content = result.get("content").and_then(Value::as_array);
    let mut blocks: Vec<Block> = content.into_iter().flatten().map(block).collect();
    let structured = result.get("structuredContent");
    if blocks.is_empty() {
        let text =
            structured.map_or_else(|| "(the tool said nothing)".to_owned(), Value::to_string);
        blocks.push(Block::Text(text.into()));
    }
    let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
    let show = structured.map(|structured| {
        Box::new(Show {
            summary: None,
            changed: Vec::new(),
            meta: Vec::new(),
            details: Some(RawJson(structured.to_string().into())),
            truncated: false,
            redacted: false,
        })
    });
    ToolUpdate::Done {
        outcome: if failed {
            ToolOutcome::Failed
        } else {
            ToolOutcome::Ok
        },
        content: blocks,
        show,
    }
}

fn block(block: &Value) -> Block {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    match (text("type"), text("text"), text("data"), text("mimeType")) {
        (Some("text"), Some(text), ..) => Block::Text(text.into()),
        (Some("image"), _, Some(data), Some(mime)) => picture(data, mime),
        (Some("audio"), _, Some(data), mime) => note("audio", mime, data),
        (Some("resource"), ..) => block.get("resource").map_or_else(|| raw(block), resource),
        (Some("resource_link"), ..) => link(block),
        _ => raw(block),
    }
}

fn raw(block: &Value) -> Block {
    Block::Text(block.to_string().into())
}

fn picture(data: &str, mime: &str) -> Block {
    let is_base64 = data
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    if !PICTURES.contains(&mime) || data.len() > LARGEST || data.is_empty() || !is_base64 {
        return note("an image", Some(mime), data);
    }
    Block::Media {
        kind: MediaKind::Image,
        source: Source::Inline {
            mime: mime.into(),
            base64: data.into(),
        },
    }
}

/// What is said of something that a model can't be given.
fn note(what: &str, mime: Option<&str>, base64: &str) -> Block {
    let bytes = base64.len() / 4 * 3;
    let mime = mime.unwrap_or("of no type");
    Block::Text(format!("[{what} that can't be shown: {mime}, about {bytes} bytes]").into())
}

/// The content of a resource: text behind its address, or a note of what can't be shown.
fn resource(resource: &Value) -> Block {
    let text = |name: &str| resource.get(name).and_then(Value::as_str);
    let uri = text("uri").unwrap_or("no address");
    match (text("text"), text("blob"), text("mimeType")) {
        (Some(text), ..) => Block::Text(format!("[resource {uri}]\n{text}").into()),
        (None, Some(blob), Some(mime)) if PICTURES.contains(&mime) => picture(blob, mime),
        (None, Some(blob), mime) => note(&format!("the resource {uri}"), mime, blob),
        (None, None, _) => raw(resource),
    }
}

fn link(link: &Value) -> Block {
    let text = |name: &str| link.get(name).and_then(Value::as_str);
    let mut line = format!("[resource {}", text("uri").unwrap_or("no address"));
    for more in ["name", "description", "mimeType"]
        .into_iter()
        .filter_map(text)
    {
        line.push_str(": ");
        line.push_str(more);
    }
    line.push(']');
    Block::Text(Text::from(line))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(result: Value) -> (ToolOutcome, Vec<Block>, Option<String>) {
        let ToolUpdate::Done {
            outcome,
            content,
            show,
        } = finished(&result)
        else {
            panic!("it isn't over")
        };
        let details = show.and_then(|show| show.details);
        (outcome, content, details.map(|it| it.0.to_string()))
    }

    fn text(text: &str) -> Block {
        Block::Text(text.into())
    }

    #[test]
    fn texts_pictures_and_resources_are_what_they_are() {
        let (outcome, content, details) = read(json!({"content":[
            {"type":"text","text":"one"},
            {"type":"image","data":"aGk=","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"a://b","text":"two"}},
            {"type":"resource","resource":{"uri":"a://c","blob":"aGk=","mimeType":"image/png"}},
            {"type":"resource_link","uri":"a://d","name":"d","mimeType":"text/plain"},
        ]}));
        assert_eq!((outcome, details), (ToolOutcome::Ok, None));
        let picture = Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline {
                mime: "image/png".into(),
                base64: "aGk=".into(),
            },
        };
        assert_eq!(
            content,
            [
                text("one"),
                picture.clone(),
                text("[resource a://b]\ntwo"),
                picture,
                text("[resource a://d: d: text/plain]"),
            ]
        );
    }

    #[test]
    fn what_a_model_cant_take_is_named_in_its_place() {
        let (_, content, _) = read(json!({"content":[
            {"type":"image","data":"aGk=","mimeType":"image/tiff"},
            {"type":"image","data":"no base64!","mimeType":"image/png"},
            {"type":"audio","data":"aGkh","mimeType":"audio/wav"},
            {"type":"resource","resource":{"uri":"a://c","blob":"aGkh"}},
            {"type":"wonder"},
            7,
        ]}));
        let Some(Block::Text(first)) = content.first() else {
            panic!("{content:?}")
        };
        assert_eq!(
            &**first,
            "[an image that can't be shown: image/tiff, about 3 bytes]"
        );
        assert!(content.iter().all(|block| matches!(block, Block::Text(_))));
        assert_eq!(content.last(), Some(&text("7")));
    }

    #[test]
    fn a_failure_is_one_and_structured_content_is_kept() {
        let (outcome, content, details) = read(json!({"isError":true,"structuredContent":{"a":1}}));
        assert_eq!(outcome, ToolOutcome::Failed);
        assert_eq!(content, [text(r#"{"a":1}"#)]);
        assert_eq!(details.as_deref(), Some(r#"{"a":1}"#));
        let (outcome, content, _) = read(json!(null));
        assert_eq!((outcome, content.len()), (ToolOutcome::Ok, 1));
    }
}
