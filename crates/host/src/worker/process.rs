//! The server's process: it is started with a socket as its standard input, its last output is kept, and what it leaves is killed.
//!
//! It does not know the protocol. Everything that the server forks is in a session of its own, and t2t and the server
//! are both subreapers; so when the server dies, what is left of it becomes children of t2t in other sessions than its
//! own, and those are killed. t2t starts nothing else in a session of its own.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, PipeReader, Read},
    os::unix::{
        net::UnixStream,
        process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::{
        prctl::set_child_subreaper,
        signal::{Signal, kill, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getsid},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{PidfdFlags, pidfd_open},
    time::Timespec,
};

use super::spare;

const BOOTSTRAP: &str = include_str!("bootstrap.py");
/// The variables that the server gets from t2t. Kernel code can read the server's environment, so secrets must not be
/// in it.
const PASSED: [&str; 15] = [
    "CC",
    "CUDA_HOME",
    "CUDA_PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "PYTHONPATH",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];
/// How much of what the server prints is kept: the end of it.
const LAST_WORDS: usize = 8 << 10;
/// How long processes that were killed may take to go.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// A started server.
#[derive(Debug)]
pub(crate) struct Process {
    child: Mutex<Handle>,
    words: Arc<Words>,
}

/// The end of what a server printed.
#[derive(Debug, Default)]
struct Words {
    state: Mutex<Printed>,
    /// Told once nothing more can come.
    over: Condvar,
}

#[derive(Debug, Default)]
struct Printed {
    end: Vec<u8>,
    is_over: bool,
}

/// What a server's process is waited for by.
#[derive(Debug)]
enum Handle {
    /// It was started here.
    Started(Child),
    /// Another server forked it. It is t2t's child since the process between them has ended.
    Forked(Pid),
}

/// Starts `python` and returns the other end of its socket. `module` is a folder that holds `t2t_worker`; the ends of a spare are for the process that it is to fork.
pub(crate) fn spawn(
    python: &Path,
    module: Option<&Path>,
    environment: &BTreeMap<String, String>,
    spare: Option<&mut spare::Ends>,
) -> io::Result<(Process, UnixStream)> {
    set_child_subreaper(true)?;
    let (ours, theirs) = UnixStream::pair()?;
    let (words, output) = io::pipe()?;
    let mut command = Command::new(python);
    if let Some(ends) = spare {
        ends.give(&mut command)?;
    }
    let child = command
        .arg("-c")
        .arg(BOOTSTRAP)
        .arg(module.map(absolute).unwrap_or_default())
        .env_clear()
        .envs(variables(environment))
        .current_dir("/")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(output.try_clone()?)
        .stderr(output)
        // Ctrl-C at the terminal is for t2t, which ends its servers in order.
        .process_group(0)
        .spawn()?;
    Ok((Process::new(Handle::Started(child), words), ours))
}

/// Makes a path absolute: the server starts in another folder.
fn absolute(path: &Path) -> OsString {
    std::path::absolute(path).map_or_else(|_| path.into(), Into::into)
}

/// Lists the server's environment: what is passed on, and over it what was asked for.
pub(super) fn variables(environment: &BTreeMap<String, String>) -> BTreeMap<&str, OsString> {
    let mut variables: BTreeMap<&str, OsString> = BTreeMap::new();
    variables.insert("PYTHONHASHSEED", "0".into());
    // Python trusts bytecode by its file's time and size alone. So none is written, and the harness in the store is always imported from source, which t2t
    // verifies.
    variables.insert("PYTHONDONTWRITEBYTECODE", "1".into());
    variables.extend(PASSED.iter().filter_map(|name| Some((*name, env::var_os(name)?))));
    variables.extend(environment.iter().map(|(name, value)| (name.as_str(), value.into())));
    if let Some(paths) = variables.get_mut("PYTHONPATH") {
        *paths = absolute_list(paths);
    }
    variables
}

fn absolute_list(paths: &OsStr) -> OsString {
    let paths = env::split_paths(paths).filter(|path| !path.as_os_str().is_empty());
    // The parts come from splitting such a list, so joining cannot fail.
    env::join_paths(paths.map(|path| absolute(&path))).unwrap_or_default()
}

impl Process {
    /// Takes over a process that another server forked, with what it prints to.
    pub(crate) fn forked(pid: Pid, output: PipeReader) -> Self {
        Self::new(Handle::Forked(pid), output)
    }

    fn new(child: Handle, output: PipeReader) -> Self {
        let words = Arc::<Words>::default();
        let kept = Arc::clone(&words);
        thread::spawn(move || kept.listen(output));
        Self { child: Mutex::new(child), words }
    }

    /// Waits for the server to leave, kills it when it does not within `grace`, and sees to what it leaves behind.
    /// Returns how it ended, for people.
    pub(crate) fn end(&self, grace: Duration) -> String {
        let status = self.wait(grace);
        kill_orphans();
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        match self.words.last() {
            words if words.is_empty() => status,
            words => format!("{status}\n{words}"),
        }
    }

    fn wait(&self, grace: Duration) -> io::Result<ExitStatus> {
        let mut child = lock(&self.child);
        let deadline = Instant::now() + grace;
        let mut has_ended = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // One that has ended may still be another process's child, which has it for a moment more.
            has_ended = !has_ended && wait_for_end(child.pid(), left);
            if !has_ended {
                thread::sleep(LOOK.min(left));
            }
        }
        // It is not reaped yet, so the number is still its own.
        killpg(child.pid(), Signal::SIGKILL).ok();
        child.wait()
    }

    /// Kills the server, and what it leaves behind.
    pub(crate) fn kill(&self) {
        self.end(Duration::ZERO);
    }
}

/// Returns once the process has ended, or after this time; whether it was seen to end. Kernels before 5.3 cannot tell.
fn wait_for_end(pid: Pid, most: Duration) -> bool {
    let Some(pid) = rustix::process::Pid::from_raw(pid.as_raw()) else { return false };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let Ok(most) = Timespec::try_from(most) else { return false };
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&most)).is_ok_and(|ended| ended > 0)
}

