//! What happens, for a person: the answer as it comes, everything else around it in a few quiet lines.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use turnwire::protocol::{ClientOutput, Protocol};
use turnwire::vocab::*;
use turnwire_tokio::{AgentEnd, Driven, Screen};

use super::words;
use crate::safe;

const PLAIN: Style = Style::new();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const TOOL: Style = AnsiColor::Cyan.on_default();

/// Lines of a tool's output that are shown, and characters of a line that stands for more.
const OUTPUT_LINES: usize = 6;
const LINE_CHARS: usize = 160;

/// The screen of a person.
#[derive(Debug)]
pub struct Human {
    /// The agent's program, and the command that drives it once more.
    program: String,
    again: String,
    /// The agent's project, once it has said so.
    project: Option<Text>,
    /// How calls are approved, as it was shown last.
    approvals: Option<ApprovalMode>,
    /// What is being streamed; its line isn't ended yet.
    open: Option<Kind>,
    /// Whether the last byte was a newline.
    fresh: bool,
    /// Text of the open message was shown.
    streamed: bool,
    /// Questions that were answered here, or that nobody could be asked.
    answered: bool,
    /// The last failure that was shown: it is said of a prompt, and again of the session.
    failure: Option<Text>,
}

impl Human {
    pub fn new(program: String, again: String) -> Self {
        Human {
            program,
            again,
            project: None,
            approvals: None,
            open: None,
            fresh: true,
            streamed: false,
            answered: false,
            failure: None,
        }
    }

    /// The command that approves a file. Its path begins at the agent's project: that need not be the folder here.
    fn approve(&self, path: &str) -> String {
        let mut program = PathBuf::from(&self.program);
        let mut line = String::new();
        if let Some(project) = self.project.as_deref().map(Path::new)
            && Path::new(path).is_relative()
            && !is_here(project)
        {
            line = format!("cd {} && ", super::quoted(project.as_os_str()));
            if program.components().count() > 1 {
                program = std::path::absolute(&program).unwrap_or(program);
            }
        }
        let program = super::quoted(program.as_os_str());
        let path = super::quoted(path.as_ref());
        line + &format!("{program} --approve {path}")
    }

    /// Streamed text.
    fn stream(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        let style = match kind {
            Kind::Text => PLAIN,
            Kind::Thinking => DIM,
            Kind::Signature | Kind::Input | Kind::Opaque => return,
        };
        if self.open != Some(kind) {
            self.end_stream(out);
            self.open = Some(kind);
        }
        let text = safe::lines(text);
        // Writing to memory can't fail.
        let _ = write!(out, "{style}{text}{style:#}");
        self.fresh = text.ends_with('\n');
        self.streamed |= kind == Kind::Text;
    }

    fn end_stream(&mut self, out: &mut Vec<u8>) {
        self.open = None;
        if !std::mem::replace(&mut self.fresh, true) {
            out.push(b'\n');
        }
    }

    /// A line of its own, or several.
    fn say(&mut self, style: Style, text: &str, out: &mut Vec<u8>) {
        self.end_stream(out);
        for line in text.lines() {
            let _ = writeln!(out, "{style}{}{style:#}", safe::line(line));
        }
    }

