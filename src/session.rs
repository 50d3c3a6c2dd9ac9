//! A session: a workspace as it is now, read once: what it declares, what its files hold, what the machine has, and the graph of it all.
//!
//! It runs nothing but, at most, one probe of the interpreter. It does not know what is stale.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use t2t_protocol::{End, Limits, PRELOAD, Request, ServerKind};

use crate::action::{Action, DeviceClass};
use crate::assets;
use crate::device::{self, Models};
use crate::digest::Digest;
use crate::fs;
use crate::graph::expand::{Device, Inventory, KernelFile, expand};
use crate::graph::{Graph, Unsealed};
use crate::harness::Harness;
use crate::interrupt::Interrupt;
use crate::path::RepoPath;
use crate::pool::{Cancel, NoCall, Pool};
use crate::problem::{Place, Problem};
use crate::publication::Entry;
use crate::python::Python as Source;
use crate::results::{self, Published};
use crate::sources::Sources;
use crate::spec::{self, Op, Spec, Variant};
use crate::store::cas::Cas;
use crate::store::journal::{Journal, LinePlace, Loaded};
use crate::store::leftovers;
use crate::toolchain::{Python, Toolchain};
use crate::witness::Witness;
use crate::worker::{WorkerConfig, WorkerError};

/// The file that makes a folder a workspace.
pub const OPS: &str = "ops.yaml";

/// The folders whose files a session may come to look at without having named them before.
const HOMES: [&str; 2] = ["kernels", "assets"];

/// Modules that servers import before they fork, beside torch, Triton and the harness: what children would import one after another.
const WARM: [&str; 3] = ["torch.utils._python_dispatch", "safetensors.torch", "triton.testing"];

/// What fake tensors import when the first is made, which takes seconds: only the children that compile make any.
const WARM_TO_COMPILE: [&str; 2] = ["torch._subclasses.fake_tensor", "torch._dynamo"];

/// What every child on a CUDA device would do first.
const WARM_FOR_DEVICES: [&str; 1] = ["t2t_harness.preload"];

/// What a session is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interpreter, where one was found.
    pub python: Option<Python>,
    /// `--device`.
    pub device: DeviceChoice,
    /// `--as-device`: the model of a device that this machine need not have.
    pub as_device: Option<String>,
    /// The store, where it is not the workspace's own.
    pub cache: Option<PathBuf>,
    /// `$CUDA_VISIBLE_DEVICES`.
    pub visible: Option<String>,
    /// `$PYTHONPATH`, which is part of an interpreter's environment.
    pub search: Option<OsString>,
    /// `$T2T_HARNESS`.
    pub harness: Option<PathBuf>,
    /// `$T2T_DRIVER`: the folder in which NVIDIA's driver describes itself, where it is not the usual one.
    pub driver: Option<PathBuf>,
    /// Whether the interpreter may be started to learn versions that are not known.
    pub probing: Probing,
    /// The servers of an earlier session with the same interpreter, harness and devices, to be used further.
    pub pool: Option<Arc<Pool>>,
}

/// Whether the interpreter may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probing {
    /// Where its versions are not known.
    Allowed,
    /// Never: unknown versions stay unknown.
    Never,
}

/// Which device lane was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CUDA devices where there are any, else the interpreter.
    Auto,
    /// The CUDA devices.
    Cuda,
    /// One CUDA device.
    CudaNumber(usize),
    /// The interpreter.
    Cpu,
}

