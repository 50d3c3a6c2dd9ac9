//! The pipe through which a child that was made ready gets its requests.
//!
//! It does not know what they ask for.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use t2t_protocol::{FrameReader, Request};

/// Where the pipe lies in the child.
pub(crate) const ORDERS: RawFd = 4;

const CHUNK: usize = 64 << 10;

/// The child's end. Dropping it closes the pipe.
#[derive(Debug)]
pub(crate) struct Orders {
    file: File,
    reader: FrameReader,
    chunk: Vec<u8>,
}

impl Orders {
    /// Takes the pipe; a child does it once, when it is ready.
    pub(crate) fn open() -> Self {
        // SAFETY: `take_descriptors` put the pipe there, and nothing else in this process uses the number.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(ORDERS) });
        Self { file, reader: FrameReader::default(), chunk: vec![0; CHUNK] }
    }

    /// Returns the next request once it comes; `None` where the server closes the pipe instead.
    pub(crate) fn next(&mut self) -> Option<Request> {
        loop {
            match self.reader.next_message() {
                Ok(None) => {}
                Ok(request) => return request,
                Err(_) => return None,
            }
            match self.file.read(&mut self.chunk) {
                Ok(0) => return None,
                Ok(count) => self.reader.push(&self.chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// Says whether a request, or the end of the pipe, is there. Only before [`Orders::open`].
pub(crate) fn is_there() -> bool {
    // SAFETY: `take_descriptors` put the pipe there, and it is closed only after getting ready.
    let orders = unsafe { BorrowedFd::borrow_raw(ORDERS) };
    poll(&mut [PollFd::new(orders, PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|count| count > 0)
}
