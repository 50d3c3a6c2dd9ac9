//! What the commands share: the workspace around the current folder and its session.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use t2t_host::interrupt::Interrupt;
use t2t_host::toolchain::{self, Interpreter, Places};
use t2t_model::action::Phase;
use t2t_plan::graph::expand::Configurations;
use t2t_plan::graph::files::{self, Files};
use t2t_plan::graph::pick::{self, Selection};
use t2t_store::fs;
use t2t_store::results::Published;
use t2t_store::store::lock::Lock;

use super::error::CliError;
use super::executor;
use super::running::stop_on_signal;
use super::streams::say;
use super::{Common, Targets};
use crate::session::{self, Options, Overwrite, Probing, Session};

/// Returns a variable of the environment.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

/// Returns the number of this process.
pub(crate) fn process() -> u32 {
    std::process::id()
}

/// Has this process be interrupted when its parent ends, whose number is `parent`. Returns whether it is still there.
pub(crate) fn ends_with(parent: i32) -> bool {
    let is_bound = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM).is_ok();
    // The parent may have ended before.
    is_bound && nix::unistd::getppid().as_raw() == parent
}

/// Returns the path from the root of the file system.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the workspace around the current folder.
pub(crate) fn workspace() -> Result<PathBuf, CliError> {
    let here = env::current_dir().context("cannot tell the current folder")?;
    let root = session::workspace(&here).ok_or_else(|| {
        let message = format!("no ops.yaml in `{}` or in a folder above it", here.display());
        CliError::misuse(message, "run t2t in a workspace, a folder with an ops.yaml: `t2t init` makes one here, `t2t add softmax` one with an op")
    })?;
    // Requests to the interpreter are JSON, which has no place for other bytes.
    if root.to_str().is_none() {
        let message = format!("the path of the workspace is not UTF-8: `{}`", root.display());
        return Err(CliError::misuse(message, "rename the folder whose name has the character `\u{fffd}` here"));
    }
    Ok(root)
}

/// Returns the interpreter to use, if there is one.
pub(crate) fn python(common: &Common, workspace: PathBuf) -> Option<Interpreter> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute =
        |path: PathBuf| if path.components().count() > 1 { std::path::absolute(&path).unwrap_or(path) } else { path };
    let binary = env::current_exe().ok();
    toolchain::find(&Places {
        option: common.python.clone().map(absolute),
        variable: named("T2T_PYTHON").map(absolute),
        environment: named("VIRTUAL_ENV"),
        workspace,
        beside: binary.and_then(|path| path.parent().map(ToOwned::to_owned)),
    })
}

/// Opens the workspace around the current folder.
pub(crate) fn open(common: &Common, probing: Probing, interrupt: &Interrupt) -> Result<Session, CliError> {
    opened(&options(common, &workspace()?, probing), interrupt)
}

/// Opens the workspace around the current folder under its lock, for a command that calls children itself. A signal stops them. Fails, as `elsewhere` says, where the device is
/// not here. Whoever lets go of the session and then of the lock leaves nothing that runs when others go on.
pub(crate) fn open_locked(common: &Common, elsewhere: &str) -> Result<(Lock, Interrupt, Session), CliError> {
    let root = workspace()?;
    let interrupt = Interrupt::default();
    let running = stop_on_signal(&interrupt)?;
    let lock = lock(&root)?;
    let session = open(common, Probing::Allowed, &interrupt)?;
    running.hold(&session.pool);
    if session.is_elsewhere {
        return Err(CliError::misuse(elsewhere, "leave out `--as-device`"));
    }
    Ok((lock, interrupt, session))
}

fn opened(options: &Options, interrupt: &Interrupt) -> Result<Session, CliError> {
    let session = Session::open(&workspace()?, options, interrupt)?;
    warn(&session);
    Ok(session)
}

/// Takes the lock of the store of the workspace at `root`, and says who holds it while it waits.
pub(crate) fn lock(root: &Path) -> Result<Lock, CliError> {
    let command = env::args().collect::<Vec<_>>().join(" ");
    let waiting = |holder: &str| say(&format!("waiting: the workspace's lock, cache/lock, held by {holder}"));
    Ok(Lock::take(&root.join("cache"), &command, waiting).context("cannot lock the store `cache/`")?)
}

