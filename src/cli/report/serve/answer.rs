//! Which answer a request gets: the page or its events to who asks this address itself, nothing to others.
//!
//! A page of another site can have a browser ask here, under a name that leads to this machine. The browser then says that name as `Host`, so only the names of this machine are answered.

use hyper::header::HOST;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

/// The names of this machine.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The port that a browser does not say.
const UNSAID: u16 = 80;

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The page.
    Page,
    /// The events that tell of changes.
    Events,
    /// Nothing, and there is none: a picture that browsers ask for.
    None,
    /// Why nothing is answered.
    Refused(StatusCode, &'static str),
}

/// Returns the answer to a request at this port.
pub(super) fn answer(request: &Parts, port: u16) -> Answer {
    if !is_asked_by_name(request, port) {
        return Answer::Refused(
            StatusCode::FORBIDDEN,
            "ask for http://127.0.0.1 or http://localhost with the port that t2t printed",
        );
    }
    if request.method != Method::GET {
        return Answer::Refused(StatusCode::METHOD_NOT_ALLOWED, "there is nothing here but to GET");
    }
    match request.uri.path() {
        "/" => Answer::Page,
        "/events" => Answer::Events,
        "/favicon.ico" => Answer::None,
        _ => Answer::Refused(StatusCode::NOT_FOUND, "the page is at /"),
    }
}

/// Returns whether each name that the request says is one of this machine, with the port, and it says one.
fn is_asked_by_name(request: &Parts, port: u16) -> bool {
    let is_ours = |host: &str| {
        let (name, said) = match host.rsplit_once(':') {
            Some((name, digits)) if !digits.ends_with(']') => (name, digits.parse().ok()),
            _ => (host, Some(UNSAID)),
        };
        said == Some(port) && NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
    };
    let mut hosts = request.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().is_ok_and(is_ours) && request.uri.authority().is_none_or(|authority| is_ours(authority.as_str()))
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn asked(method: &str, uri: &str, hosts: &[&str], port: u16) -> Answer {
        let mut request = Request::builder().method(method).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        answer(&request.body(()).unwrap().into_parts().0, port)
    }

    #[test]
    fn this_machine_is_answered_by_its_names_with_the_port() {
        for host in ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"] {
            assert_eq!(asked("GET", "/", &[host], 8000), Answer::Page, "{host}");
            assert_eq!(asked("GET", "/events?since=1", &[host], 8000), Answer::Events, "{host}");
        }
        for host in ["127.0.0.1", "localhost", "[::1]", "localhost:80"] {
            assert_eq!(asked("GET", "/", &[host], 80), Answer::Page, "{host}");
        }
        assert_eq!(asked("GET", "http://localhost:8000/", &["localhost:8000"], 8000), Answer::Page);
    }

    #[test]
    fn whoever_says_another_name_or_port_or_none_gets_nothing() {
        let refused = |answer| matches!(answer, Answer::Refused(StatusCode::FORBIDDEN, _));
        for host in [
            "evil.example:8000",
            "localhost.evil.example:8000",
            "127.0.0.1.nip.example:8000",
            "localhost:8001",
            "localhost",
            "localhost:",
            "localhost:8000:8000",
            "127.0.0.2:8000",
            "user@localhost:8000",
            "::1:8000",
            "",
        ] {
            assert!(refused(asked("GET", "/", &[host], 8000)), "{host}");
        }
        assert!(refused(asked("GET", "/", &[], 8000)));
        assert!(refused(asked("GET", "/", &["localhost:8000", "evil.example:8000"], 8000)));
        assert!(refused(asked("GET", "http://evil.example:8000/", &["localhost:8000"], 8000)));
    }

    #[test]
    fn nothing_is_done_but_to_get_and_nothing_else_is_there() {
        for method in ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "BREW"] {
            let answer = asked(method, "/", &["localhost:8000"], 8000);
            assert!(matches!(answer, Answer::Refused(StatusCode::METHOD_NOT_ALLOWED, _)), "{method}");
        }
        for path in ["/ops.yaml", "/../ops.yaml", "//", "/events/"] {
            let answer = asked("GET", path, &["localhost:8000"], 8000);
            assert!(matches!(answer, Answer::Refused(StatusCode::NOT_FOUND, _)), "{path}");
        }
    }
}
