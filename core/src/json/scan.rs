//! The strict scan.

use alloc::string::String;
use core::str;

use super::error::{Found, JsonFault, JsonFaultKind, path_at, shorten};
use super::members::{Members, Name, Open, Value};
use super::raw::{Object, Raw};
use super::text::{
    Escape, Stops, find_stop, number_end, read_escape, simple_escape, skip_space, unescape_into,
};

/// What a scan lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanRules {
    /// The most objects and arrays that may be open at once, the outermost one
    /// included. A value as deep as this passes.
    pub max_depth: usize,
    /// What becomes of an escape for half a surrogate pair.
    pub lone_surrogates: LoneSurrogates,
    /// Whether a name may occur twice in one object.
    pub duplicates: Duplicates,
}

impl ScanRules {
    /// 128 levels; half a surrogate pair is refused.
    pub const STRICT: Self = Self {
        max_depth: 128,
        lone_surrogates: LoneSurrogates::Refuse,
        duplicates: Duplicates::Refuse,
    };

    /// 128 levels; half a surrogate pair is read as U+FFFD. For what a model
    /// or a peer writes that can't be asked to do better.
    pub const LENIENT: Self = Self {
        max_depth: 128,
        lone_surrogates: LoneSurrogates::Replace,
        duplicates: Duplicates::Refuse,
    };
}

impl Default for ScanRules {
    fn default() -> Self {
        Self::STRICT
    }
}

/// What becomes of an escape for half a surrogate pair, as in `"\ud83d"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoneSurrogates {
    /// The text is refused.
    Refuse,
    /// It passes, and is U+FFFD when decoded and when written again.
    Replace,
}

/// What becomes of a name that occurs twice in one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// The text is refused: what was checked and what is obeyed could differ.
    Refuse,
    /// Both pass. A derived type still refuses to be decoded from them; one
    /// that keeps the last is read as a web browser would.
    /// [`Object::get`] and [`Object::string`] give the first.
    Pass,
}

/// Scans a whole line that must be one JSON object.
///
/// # Errors
/// [`JsonFault`], for the first thing that is wrong; see the
/// [module](super) for what is. Bytes that aren't UTF-8 come first, wherever
/// they stand.
pub fn scan<'m, 'a: 'm>(
    line: &'a [u8],
    rules: &ScanRules,
    members: &'m mut Members,
) -> Result<Object<'m, 'a>, JsonFault> {
    let (known, resume) = members.resume(line, rules);
    let scanned = utf8(line).and_then(|text| {
        let mut scanner = Scanner {
            bytes: line,
            text,
            rules,
            members,
        };
        let start = scanner
            .top_object(resume)
            .map_err(|fault| fault.located(line))?;
        Ok((text, start))
    });
    match scanned {
        Ok((text, start)) => {
            members.remember(line, rules, known);
            Ok(Object::new(text, start, members))
        }
        Err(fault) => {
            members.clear();
            Err(fault)
        }
    }
}

/// Scans a text that must be one JSON value of any type.
///
/// # Errors
/// As [`scan`].
pub fn scan_value<'a>(text: &'a [u8], rules: &ScanRules) -> Result<Raw<'a>, JsonFault> {
    let str = utf8(text)?;
    let mut scanner = Scanner {
        bytes: text,
        text: str,
        rules,
        members: &mut Members::new(),
    };
    match scanner.any_value() {
        Ok(value) => Ok(Raw::trusted(
            str.get(value.start..value.end).unwrap_or_default(),
        )),
        Err(fault) => Err(fault.located(text)),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, JsonFault> {
    #[cfg(feature = "simd")]
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return Ok(text);
    }
    // Without the feature, or to say where the fault is.
    str::from_utf8(bytes).map_err(|error| {
        let length = error
            .error_len()
            .map(|length| u8::try_from(length).unwrap_or(u8::MAX));
        let at = error.valid_up_to();
        JsonFault {
            at,
            path: String::new(),
            kind: JsonFaultKind::NotUtf8 { bytes: length },
        }
    })
}

