//! Commands that only this protocol has: what a Server asks its embedder, a Client asks its agent.

use alloc::vec::Vec;

use super::asks::quoted;
use super::books::{Sent, Wire};
use super::{ClientFace, Closing, Early, Out};
use crate::json::{Raw, Str, write_u64};
use crate::protocol::Client;
use crate::protocol::omp::wire::{
    Any, Btw, BtwCancel, Command as Line, ExportHtml, GetAvailableModels, GetBtwHistory,
    GetLoginProviders, GetLogoutAccounts, GetSubagentMessages, GetTree, Handoff, HostLine,
    LiveMute, LiveStart, LiveStop, Login, Logout, PredictWord, PredictWordFeedback,
    RefreshCommands, SetCacheWarming, SetFastMode, SetModel, SetSlowMode, SetTodos,
};
use crate::protocol::omp::{Omp, OmpAsk};
use crate::vocab::*;

impl Client<Omp> {
    /// Asks the agent what a Server of this protocol asks its embedder. The answer is a `Replied` of this command:
    /// [`Answer::Raw`] with the payload that [`OmpAsk`] describes, [`Answer::Done`] where the response has none, or why
    /// it failed. Like a command it waits for the agent's start, and for a change of session.
    ///
    /// [`OmpAsk::Ui`] isn't a command, and is [`Refusal::Unsupported`].
    pub fn request(&mut self, id: CommandId, ask: &OmpAsk, now: Now) {
        self.tell(now, |face, out| face.ask(id, ask, out));
    }

    /// Writes any command of the contract, or of a newer one. The answer is a `Replied` of this command:
    /// [`Answer::Raw`] with the response's payload, [`Answer::Done`] if it has none, or why it failed. An unknown
    /// command gets the id that is told here.
    ///
    /// It is for what the vocabulary has no word for: the Client doesn't look into what is written, and a prompt sent
    /// this way is nobody's.
    pub fn send(&mut self, id: CommandId, command: &Line<'_>, now: Now) {
        self.tell(now, |face, out| face.raw(id, command, None, out));
    }
}

impl ClientFace {
    /// A command of this protocol's own. `member`: what of the payload is the answer, if not all of it.
    fn raw(
        &mut self,
        id: CommandId,
        command: &Line<'_>,
        member: Option<&'static str>,
        out: &mut Out,
    ) {
        let mut bytes = Vec::new();
        let mut buffer = Vec::new();
        let wire = Any(Some(quoted(&mut buffer, &Wire::of(id).text())));
        if let Line::Unknown(line) = command {
            own_id(*line, &Wire::of(id).text(), &mut bytes);
        } else {
            HostLine::Command {
                id: wire,
                command: command.clone(),
            }
            .encode(&mut bytes);
        }
        let name = command.tag().unwrap_or_default();
        if self.is_open() || self.closing != Closing::Open {
            self.release_ending(out);
            return self.write_raw(id, name, member, &bytes, out);
        }
        self.put_early(Early::Line(id, name, member, bytes), out);
    }

    /// Writes a line that was made before.
    pub(super) fn write_raw(
        &mut self,
        id: CommandId,
        name: &'static str,
        member: Option<&'static str>,
        bytes: &[u8],
        out: &mut Out,
    ) {
        if self.is_input_closed() {
            return super::commands::refuse(id, Refusal::Closing, out);
        }
        if self.books.is_full() {
            return super::commands::refuse(id, Refusal::Full, out);
        }
        self.books.expect(Wire::of(id), name, Sent::Raw(id, member));
        out.line(|line| line.extend_from_slice(bytes));
    }

