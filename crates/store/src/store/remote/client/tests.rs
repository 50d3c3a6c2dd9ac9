use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::*;

/// A server that sends the same answer to each request and ends the connection.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn that_answers(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(method) = method_of(&stream) else { continue };
                let bytes = answer(&method);
                seen.lock().unwrap().push(method);
                // The client may have enough before the end.
                let _ = stream.write_all(&bytes);
            }
        });
        Self { port, asked }
    }

    fn with_status(status: &str) -> Self {
        let answer = format!("HTTP/1.1 {status} -\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno!\n");
        Self::that_answers(move |_| answer.clone().into_bytes())
    }

    /// Does something with a client of this server.
    fn used<T>(&self, credentials: &Credentials, work: impl AsyncFnOnce(Client) -> T) -> T {
        let place = RemoteUrl::parse(&format!("http://127.0.0.1:{}/x", self.port)).unwrap();
        let limits = Limits::of(Duration::from_secs(20));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime
            .block_on(async { work(Client::open(&place, Mode::ReadWrite, credentials, limits).await.unwrap()).await })
    }

    fn get(&self, most: u64) -> Result<Option<Vec<u8>>, Failed> {
        self.used(&Credentials::default(), async |client| client.get("ac/1", most).await)
    }

    fn put(&self) -> Failed {
        self.used(&Credentials::default(), async |client| client.put("ac/1", vec![1]).await).unwrap_err()
    }

    fn count(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == method).count()
    }
}

/// Reads a request to its end.
fn method_of(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    Some(first.split(' ').next()?.to_owned())
}

#[test]
fn an_answer_that_ends_early_is_asked_for_three_times_at_most() {
    let server = Server::that_answers(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf".to_vec());
    assert_eq!(server.get(100).unwrap_err().to_string(), "its answer ends early");
    assert_eq!(server.count("GET"), 3);
}

#[test]
fn an_answer_that_comes_whole_at_the_third_try_counts_from_its_first_byte() {
    let tries = Mutex::new(0);
    let server = Server::that_answers(move |_| {
        let mut tries = tries.lock().unwrap();
        *tries += 1;
        let body = if *tries < 3 { "no" } else { "whole" };
        format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}").into_bytes()
    });
    assert_eq!(server.get(100).unwrap().unwrap(), b"whole");
}

#[test]
fn an_answer_that_does_not_say_its_length_is_read_as_far_as_it_may_be_long() {
    let forms = [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbytes\r\n0\r\n\r\n", "chunked"),
        ("HTTP/1.0 200 OK\r\n\r\nbytes", "until the connection ends"),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbytes", "until the connection closes"),
    ];
    for (form, name) in forms {
        let server = Server::that_answers(|_| form.as_bytes().to_vec());
        assert_eq!(server.get(5).unwrap().unwrap(), b"bytes", "{name}");
        assert_eq!(server.get(4).unwrap_err(), Failed::TooLong(4), "{name}");
        assert_eq!(server.count("GET"), 2, "{name}");
    }
}

#[test]
fn an_answer_without_a_length_that_ends_early_is_no_answer() {
    let cut = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbytes\r\n5\r\nby";
    let server = Server::that_answers(|_| cut.as_bytes().to_vec());
    assert_eq!(server.get(100).unwrap_err().to_string(), "its answer ends early");
    assert_eq!(server.count("GET"), 3);
}

#[test]
fn a_refusal_has_its_status_and_says_which_variables_count() {
    let hints = [
        (Credentials::default(), "set $T2T_REMOTE_TOKEN, or $T2T_REMOTE_USER and $T2T_REMOTE_PASSWORD"),
        (Credentials { token: Some("t".into()), ..Credentials::default() }, "is $T2T_REMOTE_TOKEN right?"),
        (
            Credentials { user: Some("u".into()), ..Credentials::default() },
            "are $T2T_REMOTE_USER and $T2T_REMOTE_PASSWORD right?",
        ),
    ];
    for (credentials, hint) in hints {
        for (status, name) in [("401", "401 Unauthorized"), ("403", "403 Forbidden")] {
            let server = Server::with_status(status);
            let read = server.used(&credentials, async |client| client.get("ac/1", 100).await).unwrap_err();
            let written = server.used(&credentials, async |client| client.put("ac/1", vec![1]).await).unwrap_err();
            assert_eq!(read, Failed::Refused(format!("{name}: no! ({hint})")));
            assert_eq!(written, read);
            assert_eq!((server.count("GET"), server.count("PUT")), (1, 1));
        }
    }
}

#[test]
fn a_server_that_knows_no_put_is_told_from_one_that_fails() {
    for (status, name) in [("404", "404 Not Found"), ("405", "405 Method Not Allowed"), ("501", "501 Not Implemented")]
    {
        let server = Server::with_status(status);
        assert_eq!(server.put(), Failed::NoPut(format!("{name}: no!")));
        assert_eq!(server.count("PUT"), 1, "{status}");
    }
}

#[test]
fn any_other_status_is_named() {
    for (status, name, tries) in [
        ("500", "500 Internal Server Error", 3),
        ("503", "503 Service Unavailable", 3),
        ("507", "507 Insufficient Storage", 1),
        ("413", "413 Payload Too Large", 1),
        ("599", "599", 1),
    ] {
        let server = Server::with_status(status);
        assert_eq!(server.get(100).unwrap_err(), Failed::Other(format!("{name}: no!")));
        assert_eq!(server.count("GET"), tries, "{status}");
        assert_eq!(server.put(), Failed::Other(format!("{name}: no!")));
        assert_eq!(server.count("PUT"), tries, "{status}");
    }
}

#[test]
fn what_is_not_there_is_not_there_however_long_the_server_says_so() {
    let server = Server::that_answers(|_| {
        let mut answer = b"HTTP/1.1 404 -\r\nConnection: close\r\n\r\n".to_vec();
        answer.resize(1 << 20, b'x');
        answer
    });
    assert_eq!(server.get(100), Ok(None));
}
