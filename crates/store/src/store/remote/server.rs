//! A remote cache in use: background lookups and uploads, counts, warnings.
//!
//! It does not know how bytes travel, nor what an entry holds.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use t2t_model::digest::Digest;
use t2t_model::record::Record;
use t2t_model::signature::{Signer, SigningKey};
use t2t_spec::remote::{Mode, RemoteUrl};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, OnceCell, Semaphore};
use tokio::time::timeout;

use super::breaker::Breaker;
use super::client::{Client, Failed};
use super::entry::{self, Entry};
use super::{Blobs, Checked, Credentials, Limits, NotBuilt, Signing, Used, Wanted};
use crate::store::cas::Cas;

/// How many downloads run at once. They wait for the server, not for this machine.
const DOWNLOADS: usize = 64;

/// How many results are uploaded at once.
const UPLOADS: usize = 16;

/// How often to check whether the user asked to stop.
const LOOK: Duration = Duration::from_millis(100);

/// How often an entry is rewritten if others write it at the same time.
pub(super) const ROUNDS: usize = 3;

/// A remote cache.
pub struct Remote {
    shared: Arc<Connection>,
    runtime: OnceLock<Option<Runtime>>,
}

pub(super) struct Connection {
    pub(super) place: RemoteUrl,
    pub(super) mode: Mode,
    pub(super) credentials: Credentials,
    pub(super) signing: Signing,
    /// Who signed what came, by the record's digest.
    pub(super) signers: Mutex<BTreeMap<Digest, Signer>>,
    pub(super) limits: Limits,
    pub(super) client: OnceCell<Client>,
    pub(super) reading: Breaker,
    pub(super) writing: Breaker,
    pub(super) downloads: Semaphore,
    pub(super) uploads: Semaphore,
    /// Whether the server was found to take nothing from us.
    pub(super) is_refused: AtomicBool,
    /// Whether the time for uploads is over.
    pub(super) is_over: AtomicBool,
    pub(super) pending: AtomicUsize,
    pub(super) drained: Notify,
    /// Large blobs that this process has sent.
    pub(super) sent: Mutex<HashSet<Digest>>,
    pub(super) told: Mutex<Told>,
    pub(super) counts: Counts,
}

#[derive(Default)]
pub(super) struct Told {
    /// Of each kind of fault only the first is told.
    pub(super) kinds: BTreeSet<&'static str>,
    pub(super) warnings: Vec<String>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) uploads: AtomicU64,
    pub(super) unsent: AtomicU64,
    pub(super) faults: AtomicU64,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({}, {})", self.shared.place, self.shared.mode.name())
    }
}

impl Remote {
    /// Returns the remote cache at a place. Nothing is started, and nobody asked. Fails where t2t was built without it.
    pub fn new(
        place: RemoteUrl,
        mode: Mode,
        credentials: Credentials,
        signing: Signing,
        limits: Limits,
    ) -> Result<Self, NotBuilt> {
        let shared = Connection {
            place,
            mode,
            credentials,
            signing,
            signers: Mutex::default(),
            limits,
            client: OnceCell::new(),
            reading: Breaker::new(limits.pause),
            writing: Breaker::new(limits.pause),
            downloads: Semaphore::new(DOWNLOADS),
            uploads: Semaphore::new(UPLOADS),
            is_refused: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            pending: AtomicUsize::new(0),
            drained: Notify::new(),
            sent: Mutex::default(),
            told: Mutex::default(),
            counts: Counts::default(),
        };
        Ok(Self { shared: Arc::new(shared), runtime: OnceLock::new() })
    }

    /// Returns where it lies. There are no credentials in it.
    #[must_use]
    pub fn place(&self) -> &RemoteUrl {
        &self.shared.place
    }

