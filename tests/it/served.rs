//! `t2t report --serve`, seen from outside: what a browser is answered while another process builds, and whom it answers nothing.
//!
//! The client is a socket. How a page renews itself, `tests/browser.py` tries in a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::environment;
use crate::project::{Project, SOON, file};

/// A `t2t report --serve` that runs.
struct Serving {
    child: Option<Child>,
    out: BufReader<ChildStdout>,
    port: u16,
}

impl Serving {
    /// Starts it, and waits for its address.
    fn start(project: &Project, arguments: &str) -> Self {
        let mut child = project.spawn(&format!("report --serve {arguments}"));
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let port = line.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/\n"));
        let port = port.unwrap_or_else(|| panic!("no address: {line}")).parse().unwrap();
        Self { child: Some(child), out, port }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn asked(&self, request: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Asks with this method and these headers, and returns the whole answer.
    fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        let mut answer = Vec::new();
        let request = format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        self.asked(&request).read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Returns the page.
    fn page(&self) -> String {
        let answer = self.ask("GET", "/", &format!("Host: {}\r\n", self.host()));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body.to_owned()
    }

    fn events(&self) -> Events {
        let mut stream = self.asked(&format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.host()));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.to_lowercase().contains("content-type: text/event-stream\r\n"), "{head}");
        Events(stream)
    }

    /// Ends it by a signal, and returns its exit code and what else it printed.
    fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        let mut child = self.child.take().unwrap();
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        let mut told = String::new();
        self.out.read_to_string(&mut told).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (child.wait().unwrap().code(), told)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What an open page is told.
struct Events(BufReader<TcpStream>);

impl Events {
    /// Waits for the next event, and returns its name and data.
    #[track_caller]
    fn next(&mut self) -> (String, String) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line);
            assert!(read.is_ok_and(|count| count > 0), "the events ended");
            if let Some(said) = line.strip_prefix("event: ") {
                said.trim_end().clone_into(&mut name);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return (name, data.trim_end().to_owned());
            }
        }
    }

    /// Waits for an event of this name whose data is as asked, and returns the data.
    #[track_caller]
    fn until(&mut self, event: &str, is_it: impl Fn(&str) -> bool) -> String {
        loop {
            let (name, data) = self.next();
            if name == event && is_it(&data) {
                return data;
            }
        }
    }

    /// Waits for the next page, and returns its version.
    #[track_caller]
    fn page(&mut self) -> String {
        self.until("page", |_| true)
    }
}

/// Returns the part of the page about a variant of softmax in the heat map.
fn cell<'a>(page: &'a str, variant: &str) -> &'a str {
    let link = format!("href=\"#softmax/{variant}\"");
    let at = page.find(&link).unwrap_or_else(|| panic!("no {link} in {page}"));
    let begin = page[..at].rfind("<td").unwrap();
    &page[begin..begin + page[begin..].find("</a>").unwrap()]
}

#[test]
fn a_page_is_told_of_a_build_by_another_process_and_shows_its_verdict() {
    let project = Project::built();
    let serving = Serving::start(&project, "");
    let mut events = serving.events();
    assert_eq!(events.until("build", |_| true), "null");
    let first = events.page();
    let page = serving.page();
    assert!(page.contains(&format!("<meta name=\"t2t.version\" content=\"{first}\">")), "{page}");
    assert!(cell(&page, "v2_tiling").contains('✓'), "{}", cell(&page, "v2_tiling"));
    project.kernel("softmax", "v2_tiling", "REJECT mismatch; WAITS");
    let stale = events.page();
    assert!(stale != first && cell(&serving.page(), "v2_tiling").contains('…'), "{}", serving.page());
    let build = project.spawn("build softmax");
    let told = events.until("build", |data| data.contains("softmax/v2_tiling:check"));
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["process"], build.id());
    assert!(told["command"].as_str().unwrap().contains(" build softmax"), "{told}");
    project.calm();
    project.wait(build).exits(1);
    // The page that has the verdict may come before or after the build is over.
    let (mut version, mut is_over) = (stale, false);
    while !is_over || !cell(&serving.page(), "v2_tiling").contains('✗') {
        let (event, data) = events.next();
        assert!(event != "page" || data != version, "what is the same is no event");
        match event.as_str() {
            "page" => version = data,
            "build" => is_over = data == "null",
            _ => {}
        }
    }
    assert!(serving.page().contains("rejected (mismatch)"));
    // What is the file's stays the file's.
    project.t2t("report").exits(0);
    let file = project.read("logs/report.html");
    assert!(!file.contains("t2t.version") && !file.contains("connect-src") && !file.contains("EventSource"));
    assert_eq!(file.matches("<script>").count(), 1);
}

