//! Tests of the store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod form;
mod named;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use turnwire::vocab::{
    Block, CallId, Message, MessageId, Origin, PromptId, RawJson, Role, ToolInput,
};

use super::Store;

const ID: &str = "5f0c9ad0-6d5f-4a64-9b5c-000000000001";

/// A store in a folder of its own, gone when dropped.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Its folder isn't there yet, nor is the one above.
    fn store(&self) -> Store {
        Store::at(self.folder.path().join("data/sessions"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data/sessions").join(name)
    }

    fn transcript(&self) -> PathBuf {
        self.path(&format!("{ID}.jsonl"))
    }
}

/// What a person said.
pub(super) fn said(id: u64) -> Arc<Message> {
    message(id, Role::User, vec![Block::Text("words".into())])
}

fn message(id: u64, role: Role, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId(id),
        origin: if role == Role::User {
            Origin::Host
        } else {
            Origin::Harness
        },
        prompt: (role == Role::User).then_some(PromptId(id)),
        role,
        content: content.into_iter().map(Arc::new).collect(),
        about: None,
        at_ms: 1_700_000_000_000 + id,
        details: None,
    })
}

fn user(id: u64, text: &str) -> Arc<Message> {
    message(id, Role::User, vec![Block::Text(text.into())])
}

fn assistant(id: u64, text: &str) -> Arc<Message> {
    message(id, Role::Assistant, vec![Block::Text(text.into())])
}

fn call(id: u64, call: u64, input: &str) -> Arc<Message> {
    let block = Block::ToolUse {
        call: CallId(call),
        provider_id: Some("c".into()),
        name: "bash".into(),
        input: ToolInput::Object(RawJson(input.into())),
    };
    message(id, Role::Assistant, vec![block])
}
