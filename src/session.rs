//! A session: a workspace as it is now, read once: what it declares, what its files hold, what the machine has, and the graph of it all.
//!
//! It runs nothing but, at most, one probe of the interpreter. It does not know what is stale.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{io, iter, mem};

use serde::de::DeserializeOwned;
use t2t_generate::render::Generator;
use t2t_host::device;
use t2t_host::interrupt::Interrupt;
use t2t_host::pool::Pool;
use t2t_host::toolchain::Toolchain;
use t2t_host::worker::WorkerError;
use t2t_model::action::DeviceClass;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_model::problem::Problem;
use t2t_model::publication::Entry;
use t2t_model::record::Record;
use t2t_plan::graph::expand::{Configurations, Inventory, KernelFile, expand};
use t2t_plan::graph::{Graph, Unsealed};
use t2t_report::render::build_page::OpSummary;
use t2t_spec::Spec;
use t2t_store::assets;
use t2t_store::fingerprint::Fingerprint;
use t2t_store::fs;
use t2t_store::harness::Harness;
use t2t_store::installed::Installed;
use t2t_store::readable;
use t2t_store::results::{self, Published};
use t2t_store::sources::Sources;
use t2t_store::store::cas::Cas;
use t2t_store::store::journal::{Journal, Loaded};

mod advice;
mod architectures;
mod baselines;
mod driver;
mod elsewhere;
mod files;
mod generated;
mod kept_servers;
mod known;
mod interpreter;
mod lane;
mod head_start;
mod looked;
mod options;
mod part;
mod rounds;

pub(crate) use self::advice::advice;
pub(crate) use self::driver::keep as keep_driver;
pub(crate) use self::elsewhere::{published_of, published_of_no_op, records_path};
pub use self::generated::Overwrite;
pub(crate) use self::generated::{
    FOLDER as GENERATORS, generator_files, generator_of, known_op, made, takes_the_wrapper,
};
pub(crate) use self::head_start::HeadStart;
pub(crate) use self::kept_servers::KeptServers;
pub(crate) use self::known::read_ahead;
pub use self::options::{Chosen, DeviceChoice, Options, Probing};
pub(crate) use self::part::{Part, Rest};
pub(crate) use self::rounds::{picture_path, rounds_path};

use self::advice::{machine, unwritten};
use self::architectures::architectures;
use self::files::{asset_digest, catalogue, files, made_file, templates};
use self::generated::{Generated, choose, generated};
use self::interpreter::{Asked, asked, witnesses_of};
use self::known::{Reading, add_published, has_unknown_kernels, known};
pub(crate) use self::lane::models;
use self::lane::{device_of, devices, elsewhere, targets};
use self::looked::declared;

/// The file that makes a folder a workspace.
pub(crate) const OPS: &str = "ops.yaml";

/// The folders whose files a session may come to look at without having named them before.
const HOMES: [&str; 2] = ["kernels", "assets"];

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
    pub(crate) sources: Sources,
    /// The interpreter and what is in it.
    pub(crate) toolchain: Option<Arc<Toolchain>>,
    /// The CUDA devices of the device lane.
    pub(crate) devices: Vec<device::Device>,
    /// Whether the device lane is of a device that this machine need not have: nothing runs on it, and its results are those that are known.
    pub(crate) is_elsewhere: bool,
    /// Published results that count before those of the store.
    pub(crate) published: Vec<Published>,
    /// Published results that count after those of the store.
    pub(crate) spare: Vec<Published>,
    /// The fork servers, none started unless the interpreter was probed.
    pub pool: Arc<Pool>,
    /// The file of the op catalogue.
    pub catalogue: PathBuf,
    /// The files beside the sources that the session was read from, as they were before they were read. None where a later session cannot tell whether it
    /// would read the same.
    pub(crate) fingerprints: Option<Vec<Fingerprint<'static>>>,
    /// What part of the workspace it is, where it is one.
    part: Option<Part>,
    /// The generator, where ops.yaml names it.
    pub(crate) generator: Option<Generator>,
    /// The variants whose kernels another generator is asked for than ops.yaml says.
    pub(crate) passed_over: Vec<String>,
    /// The kernel files that persons wrote and that are to be replaced, as they were.
    pub(crate) replaced: BTreeMap<String, Digest>,
    /// What the store knows, where that was read to open the session.
    loaded: RefCell<Option<Loaded>>,
    /// What the store knows, where it is being read.
    reading: RefCell<Option<Reading>>,
    /// What of the workspace, and of editable installs, kernel code may read.
    readable: OnceCell<Vec<PathBuf>>,
}