/// Returns what a session of the workspace at `root` is opened with.
pub(crate) fn options(common: &Common, root: &Path, probing: Probing) -> Options {
    Options {
        python: python(common, root.to_owned()),
        device: common.device.clone(),
        as_device: common.as_device.clone(),
        executor: executor::given(None),
        cache: None,
        visible: env::var("CUDA_VISIBLE_DEVICES").ok(),
        search: search(),
        architectures: env::var("TORCH_CUDA_ARCH_LIST").ok(),
        harness: env::var_os("T2T_HARNESS").map(PathBuf::from),
        driver: env::var_os("T2T_DRIVER").map(PathBuf::from),
        bytecode: bytecode(),
        require_signed: false,
        probing,
        configurations: Configurations::First,
        overwrite: Overwrite::No,
        generator: None,
        takes_kernels_as_they_are: false,
        pool: None,
        toolchain: None,
    }
}

/// Returns the variables by which modules and nvcc are found, with their names, as far as they are set.
fn search() -> Option<OsString> {
    let mut told = OsString::new();
    for name in ["PYTHONPATH", "CUDA_HOME", "CUDA_PATH"] {
        let Some(value) = env::var_os(name) else { continue };
        told.push(format!("{name}="));
        told.push(value);
        told.push("\n");
    }
    (!told.is_empty()).then_some(told)
}

/// Opens the workspace around the current folder, for a command that only looks.
pub(crate) fn open_for(
    common: &Common,
    targets: &Targets,
    probing: Probing,
    interrupt: &Interrupt,
) -> Result<Session, CliError> {
    let options = options(common, &workspace()?, probing);
    opened(&Options { configurations: targets.configurations(), ..options }, interrupt)
}

/// Opens the workspace around the current folder, to take only results that are signed by somebody whom ops.yaml trusts. Its store is the folder `cache`, which is empty:
/// whoever can write the workspace's own could make it say anything, also of sources and versions.
pub(crate) fn open_signed(
    common: &Common,
    targets: &Targets,
    probing: Probing,
    cache: &Path,
    interrupt: &Interrupt,
) -> Result<Session, CliError> {
    let options = options(common, &workspace()?, probing);
    let (configurations, cache) = (targets.configurations(), Some(cache.to_owned()));
    let options = Options { configurations, cache, require_signed: true, ..options };
    Ok(Session::open(&workspace()?, &options, interrupt)?)
}

/// Returns the folder for bytecode of installed packages: `$T2T_BYTECODE`, and none where that is empty, else one in the user's cache (XDG Base Directory Specification).
pub(crate) fn bytecode() -> Option<PathBuf> {
    if let Some(named) = env::var_os("T2T_BYTECODE") {
        return Some(absolute(Path::new(&named))).filter(|_| !named.is_empty());
    }
    of_user("bytecode")
}

/// Returns a folder of t2t's in the user's cache (XDG Base Directory Specification); None where the user has none.
pub(crate) fn of_user(name: &str) -> Option<PathBuf> {
    let is_whole = |path: &PathBuf| path.is_absolute();
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(is_whole);
    let home = || env::var_os("HOME").map(PathBuf::from).filter(is_whole).map(|home| home.join(".cache"));
    Some(cache.or_else(home)?.join("t2t").join(name))
}

/// What is stale depends on the interpreter's versions, so a changed interpreter is probed as in a build. Without an interpreter the command goes on.
pub(crate) fn as_built(common: &Common) -> Result<Probing, CliError> {
    let python = python(common, workspace()?);
    Ok(if python.is_some() { Probing::WhereItCan } else { Probing::Never })
}

/// Says that a look cannot tell what an interpreter's versions make stale: asking it takes a place to write, and there is none.
pub(crate) fn warn_of_unknown_versions(common: &Common, session: &Session) -> Result<(), CliError> {
    if session.toolchain.is_none() && python(common, workspace()?).is_some() {
        say(
            "warning: `cache/` cannot be written, so the interpreter could not be probed for its versions: results that depend on them count as stale",
        );
    }
    Ok(())
}

/// Says what of the published results of a session cannot be used, and which folders of `sources` are not there.
pub(crate) fn warn(session: &Session) {
    for folder in session.spec.sources.iter().filter(|folder| !session.root.join(folder).is_dir()) {
        say(&format!("warning: `sources` in ops.yaml names `{folder}`, and there is no such folder"));
    }
    session.published.iter().for_each(|published| warn_of(published, session));
}

