//! An entry: what a remote cache holds under an action key, verified when it is read.
//!
//! It holds one record for each set of discovered files that was seen under the key, and the bytes of small blobs. It does not know how entries travel, nor
//! which record stands.
//!
//! An entry is a line `t2t remote 1 CHECK TAG`, then the body: a line of JSON with the records and the lengths of the blobs, and the blobs one after another.
//! CHECK is the digest of domain, key and body, each behind its length; TAG the same under a secret, or `-`. The line of JSON also has the ssh signatures of records, by
//! the record's digest, where there are any: each record has the signature of whoever made it, whoever wrote the entry.
#![cfg_attr(not(feature = "remote"), expect(dead_code, reason = "nothing is read or written"))]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;
use t2t_model::record::{Blob, Outcome, Record};
use t2t_model::signature::{Purpose, Refused, Signer, SigningKey, Trust};

use crate::hashing;

/// The first words of every entry. 1: first.
const HEADER: &str = "t2t remote 1";

/// The context string that separates keys derived here from any other use of the same secret.
const CONTEXT: &str = "t2t remote cache 1: tag of an entry";

/// The longest entry that is read, in bytes.
pub(super) const MOST: u64 = 4 << 20;

/// The largest artifact that an entry holds itself, in bytes.
pub(super) const INLINE: u64 = 4 << 10;

/// The largest manifest that an entry holds itself, in bytes. Every reader of an entry needs it.
pub(super) const INLINE_MANIFEST: u64 = 64 << 10;

/// The largest blob that is sent or taken, in bytes.
pub(super) const MOST_OF_BLOB: u64 = 1 << 30;

/// How many records an entry holds.
const RECORDS: usize = 16;

/// The key that tags bodies. Nobody can make a tag without the secret.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Returns the key that `text` stands for.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        Self(blake3::derive_key(CONTEXT, text))
    }
}

/// What is known under one key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// The records, newest first.
    pub records: Vec<Record>,
    /// The bytes of some of the blobs.
    pub blobs: BTreeMap<Digest, Vec<u8>>,
    /// The signatures of some of the records, by the record's digest.
    pub signatures: BTreeMap<Digest, String>,
}

/// Why an entry does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unbelieved {
    /// Its bytes are no entry of this version.
    #[error("is not an entry of this version of t2t")]
    Foreign,
    /// Its bytes are not those it was written with, or it was written under another key.
    #[error("is damaged: its bytes do not match its digest")]
    Damaged,
    /// It has no tag, or one under another secret.
    #[error("has no tag, or one of another secret than `$T2T_REMOTE_SECRET`")]
    Untagged,
    /// It holds what no entry holds.
    #[error("has unexpected content")]
    Content,
}

/// The line in front of the blobs.
#[derive(Serialize, Deserialize)]
struct Index {
    records: Vec<Record>,
    lengths: Vec<usize>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    signatures: BTreeMap<Digest, String>,
}

/// Returns the name under which the entry of a key lies.
#[must_use]
pub(super) fn name(key: Digest) -> String {
    format!("ac/{key}")
}

/// Returns whether this result may be shared. A failure of the machine is no result, and another machine may meet a deadline that this one missed.
#[must_use]
pub(crate) fn is_shared(record: &Record) -> bool {
    let sizes = record.outputs.values().map(|blob| blob.size);
    !matches!(record.outcome, Outcome::Lost { .. }) && !record.outcome.is_timeout() && sizes.max() <= Some(MOST_OF_BLOB)
}

impl Entry {
    /// Returns the entry with a record in front of those with other discovered files. A record that discovered nothing holds for any files, so it replaces all
    /// others.
    #[must_use]
    pub(crate) fn with(mut self, record: Record, blobs: BTreeMap<Digest, Vec<u8>>, key: Option<&SigningKey>) -> Self {
        let canonical = key.map(|_| record.canonical());
        let signature = key.zip(canonical.as_ref()).and_then(|(key, text)| key.sign(Purpose::Record, text.as_bytes()));
        self.signatures.remove(&record.digest());
        self.signatures.extend(signature.map(|signature| (record.digest(), signature)));
        let is_alone = record.discovered.is_empty();
        self.records.retain(|other| !is_alone && other.discovered != record.discovered);
        self.records.insert(0, record);
        self.records.truncate(RECORDS);
        self.blobs.extend(blobs);
        let named = |digest: &Digest| {
            let names = |record: &Record| record.key == *digest || record.outputs.values().any(|b| b.digest == *digest);
            self.records.iter().any(names)
        };
        self.blobs.retain(|digest, _| named(digest));
        let kept: Vec<Digest> = self.records.iter().map(Record::digest).collect();
        self.signatures.retain(|digest, _| kept.contains(digest));
        self
    }

