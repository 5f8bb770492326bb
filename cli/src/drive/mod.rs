//! `turnwire drive` and `turnwire demo`: starts an agent and talks to it, for a person or for a program.

mod args;
mod human;
mod json;
mod offers;
mod words;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;

use turnwire::protocol::Protocol;
use turnwire::vocab::Text;
use turnwire_tokio::{AgentEnd, Driven, During, Person, Screen, Served as Offered, Task, drive};

use crate::protocols::{Hosting, Spoken, Work};
use crate::say::{self, Stop};

pub use args::{DemoArgs, DriveArgs};
use human::Human;
use json::Json;

/// What the demo asks.
const DEMO_PROMPT: &str = "What is in this folder?";

/// Drives an agent through its prompts; the result is the exit code.
///
/// # Errors
/// [`Stop`] when there is no prompt, the agent can't be started, or the driver fails.
pub fn run(args: &DriveArgs) -> Result<u8, Stop> {
    let say = |how: During| move |text: &String| (how, Text::from(text.as_str()));
    let steers = args.steer.iter().map(say(During::Steer));
    let follow_ups = args.follow_up.iter().map(say(During::FollowUp));
    let offered = match &args.offer {
        Some(path) => {
            offers::read(path).map_err(|error| Stop::Settings(format!("drive: {error}")))?
        }
        None => Offered::default(),
    };
    let work = Driving {
        command: &args.command,
        prompts: prompts(args)?,
        during: steers.chain(follow_ups).collect(),
        offered,
        json: args.json,
        again: rerun(args),
        hosting: Hosting {
            name: args.protocol,
            initialize: args.initialize.as_deref(),
        },
    };
    args.protocol.speak(work)
}

/// Drives this program itself, with the scripted model; the result is the exit code.
///
/// # Errors
/// As for [`run`].
pub fn demo(args: &DemoArgs) -> Result<u8, Stop> {
    let program = std::env::current_exe()
        .map_err(|error| Stop::Failed(format!("this program can't find itself: {error}")))?;
    let mut command = vec![program.into_os_string()];
    let serve = [
        "serve",
        "--protocol",
        args.protocol.word(),
        "--api",
        "scripted",
    ];
    command.extend(serve.map(OsString::from));
    let prompts = if args.prompts.is_empty() {
        vec![DEMO_PROMPT.into()]
    } else {
        args.prompts
            .iter()
            .map(|text| text.as_str().into())
            .collect()
    };
    if !args.json {
        let serve = serve.join(" ");
        say::line(format!(
            "drives itself, with a scripted model: turnwire {serve}"
        ));
    }
    args.protocol.speak(Driving {
        command: &command,
        prompts,
        during: Vec::new(),
        offered: Offered::default(),
        json: args.json,
        again: format!("turnwire demo {}", args.protocol.word()),
        hosting: Hosting {
            name: args.protocol,
            initialize: None,
        },
    })
}

/// Driving an agent, in the protocol that was named.
struct Driving<'a> {
    command: &'a [OsString],
    prompts: Vec<Text>,
    during: Vec<(During, Text)>,
    offered: Offered,
    json: bool,
    /// The command that does the same once more.
    again: String,
    hosting: Hosting<'a>,
}

impl Work for Driving<'_> {
    type Done = Result<u8, Stop>;

    fn run<P: Spoken>(self) -> Self::Done {
        let Some((program, args)) = self.command.split_first() else {
            return Err(Stop::Settings(
                "drive: name the agent's command after --".to_owned(),
            ));
        };
        let mut process = std::process::Command::new(program);
        process.args(args);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Stop::Failed(format!("no runtime: {error}")))?;
        let shown = program.to_string_lossy().into_owned();
        let config = P::client(&self.hosting)?;
        let task = self.task::<P>(shown);
        let driven = runtime.block_on(drive(config, process, task));
        runtime.shutdown_background();
        match driven {
            Ok(driven) => Ok(code(&driven)),
            Err(turnwire_tokio::Error::Setup(error)) => Err(Stop::Settings(format!(
                "{}: {error}",
                program.to_string_lossy()
            ))),
            Err(error) => Err(Stop::Failed(error.to_string())),
        }
    }
}

impl Driving<'_> {
    /// What to drive the agent with, and where it is shown.
    fn task<P: Protocol>(self, program: String) -> Task<P> {
        let (screen, out): (Box<dyn Screen<P>>, Box<dyn Write + Send>) = if self.json {
            (Box::new(Json::default()), Box::new(io::stdout()))
        } else {
            let screen = Human::new(program, self.again);
            (Box::new(screen), Box::new(anstream::stdout()))
        };
        Task {
            prompts: self.prompts,
            during: self.during,
            served: self.offered,
            screen,
            out,
            person: if self.json { None } else { person() },
            signals: true,
        }
    }
}

