//! The remote cache: results of other machines, and of this one for them.
//!
//! The server may be slow, refuse, lie or vanish: that costs at most a warning and some time. Nothing is started before its first use. It does not know which
//! results stand. Without the feature `remote` there is none: the type has no value, and making one fails.

#[cfg(not(feature = "remote"))]
mod absent;
#[cfg(feature = "remote")]
mod breaker;
#[cfg(feature = "remote")]
mod client;
pub mod entry;
#[cfg(feature = "remote")]
mod exchange;
#[cfg(feature = "remote")]
mod server;
#[cfg(feature = "remote")]
mod transport;

use std::collections::BTreeMap;
use std::time::Duration;

use t2t_model::digest::Digest;
use t2t_model::signature::{SigningKey, Trust};

#[cfg(not(feature = "remote"))]
pub use self::absent::Remote;
use self::entry::Secret;
#[cfg(feature = "remote")]
pub use self::server::Remote;

/// This t2t was built without the remote cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("t2t was built without the feature `remote`")]
pub struct NotBuilt;

/// Settings for a server from the environment.
#[derive(Clone, Default)]
pub struct Credentials {
    /// `$T2T_REMOTE_TOKEN`: for HTTP.
    pub token: Option<String>,
    /// `$T2T_REMOTE_USER`: for HTTP and Redis.
    pub user: Option<String>,
    /// `$T2T_REMOTE_PASSWORD`.
    pub password: Option<String>,
    /// `$AWS_ACCESS_KEY_ID` and `$AWS_SECRET_ACCESS_KEY`.
    pub aws: Option<(String, String)>,
    /// `$AWS_SESSION_TOKEN`.
    pub aws_session: Option<String>,
    /// `$AWS_REGION` or `$AWS_DEFAULT_REGION`.
    pub aws_region: Option<String>,
    /// `$AWS_ENDPOINT_URL_S3` or `$AWS_ENDPOINT_URL`.
    pub aws_endpoint: Option<String>,
    /// `$T2T_REMOTE_SECRET`: what entries are tagged with.
    pub secret: Option<Secret>,
}

/// Keys for signing results, and keys whose signatures count.
#[derive(Debug, Clone, Default)]
pub struct Signing {
    /// The key that signs uploaded results.
    pub key: Option<SigningKey>,
    /// Whose signatures count.
    pub trust: Trust,
    /// Whether only results with such a signature count.
    pub is_required: bool,
}

/// Time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For a connection.
    pub(crate) connect: Duration,
    /// For one operation with its retries.
    pub(crate) operation: Duration,
    /// For everything needed to answer for one action.
    pub(crate) look_up: Duration,
    /// After failures in a row, before the server is tried again.
    pub(crate) pause: Duration,
    /// For uploads, when a build is over.
    pub(crate) drain: Duration,
}

impl Limits {
    /// Returns the limits that follow from `operation`, the limit of one operation. It is usually 5 s.
    #[must_use]
    pub fn of(operation: Duration) -> Self {
        Self { connect: operation / 10, operation, look_up: operation * 2, pause: operation * 6, drain: operation * 6 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(Duration::from_secs(5))
    }
}

/// How a build used the remote cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Results that came from it.
    pub hits: u64,
    /// Results that were looked up and not found.
    pub misses: u64,
    /// Results that were uploaded.
    pub uploads: u64,
    /// Results that could not be uploaded.
    pub unsent: u64,
    /// Failures, reported or not.
    pub faults: u64,
}

/// What a server says to a question, and to a try to leave something there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// How long its answer took, or why it cannot be read.
    pub read: Result<Duration, String>,
    /// Whether it takes results, or why not. None where nothing was tried: it is only read, or nobody answers.
    pub write: Option<Result<(), String>>,
}

/// A blob that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Its digest.
    pub digest: Digest,
    /// Its length; None of a manifest, whose length no record holds.
    pub size: Option<u64>,
}

/// The bytes of blobs.
pub type Blobs = BTreeMap<Digest, Vec<u8>>;
