//! What has to be known, and allowed, before a session begins.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use crate::args::ServeArgs;
use crate::external::{self, approvals::Approvals};
use crate::folders::{Folders, SETTINGS_FILE};
use crate::permits::{self, Permits};
use crate::registry;
use crate::say::Stop;
use crate::settings::values::Approval;
use crate::settings::{self, Env, Layer, Model, Settings, file};
use crate::skills;
use crate::trust::{Trust, Verdict};
use turnwire::protocol::agentx::SettingsSource;
use turnwire::vocab::PermissionUpdate;
use turnwire_io::store::Store;

/// Set in the environment of everything that a session's tools start: an agent below it is driven by an agent.
pub const SESSION_VARIABLE: &str = "TURNWIRE_SESSION";

/// Names folders, separated as in `PATH`, that a person trusts: see [`trusted_by_environment`].
pub const TRUST_VARIABLE: &str = "TURNWIRE_TRUST_PROJECT";

/// All that a session is started with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The settings, put together.
    pub settings: Settings,
    /// The mode the session begins in.
    pub approval: Approval,
    /// The project's folder, absolute, as it was named.
    pub project: PathBuf,
    /// The same with no symbolic link in it: the name it is trusted by, and the border of the file tools.
    pub root: PathBuf,
    /// The user's folders; `None` without a home.
    pub folders: Option<Folders>,
    /// Whether an agent started this process. Then it can't widen what the agent may do.
    pub agent_spawned: bool,
    /// What a person has approved of external tools.
    pub approvals: Approvals,
    /// What a person has allowed for good.
    pub permits: Permits,
    /// Where the approval mode is saved; `None` if the user has no home folder.
    pub trust: Option<Trust>,
    /// Where the session is kept; `None` if it isn't.
    pub store: Option<Store>,
    /// Whether the session that was saved last goes on.
    pub go_on: bool,
    /// What a person should know; each is a line for stderr.
    pub notes: Vec<String>,
}

impl Start {
    /// Reads settings and trust, and writes trust if `--trust-project` says so.
    ///
    /// # Errors
    /// [`Stop`]: wrong settings, or a project that must be trusted first. Nothing has been written to stdout.
    pub fn prepare(
        args: &ServeArgs,
        folders: Option<Folders>,
        env: Env<'_>,
    ) -> Result<Start, Stop> {
        let (project, root) = project(args.project.as_deref())?;
        let project_file = root.join(SETTINGS_FILE);
        let project_text = file::text(&project_file)?;
        let agent_spawned = env(SESSION_VARIABLE).is_some();
        let trust = folders.as_ref().map(|folders| Trust::at(folders.trust()));
        let verdict = match &trust {
            Some(trust) => trust.verdict(&root, project_text.as_deref())?,
            None => Verdict::Unknown,
        };
        let trusted = matches!(verdict, Verdict::Trusted(_));
        let give_trust = args.trust_project && !trusted;
        if give_trust && agent_spawned {
            return Err(not_from_an_agent(&root));
        }

        let mut layers = Vec::new();
        match &project_text {
            Some(text) if trusted || give_trust => {
                let path = project_file.clone();
                layers.push(Layer::read(SettingsSource::Project, path, text)?);
            }
            Some(_) | None => {}
        }
        if let Some(path) = folders.as_ref().map(Folders::settings)
            && let Some(text) = file::text(&path)?
        {
            layers.push(Layer::read(SettingsSource::User, path, &text)?);
        }
        let registry = || registry::read(args.model.auth_file.as_deref(), folders.as_ref(), env);
        let mut settings = settings::resolve(args, &layers, &registry, env)?;

        let mut notes = Vec::new();
        let untrusted = (!trusted && !give_trust).then(|| reason(&verdict, &root));
        let approvals = Approvals::at(folders.as_ref().map(Folders::approvals));
        let permits = match &folders {
            Some(folders) => permits::of(&folders.permissions(), &root)?,
            None => Permits::default(),
        };
        settings.external = external::find(&external::Places {
            root: &root,
            untrusted: untrusted.as_deref(),
            folders: folders.as_ref(),
            deny_env: &settings.deny_env,
            approvals: &approvals,
        });
        notes.extend(
            settings
                .external
                .unloaded
                .iter()
                .map(|why| format!("a tool isn't loaded: {why}")),
        );
        settings.skills = skills::find(&root, untrusted.as_deref(), folders.as_ref());
        let unloaded = settings.skills.unloaded.iter();
        notes.extend(unloaded.map(|why| format!("a skill isn't loaded: {why}")));
        if give_trust {
            let Some(trust) = &trust else {
                return Err(no_home());
            };
            trust.record(&root, project_text.as_deref())?;
            notes.push(format!("trusted project {}", root.display()));
        } else if !trusted {
            let why = reason(&verdict, &root);
            if !matches!(settings.model, Model::Builtin { .. }) {
                return Err(Stop::Untrusted(format!(
                    "{why}. Look at it, then add --trust-project, or run: turnwire trust"
                )));
            }
            if project_text.is_some() {
                notes.push(format!("{} isn't used: {why}", project_file.display()));
            }
            if let Some(text) = &project_text {
                let hooks = settings::hooks::inert(&project_file, text, &why);
                settings.unloaded.extend(hooks);
            }
        }
        notes.extend(about_the_model(&settings));
        let kept_in = settings
            .folder
            .clone()
            .or_else(|| folders.as_ref().map(Folders::sessions));
        let store = match (kept_in, settings.store) {
            (Some(folder), true) => Some(Store::at(folder)),
            (None, true) => {
                notes.push("there is no home folder, so the session isn't kept".to_owned());
                None
            }
            (_, false) => None,
        };

        let saved = match verdict {
            Verdict::Trusted(mode) => mode,
            Verdict::Changed | Verdict::Unknown => None,
        };
        let shown = settings::shown::layers(args, &layers);
        *args
            .foreign
            .shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = shown;
        let approval = args
            .session
            .approval
            .or(saved)
            .or(settings.approval)
            .or(args.foreign.approval)
            .unwrap_or(Approval::Ask);
        Ok(Start {
            settings,
            approval,
            project,
            root,
            folders,
            agent_spawned,
            approvals,
            permits,
            trust,
            store,
            go_on: args.go_on,
            notes,
        })
    }