    fn event(&mut self, what: &What, out: &mut Vec<u8>) {
        match what {
            What::Opened(info) => {
                let more = if info.continued { ", continued" } else { "" };
                let text = format!("session {} in {}{more}", info.session, info.cwd);
                self.say(DIM, &text, out);
                self.approvals = Some(info.settings.approvals.clone());
                self.project = Some(info.root.as_ref().unwrap_or(&info.cwd).clone());
            }
            What::Changed(info) => {
                let approvals = Some(info.settings.approvals.clone());
                if approvals != self.approvals {
                    let text = format!("approvals: {}", words::mode(&info.settings.approvals));
                    self.say(DIM, &text, out);
                    self.approvals = approvals;
                }
            }
            // What a command of the prompt's printed.
            What::Message(message) if message.role == Role::Note && message.prompt.is_some() => {
                self.say(PLAIN, &message.text(), out);
            }
            What::Replied {
                reply: Err(refusal),
                ..
            } => {
                if let Refusal::Failed(failure) = refusal {
                    self.failure = Some(failure.text.clone());
                }
                let (why, text) = words::refusal(refusal);
                let text = text.map(|text| format!(": {text}")).unwrap_or_default();
                self.say(BAD, &format!("refused ({why}){text}"), out);
            }
            What::RetryScheduled {
                attempt, max, why, ..
            } => {
                let text = format!("trying again ({attempt} of {max}): {}", why.text);
                self.say(WARN, &text, out);
            }
            What::MessageStarted { .. } => self.streamed = false,
            What::Delta { kind, text, .. } => self.stream(*kind, text, out),
            What::MessageEnded { message, kept, .. } => {
                let text = message.text();
                if !self.streamed && *kept && !text.is_empty() {
                    self.stream(Kind::Text, &text, out);
                }
                self.end_stream(out);
                if self.streamed && !kept {
                    self.say(WARN, "(the text above is void)", out);
                }
            }
            What::ToolStarted { name, input, .. } => {
                let input = input.as_ref().map_or("", ToolInput::as_str);
                self.end_stream(out);
                let (name, input) = (safe::line(name), cut(input));
                let _ = writeln!(out, "{TOOL}● {name}{TOOL:#} {DIM}{input}{DIM:#}");
            }
            What::ToolEnded {
                outcome, content, ..
            } => self.tool_ended(outcome, &words::text(content), out),
            What::ToolSkipped { .. } => self.say(DIM, "  (a call that never ran)", out),
            What::FileChanged {
                path,
                diff,
                added,
                removed,
                ..
            } => {
                self.say(BOLD, &format!("  {path} +{added} -{removed}"), out);
                self.diff(diff, out);
            }
            What::Asked { .. } => self.answered = false,
            What::AskClosed { how, .. } => {
                if !std::mem::take(&mut self.answered) {
                    let text = format!("  the question is closed: {}", words::ask_close(how));
                    self.say(WARN, &text.replace('_', " "), out);
                }
            }
            What::TurnEnded { end, report, .. } => self.turn_ended(end, report, out),
            What::CompactionStarted { .. } => self.say(DIM, "the history is summarised", out),
            What::CompactionEnded { result } => self.compacted(result, out),
            What::Job(_, record) if record.state.is_over() => {
                self.say(DIM, &format!("job {} is over", record.id), out);
            }
            What::RunStarted { label, .. } => self.say(DIM, &format!("▸ {label}"), out),
            What::RunEnded { status, detail, .. } => {
                let text = format!("◂ {}: {detail}", words::run(*status));
                self.say(DIM, &text, out);
            }
            What::HookFailed { hook, detail, .. } => {
                self.say(WARN, &format!("the hook {hook} failed: {detail}"), out);
            }
            What::CompletionRefused { hook, reason, .. } => {
                let text = format!("the hook {hook} refuses the end: {reason}");
                self.say(WARN, &text, out);
            }
            What::Notice { level, text, .. } => {
                let style = match level {
                    Level::Debug | Level::Progress | Level::Info => DIM,
                    Level::Warning => WARN,
                    Level::Error => BAD,
                };
                self.say(style, text, out);
            }
            What::Closed {
                why: CloseWhy::Fault(failure),
            } if self.failure.as_ref() != Some(&failure.text) => {
                self.say(BAD, &failure.text, out);
            }
            What::Closed { .. }
            | What::Replied { reply: Ok(_), .. }
            | What::Queued { .. }
            | What::PromptApplied { .. }
            | What::PromptEnded { .. }
            | What::TurnStarted { .. }
            | What::Settled
            | What::StepStarted { .. }
            | What::StepEnded { .. }
            | What::Context { .. }
            | What::RequestStarted { .. }
            | What::RequestEnded { .. }
            | What::RetryEnded { .. }
            | What::BlockStarted { .. }
            | What::BlockEnded { .. }
            | What::Message(_)
            | What::Decided { .. }
            | What::ToolProgress { .. }
            | What::Checkpoint { .. }
            | What::Restored { .. }
            | What::Goal(_)
            | What::Job(..)
            | What::RunProgress { .. } => {}
        }
    }

