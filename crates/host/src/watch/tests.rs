//! Watching, tried on real folders: what a batch holds, and when it is over.

use std::fs;
use std::sync::mpsc::Receiver;

use notify::event::{CreateKind, ModifyKind, RenameMode};
use tempfile::TempDir;

use super::gathered::WHOLE;
use super::*;

/// Longer than anything takes that works.
const SOON: Duration = Duration::from_mins(5);

/// A folder that is watched, and what is told of it.
struct Watched {
    folder: TempDir,
    watch: Watch,
    batches: Receiver<Option<Batch>>,
}

fn watched(how: How) -> Watched {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("kernels")).unwrap();
    fs::write(folder.path().join("kernels/a.py"), "one").unwrap();
    let (sender, batches) = channel();
    let lock = Some(folder.path().join("index.lock"));
    let places = Places::new(folder.path(), &["cache", "index.lock"], lock);
    let watch = Watch::start(places, how, move |batch| drop(sender.send(batch))).unwrap();
    Watched { folder, watch, batches }
}

impl Watched {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns what the next batches name, up to one that has `last`.
    fn until(&self, last: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        while !found.contains(last) {
            found.extend(self.names(self.batches.recv_timeout(SOON).unwrap()));
        }
        found
    }

    /// Writes a file until a batch names it: a folder that has just come is watched a moment later.
    fn until_written(&self, name: &str) {
        let end = Instant::now() + SOON;
        for text in 0_u64.. {
            fs::write(self.path(name), text.to_string()).unwrap();
            if self.batches.recv_timeout(4 * QUIET).is_ok_and(|batch| self.names(batch).contains(name)) {
                return;
            }
            assert!(Instant::now() < end, "{name} is not watched");
        }
    }

    /// Returns the paths of a batch, below the folder.
    fn names(&self, batch: Option<Batch>) -> BTreeSet<String> {
        let name = |path: &PathBuf| path.strip_prefix(self.folder.path()).unwrap().to_str().unwrap().to_owned();
        batch.unwrap_or_default().paths.iter().map(name).collect()
    }
}

#[test]
fn each_way_of_writing_is_a_change_of_that_file() {
    let watched = watched(How::Told);
    let file = watched.path("kernels/a.py");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    fs::write(&file, "two").unwrap();
    assert_eq!(watched.until("kernels/a.py"), names(&["kernels/a.py"]));
    fs::write(watched.path("kernels/.a.py.tmp"), "three").unwrap();
    fs::rename(watched.path("kernels/.a.py.tmp"), &file).unwrap();
    assert_eq!(watched.until("kernels/a.py"), names(&["kernels/a.py"]));
    fs::remove_file(&file).unwrap();
    assert_eq!(watched.until("kernels/a.py"), names(&["kernels/a.py"]));
    fs::write(&file, "four").unwrap();
    assert_eq!(watched.until("kernels/a.py"), names(&["kernels/a.py"]));
}

#[test]
fn folders_that_appear_are_watched_and_so_are_their_folders() {
    let watched = watched(How::Told);
    fs::create_dir_all(watched.path("kernels/new/deep")).unwrap();
    watched.until("kernels/new");
    watched.until_written("kernels/new/deep/b.py");
    fs::remove_dir_all(watched.path("kernels/new")).unwrap();
    watched.until("kernels/new");
    fs::create_dir_all(watched.path("kernels/new")).unwrap();
    watched.until_written("kernels/new/c.py");
}

/// Writes git's lock, while which no batch is over.
fn git_begins(watched: &Watched) {
    fs::write(watched.path("index.lock"), "").unwrap();
}

fn git_ends(watched: &Watched) {
    fs::remove_file(watched.path("index.lock")).unwrap();
}

#[test]
fn what_t2t_makes_is_no_batch() {
    let watched = watched(How::Told);
    fs::create_dir_all(watched.path("cache")).unwrap();
    fs::write(watched.path("cache/journal"), "one").unwrap();
    fs::write(watched.path("kernels/a.py"), "two").unwrap();
    assert_eq!(watched.until("kernels/a.py"), BTreeSet::from(["kernels/a.py".to_owned()]));
}

/// The events are there before they are gathered, so that a slow machine makes no two batches of them.
#[test]
fn what_came_and_went_within_a_batch_is_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, swap) = (folder.path().join("a.py"), folder.path().join("4913"));
    fs::write(&kept, "one").unwrap();
    let (sender, raw) = channel();
    let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
    let file = EventKind::Create(CreateKind::File);
    let removed = EventKind::Remove(notify::event::RemoveKind::File);
    for (kind, path) in [(file, &swap), (closed, &swap), (removed, &swap), (closed, &kept)] {
        sender.send(Raw::Event(Event::new(kind).add_path(path.clone()))).unwrap();
    }
    let (told, batches) = channel();
    let settler = Settler {
        places: Places::new(folder.path(), &[], None),
        folders: Folders { watcher: Box::new(notify::NullWatcher), watched: BTreeSet::new() },
        raw,
        counts: Arc::default(),
        how: How::Told,
        hold: Hold::default(),
    };
    let thread = thread::spawn(move || settler.run(&move |batch| drop(told.send(batch))));
    assert_eq!(batches.recv_timeout(SOON).unwrap().unwrap().paths, BTreeSet::from([kept]));
    sender.send(Raw::Stop).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_batch_is_not_over_while_git_holds_its_index() {
    let watched = watched(How::Told);
    git_begins(&watched);
    let names = ["b0", "b1", "b2", "b3", "b4"].map(|name| format!("kernels/{name}.py"));
    for name in &names {
        fs::write(watched.path(name), "one").unwrap();
        // Longer than a batch takes to become quiet. The lock does not become old meanwhile, as one that was left behind.
        thread::sleep(2 * QUIET);
        git_begins(&watched);
    }
    let end = Instant::now() + SOON;
    while !watched.watch.is_unsettled() {
        assert!(Instant::now() < end, "no event came");
        thread::sleep(QUIET);
        git_begins(&watched);
    }
    assert!(watched.batches.try_recv().is_err(), "git had not done");
    git_ends(&watched);
    let mut open = BTreeSet::from(names);
    while !open.is_empty() {
        let told = watched.names(watched.batches.recv_timeout(SOON).unwrap());
        open.retain(|name| !told.contains(name));
    }
}