    /// Returns the trusted signer of a record; None where it is not signed.
    ///
    /// # Errors
    /// Why its signature does not count.
    pub(crate) fn signer(&self, record: &Record, trust: &Trust) -> Result<Option<Signer>, Refused> {
        let canonical = record.canonical();
        let signature = self.signatures.get(&Digest::of(canonical.as_bytes()));
        signature.map(|signature| trust.verify(Purpose::Record, canonical.as_bytes(), signature)).transpose()
    }

    /// Returns the bytes that stand for the entry under `key`.
    #[must_use]
    pub fn encode(&self, key: Digest, secret: Option<&Secret>) -> Vec<u8> {
        let index = Index {
            records: self.records.clone(),
            lengths: self.blobs.values().map(Vec::len).collect(),
            signatures: self.signatures.clone(),
        };
        let mut body = serde_json::to_vec(&index).expect("records are JSON");
        body.push(b'\n');
        self.blobs.values().for_each(|blob| body.extend(blob));
        let tag = secret.map_or_else(|| "-".to_owned(), |secret| digest_of(key, &body, Some(secret)).to_string());
        let mut bytes = format!("{HEADER} {} {tag}\n", digest_of(key, &body, None)).into_bytes();
        bytes.extend(body);
        bytes
    }

    /// Returns the entry that `bytes`, found under `key`, stand for. With a secret only what was written with it counts.
    pub fn decode(key: Digest, bytes: &[u8], secret: Option<&Secret>) -> Result<Self, Unbelieved> {
        let (line, body) = split(bytes, 256).ok_or(Unbelieved::Foreign)?;
        let words: Vec<&str> = line.strip_prefix(HEADER).ok_or(Unbelieved::Foreign)?.split_whitespace().collect();
        let [check, tag] = words[..] else { return Err(Unbelieved::Foreign) };
        if check != digest_of(key, body, None).to_string() {
            return Err(Unbelieved::Damaged);
        }
        if secret.is_some_and(|secret| !is_tag(tag, digest_of(key, body, Some(secret)))) {
            return Err(Unbelieved::Untagged);
        }
        let entry = read(body).ok_or(Unbelieved::Content)?;
        let is_right = |record: &Record| record.key == key && is_shared(record);
        if entry.records.iter().all(is_right) { Ok(entry) } else { Err(Unbelieved::Content) }
    }

    /// Returns the bytes of a blob, where the entry holds them.
    #[must_use]
    pub fn blob(&self, blob: Blob) -> Option<&Vec<u8>> {
        self.blobs.get(&blob.digest).filter(|bytes| bytes.len() as u64 == blob.size)
    }
}

/// Compares in constant time, so that timing does not reveal where the two differ.
fn is_tag(text: &str, tag: Digest) -> bool {
    blake3::Hash::from_hex(text).is_ok_and(|given| given == blake3::Hash::from_bytes(*tag.as_bytes()))
}

fn read(body: &[u8]) -> Option<Entry> {
    let (line, mut rest) = split(body, body.len())?;
    let index: Index = serde_json::from_str(line).ok()?;
    let mut blobs = BTreeMap::new();
    for length in index.lengths {
        let (blob, after) = rest.split_at_checked(length)?;
        blobs.insert(hashing::of(blob), blob.to_vec());
        rest = after;
    }
    rest.is_empty().then_some(Entry { records: index.records, blobs, signatures: index.signatures })
}