/// A fault before its path is worked out.
struct Fault {
    at: usize,
    kind: JsonFaultKind,
}

impl Fault {
    #[cold]
    fn located(self, bytes: &[u8]) -> JsonFault {
        JsonFault {
            at: self.at,
            path: path_at(bytes, self.at),
            kind: self.kind,
        }
    }
}

struct Scanner<'a, 's> {
    bytes: &'a [u8],
    text: &'a str,
    rules: &'s ScanRules,
    members: &'s mut Members,
}

impl Scanner<'_, '_> {
    /// The top-level object: leaves its members. Gives its start. `resume` is
    /// where to go on, at a member's value, if all before it is known.
    fn top_object(&mut self, resume: Option<usize>) -> Result<usize, Fault> {
        let start = skip_space(self.bytes, 0);
        let mut at = match resume {
            Some(at) => skip_space(self.bytes, at),
            None => match self.first_member(start)? {
                Some(at) => at,
                None => return Ok(start),
            },
        };
        loop {
            let value = self.value(at)?;
            self.members.values.push(value);
            at = skip_space(self.bytes, value.end);
            match self.byte(at) {
                Some(b',') => at = skip_space(self.bytes, at + 1),
                Some(b'}') => break,
                _ => return Err(self.syntax(at, "`,` or `}`")),
            }
            at = self.name(at, 0)?;
        }
        self.check_many(0)?;
        self.nothing_after(at + 1).map(|()| start)
    }

    /// The opening brace and the first name of the top-level object. Gives the
    /// index of the value; `None` if the object is empty.
    fn first_member(&mut self, start: usize) -> Result<Option<usize>, Fault> {
        match self.byte(start) {
            Some(b'{') if self.rules.max_depth == 0 => return Err(self.too_deep(start)),
            Some(b'{') => {}
            None => {
                return Err(Fault {
                    at: start,
                    kind: JsonFaultKind::Blank,
                });
            }
            Some(_) => {
                // Whatever is wrong inside is the better report.
                self.any_value()?;
                return Err(Fault {
                    at: start,
                    kind: JsonFaultKind::NotAnObject,
                });
            }
        }
        let at = skip_space(self.bytes, start + 1);
        if self.byte(at) == Some(b'}') {
            return self.nothing_after(at + 1).map(|()| None);
        }
        self.name(at, 0).map(Some)
    }

    fn any_value(&mut self) -> Result<Value, Fault> {
        let start = skip_space(self.bytes, 0);
        if self.byte(start).is_none() {
            return Err(Fault {
                at: start,
                kind: JsonFaultKind::Blank,
            });
        }
        // The outermost container counts as a level here, too.
        let value = self.value_within(start, 0)?;
        self.nothing_after(value.end).map(|()| value)
    }

    fn nothing_after(&self, at: usize) -> Result<(), Fault> {
        let at = skip_space(self.bytes, at);
        if self.byte(at).is_some() {
            return Err(self.syntax(at, "nothing after the value"));
        }
        Ok(())
    }

    /// A member's name and the colon after it; `at` is at the name. Gives the
    /// index of the value. `base` is where the names of this object begin.
    #[inline]
    fn name(&mut self, at: usize, base: usize) -> Result<usize, Fault> {
        if self.byte(at) != Some(b'"') {
            return Err(self.syntax(at, "a member's name"));
        }
        let (end, escaped) = self.string(at)?;
        let mut name = Name {
            start: at + 1,
            end: end - 1,
            at,
            escaped,
        };
        if escaped {
            let start = self.members.decoded.len();
            let inner = self.text.get(at + 1..end - 1).unwrap_or_default();
            unescape_into(inner, &mut self.members.decoded);
            name = Name {
                start,
                end: self.members.decoded.len(),
                at,
                escaped,
            };
        }
        self.check_one(name, base)?;
        self.members.names.push(name);
        let mut colon = end;
        if self.byte(colon) != Some(b':') {
            colon = skip_space(self.bytes, end);
            if self.byte(colon) != Some(b':') {
                return Err(self.syntax(colon, "`:`"));
            }
        }
        Ok(skip_space(self.bytes, colon + 1))
    }

