//! What is known of the session: from `system/init`, the answer to `initialize`, and from what changes it.

use alloc::format;
use alloc::vec::Vec;

use super::{ClientFace, Out};
use crate::json::Raw;
use crate::protocol::agentx::neutral::approvals;
use crate::protocol::agentx::policy::ContentBlocks;
use crate::protocol::agentx::wire::{self, Init, Initialized, Kept};
use crate::vocab::*;

impl ClientFace {
    /// `system/init`. Whether something of it is new.
    pub(super) fn learn_init(&mut self, told: &Init<'_>) -> bool {
        let before = self.info.clone();
        let info = &mut self.info;
        info.session = (&*told.session_id).into();
        info.cwd = (&*told.cwd).into();
        info.root = (!told.cwd.is_empty()).then(|| (&*told.cwd).into());
        info.model = ModelRef {
            provider: told.provider.as_deref().map(Text::from),
            model: (&*told.model).into(),
        };
        let (name, version) = match (&told.claude_code_version, &told.agentx_version) {
            (Some(version), _) => ("claude", Some(version)),
            (None, version) => ("agentx", version.as_ref()),
        };
        if let Some(version) = version {
            info.product = format!("{name} {}", &**version).into();
        }
        if let Some(reasoning) = &told.reasoning_capabilities {
            info.efforts = reasoning.efforts.iter().map(|it| (&**it).into()).collect();
        }
        info.tools = told.tools.iter().map(|tool| (&**tool).into()).collect();
        info.mcp = told.mcp_servers.iter().filter_map(server).collect();
        info.skills = told.skills.iter().map(|skill| (&**skill).into()).collect();
        // What was told of a command before is more than its name.
        let commands = told.slash_commands.iter().map(|name| {
            let mut known = before.commands.iter();
            let found = known.find(|(known, ..)| **known == **name).cloned();
            found.unwrap_or_else(|| ((&**name).into(), "".into(), "".into()))
        });
        info.commands = commands.collect();
        self.learn_mode(&told.permission_mode);
        self.learn_media(told.input_capabilities.is_some());
        self.info != before
    }

    /// The answer to `initialize`. Whether something of it is new.
    pub(super) fn learn_initialized(&mut self, told: &Initialized<'_>) -> bool {
        let before = self.info.clone();
        let info = &mut self.info;
        let known = told.commands.iter().filter_map(Kept::known);
        let commands = known.map(|command| {
            (
                Text::from(&*command.name),
                Text::from(&*command.description),
                Text::from(&*command.argument_hint),
            )
        });
        info.commands = commands.collect();
        if let (true, Some(version)) = (info.product.is_empty(), &told.claude_code_version) {
            info.product = format!("claude {}", &**version).into();
        }
        if let (true, Some(models)) = (info.model.model.is_empty(), &told.models) {
            let mut models = models.iter().filter_map(Kept::known);
            // Where a choice isn't told, the first one is only the first.
            let only = (models.next(), models.next());
            if let (Some(model), None) = only {
                info.model.model = (&*model.value).into();
            }
        }
        if let Some(mode) = &told.current_permission_mode {
            self.learn_mode(mode);
        }
        self.learn_media(told.input_capabilities.is_some());
        self.info != before
    }

    fn learn_media(&mut self, imports: bool) {
        let kinds: &[&str] = match self.config.policy.content_blocks {
            ContentBlocks::TextAndMedia => &[
                "image/png",
                "image/jpeg",
                "image/gif",
                "image/webp",
                "application/pdf",
            ],
            ContentBlocks::TextAndAttachments if imports => {
                &["image/png", "image/jpeg", "application/pdf"]
            }
            ContentBlocks::TextAndAttachments => &[],
        };
        self.info.media = kinds.iter().map(|kind| Text::from(*kind)).collect();
    }

    /// A mode of permissions, by the wire's word. Whether it is another one.
    pub(super) fn learn_mode(&mut self, word: &str) -> bool {
        let mode = approvals(word).unwrap_or_else(|| ApprovalMode::Other(word.into()));
        let changed = self.info.settings.approvals != mode;
        self.info.settings.approvals = mode;
        changed
    }

    /// A setting that the agent took counts now. Whether something is new.
    pub(super) fn take_setting(&mut self, setting: Setting) -> bool {
        let before = self.info.clone();
        match setting {
            Setting::Approvals(mode) => self.info.settings.approvals = mode,
            Setting::Model(Some(name)) => self.info.model.model = name,
            // What the default is isn't told.
            Setting::Model(None) | Setting::ThinkingBudget(_) => {}
            Setting::Thinking(_)
            | Setting::SteerDrain(_)
            | Setting::FollowUpDrain(_)
            | Setting::Interrupting(_)
            | Setting::AutoRetry(_)
            | Setting::AutoCompact(_)
            | Setting::Name(_) => {}
        }
        self.info != before
    }

    pub(super) fn changed(&mut self, seen: Seen, out: &mut Out) {
        if self.opened {
            out.event(RunId::MAIN, seen, What::Changed(self.info.clone()));
        }
    }
}

fn server(told: &Kept<'_, wire::McpServer<'_>>) -> Option<McpServer> {
    let told = told.known()?;
    let text = |value: Option<Raw<'_>>| Some(Text::from(&*value?.string()?));
    let mut server = McpServer::new(&*told.name, McpStatus::of_word(&told.status));
    server.why = text(told.rest.get("error"));
    let product = told.rest.get("serverInfo");
    let product = product.map(|it| (text(it.get_last("name")), text(it.get_last("version"))));
    if let Some((Some(name), version)) = product {
        server.product = Some((name, version.unwrap_or_default()));
    }
    let tools: Vec<Raw<'_>> = told
        .rest
        .get("tools")
        .and_then(|tools| tools.decode().ok())
        .unwrap_or_default();
    server.tools = tools
        .iter()
        .filter_map(|tool| {
            let name = text(tool.get_last("name"))?;
            Some(McpTool {
                called: format!("mcp__{}__{name}", server.name).as_str().into(),
                name,
                description: text(tool.get_last("description")).unwrap_or_default(),
            })
        })
        .collect();
    Some(server)
}

/// The servers of an answer to `reload_plugins` or `mcp_status`.
pub(super) fn servers(told: &[Kept<'_, wire::McpServer<'_>>]) -> Vec<McpServer> {
    told.iter().filter_map(server).collect()
}
