//! `t2t mcp`: a server of the Model Context Protocol on standard input and output, so that an agent can hold t2t as its tool.
//!
//! What works is done by children that run this same program: a crash is one failed call, a cancelled call is a process group that ends, and the locks of the workspace
//! and of devices keep order between clients as they do between people. It does not know how ops are built.

use std::env;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::io::stdio_pipes;
use t2t_host::interrupt::INTERRUPTED;
use tokio::signal::unix::{SignalKind, signal};

use super::error::CliError;
use super::{Common, context, streams};
use crate::session;

mod arguments;
mod child;
mod follow;
mod files;
mod ledger;
mod declare;
mod verdict;
mod submit;
mod look;
mod contract;
mod resources;
mod tools;
mod server;

use self::child::Program;
use self::server::Server;

/// How long a server that is told to leave waits for its children.
const PATIENCE: Duration = Duration::from_secs(8);

/// Serves one client until it leaves. The workspace is `folder`, or else the one around the current folder; where there is none it is that folder itself, which a tool can make one.
pub(crate) fn mcp(common: &Common, folder: Option<PathBuf>) -> Result<u8, CliError> {
    let here = match folder {
        Some(folder) => context::absolute(&folder),
        None => env::current_dir().context("cannot tell the current folder")?,
    };
    if !here.is_dir() {
        let message = format!("`{}` is no folder", here.display());
        return Err(CliError::misuse(message, "name the folder with the ops.yaml: `t2t mcp --workspace DIR`"));
    }
    let program = Program::new(common, session::workspace(&here).unwrap_or(here))?;
    if std::io::stdin().is_terminal() {
        streams::say(
            "t2t mcp talks to an agent's client: its configuration starts this command (docs/reference/agents.md)",
        );
    }
    // One thread, this one: a child that is bound to its parent ends with the thread that started it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the server")?;
    let result = runtime.block_on(serve(program));
    // A read of standard input may be pending for ever.
    runtime.shutdown_background();
    result
}

async fn serve(program: Program) -> Result<u8, CliError> {
    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let [mut terminate, mut interrupt, mut hangup] = signals;
    let told = async {
        let [terminate, interrupt, hangup] = [&mut terminate, &mut interrupt, &mut hangup]
            .map(|signal| signal.as_mut().map_err(|error| format!("cannot take signals: {error}")));
        let (terminate, interrupt, hangup) = (terminate?, interrupt?, hangup?);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        Ok::<(), String>(())
    };
    tokio::pin!(told);
    let running = program.running();
    let begun = tokio::select! {
        begun = rmcp::serve_server(Server::new(program), stdio_pipes()) => begun,
        told = &mut told => return told.map(|()| INTERRUPTED).map_err(CliError::machine),
    };
    let service = match begun {
        Ok(service) => service,
        // It left before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(0),
        Err(error) => return Err(CliError::machine(format!("the client cannot be served: {error}"))),
    };
    let stop = service.cancellation_token();
    let ended = service.waiting();
    tokio::pin!(ended);
    let (ended, code) = tokio::select! {
        ended = &mut ended => (ended, 0),
        _ = &mut told => {
            stop.cancel();
            (ended.await, INTERRUPTED)
        }
    };
    running.end(PATIENCE).await;
    match ended {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(CliError::machine(format!("the server failed: {error}"))),
        Ok(_) => Ok(code),
    }
}
