//! Reads a script, line by line.

use alloc::{format, string::String, vec::Vec};

use super::{Act, Condition, Counts, Reply, Script, ScriptFault};
use crate::json::{self, JsonFault, JsonFaultKind, ScanRules};
use crate::model::{Api, RULES};

/// The part of a line that is still to be read, with its place.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    line: usize,
    column: usize,
    text: &'a str,
}

impl<'a> Cursor<'a> {
    fn fault(&self, message: impl Into<String>) -> ScriptFault {
        ScriptFault {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }

    fn skip_space(&mut self) {
        let rest = self.text.trim_start();
        self.advance(self.text.len() - rest.len());
    }

    fn advance(&mut self, bytes: usize) {
        let (read, rest) = self.text.split_at_checked(bytes).unwrap_or((self.text, ""));
        self.column += read.chars().count();
        self.text = rest;
    }

    /// The next word, and the place where it begins.
    fn word(&mut self) -> Option<Cursor<'a>> {
        self.skip_space();
        let length = self
            .text
            .find(char::is_whitespace)
            .unwrap_or(self.text.len());
        let word = self.text.get(..length).filter(|word| !word.is_empty())?;
        let found = Cursor {
            text: word,
            ..*self
        };
        self.advance(length);
        Some(found)
    }

    fn need(&mut self, what: &str) -> Result<Cursor<'a>, ScriptFault> {
        self.skip_space();
        let here = *self;
        self.word()
            .ok_or_else(|| here.fault(format!("{what} is missing")))
    }

    /// The rest of the line, without white space around it.
    fn rest(&mut self) -> Cursor<'a> {
        self.skip_space();
        let found = Cursor {
            text: self.text.trim_end(),
            ..*self
        };
        self.advance(self.text.len());
        found
    }

    fn end(&mut self) -> Result<(), ScriptFault> {
        match self.word() {
            None => Ok(()),
            Some(word) => {
                Err(word.fault(format!("nothing may follow here, but {:?} does", word.text)))
            }
        }
    }

    fn number(&self, what: &str) -> Result<u64, ScriptFault> {
        self.text.parse().map_err(|_| {
            self.fault(format!(
                "{what} must be a whole number, not {:?}",
                self.text
            ))
        })
    }

    /// A text in double quotes at the start, with JSON's escapes.
    fn quoted(&mut self, what: &str) -> Result<String, ScriptFault> {
        self.skip_space();
        let mut escaped = false;
        let close = |(_, letter): &(usize, char)| {
            let closes = *letter == '"' && !escaped;
            escaped = *letter == '\\' && !escaped;
            closes
        };
        let end = self
            .text
            .strip_prefix('"')
            .and_then(|inner| inner.char_indices().find(close))
            .map(|(at, _)| at + 2);
        let text = end
            .and_then(|end| self.text.get(..end))
            .and_then(|text| json::scan_value(text.as_bytes(), &RULES).ok());
        let Some((text, value)) = text.and_then(|text| Some((text, text.string()?.into_owned())))
        else {
            return Err(self.fault(format!(
                "{what} must stand in double quotes, with JSON's escapes"
            )));
        };
        self.advance(text.as_str().len());
        Ok(value)
    }
}

pub(super) fn parse(text: &str) -> Result<Script, ScriptFault> {
    let mut script = Script {
        api: Api::OpenAi,
        pace_us: 0,
        replies: Vec::new(),
    };
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(at, text)| Cursor {
            line: at + 1,
            column: 1,
            text,
        })
        .peekable();
    while let Some(mut line) = lines.next() {
        let Some(word) = line.word().filter(|word| !word.text.starts_with('#')) else {
            continue;
        };
        if word.text.starts_with('|') {
            return Err(
                word.fault("a line that goes on with | must follow think:, say:, call or raw")
            );
        }
        let mut more = Vec::new();
        while let Some(next) = lines.next_if(|next| next.text.trim_start().starts_with('|')) {
            more.push(next);
        }
        head_or_act(&mut script, word, line, &more)?;
    }
    Ok(script)
}

fn head_or_act<'a>(
    script: &mut Script,
    word: Cursor<'a>,
    mut line: Cursor<'a>,
    more: &[Cursor<'a>],
) -> Result<(), ScriptFault> {
    match (word.text, script.replies.last_mut()) {
        ("reply", _) => {
            no_more(more)?;
            script.replies.push(Reply {
                when: conditions(&mut line)?,
                acts: Vec::new(),
            });
            Ok(())
        }
        ("dialect", None) => {
            let name = line.need("the dialect, openai or anthropic,")?;
            script.api = match name.text {
                "openai" => Api::OpenAi,
                "anthropic" => Api::Anthropic,
                other => {
                    return Err(name.fault(format!(
                        "the dialect must be openai or anthropic, not {other:?}"
                    )));
                }
            };
            no_more(more)?;
            line.end()
        }
        ("pace", None) => {
            script.pace_us = time(&line.need("a time such as 20ms")?)?;
            no_more(more)?;
            line.end()
        }
        ("dialect" | "pace", Some(_)) => {
            Err(word.fault(format!("{} must stand before the first reply", word.text)))
        }
        (_, Some(reply)) => {
            let act = act(word, line, more)?;
            check_order(&reply.acts, &act, word)?;
            reply.acts.push(act);
            Ok(())
        }
        (other, None) => Err(word.fault(format!("expected dialect, pace or reply, not {other:?}"))),
    }
}