/// Asks a function of the harness that runs no kernel code about the folder `root`, which need not be a workspace yet, and returns its documents.
pub(crate) fn ask<T: DeserializeOwned>(
    root: &Path,
    options: &Options,
    interrupt: &Interrupt,
    function: &str,
    arguments: serde_json::Value,
) -> Result<T, NoSession> {
    let cache = options.cache.clone().unwrap_or_else(|| root.join("cache"));
    let harness =
        Harness::open(options.harness.as_deref()).map_err(|error| machine("cannot read the harness", &error))?;
    // It also says what is wrong with the interpreter.
    let Asked { pool, .. } = asked(options, &harness, [&cache, root], interrupt, false)?;
    let python = options.python.as_ref().map(|python| python.path.clone()).unwrap_or_default();
    interpreter::ask(&python, &cache, root, &pool, function, arguments)
}

/// Returns the workspace that `from` lies in: the nearest folder above it, or it, that has an ops.yaml.
#[must_use]
pub(crate) fn workspace(from: &Path) -> Option<PathBuf> {
    from.ancestors().find(|folder| fs::stat(&folder.join(OPS)).is_some()).map(Path::to_owned)
}

impl Session {
    /// Opens the workspace at `root`.
    pub fn open(root: &Path, options: &Options, interrupt: &Interrupt) -> Result<Self, NoSession> {
        Self::open_some(root, options, interrupt, None)
    }

    /// Opens a part of the workspace at `root`, as if ops.yaml had no other ops. Fails also where the part cannot be told from the rest.
    pub(crate) fn open_part(
        root: &Path,
        options: &Options,
        interrupt: &Interrupt,
        part: Part,
    ) -> Result<Self, NoSession> {
        Self::open_some(root, options, interrupt, Some(part))
    }