/// The agent's exit code is this program's. One that left work undone, or failed, and says that all is well doesn't get
/// through.
fn code(driven: &Driven) -> u8 {
    let code = match driven.end {
        AgentEnd::Code(code) => u8::try_from(code & 0xff).unwrap_or(1),
        AgentEnd::Signal(signal) => u8::try_from(signal.saturating_add(128)).unwrap_or(1),
    };
    if code == 0 && (driven.unfinished || driven.failed) {
        1
    } else {
        code
    }
}

/// The prompts of the command line, of a file, or of stdin.
fn prompts(args: &DriveArgs) -> Result<Vec<Text>, Stop> {
    let stdin = || -> Result<Text, Stop> {
        let mut text = String::new();
        match io::stdin().lock().read_to_string(&mut text) {
            Ok(_) => Ok(trimmed(&text)),
            Err(error) => Err(Stop::Settings(format!("the prompt on stdin: {error}"))),
        }
    };
    if let Some(path) = &args.prompt_file {
        if path == Path::new("-") {
            return Ok(vec![stdin()?]);
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| Stop::Settings(format!("{}: {error}", path.display())))?;
        return Ok(vec![trimmed(&text)]);
    }
    if args.prompts.is_empty() {
        if io::stdin().is_terminal() {
            return Err(Stop::Settings(
                "drive: give a prompt as an argument, in --prompt-file, or on stdin".to_owned(),
            ));
        }
        return Ok(vec![stdin()?]);
    }
    let each = args.prompts.iter();
    each.map(|text| {
        if text == "-" {
            stdin()
        } else {
            Ok(text.as_str().into())
        }
    })
    .collect()
}

/// Without the newlines that a file ends with.
fn trimmed(text: &str) -> Text {
    text.trim_end_matches(['\n', '\r']).into()
}

/// The person, if there is a terminal to read from and to ask on.
fn person() -> Option<Person> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let mut terminal: Box<dyn BufRead + Send> = if io::stdin().is_terminal() {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open("/dev/tty").ok()?))
    };
    Some(Box::new(move || {
        let mut line = String::new();
        match terminal.read_line(&mut line) {
            Ok(1..) => Some(line),
            Ok(0) | Err(_) => None,
        }
    }))
}

/// The command that does the same once more.
fn rerun(args: &DriveArgs) -> String {
    let mut words: Vec<String> = vec![
        "turnwire".into(),
        "drive".into(),
        args.protocol.word().into(),
    ];
    if let Some(path) = &args.prompt_file {
        words.push("--prompt-file".into());
        words.push(quoted(path.as_os_str()));
    }
    for (flag, texts) in [("--steer", &args.steer), ("--follow-up", &args.follow_up)] {
        for text in texts {
            words.extend([flag.into(), quoted(OsStr::new(text))]);
        }
    }
    if let Some(path) = &args.offer {
        words.extend(["--offer".into(), quoted(path.as_os_str())]);
    }
    if let Some(members) = &args.initialize {
        words.extend(["--initialize".into(), quoted(OsStr::new(members))]);
    }
    words.extend(args.prompts.iter().map(|text| quoted(OsStr::new(text))));
    words.push("--".into());
    words.extend(args.command.iter().map(|word| quoted(word)));
    words.join(" ")
}

/// A word as a POSIX shell reads it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_./=:,@%+".contains(char);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, want) in [
            ("a-b/c.d", "a-b/c.d"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", "'it'\\''s'"),
            ("$(x)", "'$(x)'"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), want);
        }
    }

    #[test]
    fn the_agents_code_is_ours_unless_it_hides_that_work_is_undone_or_failed() {
        let driven = |end, unfinished, failed| Driven {
            end,
            unfinished,
            failed,
            killed: false,
        };
        assert_eq!(code(&driven(AgentEnd::Code(0), false, true)), 1);
        for (end, unfinished, want) in [
            (AgentEnd::Code(0), false, 0),
            (AgentEnd::Code(0), true, 1),
            (AgentEnd::Code(7), true, 7),
            (AgentEnd::Code(7), false, 7),
            (AgentEnd::Signal(9), true, 137),
        ] {
            assert_eq!(code(&driven(end, unfinished, false)), want);
        }
    }
}
