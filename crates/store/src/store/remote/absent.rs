//! The remote cache of a t2t that was built without it: there is none, and making one says so.
//!
//! The type has no value, so what others do with one compiles and never happens.

use t2t_model::digest::Digest;
use t2t_model::record::Record;
use t2t_model::signature::{Signer, SigningKey};
use t2t_spec::remote::{Mode, RemoteUrl};

use super::entry::Entry;
use super::{Blobs, Checked, Credentials, Limits, NotBuilt, Signing, Used, Wanted};
use crate::store::cas::Cas;

/// A remote cache, of which there is none.
#[derive(Debug)]
pub enum Remote {}

impl Remote {
    /// Fails: t2t was built without it.
    pub fn new(_: RemoteUrl, _: Mode, _: Credentials, _: Signing, _: Limits) -> Result<Self, NotBuilt> {
        Err(NotBuilt)
    }

    /// Never called; with the feature: where it lies.
    #[must_use]
    pub fn place(&self) -> &RemoteUrl {
        match *self {}
    }

    /// Never called; with the feature: what may be done with it.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match *self {}
    }

    /// Never called; with the feature: whether entries are tagged with a secret.
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        match *self {}
    }

    /// Never called; with the feature: who signs what is left there.
    #[must_use]
    pub fn signing_key(&self) -> Option<&SigningKey> {
        match *self {}
    }

    /// Never called; with the feature: who signed a record that came from there.
    #[must_use]
    pub fn signer_of(&self, _: &Record) -> Option<Signer> {
        match *self {}
    }

    /// Never called; with the feature: asks what is known under a key.
    pub fn look_up(&self, _: Digest, _: impl FnOnce(Option<Entry>) + Send + 'static) {
        match *self {}
    }

    /// Never called; with the feature: asks for blobs.
    pub fn fetch(&self, _: Vec<Wanted>, _: impl FnOnce(Option<Blobs>) + Send + 'static) {
        match *self {}
    }

    /// Never called; with the feature: leaves a result for others.
    pub fn upload(&self, _: &Record, _: &Cas) {
        match *self {}
    }

    /// Never called; with the feature: takes that a result that was looked for came, or that it did not.
    pub fn count(&self, _: bool) {
        match *self {}
    }

    /// Never called; with the feature: what went wrong since it was asked last.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        match *self {}
    }

    /// Never called; with the feature: waits until everything is uploaded.
    #[must_use]
    pub fn drain(&self, _: impl Fn() -> bool) -> Option<Used> {
        match *self {}
    }

    /// Never called; with the feature: asks the server for something, and leaves something where it is written to.
    #[must_use]
    pub fn check(&self) -> Checked {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn none_can_be_made() {
        let place = RemoteUrl::parse("file:///srv/t2t").unwrap();
        let limits = Limits::of(Duration::from_secs(1));
        let made = Remote::new(place, Mode::ReadWrite, Credentials::default(), Signing::default(), limits);
        assert_eq!(made.err(), Some(NotBuilt));
    }
}
