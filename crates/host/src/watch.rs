//! Watching: says when files of a workspace have changed, once for each settled batch of changes.
//!
//! Editors write in many ways, and a checkout writes hundreds of files. So a batch is over when nothing has happened for a moment. It does not know actions: a
//! batch says which files may have changed, and the caller looks at them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{Config, ErrorKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use t2t_store::fs;

mod gathered;
mod hold;
mod places;

use self::gathered::Gathered;
use self::hold::Hold;
pub use places::Places;

/// How long nothing happens before a batch is over.
const QUIET: Duration = Duration::from_millis(25);

/// How long a batch may take if it does not become quiet, or if a written file stays open.
const LONGEST: Duration = Duration::from_secs(1);

/// How changes are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By inotify.
    Told,
    /// By looking at all files this often: for network folders, for which inotify reports nothing.
    Looked(Duration),
}

/// A settled batch of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// What changed: files, and folders that appeared or went.
    pub paths: BTreeSet<PathBuf>,
    /// Whether more may have changed than is named: inotify's queue overflowed.
    pub is_partial: bool,
    /// What cannot be watched any more, in words.
    pub trouble: Option<String>,
    /// When the first of it came.
    pub since: Option<Instant>,
}

impl Batch {
    /// Returns whether nothing is said to have changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.is_partial && self.trouble.is_none()
    }
}

/// Why a workspace cannot be watched.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cannot watch the workspace: {message}")]
pub struct NoWatch {
    message: String,
    /// What to do about it.
    pub hint: String,
}

/// A workspace that is watched, until this is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Sender<Raw>,
    counts: Arc<Counts>,
}

/// What comes from the watcher's thread.
#[derive(Debug)]
enum Raw {
    Event(Event),
    Trouble(notify::Error),
    Stop,
}

/// How many raw events came, and how many of them belong to reported batches.
#[derive(Debug, Default)]
struct Counts {
    seen: AtomicU64,
    told: AtomicU64,
}

impl Watch {
    /// Watches `places`. `sink` gets each batch, on a thread of its own; None if the changes cancelled out, for example if a file came and went.
    pub fn start(places: Places, how: How, sink: impl Fn(Option<Batch>) + Send + 'static) -> Result<Self, NoWatch> {
        let (sender, raw) = channel();
        let counts = Arc::new(Counts::default());
        let handler = handler(places.clone(), sender.clone(), Arc::clone(&counts));
        let watcher: Box<dyn Watcher + Send> = match how {
            How::Told => {
                Box::new(RecommendedWatcher::new(handler, Config::default()).map_err(|error| refused(&error))?)
            }
            How::Looked(interval) => {
                // By their times alone, two writes within one second would be one.
                let config = Config::default().with_poll_interval(interval).with_compare_contents(true);
                Box::new(PollWatcher::new(handler, config).map_err(|error| refused(&error))?)
            }
        };
        let mut folders = Folders { watcher, watched: BTreeSet::new() };
        folders.add(&places, places.root()).map_err(|error| refused(&error))?;
        let settler = Settler { places, folders, raw, counts: Arc::clone(&counts), how, hold: Hold::default() };
        thread::spawn(move || settler.run(&sink));
        Ok(Self { stop: sender, counts })
    }

    /// Returns whether something has changed that no batch has reported yet.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.counts.told.load(Ordering::SeqCst) < self.counts.seen.load(Ordering::SeqCst)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // If the settler has gone, there is nothing to stop.
        let _ = self.stop.send(Raw::Stop);
    }
}

/// Passes on what matters.
fn handler(
    places: Places,
    sender: Sender<Raw>,
    counts: Arc<Counts>,
) -> impl FnMut(notify::Result<Event>) + Send + 'static {
    move |told| {
        let raw = match told {
            Ok(event) if is_change(&event) && (event.need_rescan() || places.concern(&event)) => Raw::Event(event),
            Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => Raw::Trouble(error),
            // Other errors say that a file went while it was looked at, which is reported as a change, too.
            _ => return,
        };
        counts.seen.fetch_add(1, Ordering::SeqCst);
        // Nobody listens once the watch has ended.
        let _ = sender.send(raw);
    }
}

/// Whether an event can mean that a file is different now.
fn is_change(event: &Event) -> bool {
    !matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
}

/// The folders that are watched, each by itself.
struct Folders {
    watcher: Box<dyn Watcher + Send>,
    watched: BTreeSet<PathBuf>,
}