    fn tool_ended(&mut self, outcome: &ToolOutcome, text: &str, out: &mut Vec<u8>) {
        let (style, mark) = if outcome.is_error() {
            (BAD, '✗')
        } else {
            (GOOD, '✓')
        };
        self.end_stream(out);
        let word = words::outcome(outcome).replace('_', " ");
        let _ = writeln!(out, "  {style}{mark} {word}{style:#}");
        let mut lines = text.lines();
        for line in lines.by_ref().take(OUTPUT_LINES) {
            let _ = writeln!(out, "    {DIM}{}{DIM:#}", cut(line));
        }
        let more = lines.count();
        if more > 0 {
            let _ = writeln!(out, "    {DIM}… {more} more lines{DIM:#}");
        }
    }

    fn diff(&mut self, diff: &str, out: &mut Vec<u8>) {
        for line in diff.lines() {
            let style = match line.as_bytes().first() {
                Some(b'+') => GOOD,
                Some(b'-') => BAD,
                Some(b'@') => TOOL,
                Some(_) | None => DIM,
            };
            let _ = writeln!(out, "    {style}{}{style:#}", safe::line(line));
        }
    }

    fn turn_ended(&mut self, end: &End, report: &TurnReport, out: &mut Vec<u8>) {
        let seconds = report.wall_us / 100_000;
        let time = format!("{}.{} s", seconds / 10, seconds % 10);
        self.failure = end.failure().map(|failure| failure.text.clone());
        let word = words::end(end).replace('_', " ");
        let text = match words::end_text(end) {
            Some(text) => format!("{word}: {text} ({time})"),
            None => format!("{word} ({time})"),
        };
        let style = if end.is_finished() { DIM } else { WARN };
        self.say(style, &text, out);
    }

    fn compacted(&mut self, result: &Result<Compacted, CompactionFault>, out: &mut Vec<u8>) {
        let text = match result {
            Ok(Compacted {
                tokens_before: Some(before),
                tokens_after: Some(after),
                ..
            }) => format!("summarised: {before} tokens, now {after}"),
            Ok(_) => "summarised".to_owned(),
            Err(CompactionFault::Cancelled) => "the summary was cancelled".to_owned(),
            Err(CompactionFault::Nothing(text)) => format!("nothing to summarise: {text}"),
            Err(CompactionFault::Failed(failure)) => format!("no summary: {}", failure.text),
        };
        self.say(DIM, &text, out);
    }

    /// All that a person needs to judge by.
    fn question(&mut self, ask: &PermissionAsk, out: &mut Vec<u8>) {
        self.say(
            BOLD,
            &format!("{} wants to run: {}", ask.tool, ask.summary),
            out,
        );
        if !ask.detail.is_empty() && ask.detail != ask.summary {
            self.say(PLAIN, &indented(&ask.detail), out);
        }
        if let Some(body) = &ask.body {
            self.say(DIM, &indented(body), out);
        }
        match &ask.reason {
            AskReason::Gate => {}
            AskReason::UnapprovedSource { path, sha } => {
                self.say(
                    WARN,
                    "  nobody has approved these exact bytes of code yet:",
                    out,
                );
                self.say(PLAIN, &format!("  source: {path}\n  sha256: {sha}…"), out);
            }
            AskReason::Network { host } => self.say(PLAIN, &format!("  network: {host}"), out),
            AskReason::Other(text) => self.say(PLAIN, &format!("  because {text}"), out),
        }
        // A grant of credentials: a line of its own, never cut (OM-16).
        if !ask.env.is_empty() {
            self.say(WARN, &format!("  env: {}", ask.env.join(" ")), out);
        }
    }
}

impl<P: Protocol> Screen<P> for Human {
    fn show(&mut self, output: &ClientOutput<'_, P>, out: &mut Vec<u8>) {
        match output {
            ClientOutput::Event(event) => self.event(&event.what, out),
            ClientOutput::Delta(delta) => self.stream(delta.kind, delta.text, out),
            ClientOutput::Extra(extra) => {
                if let Some((level, text)) = P::soften(extra) {
                    let style = if level >= Level::Warning { WARN } else { DIM };
                    self.say(style, &text, out);
                }
            }
            ClientOutput::Finding(finding) => {
                let place = finding
                    .place
                    .map(|place| format!(" in line {}", place.line))
                    .unwrap_or_default();
                let text = format!("the agent breaks its contract{place}: {}", finding.text);
                self.say(WARN, &text, out);
            }
            // No Client has such requests.
            ClientOutput::Ask { .. }
            | ClientOutput::CloseInput
            | ClientOutput::Signal(_)
            | ClientOutput::Closed => {}
        }
    }

