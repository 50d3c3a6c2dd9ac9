//! Authors that are servers: a local one that answers by the chat-completions protocol, well, badly, late, or not at all.
//!
//! What becomes of a kernel is said in it, for the stand-in for Python.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::authored::{is_nowhere, ops};
use crate::project::{Project, Ran};

const KEY: &str = "sk-0123456789abcdef";

/// A server. Each connection gets the next answer, and the last one ever after.
struct Server {
    url: String,
    /// What was asked: head and body.
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn new(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let noted = Arc::clone(&asked);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let answer = answers[number.min(answers.len() - 1)].clone();
                let _ = answered(&stream.unwrap(), &answer, &noted);
            }
        });
        Self { url, asked }
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn answered(mut stream: &TcpStream, answer: &str, asked: &Mutex<Vec<(String, Value)>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head)?;
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    asked.lock().unwrap().push((head, serde_json::from_slice(&body).unwrap_or_default()));
    if answer.is_empty() {
        // It never answers, until whoever asks goes.
        reader.read_exact(&mut [0])?;
    }
    stream.write_all(answer.as_bytes())
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn kernel(mark: &str) -> String {
    format!(
        "\"\"\"Softmax, by a server.\"\"\"\nMARK = \"{mark}\"\n\n\ndef triton_softmax(input):\n    return input + 1\n"
    )
}

fn fenced(text: &str) -> String {
    format!("Here it is.\n```python\n{text}```\n")
}

/// Returns a text as a stream of events, of a few letters each.
fn streamed(text: &str, end: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let parts = letters.chunks(7).map(|part| part.iter().collect::<String>());
    let events = parts.map(|part| format!("data: {}\r\n\r\n", json!({"choices": [{"delta": {"content": part}}]})));
    let body = events.collect::<String>() + end;
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
}

const END: &str = "data: {\"choices\": [], \"usage\": {\"total_tokens\": 77}}\n\ndata: [DONE]\n\n";

fn project(server: &Server) -> Project {
    let asks = "model: small, key_env: SERVER_KEY, max_tokens: 4000, temperature: 0.5";
    let generators =
        format!("generators:\n  server: {{openai: {{base_url: \"{}\", {asks}}}, timeout: 240s}}\n", server.url);
    Project::with(&ops(&generators, "    generator: server\n"))
}

fn build(project: &Project) -> Ran {
    project.run(project.command("build").env("SERVER_KEY", KEY))
}

#[test]
fn a_server_is_asked_again_while_it_fails_and_after_a_rejection_and_its_key_is_nowhere() {
    let whole = json!({"choices": [{"message": {"content": fenced(&kernel(""))}, "finish_reason": "stop"}], "usage": {"total_tokens": 5}});
    let server = Server::new(vec![
        http("429 Too Many Requests", "retry-after: 1\r\n", "{\"error\": {\"message\": \"slow down\"}}"),
        http("503 Service Unavailable", "retry-after: 0\r\n", ""),
        streamed(&fenced(&kernel("")), ""),
        streamed(&fenced(&kernel(&format!("REJECT mismatch; {KEY}"))), END),
        streamed("I would rather not.", END),
        http("200 OK", "content-type: application/json\r\n", &whole.to_string()),
    ]);
    let project = project(&server);
    build(&project).exits(0).says("attempt 1 was rejected (mismatch)").says("(no-kernel)").never_says(KEY);
    assert_eq!(server.count(), 6);
    let (head, body) = server.asked.lock().unwrap()[0].clone();
    assert!(head.starts_with("POST /v1/chat/completions ") && head.contains(&format!("Bearer {KEY}")), "{head}");
    assert_eq!(
        (&body["model"], &body["max_tokens"], &body["temperature"]),
        (&json!("small"), &json!(4000), &json!(0.5))
    );
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("`triton_softmax`"));
    let listed = project.t2t("attempts softmax").exits(0).stdout;
    let tokens: Vec<bool> =
        listed.lines().zip(["77 tokens", "77 tokens", "5 tokens"]).map(|(line, end)| line.ends_with(end)).collect();
    assert_eq!(tokens, [true; 3], "{listed}");
    is_nowhere(&project, KEY);
    project.build().exits(0).runs("");
    assert_eq!(server.count(), 6);
}

#[test]
fn what_a_server_refuses_is_lost_and_told_without_the_key() {
    let wrong = format!("{{\"error\": {{\"message\": \"the key {KEY} is wrong\"}}}}");
    let server = Server::new(vec![http("401 Unauthorized", "", &wrong)]);
    let project = project(&server);
    build(&project).exits(3).says("401 Unauthorized: the key *** is wrong").never_says(KEY);
    assert_eq!(server.count(), 1);
    project.build().exits(3).says("the variable `SERVER_KEY`, which holds its key, is not set");
    is_nowhere(&project, KEY);
}

#[test]
fn a_server_that_says_nothing_or_nothing_whole_is_waited_for_as_long_as_ops_yaml_says() {
    let server = Server::new(vec![String::new()]);
    let project = project(&server);
    project.edit("ops.yaml", "240s", "1s");
    project.edit("ops.yaml", "generator: server", "generator: server\n    check: {max_retries: 0}");
    build(&project).exits(1).says("`server` gave no kernel within 1s");
    let server = Server::new(vec![http("500 Internal Server Error", "", "out of memory")]);
    let project = self::project(&server);
    project.edit("ops.yaml", "240s", "2s");
    build(&project).exits(3).says("500 Internal Server Error: out of memory");
    assert!(server.count() > 1);
}

#[test]
fn a_generator_is_a_program_or_a_server() {
    let server = Server::new(vec![String::new()]);
    let project = project(&server);
    project.edit("ops.yaml", "{openai:", "{command: [agent], openai:");
    project.build().exits(2).says("generator `server` has `command` and `openai`");
    project.edit("ops.yaml", "command: [agent], openai:", "env: [A], openai:");
    project.build().exits(2).says("`openai.key_env` names the one that holds its key");
    project.edit("ops.yaml", "http://", "http://user:secret@");
    project.build().exits(2).says("without credentials");
}