impl Words {
    /// Keeps what comes, up to its end.
    fn listen(&self, mut output: PipeReader) {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut chunk) {
            let end = &mut lock(&self.state).end;
            end.extend_from_slice(&chunk[..count]);
            let surplus = end.len().saturating_sub(LAST_WORDS);
            end.drain(..surplus);
        }
        lock(&self.state).is_over = true;
        self.over.notify_all();
    }

    /// Returns the end of what was printed. It waits for that, but not for ever: a descendant of the server may hold the pipe open.
    fn last(&self) -> String {
        let state = lock(&self.state);
        let waited = self.over.wait_timeout_while(state, PATIENCE / 10, |state| !state.is_over);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&state.end).trim().to_owned()
    }
}

impl Handle {
    fn pid(&self) -> Pid {
        match self {
            Self::Started(child) => Pid::from_raw(child.id().cast_signed()),
            Self::Forked(pid) => *pid,
        }
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Started(child) => child.try_wait(),
            Self::Forked(pid) => ended(*pid),
        }
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Started(child) => child.wait(),
            Self::Forked(pid) => loop {
                if let Some(status) = ended(*pid)? {
                    return Ok(status);
                }
                thread::sleep(LOOK);
            },
        }
    }
}

/// Returns how a process ended that is this one's child by inheritance; `None` if it has not. One that somebody else has waited for has ended in an unknown way.
fn ended(pid: Pid) -> io::Result<Option<ExitStatus>> {
    match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(_, code)) => Ok(Some(ExitStatus::from_raw(code << 8))),
        Ok(WaitStatus::Signaled(_, signal, _)) => Ok(Some(ExitStatus::from_raw(signal as i32))),
        Err(Errno::ECHILD) if kill(pid, None) == Err(Errno::ESRCH) => Ok(Some(ExitStatus::default())),
        Ok(_) | Err(Errno::ECHILD | Errno::EINTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Kills the children that t2t inherited, until there are none: killing one hands over that one's children.
fn kill_orphans() {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let orphans = orphans();
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            kill(orphan, Signal::SIGKILL).ok();
            waitpid(orphan, Some(WaitPidFlag::WNOHANG)).ok();
        }
        thread::sleep(LOOK);
    }
}

fn orphans() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<Pid> = lists.flat_map(|list| parse(&list)).collect();
    let own = getsid(None).ok();
    children.into_iter().filter(|child| getsid(Some(*child)).ok() != own).collect()
}

fn parse(list: &str) -> Vec<Pid> {
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
