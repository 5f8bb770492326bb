//! Scenarios as text, and back.

use turnwire::{protocol::observer::Dir, vocab::Signal};

use super::{Scenario, Setup, Step, Wire};
use crate::script::{Unreadable, parse_action, print_action};

const HEAD: &str = "turnwire scenario 1";

const SIGNALS: [(&str, Signal); 3] = [
    ("interrupt", Signal::Interrupt),
    ("terminate", Signal::Terminate),
    ("hangup", Signal::Hangup),
];

impl Scenario {
    /// The scenario as a text file. Choices that are the plainest are left out.
    pub fn print(&self) -> String {
        self.print_with(|_| Vec::new())
    }

    /// The same, with comments behind each step: `None` stands for the setup.
    pub fn print_with(&self, comments: impl Fn(Option<usize>) -> Vec<String>) -> String {
        let mut text = format!("{HEAD}\n");
        let plain = Setup::default().words();
        for (chosen, plain) in self.setup.words().into_iter().zip(plain) {
            if chosen != plain {
                text.push_str(&format!("set {} {}\n", chosen.0, chosen.1));
            }
        }
        let comment = |text: &mut String, at| {
            for line in comments(at) {
                for part in line.split('\n') {
                    text.push_str(&format!("# {part}\n"));
                }
            }
        };
        comment(&mut text, None);
        for (at, step) in self.steps.iter().enumerate() {
            text.push_str(&step.print());
            text.push('\n');
            comment(&mut text, Some(at));
        }
        text
    }

    /// Reads a text of [`print`](Scenario::print). Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`Unreadable`] with the first line that can't be read.
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        let mut setup = Setup::default();
        let mut steps = Vec::new();
        let mut head = false;
        // Newlines alone: a text within a line may hold any other separator.
        for (at, line) in text.split('\n').enumerate() {
            let bad = |why: &str| Unreadable {
                line: at + 1,
                why: format!("{line:?} {why}"),
            };
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if !head {
                head = line == HEAD;
                if !head {
                    return Err(bad(&format!("isn't {HEAD:?}")));
                }
            } else if let Some(rest) = line.strip_prefix("set ") {
                let known = rest
                    .split_once(' ')
                    .is_some_and(|(name, word)| setup.choose(name, word));
                if !known {
                    return Err(bad("is no choice"));
                }
            } else if let Some(rest) = line.strip_prefix("= ") {
                let wire = Wire::parse(rest).ok_or_else(|| bad("is no step"))?;
                steps.push(Step::Wire(wire));
            } else {
                let action = parse_action(line).map_err(|error| Unreadable {
                    line: at + 1,
                    ..error
                })?;
                steps.push(Step::Act(action));
            }
        }
        if !head {
            return Err(Unreadable {
                line: 1,
                why: format!("there is no {HEAD:?}"),
            });
        }
        Ok(Scenario { setup, steps })
    }
}

impl Step {
    /// One line, without its newline.
    pub fn print(&self) -> String {
        match self {
            Step::Act(action) => print_action(action),
            Step::Wire(wire) => format!("= {}", wire.print()),
        }
    }
}

fn side(dir: Dir) -> &'static str {
    match dir {
        Dir::Host => "host",
        Dir::Agent => "agent",
    }
}

impl Wire {
    fn print(&self) -> String {
        match self {
            Wire::Bad(dir, pick) => format!("bad {} {pick}", side(*dir)),
            Wire::Cut(dir, bytes) => format!("cut {} {bytes}", side(*dir)),
            Wire::Delay(dir, us) => format!("delay {} {us}", side(*dir)),
            Wire::Stop(dir) => format!("stop {}", side(*dir)),
            Wire::Go(dir) => format!("go {}", side(*dir)),
            Wire::End => "end".to_owned(),
            Wire::Signal(signal) => {
                let word = SIGNALS
                    .iter()
                    .find(|(_, known)| known == signal)
                    .map_or("?", |(word, _)| word);
                format!("signal {word}")
            }
            Wire::Kill => "kill".to_owned(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let dir = |word: &str| match word {
            "host" => Some(Dir::Host),
            "agent" => Some(Dir::Agent),
            _ => None,
        };
        Some(match *words.as_slice() {
            ["bad", side, pick] => Wire::Bad(dir(side)?, pick.parse().ok()?),
            ["cut", side, bytes] => Wire::Cut(dir(side)?, bytes.parse().ok()?),
            ["delay", side, us] => Wire::Delay(dir(side)?, us.parse().ok()?),
            ["stop", side] => Wire::Stop(dir(side)?),
            ["go", side] => Wire::Go(dir(side)?),
            ["end"] => Wire::End,
            ["signal", word] => {
                let known = SIGNALS.into_iter().find(|(known, _)| *known == word);
                Wire::Signal(known?.1)
            }
            ["kill"] => Wire::Kill,
            _ => return None,
        })
    }
}