    /// Returns what may be done with it.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// Returns whether entries are tagged with a secret.
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        self.shared.credentials.secret.is_some()
    }

    /// Returns who signs what is left there.
    #[must_use]
    pub fn signing_key(&self) -> Option<&SigningKey> {
        self.shared.signing.key.as_ref()
    }

    /// Returns who signed a record that came from here: one of those that are trusted.
    #[must_use]
    pub fn signer_of(&self, record: &Record) -> Option<Signer> {
        locked(&self.shared.signers).get(&record.digest()).cloned()
    }

    /// Asks what is known under `key`, and returns at once. `then` is called on another thread, with None where nothing is known that can be believed, or nobody answers.
    pub fn look_up(&self, key: Digest, then: impl FnOnce(Option<Entry>) + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        self.ask(async move { shared.look_up(key).await }, then);
    }

    /// Asks for blobs, and returns at once. `then` is called on another thread, with None where one cannot be had. A blob that comes is what its digest says.
    pub fn fetch(&self, blobs: Vec<Wanted>, then: impl FnOnce(Option<Blobs>) + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        self.ask(async move { shared.fetch(blobs).await }, then);
    }

    fn ask<T: Send + 'static>(
        &self,
        work: impl Future<Output = Option<T>> + Send + 'static,
        then: impl FnOnce(Option<T>) + Send + 'static,
    ) {
        let Some(runtime) = self.runtime() else { return then(None) };
        let work = runtime.spawn(work);
        // A second task calls `then`, so that it is called even if the work panics.
        runtime.spawn(async move { then(work.await.unwrap_or(None)) });
    }

    /// Uploads a result in the background, if it may be shared.
    pub fn upload(&self, record: &Record, cas: &Cas) {
        if self.shared.mode != Mode::ReadWrite || !entry::is_shared(record) {
            return;
        }
        let Some(runtime) = self.runtime() else { return };
        self.shared.is_over.store(false, Ordering::Relaxed);
        let (pending, record, cas) = (Pending::new(&self.shared), record.clone(), cas.clone());
        runtime.spawn(async move {
            let shared = &pending.0;
            let is_sent = shared.send(record, cas).await;
            let count = if is_sent { &shared.counts.uploads } else { &shared.counts.unsent };
            // Uploads after the deadline were counted as unsent then.
            if is_sent || !shared.is_over.load(Ordering::Relaxed) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    /// Takes that a result that was looked for came, or that it did not.
    pub fn count(&self, is_hit: bool) {
        let counts = &self.shared.counts;
        if is_hit { &counts.hits } else { &counts.misses }.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns what went wrong since it was asked last, a line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.shared.told).warnings)
    }

    /// Waits until everything is uploaded, or the time for it is over, or `is_stopped`, and returns what was had of the remote cache since this was asked last;
    /// None where nothing was.
    #[must_use]
    pub fn drain(&self, is_stopped: impl Fn() -> bool) -> Option<Used> {
        let runtime = self.runtime.get()?.as_ref()?;
        let end = Instant::now() + self.shared.limits.drain;
        let look = || runtime.block_on(async { timeout(LOOK, self.shared.all_sent()).await });
        while look().is_err() && !self.shared.is_over.load(Ordering::Relaxed) {
            if Instant::now() < end && !is_stopped() {
                continue;
            }
            self.shared.is_over.store(true, Ordering::Relaxed);
            let left = self.shared.pending.load(Ordering::Relaxed);
            self.shared.warn("unsent", &format!("{left} results were not uploaded in time"));
            self.shared.counts.unsent.fetch_add(left as u64, Ordering::Relaxed);
        }
        let counts = &self.shared.counts;
        let taken = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let used = Used {
            hits: taken(&counts.hits),
            misses: taken(&counts.misses),
            uploads: taken(&counts.uploads),
            unsent: taken(&counts.unsent),
            faults: taken(&counts.faults),
        };
        Some(used).filter(|used| *used != Used::default())
    }

    /// Asks the server for something and, where it is written to, tries whether it takes something: an entry without results under the key of zeros, which no
    /// action has. It stays there, and each check puts the same bytes over it.
    #[must_use]
    pub fn check(&self) -> Checked {
        let Some(runtime) = self.runtime() else {
            return Checked { read: Err("no threads can be started".to_owned()), write: None };
        };
        let (shared, key) = (&self.shared, Digest::from([0; 32]));
        let (name, limit) = (&entry::name(key), shared.limits.look_up);
        let start = Instant::now();
        let asked = async { shared.client().await?.get(name, entry::MOST).await };
        let read = runtime.block_on(async { timeout(limit, asked).await }).unwrap_or(Err(Failed::Late(limit)));
        let time = start.elapsed();
        let is_tried = shared.mode == Mode::ReadWrite && matches!(read, Ok(_) | Err(Failed::Refused(_)));
        let write = is_tried.then(|| {
            let bytes = Entry::default().encode(key, shared.credentials.secret.as_ref());
            let put = async { shared.client().await?.put(name, bytes).await };
            let put = runtime.block_on(async { timeout(limit, put).await }).unwrap_or(Err(Failed::Late(limit)));
            put.map_err(|failed| failed.to_string())
        });
        Checked { read: read.map(|_| time).map_err(|failed| failed.to_string()), write }
    }

    fn runtime(&self) -> Option<&Runtime> {
        let start = || {
            let built = Builder::new_multi_thread().worker_threads(2).thread_name("remote").enable_all().build();
            let told = |error| self.shared.warn("threads", &format!("no threads can be started for it: {error}"));
            built.map_err(told).ok()
        };
        self.runtime.get_or_init(start).as_ref()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Without waiting for its threads: one may hang on a folder that never answers.
        if let Some(runtime) = self.runtime.take().flatten() {
            runtime.shutdown_background();
        }
    }
}

/// A pending upload. Dropping it counts it as done, so that a panic or cancellation leaves no count behind.
struct Pending(Arc<Connection>);

impl Pending {
    fn new(shared: &Arc<Connection>) -> Self {
        shared.pending.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.0.pending.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.drained.notify_waiters();
        }
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_check_leaves_one_entry_where_it_may_write_and_nothing_where_it_may_not() {
        let folder = tempfile::TempDir::new().unwrap();
        let place = RemoteUrl::parse(&format!("file://{}", folder.path().display())).unwrap();
        let checked = |mode| {
            let (credentials, signing) = (Credentials::default(), Signing::default());
            let remote = Remote::new(place.clone(), mode, credentials, signing, Limits::of(Duration::from_mins(1)));
            remote.unwrap().check()
        };
        let entries = || fs::read_dir(folder.path().join("ac")).map_or(0, Iterator::count);
        let read_only = checked(Mode::ReadOnly);
        assert!(read_only.read.is_ok() && read_only.write.is_none(), "{read_only:?}");
        assert_eq!(entries(), 0);
        for _ in 0..2 {
            assert_eq!(checked(Mode::ReadWrite).write, Some(Ok(())));
            assert_eq!(entries(), 1);
        }
        let key = Digest::from([0; 32]);
        let bytes = fs::read(folder.path().join(entry::name(key))).unwrap();
        assert_eq!(Entry::decode(key, &bytes, None), Ok(Entry::default()));
    }
}
