//! The interpreter of a session: its servers, and what is in its environment.
//!
//! At most it runs one probe. It does not know what the servers are used for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use t2t_host::interrupt::Interrupt;
use t2t_host::pool::{Cancel, NoCall, Pool};
use t2t_host::toolchain::Toolchain;
use t2t_host::worker::WorkerConfig;
use t2t_plan::imports;
use t2t_protocol::{Alone, BYTECODE, End, Lane, Limits, PRELOAD, Probed, Reply, Request, SHARED, ServerKind, read};
use t2t_store::fingerprint::Fingerprint;
use t2t_store::fs;
use t2t_store::harness::Harness;
use t2t_store::installed::Places as Modules;
use t2t_store::store::leftovers;

use super::{NoSession, Options, Probing, machine, unwritten};

/// Modules that servers import before they serve, beside torch, Triton and the harness: what children would import one after another.
const WARM: [&str; 3] = ["torch.utils._python_dispatch", "safetensors.torch", "triton.testing"];

/// What has servers find the bytecode that is kept, before they import anything else.
const USE_BYTECODE: &str = "t2t_harness.server.bytecode:use";

/// The name under which the probe says where nvcc is, among versions.
const NVCC: &str = "nvcc.at";

/// How often the interpreter is probed again if the harness is removed meanwhile.
const ASKED: usize = 8;

/// What a session has of its interpreter.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Its servers.
    pub(crate) pool: Arc<Pool>,
    /// What a probe said; None where it is not probed.
    pub(crate) toolchain: Option<Arc<Toolchain>>,
}

/// Returns the servers of a session over the store `cache` of the workspace `root`, and the probe of the interpreter. Fails if it cannot be used.
pub(crate) fn asked(
    options: &Options,
    harness: &Harness,
    [cache, root]: [&Path; 2],
    interrupt: &Interrupt,
    has_devices: bool,
) -> Result<Asked, NoSession> {
    let mut attempt = 1;
    loop {
        let known = known(options, cache);
        let pool = pool(options, harness, cache, interrupt, known.is_some(), has_devices)?;
        let placed = harness.trace(cache);
        match toolchain(options, harness, [cache, root], &pool, has_devices, known) {
            // `t2t clean --cache` waits for nobody who only looks.
            Err(_) if attempt < ASKED && (placed.is_none() || harness.trace(cache) != placed) => attempt += 1,
            found => return Ok(Asked { pool, toolchain: found? }),
        }
    }
}

/// Returns what an earlier session, or an earlier build, was told of the interpreter, if its environment has not changed since.
fn known(options: &Options, cache: &Path) -> Option<Arc<Toolchain>> {
    let (python, search) = (&options.python.as_ref()?.path, options.search.as_deref());
    let earlier = options.toolchain.as_ref().filter(|toolchain| toolchain.stands(python, search));
    earlier.cloned().or_else(|| Toolchain::kept(cache, python, search).map(Arc::new))
}

fn pool(
    options: &Options,
    harness: &Harness,
    cache: &Path,
    interrupt: &Interrupt,
    is_known: bool,
    has_devices: bool,
) -> Result<Arc<Pool>, NoSession> {
    let Some(python) = options.python.as_ref().filter(|_| options.probing != Probing::Never) else {
        return Ok(Arc::new(Pool::new(Vec::new(), interrupt.clone())));
    };
    // Servers that run hold the modules of the environment that they were started in.
    if let Some(pool) = options.pool.as_ref().filter(|_| is_known) {
        return Ok(Arc::clone(pool));
    }
    let folder = match options.probing {
        Probing::WhereItCan => harness.place(cache).unwrap_or_else(|_| cache.join("harness")),
        Probing::Allowed | Probing::Known | Probing::Never => {
            harness.place(cache).map_err(|error| unwritten("cannot write the harness", &error))?
        }
    };
    let configs = [ServerKind::Interpreter, ServerKind::Compiled, ServerKind::Device].map(|kind| WorkerConfig {
        harness: Some(folder.clone()),
        preload: preload(options.bytecode.is_some(), has_devices),
        // With devices, the servers of both kinds that are used are of different orders, and there are cores for both.
        fork_after: SHARED.last().filter(|_| !has_devices).map(|last| (*last).to_owned()),
        later: imports::later(kind),
        asked: imports::asked(kind),
        environment: environment(options),
        ..WorkerConfig::new(&python.path, kind)
    });
    Ok(Arc::new(Pool::new(configs.to_vec(), interrupt.clone())))
}

/// Returns the variables that servers get from a session, beside those from t2t.
fn environment(options: &Options) -> BTreeMap<String, String> {
    let folder = options.bytecode.as_ref().map(|folder| (BYTECODE.to_owned(), folder.to_string_lossy().into_owned()));
    folder.into_iter().collect()
}

/// Returns what servers import before they serve. With devices, Triton comes before torch, since the server of devices reads Triton's files meanwhile.
fn preload(has_bytecode: bool, has_devices: bool) -> Vec<String> {
    let first = has_bytecode.then_some(USE_BYTECODE);
    let shared = SHARED.iter().filter(|_| !has_devices);
    let rest = PRELOAD.iter().filter(|module| has_devices || !SHARED.contains(module));
    let modules = first.iter().chain(shared).chain(rest).chain(&WARM).map(|module| (*module).to_owned());
    modules.chain(Harness::entries()).collect()
}

