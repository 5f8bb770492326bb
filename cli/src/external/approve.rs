//! `turnwire approve`: a person says that a tool may run as it is.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::approvals::Approvals;
use super::{Places, Tool};
use crate::folders::Folders;
use crate::say::Stop;
use crate::start::SESSION_VARIABLE;

/// Options of `approve`.
#[derive(Clone, Debug, Args)]
pub struct ApproveArgs {
    /// The tool's manifest, or a file of its code; a relative path begins at the project's folder
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    /// The project's folder [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Approves the tools that a file belongs to, exactly as they are now.
///
/// # Errors
/// [`Stop::Untrusted`] if an agent started this process; [`Stop::Settings`] if no tool has that file.
pub fn run(args: &ApproveArgs) -> Result<u8, Stop> {
    let agent = std::env::var_os(SESSION_VARIABLE).is_some();
    let tools = approve(args, Folders::find(), agent)?;
    let mut out = std::io::stdout().lock();
    for tool in tools {
        let name = &tool.external.name;
        let mut text = format!("approved {name}: it runs {}\n", tool.runs());
        if !tool.external.env.is_empty() {
            let names = tool.external.env.join(" ");
            text.push_str(&format!("{name} is given: {names}\n"));
        }
        let text = crate::safe::lines(&text);
        // Whoever closed the pipe doesn't want to know; it is approved.
        let _ = out.write_all(text.as_bytes());
    }
    Ok(0)
}

fn approve(args: &ApproveArgs, folders: Option<Folders>, agent: bool) -> Result<Vec<Tool>, Stop> {
    if agent {
        return Err(Stop::Untrusted(format!(
            "approving is a person's to do: this process was started by an agent ({SESSION_VARIABLE} is set)"
        )));
    }
    let stop = |path: &Path, why: &dyn std::fmt::Display| {
        Stop::Settings(format!("{}: {why}", path.display()))
    };
    let project = args.project.as_deref().unwrap_or(Path::new("."));
    let root = project
        .canonicalize()
        .map_err(|error| stop(project, &error))?;
    let path = root.join(&args.path);
    let wanted = path.canonicalize().map_err(|error| stop(&path, &error))?;
    let approvals = Approvals::at(folders.as_ref().map(Folders::approvals));
    // Approving isn't trusting: an untrusted project's tools can be approved, and stay unused until it is trusted.
    let found = super::find(&Places {
        root: &root,
        untrusted: None,
        folders: folders.as_ref(),
        deny_env: &[],
        approvals: &approvals,
    });
    let has = |tool: &Tool| {
        let mut paths = tool
            .files
            .iter()
            .map(|file| Path::new(&file.path).canonicalize());
        paths.any(|path| path.is_ok_and(|path| path == wanted))
    };
    let (tools, unloaded) = (found.tools, found.unloaded);
    let tools: Vec<Tool> = tools.into_iter().filter(has).collect();
    if tools.is_empty() {
        let file = args
            .path
            .file_name()
            .unwrap_or(OsStr::new(""))
            .to_string_lossy()
            .into_owned();
        let why = unloaded.into_iter().find(|why| why.contains(&file));
        let none = "no tool of the project or of the user's is made of this file".to_owned();
        return Err(stop(&args.path, &why.unwrap_or(none)));
    }
    let files: Vec<_> = tools.iter().flat_map(|tool| tool.files.clone()).collect();
    approvals.record(&files)?;
    Ok(tools)
}
