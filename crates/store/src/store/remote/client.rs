//! The client: bytes by name, got from and put to a server of any kind, each within a time limit.
//!
//! Only this module and its transport touch Apache `OpenDAL`. It does not know what the bytes mean, nor what happens when an operation fails.

use std::error::Error;
use std::iter;
use std::time::Duration;

use futures_util::TryStreamExt;
use opendal::layers::RetryLayer;
use opendal::services::{Fs, Redis, S3, Webdav};
use opendal::{Buffer, ErrorKind, HttpTransporter, Operator};
use t2t_spec::remote::{Mode, RemoteUrl, Server};
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use super::transport::{Dialect, No, Transport};
use super::{Credentials, Limits, entry};
use crate::fs;

#[cfg(test)]
mod tests;

/// How often an operation is tried again within its time.
const RETRIES: usize = 2;

/// How long is waited before the first time and before the last.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];

/// How many connections a Redis server gets.
const CONNECTIONS: usize = 32;

/// The folders of a cache.
const FOLDERS: [&str; 2] = ["ac/", "cas/"];

/// The speed in bytes a second at which a blob's size adds to its time limit.
const RATE: u64 = 1 << 20;

/// A connection to a server, made when it is first used.
pub(super) struct Client {
    /// What reads. A read is tried again from its first byte here: `OpenDAL` goes on where an answer ended, which counts as a new try each time, and takes a
    /// server that knows no ranges for one that went on, too.
    reads: Operator,
    /// The same server with retries, for writes.
    writes: Operator,
    limits: Limits,
    /// Where folders must be made: whether they were.
    folders: Option<OnceCell<()>>,
}

/// Returns a time limit, longer for large blobs. Anything up to the size of an entry has the usual one.
pub(super) fn for_size(limit: Duration, size: u64) -> Duration {
    limit + Duration::from_secs(size.saturating_sub(entry::MOST) / RATE)
}

