//! Servers for the tests of the remote cache: real ones, each in a process of its own, and one of a few lines that fails as it is told.
//!
//! It knows HTTP, and nothing of t2t.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::environment;

/// What a server holds: `/ac/KEY` or `/cas/DIGEST` → bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A server of the tests' Python environment, gone when it is dropped.
pub struct Real {
    child: Child,
    _stdin: ChildStdin,
    pub port: u16,
}

impl Real {
    /// Starts a kind of server, as `remote_server.py` knows them.
    pub fn start(arguments: &[&str]) -> Self {
        let script = environment::root().join("tests/it/remote_server.py");
        let mut command = Command::new(environment::python());
        command.arg(script).args(arguments).env_remove("PYTHONPATH");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse();
        let port =
            port.unwrap_or_else(|_| panic!("{arguments:?} did not start: `uv sync --group dev` brings what it needs"));
        Self { _stdin: child.stdin.take().unwrap(), child, port }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What becomes of a request.
pub enum Reply {
    /// What a good server does.
    Serve,
    /// This status, and nothing done.
    Status(u16),
    /// No answer, ever.
    Silence,
    /// The connection ends without an answer.
    Close,
    /// What is asked for, but for its second half.
    Half,
    /// What a good server does, without the length of what is asked for.
    Unmeasured,
    /// What is asked for, after this was done to it.
    Changed(fn(&[u8]) -> Vec<u8>),
}

/// Says what becomes of a request with this method.
type Rule = dyn Fn(&str) -> Reply + Send + Sync;

/// A server that keeps files in memory.
pub struct Server {
    pub port: u16,
    state: Arc<State>,
}

struct State {
    files: Mutex<Files>,
    asked: Mutex<Vec<String>>,
    rule: Box<Rule>,
}

impl Server {
    /// Starts a server that holds `files` and does what `rule` says.
    pub fn start(files: Files, rule: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { files: Mutex::new(files), asked: Mutex::default(), rule: Box::new(rule) };
        let state = Arc::new(state);
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || state.serve(stream));
            }
        });
        Self { port, state }
    }

    /// Starts a server that does as it should.
    pub fn good(files: Files) -> Self {
        Self::start(files, |_| Reply::Serve)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn files(&self) -> Files {
        self.state.files.lock().unwrap().clone()
    }

    /// Returns the requests so far, as `GET /ac/…`.
    pub fn asked(&self) -> Vec<String> {
        self.state.asked.lock().unwrap().clone()
    }
}

impl State {
    /// Serves a connection until it ends.
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut writer = stream;
        while let Some((method, path, body)) = request(&mut reader) {
            self.asked.lock().unwrap().push(format!("{method} {path}"));
            let reply = (self.rule)(&method);
            if !self.answer(&mut writer, &reply, &method, &path, body) {
                return;
            }
        }
    }

    /// Returns whether the connection stays open.
    fn answer(&self, writer: &mut TcpStream, reply: &Reply, method: &str, path: &str, body: Vec<u8>) -> bool {
        let (status, bytes, length) = match (reply, method) {
            (Reply::Close, _) => return false,
            (Reply::Silence, _) => loop {
                thread::park();
            },
            (Reply::Status(status), _) => (*status, Vec::new(), 0),
            (_, "PUT") => {
                self.files.lock().unwrap().insert(path.to_owned(), body);
                (201, Vec::new(), 0)
            }
            (_, "GET") => match (self.files.lock().unwrap().get(path), reply) {
                (None, _) => (404, Vec::new(), 0),
                (Some(bytes), Reply::Half) => (200, bytes[..bytes.len() / 2].to_vec(), bytes.len()),
                (Some(bytes), Reply::Changed(change)) => {
                    let bytes = change(bytes);
                    (200, bytes.clone(), bytes.len())
                }
                (Some(bytes), _) => (200, bytes.clone(), bytes.len()),
            },
            _ => (405, Vec::new(), 0),
        };
        let is_measured = !matches!((reply, status), (Reply::Unmeasured, 200));
        let rest = if is_measured { format!("Content-Length: {length}") } else { "Connection: close".to_owned() };
        let head = format!("HTTP/1.1 {status} -\r\n{rest}\r\n\r\n");
        let is_sent = writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&bytes)).is_ok();
        is_sent && is_measured && bytes.len() == length
    }
}

/// Reads a request: its method, its path, its body.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let (method, rest) = line.split_once(' ')?;
    let (method, path) = (method.to_owned(), rest.split(' ').next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((method, path, body))
}
