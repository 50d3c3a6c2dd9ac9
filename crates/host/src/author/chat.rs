//! A server of a language model: asked by the chat-completions protocol, its answer read as a stream.
//!
//! What fails for the moment is asked again within the time that there is. It does not know what is asked, nor what an answer means.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use super::Chat;

/// How often it is looked whether it is to be stopped.
const LOOK: Duration = Duration::from_millis(50);

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(30);

/// How long is waited before it is asked again, where the server does not say: twice as long each time, up to the last.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// The most bytes of an answer, and of an error that is told.
const LONGEST: usize = 8 << 20;
const TOLD: usize = 500;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// The whole text of an answer, and how many tokens it took, as the server says.
    Said(String, Option<u64>),
    /// The server does not answer such a question. Why, for people.
    Refused(String),
    /// There was no whole answer in time. Why not the last time, where anything was said.
    TooLate(Option<String>),
    /// It was stopped.
    Stopped,
}

/// What came of one try.
enum Tried {
    Ended(Ended),
    /// It may be asked again, after as long as the server says.
    Again(String, Option<Duration>),
}

/// How long there is.
struct Limit<'a> {
    end: Instant,
    stopped: &'a dyn Fn() -> bool,
}

impl Limit<'_> {
    /// Waits for something as long as there is.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Tried> {
        let mut work = pin!(work);
        loop {
            if (self.stopped)() {
                return Err(Tried::Ended(Ended::Stopped));
            }
            if Instant::now() >= self.end {
                return Err(Tried::Ended(Ended::TooLate(None)));
            }
            if let Ok(done) = timeout(LOOK, work.as_mut()).await {
                return Ok(done);
            }
        }
    }
}

/// Asks the server until it has answered, for at most `time`. `key` is sent with the question, and nowhere else.
pub(super) fn ask(chat: &Chat, key: Option<&str>, prompt: &str, time: Duration, stopped: &dyn Fn() -> bool) -> Ended {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ended::Refused(format!("no connection can be made: {error}")),
    };
    // Whoever is first installs it: the remote cache takes the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = match Client::builder().connect_timeout(CONNECT).user_agent("t2t").build() {
        Ok(client) => client,
        Err(error) => return Ended::Refused(format!("no connection can be made: {error}")),
    };
    let limit = Limit { end: Instant::now() + time, stopped };
    runtime.block_on(async {
        let mut pause = PAUSES[0];
        loop {
            let (why, after) = match tried(&client, chat, key, prompt, &limit).await {
                Tried::Ended(ended) => return ended,
                Tried::Again(why, after) => (why, after),
            };
            match limit.within(sleep(after.unwrap_or(pause))).await {
                Ok(()) => {}
                Err(Tried::Ended(Ended::TooLate(_))) => return Ended::TooLate(Some(why)),
                Err(Tried::Ended(ended)) => return ended,
                Err(Tried::Again(..)) => unreachable!("a pause is never tried again"),
            }
            if after.is_none() {
                pause = (pause * 2).min(PAUSES[1]);
            }
        }
    })
}

async fn tried(client: &Client, chat: &Chat, key: Option<&str>, prompt: &str, limit: &Limit<'_>) -> Tried {
    match exchange(client, chat, key, prompt, limit).await {
        Ok(ended) => Tried::Ended(ended),
        Err(other) => other,
    }
}