/// Why an operation did not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failed {
    /// The server answers, and does not let us.
    #[error("it refuses: {0}")]
    Refused(String),
    /// It took longer than it may.
    #[error("no answer within {:.1} s", .0.as_secs_f64())]
    Late(Duration),
    /// The server holds more than there can be.
    #[error("it sends more than {0} bytes")]
    TooLong(u64),
    /// The server knows no PUT, or not there.
    #[error("it accepts no PUT there ({0}): use `--remote-mode read-only`, or another server")]
    NoPut(String),
    /// The server ends the connection in the middle of an answer.
    #[error("its answer ends early")]
    Cut,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Client {
    /// Returns the client for a place. A folder is made where it is to be written to; otherwise it must be there.
    pub(crate) async fn open(
        place: &RemoteUrl,
        mode: Mode,
        credentials: &Credentials,
        limits: Limits,
    ) -> Result<Self, Failed> {
        let operator = match &place.server {
            Server::Folder { path } => folder(path, mode).await?,
            Server::Http { endpoint, path } => {
                let transport = transport(endpoint, limits, Dialect::Status(hint(credentials)))?;
                http_server(endpoint, path, credentials).map(|operator| with(operator, transport))?
            }
            Server::S3 { bucket, path, endpoint, region } => {
                let endpoint = endpoint.as_ref().or(credentials.aws_endpoint.as_ref());
                let transport = transport(endpoint.map_or("https://", |endpoint| endpoint), limits, Dialect::S3)?;
                let region = region.as_ref().or(credentials.aws_region.as_ref());
                bucket_of(bucket, path, endpoint, region, credentials).map(|operator| with(operator, transport))?
            }
            Server::Redis { endpoint, address, database, path } => {
                // Probed first: without this a refused port would only show when the time limit is over.
                let connected = timeout(limits.connect, tokio::net::TcpStream::connect(address)).await;
                connected
                    .map_err(|_| Failed::Late(limits.connect))?
                    .map_err(|error| Failed::Other(error.to_string()))?;
                redis(endpoint, *database, path, credentials)?
            }
        };
        let retry = RetryLayer::new().with_max_times(RETRIES).with_min_delay(PAUSES[0]).with_max_delay(PAUSES[1]);
        let folders = matches!(place.server, Server::Http { .. }).then(OnceCell::new);
        Ok(Self { writes: operator.clone().layer(retry), reads: operator, limits, folders })
    }

    /// Returns the bytes under a name, at most `most`. None where there is nothing.
    pub(crate) async fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Failed> {
        // The limit is outside the retries: they share it, and a silent server gets no more time.
        self.within(most, self.read(name, most)).await
    }

    /// Puts bytes under a name.
    pub(crate) async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), Failed> {
        let size = bytes.len() as u64;
        self.within(size, self.write(name, Buffer::from(bytes))).await
    }

    async fn within<T>(&self, size: u64, work: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
        let limit = for_size(self.limits.operation, size);
        timeout(limit, work).await.unwrap_or(Err(Failed::Late(limit)))
    }

    async fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Failed> {
        let mut pause = PAUSES[0];
        for _ in 0..RETRIES {
            match self.read_once(name, most).await {
                Err(error) if error.is_temporary() => sleep(pause).await,
                read => return read.unwrap_or_else(|error| Err(failed(error))),
            }
            pause = (pause * 2).min(PAUSES[1]);
        }
        self.read_once(name, most).await.unwrap_or_else(|error| Err(failed(error)))
    }

    async fn read_once(&self, name: &str, most: u64) -> opendal::Result<Result<Option<Vec<u8>>, Failed>> {
        let opened = async { self.reads.reader(name).await?.into_stream(..).await };
        let mut stream = match opened.await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(None)),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        loop {
            let part = match stream.try_next().await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(None)),
                part => part?,
            };
            let Some(part) = part else { return Ok(Ok(Some(bytes))) };
            if (bytes.len() + part.len()) as u64 > most {
                return Ok(Err(Failed::TooLong(most)));
            }
            part.for_each(|slice| bytes.extend_from_slice(&slice));
        }
    }

    async fn write(&self, name: &str, bytes: Buffer) -> Result<(), Failed> {
        let first = self.writes.write(name, bytes.clone()).await.map_err(failed);
        match (first, &self.folders) {
            (Err(failed), Some(folders)) if !matches!(failed, Failed::Refused(_)) => {
                // Servers that do not create folders report that in different ways, so any failure makes the folders.
                if folders.get_or_try_init(|| self.make_folders()).await.is_err() {
                    return Err(failed);
                }
                self.writes.write(name, bytes).await.map(|_| ()).map_err(self::failed)
            }
            (first, _) => first.map(|_| ()),
        }
    }

    async fn make_folders(&self) -> Result<(), Failed> {
        for folder in FOLDERS {
            self.writes.create_dir(folder).await.map_err(failed)?;
        }
        Ok(())
    }
}

fn with(operator: Operator, transport: HttpTransporter) -> Operator {
    let context = operator.base_context().with_http_transport(transport);
    operator.with_context(context)
}

async fn folder(path: &str, mode: Mode) -> Result<Operator, Failed> {
    let path = path.to_owned();
    // A folder on a network file system may hang.
    let opened = tokio::task::spawn_blocking(move || {
        if mode == Mode::ReadOnly && fs::folder_time(path.as_ref()).is_none() {
            return Err(Failed::Other("no such folder".to_owned()));
        }
        let builder = Fs::default().root(&path);
        // A file appears whole, by rename.
        let builder = if mode == Mode::ReadOnly { builder } else { builder.atomic_write_dir(&format!("{path}/tmp")) };
        Operator::new(builder).map_err(failed)
    });
    opened.await.unwrap_or_else(|error| Err(Failed::Other(error.to_string())))
}