fn no_more(more: &[Cursor<'_>]) -> Result<(), ScriptFault> {
    match more.first() {
        None => Ok(()),
        Some(line) => {
            let mut line = *line;
            line.skip_space();
            Err(line.fault("a line that goes on with | must follow think:, say:, call or raw"))
        }
    }
}

fn conditions(line: &mut Cursor<'_>) -> Result<Vec<Condition>, ScriptFault> {
    let mut found = Vec::new();
    let Some(when) = line.word() else {
        return Ok(found);
    };
    if when.text != "when" {
        return Err(when.fault(format!("expected when, not {:?}", when.text)));
    }
    loop {
        let word = line.need("a condition (prompt, result, step, request or offered)")?;
        found.push(match word.text {
            "prompt" => Condition::Prompt(line.quoted("the words that the prompt holds")?),
            "result" => Condition::Result(line.quoted("the words that the result holds")?),
            "step" => Condition::Step(line.need("the number of the step")?.number("the step")?),
            "request" => Condition::Request(
                line.need("the number of the request")?
                    .number("the request")?,
            ),
            "offered" => Condition::Offered(line.need("the name of a tool")?.text.into()),
            other => {
                return Err(word.fault(format!(
                    "a condition is prompt, result, step, request or offered, not {other:?}"
                )));
            }
        });
        match line.word() {
            None => return Ok(found),
            Some(and) if and.text == "and" => {}
            Some(other) => return Err(other.fault(format!("expected and, not {:?}", other.text))),
        }
    }
}

fn act<'a>(
    word: Cursor<'a>,
    mut line: Cursor<'a>,
    more: &[Cursor<'a>],
) -> Result<Act, ScriptFault> {
    match word.text {
        "think:" => return Ok(Act::Think(prose(word, line, more)?)),
        "say:" => return Ok(Act::Say(prose(word, line, more)?)),
        "call" => return call(line, more),
        _ => no_more(more)?,
    }
    let act = match word.text {
        "usage" => Act::Usage(counts(&mut line)?),
        "finish" => {
            let reason = line.need("the finish reason, or none,")?.text;
            Act::Finish((reason != "none").then(|| reason.into()))
        }
        "fail" => fail(&mut line)?,
        "retry-after" => Act::RetryAfter(header(&line.rest())?),
        "error" => {
            let class = line.need("the error's type")?.text.into();
            Act::Error {
                class,
                text: line.rest().text.into(),
            }
        }
        "unreached" => Act::Unreached(or_else(line.rest().text, "no connection (scripted)")),
        "cut" => Act::Cut,
        "wait" => Act::Wait(time(&line.need("a time such as 200ms")?)?),
        "raw" => Act::Raw(line.quoted("the bytes")?),
        other => {
            let known = "think:, say:, call, usage, finish, fail, retry-after, error, unreached, cut, wait, raw or reply";
            return Err(word.fault(format!("expected {known}, not {other:?}")));
        }
    };
    line.end()?;
    Ok(act)
}

/// The text of `think:` and `say:`: the rest of the line, or the lines that go on with `|`.
fn prose<'a>(
    word: Cursor<'a>,
    mut line: Cursor<'a>,
    more: &[Cursor<'a>],
) -> Result<String, ScriptFault> {
    let text = joined(&text_lines(line.rest(), more));
    if text.is_empty() {
        Err(word.fault(format!("{} needs a text", word.text)))
    } else {
        Ok(text)
    }
}

/// The pieces of a text: the rest of its line, if there is any, and what stands behind the bars.
fn text_lines<'a>(first: Cursor<'a>, more: &[Cursor<'a>]) -> Vec<Cursor<'a>> {
    let first = (!first.text.is_empty()).then_some(first);
    let behind_bar = more.iter().map(|line| {
        let mut line = *line;
        line.skip_space();
        line.advance(if line.text.starts_with("| ") { 2 } else { 1 });
        Cursor {
            text: line.text.trim_end(),
            ..line
        }
    });
    first.into_iter().chain(behind_bar).collect()
}

fn joined(lines: &[Cursor<'_>]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str(line.text);
    }
    text
}

fn call<'a>(mut line: Cursor<'a>, more: &[Cursor<'a>]) -> Result<Act, ScriptFault> {
    let name = line.need("the tool's name")?.text.into();
    let lines = text_lines(line.rest(), more);
    let args = joined(&lines);
    if args.is_empty() || crate::model::object(&args).is_some() {
        return Ok(Act::Call { name, args });
    }
    let (at, why) = match json::scan_value(args.as_bytes(), &ScanRules::LENIENT) {
        Ok(_) => (0, String::from("this is another value")),
        Err(JsonFault {
            at,
            kind: JsonFaultKind::Syntax { expected, found },
            ..
        }) => (at, format!("expected {expected}, found {found}")),
        Err(fault) => (fault.at, format!("{fault}")),
    };
    Err(place_of(&lines, at)
        .unwrap_or(line)
        .fault(format!("the arguments must be one JSON object: {why}")))
}

/// The place of a byte of the joined text.
fn place_of<'a>(lines: &[Cursor<'a>], at: usize) -> Option<Cursor<'a>> {
    let mut left = at;
    for line in lines {
        if left <= line.text.len() {
            let mut place = *line;
            place.advance(left);
            return Some(place);
        }
        left -= line.text.len() + 1;
    }
    lines.last().copied()
}

