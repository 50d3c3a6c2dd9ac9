//! A child's own namespaces, where the kernel allows them: of users, which take away its power over what is outside; of mounts, in which only its own folders
//! can be written, whoever owns the rest; and of System V objects.
//!
//! It does not know Landlock. This second wall also covers `chmod` and file times, and threads that a device's driver started before. There is no process
//! namespace: nobody may signal its first process, itself included, so a crash would look different, and each child would need one more process. There is no
//! network namespace: no child has a socket that could use it.

use std::{
    ffi::{CStr, CString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::{
    errno::Errno,
    sched::{CloneFlags, unshare},
    unistd::{getegid, geteuid},
};

/// Whether this process has namespaces of its own.
static IS_APART: AtomicBool = AtomicBool::new(false);

/// The folder that a device's driver writes to: the names of its threads.
const PROCESSES: &CStr = c"/proc";

/// Whether the kernel lets a child have its own namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// It does.
    Own,
    /// It does not, or would only in part.
    Shared,
}

/// Tries it in a short-lived process, which takes about a millisecond. Called before the first import, while this process is small and has one thread.
pub(crate) fn tried() -> Namespaces {
    // SAFETY: this process has one thread, so the child may do what it likes; it ends in `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let stands = enter().is_ok() && keep_writing_in(&[Path::new("/usr")], true) == Ok(Namespaces::Own);
        // SAFETY: _exit takes a number.
        unsafe { libc::_exit(i32::from(!stands)) }
    }
    let ended = loop {
        let mut status = 0;
        // SAFETY: waitpid only writes the status.
        match unsafe { libc::waitpid(child, &raw mut status, 0) } {
            found if found == child && child > 0 => break Some(status),
            _ if child > 0 && Errno::last() == Errno::EINTR => {}
            _ => break None,
        }
    };
    if ended == Some(0) { Namespaces::Own } else { Namespaces::Shared }
}

/// Enters namespaces of its own, with the same user and group as before. There it has all capabilities over the namespace's own things, until it drops them. A
/// namespace that the kernel refuses now, though it allowed it before, is left out: the machine may have reached its limit of namespaces.
pub(crate) fn enter() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    if unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC).is_err() {
        return Ok(());
    }
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| format!("{file}: {error}"))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    IS_APART.store(true, Ordering::Relaxed);
    Ok(())
}

/// Says whether this process has namespaces of its own.
pub(crate) fn is_apart() -> bool {
    IS_APART.load(Ordering::Relaxed)
}

/// Changes of a mount, as the kernel reads them.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    descriptor: u64,
}

const READ_ONLY: u64 = 1;

/// Which mounts a call is about.
#[derive(Clone, Copy)]
enum Reach {
    One,
    Below,
}

/// Makes every mount read-only but these folders, if this process has a mount namespace of its own; otherwise it does nothing. With a device, names of threads
/// can be written, too. Returns whether it did: while somebody writes to a file of a mount, the kernel refuses, and then all mounts stay as they are.
pub(crate) fn keep_writing_in(folders: &[&Path], device: bool) -> Result<Namespaces, String> {
    let named =
        |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path with a zero byte".to_owned());
    let folders = folders.iter().map(|path| named(path)).collect::<Result<Vec<_>, _>>()?;
    if !is_apart() || folders.iter().any(|folder| mount_again(folder).is_err()) {
        return Ok(Namespaces::Shared);
    }
    let all = Attributes { set: READ_ONLY, propagation: libc::MS_PRIVATE, ..Attributes::default() };
    if change(c"/", Reach::Below, &all).is_err() {
        return Ok(Namespaces::Shared);
    }
    let writable = Attributes { clear: READ_ONLY, ..Attributes::default() };
    for folder in &folders {
        change(folder, Reach::One, &writable)
            .map_err(|error| format!("mount of {}: {error}", folder.to_string_lossy()))?;
    }
    if device {
        change(PROCESSES, Reach::One, &writable).map_err(|error| format!("mount of /proc: {error}"))?;
    }
    Ok(Namespaces::Own)
}

/// Mounts a folder over itself, so that it has a mount of its own that can stay writable.
fn mount_again(folder: &CStr) -> io::Result<()> {
    let (flags, none) = (libc::MS_BIND | libc::MS_REC, std::ptr::null());
    // SAFETY: both paths end in a zero byte, and the rest may be null.
    let mounted = unsafe { libc::mount(folder.as_ptr(), folder.as_ptr(), none, flags, none.cast()) };
    if mounted == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn change(folder: &CStr, reach: Reach, attributes: &Attributes) -> io::Result<()> {
    let flags = match reach {
        Reach::One => 0,
        Reach::Below => libc::AT_RECURSIVE,
    };
    let size = size_of::<Attributes>();
    // SAFETY: the path ends in a zero byte, and the call only reads as many bytes as it is told.
    let changed = unsafe {
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, folder.as_ptr(), flags, &raw const *attributes, size)
    };
    if changed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