    fn open_some(root: &Path, options: &Options, interrupt: &Interrupt, part: Option<Part>) -> Result<Self, NoSession> {
        let cache = options.cache.clone().unwrap_or_else(|| root.join("cache"));
        let mut fingerprints = declared(root);
        let sources = if part.is_none() { Sources::open(root, &cache) } else { Sources::unknown(root, &cache) };
        let harness =
            Harness::open(options.harness.as_deref()).map_err(|error| machine("cannot read the harness", &error))?;
        let devices = if options.as_device.is_some() { Vec::new() } else { devices(options)? };
        let Asked { pool, toolchain } = asked(options, &harness, [&cache, root], interrupt, !devices.is_empty())?;
        let mut spec = spec(root, toolchain.as_deref(), part.as_ref())?;
        let passed_over = options.generator.as_ref().map(|chosen| choose(chosen, &mut spec)).transpose()?;
        if options.takes_kernels_as_they_are {
            spec.ops.iter_mut().flat_map(|op| &mut op.variants).for_each(|variant| variant.generator = None);
        }
        let modules = toolchain.as_ref().map(|toolchain| toolchain.modules.clone()).unwrap_or_default();
        let sources = sources.beside(Installed::new(modules)).importing_from(&spec.sources);
        let templates_named: BTreeSet<&str> = spec.ops.iter().map(|op| op.template.as_str()).collect();
        fingerprints.extend(templates_named.into_iter().map(|path| Fingerprint::of_file(root, path)));
        fingerprints.extend(rounds::fingerprints(root));
        let interpreter = witnesses_of(options, toolchain.as_deref());
        if options.require_signed && spec.trust.is_empty() {
            return Err(untrusting());
        }
        let taken = |published: Published| if options.require_signed { published.only_signed() } else { published };
        let models = models(root)?;
        let looked = (&mut fingerprints, |place: &Path| taken(results::read(place, Some(&spec.trust))));
        let asked = options.as_device.as_deref().map(|name| (name, options.cluster(&spec).is_some()));
        let elsewhere = asked.map(|asked| elsewhere([root, &cache], asked, &models, looked)).transpose()?;
        let (device, published) = elsewhere.unzip();
        let device = device.unwrap_or_else(|| device_of(&devices, &models));
        let (catalogue, catalogue_digest) = catalogue(root, &cache)?;
        let mut loaded = None;
        let mut writes = Generated::default();
        if spec.ops.iter().flat_map(|op| &op.variants).any(|variant| variant.generator.is_some()) {
            let mut known =
                known(&cache, part.as_ref()).map_err(|error| machine("cannot read `cache/journal`", &error))?;
            add_published(&mut known, published.iter());
            writes = generated(&spec, &sources, root, &known.history, options.overwrite)?;
            if part.is_some() && has_unknown_kernels(&spec, &sources, &writes.files) {
                // Of a part only the last results are known: the file may be as an earlier one made it.
                return Err(machine(
                    "cannot read a part of the workspace",
                    &"a kernel file is not as it was made last",
                ));
            }
            fingerprints.append(&mut writes.fingerprints);
            loaded = Some(known);
        }
        let targets = targets(&spec, &device, &models, &devices)?;
        let elsewhere = elsewhere::found(root, &spec, &models, &device, options, &mut fingerprints);
        let meanings = harness.meanings(&cache.join("toolchain"));
        let inventory = Inventory {
            files: files(&spec, &sources, root, &writes.files)?,
            templates: templates(&spec, root)?,
            summary_template: asset_digest(root, assets::SUMMARY_TEMPLATE),
            catalogue: catalogue_digest,
            harness: meanings.phases,
            harness_of_cuda: meanings.of_cuda,
            harness_of_inline: meanings.of_inline,
            architectures: architectures(&spec, options.architectures.as_deref(), &targets)?,
            toolchain: baselines::versions(toolchain.as_deref(), &spec, &sources),
            sources: spec.sources.clone(),
            targets,
            configurations: if spec.targets.is_empty() && device.class == DeviceClass::Interpreter {
                options.configurations
            } else {
                Configurations::All
            },
            device,
            generated: writes.files,
            generator: writes.digest,
            prompt: asset_digest(root, assets::PROMPT),
            rounds: rounds::digests(&spec, root),
            elsewhere,
        };
        let graph = Graph::seal(expand(&spec, &inventory))?;
        let is_elsewhere = published.is_some();
        let published = published.into_iter().collect();
        Ok(Self {
            root: root.to_owned(),
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
            fingerprints: interpreter.map(|more| [fingerprints, more].concat()),
            part,
            generator: writes.generator,
            passed_over: passed_over.unwrap_or_default(),
            replaced: writes.replaced,
            loaded: RefCell::new(loaded),
            reading: RefCell::default(),
            readable: OnceCell::new(),
        })
    }

    /// Has the first who asks for the history be told what was read ahead.
    pub(crate) fn expect(&self, reading: Option<Reading>) {
        self.reading.replace(reading);
    }

    /// Returns the files and folders that kernel code may read beside `kernels` and what every child may: the workspace's Python, and what is installed where no folder of
    /// `sys.path` leads. It is looked for once.
    pub fn readable(&self) -> &[PathBuf] {
        self.readable.get_or_init(|| {
            let mapped = self.toolchain.iter().flat_map(|toolchain| toolchain.modules.mapped.values());
            let mapped = mapped.flat_map(|place| [PathBuf::from(place), PathBuf::from(format!("{place}.py"))]);
            readable::readable(&self.root, &self.spec.sources).into_iter().chain(mapped).collect()
        })
    }