fn counts(line: &mut Cursor<'_>) -> Result<Counts, ScriptFault> {
    let mut counts = Counts::default();
    let mut next = Some(line.need("a count such as input=120")?);
    while let Some(word) = next {
        let (name, number) = word.text.split_once('=').unwrap_or((word.text, ""));
        let mut place = word;
        let slot = match name {
            "input" => &mut counts.input,
            "cached" => &mut counts.cached,
            "output" => &mut counts.output,
            "reasoning" => &mut counts.reasoning,
            _ => {
                return Err(word.fault(format!(
                    "a count is input=, cached=, output= or reasoning=, not {:?}",
                    word.text
                )));
            }
        };
        place.advance(name.len() + 1);
        *slot = Cursor {
            text: number,
            ..place
        }
        .number(name)?;
        next = line.word();
    }
    Ok(counts)
}

fn fail(line: &mut Cursor<'_>) -> Result<Act, ScriptFault> {
    let word = line.need("the status")?;
    let status = word.number("the status")?;
    let status = u16::try_from(status)
        .ok()
        .filter(|status| (300..600).contains(status));
    let Some(status) = status else {
        return Err(word.fault("the status of a failure lies between 300 and 599"));
    };
    let mut rest = line.rest();
    let mut code = String::new();
    if let Some(after) = rest.text.strip_prefix("code=") {
        let length = after.find(char::is_whitespace).unwrap_or(after.len());
        code = after.get(..length).unwrap_or_default().into();
        rest.advance("code=".len() + length);
        rest.skip_space();
    }
    Ok(Act::Fail {
        status,
        code,
        text: rest.text.into(),
    })
}

fn header(value: &Cursor<'_>) -> Result<String, ScriptFault> {
    if value.text.is_empty() {
        return Err(value.fault("the value of the header is missing"));
    }
    Ok(value.text.into())
}

fn or_else(text: &str, default: &str) -> String {
    if text.is_empty() {
        default.into()
    } else {
        text.into()
    }
}

/// A time: a whole number with us, ms or s.
fn time(word: &Cursor<'_>) -> Result<u64, ScriptFault> {
    let units = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
    let digits = word
        .text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(word.text.len());
    let (number, unit) = word.text.split_at_checked(digits).unwrap_or_default();
    let scale = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale);
    match (number.parse::<u64>().ok(), scale) {
        (Some(number), Some(scale)) => number
            .checked_mul(scale)
            .ok_or_else(|| word.fault("the time is too long")),
        _ => Err(word.fault(format!(
            "a time is a whole number with us, ms or s, as 200ms, not {:?}",
            word.text
        ))),
    }
}

/// What can't be together in one reply.
fn check_order(before: &[Act], act: &Act, word: Cursor<'_>) -> Result<(), ScriptFault> {
    let ends = |act: &Act| matches!(act, Act::Cut | Act::Unreached(_));
    if before.iter().any(ends) {
        return Err(word.fault("nothing can follow cut or unreached in a reply"));
    }
    let is_head = |act: &Act| {
        matches!(
            act,
            Act::Fail { .. } | Act::RetryAfter(_) | Act::Unreached(_)
        )
    };
    let is_body = |act: &Act| !is_head(act) && !matches!(act, Act::Wait(_) | Act::Cut);
    let fails = |act: &Act| matches!(act, Act::Fail { .. } | Act::Unreached(_));
    if fails(act) && before.iter().any(is_body) || is_body(act) && before.iter().any(fails) {
        return Err(word.fault("a reply that fails before its head can't say anything besides"));
    }
    Ok(())
}
