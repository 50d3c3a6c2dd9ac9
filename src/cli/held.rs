//! The lock under which commands read ops.yaml and write it again, so that two of them at once both have their way.
//!
//! It is not the lock of the store: a build holds that for as long as it runs.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// Takes the lock on the workspace's folder, once others have let go of it; it is let go of with the value. Fails where the folder cannot be opened or locked.
pub(crate) fn hold(root: &Path) -> io::Result<Flock<File>> {
    Flock::lock(File::open(root)?, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
}
