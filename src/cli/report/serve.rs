//! `t2t report --serve`: the page on 127.0.0.1, renewed while builds of the workspace work, until Ctrl-C.
//!
//! One thread looks at the workspace and makes pages, this one answers browsers. It builds nothing, and takes no lock.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use t2t_host::interrupt::{Interrupt, Then};
use t2t_host::watch::{How, NoWatch, Places, Watch};
use t2t_store::{git, secrets};
use tokio::sync::{Notify, watch};

use self::look::Looker;
use crate::cli::arguments::ReportArguments;
use crate::cli::error::CliError;
use crate::cli::{Common, context, streams};

mod answer;
mod shown;
mod look;
mod server;

/// The store: what happens in it is looked at by itself.
const STORE: [&str; 1] = ["cache"];

/// How often files are looked at where the system reports no changes.
const EACH: Duration = Duration::from_secs(2);

/// Serves the page of the named ops, or of all, until the user leaves.
pub(super) fn serve(common: &Common, arguments: &ReportArguments) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let listener = bound(arguments.port.unwrap_or(0))?;
    let port = listener.local_addr().context("cannot tell the port")?.port();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the server")?;
    let interrupt = Interrupt::default();
    let (told, changes) = channel();
    let _watch = watched(&root, &told)?;
    let (looker, first) = Looker::begin(common, arguments, &root, &interrupt, changes)?;
    let left = Arc::new(Notify::new());
    let leaves = Arc::clone(&left);
    let stop = move || {
        leaves.notify_one();
        Then::EndsItself
    };
    interrupt.on_signal(stop).context("cannot take signals")?;
    let (sender, shown) = watch::channel(first);
    let address = format!("http://127.0.0.1:{port}/");
    streams::print(&format!("{address}\n"));
    if !common.quiet {
        streams::say(&format!("serving the page of {}; Ctrl-C ends it", root.display()));
    }
    if arguments.open {
        open(address);
    }
    thread::scope(|scope| {
        let looks = scope.spawn(move || looker.run(&sender));
        let served = runtime.block_on(async {
            tokio::select! {
                served = server::serve(listener, port, shown) => served,
                () = left.notified() => Ok(()),
            }
        });
        // It sees the interruption, or that nobody is shown anything any more.
        drop(runtime);
        looks.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        served.context("cannot serve the page")
    })?;
    Ok(0)
}

/// Returns what listens at the port of this machine alone; at a free one where it is 0.
fn bound(port: u16) -> Result<TcpListener, CliError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program serves there".to_owned(),
            _ => error.to_string(),
        };
        let message = format!("cannot serve at port {port} of 127.0.0.1: {why}");
        CliError::misuse(message, "name another with `--port`; without it a free one is taken")
    })
}

/// Has `told` be sent something when files of the workspace at `root` have changed, but for those of the store.
fn watched(root: &Path, told: &Sender<()>) -> Result<Watch, CliError> {
    let start = |how: How| {
        let told = told.clone();
        let places = Places::new(root, &STORE, git::index_lock(root));
        Watch::start(places, how, move |batch| {
            if batch.is_some() {
                // Nobody listens once the command ends.
                let _ = told.send(());
            }
        })
    };
    start(How::Told).or_else(|no: NoWatch| {
        streams::say(&format!("warning: {no}; files are looked at each {} s", EACH.as_secs()));
        start(How::Looked(EACH)).map_err(|no| CliError::Machine { message: no.to_string(), hint: Some(no.hint) })
    })
}

/// Has the user's browser open the address, without waiting for it. What fails is told.
fn open(address: String) {
    thread::spawn(move || {
        for mut command in ::open::commands(&address) {
            secrets::withhold(&mut command);
            // A browser that this starts goes on when this ends.
            command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if command.status().is_ok_and(|status| status.success()) {
                return;
            }
        }
        streams::say(&format!("warning: no browser could be opened; open {address} yourself"));
    });
}