    /// Keeps what a person has allowed for good, durably.
    ///
    /// # Errors
    /// Why it isn't kept: there is no home folder, an agent started this process, or the file can't be written.
    pub fn keep_permits(&self, updates: &[PermissionUpdate]) -> Result<(), String> {
        if !updates.iter().any(|update| update.keep().is_stored()) {
            return Ok(());
        }
        if self.agent_spawned {
            return Err(format!(
                "this process was started by an agent ({SESSION_VARIABLE} is set)"
            ));
        }
        let Some(folders) = &self.folders else {
            return Err("there is no home folder to keep them in".to_owned());
        };
        permits::keep(&folders.permissions(), &self.root, updates).map_err(|stop| stop.to_string())
    }

    /// Saves the approval mode of this project, durably.
    ///
    /// # Errors
    /// A text that says why it isn't saved; the mode is then unchanged.
    pub fn store_approval_mode(&self, mode: Approval) -> Result<(), String> {
        let Some(trust) = &self.trust else {
            return Err("there is no home folder to save the mode in".to_owned());
        };
        trust
            .store_approval_mode(&self.root, mode)
            .map_err(|stop| stop.to_string())
    }
}

/// Whether the environment names this project as one to be trusted ([`TRUST_VARIABLE`]): for clients whose command
/// line can't be changed. It counts as `--trust-project` does.
pub fn trusted_by_environment(named: Option<&Path>, env: Env<'_>) -> bool {
    let Some(folders) = env(TRUST_VARIABLE) else {
        return false;
    };
    let root = named.unwrap_or(Path::new(".")).canonicalize();
    root.is_ok_and(|root| {
        std::env::split_paths(&folders)
            .any(|folder| folder.is_absolute() && folder.canonicalize().is_ok_and(|it| it == root))
    })
}

