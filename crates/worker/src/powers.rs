//! Capabilities: root's rights beyond file permissions. A child has none, whoever runs t2t.
//!
//! It does not know the walls. Capabilities belong to a thread, so they are dropped right after the fork, before a device's driver starts other threads.

use std::io;

/// The third version of the call's layout: two words for each set.
const LAYOUT: u32 = 0x2008_0522;
/// More than any kernel knows.
const MOST: libc::c_ulong = 64;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops all capabilities of this thread, and those that programs could get when it starts them.
pub(crate) fn drop_all() -> io::Result<()> {
    empty_bounding_set();
    // SAFETY: prctl takes numbers here. A kernel without ambient capabilities has none to clear.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let (header, none) = (Header { version: LAYOUT, pid: 0 }, [Word::default(); 2]);
    // SAFETY: both are laid out as the call of this version reads them, and it only reads.
    let dropped = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if dropped == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Empties the bounding set, from which started programs get theirs. A refusal is no error: a process that may not do this has none, and the walls forbid
/// programs new privileges.
fn empty_bounding_set() {
    for capability in 0..MOST {
        // SAFETY: prctl takes numbers here.
        let is_known = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } == 0;
        if !is_known {
            return;
        }
    }
}