/// Says what of published results cannot be used.
pub(crate) fn warn_of(published: &Published, session: &Session) {
    let relative = |text: &str| text.replace(&format!("{}/", session.root.display()), "");
    for fault in &published.faults {
        say(&format!("warning: {}; it counts as missing", relative(fault)));
    }
    for objection in &published.objections {
        say(&format!("warning: {}; it counts as unsigned", relative(objection)));
    }
    if published.facts.is_none() && session.inventory.device.driver.is_none() {
        let place = relative(&published.place.display().to_string());
        let what = if published.place.is_dir() { "has no `device.json` that can be read" } else { "is not there" };
        say(&format!("warning: `{place}` {what}: the driver is not known"));
    }
}

impl Targets {
    /// Returns how many configurations of autotuned kernels are compiled: all, if compiling was asked for.
    pub(crate) fn configurations(&self) -> Configurations {
        let is_named = |target: &String| target.ends_with(":compile");
        let is_asked = self.phase.contains(&Phase::Compile) || self.written().iter().any(is_named);
        if is_asked { Configurations::All } else { Configurations::First }
    }

    /// Returns what was named, as it was written.
    pub(crate) fn written(&self) -> Vec<String> {
        self.targets.iter().chain(&self.op).cloned().collect()
    }

    /// Returns what was asked for, files as the targets that are made from them.
    pub(crate) fn selection(&self, session: &Session) -> Result<Selection, CliError> {
        Ok(Selection {
            targets: named(session, &self.written())?,
            variants: self.variant.clone(),
            phases: self.phase.clone(),
        })
    }
}

/// Returns targets, with those in place of each file that are made from it.
pub(crate) fn named(session: &Session, written: &[String]) -> Result<Vec<String>, CliError> {
    let files = Files { spec: &session.spec, inventory: &session.inventory };
    let mut targets = Vec::new();
    for text in written {
        let parts: Vec<&str> = pick::split(text).collect();
        if parts.is_empty() {
            targets.push(text.clone());
        }
        for part in parts {
            let made = match from_here(&session.root, part) {
                Some(path) => made_from(&files, &session.root, &path, part)?,
                None if part.starts_with(['/', '.']) => {
                    let message = format!("`{part}` lies outside of the workspace, `{}`", session.root.display());
                    return Err(CliError::misuse(message, "name an op, a variant or a file of the workspace"));
                }
                None => None,
            };
            targets.extend(made.unwrap_or_else(|| vec![part.to_owned()]));
        }
    }
    Ok(targets)
}

/// Returns the targets that are made from the file, folder or pattern `path` of the workspace at `root`, which was `written` so; None where it is no name of files.
fn made_from(files: &Files<'_>, root: &Path, path: &str, written: &str) -> Result<Option<Vec<String>>, CliError> {
    let made = files.targets(path)?;
    let first = path.split(['/', ':']).next().unwrap_or_default();
    if made.is_none() && files.spec.op(first).is_none() && !path.is_empty() && root.join(path).exists() {
        let message = format!("no op or variant is made from `{written}`");
        return Err(CliError::misuse(
            message,
            "name a kernel file, an op as ops.yaml has it, or a variant as `OP/VARIANT`",
        ));
    }
    Ok(made)
}

/// Returns where a file that is named from the current folder lies in the workspace. None where it lies outside.
fn from_here(root: &Path, path: &str) -> Option<String> {
    let here = env::current_dir().ok()?;
    let is_of_root = !path.starts_with(['.', '/']) && !files::looks_like_a_file(path);
    let mut parts: Vec<&OsStr> = Vec::new();
    let whole = if is_of_root { root.join(path) } else { here.join(path) };
    for part in whole.components() {
        match part {
            Component::ParentDir => _ = parts.pop(),
            Component::CurDir => {}
            other => parts.push(other.as_os_str()),
        }
    }
    let inside = parts.iter().collect::<PathBuf>();
    if let Ok(path) = inside.strip_prefix(root) {
        return path.to_str().map(str::to_owned);
    }
    // The workspace may be named by a link.
    fs::resolved_below(root, &inside)?.to_str().map(str::to_owned)
}