impl Folders {
    /// Watches `folder` and those below it that may hold something of the workspace.
    fn add(&mut self, places: &Places, folder: &Path) -> notify::Result<()> {
        for found in places.folders(folder) {
            match self.watcher.watch(&found, RecursiveMode::NonRecursive) {
                Ok(()) => _ = self.watched.insert(found),
                // It went meanwhile, or may not be read.
                Err(error) if found != places.root() && !is_limit(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Forgets `folder` and those below it.
    fn remove(&mut self, folder: &Path) {
        let gone: Vec<PathBuf> = self.watched.iter().filter(|watched| watched.starts_with(folder)).cloned().collect();
        for folder in gone {
            // The system forgets folders that are gone by itself.
            let _ = self.watcher.unwatch(&folder);
            self.watched.remove(&folder);
        }
    }
}

/// Turns events into batches.
struct Settler {
    places: Places,
    folders: Folders,
    raw: Receiver<Raw>,
    counts: Arc<Counts>,
    how: How,
    hold: Hold,
}

impl Settler {
    fn run(mut self, sink: &dyn Fn(Option<Batch>)) {
        while let Ok(first) = self.raw.recv() {
            let Some(gathered) = self.gather(first) else { return };
            let count = gathered.count;
            let batch = self.settle(gathered);
            sink(Some(batch).filter(|batch| !batch.is_empty()));
            self.counts.told.fetch_add(count, Ordering::SeqCst);
        }
    }

    /// Gathers events until nothing happens for a moment and git has done; None when the watch ends.
    fn gather(&self, first: Raw) -> Option<Gathered> {
        let since = Instant::now();
        let mut gathered = Gathered::since(since);
        let (mut begun, mut has_worked) = (since, false);
        let mut next = Ok(first);
        loop {
            let is_quiet = match next {
                Ok(Raw::Stop) | Err(RecvTimeoutError::Disconnected) => return None,
                Ok(raw) => {
                    gathered.take(raw);
                    false
                }
                Err(RecvTimeoutError::Timeout) => true,
            };
            // Events in the queue belong to this batch even if its time is over.
            if let Ok(raw) = self.raw.try_recv() {
                next = Ok(raw);
                continue;
            }
            let is_late = begun.elapsed() > LONGEST;
            if is_quiet || is_late {
                if self.git_works() {
                    (begun, has_worked) = (Instant::now(), true);
                } else if is_late && std::mem::take(&mut has_worked) {
                    // The events of git's last writes may still be on their way, so the batch has to become quiet once more.
                    begun = Instant::now();
                } else if is_late || !gathered.is_being_written(self.how) {
                    return Some(gathered);
                }
            }
            next = self.raw.recv_timeout(gathered.quiet());
        }
    }

    /// Whether git is changing files: it holds its index meanwhile.
    fn git_works(&self) -> bool {
        let made = self.places.git_lock().and_then(fs::folder_time);
        made.is_some_and(|made| self.hold.lasts(made, fs::now(), Instant::now()))
    }

    /// Has new folders watched, and returns what changed in the end.
    fn settle(&mut self, gathered: Gathered) -> Batch {
        let Gathered { created, changed, gone, folders, is_partial, trouble, since, .. } = gathered;
        for path in &gone {
            self.folders.remove(path);
        }
        let anew = if is_partial { BTreeSet::from([self.places.root().to_owned()]) } else { folders };
        let mut trouble = trouble;
        for folder in anew {
            if let Err(error) = self.folders.add(&self.places, &folder) {
                trouble = Some(error);
                break;
            }
        }
        // What came and went is no change; nor is a folder in which something happened.
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let came = created.into_iter().filter(is_there);
        let paths = came.chain(changed).chain(gone).collect();
        Batch { paths, is_partial, trouble: trouble.map(|error| refused(&error).message), since }
    }
}

fn is_limit(error: &notify::Error) -> bool {
    const EMFILE: i32 = 24;
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => error.raw_os_error() == Some(EMFILE),
        _ => false,
    }
}

/// Returns what the system refused, and what can be done about it.
fn refused(error: &notify::Error) -> NoWatch {
    let remedy = |name: &str, value: u32| {
        format!(
            "allow more: `sudo sysctl fs.inotify.{name}={value}` (and a line in /etc/sysctl.d to keep it), or look instead with `t2t watch --poll`"
        )
    };
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            let name = "max_user_watches";
            let message = format!("the system's table of inotify watches is full (fs.inotify.{name}{})", limit(name));
            NoWatch { message, hint: remedy(name, 1_048_576) }
        }
        ErrorKind::Io(_) if is_limit(error) => {
            let name = "max_user_instances";
            // The error's own text is left out: it would blame the limit on open files alone.
            let message = format!("no inotify instance is left (fs.inotify.{name}{})", limit(name));
            let hint = format!("{}; where `ulimit -n` is small, raise that", remedy(name, 1024));
            NoWatch { message, hint }
        }
        _ => NoWatch { message: error.to_string(), hint: "look instead with `t2t watch --poll`".to_owned() },
    }
}

/// Returns ` = N`, the system's limit of this name, where it can be read.
fn limit(name: &str) -> String {
    let read = fs::read(Path::new(&format!("/proc/sys/fs/inotify/{name}")));
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other)).unwrap_or_default();
    if text.trim().is_empty() { String::new() } else { format!(" = {}", text.trim()) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests are somebody who edits files")]
mod tests;
