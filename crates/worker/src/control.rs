//! The socket to t2t: frames in and out, never blocking once the server serves.
//!
//! It does not know what the messages ask for. If t2t does not read (stopped, or busy), the server must still kill children at their deadlines, so messages
//! that cannot be sent now wait in memory.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use serde::de::DeserializeOwned;
use t2t_protocol::{FrameReader, FromWorker, encode};

const CHUNK: usize = 16 << 10;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// t2t is there.
    Present,
    /// t2t has gone, or sends garbage; the server treats both alike.
    Gone,
}

/// The server's end of the socket.
#[derive(Debug)]
pub(crate) struct Control {
    stream: UnixStream,
    reader: FrameReader,
    outbox: VecDeque<u8>,
}

impl Control {
    /// Speaks over a connected socket.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { stream: socket.into(), reader: FrameReader::default(), outbox: VecDeque::new() }
    }

    /// Waits for one message.
    pub(crate) fn wait<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut chunk = [0; CHUNK];
        loop {
            if let Some(message) = self.next_message()? {
                return Ok(message);
            }
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.reader.push(&chunk[..count]);
        }
    }

    /// Returns the next message among the bytes that have come.
    pub(crate) fn next_message<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.reader.next_message().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Makes all later reads and writes return at once.
    pub(crate) fn stop_blocking(&self) -> io::Result<()> {
        self.stream.set_nonblocking(true)
    }

    /// Reads what is there.
    pub(crate) fn receive(&mut self) -> Peer {
        let mut chunk = [0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Peer::Gone,
                Ok(count) => self.reader.push(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Peer::Present,
                Err(_) => return Peer::Gone,
            }
        }
    }

    /// Sends a message, or keeps it until [`Control::flush`] can.
    pub(crate) fn send(&mut self, message: &FromWorker) -> Result<(), t2t_protocol::FrameError> {
        self.outbox.extend(encode(message)?);
        self.flush();
        Ok(())
    }

    /// Sends waiting messages. The next read shows whether t2t has gone.
    pub(crate) fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match self.stream.write(self.outbox.as_slices().0) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.outbox.clear(),
            }
        }
    }

    /// Says whether something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.outbox.is_empty()
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
