//! HTTP under the services of Apache `OpenDAL`: requests travel with time limits of their own, and an answer that says no is an error that names its status.
//!
//! It does not know what is asked for, nor how often.

use std::fmt::Write as _;

use futures_util::stream;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use opendal::raw::oio::ReadStream;
use opendal::{Buffer, ErrorKind, HttpBody, HttpTransport};
use opendal_http_transport_reqwest::ReqwestTransport;

/// How much of an answer that says no is read, in bytes: servers send pages.
const READ_OF_NO: usize = 16 << 10;

/// How much of it is shown, in characters.
const SHOWN_OF_NO: usize = 60;

/// What is known of a server's answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dialect {
    /// The status says it all. With what to look at where the server refuses.
    Status(&'static str),
    /// There are codes beside the status, which the service of S3 knows.
    S3,
}

/// A transport for one server.
pub(super) struct Transport {
    inner: ReqwestTransport,
    dialect: Dialect,
}

impl Transport {
    /// Returns the transport over a client.
    pub(super) fn new(client: reqwest::Client, dialect: Dialect) -> Self {
        Self { inner: ReqwestTransport::new(client), dialect }
    }

    /// Returns whether an answer goes to the service that asked, whatever it says.
    fn is_left(&self, method: &Method, status: StatusCode) -> bool {
        if is_refusal(status) {
            return false;
        }
        match (self.dialect, method) {
            (Dialect::S3, _) => true,
            (_, &Method::GET) => status == StatusCode::NOT_FOUND,
            (_, &Method::PUT) => false,
            // What WebDAV says of folders is not always what it seems: 405 is a folder that there is.
            _ => true,
        }
    }
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let method = request.method().clone();
        let (mut parts, body) = self.inner.fetch(request).await?.into_parts();
        if parts.status.is_success() {
            if method == Method::GET {
                // The services take an answer without a length for none. Nothing reads this one: a body ends where the server ends it.
                parts.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(0));
            }
            return Ok(Response::from_parts(parts, body));
        }
        let bytes = beginning(body).await;
        if self.is_left(&method, parts.status) {
            let body = HttpBody::new(stream::iter([Ok(Buffer::from(bytes))]), None);
            return Ok(Response::from_parts(parts, body));
        }
        let hint = match self.dialect {
            Dialect::Status(hint) if is_refusal(parts.status) => hint,
            _ => "",
        };
        let no = No { method, status: parts.status, text: text(parts.status, &bytes, hint) };
        let is_temporary = is_temporary(parts.status);
        Err(opendal::Error::new(ErrorKind::Unexpected, "the server says no")
            .with_temporary(is_temporary)
            .set_source(no))
    }
}

/// An answer that says no.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct No {
    method: Method,
    status: StatusCode,
    text: String,
}

impl No {
    /// Returns whether the server does not let us.
    pub(super) fn is_refusal(&self) -> bool {
        is_refusal(self.status)
    }

    /// Returns whether the server takes nothing there, from nobody. Which status says so differs between servers.
    pub(super) fn is_without_put(&self) -> bool {
        let statuses = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
        self.method == Method::PUT && statuses.contains(&self.status)
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn is_temporary(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::LOCKED
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Reads a body, or its beginning where it is long. To its end if possible: else the connection could not be used again.
async fn beginning(mut body: HttpBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < READ_OF_NO {
        match body.read().await {
            Ok(part) if !part.is_empty() => bytes.extend_from_slice(&part.to_bytes()),
            _ => break,
        }
    }
    bytes
}

/// Returns the status in figures and words, and what the server adds: the code of S3, or the beginning of a text that is no page.
fn text(status: StatusCode, body: &[u8], hint: &str) -> String {
    let body = String::from_utf8_lossy(body);
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(code, _)| code);
    let added = code.unwrap_or(if body.trim_start().starts_with('<') { "" } else { &body });
    let added: String = added.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN_OF_NO).collect();
    let mut text = status.as_str().to_owned();
    for (before, part, after) in
        [(" ", status.canonical_reason().unwrap_or_default(), ""), (": ", &added, ""), (" (", hint, ")")]
    {
        if !part.is_empty() {
            let _ = write!(text, "{before}{part}{after}");
        }
    }
    text
}
