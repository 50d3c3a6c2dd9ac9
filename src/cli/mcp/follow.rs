//! A build as it happens: its events become notifications of progress, and what is left of them when it is over.
//!
//! It does not know why it was started.

use std::collections::BTreeMap;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::child::{Ended, Fault, Lines, Program};

/// What a tool's call knows of its client: whom to tell of progress, and whether it still wants the result.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Set when the client takes its call back, and when it is gone.
    pub(super) cancelled: CancellationToken,
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
}

impl Caller {
    /// Returns the caller of a request.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self { cancelled: context.ct.clone(), peer: context.peer.clone(), token }
    }

    async fn tell(&self, done: f64, total: Option<f64>, message: String) {
        let Some(token) = self.token.clone() else { return };
        let mut told = ProgressNotificationParam::new(token, done).with_message(message);
        told.total = total;
        // A client that is gone needs no progress.
        let _ = self.peer.notify_progress(told).await;
    }
}

/// What came of a build.
#[derive(Debug)]
pub(super) struct Followed {
    caller: Caller,
    /// Progress so far: one for getting ready, then one for each action, half of it at its start.
    done: f64,
    total: Option<f64>,
    /// The last `action-finished` of each target.
    pub(super) actions: BTreeMap<String, Value>,
    /// Each `failure`.
    pub(super) failures: Vec<Value>,
    /// The texts of notes and warnings.
    pub(super) notes: Vec<String>,
    /// What stopped the build before its end.
    pub(super) error: Option<String>,
}

/// How much of progress a word is worth that says no part of the work is done.
const WORD: f64 = 1e-3;

/// Builds `targets`, and tells `caller` of progress. Fails where the build did not come to its end: it was cancelled, or there is a fault in what was asked.
pub(super) async fn build(program: &Program, caller: &Caller, targets: &[&str]) -> Result<(Followed, Ended), Fault> {
    let caller = caller.clone();
    let cancelled = caller.cancelled.clone();
    let (actions, failures, notes) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut followed = Followed { caller, done: 0.0, total: None, actions, failures, notes, error: None };
    // Results go to the same pipe; no line of them is an event.
    let command = ["build", "--quiet", "--annotations", "none", "--events", "/dev/stdout"];
    let ended = program.run(&command, targets, &mut followed, &cancelled).await?;
    if followed.error.is_some() || ended.code.is_none_or(|code| code > 1 && followed.actions.is_empty()) {
        return Err(ended.fault());
    }
    Ok((followed, ended))
}

impl Lines for Followed {
    async fn take(&mut self, line: &[u8]) {
        if let Some(event) = line.starts_with(b"{\"").then(|| serde_json::from_slice(line).ok()).flatten() {
            self.event(event).await;
        }
    }
}

impl Followed {
    async fn event(&mut self, event: Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap_or_default() {
            "planned" => {
                self.total = event["actions"].as_f64().map(|actions| actions + 1.0);
                self.done = self.done.max(1.0 - WORD);
                self.tell(WORD, format!("{} actions", event["actions"])).await;
            }
            "action-started" => self.tell(0.5, format!("{} runs", text("target"))).await,
            "action-finished" => {
                let how = event["class"].as_str().or(event["outcome"].as_str()).or(event["how"].as_str());
                let message = format!("{}: {}", text("target"), how.unwrap_or_default());
                let step = if event["how"] == "ran" || event["how"] == "lost" { 0.5 } else { 1.0 };
                self.actions.insert(text("target"), event);
                self.tell(step, message).await;
            }
            "failure" => self.failures.push(event),
            "note" | "warning" => {
                self.notes.push(text("text"));
                self.tell(WORD, text("text")).await;
            }
            "waiting" => self.tell(WORD, format!("waits for {}: {}", text("what"), text("holder"))).await,
            "finished" => self.error = event["error"].as_str().map(str::to_owned),
            _ => {}
        }
    }

    async fn tell(&mut self, step: f64, message: String) {
        self.done += step;
        self.caller.tell(self.done, self.total.map(|total| total.max(self.done)), message).await;
    }
}
