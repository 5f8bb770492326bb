//! What the answers to operations carry, and which operations there are.

use alloc::collections::BTreeSet;

use super::super::policy::{
    Extensions, HookAndMcp, HostCancel, InitRecord, InitializeFields, InterruptPayload,
    LiveSetters, MemberRules,
};
use super::super::rules::Key;
use super::super::wire::{Answer, Initialized, Kept, Provider, Reasoning, Response};
use super::control::{Waiting, about};
use super::{Here, Watcher};
use crate::json::Str;
use crate::protocol::observer::{Notes, Severity};

/// How an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Success,
    /// It is refused: this rule says so.
    Failure(Key),
    Either,
}

impl Watcher {
    /// Whether each turn has an `init` of its own.
    pub(super) fn each_turn_init(&self) -> bool {
        self.policy.init_record == InitRecord::EachTurn
    }

    /// Whether a host that withdraws a question denies it.
    pub(super) fn rejects_withdrawn(&self) -> bool {
        self.policy.host_cancel == HostCancel::RejectsWaiter
    }

    fn expected(&self, waiting: &Waiting) -> Expected {
        let policy = &self.policy;
        let strict = policy.member_rules == MemberRules::Closed;
        let setter = matches!(
            waiting.operation,
            "set_model" | "set_permission_mode" | "set_max_thinking_tokens"
        );
        match waiting.operation {
            "initialize" if waiting.has_fields => match policy.initialize_fields {
                InitializeFields::Refused => Expected::Failure(Key::Unsupported),
                InitializeFields::Accepted => Expected::Either,
            },
            "interrupt" | "mcp_status" | "get_context_usage" if waiting.has_fields && strict => {
                Expected::Failure(Key::Unsupported)
            }
            "initialize" | "interrupt" | "mcp_status" if !waiting.has_fields => Expected::Success,
            "initialize" | "interrupt" | "mcp_status" | "get_context_usage" => Expected::Either,
            _ if setter => match policy.live_setters {
                LiveSetters::FixedErrors => Expected::Failure(Key::Fixed),
                LiveSetters::Implemented => Expected::Either,
            },
            "" if waiting.is_provider && strict => Expected::Failure(Key::Fixed),
            _ => match policy.hook_and_mcp_controls {
                HookAndMcp::Unsupported => Expected::Failure(Key::Unsupported),
                HookAndMcp::Implemented => Expected::Either,
            },
        }
    }

    /// A request of the host is answered.
    pub(super) fn answered(
        &mut self,
        waiting: &Waiting,
        response: &Response<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let most = self.most();
        let failed = response.is_error();
        match (self.expected(waiting), failed) {
            (Expected::Success, true) => {
                let message = "every agent can do this";
                about(Key::Refused, waiting, most, message, here, notes);
            }
            (Expected::Failure(key), false) => {
                let message = "it has succeeded, and can't";
                about(key, waiting, Severity::Error, message, here, notes);
            }
            (Expected::Success | Expected::Either, _) | (Expected::Failure(_), true) => {}
        }
        if waiting.operation == "interrupt" && !failed {
            self.interrupt_answered(notes);
            self.interrupt_payload(waiting, response, here, notes);
            if self.turn.is_open() {
                self.turn.interrupted = Some(here.place);
            }
            return;
        }
        if failed || waiting.is_broken {
            return;
        }
        let answer = match Answer::decode(waiting.operation, response.response) {
            Ok(answer) => answer,
            Err(error) => {
                let message = alloc::format!("{}: {error}", waiting.operation);
                about(
                    Key::Payload,
                    waiting,
                    Severity::Error,
                    &message,
                    here,
                    notes,
                );
                return;
            }
        };
        if let Answer::MessageCancelled(told) = &answer
            && told.cancelled
        {
            self.prompts.withdrawn(told.message_uuid.as_deref());
        }
        if let Answer::Initialized(answer) = &answer {
            self.initialized(answer, waiting, here, notes);
        }
        let has_payload = matches!(
            waiting.operation,
            "initialize" | "mcp_status" | "get_context_usage" | "get_settings" | "mcp_set_servers"
        );
        if has_payload && answer == Answer::Nothing {
            let message = "there is no payload";
            about(Key::Payload, waiting, most, message, here, notes);
        }
    }

