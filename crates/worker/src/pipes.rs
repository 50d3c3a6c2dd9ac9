//! The three pipes between the server and a child: what it prints, and what it says.
//!
//! They do not know what goes through them.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::pipe2,
};

const CHUNK: usize = 16 << 10;
/// How many chunks of one pipe are read before the others get their turn, so that a child that floods one cannot starve them.
pub(crate) const TURN: usize = 16;

/// The read end of a pipe from the child; `None` once all writers have closed it.
#[derive(Debug)]
pub(crate) struct Pipe(Option<File>);

impl Pipe {
    /// Makes a pipe, and returns its write end beside it.
    fn new() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok((Self(Some(read.into())), write))
    }

    /// Gives what is there to `sink`, up to a number of chunks.
    pub(crate) fn drain(&mut self, chunks: usize, mut sink: impl FnMut(&[u8])) {
        let mut chunk = [0; CHUNK];
        for _ in 0..chunks {
            let Some(file) = &mut self.0 else { return };
            match file.read(&mut chunk) {
                Ok(0) => self.0 = None,
                Ok(count) => sink(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.0 = None,
            }
        }
    }
}

/// The three pipes of a child, as the server has them.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub stdout: Pipe,
    pub stderr: Pipe,
    pub reply: Pipe,
}

/// The three pipes of a child, as the child has them.
#[derive(Debug)]
pub(crate) struct Ends {
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub reply: OwnedFd,
}

impl Pipes {
    /// Makes both sides.
    pub(crate) fn new() -> io::Result<(Self, Ends)> {
        let (stdout, stdout_end) = Pipe::new()?;
        let (stderr, stderr_end) = Pipe::new()?;
        let (reply, reply_end) = Pipe::new()?;
        Ok((Self { stdout, stderr, reply }, Ends { stdout: stdout_end, stderr: stderr_end, reply: reply_end }))
    }

    /// Lists those that are still open for writing.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.stdout, &self.stderr, &self.reply].into_iter().filter_map(|pipe| pipe.0.as_ref().map(AsFd::as_fd))
    }
}
