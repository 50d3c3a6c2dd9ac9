//! An author: a program, or a server, that is asked for a kernel: its folder, its process group, its answer.
//!
//! It runs with the rights of the user, in a folder of its own that is gone afterwards. It does not know what is asked, nor whether an answer is right.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use t2t_store::fs;

mod answer;
#[cfg(feature = "chat")]
mod chat;

/// The variables that every author gets: where programs, the user's settings and temporary files are, the language, the terminal.
const PASSED: [&str; 15] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// The variable that tells an author what the kernel's file is called.
const FILE: &str = "T2T_FILE";

/// The files in an author's folder beside the kernel: what is asked, as text and as JSON, and what it may tell of its costs.
const PROMPT: &str = "prompt.md";
const REQUEST: &str = "request.json";
const USAGE: &str = "usage.json";

/// The most bytes that a kernel may have, and what an author prints.
const LONGEST: u64 = 1 << 20;
const LONGEST_OUTPUT: u64 = 16 << 20;

/// How much of what an author printed is told where it gave no kernel.
const TOLD: usize = 2000;

/// How often it is looked whether an author has ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long an author that is asked to end may take to.
const GRACE: Duration = Duration::from_secs(2);

/// How the folders of authors are called, before the numbers of the process and of the attempt.
const FOLDER: &str = "t2t-author-";

/// The process groups of authors that run.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// What is asked, and of whom.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The program and its arguments. A program with `/` in its name that is relative lies in the workspace.
    pub command: Vec<String>,
    /// The server that is asked in the place of a program.
    pub chat: Option<Chat>,
    /// The variables that a program gets beside those that every author does; of a server the one that holds its key.
    pub variables: Vec<String>,
    /// The workspace.
    pub root: PathBuf,
    /// What the kernel's file is to be called.
    pub file: String,
    /// What is asked, for its standard input.
    pub prompt: String,
    /// The same as JSON.
    pub request: String,
    /// How long it may take.
    pub timeout: Duration,
}

/// A server that speaks the chat-completions protocol.
#[derive(Debug, Clone, Default)]
pub struct Chat {
    /// Where it is, without `/chat/completions`.
    pub base_url: String,
    /// Which model is asked.
    pub model: String,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// How freely it is drawn.
    pub temperature: Option<f64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The text of a kernel file.
    Kernel(String),
    /// It answered, and not with a kernel. Why, for people.
    NoKernel(String),
    /// It did not answer in time.
    TimedOut,
    /// It could not answer. Why, for people.
    Failed(String),
    /// It was stopped.
    Stopped,
}

/// An answer, with what else the author told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// What it printed at the end, where it gave no kernel.
    pub printed: String,
    /// What it says that it took, as JSON.
    pub usage: Option<String>,
}

impl Answered {
    fn only(answer: Answer) -> Self {
        Self { answer, printed: String::new(), usage: None }
    }
}

/// The values of variables that may be secrets.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Returns what these variables hold. What is shorter than four letters is no secret.
    pub fn of<'a>(variables: impl IntoIterator<Item = &'a str>) -> Self {
        let values = variables.into_iter().filter_map(|name| env::var(name).ok());
        let mut values: Vec<String> = values.filter(|value| value.len() >= 4).collect();
        // One may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// Returns `text` with stars in the place of each.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, value| text.replace(value, "***"))
    }
}

/// Asks an author, and waits for the answer until it is `stopped`.
#[must_use]
pub fn ask(question: &Question, stopped: &dyn Fn() -> bool) -> Answered {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let secrets = Secrets::of(question.variables.iter().map(String::as_str));
    if let Some(chat) = &question.chat {
        return told_by_server(question, chat, &secrets, stopped);
    }
    let place = env::temp_dir().join(format!("{FOLDER}{}-{number}", std::process::id()));
    sweep(&env::temp_dir());
    let answered = asked(question, &place, &secrets, stopped)
        .unwrap_or_else(|error| Answered::only(Answer::Failed(secrets.hide(&error.to_string()))));
    // What cannot be removed takes nothing but space.
    let _ = fs::remove(&place);
    answered
}

