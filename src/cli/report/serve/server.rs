//! The server: connections of this machine's browsers, each answered by itself.
//!
//! It does not know what is shown, nor when that changes.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::answer::{Answer, answer};
use super::shown::Shown;

/// How many connections are open at most: a browser has six.
const CONNECTIONS: usize = 64;

/// How long a request may take to come, and how long a connection may stay open without one.
const REQUEST: Duration = Duration::from_secs(30);

/// How often an open page is sent something, so that it is known when it is gone.
const BEAT: Duration = Duration::from_secs(15);

/// How long is waited where no connection can be taken, as where too many files are open.
const REST: Duration = Duration::from_millis(100);

/// What is put before all else in what is answered: no other site may show it or read it, and nothing keeps it.
const HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

type Body = Either<Full<Bytes>, Channel<Bytes, Infallible>>;

/// Answers whoever connects, for ever. Fails where it cannot begin.
pub(super) async fn serve(listener: TcpListener, port: u16, shown: watch::Receiver<Shown>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = Arc::clone(&room).acquire_owned().await.expect("it is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        let shown = shown.clone();
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = response(&request.into_parts().0, port, &shown);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(REQUEST);
            // A browser that goes away in the middle is no error.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

fn response(request: &hyper::http::request::Parts, port: u16, shown: &watch::Receiver<Shown>) -> Response<Body> {
    let (status, kind, body) = match answer(request, port) {
        Answer::Page => (StatusCode::OK, "text/html; charset=utf-8", whole(shown.borrow().page.clone())),
        Answer::Events => {
            let (sender, body) = Channel::new(1);
            tokio::spawn(tell(shown.clone(), sender));
            (StatusCode::OK, "text/event-stream", Either::Right(body))
        }
        Answer::None => (StatusCode::NO_CONTENT, "text/plain; charset=utf-8", whole(Bytes::new())),
        Answer::Refused(status, why) => {
            (status, "text/plain; charset=utf-8", whole(Bytes::from(format!("t2t report: {why}\n"))))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

fn whole(bytes: Bytes) -> Body {
    Either::Left(Full::new(bytes))
}

/// Sends the events of all changes until the page is closed.
async fn tell(mut shown: watch::Receiver<Shown>, mut sender: Sender<Bytes, Infallible>) {
    let mut before: Option<Shown> = None;
    loop {
        let now = shown.borrow_and_update().clone();
        let mut events = now.events(before.as_ref());
        before = Some(now);
        if events.is_empty() {
            // A comment, of which no page is told.
            events.push_str(":\n\n");
        }
        if sender.send_data(Bytes::from(events)).await.is_err() {
            return;
        }
        // A change is told at once, and a beat comes where there is none.
        if timeout(BEAT, shown.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
    }
}