    fn ask(&mut self, ask: &Ask, out: &mut Vec<u8>) {
        match ask {
            Ask::Permission(ask) => {
                self.question(ask, out);
                let choice = if needs_the_word(ask) {
                    "Type yes to run it, anything else to decline: "
                } else {
                    "Run it? [y/n] "
                };
                let _ = write!(out, "{BOLD}{choice}{BOLD:#}");
            }
            Ask::Choice(ask) => {
                self.say(BOLD, &ask.title, out);
                let _ = write!(out, "{BOLD}> {BOLD:#}");
            }
            Ask::Hook(_) | Ask::Tool { .. } | Ask::Uri { .. } => {
                self.say(
                    WARN,
                    "the agent asks for something that is not offered; Enter goes on",
                    out,
                );
            }
        }
        // The person's Enter ends the line.
        self.fresh = true;
        self.open = None;
    }

    fn read(&mut self, ask: &Ask, line: &str) -> Option<Result<Reply, ReplyFault>> {
        let line = line.trim();
        let reply = match ask {
            Ask::Permission(ask) if needs_the_word(ask) => Ok(decision(line == "yes")),
            Ask::Permission(_) => match &*line.to_ascii_lowercase() {
                "y" | "yes" => Ok(decision(true)),
                "n" | "no" => Ok(decision(false)),
                _ => return None,
            },
            Ask::Choice(_) => Ok(Reply::Choice(Some(line.into()))),
            Ask::Hook(_) | Ask::Tool { .. } | Ask::Uri { .. } => Err(ReplyFault::HostGone),
        };
        self.answered = true;
        Some(reply)
    }

    fn alone(&mut self, ask: &Ask, out: &mut Vec<u8>) -> Result<Reply, ReplyFault> {
        self.answered = true;
        let Ask::Permission(ask) = ask else {
            return Err(ReplyFault::HostGone);
        };
        self.question(ask, out);
        match &ask.reason {
            AskReason::UnapprovedSource { path, .. } => {
                let text = "  declined: there is no terminal to ask on. To approve it, run:";
                self.say(WARN, text, out);
                self.say(PLAIN, &format!("    {}", self.approve(path)), out);
            }
            AskReason::Gate | AskReason::Network { .. } | AskReason::Other(_) => {
                let text = "  declined: there is no terminal to ask on. To be asked, run there:";
                self.say(WARN, text, out);
                let again = format!("    {}", self.again);
                self.say(PLAIN, &again, out);
            }
        }
        Err(ReplyFault::HostGone)
    }

    fn ended(&mut self, driven: &Driven, out: &mut Vec<u8>) {
        let text = match driven.end {
            AgentEnd::Code(0) if !driven.unfinished => return self.end_stream(out),
            AgentEnd::Code(code) => format!("the agent ended with exit code {code}"),
            AgentEnd::Signal(_) if driven.killed => {
                "the agent didn't end, and was killed".to_owned()
            }
            AgentEnd::Signal(signal) => format!("the agent was ended by signal {signal}"),
        };
        self.say(WARN, &text, out);
    }
}

fn is_here(folder: &Path) -> bool {
    let (there, here) = (folder.canonicalize(), Path::new(".").canonicalize());
    matches!((there, here), (Ok(there), Ok(here)) if there == here)
}

fn decision(allow: bool) -> Reply {
    if allow {
        Reply::Allow {
            input: None,
            updates: Vec::new(),
        }
    } else {
        Reply::Deny {
            message: None,
            interrupt: false,
        }
    }
}

/// Code that nobody has seen runs with all rights: a slip of the finger must not be enough.
fn needs_the_word(ask: &PermissionAsk) -> bool {
    matches!(ask.reason, AskReason::UnapprovedSource { .. })
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}\n"))
        .collect::<String>()
}

/// The start of a line.
fn cut(line: &str) -> String {
    let line = safe::line(line);
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.into_owned(),
    }
}