fn toolchain(
    options: &Options,
    harness: &Harness,
    [cache, root]: [&Path; 2],
    pool: &Arc<Pool>,
    has_devices: bool,
    known: Option<Arc<Toolchain>>,
) -> Result<Option<Arc<Toolchain>>, NoSession> {
    let Some(python) = &options.python else {
        return match options.probing {
            Probing::Never => Ok(None),
            Probing::Allowed | Probing::Known | Probing::WhereItCan => Err(NoSession::Use {
                message: "no Python was found: looked at --python, $T2T_PYTHON, $VIRTUAL_ENV, the workspace's .venv and t2t's own folder".to_owned(),
                hint: "run `uv run t2t build`, or name one with `--python`".to_owned(),
            }),
        };
    };
    match options.probing {
        _ if known.is_some() => return Ok(known),
        Probing::Never => return Ok(None),
        Probing::Known => {
            return Err(machine(&format!("`{}` was not probed", python.path.display()), &"its versions are not known"));
        }
        Probing::Allowed | Probing::WhereItCan => {}
    }
    let can_write = || fs::make_folder(&scratch_of(cache)).is_ok() && harness.place(cache).is_ok();
    if options.probing == Probing::WhereItCan && !can_write() {
        return Ok(None);
    }
    if has_devices {
        // What is probed is about to be built, and need not wait for another server then.
        start_beside(pool, ServerKind::Device);
    }
    let probed = probe(options, &python.path, cache, root, pool)?;
    probed.keep(cache, &python.path);
    Ok(Some(Arc::new(probed)))
}

/// Starts a server while something else goes on.
pub(super) fn start_beside(pool: &Arc<Pool>, kind: ServerKind) {
    let pool = Arc::clone(pool);
    std::thread::spawn(move || pool.hello(kind));
}

/// Starts the interpreter and probes it.
fn probe(options: &Options, python: &Path, cache: &Path, root: &Path, pool: &Pool) -> Result<Toolchain, NoSession> {
    let kind = ServerKind::Compiled;
    let hello = pool.hello(kind).map_err(unprobed)?;
    for module in ["torch", "triton"] {
        if let Some(missing) = hello.missing.iter().find(|missing| missing.module == module) {
            return Err(NoSession::Machine {
                message: format!("`{}` cannot import {module}: {}", python.display(), missing.reason),
                hint: Some("run `uv sync`, or name another interpreter with `--python`".to_owned()),
            });
        }
    }
    let Probed { toolchain, names, signatures, modules } =
        ask(python, cache, root, pool, "t2t_harness.phases.probe:probe", json!({}))?;
    let mut versions: BTreeMap<String, String> =
        toolchain.into_iter().filter_map(|(name, version)| Some((name, version?))).collect();
    // A path is of this machine alone, and no version.
    let nvcc = versions.remove(NVCC).map(PathBuf::from);
    let modules = Modules { path: hello.path, suffixes: modules.suffixes, mapped: modules.mapped };
    Ok(Toolchain::new(python, options.search.as_deref(), modules, (versions, nvcc), names, signatures))
}

fn scratch_of(cache: &Path) -> PathBuf {
    cache.join("scratch").join(leftovers::probe_folder(std::process::id()))
}

/// Asks a function of the harness that runs no kernel code, and returns its documents.
pub(crate) fn ask<T: DeserializeOwned>(
    python: &Path,
    cache: &Path,
    root: &Path,
    pool: &Pool,
    function: &str,
    mut arguments: Value,
) -> Result<T, NoSession> {
    let scratch = scratch_of(cache);
    fs::make_folder(&scratch).map_err(|error| unwritten("cannot write to `cache/`", &error))?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let alone = Alone { root: text(root), scratch: text(&scratch), lane: Lane::Compile };
    if let (Value::Object(own), Value::Object(alone)) = (&mut arguments, json!(alone)) {
        own.extend(alone);
    }
    let request = Request {
        id: 0,
        function: function.to_owned(),
        arguments,
        scratch: scratch.to_string_lossy().into_owned(),
        environment: BTreeMap::new(),
        limits: Limits::wall(60_000),
        sandbox: None,
        watch_under: None,
        reserve: None,
        stays: false,
        undisturbed: false,
        needs: None,
    };
    let finished = pool.call(ServerKind::Compiled, request, &Cancel::default(), |_, _| {});
    let _ = fs::remove(&scratch);
    match finished.map_err(unprobed)?.end {
        End::Reply(told) => {
            let documents = Reply::of(&told).map(|reply| json!(reply.documents));
            let found = documents.and_then(|documents| read::leniently(&documents));
            found.map_err(|misfit| machine(&format!("`{function}` gave no usable reply"), &misfit))
        }
        end => Err(machine(&format!("`{}` cannot be asked what it has", python.display()), &end)),
    }
}

fn unprobed(error: NoCall) -> NoSession {
    match error {
        NoCall::Start(error) => error.into(),
        NoCall::Interrupted => NoSession::Interrupted,
        NoCall::Died(_) | NoCall::Cancelled => machine("the interpreter cannot be probed for its versions", &error),
    }
}

/// Returns the fingerprints of the interpreter's versions.
pub(crate) fn witnesses_of(options: &Options, toolchain: Option<&Toolchain>) -> Option<Vec<Fingerprint<'static>>> {
    toolchain?.fingerprints(&options.python.as_ref()?.path, options.search.as_deref())
}
