//! Where the user's own files lie.
//!
//! On Unix, macOS too, the XDG base folders (`XDG_CONFIG_HOME`, `XDG_STATE_HOME`, `XDG_DATA_HOME`, else
//! `~/.config`, `~/.local/state`, `~/.local/share`); on Windows the roaming and local application data.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// The name of a settings file, the user's and a project's.
pub const SETTINGS_FILE: &str = "turnwire.toml";

/// The user's folders of this program. They need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// Settings that a person writes.
    pub config: PathBuf,
    /// What the program remembers: which projects are trusted.
    pub state: PathBuf,
    /// What sessions leave behind.
    pub data: PathBuf,
}

impl Folders {
    /// Finds them; `None` when the user has no home folder.
    pub fn find() -> Option<Folders> {
        let base = etcetera::choose_base_strategy().ok()?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Some(Folders {
            config: base.config_dir().join("turnwire"),
            state: state.join("turnwire"),
            data: base.data_dir().join("turnwire"),
        })
    }

    /// The user's settings.
    pub fn settings(&self) -> PathBuf {
        self.config.join(SETTINGS_FILE)
    }

    /// The user's providers, with their keys.
    pub fn providers(&self) -> PathBuf {
        self.config.join("auth.json")
    }

    /// The folder of the user's own tools.
    pub fn tools(&self) -> PathBuf {
        self.config.join("tools")
    }

    /// The folder of the user's own skills.
    pub fn skills(&self) -> PathBuf {
        self.config.join("skills")
    }

    /// The list of approved files.
    pub fn approvals(&self) -> PathBuf {
        self.state.join("approved.toml")
    }

    /// What was allowed for good.
    pub fn permissions(&self) -> PathBuf {
        self.state.join("permissions.toml")
    }

    /// The list of trusted projects.
    pub fn trust(&self) -> PathBuf {
        self.state.join("trust.toml")
    }

    /// The folder of sessions.
    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }
}