#[cfg(not(feature = "chat"))]
fn told_by_server(_: &Question, _: &Chat, _: &Secrets, _: &dyn Fn() -> bool) -> Answered {
    Answered::only(Answer::Failed("t2t was built without the feature `chat`".to_owned()))
}

/// Asks a server. Its answer is text: a kernel is the block in it.
#[cfg(feature = "chat")]
fn told_by_server(question: &Question, chat: &Chat, secrets: &Secrets, stopped: &dyn Fn() -> bool) -> Answered {
    let mut key = None;
    if let Some(name) = question.variables.first() {
        match env::var(name) {
            Ok(value) if !value.is_empty() => key = Some(value),
            _ => {
                return Answered::only(Answer::Failed(format!(
                    "the variable `{name}`, which holds its key, is not set"
                )));
            }
        }
    }
    let (text, tokens) = match chat::ask(chat, key.as_deref(), &question.prompt, question.timeout, stopped) {
        chat::Ended::Said(text, tokens) => (secrets.hide(&text), tokens),
        // Whatever was said at last is why it never came to an answer.
        chat::Ended::Refused(why) | chat::Ended::TooLate(Some(why)) => {
            return Answered::only(Answer::Failed(secrets.hide(&why)));
        }
        chat::Ended::TooLate(None) => return Answered::only(Answer::TimedOut),
        chat::Ended::Stopped => return Answered::only(Answer::Stopped),
    };
    let usage = tokens.map(|tokens| format!("{{\"tokens\": {tokens}}}"));
    match answer::block(&text) {
        Ok(kernel) => Answered { answer: Answer::Kernel(kernel), printed: String::new(), usage },
        Err(why) => {
            Answered { answer: Answer::NoKernel(format!("of its answer: {why}")), printed: end_of(&text), usage }
        }
    }
}

/// Kills all authors of this process, and what they started.
pub fn kill_all() {
    for group in running().iter() {
        let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
    }
}

fn asked(question: &Question, place: &Path, secrets: &Secrets, stopped: &dyn Fn() -> bool) -> io::Result<Answered> {
    fs::remove(place)?;
    DirBuilder::new().mode(0o700).create(place)?;
    let folder = place.join("work");
    fs::make_folder(&folder)?;
    fs::write(&folder.join(PROMPT), question.prompt.as_bytes())?;
    fs::write(&folder.join(REQUEST), question.request.as_bytes())?;
    let (output, errors) = (place.join("output"), place.join("errors"));
    let mut child = command(question, &folder)
        .stdin(File::open(folder.join(PROMPT))?)
        .stdout(Stdio::from(fs::open_to_write(&output)?))
        .stderr(Stdio::from(fs::open_to_write(&errors)?))
        .spawn()
        .map_err(|error| fs::at(Path::new(&question.command[0]), &error))?;
    let group = Group::of(&child);
    let ended = wait(&group, question.timeout, [&output, &errors], stopped);
    group.end(ended == Ended::Itself);
    let status = child.wait()?;
    drop(group);
    // What is hidden is hidden before the text is cut: a part of a secret is none that could be found.
    let hidden = |bytes: Vec<u8>| secrets.hide(&String::from_utf8_lossy(&bytes));
    let tail = |path: &Path| fs::read(path).map(|bytes| end_of(&hidden(bytes))).unwrap_or_default();
    let printed = [tail(&output), tail(&errors)].join("\n").trim().to_owned();
    let told = |answer| Answered { answer, printed: printed.clone(), usage: None };
    match ended {
        Ended::Stopped => return Ok(Answered::only(Answer::Stopped)),
        Ended::TooLate => return Ok(told(Answer::TimedOut)),
        Ended::TooMuch => return Ok(told(Answer::NoKernel(format!("it printed more than {LONGEST_OUTPUT} bytes")))),
        Ended::Itself => {}
    }
    let answer = match kernel(question, &folder, &output) {
        Ok(kernel) => Answer::Kernel(secrets.hide(&kernel)),
        Err(_) if !status.success() => Answer::Failed(format!("`{}` ended with {status}", question.command[0])),
        Err(why) => Answer::NoKernel(secrets.hide(&why)),
    };
    let usage = fs::read_below(&folder, Path::new(USAGE), LONGEST).ok();
    let usage = usage.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| secrets.hide(&text));
    let printed = if matches!(answer, Answer::Kernel(_)) { String::new() } else { printed };
    Ok(Answered { answer, printed, usage })
}

