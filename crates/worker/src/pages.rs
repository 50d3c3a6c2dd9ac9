//! Huge pages for the server's memory. A fork copies its page table, and the child's end frees the copy. With pages of 2 MiB the table is a fraction as long.
//!
//! It does not know what lies in the pages, and does not change it. If the kernel cannot do this (before 6.1), or is configured not to, nothing happens.

use std::{fs, ops::Range};

/// The kernel's switch for huge pages.
const SWITCH: &str = "/sys/kernel/mm/transparent_hugepage";
/// The largest size used: larger pages would waste memory.
const SIZE: usize = 2 << 20;

/// Has the kernel move the heap and Python's objects into huge pages, as far as they fill them. It takes a few tenths of a second.
pub(crate) fn enlarge() {
    if !is_allowed() {
        return;
    }
    let mappings = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for place in mappings.lines().filter_map(own_memory).flat_map(whole_pages) {
        collapse(place);
    }
}

fn is_allowed() -> bool {
    let read = |name: &str| fs::read_to_string(format!("{SWITCH}/{name}")).unwrap_or_default();
    read("hpage_pmd_size").trim().parse() == Ok(SIZE) && !read("enabled").contains("[never]")
}

/// Reads a line of /proc/self/maps, `FROM-TO PERMISSIONS OFFSET DEVICE INODE NAME`; `None` unless it is memory of no file that is written to.
fn own_memory(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let is_private = fields.next()? == "rw-p";
    let is_own = fields.nth(3).is_none_or(|name| name == "[heap]");
    let number = |text| usize::from_str_radix(text, 16).ok();
    (is_private && is_own).then_some(number(from)?..number(to)?)
}

/// Lists the addresses of the huge pages within a mapping.
fn whole_pages(mapping: Range<usize>) -> impl Iterator<Item = usize> {
    let first = mapping.start.next_multiple_of(SIZE);
    (first..mapping.end).step_by(SIZE).filter(move |place| place + SIZE <= mapping.end)
}

/// Makes one huge page from small ones. The kernel leaves them if there is nothing to gain, or no memory for it.
fn collapse(place: usize) {
    const COLLAPSE: libc::c_int = 25;
    // SAFETY: the call changes which pages hold this memory, not what it holds. A mapping that has gone meanwhile is an error.
    unsafe { libc::madvise(place as *mut libc::c_void, SIZE, COLLAPSE) };
}