#[test]
fn an_ops_yaml_that_cannot_be_read_is_told_and_the_last_page_stays() {
    let project = Project::built();
    let serving = Serving::start(&project, "softmax");
    let mut events = serving.events();
    events.until("trouble", |data| data == "null");
    let page = serving.page();
    assert!(page.contains("id=\"softmax\"") && !page.contains("id=\"gelu\""), "only what is named");
    let whole = project.read("ops.yaml");
    project.write("ops.yaml", whole.replace("version: 1", "version: 1\nopps: {}"));
    let told = events.until("trouble", |data| data != "null");
    assert!(told.contains("ops.yaml:2:1"), "{told}");
    assert_eq!(serving.page(), page);
    project.write("ops.yaml", whole);
    events.until("trouble", |data| data == "null");
    assert_eq!(serving.page(), page);
}

#[test]
fn who_says_another_host_or_does_more_than_get_is_refused() {
    let project = Project::built();
    let serving = Serving::start(&project, "");
    let port = serving.port;
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        let answer = serving.ask("GET", "/", &format!("Host: {host}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{host}: {answer}");
        let (head, _) = answer.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        for header in ["cache-control: no-store", "frame-ancestors 'none'", "x-content-type-options: nosniff"] {
            assert!(head.contains(header), "{header}: {head}");
        }
        assert!(!head.contains("access-control-allow-origin"), "{head}");
    }
    let of = |host: &str| format!("Host: {host}\r\n");
    let evil = format!("evil.example:{port}");
    for (path, headers) in [
        ("/", of(&evil)),
        ("/events", of(&evil)),
        ("/", of("localhost")),
        ("/", of(&format!("localhost:{}", port ^ 1))),
        ("/", String::new()),
        ("/", of(&serving.host()) + &of(&evil)),
    ] {
        let answer = serving.ask("GET", path, &headers);
        assert!(answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 400 "), "{headers}: {answer}");
        assert!(!answer.contains("softmax"), "{headers}: {answer}");
    }
    for method in ["POST", "PUT", "OPTIONS", "HEAD"] {
        let answer = serving.ask(method, "/", &of(&serving.host()));
        assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET"), "{method}: {answer}");
    }
    assert!(serving.ask("GET", "/ops.yaml", &of(&serving.host())).starts_with("HTTP/1.1 404 "));
    // What is no request at all ends that connection alone.
    let mut rest = Vec::new();
    let _ = serving.asked("\0\r\n\r\n").read_to_end(&mut rest);
    assert!(serving.page().contains("softmax"));
}

#[test]
fn it_ends_by_ctrl_c_with_0_while_pages_are_open() {
    let project = Project::built();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let serving = Serving::start(&project, "");
        let mut events = serving.events();
        events.page();
        let (code, told) = serving.stop(signal);
        assert_eq!(code, Some(0), "{told}");
        let mut rest = String::new();
        let _ = events.0.read_to_string(&mut rest);
    }
    project.build().exits(0).runs("");
    let left = project.files("logs");
    assert!(left.iter().all(|file| !file.ends_with("report.html")), "{left:?}");
}

#[test]
fn a_busy_port_and_options_that_do_not_fit_are_bad_use() {
    let project = Project::built();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ran = project.t2t(&format!("report --serve --port {port}")).exits(2);
    assert!(
        ran.stderr.contains(&format!("cannot serve at port {port} of 127.0.0.1: another program serves there")),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: name another with `--port`"), "{}", ran.stderr);
    drop(taken);
    let serving = Serving::start(&project, &format!("--port {port}"));
    assert_eq!(serving.port, port);
    for arguments in ["--port 8000", "--open", "--serve --out page.html", "--serve --port 65536", "--serve sofmax"] {
        project.t2t(&format!("report {arguments}")).exits(2);
    }
}

#[test]
fn the_policy_of_the_served_page_has_the_digest_of_each_script() {
    let project = Project::new();
    let page = Serving::start(&project, "").page();
    let check = "import base64, hashlib, re, sys\n\
        page = sys.stdin.read()\n\
        policy = re.search(r'Security-Policy\" content=\"([^\"]*)', page)[1]\n\
        for text in re.findall(r'<script>(.*?)</script>', page, re.S):\n\
        \x20   digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()\n\
        \x20   if f\"'sha256-{digest}'\" not in policy: print('the policy lacks sha256-' + digest)\n";
    let mut python = Command::new(environment::python())
        .args(["-c", check])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let said = python.wait_with_output().unwrap();
    assert!(said.status.success());
    assert_eq!(String::from_utf8_lossy(&said.stdout), "", "write it into crates/report/src/page/served.rs");
}

#[test]
fn a_watch_is_followed_as_a_build_is() {
    let project = Project::built();
    let mut watching = crate::watching::Watching::start(&project, "");
    let serving = Serving::start(&project, "");
    let mut events = serving.events();
    events.page();
    project.edit(&file("softmax", "v1_baseline"), "MARK = \"\"", "MARK = \"WAITS\"");
    events.until("build", |data| data.contains(" watch ") && data.contains("softmax/v1_baseline:"));
    project.calm();
    watching.settles();
    events.until("build", |data| data == "null");
    watching.stop(Signal::SIGINT);
}