/// Returns the first line, of at most so many bytes, and what follows it.
fn split(bytes: &[u8], most: usize) -> Option<(&str, &[u8])> {
    let end = bytes.iter().take(most).position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

fn digest_of(key: Digest, body: &[u8], secret: Option<&Secret>) -> Digest {
    let mut hasher = secret.map_or_else(blake3::Hasher::new, |secret| blake3::Hasher::new_keyed(&secret.0));
    for part in [HEADER.as_bytes(), key.as_bytes(), body] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    Digest::from(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use ssh_key::{LineEnding, PrivateKey};
    use t2t_model::action::{Identity, Phase, Target};
    use t2t_model::path::RepoPath;
    use t2t_model::record::Seen;
    use t2t_model::signature::TrustedKey;

    use super::*;

    const KEY: &[u8] = b"a manifest";

    fn record(outcome: Outcome, discovered: &[&str]) -> Record {
        let seen = |path: &&str| (RepoPath::new(path).unwrap(), Seen::Absent);
        Record {
            identity: Identity { target: Target::of_op("softmax", Phase::Analyze), device: None },
            key: Digest::of(KEY),
            outcome,
            outputs: BTreeMap::from([("analysis".to_owned(), Blob { digest: Digest::of(b"small"), size: 5 })]),
            discovered: discovered.iter().map(seen).collect(),
            deadline_ms: 1,
            wall_ms: 1,
            device_ms: 0,
            circumstances: BTreeMap::new(),
        }
    }

    fn entry() -> Entry {
        let blobs = [KEY, b"small"].map(|bytes: &[u8]| (Digest::of(bytes), bytes.to_vec()));
        Entry::default().with(record(Outcome::Passed, &[]), blobs.into(), None)
    }

    #[test]
    fn an_entry_comes_back_with_its_blobs() {
        let bytes = entry().encode(Digest::of(KEY), None);
        assert_eq!(Entry::decode(Digest::of(KEY), &bytes, None), Ok(entry()));
        assert_eq!(entry().blob(Blob { digest: Digest::of(b"small"), size: 5 }).unwrap(), b"small");
        assert_eq!(entry().blob(Blob { digest: Digest::of(b"small"), size: 6 }), None);
    }

    #[test]
    fn no_byte_can_be_changed_and_none_can_be_missing() {
        let bytes = entry().encode(Digest::of(KEY), Some(&Secret::of(b"hush")));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Entry::decode(Digest::of(KEY), &changed, Some(&Secret::of(b"hush"))).is_err(), "byte {at}");
            assert!(Entry::decode(Digest::of(KEY), &bytes[..at], None).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn an_entry_of_another_key_is_not_believed() {
        let bytes = entry().encode(Digest::of(b"another"), None);
        assert_eq!(Entry::decode(Digest::of(KEY), &bytes, None), Err(Unbelieved::Damaged));
        let bytes = entry().encode(Digest::of(b"another"), None);
        assert_eq!(Entry::decode(Digest::of(b"another"), &bytes, None), Err(Unbelieved::Content));
    }

    #[test]
    fn with_a_secret_only_its_own_tag_counts() {
        let key = Digest::of(KEY);
        let (ours, theirs) = (Secret::of(b"ours"), Secret::of(b"theirs"));
        for bytes in [entry().encode(key, None), entry().encode(key, Some(&theirs))] {
            assert_eq!(Entry::decode(key, &bytes, Some(&ours)), Err(Unbelieved::Untagged));
        }
        let tagged = entry().encode(key, Some(&ours));
        assert_eq!(Entry::decode(key, &tagged, Some(&ours)), Ok(entry()));
        assert_eq!(Entry::decode(key, &tagged, None), Ok(entry()), "who has no secret can still read");
    }

    #[test]
    fn records_of_other_discovered_files_stay_beside_a_new_one() {
        let both = Entry::default().with(record(Outcome::Passed, &["a.py"]), BTreeMap::new(), None);
        let both = both.with(record(Outcome::Passed, &["b.py"]), BTreeMap::new(), None);
        assert_eq!(both.records.len(), 2);
        let again =
            both.clone().with(record(Outcome::Rejected { class: "mismatch".into() }, &["a.py"]), BTreeMap::new(), None);
        assert_eq!(again.records.len(), 2);
        assert!(!again.records[0].outcome.is_pass(), "the newest is the first");
        let alone = both.with(record(Outcome::Passed, &[]), BTreeMap::new(), None);
        assert_eq!(alone.records.len(), 1, "what discovered nothing always stands");
        let many = (0..40).fold(Entry::default(), |entry, number| {
            entry.with(record(Outcome::Passed, &[&format!("{number}.py")]), BTreeMap::new(), None)
        });
        assert_eq!(many.records.len(), RECORDS);
    }

    #[test]
    fn blobs_that_no_record_names_any_more_are_dropped() {
        let mut other = record(Outcome::Passed, &[]);
        other.outputs.clear();
        let left = entry().with(other, BTreeMap::new(), None);
        assert_eq!(left.blobs.keys().collect::<Vec<_>>(), [&Digest::of(KEY)]);
    }

    #[test]
    fn losses_and_missed_deadlines_are_not_shared() {
        let timeout = Outcome::Rejected { class: Outcome::TIMEOUT.to_owned() };
        for outcome in [timeout, Outcome::Lost { reason: String::new() }] {
            let entry = Entry { records: vec![record(outcome.clone(), &[])], ..Entry::default() };
            assert!(!is_shared(&entry.records[0]));
            let bytes = entry.encode(Digest::of(KEY), None);
            assert_eq!(Entry::decode(Digest::of(KEY), &bytes, None), Err(Unbelieved::Content));
        }
        assert!(is_shared(&record(Outcome::Rejected { class: "mismatch".into() }, &[])));
    }

    /// Returns a key, and trust in it.
    fn key(seed: u8) -> (SigningKey, Trust) {
        let key = Ed25519Keypair::from_seed(&[seed; 32]);
        let key = PrivateKey::new(KeypairData::Ed25519(key), format!("key{seed}@example.org")).unwrap();
        let key = SigningKey::read(&key.to_openssh(LineEnding::LF).unwrap(), None).unwrap();
        let trust = Trust::of(vec![TrustedKey::parse(&key.public()).unwrap()]);
        (key, trust)
    }

    #[test]
    fn each_record_keeps_the_signature_of_whoever_made_it() {
        let ((ada, of_ada), (bob, of_bob)) = (key(1), key(2));
        let (first, second) = (record(Outcome::Passed, &["a.py"]), record(Outcome::Passed, &["b.py"]));
        let entry = Entry::default().with(first.clone(), BTreeMap::new(), Some(&ada));
        let entry = entry.with(second.clone(), BTreeMap::new(), Some(&bob));
        let third = record(Outcome::Passed, &["c.py"]);
        let entry = entry.with(third.clone(), BTreeMap::new(), None);
        let bytes = entry.encode(Digest::of(KEY), None);
        let entry = Entry::decode(Digest::of(KEY), &bytes, None).unwrap();
        let name = |record: &Record, trust| entry.signer(record, trust).map(|signer| signer.map(|signer| signer.name));
        assert_eq!(name(&first, &of_ada), Ok(Some("key1@example.org".to_owned())));
        assert_eq!(name(&second, &of_bob), Ok(Some("key2@example.org".to_owned())));
        assert_eq!(name(&third, &of_bob), Ok(None));
        assert!(matches!(name(&second, &of_ada), Err(Refused::Stranger(_))));
    }

    #[test]
    fn a_signature_counts_for_its_own_record_alone_and_goes_with_it() {
        let (ada, trust) = key(1);
        let (pass, rejection) =
            (record(Outcome::Passed, &[]), record(Outcome::Rejected { class: "mismatch".into() }, &[]));
        let mut entry = Entry::default().with(rejection.clone(), BTreeMap::new(), Some(&ada));
        let signature = entry.signatures.remove(&rejection.digest()).unwrap();
        entry.records = vec![pass.clone()];
        entry.signatures.insert(pass.digest(), signature);
        assert!(matches!(entry.signer(&pass, &trust), Err(Refused::Misfit(_))));
        let again = entry.with(pass.clone(), BTreeMap::new(), None);
        assert!(again.signatures.is_empty(), "what is written again unsigned has no signature");
        let signed = again.with(rejection, BTreeMap::new(), Some(&ada)).with(pass, BTreeMap::new(), Some(&ada));
        assert_eq!(signed.signatures.len(), 1);
    }
}