async fn exchange(
    client: &Client,
    chat: &Chat,
    key: Option<&str>,
    prompt: &str,
    limit: &Limit<'_>,
) -> Result<Ended, Tried> {
    let url = format!("{}/chat/completions", chat.base_url.trim_end_matches('/'));
    let mut request = client.post(url).header(CONTENT_TYPE, "application/json").body(body(chat, prompt));
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let again = |error: reqwest::Error| Tried::Again(said(&error), None);
    let mut response = limit.within(request.send()).await?.map_err(again)?;
    let status = response.status();
    if !status.is_success() {
        return Err(unsuccessful(status, response, limit).await?);
    }
    let is_stream = header(&response, CONTENT_TYPE.as_str()).is_none_or(|kind| kind.starts_with("text/event-stream"));
    let mut read = Read::default();
    while let Some(part) = limit.within(response.chunk()).await?.map_err(again)? {
        read.bytes.extend_from_slice(&part);
        read.count += part.len();
        if read.count > LONGEST {
            return Ok(Ended::Refused(format!("it sends more than {LONGEST} bytes")));
        }
        if is_stream {
            read.take_lines()?;
        }
    }
    if is_stream {
        read.take_lines()?;
    } else {
        read.take_whole()?;
    }
    if !read.is_over {
        return Err(Tried::Again("the connection was cut in the middle of the answer".to_owned(), None));
    }
    Ok(Ended::Said(read.text, read.tokens))
}

fn body(chat: &Chat, prompt: &str) -> String {
    let mut body = json!({
        "model": chat.model,
        "messages": [{"role": "user", "content": prompt}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(tokens) = chat.max_tokens {
        body["max_tokens"] = json!(tokens);
    }
    if let Some(temperature) = chat.temperature {
        body["temperature"] = json!(temperature);
    }
    body.to_string()
}

/// Returns what an answer of another status than success comes to: what may pass is tried again.
async fn unsuccessful(status: StatusCode, mut response: Response, limit: &Limit<'_>) -> Result<Tried, Tried> {
    let after = header(&response, RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    let mut bytes = Vec::new();
    while let Ok(Some(part)) = limit.within(response.chunk()).await? {
        bytes.extend_from_slice(&part);
        if bytes.len() > LONGEST {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let message = serde_json::from_str::<Value>(&text).ok().and_then(|error| message_of(&error));
    let message: String = message.unwrap_or(text).chars().take(TOLD).collect();
    let why = format!("the server answers {status}: {}", message.trim());
    let may_pass = status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT);
    Ok(if may_pass { Tried::Again(why, after.map(Duration::from_secs)) } else { Tried::Ended(Ended::Refused(why)) })
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn message_of(answer: &Value) -> Option<String> {
    let error = answer.get("error")?;
    error["message"].as_str().or_else(|| error.as_str()).map(str::to_owned)
}

/// Returns an error with its causes, which says more than the error alone.
fn said(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text += &format!(": {next}");
        cause = next.source();
    }
    text
}

/// What was read of an answer.
#[derive(Default)]
struct Read {
    /// What came and was not taken yet.
    bytes: Vec<u8>,
    /// How many bytes came in all.
    count: usize,
    text: String,
    tokens: Option<u64>,
    /// Whether the answer is whole.
    is_over: bool,
}

impl Read {
    /// Takes the whole lines of a stream of events that came.
    fn take_lines(&mut self) -> Result<(), Tried> {
        let Some(end) = self.bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.bytes.split_off(end + 1);
        let lines = String::from_utf8_lossy(&std::mem::replace(&mut self.bytes, rest)).into_owned();
        for data in lines.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim) {
            if data == "[DONE]" {
                self.is_over = true;
                continue;
            }
            let event: Value = serde_json::from_str(data)
                .map_err(|_| Tried::Again("the server sends what is no chat completion".to_owned(), None))?;
            self.take(&event, "delta")?;
        }
        Ok(())
    }

    /// Takes an answer that came in one piece.
    fn take_whole(&mut self) -> Result<(), Tried> {
        // What is cut off is no JSON.
        if let Ok(answer) = serde_json::from_slice::<Value>(&self.bytes) {
            self.take(&answer, "message")?;
        }
        Ok(())
    }

    fn take(&mut self, event: &Value, part: &str) -> Result<(), Tried> {
        if let Some(message) = message_of(event) {
            return Err(Tried::Again(format!("the server says: {message}"), None));
        }
        let choice = &event["choices"][0];
        self.text += choice[part]["content"].as_str().unwrap_or_default();
        self.is_over |= !choice["finish_reason"].is_null();
        self.tokens = event["usage"]["total_tokens"].as_u64().or(self.tokens);
        Ok(())
    }
}
