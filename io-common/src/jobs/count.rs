//! How much text bytes are that come in pieces.

/// Bytes and characters so far.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) bytes: u64,
    /// Whole characters; what isn't UTF-8 counts as the replacement characters that would stand for it.
    pub(super) chars: u32,
    pub(super) invalid: bool,
    /// The beginning of a character that isn't whole.
    open: Vec<u8>,
}

impl Count {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        self.open.extend_from_slice(bytes);
        let text = std::mem::take(&mut self.open);
        let mut rest: &[u8] = &text;
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => return self.more(valid),
                Err(error) => {
                    let (valid, bad) = rest.split_at(error.valid_up_to());
                    self.more(std::str::from_utf8(valid).unwrap_or_default());
                    let Some(length) = error.error_len() else {
                        // It may become whole.
                        self.open = bad.to_vec();
                        return;
                    };
                    self.invalid = true;
                    self.chars = self.chars.saturating_add(1);
                    rest = bad.get(length..).unwrap_or_default();
                }
            }
        }
    }

    /// There is no more: a character that isn't whole never is.
    pub(super) fn end(&mut self) {
        if !std::mem::take(&mut self.open).is_empty() {
            self.invalid = true;
            self.chars = self.chars.saturating_add(1);
        }
    }

    fn more(&mut self, text: &str) {
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        self.chars = self.chars.saturating_add(chars);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_the_same_text_however_they_are_cut() {
        let bytes = b"a\xc3\xa9\xe2\x82\xac \xff\xe2\x82x\xf0\x9f\x98\x80\xe2\x82";
        let lossy = String::from_utf8_lossy(bytes);
        for size in 1..=bytes.len() {
            let mut count = Count::default();
            for piece in bytes.chunks(size) {
                count.add(piece);
            }
            assert!(count.bytes == bytes.len() as u64 && count.invalid);
            count.end();
            assert_eq!(count.chars as usize, lossy.chars().count(), "in {size}s");
        }
        let mut plain = Count::default();
        plain.add("é€".as_bytes());
        plain.end();
        assert!((plain.chars, plain.invalid) == (2, false));
    }
}
