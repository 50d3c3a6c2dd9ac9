//! Where a remote cache lies, as a URL says it.
//!
//! It does not know whether anything answers there. A URL holds no credentials: they come from the environment alone.

use std::fmt;

/// What may be done with a remote cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Results are looked for and left there.
    ReadWrite,
    /// Results are looked for.
    ReadOnly,
    /// Nothing.
    Off,
}

/// The modes that ops.yaml can name.
pub(crate) const MODES: &[&str] = &["read-write", "read-only"];

impl Mode {
    /// Returns the mode as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Off => "off",
        }
    }

    /// Returns the mode that is written `text`.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        [Self::ReadWrite, Self::ReadOnly, Self::Off].into_iter().find(|mode| mode.name() == text)
    }
}

/// A remote cache as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Where it lies.
    pub place: RemoteUrl,
    /// What may be done with it.
    pub mode: Mode,
}

/// Where a remote cache lies. `Display` gives the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteUrl {
    url: String,
    /// The kind of server, and what the URL says of it.
    pub server: Server,
}

/// A kind of server, and what a URL says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A folder that several machines see.
    Folder {
        /// From the root of the file system.
        path: String,
    },
    /// A server that takes GET and PUT: `WebDAV`, or less.
    Http {
        /// Scheme, host and port.
        endpoint: String,
        /// The folder on it, beginning with `/`.
        path: String,
    },
    /// A bucket of Amazon S3, or of a compatible server.
    S3 {
        /// The bucket.
        bucket: String,
        /// The folder in it, beginning with `/`.
        path: String,
        /// The server, where it is not Amazon's.
        endpoint: Option<String>,
        /// Its region, where the environment does not say it.
        region: Option<String>,
    },
    /// A Redis server.
    Redis {
        /// Scheme, host and port.
        endpoint: String,
        /// Host and port alone.
        address: String,
        /// The number of the database.
        database: i64,
        /// What its keys begin with, beginning with `/`.
        path: String,
    },
}

/// How a URL of a remote cache is written, for hints.
pub const EXAMPLES: &str =
    "write `s3://BUCKET/FOLDER`, `https://HOST/FOLDER`, `redis://HOST:PORT` or `file:///FOLDER`, without credentials";

impl RemoteUrl {
    /// Returns the place that `url` names, or None where it names none or holds credentials.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let odd = |letter: char| letter.is_whitespace() || letter.is_control() || matches!(letter, '@' | '#' | '\\');
        if rest.contains(odd) {
            return None;
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.split('/').any(|part| matches!(part, "." | "..")) || (query.is_some() && scheme != "s3") {
            return None;
        }
        let folder = format!("/{}", path.trim_end_matches('/'));
        let server = match scheme {
            "file" if host.is_empty() && folder != "/" => Server::Folder { path: folder },
            "http" | "https" if is_address(host) => {
                Server::Http { endpoint: format!("{scheme}://{host}"), path: folder }
            }
            "s3" if is_bucket(host) => s3(host, folder, query)?,
            "redis" | "rediss" if is_address(host) => redis(scheme, host, path)?,
            _ => return None,
        };
        Some(Self { url: url.to_owned(), server })
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

fn s3(bucket: &str, path: String, query: Option<&str>) -> Option<Server> {
    let (mut endpoint, mut region) = (None, None);
    for pair in query.into_iter().flat_map(|query| query.split('&')) {
        match pair.split_once('=')? {
            ("endpoint", value) if value.starts_with("http://") || value.starts_with("https://") => {
                endpoint = Some(value.to_owned());
            }
            ("region", value) if !value.is_empty() => region = Some(value.to_owned()),
            _ => return None,
        }
    }
    Some(Server::S3 { bucket: bucket.to_owned(), path, endpoint, region })
}

/// Reads what follows the address: the number of a database, then what the keys begin with.
fn redis(scheme: &str, host: &str, path: &str) -> Option<Server> {
    let path = path.trim_end_matches('/');
    let (database, path) = path.split_once('/').unwrap_or((path, ""));
    let database = if database.is_empty() { 0 } else { database.parse().ok().filter(|number| *number >= 0)? };
    let address = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:6379")
    };
    let path = if path.is_empty() { "/t2t".to_owned() } else { format!("/{path}") };
    Some(Server::Redis { endpoint: format!("{scheme}://{address}"), address, database, path })
}

fn is_bucket(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_'))
}

/// Whether the text is a host, with a port or without.
fn is_address(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match inside {
        Some(address) => !address.is_empty() && address.chars().all(|c| c.is_ascii_hexdigit() || c == ':'),
        None => is_bucket(host),
    };
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Server {
        let place = RemoteUrl::parse(url).unwrap_or_else(|| panic!("{url}"));
        assert_eq!(place.to_string(), url);
        place.server
    }

    #[test]
    fn each_kind_of_server_has_its_url() {
        assert_eq!(server("file:///srv/cache/"), Server::Folder { path: "/srv/cache".into() });
        let (endpoint, path) = ("https://cache:8443".to_owned(), "/t2t/main".to_owned());
        assert_eq!(server("https://cache:8443/t2t/main"), Server::Http { endpoint, path });
        assert_eq!(server("http://[::1]:80"), Server::Http { endpoint: "http://[::1]:80".into(), path: "/".into() });
        assert_eq!(
            server("s3://bucket/kernels?endpoint=http://127.0.0.1:9000&region=eu-west-1"),
            Server::S3 {
                bucket: "bucket".into(),
                path: "/kernels".into(),
                endpoint: Some("http://127.0.0.1:9000".into()),
                region: Some("eu-west-1".into()),
            }
        );
        assert_eq!(
            server("redis://cache"),
            Server::Redis {
                endpoint: "redis://cache:6379".into(),
                address: "cache:6379".into(),
                database: 0,
                path: "/t2t".into()
            }
        );
        assert_eq!(
            server("rediss://cache:7000/2/kernels"),
            Server::Redis {
                endpoint: "rediss://cache:7000".into(),
                address: "cache:7000".into(),
                database: 2,
                path: "/kernels".into()
            }
        );
    }

    #[test]
    fn what_is_no_place_or_holds_credentials_is_refused() {
        for url in [
            "",
            "cache",
            "ftp://host/x",
            "file://host/x",
            "file:///",
            "file:///a/../b",
            "http://",
            "http://user:secret@host/x",
            "http://host/x?token=secret",
            "http://ho st/",
            "http://host:0/",
            "http://host:99999/",
            "https://host/#x",
            "s3://",
            "s3://bucket?endpoint=host",
            "s3://bucket?secret=x",
            "redis://host/x",
            "redis://host/-1",
            "redis://:secret@host",
        ] {
            assert_eq!(RemoteUrl::parse(url), None, "{url}");
        }
    }
}