    /// Returns every op of the workspace, in order. Of an op that this is not a part with, what a summary tells of it comes along.
    #[must_use]
    pub(crate) fn ops(&self) -> Vec<(&str, Option<&OpSummary>)> {
        let Some(part) = &self.part else { return self.spec.ops.iter().map(|op| (op.name.as_str(), None)).collect() };
        let told = part.rest.iter().flat_map(|rest| &*rest.ops).map(Option::as_deref);
        part.lines.iter().map(|(op, _)| op.as_str()).zip(told.chain(iter::repeat(None))).collect()
    }

    /// Returns what the summary takes of the ops that this part does not have, where this is a part that is built with it.
    #[must_use]
    pub(crate) fn rest(&self) -> Option<&Rest> {
        self.part.as_ref()?.rest.as_ref()
    }

    /// Returns all records of a part's store that are known by `key`, oldest first.
    pub(crate) fn recall(&self, key: Digest) -> io::Result<Vec<Record>> {
        let places = self.part.as_ref().map(|part| part.keys.find(key)).unwrap_or_default();
        let records = Journal::open(&self.cache).records_at(&places)?;
        Ok(records.into_iter().flatten().filter(|record| record.key == key).collect())
    }

    /// Returns the kernel file at `path` as it is once it holds `bytes`.
    pub(crate) fn kernel_file(&self, path: &RepoPath, bytes: &[u8]) -> KernelFile {
        made_file(&self.sources, path, bytes)
    }

    /// Lets go of what is large and need not be put in order at the end of a process.
    pub(crate) fn leave(self) {
        let Self { spec, inventory, graph, sources, .. } = self;
        mem::forget((spec, inventory, graph, sources));
    }

    /// Returns the blobs of the store, and those of published results.
    #[must_use]
    pub(crate) fn cas(&self) -> Cas {
        let documents = self.entries().flat_map(|entry| entry.documents.values());
        let manifests: Vec<Vec<u8>> = self.entries().map(|entry| entry.manifest.encode()).collect();
        Cas::open(&self.cache).with(documents.chain(&manifests))
    }

    /// Returns the results that the store knows, and those that are published.
    pub(crate) fn history(&self) -> io::Result<Loaded> {
        let mut loaded = match (self.loaded.take(), self.reading.take().filter(|_| self.part.is_none())) {
            (Some(loaded), _) => loaded,
            (None, Some(reading)) => match reading.join() {
                Ok(loaded) => loaded?,
                Err(_) => known(&self.cache, None)?,
            },
            (None, None) => known(&self.cache, self.part.as_ref())?,
        };
        add_published(&mut loaded, self.published.iter());
        for entry in self.spare.iter().flat_map(|published| &published.entries) {
            loaded.history.add_older(entry.record.clone());
        }
        Ok(loaded)
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.published.iter().chain(&self.spare).flat_map(|published| &published.entries)
    }
}

fn untrusting() -> NoSession {
    NoSession::Use {
        message: "`--require-signed` needs trusted keys, and ops.yaml names none".to_owned(),
        hint: "name the keys whose signatures count: `trust: [ssh-ed25519 AAAA… ada@example.org]`".to_owned(),
    }
}

fn spec(root: &Path, toolchain: Option<&Toolchain>, part: Option<&Part>) -> Result<Spec, NoSession> {
    let bytes = fs::read(&root.join(OPS)).map_err(|error| machine("cannot read `ops.yaml`", &error))?;
    let bytes = part.map_or(Some(bytes.clone()), |part| part.of(&bytes));
    let bytes = bytes.ok_or_else(|| machine("cannot read a part of `ops.yaml`", &"its ops are no blocks"))?;
    let names = toolchain.and_then(Toolchain::names);
    Spec::parse(OPS, &bytes, names).map_err(NoSession::Spec)
}
