//! The cases of `fixtures/cases.jsonl`: small inputs built after public bug
//! reports, each with what a correct program makes of it.
//!
//! The file is data, and this is its reader: it joins the parts of an input,
//! decodes base64, and says how to cut the bytes. What an expectation means is
//! the business of the test that reads it, so [`Case::data`] is given as it is.
//!
//! ```
//! use turnwire_proptests::cases;
//!
//! let case = cases::named("F01-line-separators-are-data").unwrap();
//! let input = case.input("").unwrap();
//! for cuts in case.cuttings(input.len()) {
//!     assert_eq!(cases::pieces(input, &cuts).concat(), input);
//! }
//! ```

use std::fmt;

use serde_json::Value;

/// The file, as it is in the repository.
pub const FILE: &str = include_str!("../fixtures/cases.jsonl");

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name: `F` framing, `J` JSON, `S` server-sent events, `D` provider
    /// dialect, `E` engine, `P` driver and subprocess.
    pub id: String,
    /// `framing`, `json`, `sse`, `dialect`, `engine`, `driver`, `subprocess`.
    pub layer: String,
    /// The protocol or provider dialect that is spoken, or `any`.
    pub dialect: String,
    /// Who reads the input: `agent`, `host`, `driver`, `both`.
    pub side: String,
    /// The inputs by name; a case with one has it under the empty name.
    pub inputs: Vec<(String, Vec<u8>)>,
    /// How the input is cut.
    pub cut: Cut,
    /// The input ends after these bytes.
    pub eof: bool,
    /// The case as it stands in the file, for what isn't named here: `given`,
    /// `kind`, `steps`, `commands`, `expect.then`, `expect.never`.
    pub json: Value,
}

/// How an input is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It isn't.
    Whole,
    /// Whole, once at each place, and byte by byte.
    All,
    /// Into pieces of this many bytes.
    Pieces(usize),
}

/// What is wrong with the file of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFault(pub String);

impl fmt::Display for CaseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CaseFault {}

fn bad<T>(id: &str, what: impl fmt::Display) -> Result<T, CaseFault> {
    Err(CaseFault(format!("case {id}: {what}")))
}

/// All cases, in the order of the file.
///
/// # Errors
/// [`CaseFault`] if the file isn't as it must be.
pub fn all() -> Result<Vec<Case>, CaseFault> {
    FILE.lines()
        .filter(|line| !line.trim().is_empty())
        .map(Case::parse)
        .collect()
}

/// The cases of one layer.
///
/// # Errors
/// [`CaseFault`] if the file isn't as it must be, or has none of this layer.
pub fn of_layer(layer: &str) -> Result<Vec<Case>, CaseFault> {
    let cases: Vec<Case> = all()?
        .into_iter()
        .filter(|case| case.layer == layer)
        .collect();
    if cases.is_empty() {
        return bad(layer, "no case is of this layer");
    }
    Ok(cases)
}

/// The case of this name.
///
/// # Errors
/// [`CaseFault`] if there is none.
pub fn named(id: &str) -> Result<Case, CaseFault> {
    match all()?.into_iter().find(|case| case.id == id) {
        Some(case) => Ok(case),
        None => bad(id, "there is no case of this name"),
    }
}

impl Case {
    fn parse(line: &str) -> Result<Self, CaseFault> {
        let json: Value = match serde_json::from_str(line) {
            Ok(json) => json,
            Err(error) => return bad(line.get(..40).unwrap_or(line), error),
        };
        let text = |name: &str| {
            json.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let id = text("id");
        let cut = match (json.get("cuts"), json.get("chunk")) {
            (None, None) => Cut::Whole,
            (Some(cuts), None) if cuts == "all" => Cut::All,
            (None, Some(chunk)) => match chunk.as_u64().and_then(|size| usize::try_from(size).ok())
            {
                Some(size) if size > 0 => Cut::Pieces(size),
                _ => return bad(&id, "chunk isn't a size"),
            },
            _ => return bad(&id, "cuts isn't \"all\""),
        };
        let (layer, dialect, side) = (text("layer"), text("dialect"), text("side"));
        let eof = json.get("eof") == Some(&Value::Bool(true));
        let inputs = inputs(&id, &json)?;
        Ok(Self {
            id,
            layer,
            dialect,
            side,
            inputs,
            cut,
            eof,
            json,
        })
    }

    /// The input of this name: a variant's, or the only one under `""`.
    pub fn input(&self, name: &str) -> Option<&[u8]> {
        self.inputs
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, bytes)| bytes.as_slice())
    }

    /// `expect.data`; null where the case has none.
    pub fn data(&self) -> &Value {
        self.json.pointer("/expect/data").unwrap_or(&Value::Null)
    }

    /// What is expected of the input of this name: for a variant its own
    /// member of `expect.data` where there is one, else all of it.
    pub fn expected(&self, name: &str) -> &Value {
        self.data()
            .get(name)
            .filter(|_| !name.is_empty())
            .unwrap_or(self.data())
    }

    /// The provider dialect of a stream, `openai` or `anthropic`, where the
    /// case names one: for all inputs or for this one.
    pub fn kind(&self, name: &str) -> Option<&str> {
        let kind = self.json.get("kind")?;
        kind.as_str().or_else(|| kind.get(name)?.as_str())
    }

    /// `expect.data.lines`: for each line that isn't blank what may become of
    /// it, one of `ok`, `bad`, `too_long`, `not_utf8`, or several.
    pub fn lines(&self) -> Vec<Vec<&str>> {
        let lines = self.data().get("lines").and_then(Value::as_array);
        let words = lines.into_iter().flatten().filter_map(Value::as_str);
        words.map(|word| word.split('|').collect()).collect()
    }

    /// The ways to cut an input of `length` bytes, each as the places of its
    /// cuts in rising order.
    pub fn cuttings(&self, length: usize) -> Vec<Vec<usize>> {
        match self.cut {
            Cut::Whole => vec![vec![]],
            Cut::Pieces(size) => vec![
                (1..)
                    .map(|n| n * size)
                    .take_while(|&at| at < length)
                    .collect(),
            ],
            Cut::All => {
                let mut cuttings = vec![vec![], (1..length).collect()];
                cuttings.extend((1..length).map(|at| vec![at]));
                cuttings
            }
        }
    }
}

