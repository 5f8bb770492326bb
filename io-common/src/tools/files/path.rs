//! Where a path from the model really leads, and whether that is inside the project.
//!
//! The check looks at the tree as it is at that moment. A process that swaps folders for symlinks
//! between the check and the use isn't held back: this keeps a model from straying, it is no sandbox.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use turnwire::vocab::SetOp;

use super::super::outcome::{Failed, reason};

/// Symlinks followed in one path before it counts as a loop, as in the Linux kernel.
const MAX_LINKS: u32 = 40;

/// The project's folder, and whether tools may leave it.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    real: PathBuf,
    allow_outside: bool,
    /// Folders that tools may use as well, absolute and without symlinks; shared with clones.
    more: Arc<RwLock<Vec<PathBuf>>>,
}

/// A path that was resolved and may be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Absolute, without `..` and symlinks. What isn't there yet hangs under its deepest existing parent.
    pub(crate) real: PathBuf,
    /// For texts: below the root with `/`, or absolute.
    pub(crate) shown: String,
}

impl Root {
    /// A project's folder, which must exist.
    pub(crate) fn new(root: &Path, allow_outside: bool) -> std::io::Result<Self> {
        let real = root.canonicalize()?;
        if !real.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            real,
            allow_outside,
            more: Arc::default(),
        })
    }

    /// Changes which folders tools may use besides the project's. What is no folder by an absolute path is left out.
    pub(crate) fn let_use(&self, op: SetOp, folders: &[impl AsRef<Path>]) {
        let real = folders.iter().map(AsRef::as_ref);
        let real = real.filter(|path| path.is_absolute());
        let real: Vec<PathBuf> = real
            .filter_map(|path| path.canonicalize().ok())
            .filter(|path| path.is_dir())
            .collect();
        let mut more = self.more.write().unwrap_or_else(PoisonError::into_inner);
        match op {
            SetOp::Add => more.extend(real),
            SetOp::Replace => *more = real,
            SetOp::Remove => more.retain(|folder| !real.contains(folder)),
        }
        more.sort_unstable();
        more.dedup();
    }

    /// Takes over the folders that another one may use besides its own.
    pub(crate) fn let_use_as(&self, other: &Root) {
        let folders = other.more.read().unwrap_or_else(PoisonError::into_inner);
        self.let_use(SetOp::Add, &folders);
    }

    fn holds(&self, real: &Path) -> bool {
        let more = self.more.read().unwrap_or_else(PoisonError::into_inner);
        self.allow_outside
            || real.starts_with(&self.real)
            || more.iter().any(|folder| real.starts_with(folder))
    }

    /// The folder itself, absolute and without symlinks.
    pub(crate) fn path(&self) -> &Path {
        &self.real
    }

    /// Resolves what the model wrote: relative to the root, or absolute.
    pub(crate) fn resolve(&self, given: &str) -> Result<Place, Failed> {
        if given.is_empty() {
            return Err(Failed("the path is empty".into()));
        }
        if given.contains('\0') {
            return Err(Failed("the path contains a NUL character".into()));
        }
        let real = walk(&self.real, Path::new(given))
            .map_err(|why| Failed(format!("can't use path {given}: {why}")))?;
        if !self.holds(&real) {
            let root = self.real.display();
            return Err(Failed(format!(
                "path is outside the project: {given} (the project is {root})"
            )));
        }
        Ok(Place {
            shown: self.show(&real),
            real,
        })
    }

    /// How a resolved path is written in texts.
    pub(crate) fn show(&self, real: &Path) -> String {
        match real.strip_prefix(&self.real) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) => real.to_string_lossy().into_owned(),
        }
    }
}