    fn ask(&mut self, id: CommandId, ask: &OmpAsk, out: &mut Out) {
        let mut buffers = [Vec::new(), Vec::new()];
        let [first, second] = &mut buffers;
        let mut member = None;
        let line: Line<'_> = match ask {
            OmpAsk::FindModel { provider, model } => SetModel {
                provider: Any(Some(quoted(first, provider))),
                model_id: Any(Some(quoted(second, model))),
                ..SetModel::default()
            }
            .into(),
            OmpAsk::Models => {
                member = Some("models");
                GetAvailableModels::default().into()
            }
            OmpAsk::Tree => GetTree::default().into(),
            OmpAsk::SubagentMessages {
                subagent,
                file,
                from_byte,
            } => GetSubagentMessages {
                subagent_id: subagent.as_deref().map(Str::from),
                session_file: file.as_deref().map(Str::from),
                from_byte: Any(Some(number(first, *from_byte))),
                ..GetSubagentMessages::default()
            }
            .into(),
            OmpAsk::Handoff { instructions } => Handoff {
                custom_instructions: instructions.as_deref().map(Str::from),
                ..Handoff::default()
            }
            .into(),
            OmpAsk::FastMode(enabled) => SetFastMode {
                enabled: *enabled,
                ..SetFastMode::default()
            }
            .into(),
            OmpAsk::SlowMode(enabled) => SetSlowMode {
                enabled: *enabled,
                ..SetSlowMode::default()
            }
            .into(),
            OmpAsk::CacheWarming(mode) => SetCacheWarming {
                mode: Any(Some(quoted(first, mode))),
                ..SetCacheWarming::default()
            }
            .into(),
            OmpAsk::ExportHtml(export) => ExportHtml {
                output_path: export.path.as_deref().map(Str::from),
                ..ExportHtml::default()
            }
            .into(),
            OmpAsk::Todos(phases) => {
                member = Some("todoPhases");
                match Raw::trusted(phases.as_str()).decode() {
                    Ok(phases) => SetTodos {
                        phases,
                        ..SetTodos::default()
                    }
                    .into(),
                    Err(_) => {
                        let text = "the phases aren't a list".into();
                        return super::commands::refuse(id, Refusal::Invalid(text), out);
                    }
                }
            }
            OmpAsk::RefreshCommands => {
                member = Some("commands");
                RefreshCommands::default().into()
            }
            OmpAsk::LoginProviders => GetLoginProviders::default().into(),
            OmpAsk::Login { provider } => Login {
                provider_id: (&**provider).into(),
                ..Login::default()
            }
            .into(),
            OmpAsk::LogoutAccounts { provider } => GetLogoutAccounts {
                provider_id: (&**provider).into(),
                ..GetLogoutAccounts::default()
            }
            .into(),
            OmpAsk::Logout {
                provider,
                credential,
            } => Logout {
                provider_id: (&**provider).into(),
                credential_id: Any(credential.as_ref().map(|id| Raw::trusted(id.as_str()))),
                ..Logout::default()
            }
            .into(),
            OmpAsk::LiveStart {
                voice,
                instructions,
            } => LiveStart {
                voice: voice.as_deref().map(Str::from),
                instructions: instructions.as_deref().map(Str::from),
                ..LiveStart::default()
            }
            .into(),
            OmpAsk::LiveMute(muted) => LiveMute {
                muted: *muted,
                ..LiveMute::default()
            }
            .into(),
            OmpAsk::LiveStop => LiveStop::default().into(),
            OmpAsk::PredictWord { text, cursor } => PredictWord {
                text: (&**text).into(),
                cursor: Any(Some(number(first, *cursor))),
                ..PredictWord::default()
            }
            .into(),
            OmpAsk::PredictFeedback {
                text,
                cursor,
                suggestion,
                accepted,
            } => PredictWordFeedback {
                text: (&**text).into(),
                cursor: Any(Some(number(first, *cursor))),
                suggestion: (&**suggestion).into(),
                accepted: *accepted,
                ..PredictWordFeedback::default()
            }
            .into(),
            OmpAsk::Btw { question, record } => Btw {
                question: (&**question).into(),
                record_id: record.as_deref().map(Str::from),
                ..Btw::default()
            }
            .into(),
            OmpAsk::BtwCancel { record } => BtwCancel {
                record_id: record.as_deref().map(Str::from),
                ..BtwCancel::default()
            }
            .into(),
            OmpAsk::BtwHistory => GetBtwHistory::default().into(),
            OmpAsk::Ui(_) => {
                let what = "an answer to a dialog as a request";
                return super::commands::refuse(id, Refusal::Unsupported(what), out);
            }
        };
        self.raw(id, &line, member, out);
    }
}

fn number(buffer: &mut Vec<u8>, number: u64) -> Raw<'_> {
    write_u64(buffer, number);
    Raw::trusted(core::str::from_utf8(buffer).unwrap_or("0"))
}

/// The object with this id instead of its own.
fn own_id(line: Raw<'_>, id: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    crate::json::write_str(out, id);
    let members = line.decode::<alloc::collections::BTreeMap<Str<'_>, Raw<'_>>>();
    for (name, value) in members.unwrap_or_default() {
        if name != "id" {
            out.push(b',');
            crate::json::write_str(out, &name);
            out.push(b':');
            crate::json::write_raw(out, value);
        }
    }
    out.push(b'}');
}