/// Trusts a project, and the settings that it has now; the result is its folder.
///
/// # Errors
/// [`Stop`]: there is no such folder, an agent started this process, or trust can't be written.
pub fn trust(
    named: Option<&Path>,
    folders: Option<Folders>,
    env: Env<'_>,
) -> Result<PathBuf, Stop> {
    let (_, root) = project(named)?;
    if env(SESSION_VARIABLE).is_some() {
        return Err(not_from_an_agent(&root));
    }
    let text = file::text(&root.join(SETTINGS_FILE))?;
    let folders = folders.ok_or_else(no_home)?;
    Trust::at(folders.trust()).record(&root, text.as_deref())?;
    Ok(root)
}

fn not_from_an_agent(root: &Path) -> Stop {
    Stop::Untrusted(format!(
        "{} isn't trusted, and trust is a person's to give: this process was started by an agent \
         ({SESSION_VARIABLE} is set)",
        root.display()
    ))
}

fn no_home() -> Stop {
    Stop::Settings("there is no home folder to remember the trust in".to_owned())
}

/// The project's folder: absolute as named, and with its links resolved.
fn project(given: Option<&Path>) -> Result<(PathBuf, PathBuf), Stop> {
    let named = given.unwrap_or(Path::new("."));
    let stop =
        |error: std::io::Error| Stop::Settings(format!("project {}: {error}", named.display()));
    let root = named.canonicalize().map_err(stop)?;
    if !root.is_dir() {
        return Err(Stop::Settings(format!(
            "project {}: not a folder",
            named.display()
        )));
    }
    let project = if given.is_some() {
        std::path::absolute(named).map_err(stop)?
    } else {
        root.clone()
    };
    Ok((project, root))
}

fn reason(verdict: &Verdict, root: &Path) -> String {
    match verdict {
        Verdict::Changed => format!(
            "{SETTINGS_FILE} of {} has changed since the project was trusted",
            root.display()
        ),
        Verdict::Unknown | Verdict::Trusted(_) => {
            format!("the project {} isn't trusted", root.display())
        }
    }
}

