//! Writes a request body straight into the caller's buffer; it only keeps track of commas.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::history::Args;
use super::media::Insert;
use crate::json::{self, Raw};
use crate::vocab::Stored;

/// A JSON writer for one body. Calls must nest as the JSON does; nothing here can fail.
pub(super) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    comma: bool,
    inserts: Vec<Insert>,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            comma: false,
            inserts: Vec::new(),
        }
    }

    /// Bytes in the buffer so far.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Puts a member in front of a closing brace that was already written at `brace`.
    pub(super) fn insert_member(&mut self, brace: usize, member: &[u8]) {
        if brace <= self.out.len() {
            self.out.splice(brace..brace, member.iter().copied());
            for insert in self.inserts.iter_mut().filter(|it| it.at >= brace) {
                insert.at += member.len();
            }
        }
    }

    pub(super) fn open(&mut self, bracket: u8) {
        self.separate();
        self.out.push(bracket);
        self.comma = false;
    }

    pub(super) fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.comma = true;
    }

    pub(super) fn key(&mut self, name: &str) {
        self.separate();
        json::write_str(self.out, name);
        self.out.push(b':');
        self.comma = false;
    }

    pub(super) fn str(&mut self, text: &str) {
        self.separate();
        json::write_str(self.out, text);
        self.comma = true;
    }

    /// A string that begins like this, and goes on with the base64 of what is put in later.
    pub(super) fn base64_of(&mut self, before: &str, stored: &Arc<Stored>) {
        self.str(before);
        // Its closing quotation mark.
        self.out.pop();
        self.inserts.push(Insert {
            at: self.out.len(),
            stored: stored.clone(),
        });
        self.out.push(b'"');
    }

    /// What is to be put into the body, in order.
    pub(super) fn into_inserts(self) -> Vec<Insert> {
        self.inserts
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.separate();
        json::write_u64(self.out, number);
        self.comma = true;
    }

    /// A number that isn't finite has no JSON form and becomes null.
    pub(super) fn f64(&mut self, number: f64) {
        self.separate();
        if number.is_finite() {
            let mut text = alloc::string::String::new();
            // Writing into a String can't fail.
            let _ = write!(text, "{number}");
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.out.extend_from_slice(b"null");
        }
        self.comma = true;
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.separate();
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
        self.comma = true;
    }

    pub(super) fn null(&mut self) {
        self.separate();
        self.out.extend_from_slice(b"null");
        self.comma = true;
    }

    /// A value that was scanned. Halves of surrogate pairs in its escapes are replaced: a history that
    /// holds one would be refused for ever after (J01).
    pub(super) fn raw(&mut self, value: Raw<'_>) {
        self.separate();
        json::write_raw(self.out, value);
        self.comma = true;
    }

    /// The arguments of a call.
    pub(super) fn args(&mut self, args: Args<'_>) {
        self.separate();
        args.write(self.out);
        self.comma = true;
    }

    /// A value that we wrote ourselves.
    pub(super) fn literal(&mut self, value: &str) {
        self.separate();
        self.out.extend_from_slice(value.as_bytes());
        self.comma = true;
    }

    pub(super) fn member(&mut self, name: &str, text: &str) {
        self.key(name);
        self.str(text);
    }

    fn separate(&mut self) {
        if self.comma {
            self.out.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn commas_and_numbers() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.open(b'{');
        writer.member("a", "x\"");
        writer.key("b");
        writer.open(b'[');
        writer.u64(1);
        writer.f64(0.7);
        writer.f64(f64::NAN);
        writer.bool(true);
        writer.null();
        writer.literal("{}");
        writer.close(b']');
        writer.close(b'}');
        let brace = writer.len() - 1;
        writer.insert_member(brace, b",\"c\":2");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"a":"x\"","b":[1,0.7,null,true,null,{}],"c":2}"#
        );
    }
}
