//! The second server that one forks from its own imports, on t2t's side: asked for when the first is started, used for the next kind.
//!
//! It does not know kinds, nor what is imported. A server that knows nothing of it is no failure: then there is none.

use std::{
    io::{self, PipeReader, PipeWriter, Read},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use command_fds::{CommandFdExt, FdMapping};
use nix::unistd::Pid;
use t2t_protocol::{FrameReader, FromWorker, SPARE};

/// How long it is listened before it is asked whether it can still come.
const LOOK: Duration = Duration::from_millis(5);

/// A process that is forked, or will be, or never will.
#[derive(Debug)]
pub(crate) struct Spare {
    stream: UnixStream,
    output: PipeReader,
    is_settled: Arc<AtomicBool>,
}

/// The ends of a [`Spare`] that the server gets which forks it. While they are held it may still come.
#[derive(Debug)]
pub(crate) struct Ends {
    descriptors: Option<(OwnedFd, PipeWriter)>,
    is_settled: Arc<AtomicBool>,
}

/// A process that was forked and waits for a hello.
#[derive(Debug)]
pub(crate) struct Forked {
    pub(crate) pid: Pid,
    pub(crate) stream: UnixStream,
    pub(crate) output: PipeReader,
}

/// Makes both sides.
pub(crate) fn pair() -> io::Result<(Spare, Ends)> {
    let (stream, socket) = UnixStream::pair()?;
    let (output, sink) = io::pipe()?;
    let is_settled = Arc::new(AtomicBool::new(false));
    let ends = Ends { descriptors: Some((socket.into(), sink)), is_settled: Arc::clone(&is_settled) };
    Ok((Spare { stream, output, is_settled }, ends))
}

impl Ends {
    /// Has `command` inherit them, whoever starts something else meanwhile. They are closed here once the command is dropped.
    pub(crate) fn give(&mut self, command: &mut Command) -> io::Result<()> {
        let Some((socket, output)) = self.descriptors.take() else { return Ok(()) };
        let [own_socket, own_output] = SPARE;
        let mappings = vec![
            FdMapping { parent_fd: socket, child_fd: own_socket },
            FdMapping { parent_fd: output.into(), child_fd: own_output },
        ];
        command.fd_mappings(mappings).map(drop).map_err(io::Error::other)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.is_settled.store(true, Ordering::Release);
    }
}

impl Spare {
    /// Waits until it is there; `None` if it will not be.
    pub(crate) fn wait(mut self) -> Option<Forked> {
        self.stream.set_read_timeout(Some(LOOK)).ok()?;
        let mut reader = FrameReader::default();
        loop {
            // Asked before the look: what has settled has said already what it says.
            let is_settled = self.is_settled.load(Ordering::Acquire);
            let mut chunk = [0; 256];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => reader.push(&chunk[..count]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if is_settled {
                        return None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            let message = reader.next_message().ok()?;
            if let Some(FromWorker::Forked { pid }) = message {
                self.stream.set_read_timeout(None).ok()?;
                return Some(Forked { pid: Pid::from_raw(pid), stream: self.stream, output: self.output });
            }
        }
    }
}
