//! Shell commands of the person's own: they run beside everything else, and each is replied to at its end (S-07, S-57).
//!
//! What one gave enters the history as one message, at the next boundary or while idle, so never between a call and
//! its result (S-31). A cancel tells it to stop and its reply waits for that; a close doesn't wait.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec, vec::Vec};

use super::{Session, args, tools::keep_within};
use crate::json;
use crate::vocab::{
    Answer, Block, CommandId, Effect, Message, MessageId, Origin, Progress, RawJson, Refusal, Role,
    Show, Text, ToolOutcome, ToolUpdate, What,
};

/// A command that runs.
pub(super) struct Shell {
    /// The command line.
    pub line: Text,
    /// Output so far, for a close that cuts it short.
    so_far: Vec<Block>,
    /// It was told to stop, and its end is still to come.
    stopping: bool,
}

/// How a command ended.
struct Ended {
    output: Text,
    exit: Option<i32>,
    cancelled: bool,
    timed_out: bool,
    truncated: bool,
    show: Option<Box<Show>>,
}

impl Session {
    /// `Shell`: it runs beside the turn, up to a number of them at once.
    pub(super) fn shell(&mut self, command: CommandId, line: Text) {
        let limits = &self.config.limits;
        let refusal = if !self.closing.is_open() {
            Some(Refusal::Closing)
        } else if line.len() > limits.prompt_bytes {
            Some(Refusal::TooLarge)
        } else if self.shells.len() >= limits.shells {
            Some(Refusal::Busy)
        } else if !self.has_room() {
            Some(Refusal::Full)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return self.refuse(command, refusal);
        }
        self.effects.shells.issue(command.0);
        self.shells.insert(
            command,
            Shell {
                line,
                so_far: Vec::new(),
                stopping: false,
            },
        );
        self.out.effect(Effect::RunShell(command));
    }

    /// News of a live command.
    pub(super) fn shell_update(&mut self, command: CommandId, update: ToolUpdate) {
        match update {
            ToolUpdate::Progress(progress) => self.shell_progress(command, progress),
            ToolUpdate::Done {
                outcome,
                content,
                show,
            } => self.shell_done(command, &outcome, content, show),
            // Misuse, found before it comes here.
            ToolUpdate::Snapshotted { .. }
            | ToolUpdate::NeedsNetwork { .. }
            | ToolUpdate::FileChanged { .. }
            | ToolUpdate::Detached(_) => {}
        }
    }

    fn shell_progress(&mut self, command: CommandId, progress: Progress) {
        let limits = self.output_limits();
        let Some(shell) = self.shells.get_mut(&command) else {
            return;
        };
        match progress {
            Progress::Append(more) => shell.so_far.extend(more),
            Progress::Replace(all) => shell.so_far = all,
            Progress::Alive => return,
        }
        keep_within(&mut shell.so_far, limits);
    }

    fn shell_done(
        &mut self,
        command: CommandId,
        outcome: &ToolOutcome,
        mut content: Vec<Block>,
        show: Option<Box<Show>>,
    ) {
        let cut = keep_within(&mut content, self.output_limits());
        let cancelled = *outcome == ToolOutcome::Cancelled;
        let timed_out = *outcome == ToolOutcome::TimedOut;
        // The code of a command that was killed says nothing.
        let exit = show.as_ref().filter(|_| !cancelled && !timed_out);
        let ended = Ended {
            output: args::text_of(&content),
            exit: exit.and_then(|show| show.exit_code()),
            cancelled,
            timed_out,
            truncated: cut || show.as_ref().is_some_and(|show| show.truncated),
            show,
        };
        self.shell_over(command, ended);
    }

    /// The command's reply; what it gave waits for its place in the history.
    fn shell_over(&mut self, command: CommandId, ended: Ended) {
        let Some(shell) = self.shells.remove(&command) else {
            return;
        };
        let message = self.shell_message(&shell.line, &ended);
        self.shell_news.push(message);
        let Ended {
            output,
            exit,
            cancelled,
            timed_out,
            truncated,
            show,
        } = ended;
        self.answer(
            command,
            Answer::Shell {
                output,
                exit,
                cancelled,
                timed_out,
                truncated,
                show,
            },
        );
    }

    /// The commands that run and weren't told to stop.
    pub(super) fn running_shells(&self) -> Vec<CommandId> {
        let running = self.shells.iter().filter(|(_, shell)| !shell.stopping);
        running.map(|(command, _)| *command).collect()
    }

    /// Tells commands to stop; each is replied to when it did.
    pub(super) fn stop_shells(&mut self) {
        for command in self.running_shells() {
            if let Some(shell) = self.shells.get_mut(&command) {
                shell.stopping = true;
            }
            self.out.effect(Effect::StopShell(command));
        }
    }

    /// Ends all commands at once, with the output so far: a close waits for none.
    pub(super) fn end_shells(&mut self) {
        self.stop_shells();
        while let Some((command, shell)) = self.shells.first_key_value() {
            let (command, content) = (*command, shell.so_far.clone());
            self.effects.shells.stop(command.0);
            self.shell_done(command, &ToolOutcome::Cancelled, content, None);
        }
    }

    /// What commands gave enters the history: at a boundary, or while idle.
    pub(super) fn place_shells(&mut self, in_turn: bool) {
        for message in core::mem::take(&mut self.shell_news) {
            self.say(What::Message(message.clone()));
            if in_turn {
                self.remember(message);
            } else {
                self.remember_unsaved(message);
            }
        }
    }

    /// See [`Role::Shell`].
    fn shell_message(&mut self, line: &str, ended: &Ended) -> Arc<Message> {
        let mut content = vec![Arc::new(Block::Text(format!("$ {line}\n").into()))];
        if !ended.output.is_empty() {
            content.push(Arc::new(Block::Text(ended.output.clone())));
        }
        let how = match ended.exit {
            _ if ended.cancelled => Some("\n[cancelled]".into()),
            _ if ended.timed_out => Some("\n[timed out]".into()),
            Some(0) | None => None,
            Some(code) => Some(Text::from(format!("\n[exit code {code}]"))),
        };
        content.extend(how.map(|how| Arc::new(Block::Text(how))));
        Arc::new(Message {
            id: MessageId(self.ids.message()),
            role: Role::Shell,
            content,
            origin: Origin::Host,
            prompt: None,
            about: None,
            at_ms: self.now.unix_ms,
            details: Some(details(line, ended)),
        })
    }
}

fn details(line: &str, ended: &Ended) -> RawJson {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"command\":");
    json::write_str(&mut out, line);
    if let Some(exit) = ended.exit {
        out.extend_from_slice(b",\"exit_code\":");
        json::write_i64(&mut out, i64::from(exit));
    }
    let flags = [
        ("cancelled", ended.cancelled),
        ("timed_out", ended.timed_out),
        ("truncated", ended.truncated),
        ("has_output", !ended.output.is_empty()),
    ];
    for (name, value) in flags {
        out.extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
    }
    out.push(b'}');
    RawJson(String::from_utf8_lossy(&out).as_ref().into())
}