fn http_server(endpoint: &str, path: &str, credentials: &Credentials) -> Result<Operator, Failed> {
    let mut builder = Webdav::default().endpoint(endpoint).root(path).disable_create_dir(true);
    if let Some(token) = &credentials.token {
        builder = builder.token(token);
    } else if let Some(user) = &credentials.user {
        builder = builder.username(user).password(credentials.password.as_deref().unwrap_or_default());
    }
    Operator::new(builder).map_err(failed)
}

fn bucket_of(
    bucket: &str,
    path: &str,
    endpoint: Option<&String>,
    region: Option<&String>,
    credentials: &Credentials,
) -> Result<Operator, Failed> {
    let region = region.map_or("us-east-1", String::as_str);
    // Only the environment counts: no files and no metadata service.
    let mut builder =
        S3::default().bucket(bucket).root(path).region(region).disable_config_load().disable_ec2_metadata();
    if let Some(endpoint) = endpoint {
        builder = builder.endpoint(endpoint);
    }
    builder = match &credentials.aws {
        Some((id, secret)) => builder.access_key_id(id).secret_access_key(secret),
        None => builder.skip_signature(),
    };
    if let Some(token) = &credentials.aws_session {
        builder = builder.session_token(token);
    }
    Operator::new(builder).map_err(failed)
}

fn redis(endpoint: &str, database: i64, path: &str, credentials: &Credentials) -> Result<Operator, Failed> {
    install_ring();
    let mut builder = Redis::default().endpoint(endpoint).db(database).root(path).connection_pool_max_size(CONNECTIONS);
    if let Some(user) = &credentials.user {
        builder = builder.username(user);
    }
    if let Some(password) = &credentials.password {
        builder = builder.password(password);
    }
    Operator::new(builder).map_err(failed)
}

/// rustls has several crypto providers to choose from, and fails unless one is installed.
fn install_ring() {
    // A failure is no error: then one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn transport(endpoint: &str, limits: Limits, dialect: Dialect) -> Result<HttpTransporter, Failed> {
    install_ring();
    let builder = reqwest::Client::builder().connect_timeout(limits.connect).user_agent("t2t");
    // Without TLS no certificates are needed, so a machine without any will do.
    let builder = if endpoint.starts_with("https://") { builder } else { builder.tls_certs_only([]) };
    let client = builder.build().map_err(|error| Failed::Other(root_of(&error)))?;
    Ok(HttpTransporter::new(Transport::new(client, dialect)))
}

/// Returns what to look at where an HTTP server refuses.
fn hint(credentials: &Credentials) -> &'static str {
    match (&credentials.token, &credentials.user) {
        (Some(_), _) => "is $T2T_REMOTE_TOKEN right?",
        (None, Some(_)) => "are $T2T_REMOTE_USER and $T2T_REMOTE_PASSWORD right?",
        (None, None) => "set $T2T_REMOTE_TOKEN, or $T2T_REMOTE_USER and $T2T_REMOTE_PASSWORD",
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn failed(error: opendal::Error) -> Failed {
    let text = root_of(&error);
    let of_transport = |error: &reqwest::Error| error.is_body() || error.is_decode();
    for cause in iter::successors(Some(&error as &(dyn Error + 'static)), |&error| error.source()) {
        match cause.downcast_ref::<No>() {
            Some(no) if no.is_refusal() => return Failed::Refused(text),
            Some(no) if no.is_without_put() => return Failed::NoPut(text),
            _ => {}
        }
        if cause.downcast_ref().is_some_and(of_transport) {
            return Failed::Cut;
        }
    }
    if error.kind() == ErrorKind::PermissionDenied { Failed::Refused(text) } else { Failed::Other(text) }
}

/// Returns the innermost reason in one short line: what a server sends may be a whole page.
fn root_of(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = match innermost.downcast_ref::<opendal::Error>() {
        Some(error) => format!("{}: {}", error.kind(), error.message()),
        None => innermost.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(160).collect()
}