fn command(question: &Question, folder: &Path) -> Command {
    let program = Path::new(&question.command[0]);
    let is_in_workspace = program.components().count() > 1 && program.is_relative();
    let program = if is_in_workspace { question.root.join(program) } else { program.to_owned() };
    let names = PASSED.into_iter().chain(question.variables.iter().map(String::as_str));
    let environment: BTreeMap<&str, OsString> =
        names.filter_map(|name| Some((name, env::var_os(name)?))).chain([(FILE, (&question.file).into())]).collect();
    let mut command = Command::new(program);
    command.args(&question.command[1..]).current_dir(folder).env_clear().envs(environment).process_group(0);
    command
}

/// Returns the kernel that an author left: the file of that name, or else the block that it printed. Else why there is none.
fn kernel(question: &Question, folder: &Path, output: &Path) -> Result<String, String> {
    let file = &question.file;
    match fs::read_below(folder, Path::new(file), LONGEST) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| format!("its file `{file}` is not UTF-8"))?;
            return if text.trim().is_empty() { Err(format!("its file `{file}` is empty")) } else { Ok(text) };
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(format!("its file `{file}` cannot be taken: {error}")),
    }
    let printed = fs::read(output).map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&printed);
    answer::block(&printed).map_err(|why| format!("it wrote no file `{file}`, and of what it printed: {why}"))
}

/// How an author came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Itself,
    TooLate,
    TooMuch,
    Stopped,
}

fn wait(group: &Group, timeout: Duration, outputs: [&Path; 2], stopped: &dyn Fn() -> bool) -> Ended {
    let start = Instant::now();
    loop {
        if group.leader_has_ended() {
            return Ended::Itself;
        }
        if stopped() {
            return Ended::Stopped;
        }
        if start.elapsed() >= timeout {
            return Ended::TooLate;
        }
        let size = |path: &Path| fs::stat(path).map_or(0, |stat| stat.size);
        if outputs.into_iter().any(|path| size(path) > LONGEST_OUTPUT) {
            return Ended::TooMuch;
        }
        thread::sleep(LOOK);
    }
}

/// The process group of an author, for as long as its leader is not waited for: no other group has its number then.
struct Group(Pid);

impl Group {
    fn of(child: &Child) -> Self {
        let number = i32::try_from(child.id()).expect("numbers of processes are positive");
        running().insert(number);
        Self(Pid::from_raw(number))
    }

    /// Returns whether the program has ended. It stays known to the system until it is waited for.
    fn leader_has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(self.0), flags), Ok(WaitStatus::StillAlive))
    }

    /// Ends the group. One whose program has not ended itself is asked to first.
    fn end(&self, has_ended: bool) {
        if !has_ended {
            let _ = killpg(self.0, Signal::SIGTERM);
            let end = Instant::now() + GRACE;
            while !self.leader_has_ended() && Instant::now() < end {
                thread::sleep(LOOK);
            }
        }
        let _ = killpg(self.0, Signal::SIGKILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        running().remove(&self.0.as_raw());
    }
}

/// A poisoned lock is fine: the value is changed by one call, so a thread that panicked left a whole one.
fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the folders of authors of processes that have ended.
fn sweep(temporary: &Path) {
    for name in fs::names(temporary) {
        let process = name.strip_prefix(FOLDER).and_then(|rest| rest.split('-').next()?.parse().ok());
        if process.is_some_and(|process: u32| process != std::process::id() && !fs::is_another_process(process)) {
            // Another user's stays.
            let _ = fs::remove(&temporary.join(name));
        }
    }
}

/// Returns the last lines of what was printed.
fn end_of(text: &str) -> String {
    let text = text.trim();
    let start = text.len().saturating_sub(TOLD);
    let start = (start..=text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(0);
    text[start..].to_owned()
}

#[cfg(test)]
mod tests;
