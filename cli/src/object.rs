//! JSON objects, written member by member in the order they are named.

use turnwire::json::{write_str, write_u64};
use turnwire::vocab::{RawJson, Text};

/// An object that is being written; it is whole after [`end`](Members::end).
pub struct Members<'a> {
    out: &'a mut Vec<u8>,
    any: bool,
}

impl<'a> Members<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Members { out, any: false }
    }

    fn name(&mut self, name: &str) {
        if std::mem::replace(&mut self.any, true) {
            self.out.push(b',');
        }
        write_str(self.out, name);
        self.out.push(b':');
    }

    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        write_str(self.out, value);
    }

    /// A text; null if there is none.
    pub fn maybe_text(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    pub fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        write_u64(self.out, value);
    }

    /// A number; null if there is none.
    pub fn maybe_number(&mut self, name: &str, value: Option<u64>) {
        match value {
            Some(value) => self.number(name, value),
            None => self.raw(name, "null"),
        }
    }

    pub fn bool(&mut self, name: &str, value: bool) {
        self.raw(name, if value { "true" } else { "false" });
    }

    /// A value that is JSON text already.
    pub fn raw(&mut self, name: &str, value: &str) {
        self.name(name);
        self.out.extend_from_slice(value.as_bytes());
    }

    pub fn list<T>(&mut self, name: &str, items: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
        self.name(name);
        self.out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write(item, self.out);
        }
        self.out.push(b']');
    }

    pub fn texts<T: AsRef<str>>(&mut self, name: &str, items: &[T]) {
        self.list(name, items, |item, out| write_str(out, item.as_ref()));
    }

    /// An object as a member; to be ended before this one goes on.
    pub fn object(&mut self, name: &str) -> Members<'_> {
        self.name(name);
        Members::begin(self.out)
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}

/// What is written, as JSON that is kept.
pub fn json(write: impl FnOnce(&mut Vec<u8>)) -> RawJson {
    let mut out = Vec::new();
    write(&mut out);
    RawJson(Text::from(String::from_utf8_lossy(&out)))
}
