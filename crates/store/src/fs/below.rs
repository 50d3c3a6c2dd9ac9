//! Reading where others may have put anything: links, pipes and folders in the place of files.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::Mode;

/// Returns the bytes of the file `name` below `folder`, where others may have put anything. It must be a plain file of at most `most` bytes, with no link on
/// the way; anything else is [`io::ErrorKind::InvalidData`]. It never blocks, as opening a pipe would.
pub fn read_below(folder: &Path, name: &Path, most: u64) -> io::Result<Vec<u8>> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    if name.as_os_str().is_empty() || !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(refused("it does not lie in the folder"));
    }
    let opened = open_below(folder, name).map_err(|error| match error {
        Errno::ELOOP => refused("a link leads there"),
        Errno::EXDEV => refused("it does not lie in the folder"),
        Errno::ENXIO | Errno::ENOTDIR => refused("it is no file"),
        other => other.into(),
    });
    let file = File::from(opened?);
    if !file.metadata()?.is_file() {
        return Err(refused("it is no file"));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(refused(&format!("it is longer than {most} bytes")));
    }
    Ok(bytes)
}

/// Opens a file below a folder without following a link, in one step where the kernel can.
fn open_below(folder: &Path, name: &Path) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let way = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let start = open(folder, way, Mode::empty())?;
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    match openat2(&start, name, how) {
        // The kernel lacks the call, or a container refuses it.
        Err(Errno::ENOSYS | Errno::EPERM) => walk_below(start, name, way | OFlag::O_NOFOLLOW, flags),
        opened => opened,
    }
}

fn walk_below(start: OwnedFd, name: &Path, way: OFlag, flags: OFlag) -> nix::Result<OwnedFd> {
    let mut here = start;
    for part in name.parent().into_iter().flat_map(Path::components) {
        here = openat(&here, part.as_os_str(), way, Mode::empty())?;
    }
    openat(&here, name.file_name().unwrap_or_default(), flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nix::unistd::mkfifo;

    use super::*;

    /// What each way to open finds of a name.
    fn found(folder: &Path, name: &str) -> [Result<Vec<u8>, String>; 2] {
        let way = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let walked = open(folder, way, Mode::empty())
            .and_then(|start| walk_below(start, Path::new(name), way | OFlag::O_NOFOLLOW, flags))
            .map(File::from);
        let walked = walked.map_err(|error| error.to_string()).and_then(|file| {
            if !file.metadata().unwrap().is_file() {
                return Err("it is no file".to_owned());
            }
            let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file).to_string();
            Ok(fs::read(Path::new("/proc/self/fd").join(descriptor)).unwrap())
        });
        [read_below(folder, Path::new(name), 4).map_err(|error| error.to_string()), walked]
    }

    #[test]
    fn a_file_is_read_below_a_folder_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir_all(inside.join("deep")).unwrap();
        fs::write(inside.join("deep/file"), "four").unwrap();
        fs::write(inside.join("long"), "five!").unwrap();
        fs::write(folder.path().join("outside"), "out").unwrap();
        symlink("../outside", inside.join("link")).unwrap();
        symlink("deep", inside.join("way")).unwrap();
        symlink("/dev/zero", inside.join("endless")).unwrap();
        mkfifo(&inside.join("pipe"), Mode::S_IRWXU).unwrap();
        assert_eq!(found(&inside, "deep/file"), [Ok(b"four".to_vec()), Ok(b"four".to_vec())]);
        for name in ["link", "way/file", "endless", "pipe", "deep", "deep/file/more"] {
            assert!(found(&inside, name).iter().all(Result::is_err), "{name}");
        }
        let kind = |name: &str| read_below(&inside, Path::new(name), 4).unwrap_err().kind();
        for name in ["link", "way/file", "endless", "pipe", "deep", "long", "../outside", "/dev/zero", ""] {
            assert_eq!(kind(name), io::ErrorKind::InvalidData, "{name}");
        }
        assert_eq!(kind("absent"), io::ErrorKind::NotFound);
    }
}