#[test]
fn looking_finds_writes_of_one_second_and_new_folders() {
    let watched = watched(How::Looked(Duration::from_millis(20)));
    for text in ["two", "three", "four"] {
        fs::write(watched.path("kernels/a.py"), text).unwrap();
        watched.until("kernels/a.py");
    }
    fs::create_dir_all(watched.path("kernels/new")).unwrap();
    watched.until("kernels/new");
    fs::write(watched.path("kernels/new/b.py"), "one").unwrap();
    watched.until("kernels/new/b.py");
    fs::remove_file(watched.path("kernels/a.py")).unwrap();
    watched.until("kernels/a.py");
}

#[test]
fn a_full_table_is_told_with_the_setting_that_makes_room() {
    let full = refused(&notify::Error::new(ErrorKind::MaxFilesWatch));
    assert!(full.to_string().starts_with("cannot watch the workspace: the system's table of inotify watches is full"));
    assert!(full.hint.contains("`sudo sysctl fs.inotify.max_user_watches=1048576`"), "{}", full.hint);
    let none = refused(&notify::Error::io(io::Error::from_raw_os_error(24)));
    assert!(none.to_string().contains("(fs.inotify.max_user_instances"), "{none}");
    assert!(none.hint.contains("max_user_instances=1024") && none.hint.contains("--poll"), "{}", none.hint);
    let other = refused(&notify::Error::generic("no such thing"));
    assert_eq!(other.to_string(), "cannot watch the workspace: no such thing");
}

#[test]
fn a_file_that_is_written_to_and_not_closed_may_be_half_written() {
    use notify::event::DataChange;
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("a.py"), folder.path().join("b.py"));
    fs::write(&file, "one").unwrap();
    let event = |kind, path: &Path| Raw::Event(Event::new(kind).add_path(path.to_owned()));
    let (write, close) =
        (EventKind::Modify(ModifyKind::Data(DataChange::Any)), EventKind::Access(AccessKind::Close(AccessMode::Write)));
    for begin in [write, EventKind::Create(CreateKind::File)] {
        let mut gathered = Gathered::default();
        gathered.take(event(begin, &file));
        assert!(gathered.is_being_written(How::Told));
        assert!(!gathered.is_being_written(How::Looked(QUIET)), "who looks is not told of ends");
        gathered.take(event(close, &file));
        assert!(!gathered.is_being_written(How::Told));
    }
    fs::hard_link(&file, &link).unwrap();
    let mut gathered = Gathered::default();
    gathered.take(event(EventKind::Create(CreateKind::File), &link));
    assert!(!gathered.is_being_written(How::Told), "a link is made by nobody who closes it");
}

#[test]
fn a_file_that_was_there_and_is_whole_again_is_waited_for_less_than_one_that_came_or_went() {
    use notify::event::{DataChange, MetadataKind, RemoveKind};
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("a.py"), folder.path().join("b.py"));
    fs::write(&file, "one").unwrap();
    let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
    let name = |mode| EventKind::Modify(ModifyKind::Name(mode));
    let quiet = |events: &[(EventKind, &Path)]| {
        let mut gathered = Gathered::default();
        for (kind, path) in events {
            gathered.take(Raw::Event(Event::new(*kind).add_path(path.to_path_buf())));
        }
        gathered.quiet()
    };
    let saved = [(write, &*file), (write, &*file), (close, &*file)];
    assert_eq!(quiet(&saved), WHOLE);
    assert_eq!(quiet(&[(name(RenameMode::To), &file), (name(RenameMode::Both), &file)]), WHOLE);
    let then = |more: &[(EventKind, &Path)]| quiet(&[&saved[..], more].concat());
    let attribute = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    assert_eq!(then(&[(attribute, &file)]), QUIET, "who sets its mode may write again");
    assert_eq!(then(&[(write, &other), (close, &file)]), QUIET, "another one is open");
    assert_eq!(then(&[(name(RenameMode::From), &other), (close, &file)]), QUIET, "one has gone");
    assert_eq!(then(&[(EventKind::Remove(RemoveKind::File), &other), (close, &file)]), QUIET, "one has gone");
    assert_eq!(then(&[(EventKind::Create(CreateKind::File), &other), (close, &file)]), QUIET, "one has come");
    assert_eq!(then(&[(EventKind::Create(CreateKind::Folder), &other), (close, &file)]), QUIET, "one has come");
}

#[test]
fn a_lost_count_is_a_batch_of_anything() {
    let mut gathered = Gathered::default();
    gathered.take(Raw::Event(Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan)));
    assert!(gathered.is_partial && gathered.paths_are_none());
}

impl Gathered {
    fn paths_are_none(&self) -> bool {
        self.created.is_empty() && self.changed.is_empty() && self.gone.is_empty()
    }
}