    /// Any value below the top-level object.
    #[inline]
    fn value(&mut self, start: usize) -> Result<Value, Fault> {
        self.value_within(start, 1)
    }

    #[inline]
    fn value_within(&mut self, start: usize, depth: usize) -> Result<Value, Fault> {
        match self.byte(start) {
            Some(b'"') => {
                let (end, escaped) = self.string(start)?;
                Ok(Value {
                    start,
                    end,
                    plain: !escaped,
                })
            }
            Some(b'{' | b'[') => {
                let end = self.container(start, depth)?;
                Ok(Value {
                    start,
                    end,
                    plain: false,
                })
            }
            _ => {
                let end = self.scalar(start)?;
                Ok(Value {
                    start,
                    end,
                    plain: false,
                })
            }
        }
    }

    /// An object or array and all that is in it, without recursion. Gives the
    /// index after it. `depth` is the number of containers around it.
    fn container(&mut self, start: usize, depth: usize) -> Result<usize, Fault> {
        let mut at = start;
        loop {
            // At a value.
            let mut end = match self.byte(at) {
                Some(open @ (b'{' | b'[')) => {
                    if self.members.open.len() + depth >= self.rules.max_depth {
                        return Err(self.too_deep(at));
                    }
                    let is_object = open == b'{';
                    let (names, decoded) = (self.members.names.len(), self.members.decoded.len());
                    self.members.open.push(Open {
                        is_object,
                        names,
                        decoded,
                    });
                    at = skip_space(self.bytes, at + 1);
                    match (self.byte(at), is_object) {
                        (Some(b'}'), true) | (Some(b']'), false) => {
                            self.members.open.pop();
                            at + 1
                        }
                        (_, true) => {
                            at = self.name(at, names)?;
                            continue;
                        }
                        (_, false) => continue,
                    }
                }
                Some(b'"') => self.string(at)?.0,
                _ => self.scalar(at)?,
            };
            // After a value: go up as far as containers end here.
            loop {
                let Some(&open) = self.members.open.last() else {
                    return Ok(end);
                };
                at = skip_space(self.bytes, end);
                match (self.byte(at), open.is_object) {
                    (Some(b','), true) => {
                        at = skip_space(self.bytes, at + 1);
                        at = self.name(at, open.names)?;
                        break;
                    }
                    (Some(b','), false) => {
                        at = skip_space(self.bytes, at + 1);
                        break;
                    }
                    (Some(b'}'), true) => self.close(open)?,
                    (Some(b']'), false) => self.close(open)?,
                    (_, true) => return Err(self.syntax(at, "`,` or `}`")),
                    (_, false) => return Err(self.syntax(at, "`,` or `]`")),
                }
                end = at + 1;
            }
        }
    }

    fn close(&mut self, open: Open) -> Result<(), Fault> {
        if open.is_object {
            self.check_many(open.names)?;
        }
        self.members.names.truncate(open.names);
        self.members.decoded.truncate(open.decoded);
        self.members.open.pop();
        Ok(())
    }

    /// A string; `at` is at its quote. Gives the index after the closing
    /// quote, and whether there is an escape in it.
    #[inline]
    fn string(&self, at: usize) -> Result<(usize, bool), Fault> {
        let end = find_stop::<false>(self.bytes, at + 1);
        if self.byte(end) == Some(b'"') {
            return Ok((end + 1, false));
        }
        self.odd_string(end)
    }

    /// The rest of a string that has something besides plain text at `at`.
    fn odd_string(&self, at: usize) -> Result<(usize, bool), Fault> {
        let mut stops = Stops::<false>::new(self.bytes, at);
        let mut escaped = false;
        loop {
            let at = stops.next();
            match self.byte(at) {
                Some(b'"') => return Ok((at + 1, escaped)),
                Some(b'\\') => {
                    escaped = true;
                    if simple_escape(self.bytes, at).is_some() {
                        stops.skip_letter();
                    } else {
                        stops.skip_to(self.odd_escape(at)?);
                    }
                }
                _ => return Err(self.syntax(at, "the rest of a string")),
            }
        }
    }