/// What a person should know of the model that was chosen.
fn about_the_model(settings: &Settings) -> Option<String> {
    match &settings.model {
        Model::Builtin { chosen: false } => Some(
            "no model is configured, so the built-in script plays one: it lists the folder and says so. \
             Nothing of it is kept. For a real model see --api and --model"
                .to_owned(),
        ),
        Model::Http(provider) if provider.key.is_some() && provider.base_url.is_open_to_view() => {
            let to = if provider.unnamed {
                &settings.provider
            } else {
                provider.base_url.as_str()
            };
            Some(format!("the key goes to {to} over plain http, where others can read it"))
        }
        Model::Builtin { chosen: true } | Model::Script { .. } | Model::Http(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    /// A project and a home of its own.
    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            for name in ["p", "config", "state", "data"] {
                std::fs::create_dir(folder.path().join(name)).unwrap();
            }
            Place { folder }
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.folder.path().join(name), text).unwrap();
        }

        fn start(&self, words: &[&str], env: &[(&str, &str)]) -> Result<Start, Stop> {
            self.start_in(&self.folder.path().join("p"), words, env)
        }

        fn start_in(
            &self,
            project: &Path,
            words: &[&str],
            env: &[(&str, &str)],
        ) -> Result<Start, Stop> {
            use clap::Parser;
            let words = ["turnwire", "serve", "--protocol", "openmax", "--project"]
                .into_iter()
                .chain(project.to_str())
                .chain(words.iter().copied());
            let crate::args::Command::Serve(args) =
                crate::args::Args::try_parse_from(words).unwrap().command
            else {
                panic!("not serve")
            };
            let folders = Folders {
                config: self.folder.path().join("config"),
                state: self.folder.path().join("state"),
                data: self.folder.path().join("data"),
            };
            let env = |name: &str| {
                env.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| OsString::from(value))
            };
            Start::prepare(&args, Some(folders), &env)
        }
    }

    const MODEL: [&str; 6] = [
        "--api",
        "openai",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
    ];

    #[test]
    fn the_built_in_script_needs_no_trust_and_is_named() {
        let place = Place::new();
        let start = place.start(&[], &[]).unwrap();
        assert_eq!(start.approval, Approval::Ask);
        assert!(
            start
                .notes
                .iter()
                .any(|note| note.contains("built-in script")),
            "{:?}",
            start.notes
        );
        assert!(
            start
                .store_approval_mode(Approval::Auto)
                .unwrap_err()
                .contains("isn't trusted")
        );
        assert!(
            place
                .start(&["--api", "scripted"], &[])
                .unwrap()
                .notes
                .is_empty()
        );
    }

    #[test]
    fn sessions_are_kept_unless_they_are_demonstrations_or_nobody_wants_it() {
        let place = Place::new();
        let kept = |words: &[&str]| place.start(words, &[]).unwrap().store.is_some();
        assert!(!kept(&[]));
        assert!(kept(&["--continue"]));
        assert!(kept(&["--api", "scripted"]));
        assert!(!kept(&["--api", "scripted", "--no-store"]));
        place.write("config/turnwire.toml", "[session]\nstore = false\n");
        assert!(!kept(&["--api", "scripted"]));
        assert!(kept(&["--api", "scripted", "--continue"]));
        place.write("config/turnwire.toml", "[session]\nstore = true\n");
        assert!(kept(&[]));
        assert!(!kept(&["--no-store"]));
    }

    #[test]
    fn any_other_model_needs_trust_given_once() {
        let place = Place::new();
        place.write("script", "");
        let script = place.folder.path().join("script");
        for words in [&MODEL[..], &["--script", script.to_str().unwrap()]] {
            let stop = place.start(words, &[]).unwrap_err();
            assert!(
                matches!(&stop, Stop::Untrusted(text) if text.contains("--trust-project")),
                "{stop:?}"
            );
            assert_eq!(stop.code(), 3);
        }
        let start = place
            .start(&[&MODEL[..], &["--trust-project"]].concat(), &[])
            .unwrap();
        assert!(
            start
                .notes
                .iter()
                .any(|note| note.starts_with("trusted project ")),
            "{:?}",
            start.notes
        );
        // Remembered, and said only when it is new.
        assert!(place.start(&MODEL, &[]).unwrap().notes.is_empty());
        assert!(
            place
                .start(&[&MODEL[..], &["--trust-project"]].concat(), &[])
                .unwrap()
                .notes
                .is_empty()
        );
    }

    #[test]
    fn an_agent_cant_give_trust_but_may_use_it() {
        let place = Place::new();
        let agent = [(SESSION_VARIABLE, "s1")];
        let words = [&MODEL[..], &["--trust-project"]].concat();
        let stop = place.start(&words, &agent).unwrap_err();
        assert!(
            matches!(&stop, Stop::Untrusted(text) if text.contains(SESSION_VARIABLE)),
            "{stop:?}"
        );
        assert!(matches!(place.start(&MODEL, &[]), Err(Stop::Untrusted(_))));
        assert!(!place.start(&words, &[]).unwrap().agent_spawned);
        assert!(place.start(&words, &agent).unwrap().agent_spawned);
    }

    #[test]
    fn a_projects_file_counts_as_it_was_when_it_was_trusted() {
        let place = Place::new();
        place.write(
            "config/turnwire.toml",
            "[model]\napi = 'openai'\nname = 'm'\n[session]\nmax_steps = 7\n",
        );
        let key = [("OPENAI_API_KEY", "sk-1")];
        place.write("p/turnwire.toml", "[session]\nmax_steps = 3\n");
        assert!(matches!(place.start(&[], &key), Err(Stop::Untrusted(_))));
        // With the script it runs, without the file, and says so.
        let start = place.start(&["--api", "scripted"], &key).unwrap();
        assert_eq!(start.settings.max_steps, 7);
        assert!(
            start
                .notes
                .iter()
                .any(|note| note.contains("turnwire.toml isn't used")),
            "{:?}",
            start.notes
        );
        assert_eq!(
            place
                .start(&["--trust-project"], &key)
                .unwrap()
                .settings
                .max_steps,
            3
        );
        assert_eq!(place.start(&[], &key).unwrap().settings.max_steps, 3);
        // What an agent may have written since doesn't count: here it would send the key elsewhere.
        place.write(
            "p/turnwire.toml",
            "[model]\nbase_url = 'http://evil.example'\nkey_env = 'OPENAI_API_KEY'\n",
        );
        let stop = place.start(&[], &key).unwrap_err();
        assert!(
            matches!(&stop, Stop::Untrusted(text) if text.contains("has changed")),
            "{stop:?}"
        );
        std::fs::remove_file(place.folder.path().join("p/turnwire.toml")).unwrap();
        assert!(matches!(place.start(&[], &key), Err(Stop::Untrusted(_))));
    }

    #[test]
    fn wrong_settings_give_no_trust() {
        let place = Place::new();
        place.write("p/turnwire.toml", "[session]\nmax_step = 3\n");
        let stop = place
            .start(&[&MODEL[..], &["--trust-project"]].concat(), &[])
            .unwrap_err();
        assert!(
            matches!(&stop, Stop::Settings(text) if text.contains("turnwire.toml:2:1")),
            "{stop:?}"
        );
        place.write("p/turnwire.toml", "");
        assert!(matches!(place.start(&MODEL, &[]), Err(Stop::Untrusted(_))));
    }

    #[test]
    fn om_07_the_saved_mode_survives_and_a_flag_beats_it() {
        let place = Place::new();
        place.write("config/turnwire.toml", "[session]\napproval = 'readonly'\n");
        let start = place.start(&["--trust-project"], &[]).unwrap();
        assert_eq!(start.approval, Approval::Readonly);
        start.store_approval_mode(Approval::Auto).unwrap();
        assert_eq!(place.start(&[], &[]).unwrap().approval, Approval::Auto);
        assert_eq!(
            place.start(&["--approval", "ask"], &[]).unwrap().approval,
            Approval::Ask
        );
    }

    #[test]
    fn a_key_over_plain_http_to_another_machine_is_pointed_out() {
        let place = Place::new();
        let words = [
            "--api",
            "openai",
            "--model",
            "m",
            "--base-url",
            "http://models.example/v1",
            "--trust-project",
        ];
        let noted = |start: Start| start.notes.iter().any(|note| note.contains("plain http"));
        assert!(!noted(place.start(&words, &[]).unwrap()));
        let words = [&words[..], &["--key-env", "K"]].concat();
        let start = place.start(&words, &[("K", "sk-1")]).unwrap();
        assert!(!start.notes.iter().any(|note| note.contains("sk-1")));
        assert!(noted(start));
    }

    #[test]
    fn a_project_that_isnt_a_folder_is_refused() {
        let place = Place::new();
        place.write("p/file", "");
        for (name, want) in [("file", "not a folder"), ("none", "No such file")] {
            let stop = place
                .start_in(&place.folder.path().join("p").join(name), &[], &[])
                .unwrap_err();
            assert!(
                matches!(&stop, Stop::Settings(text) if text.contains(want)),
                "{stop:?}"
            );
        }
    }

    #[test]
    fn a_person_trusts_a_project_beforehand_or_by_the_environment() {
        let place = Place::new();
        let project = place.folder.path().join("p");
        let folders = Folders {
            config: place.folder.path().join("config"),
            state: place.folder.path().join("state"),
            data: place.folder.path().join("data"),
        };
        assert_eq!(place.start(&MODEL, &[]).unwrap_err().code(), 3);
        let spawned = |name: &str| (name == SESSION_VARIABLE).then(|| OsString::from("s"));
        let refused = trust(Some(&project), Some(folders.clone()), &spawned).unwrap_err();
        assert_eq!(refused.code(), 3);
        trust(Some(&project), Some(folders), &|_| None).unwrap();
        assert!(place.start(&MODEL, &[]).is_ok());

        let named = |text: &str| {
            let value = OsString::from(text);
            trusted_by_environment(Some(&project), &|name| {
                (name == TRUST_VARIABLE).then(|| value.clone())
            })
        };
        let here = project.to_str().unwrap();
        let other = place.folder.path().to_str().unwrap();
        let both = std::env::join_paths([other, here]).unwrap();
        assert!(named(here) && named(both.to_str().unwrap()));
        assert!(!named(other) && !named("") && !named("1") && !named("."));
        assert!(!trusted_by_environment(Some(&project), &|_| None));
    }
}
