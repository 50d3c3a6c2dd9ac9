//! A child's reports to its server: a private pipe with frames that carry a secret.
//!
//! It does not know what a report means. A frame is a big-endian `u32` length of what follows, the secret, one byte for its kind, and a body. Kernel code
//! shares the process with the writer. It can find the descriptor and write to it, but the server recognizes bytes without the secret as garbage, and a second
//! answer as one.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    process,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

const LENGTH: usize = 4;
const SECRET: usize = 16;
const OVERHEAD: usize = SECRET + 1;
/// The most bytes of all paths that one child may report. A path beyond that would be a lost dependency, so it spoils the reply.
const PATHS: usize = 8 << 20;
/// The bytes of an error's text.
const TEXT: usize = 1 << 20;

/// Makes the frames of one child unforgeable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Secret([u8; SECRET]);

impl Secret {
    /// Draws a new one.
    pub(crate) fn draw() -> io::Result<Self> {
        let mut bytes = [0; SECRET];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }
}

/// What a child has to say at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The function returned.
    Reply(Value),
    /// The function raised.
    Raised { kind: String, message: String, traceback: String },
    /// The function left by `sys.exit`.
    Exit(i32),
    /// What the function returned is no reply.
    Bad(String),
    /// The work could not begin.
    Refused(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Began = 1,
    Opened = 2,
    Answer = 3,
    Ready = 4,
}

/// The child's end. Only the process that was forked for the action writes to it; forks of that process inherit the descriptor and stay silent.
struct Writer {
    file: File,
    /// The pipe's device and inode. If kernel code has put another file over the descriptor, nothing is written to it.
    identity: Option<(u64, u64)>,
    secret: Secret,
    owner: u32,
}

static WRITER: OnceLock<Mutex<Writer>> = OnceLock::new();

/// Opens the channel of this process; a child does it once.
pub(crate) fn open(pipe: OwnedFd, secret: Secret) {
    let file = pipe.into();
    let writer = Writer { identity: identity(&file), file, secret, owner: process::id() };
    // A second call cannot happen: the child is made by fork, from a server that never opens one.
    WRITER.set(Mutex::new(writer)).ok();
}

/// Says that this process is ready for a request.
pub(crate) fn ready() {
    send(Kind::Ready, &[]);
}

/// Says that the work begins now. From here on the child's end is not the machine's fault.
pub(crate) fn began() {
    send(Kind::Began, &[]);
}

/// Reports a file.
pub(crate) fn opened(path: &str) {
    send(Kind::Opened, path.as_bytes());
}

/// Answers.
pub(crate) fn answer(answer: &Answer) {
    let body = serde_json::to_vec(answer).unwrap_or_default();
    send(Kind::Answer, &body);
}

/// Says whether this process is the one that may speak.
pub(crate) fn is_owner() -> bool {
    writer().is_some_and(|writer| writer.owner == process::id())
}

fn writer() -> Option<MutexGuard<'static, Writer>> {
    WRITER.get().map(|writer| writer.lock().unwrap_or_else(PoisonError::into_inner))
}