/// One step of a path still to be taken.
enum Step {
    Root,
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl Iterator<Item = Step> + '_ {
    path.components().filter_map(|c| match c {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Walks as the kernel does: `..` leads to the real parent, a symlink's target is walked in turn, also
/// if the target isn't there. Below something missing nothing can be a link, so names are just joined.
fn walk(base: &Path, path: &Path) -> Result<PathBuf, String> {
    let mut at = base.to_path_buf();
    let mut todo: VecDeque<Step> = steps(path).collect();
    let mut links = 0;
    while let Some(step) = todo.pop_front() {
        let name = match step {
            Step::Root => {
                at = PathBuf::from("/");
                continue;
            }
            Step::Up => {
                at.pop();
                continue;
            }
            Step::Down(name) => name,
        };
        let next = at.join(&name);
        match next.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err("too many symbolic links".into());
                }
                let target = next.read_link().map_err(|e| reason(&e))?;
                for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                    todo.push_front(step);
                }
            }
            Ok(_) => at = next,
            Err(e) if e.kind() == ErrorKind::NotFound => at = next,
            Err(e) => return Err(reason(&e)),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Tree {
        dir: tempfile::TempDir,
        root: Root,
    }

    /// `project/` (the root) beside `secret.txt`.
    fn tree() -> Tree {
        let dir = tempfile::tempdir().expect("a folder");
        let project = dir.path().join("project");
        std::fs::create_dir_all(project.join("src")).expect("folders");
        std::fs::write(dir.path().join("secret.txt"), "s").expect("a file");
        let root = Root::new(&project, false).expect("a root");
        Tree { dir, root }
    }

    fn refused(tree: &Tree, path: &str) {
        let error = tree.root.resolve(path).expect_err(path).0;
        assert!(
            error.starts_with(&format!("path is outside the project: {path} ")),
            "{error}"
        );
    }

    #[test]
    fn dots_are_resolved_and_may_not_lead_out() {
        let t = tree();
        for (given, shown) in [
            ("a.txt", "a.txt"),
            ("./src/../a.txt", "a.txt"),
            (".", "."),
            ("src/..", "."),
            ("new/deep/../x", "new/x"),
            ("../project/src", "src"),
        ] {
            assert_eq!(t.root.resolve(given).expect(given).shown, shown);
        }
        for given in [
            "..",
            "../secret.txt",
            "src/../../secret.txt",
            "new/../../secret.txt",
            "/etc/passwd",
            "/",
        ] {
            refused(&t, given);
        }
        // A sibling whose name begins like the project's is outside, too.
        std::fs::create_dir(t.dir.path().join("project2")).expect("a folder");
        refused(&t, "../project2/x");
        let inside = t.root.path().join("src/x.rs");
        assert_eq!(
            t.root
                .resolve(inside.to_str().expect("utf-8"))
                .expect("inside")
                .shown,
            "src/x.rs"
        );
    }

    #[test]
    fn symlinks_may_not_lead_out_even_to_what_is_not_there() {
        let t = tree();
        let p = t.root.path().to_path_buf();
        symlink("../secret.txt", p.join("file")).expect("link");
        symlink(t.dir.path(), p.join("up")).expect("link");
        symlink("../not-there-yet.txt", p.join("dangling")).expect("link");
        symlink("up", p.join("twice")).expect("link");
        for given in [
            "file",
            "up",
            "up/secret.txt",
            "up/new/file",
            "dangling",
            "twice/secret.txt",
            "src/../up/x",
        ] {
            refused(&t, given);
        }
        // `..` behind a link goes to the target's parent, not back to where the link stands.
        symlink("..", p.join("src/back")).expect("link");
        assert_eq!(t.root.resolve("src/back/a").expect("inside").shown, "a");
        symlink("/", p.join("slash")).expect("link");
        refused(&t, "slash/../etc");
        // A link that stays inside is fine and shows where it leads.
        symlink("src/new.rs", p.join("inside")).expect("link");
        assert_eq!(
            t.root.resolve("inside").expect("inside").shown,
            "src/new.rs"
        );
    }

    #[test]
    fn loops_and_odd_paths_are_clear_errors() {
        let t = tree();
        symlink("loop", t.root.path().join("loop")).expect("link");
        assert_eq!(
            t.root.resolve("loop/x").expect_err("loop").0,
            "can't use path loop/x: too many symbolic links"
        );
        assert_eq!(
            t.root.resolve("").expect_err("empty").0,
            "the path is empty"
        );
        assert_eq!(
            t.root.resolve("a\0b").expect_err("nul").0,
            "the path contains a NUL character"
        );
        std::fs::write(t.root.path().join("plain"), "").expect("a file");
        assert_eq!(
            t.root.resolve("plain/x").expect_err("file").0,
            "can't use path plain/x: not a directory"
        );
    }

    #[test]
    fn a_folder_that_was_let_may_be_used_and_no_other() {
        let t = tree();
        let near = t.dir.path().join("near");
        for name in ["near", "nearby"] {
            std::fs::create_dir(t.dir.path().join(name)).expect("a folder");
        }
        refused(&t, "../near/x");
        t.root
            .let_use(SetOp::Add, &[near.as_path(), Path::new("near")]);
        assert!(t.root.resolve("../near/x").is_ok());
        assert!(t.root.clone().resolve("../near/x").is_ok());
        refused(&t, "../nearby/x");
        refused(&t, "../near/../secret.txt");
        // A link in it leads where it leads.
        symlink("../secret.txt", near.join("link")).expect("link");
        refused(&t, "../near/link");
        t.root.let_use(SetOp::Remove, &[near]);
        refused(&t, "../near/x");
    }

    #[test]
    fn outside_is_allowed_if_asked_for() {
        let t = tree();
        let root = Root::new(t.root.path(), true).expect("a root");
        let place = root.resolve("../secret.txt").expect("outside");
        assert!(
            place.shown.ends_with("/secret.txt") && place.shown.starts_with('/'),
            "{}",
            place.shown
        );
        assert!(Root::new(&t.dir.path().join("nothing"), false).is_err());
        assert!(Root::new(&t.dir.path().join("secret.txt"), false).is_err());
    }
}
