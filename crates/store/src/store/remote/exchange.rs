//! Traffic with the server: lookups, verified downloads, and uploads, each within its time limit.
//!
//! It does not know who waits for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use t2t_model::digest::Digest;
use t2t_model::record::{Blob, Record};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::{Client, Failed, for_size};
use super::entry::{self, Entry};
use super::server::{Connection, ROUNDS, locked};
use super::{Blobs, Wanted};
use crate::hashing;
use crate::store::cas::{Cas, Unavailable};

fn blob_name(digest: Digest) -> String {
    format!("cas/{digest}")
}

impl Connection {
    pub(super) async fn client(&self) -> Result<&Client, Failed> {
        let open = || Client::open(&self.place, self.mode, &self.credentials, self.limits);
        self.client.get_or_try_init(open).await
    }

    pub(super) fn warn(&self, kind: &'static str, text: &str) {
        self.counts.faults.fetch_add(1, Ordering::Relaxed);
        let mut told = locked(&self.told);
        if told.kinds.insert(kind) {
            told.warnings.push(format!("remote cache {}: {text}", self.place));
        }
    }

    /// Gets bytes under one of the permits for downloads.
    async fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, ()> {
        let _permit = self.downloads.acquire().await.map_err(|_| ())?;
        if !self.reading.lets_through(Instant::now()) {
            return Err(());
        }
        let limit = for_size(self.limits.look_up, most);
        let got = timeout(limit, async { self.client().await?.get(name, most).await }).await;
        match got.unwrap_or(Err(Failed::Late(limit))) {
            Ok(bytes) => {
                self.reading.worked();
                Ok(bytes)
            }
            Err(failed @ Failed::Refused(_)) => {
                // Some servers answer so for missing objects.
                self.warn("refused", &format!("cannot be read: {failed}; its entries count as missing"));
                Ok(None)
            }
            Err(failed) => {
                let opened = self.reading.failed(Instant::now());
                let then = if opened { ", and is left alone for a while" } else { "" };
                let kind = if opened { "pause" } else { "get" };
                self.warn(kind, &format!("cannot be read{then}: {failed}; the build goes on without it"));
                Err(())
            }
        }
    }

    /// Returns the verified entry of a key.
    pub(super) async fn look_up(&self, key: Digest) -> Option<Entry> {
        let entry = self.entry(key).await?;
        self.vouched(key, entry)
    }

    /// Notes the signers of an entry's records. If signatures are required, drops records that no trusted key signed. None where nothing is left.
    fn vouched(&self, key: Digest, mut entry: Entry) -> Option<Entry> {
        if self.signing.trust.is_empty() && !self.signing.is_required {
            return Some(entry);
        }
        let mut why = None;
        let mut signers = Vec::new();
        for record in &entry.records {
            match entry.signer(record, &self.signing.trust) {
                Ok(Some(signer)) => signers.push((record.digest(), signer)),
                Ok(None) => {}
                Err(refused) => why = Some(refused),
            }
        }
        if self.signing.is_required {
            let is_signed = |record: &Record| signers.iter().any(|(digest, _)| *digest == record.digest());
            entry.records.retain(is_signed);
        }
        locked(&self.signers).extend(signers);
        if !entry.records.is_empty() {
            return Some(entry);
        }
        let why = why.map_or("is not signed".to_owned(), |refused| format!("has a signature that {refused}"));
        self.disbelieve(&format!("the entry {} {why}", key.short()));
        None
    }

    async fn entry(&self, key: Digest) -> Option<Entry> {
        let bytes = self.get(&entry::name(key), entry::MOST).await.ok()??;
        match Entry::decode(key, &bytes, self.credentials.secret.as_ref()) {
            Ok(entry) => Some(entry),
            Err(unbelieved) => {
                self.disbelieve(&format!("the entry {} {unbelieved}", key.short()));
                None
            }
        }
    }

    fn disbelieve(&self, text: &str) {
        self.warn("disbelieved", &format!("{text}; it counts as missing"));
    }

    pub(super) async fn fetch(self: &Arc<Self>, blobs: Vec<Wanted>) -> Option<Blobs> {
        let mut downloads = JoinSet::new();
        for wanted in blobs {
            let shared = Arc::clone(self);
            downloads.spawn(async move { shared.fetch_one(wanted).await });
        }
        let mut found = Blobs::new();
        while let Some(download) = downloads.join_next().await {
            // If one blob fails, the others are useless: dropping the set cancels them.
            let (digest, bytes) = download.ok()??;
            found.insert(digest, bytes);
        }
        Some(found)
    }