fn identity(file: &File) -> Option<(u64, u64)> {
    let stat = nix::sys::stat::fstat(file).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

fn send(kind: Kind, body: &[u8]) {
    let Some(mut writer) = writer().filter(|writer| writer.owner == process::id()) else { return };
    let Ok(length) = u32::try_from(OVERHEAD + body.len()) else { return };
    let mut frame = Vec::with_capacity(LENGTH + OVERHEAD + body.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&writer.secret.0);
    frame.push(kind as u8);
    frame.extend_from_slice(body);
    if identity(&writer.file) != writer.identity {
        // A file that kernel code put there could read the secret.
        return;
    }
    // A failure is no error: if the kernel code has closed the descriptor, the server sees that there is no reply, and that is true.
    writer.file.write_all(&frame).ok();
}

/// The server's end: everything that one child has said.
#[derive(Debug)]
pub(crate) struct Heard {
    secret: Secret,
    limit: usize,
    bytes: Vec<u8>,
    paths: usize,
    /// Whether it got ready for a request.
    pub is_ready: bool,
    /// Whether the work began.
    pub began: bool,
    /// The files that were reported.
    pub opened: BTreeSet<String>,
    /// The answer, if one came.
    pub answer: Option<Answer>,
    /// Why the child's reports cannot be trusted.
    pub spoiled: Option<String>,
}

impl Heard {
    /// Listens to a child whose answer may have so many bytes.
    pub(crate) fn new(secret: Secret, limit: u64) -> Self {
        Self {
            secret,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            bytes: Vec::new(),
            paths: 0,
            is_ready: false,
            began: false,
            opened: BTreeSet::new(),
            answer: None,
            spoiled: None,
        }
    }

    /// Listens, from the next request on, to a child that has answered one.
    pub(crate) fn again(&self) -> Self {
        Self { is_ready: true, ..Self::new(self.secret, 0) }
    }

    /// Expects an answer of at most so many bytes.
    pub(crate) fn expect(&mut self, limit: u64) {
        self.limit = usize::try_from(limit).unwrap_or(usize::MAX);
    }

    /// Takes the next bytes. Once spoiled, it drops them.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.spoiled.is_some() {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        if let Err(reason) = self.take_frames() {
            self.spoil(reason);
        }
    }

    /// Says whether all reports can be trusted and are whole.
    pub(crate) fn is_sound(&self) -> bool {
        self.spoiled.is_none() && self.bytes.is_empty()
    }

    /// Ends the stream. Half a frame spoils it.
    pub(crate) fn finish(&mut self) {
        if self.spoiled.is_none() && !self.bytes.is_empty() {
            self.spoil(format!("{} stray bytes at the end", self.bytes.len()));
        }
    }

    fn spoil(&mut self, reason: String) {
        self.spoiled = Some(reason);
        self.bytes = Vec::new();
    }

    fn take_frames(&mut self) -> Result<(), String> {
        while let Some(length) = self.length_of_frame(&self.bytes)? {
            let frame: Vec<u8> = self.bytes.drain(..LENGTH + length).skip(LENGTH).collect();
            self.take(frame[SECRET], &frame[OVERHEAD..])?;
        }
        Ok(())
    }

    /// Measures the first frame; `None` until it is whole. The secret is compared as soon as it is there, so that
    /// garbage is not waited for.
    fn length_of_frame(&self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let Some((length, after)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let Some(secret) = after.first_chunk::<SECRET>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if *secret != self.secret.0 || length < OVERHEAD {
            return Err("bytes that the worker did not write".to_owned());
        }
        if length - OVERHEAD > self.limit.max(TEXT) {
            return Err(format!("a reply of {} bytes is longer than {}", length - OVERHEAD, self.limit));
        }
        Ok((after.len() >= length).then_some(length))
    }

    fn take(&mut self, kind: u8, body: &[u8]) -> Result<(), String> {
        match kind {
            kind if kind == Kind::Ready as u8 => self.is_ready = true,
            kind if kind == Kind::Began as u8 => self.began = true,
            kind if kind == Kind::Opened as u8 => self.take_path(body)?,
            kind if kind == Kind::Answer as u8 => self.take_answer(body)?,
            other => return Err(format!("a frame of unknown kind {other}")),
        }
        Ok(())
    }

    fn take_path(&mut self, body: &[u8]) -> Result<(), String> {
        self.paths += body.len();
        if self.paths > PATHS {
            return Err(format!("it opened more files than {PATHS} bytes of names can say"));
        }
        self.opened.insert(String::from_utf8_lossy(body).into_owned());
        Ok(())
    }

    fn take_answer(&mut self, body: &[u8]) -> Result<(), String> {
        if self.answer.is_some() {
            return Err("a second reply".to_owned());
        }
        let answer = serde_json::from_slice(body).map_err(|error| format!("a reply that does not parse: {error}"))?;
        if matches!(answer, Answer::Reply(_)) && body.len() > self.limit {
            return Err(format!("a reply of {} bytes is longer than {}", body.len(), self.limit));
        }
        self.answer = Some(answer);
        Ok(())
    }
}
