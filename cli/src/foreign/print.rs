//! `--print` without the wire: what one turn comes to, and nothing of how.

use std::io::{self, Write};

use serde_json::Value;

/// What is written of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// The answer's text, or why there is none.
    Text,
    /// The record of the result.
    Json,
}

/// Takes the lines of the wire, and writes the result alone.
#[derive(Debug)]
pub struct Printer<W> {
    out: W,
    form: Printed,
    /// What has come of the line that isn't whole.
    line: Vec<u8>,
}

impl<W: Write> Printer<W> {
    /// Writes to this.
    pub fn new(out: W, form: Printed) -> Self {
        Printer {
            out,
            form,
            line: Vec::new(),
        }
    }

    fn pass(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let Ok(record) = serde_json::from_slice::<Value>(&line) else {
            return Ok(());
        };
        if record["type"] != "result" {
            return Ok(());
        }
        match self.form {
            Printed::Json => self.out.write_all(&line)?,
            Printed::Text => self.out.write_all(text(&record).as_bytes())?,
        }
        self.out.write_all(b"\n")
    }
}

/// The answer, or the faults that there were instead.
fn text(record: &Value) -> String {
    if let Some(text) = record["result"].as_str() {
        return text.to_owned();
    }
    let errors = record["errors"].as_array().into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    match (errors.as_slice(), record["subtype"].as_str()) {
        ([], Some(subtype)) => format!("Error: {subtype}"),
        ([], None) => "Error".to_owned(),
        (errors, _) => format!("Error: {}", errors.join("\n")),
    }
}

impl<W: Write> Write for Printer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.line.extend_from_slice(end);
                    self.pass()?;
                }
                None => self.line.extend_from_slice(piece),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(form: Printed, lines: &str, cut: usize) -> String {
        let mut printer = Printer::new(Vec::new(), form);
        for piece in lines.as_bytes().chunks(cut) {
            printer.write_all(piece).unwrap();
        }
        String::from_utf8(printer.out).unwrap()
    }

    const LINES: &str = "{\"type\":\"system\",\"subtype\":\"init\"}\n{\"type\":\"assistant\",\"result\":\"no\"}\n\
                         {\"type\":\"result\",\"subtype\":\"success\",\"result\":\"Hello.\\nYou.\"}\n{\"type\":\"x\"}\n";

    #[test]
    fn only_the_result_is_written_however_the_lines_are_cut() {
        for cut in [1, 7, 1000] {
            assert_eq!(printed(Printed::Text, LINES, cut), "Hello.\nYou.\n");
            let json =
                "{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"Hello.\\nYou.\"}\n";
            assert_eq!(printed(Printed::Json, LINES, cut), json);
        }
    }

    #[test]
    fn a_turn_that_failed_says_why() {
        for (line, text) in [
            (
                "{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"errors\":[\"a\",\"b\"]}\n",
                "Error: a\nb\n",
            ),
            (
                "{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"errors\":[]}\n",
                "Error: error_max_turns\n",
            ),
        ] {
            assert_eq!(printed(Printed::Text, line, 9), text);
        }
    }
}