/// A part of a workspace: some of its ops, and where what is known of them stands.
#[derive(Debug, Clone)]
pub struct Part {
    /// Every op of the workspace, with the line of its key in ops.yaml.
    pub lines: Vec<(String, u32)>,
    /// Those that the part has.
    pub ops: BTreeSet<String>,
    /// Their records.
    pub records: Vec<LinePlace>,
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum NoSession {
    /// ops.yaml is not as it should be.
    #[error("ops.yaml has {} problems", .0.len())]
    Spec(Vec<Problem>),
    /// Something else that the user can mend.
    #[error("{message}")]
    Use {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The machine failed.
    #[error("{message}")]
    Machine {
        /// What failed.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The interpreter cannot be used.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The actions make no graph: t2t is wrong.
    #[error(transparent)]
    Graph(#[from] Unsealed),
}

/// A workspace as it is now.
#[derive(Debug)]
pub struct Session {
    /// The workspace.
    pub root: PathBuf,
    /// Its store.
    pub cache: PathBuf,
    /// What it declares.
    pub spec: Spec,
    /// What its files and the machine hold.
    pub inventory: Inventory,
    /// All actions.
    pub graph: Graph,
    /// Its files.
    pub sources: Sources,
    /// The interpreter and what is in it.
    pub toolchain: Option<Toolchain>,
    /// The CUDA devices of the device lane.
    pub devices: Vec<device::Device>,
    /// Whether the device lane is of a device that this machine need not have: nothing runs on it, and its results are those that are known.
    pub is_elsewhere: bool,
    /// Published results that count before those of the store.
    pub published: Vec<Published>,
    /// Published results that count after those of the store.
    pub spare: Vec<Published>,
    /// The fork servers, none started unless the interpreter was probed.
    pub pool: Arc<Pool>,
    /// The file of the op catalogue.
    pub catalogue: PathBuf,
    /// The files beside the sources that the session was read from, as they were before they were read. None where a later session cannot tell whether it
    /// would read the same.
    pub witnesses: Option<Vec<Witness<'static>>>,
    /// Where the records stand that count, in a part of a workspace.
    records: Option<Vec<LinePlace>>,
}

/// Returns the workspace that `from` lies in: the nearest folder above it, or it, that has an ops.yaml.
#[must_use]
pub fn workspace(from: &Path) -> Option<PathBuf> {
    from.ancestors().find(|folder| fs::stat(&folder.join(OPS)).is_some()).map(Path::to_owned)
}

impl Session {
    /// Opens the workspace at `root`.
    pub fn open(root: &Path, options: &Options, interrupt: &Interrupt) -> Result<Self, NoSession> {
        Self::open_some(root, options, interrupt, None)
    }

    /// Opens a part of the workspace at `root`, as if ops.yaml had no other ops. Fails also where the part cannot be told from the rest.
    pub fn open_part(root: &Path, options: &Options, interrupt: &Interrupt, part: Part) -> Result<Self, NoSession> {
        Self::open_some(root, options, interrupt, Some(part))
    }

    fn open_some(root: &Path, options: &Options, interrupt: &Interrupt, part: Option<Part>) -> Result<Self, NoSession> {
        let cache = options.cache.clone().unwrap_or_else(|| root.join("cache"));
        let mut witnesses = declared(root);
        let sources = if part.is_none() { Sources::open(root, &cache) } else { Sources::unknown(root, &cache) };
        let harness =
            Harness::open(options.harness.as_deref()).map_err(|error| machine("cannot read the harness", &error))?;
        let devices = if options.as_device.is_some() { Vec::new() } else { devices(options)? };
        let pool = pool(options, &harness, &cache, !devices.is_empty(), interrupt)?;
        let toolchain = toolchain(options, &cache, root, &pool)?;
        let spec = spec(root, toolchain.as_ref(), part.as_ref())?;
        let templates_named: BTreeSet<&str> = spec.ops.iter().map(|op| op.template.as_str()).collect();
        witnesses.extend(templates_named.into_iter().map(|path| Witness::of_file(root, path)));
        let interpreter = witnesses_of(options, toolchain.as_ref());
        let models = models(root)?;
        let elsewhere = options.as_device.as_deref().map(|name| elsewhere(root, name, &models)).transpose()?;
        let (device, published) = elsewhere.unzip();
        let device = device.unwrap_or_else(|| device_of(&devices, &models));
        let (catalogue, catalogue_digest) = catalogue(root, &cache)?;
        let inventory = Inventory {
            files: files(&spec, &sources, root)?,
            templates: templates(&spec, root)?,
            summary_template: asset_digest(root, assets::SUMMARY_TEMPLATE),
            catalogue: catalogue_digest,
            harness: harness.meanings(&cache.join("toolchain")),
            toolchain: toolchain.as_ref().map(|toolchain| toolchain.versions.clone()).unwrap_or_default(),
            targets: targets(&spec, &device, &models, &devices)?,
            device,
        };
        let actions: Vec<Action> = expand(&spec, &inventory);
        let graph = Graph::seal(actions)?;
        let root = root.to_owned();
        let is_elsewhere = published.is_some();
        let published = published.into_iter().collect();
        Ok(Self {
            root,
            cache,
            spec,
            inventory,
            graph,
            sources,
            toolchain,
            devices,
            is_elsewhere,
            published,
            spare: Vec::new(),
            pool,
            catalogue,
            witnesses: interpreter.map(|more| [witnesses, more].concat()),
            records: part.map(|part| part.records),
        })
    }

    /// Returns the blobs of the store, and those of published results.
    #[must_use]
    pub fn cas(&self) -> Cas {
        let documents = self.entries().flat_map(|entry| entry.documents.values());
        let manifests: Vec<Vec<u8>> = self.entries().map(|entry| entry.manifest.encode()).collect();
        Cas::open(&self.cache).with(documents.chain(&manifests))
    }

    /// Returns the results that the store knows, and those that are published.
    pub fn history(&self) -> io::Result<Loaded> {
        let journal = Journal::open(&self.cache);
        let mut loaded = self.records.as_ref().map_or_else(|| journal.load(), |places| journal.load_from(places))?;
        for entry in self.published.iter().flat_map(|published| &published.entries) {
            loaded.history.add(entry.record.clone());
        }
        for entry in self.spare.iter().flat_map(|published| &published.entries) {
            loaded.history.add_older(entry.record.clone());
        }
        Ok(loaded)
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.published.iter().chain(&self.spare).flat_map(|published| &published.entries)
    }
}

fn machine(what: &str, error: &dyn std::fmt::Display) -> NoSession {
    NoSession::Machine { message: format!("{what}: {error}"), hint: None }
}

fn pool(
    options: &Options,
    harness: &Harness,
    cache: &Path,
    has_devices: bool,
    interrupt: &Interrupt,
) -> Result<Arc<Pool>, NoSession> {
    let Some(python) = &options.python else { return Ok(Arc::new(Pool::new(Vec::new(), interrupt.clone()))) };
    // Servers that run hold the modules of the environment that they were started in.
    let is_known = || Toolchain::kept(cache, &python.path, options.search.as_deref()).is_some();
    if let Some(pool) = options.pool.as_ref().filter(|_| is_known()) {
        return Ok(Arc::clone(pool));
    }
    let folder = match options.probing {
        Probing::Allowed => harness.place(cache).map_err(|error| machine("cannot write the harness", &error))?,
        Probing::Never => cache.join("harness"),
    };
    let configs = [ServerKind::Interpreter, ServerKind::Compiled].map(|kind| WorkerConfig {
        harness: Some(folder.clone()),
        preload: preload(kind, has_devices),
        ..WorkerConfig::new(&python.path, kind)
    });
    Ok(Arc::new(Pool::new(configs.to_vec(), interrupt.clone())))
}

fn preload(kind: ServerKind, has_devices: bool) -> Vec<String> {
    let is_compiled = kind == ServerKind::Compiled;
    let compiling: &[&str] = if is_compiled { &WARM_TO_COMPILE } else { &[] };
    let device: &[&str] = if is_compiled && has_devices { &WARM_FOR_DEVICES } else { &[] };
    let modules = PRELOAD.iter().chain(&WARM).chain(compiling).chain(device).map(|module| (*module).to_owned());
    modules.chain(Harness::entries()).collect()
}

fn toolchain(options: &Options, cache: &Path, root: &Path, pool: &Pool) -> Result<Option<Toolchain>, NoSession> {
    let Some(python) = &options.python else {
        return match options.probing {
            Probing::Never => Ok(None),
            Probing::Allowed => Err(NoSession::Use {
                message: "no Python was found: looked at --python, $T2T_PYTHON, $VIRTUAL_ENV, the workspace's .venv and t2t's own folder".to_owned(),
                hint: "run `uv run t2t build`, or name one with `--python`".to_owned(),
            }),
        };
    };
    let kept = Toolchain::kept(cache, &python.path, options.search.as_deref());
    if kept.is_some() || options.probing == Probing::Never {
        return Ok(kept);
    }
    let probed = probe(options, &python.path, cache, root, pool)?;
    probed.keep(cache, &python.path);
    Ok(Some(probed))
}

/// Starts the interpreter and asks it what it has.
#[expect(clippy::disallowed_methods, reason = "the scratch folder is this process's own")]
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
    let scratch = cache.join("scratch").join(leftovers::probe_folder(std::process::id()));
    fs::make_folder(&scratch).map_err(|error| machine("cannot write to `cache/`", &error))?;
    let request = Request {
        id: 0,
        function: "t2t_harness.probe:probe".to_owned(),
        arguments: json!({"root": root.to_string_lossy(), "scratch": scratch.to_string_lossy(), "lane": "compile"}),
        scratch: scratch.to_string_lossy().into_owned(),
        environment: BTreeMap::new(),
        limits: Limits::wall(60_000),
        sandbox: None,
        watch_under: None,
        reserve: None,
    };
    let finished = pool.call(kind, request, None, &Cancel::default());
    let _ = fs::remove(&scratch);
    let finished = finished.map_err(unprobed)?;
    let End::Reply(reply) = finished.end else {
        return Err(machine(&format!("`{}` cannot be asked what it has", python.display()), &finished.end));
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let versions = reply["documents"]["toolchain"].as_object().into_iter().flatten();
    let versions = versions.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect();
    let names = reply["documents"]["names"].as_array().into_iter().flatten().filter_map(text).collect();
    Ok(Toolchain::new(python, options.search.as_deref(), hello.path, versions, names))
}

fn unprobed(error: NoCall) -> NoSession {
    match error {
        NoCall::Start(error) => error.into(),
        NoCall::Interrupted => NoSession::Interrupted,
        NoCall::Died(_) | NoCall::Cancelled => machine("the interpreter cannot be asked what it has", &error),
    }
}

fn spec(root: &Path, toolchain: Option<&Toolchain>, part: Option<&Part>) -> Result<Spec, NoSession> {
    let bytes = fs::read(&root.join(OPS)).map_err(|error| machine("cannot read `ops.yaml`", &error))?;
    let bytes = part.map_or(Some(bytes.clone()), |part| part.of(&bytes));
    let bytes = bytes.ok_or_else(|| machine("cannot read a part of `ops.yaml`", &"its ops are no blocks"))?;
    let names = toolchain.and_then(Toolchain::names);
    Spec::parse(OPS, &bytes, names.as_ref()).map_err(NoSession::Spec)
}

impl Part {
    /// Returns what of ops.yaml speaks of the part.
    fn of(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let lines: Vec<(&str, u32)> = self.lines.iter().map(|(op, line)| (op.as_str(), *line)).collect();
        let text = std::str::from_utf8(bytes).ok()?;
        spec::part::part(text, &lines, &|op| self.ops.contains(op)).map(String::into_bytes)
    }
}

/// Returns the witnesses of what is read whatever ops.yaml says, before it is read.
fn declared(root: &Path) -> Vec<Witness<'static>> {
    [OPS, assets::DEVICES, assets::CATALOGUE, assets::SUMMARY_TEMPLATE]
        .map(|path| Witness::of_file(root, path))
        .to_vec()
}

/// Returns the witnesses of the interpreter's versions.
fn witnesses_of(options: &Options, toolchain: Option<&Toolchain>) -> Option<Vec<Witness<'static>>> {
    toolchain?.witnesses(&options.python.as_ref()?.path, options.search.as_deref())
}

fn models(root: &Path) -> Result<Models, NoSession> {
    let bytes = assets::read(root, assets::DEVICES).unwrap_or_default();
    Models::read(&bytes).map_err(|error| NoSession::Use {
        message: format!("`{}` is no table of devices: {error}", assets::DEVICES),
        hint: "restore the file, or remove it to use the one that t2t carries".to_owned(),
    })
}

fn devices(options: &Options) -> Result<Vec<device::Device>, NoSession> {
    if options.device == DeviceChoice::Cpu {
        return Ok(Vec::new());
    }
    let mut found = device::devices(options.visible.as_deref(), options.driver.as_deref());
    if let DeviceChoice::CudaNumber(number) = options.device {
        found.retain(|device| device.number == number);
    }
    // Results of different models are not one build's: the lane has the devices of the first model.
    if let Some(name) = found.first().map(|device| device.name.clone()) {
        found.retain(|device| device.name == name);
    }
    if found.is_empty() && options.device != DeviceChoice::Auto {
        return Err(NoSession::Use {
            message: "this machine has no such CUDA device".to_owned(),
            hint: "`--device cpu` uses Triton's interpreter; `t2t doctor` lists what there is".to_owned(),
        });
    }
    Ok(found)
}

/// Returns the device lane of a model that this machine need not have, with what is published of it.
fn elsewhere(root: &Path, name: &str, models: &Models) -> Result<(Device, Published), NoSession> {
    let published = |id: &str| results::read(&results::folder(root, id));
    if name == DeviceClass::Interpreter.to_string() {
        return Ok((device_of(&[], models), published(name)));
    }
    let found = models.find(name).filter(|(id, row)| id == name || row["name"] == name);
    let Some((id, row)) = found else {
        let known = models.ids().collect::<Vec<_>>().join(", ");
        return Err(NoSession::Use {
            message: format!("no device model `{name}`"),
            hint: format!("known are interpreter, {known}; `{}` can name more", assets::DEVICES),
        });
    };
    let published = published(&id);
    let driver = published.facts.as_ref().and_then(|facts| facts.driver.clone());
    Ok((Device { class: DeviceClass::Cuda(id), architecture: device::architecture(&row), driver }, published))
}

fn device_of(devices: &[device::Device], models: &Models) -> Device {
    let Some(first) = devices.first() else {
        let class = DeviceClass::Interpreter;
        return Device { architecture: class.to_string(), class, driver: None };
    };
    let (id, row) = known_model(first, models);
    Device {
        class: DeviceClass::Cuda(id),
        architecture: device::architecture(&row),
        driver: Some(first.driver.clone()),
    }
}

/// Returns the model of a device: its row of the table, or a row with nothing but the name.
fn known_model(device: &device::Device, models: &Models) -> (String, Value) {
    models.find(&device.name).unwrap_or_else(|| (device::plain_id(&device.name), json!({"name": device.name})))
}

fn targets(
    spec: &Spec,
    lane: &Device,
    models: &Models,
    devices: &[device::Device],
) -> Result<BTreeMap<String, Value>, NoSession> {
    let elsewhere = || Some(lane.class.to_string()).filter(|_| lane.class != DeviceClass::Interpreter);
    let present = devices.first().map(|device| device.name.clone()).or_else(elsewhere);
    let wanted = if spec.targets.is_empty() {
        vec![present.unwrap_or_else(|| "sm_90".to_owned())]
    } else {
        spec.targets.clone()
    };
    let unknown = |name: &str| NoSession::Use {
        message: format!("ops.yaml: no device model `{name}` to compile for"),
        hint: format!("known are {}; `assets/devices.json` can name more", models.ids().collect::<Vec<_>>().join(", ")),
    };
    wanted.iter().map(|name| models.find(name).ok_or_else(|| unknown(name))).collect()
}

/// Returns the catalogue as a file that children can read, and its digest.
fn catalogue(root: &Path, cache: &Path) -> Result<(PathBuf, Digest), NoSession> {
    let own = root.join(assets::CATALOGUE);
    if let Ok(bytes) = fs::read(&own) {
        return Ok((own, Digest::of(&bytes)));
    }
    let bytes = assets::carried(assets::CATALOGUE).unwrap_or_default();
    let digest = Digest::of(bytes);
    let path = cache.join("harness").join(format!("catalogue-{}.json", digest.short()));
    // Children read it as it is: what the key names must be what they read.
    if fs::read(&path).ok().as_deref() != Some(bytes) {
        fs::write(&path, bytes).map_err(|error| machine("cannot write to `cache/`", &error))?;
    }
    Ok((path, digest))
}

fn asset_digest(root: &Path, path: &str) -> Digest {
    Digest::of(&assets::read(root, path).unwrap_or_default())
}

/// Returns the digests of the log templates. Fails where one is not there: a build would find that out when everything else has run.
fn templates(spec: &Spec, root: &Path) -> Result<BTreeMap<String, Digest>, NoSession> {
    let digest = |op: &Op| {
        let path = op.template.clone();
        let bytes = assets::read(root, &path).ok_or_else(|| NoSession::Use {
            message: format!("ops.yaml: the log template of `{}`, `{path}`, is no file that can be read", op.name),
            hint: "write the file, or take `log: {template: …}` out of ops.yaml".to_owned(),
        })?;
        Ok((path, Digest::of(&bytes)))
    };
    spec.ops.iter().map(digest).collect()
}

fn files(spec: &Spec, sources: &Sources, root: &Path) -> Result<BTreeMap<String, KernelFile>, NoSession> {
    let declared = spec.ops.iter().flat_map(|op| op.variants.iter().map(|variant| &variant.file).chain(&op.cases));
    let paths: Vec<RepoPath> = declared.filter_map(|file| RepoPath::new(file).ok()).collect();
    sources.look_at(&paths);
    // A file that is there and cannot be read is no word on the kernel: nothing may be judged for want of it.
    for path in paths.iter().filter(|path| sources.bytes(path).is_none()) {
        let file = path.under(root);
        if fs::stat(&file).is_some()
            && let Err(error) = fs::read(&file)
        {
            return Err(NoSession::Machine {
                message: format!("cannot read `{path}`: {error}"),
                hint: Some("let the user who builds read it".to_owned()),
            });
        }
    }
    let variants = spec.ops.iter().flat_map(|op| &op.variants);
    let kernels = variants.map(|variant| (variant.file.clone(), kernel_file(sources, &variant.file, Some(variant))));
    let cases = spec.ops.iter().filter_map(|op| op.cases.as_ref());
    Ok(kernels.chain(cases.map(|file| (file.clone(), kernel_file(sources, file, None)))).collect())
}

impl Session {
    /// Returns whether what the file or folder at `path` holds can be of any account for what was decided: it was looked at, or it lies where kernels, templates and
    /// tables do.
    #[must_use]
    pub fn minds(&self, path: &RepoPath) -> bool {
        let text = path.as_str();
        let is_home = |home: &str| text.strip_prefix(home).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        text == OPS
            || HOMES.iter().any(|home| is_home(home))
            || self.witnesses.iter().flatten().any(|witness| witness.path == text)
            || self.sources.has_looked_at(path)
    }

    /// Returns the Python files in the folders of the declared ops that no variant, no `cases.py` and no import of theirs names: most often a variant that
    /// somebody forgot to list.
    #[must_use]
    pub fn unlisted(&self) -> Vec<RepoPath> {
        let known: BTreeSet<&RepoPath> = self.inventory.files.values().flat_map(|file| file.closure.keys()).collect();
        let folders = self.spec.ops.iter().map(|op| self.root.join("kernels").join(&op.name));
        let files = folders.flat_map(|folder| fs::files_below(&folder, "py"));
        let paths = files.filter_map(|file| RepoPath::below(&self.root, &file).ok());
        paths.filter(|path| !known.contains(path) && !path.as_str().ends_with("/__init__.py")).collect()
    }
}

fn kernel_file(sources: &Sources, file: &str, variant: Option<&Variant>) -> KernelFile {
    let Ok(path) = RepoPath::new(file) else {
        return KernelFile {
            fault: Some(Problem::of_file(file, "the path leaves the workspace")),
            ..KernelFile::default()
        };
    };
    let Some(source) = sources.python(&path) else {
        let named = if variant.is_some() { "the variant" } else { "`cases`" };
        let hint = format!("write the file, or take {named} out of ops.yaml");
        return KernelFile {
            fault: Some(Problem::of_file(file, "no such file").with_hint(hint)),
            ..KernelFile::default()
        };
    };
    let fault = fault_of(file, &source).or_else(|| missing_entry(file, &source, variant?));
    KernelFile { closure: sources.closure(&path), docstring: source.docstring, fault }
}

fn fault_of(file: &str, source: &Source) -> Option<Problem> {
    let fault = source.fault.as_ref()?;
    let place = Place { line: fault.line, column: fault.column };
    Some(Problem {
        line: Some(place.line),
        column: Some(place.column),
        excerpt: Some(fault.excerpt.clone()),
        ..Problem::of_file(file, fault.message.clone())
    })
}

fn missing_entry(file: &str, source: &Source, variant: &Variant) -> Option<Problem> {
    let there = |name: &str| source.callables.iter().chain(&source.names).any(|bound| bound == name);
    if there(&variant.entry) || there("*") {
        return None;
    }
    let names: Vec<String> = source.callables.iter().map(|name| format!("`{name}`")).collect();
    let has = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
    let message = format!("no callable `{}`; the file has {has}", variant.entry);
    Some(Problem::of_file(file, message).with_hint("name the wrapper with `entry:` in ops.yaml"))
}