    fn interrupt_payload(
        &self,
        waiting: &Waiting,
        response: &Response<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let payload = response.response;
        let fits = match self.policy.interrupt_payload {
            InterruptPayload::Nothing => payload.get().is_none(),
            InterruptPayload::StillQueued => Answer::decode("interrupt", payload).is_ok(),
        };
        if !fits {
            let message = "the payload isn't one of an interrupt";
            about(
                Key::InterruptAnswer,
                waiting,
                Severity::Error,
                message,
                here,
                notes,
            );
        }
    }

    /// The answer to `initialize`.
    fn initialized(
        &mut self,
        answer: &Initialized<'_>,
        waiting: &Waiting,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        if self.is_claude() {
            return;
        }
        let source = answer.account.as_ref();
        let source = source.and_then(|account| account.api_key_source.as_deref());
        if source.is_some_and(|source| !is_key_source(source)) {
            let message = "apiKeySource is neither user nor temporary";
            about(
                Key::ApiKeySource,
                waiting,
                Severity::Error,
                message,
                here,
                notes,
            );
        }
        if self.policy.attachments_providers_prompt_uuid == Extensions::Absent {
            return;
        }
        let (most, message) = match answer.providers.as_deref() {
            // A program may have no registry.
            None | Some([]) => (Severity::Info, Some("there is no list of providers")),
            Some(providers) => (
                Severity::Error,
                catalogue(providers, self.prompts.provider()),
            ),
        };
        let models = answer.models.as_deref().map(<[Kept<'_, _>]>::len);
        let message = message.or(match models {
            Some(1) | None => None,
            Some(_) => Some("there is more than one model, or none"),
        });
        if let Some(message) = message {
            about(Key::Catalogue, waiting, most, message, here, notes);
        }
    }
}

/// Whether it is a word for where a key comes from (WIRE-016).
pub(super) fn is_key_source(word: &str) -> bool {
    matches!(word, "user" | "temporary")
}

/// What is wrong with a declaration of efforts.
pub(super) fn efforts(reasoning: &Reasoning<'_>) -> Option<&'static str> {
    let efforts = &reasoning.efforts;
    if reasoning.supported == efforts.is_empty() {
        return Some("efforts are supported if, and only if, there are any");
    }
    match &reasoning.default_effort {
        Some(default) if !efforts.contains(default) => {
            Some("the default effort is none of the efforts")
        }
        Some(_) | None => None,
    }
}

/// What is wrong with the list of providers. `selected`: the one that `system/init` named, as a hash.
fn catalogue(providers: &[Provider<'_>], selected: Option<u64>) -> Option<&'static str> {
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut chosen = 0;
    for provider in providers {
        if !ids.insert(&provider.id) {
            return Some("a provider stands twice");
        }
        if provider.value != provider.id {
            return Some("the value of a provider isn't its id");
        }
        let nested = &provider.reasoning;
        let agree = provider.supports_effort == nested.supported
            && provider.supported_reasoning_efforts == nested.efforts
            && text(provider.default_reasoning_effort.as_ref())
                == text(nested.default_effort.as_ref());
        if !agree {
            return Some("flat and nested efforts of a provider differ");
        }
        if let Some(odd) = efforts(nested) {
            return Some(odd);
        }
        if provider.selected {
            chosen += 1;
            let own = crate::protocol::observer::hash(&provider.id);
            if selected.is_some_and(|selected| selected != own) {
                return Some("the selected provider isn't that of system/init");
            }
        }
    }
    (chosen != 1).then_some("not exactly one provider is selected")
}

/// A default that isn't there and an empty one are alike.
fn text<'t>(effort: Option<&'t Str<'_>>) -> &'t str {
    effort.map(|effort| &**effort).unwrap_or_default()
}