    async fn fetch_one(&self, wanted: Wanted) -> Option<(Digest, Vec<u8>)> {
        let Wanted { digest, size } = wanted;
        let Some(bytes) = self.get(&blob_name(digest), size.unwrap_or(entry::MOST)).await.ok()? else {
            self.disbelieve(&format!("the blob {}, which an entry names, is not there", digest.short()));
            return None;
        };
        if hashing::of(&bytes) != digest || size.is_some_and(|size| size != bytes.len() as u64) {
            self.disbelieve(&format!("the blob {} does not match its digest", digest.short()));
            return None;
        }
        Some((digest, bytes))
    }

    /// Returns whether the result is there now.
    pub(super) async fn send(&self, record: Record, cas: Cas) -> bool {
        let Ok(_permit) = self.uploads.acquire().await else { return false };
        let may_not = || self.is_refused.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed);
        if may_not() || !self.writing.lets_through(Instant::now()) {
            return false;
        }
        let read = tokio::task::spawn_blocking(move || parts(&record, &cas).map(|parts| (record, parts))).await;
        let (record, (inline, large)) = match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                self.warn("local", &format!("a result is not uploaded: {error}"));
                return false;
            }
            Err(_) => return false,
        };
        // Blobs first: an entry never names what is not there yet.
        for (digest, bytes) in large {
            if locked(&self.sent).contains(&digest) {
                continue;
            }
            if may_not() || !self.put(&blob_name(digest), bytes).await {
                return false;
            }
            locked(&self.sent).insert(digest);
        }
        self.put_entry(record, inline).await
    }

    /// Writes the entry. An entry with several sets of discovered files is read before and after, so as not to lose another machine's set. If two machines
    /// write at the very same time one set may be lost; whoever needs it runs the action, and writes it again.
    async fn put_entry(&self, record: Record, inline: Blobs) -> bool {
        let (key, secret) = (record.key, self.credentials.secret.as_ref());
        let others = !record.discovered.is_empty();
        for _ in 0..ROUNDS {
            let known = if others { self.entry(key).await } else { None };
            let signing = self.signing.key.as_ref();
            let entry = known.unwrap_or_default().with(record.clone(), inline.clone(), signing);
            if !self.put(&entry::name(key), entry.encode(key, secret)).await {
                return false;
            }
            let is_there = |entry: &Entry| entry.records.iter().any(|other| other.discovered == record.discovered);
            if !others || self.entry(key).await.as_ref().is_some_and(is_there) {
                break;
            }
        }
        true
    }

    async fn put(&self, name: &str, bytes: Vec<u8>) -> bool {
        let limit = for_size(self.limits.look_up, bytes.len() as u64);
        let put = timeout(limit, async { self.client().await?.put(name, bytes).await }).await;
        match put.unwrap_or(Err(Failed::Late(limit))) {
            Ok(()) => {
                self.writing.worked();
                return true;
            }
            Err(failed @ (Failed::Refused(_) | Failed::NoPut(_))) => {
                self.is_refused.store(true, Ordering::Relaxed);
                self.warn("read-only", &format!("takes nothing from here: {failed}; it is only read"));
            }
            Err(failed) => {
                let opened = self.writing.failed(Instant::now());
                let then = if opened { ", and is left alone for a while" } else { "" };
                let kind = if opened { "pause of writing" } else { "put" };
                self.warn(kind, &format!("cannot be written{then}: {failed}"));
            }
        }
        false
    }

    pub(super) async fn all_sent(&self) {
        loop {
            // Registered before the count is read, so that an upload that ends in between is noticed.
            let drained = self.drained.notified();
            if self.pending.load(Ordering::SeqCst) == 0 {
                return;
            }
            drained.await;
        }
    }
}

/// Returns the blobs of a record: those that its entry holds itself, and the others.
fn parts(record: &Record, cas: &Cas) -> Result<(Blobs, Blobs), Unavailable> {
    let manifest = cas.get(record.key)?;
    let (mut inline, mut large) = (Blobs::new(), Blobs::new());
    let is_inline = manifest.len() as u64 <= entry::INLINE_MANIFEST;
    if is_inline { &mut inline } else { &mut large }.insert(record.key, manifest);
    for Blob { digest, size } in record.outputs.values() {
        let part = if *size <= entry::INLINE { &mut inline } else { &mut large };
        part.insert(*digest, cas.get(*digest)?);
    }
    Ok((inline, large))
}