/// Cuts bytes at these places, which rise.
pub fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut done = 0;
    let mut pieces = Vec::with_capacity(cuts.len() + 1);
    for &cut in cuts {
        let Some((piece, after)) = rest.split_at_checked(cut.saturating_sub(done)) else {
            break;
        };
        pieces.push(piece);
        rest = after;
        done = cut;
    }
    pieces.push(rest);
    pieces
}

fn inputs(id: &str, json: &Value) -> Result<Vec<(String, Vec<u8>)>, CaseFault> {
    let mut inputs = Vec::new();
    if let Some(text) = json.get("input").and_then(Value::as_str) {
        inputs.push((String::new(), text.as_bytes().to_vec()));
    }
    if let Some(text) = json.get("input_b64").and_then(Value::as_str) {
        match base64(text) {
            Some(bytes) => inputs.push((String::new(), bytes)),
            None => return bad(id, "input_b64 isn't base64"),
        }
    }
    if let Some(parts) = json.get("input_parts").and_then(Value::as_array) {
        let mut bytes = Vec::new();
        for part in parts {
            let text = |name| part.get(name).and_then(Value::as_str);
            let times = part
                .get("times")
                .and_then(Value::as_u64)
                .and_then(|times| usize::try_from(times).ok());
            match (text("text"), text("repeat"), times) {
                (Some(text), None, None) => bytes.extend_from_slice(text.as_bytes()),
                (None, Some(text), Some(times)) => {
                    bytes.extend_from_slice(text.repeat(times).as_bytes())
                }
                _ => return bad(id, "a part is neither text nor a repetition"),
            }
        }
        inputs.push((String::new(), bytes));
    }
    for (name, text) in json
        .get("variants")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        match text.as_str() {
            Some(text) => inputs.push((name.clone(), text.as_bytes().to_vec())),
            None => return bad(id, "a variant isn't text"),
        }
    }
    Ok(inputs)
}

/// Standard base64 with padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|&byte| byte != b'=') {
        let digit = DIGITS.iter().position(|&digit| digit == byte)?;
        bits = (bits << 6) | u32::try_from(digit).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_whole() {
        let cases = all().unwrap();
        assert_eq!(cases.len(), 40);
        for case in &cases {
            let driven = case.json.get("steps").is_some() || case.json.get("commands").is_some();
            assert!(driven || !case.inputs.is_empty(), "{}", case.id);
            assert!(!case.data().is_null(), "{}", case.id);
        }
    }

    #[test]
    fn inputs_of_every_form_are_read() {
        let bytes = |id: &str, name: &str| named(id).unwrap().input(name).unwrap().to_vec();
        assert!(
            bytes("F06-line-that-is-not-utf8", "")
                .starts_with(b"{\"cmd\":\"user\",\"text\":\"\xff\xfe\"}\n")
        );
        assert!(bytes("F04-too-long-line-then-recover", "").len() > 8_388_608);
        assert!(
            bytes("J03-the-same-member-twice", "2").starts_with(b"{\"type\":\"control_response\"")
        );
        assert_eq!(
            named("S05-no-blank-line-at-the-end")
                .unwrap()
                .kind("no_newline"),
            Some("openai")
        );
        assert!(named("F99").is_err());
    }

    #[test]
    fn cuts_rise_and_lose_nothing() {
        let case = named("F02-any-cut-same-records").unwrap();
        let input = case.input("").unwrap();
        let cuttings = case.cuttings(input.len());
        assert_eq!(cuttings.len(), input.len() + 1);
        for cuts in cuttings {
            assert_eq!(pieces(input, &cuts).concat(), input);
        }
        assert_eq!(pieces(b"abcde", &[2, 4]), [&b"ab"[..], b"cd", b"e"]);
        assert_eq!(
            named("F05-no-smaller-hidden-limit").unwrap().cuttings(9000),
            [[4096, 8192]]
        );
    }
}