    /// An escape of more than two bytes. Gives the index after it.
    fn odd_escape(&self, at: usize) -> Result<usize, Fault> {
        let (escape, end) = read_escape(self.bytes, at);
        match escape {
            Escape::Char(_) => Ok(end),
            Escape::Lone if self.rules.lone_surrogates == LoneSurrogates::Replace => Ok(end),
            Escape::Lone => Err(Fault {
                at,
                kind: JsonFaultKind::LoneSurrogate,
            }),
            Escape::Bad => Err(self.syntax(end, "an escape")),
        }
    }

    /// A number or a literal.
    fn scalar(&self, at: usize) -> Result<usize, Fault> {
        let word: &[u8] = match self.byte(at) {
            Some(b'-' | b'0'..=b'9') => {
                return number_end(self.bytes, at).map_err(|bad| self.syntax(bad, "a digit"));
            }
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => return Err(self.syntax(at, "a value")),
        };
        if self.bytes.get(at..at + word.len()) == Some(word) {
            return Ok(at + word.len());
        }
        Err(self.syntax(at, "a value"))
    }

    /// Up to this many members of one object, each new name is compared with
    /// all before it; beyond, they are sorted when the object ends.
    const FEW: usize = 16;

    #[inline]
    fn check_one(&self, name: Name, base: usize) -> Result<(), Fault> {
        let before = self.members.names.get(base..).unwrap_or_default();
        if before.len() >= Self::FEW || self.rules.duplicates == Duplicates::Pass {
            return Ok(());
        }
        let length = name.end - name.start;
        for other in before {
            if other.end - other.start == length && self.spelled(other) == self.spelled(&name) {
                return Err(self.duplicate(name));
            }
        }
        Ok(())
    }

    fn check_many(&mut self, base: usize) -> Result<(), Fault> {
        let count = self.members.names.len() - base;
        if count <= Self::FEW || self.rules.duplicates == Duplicates::Pass {
            return Ok(());
        }
        let mut order = core::mem::take(&mut self.members.order);
        order.clear();
        order.extend(0..u32::try_from(count).unwrap_or(u32::MAX));
        let name = |index: u32| self.members.names.get(base + index as usize).copied();
        let key = |index: &u32| name(*index).map(|name| self.spelled(&name));
        order.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then(a.cmp(b)));
        // The duplicate that stands first in the text is the one reported.
        let mut first: Option<u32> = None;
        for pair in order.windows(2) {
            if let [a, b] = pair
                && key(a) == key(b)
                && first.is_none_or(|first| *b < first)
            {
                first = Some(*b);
            }
        }
        let fault = first.and_then(name).map(|name| self.duplicate(name));
        self.members.order = order;
        fault.map_or(Ok(()), Err)
    }

    /// A name as bytes, decoded.
    #[inline]
    fn spelled(&self, name: &Name) -> &[u8] {
        let source = if name.escaped {
            self.members.decoded.as_bytes()
        } else {
            self.bytes
        };
        source.get(name.start..name.end).unwrap_or_default()
    }

    #[cold]
    fn duplicate(&self, name: Name) -> Fault {
        let at = name.at;
        let name = shorten(&String::from_utf8_lossy(self.spelled(&name)));
        Fault {
            at,
            kind: JsonFaultKind::Duplicate { name },
        }
    }

    #[cold]
    fn too_deep(&self, at: usize) -> Fault {
        Fault {
            at,
            kind: JsonFaultKind::TooDeep {
                limit: self.rules.max_depth,
            },
        }
    }

    #[cold]
    fn syntax(&self, at: usize, expected: &'static str) -> Fault {
        let found = self
            .text
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(Found::End, Found::Char);
        Fault {
            at,
            kind: JsonFaultKind::Syntax { expected, found },
        }
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }
}
