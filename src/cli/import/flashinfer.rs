//! A definition of FlashInfer-Bench, in the form of FlashInfer Trace: its reference becomes that of an op.
//!
//! A child of the user's Python tries the reference at the smallest size. It does not know what the reference computes, nor where the entry goes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use t2t_spec::entry;
use t2t_spec::names::Form;
use t2t_store::fs;

use self::definition::{DECLARE, Definition, Named, Tensor, Unfit};
use self::sizes::{Lengths, Sizes};
use super::imported::{self, FOLDER, Imported};
use crate::cli::arguments::FlashinferArguments;
use crate::cli::error::CliError;
use crate::cli::{Common, script};

mod definition;
mod workloads;
mod sizes;

/// What the child runs.
const TRY: &str = include_str!("flashinfer.py");

/// The reference where that of the definition returns its results in another form, with words in capitals for what differs.
const RESULTS: &str = include_str!("results.py.txt");

/// What is said where a number has no value.
const NUMBERS: &str = "give it: `--scalar eps=1e-6`";

/// A definition with what was given beside it.
pub(super) struct Given {
    op: String,
    place: String,
    bytes: Vec<u8>,
    definition: Definition,
    sizes: Sizes,
    /// The lengths at which constraints must hold, each with where they come from.
    told: Vec<(String, Lengths)>,
    /// The values of numbers.
    scalars: Map<String, Value>,
}

/// What the child says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Refused { error: String, place: String },
    Tried(Tried),
}

/// What the reference did.
#[derive(Deserialize)]
struct Tried {
    /// The values of all numbers.
    scalars: Map<String, Value>,
    mutates: Vec<String>,
    returns: Returns,
}

/// How the reference returns its results.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Returns {
    /// A tensor, or several in order: as others do.
    Plain,
    /// A list of several.
    List,
    /// A list or a tuple of one.
    Alone,
    /// A mapping.
    ByName,
}

impl Given {
    /// Reads the definition, and the workloads where they are named. Fails with the place of what t2t cannot hold.
    pub(super) fn read(arguments: &FlashinferArguments) -> Result<Self, CliError> {
        let (place, bytes) = file(&arguments.definition)?;
        let definition = Definition::read(&bytes).map_err(|unfit| at(&place, &unfit))?;
        let op = imported::name(&definition.name);
        if !Form::Name.fits(&op) {
            return Err(CliError::misuse(
                format!("{place}: name: `{op}` is not a valid op name"),
                Form::Name.hint(&op),
            ));
        }
        let misused = |unfit: Unfit| CliError::misuse(unfit.message, unfit.hint);
        let mut scalars = scalars(&arguments.scalar, &definition).map_err(misused)?;
        let Some(path) = &arguments.workloads else {
            let sizes = Sizes::given(&arguments.axis, &definition).map_err(misused)?;
            let told = sizes.bench.clone();
            return Ok(Self { op, place, bytes, definition, sizes, told, scalars });
        };
        let (of, text) = file(path)?;
        let all = workloads::read(&String::from_utf8_lossy(&text), &definition).map_err(|unfit| at(&of, &unfit))?;
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for workload in &all {
            for (name, value) in &workload.scalars {
                let before = scalars.entry(name).or_insert_with(|| value.clone());
                let line = *first.entry(name).or_insert(workload.line);
                if before != value && !is_given(&arguments.scalar, name) {
                    let message =
                        format!("{of}:{}: inputs.{name}: it is {value}, and {before} in line {line}", workload.line);
                    let hint = format!("ops.yaml holds one value: give it with `--scalar {name}={before}`");
                    return Err(CliError::misuse(message, hint));
                }
            }
        }
        let sizes = Sizes::of_workloads(&all, &definition);
        let told = all.into_iter().map(|workload| (format!("{of}:{}", workload.line), workload.axes)).collect();
        Ok(Self { op, place, bytes, definition, sizes, told, scalars })
    }

    /// Returns the op and the place of the definition.
    pub(super) fn named(&self) -> (&str, &str) {
        (&self.op, &self.place)
    }

    /// Returns what becomes of it, once a child of the user's Python has tried its reference.
    pub(super) fn imported(&self, common: &Common, root: &Path) -> Result<Imported, CliError> {
        let python = imported::python(common, root)?;
        let ended = script::run(Command::new(&python), TRY, &self.question())?;
        let tried = match serde_json::from_slice(&ended.stdout) {
            Ok(Told::Tried(tried)) => tried,
            Ok(Told::Refused { error, place }) => {
                let place = if place.contains(':') { place } else { format!("{}: {place}", self.place) };
                let hint = if error.contains("has no value") { NUMBERS } else { DECLARE };
                return Err(CliError::misuse(format!("{place}: {error}"), hint));
            }
            // A process that a reference ends answers nothing.
            Err(_) => {
                let message =
                    format!("{}: reference: its process ended without an answer, or took too long", self.place);
                return Err(CliError::misuse(message, DECLARE));
            }
        };
        Ok(Imported {
            op: self.op.clone(),
            place: self.place.clone(),
            takes: self.definition.inputs.0.iter().map(|(name, _)| name.clone()).collect(),
            entry: self.entry(&tried),
            files: self.files(&tried),
        })
    }

    fn question(&self) -> Value {
        let tensors = |named: &[(String, Tensor)]| -> Vec<Value> {
            let one = |(name, of): &(String, Tensor)| json!({"name": name, "shape": of.shape, "dtype": of.dtype});
            named.iter().map(one).collect()
        };
        let sizes: Vec<Value> = self.told.iter().map(|(place, axes)| json!({"place": place, "axes": axes})).collect();
        json!({
            "reference": self.definition.reference,
            "inputs": tensors(&self.definition.inputs.0),
            "outputs": tensors(&self.definition.outputs.0),
            "fixed": self.definition.fixed(),
            "derived": self.definition.derived(),
            "constraints": self.definition.constraints,
            "offsets": self.definition.offsets(),
            "sizes": sizes,
            "trial": self.sizes.check[0].1,
            "scalars": self.scalars,
        })
    }

    /// Returns the lengths of axes as ops.yaml has them: those of const axes as numbers, which no case changes.
    fn lengths(&self, axes: &[String]) -> Vec<Value> {
        let derived = self.definition.derived();
        let fixed = self.definition.fixed();
        let length = |axis: &String| match (fixed.get(axis.as_str()), derived.get(axis.as_str())) {
            (Some(length), _) => json!(length),
            (None, Some(said)) => json!(definition::with_numbers(said, &fixed)),
            (None, None) => json!(axis),
        };
        axes.iter().map(length).collect()
    }

    /// Returns how the values of an input are drawn, where that must be said.
    fn init(&self, name: &str, tensor: &Tensor) -> Option<String> {
        match self.definition.offsets().get(name) {
            Some(axis) => {
                let total = self.lengths(&[(*axis).to_owned()]).remove(0);
                Some(format!("{{offsets: {}}}", entry::flow(&total)))
            }
            None => init(&tensor.dtype).map(str::to_owned),
        }
    }

    /// Returns the text of the op's entry in ops.yaml, its key without indentation.
    fn entry(&self, tried: &Tried) -> String {
        let Self { op, definition, .. } = self;
        let inputs = &definition.inputs.0;
        let main = main_dtype(definition);
        let mut text = format!("{op}:\n  reference: {FOLDER}/{op}/reference.py::run\n  inputs:\n");
        for (name, tensor) in inputs {
            if let Some(value) = tried.scalars.get(name) {
                let _ = writeln!(text, "    {name}: {{scalar: {}}}", entry::flow(value));
                continue;
            }
            let mut written = format!("shape: {}", entry::flow(&json!(self.lengths(tensor.axes()))));
            if tensor.dtype != main {
                let _ = write!(written, ", dtype: {}", tensor.dtype);
            }
            if let Some(init) = self.init(name, tensor) {
                let _ = write!(written, ", init: {init}");
            }
            let _ = writeln!(text, "    {name}: {{{written}}}");
        }
        let outputs: Vec<String> = definition.outputs.0.iter().map(|(name, _)| format!("{name}: close")).collect();
        let _ = writeln!(text, "  outputs: {{{}}}", outputs.join(", "));
        if !tried.mutates.is_empty() {
            let _ = writeln!(text, "  mutates: [{}]", tried.mutates.join(", "));
        }
        let _ = writeln!(text, "  dtypes: [{main}]");
        let free = self.free();
        if !free.is_empty() {
            let written = |sizes: &[(String, Lengths)]| {
                let one = |(name, lengths): &(String, Lengths)| {
                    let of: Vec<String> =
                        free.iter().filter_map(|axis| Some(format!("{axis}: {}", lengths.get(*axis)?))).collect();
                    format!("{name}: {{{}}}", of.join(", "))
                };
                sizes.iter().map(one).collect::<Vec<_>>().join(", ")
            };
            let Sizes { bench, check } = &self.sizes;
            let _ = writeln!(text, "  bench: {{sizes: {{{}}}}}", written(bench));
            let _ = writeln!(text, "  check: {{sizes: {{{}}}}}", written(check));
            let _ = writeln!(text, "  profiles: {{cpu: {{bench: {{sizes: {{{}}}}}}}}}", written(&bench[..1]));
        }
        text + "  variants: [v1_baseline]\n"
    }

    /// Returns the var axes that are dims of the op: those that inputs have and no constraint says.
    fn free(&self) -> Vec<&str> {
        let derived = self.definition.derived();
        let lengths = self.definition.inputs.0.iter().flat_map(|(_, tensor)| self.lengths(tensor.axes()));
        let names: Vec<String> =
            lengths.filter_map(|length| length.as_str().map(definition::names)).flatten().collect();
        let is_free = |axis: &&str| !derived.contains_key(axis) && names.iter().any(|name| name == axis);
        self.definition.vars().into_iter().filter(is_free).collect()
    }

    /// Returns the files of the op, as paths in the workspace with their bytes.
    fn files(&self, tried: &Tried) -> Vec<(String, Vec<u8>)> {
        let folder = format!("{FOLDER}/{}", self.op);
        let source = self.definition.reference.clone().into_bytes();
        let of = |name: &str| format!("{folder}/{name}");
        let mut files = vec![(of("definition.json"), self.bytes.clone())];
        let outputs = self.definition.outputs.0.iter();
        let returned = match tried.returns {
            Returns::Plain => {
                files.push((of("reference.py"), source));
                return files;
            }
            Returns::List => "tuple(results)".to_owned(),
            Returns::Alone => "results[0]".to_owned(),
            Returns::ByName => outputs.map(|(name, _)| format!("results[\"{name}\"]")).collect::<Vec<_>>().join(", "),
        };
        let takes: Vec<&str> = self.definition.inputs.0.iter().map(|(name, _)| name.as_str()).collect();
        let text =
            RESULTS.replace("OP", &self.op).replace("PARAMETERS", &takes.join(", ")).replace("RETURNED", &returned);
        files.extend([(of("definition.py"), source), (of("reference.py"), text.into_bytes())]);
        files
    }
}

/// Returns the place and the bytes of a file.
fn file(path: &Path) -> Result<(String, Vec<u8>), CliError> {
    let place = path.display().to_string();
    let hint = "name a file in the form of FlashInfer Trace";
    match fs::read(path) {
        Ok(bytes) => Ok((place, bytes)),
        Err(error) => Err(CliError::misuse(format!("{place}: {error}"), hint)),
    }
}

fn at(place: &str, unfit: &Unfit) -> CliError {
    CliError::misuse(format!("{place}:{}", unfit.message), unfit.hint)
}

/// Returns the values that `--scalar eps=1e-6` gives to numbers among the inputs.
fn scalars(texts: &[String], definition: &Definition) -> Result<Map<String, Value>, Unfit> {
    let mut found = Map::new();
    for text in texts {
        let unfit = |why: &str| {
            Unfit::new(
                format!("`--scalar {text}`: {why}"),
                "write a number among the inputs and its value: `--scalar eps=1e-6`",
            )
        };
        let (name, told) = text.split_once('=').ok_or_else(|| unfit("it has no `=`"))?;
        let input = definition.inputs.get(name).ok_or_else(|| unfit("the definition has no such input"))?;
        if input.shape.is_some() {
            return Err(unfit("the input is a tensor"));
        }
        let value: Value = serde_json::from_str(told).map_err(|_| unfit("the value is no number, true or false"))?;
        if !value.is_number() && !value.is_boolean() {
            return Err(unfit("the value is no number, true or false"));
        }
        if found.insert(name.to_owned(), value).is_some() {
            return Err(unfit("it is given twice"));
        }
    }
    Ok(found)
}

fn is_given(texts: &[String], name: &str) -> bool {
    texts.iter().any(|text| text.split_once('=').is_some_and(|(given, _)| given == name))
}

/// Returns the dtype in which the op is tested: that of the first input of floating numbers, or of the first such output where an input is in float8, in which none is tested; else that of the first tensor.
fn main_dtype(definition: &Definition) -> &str {
    let (given, made) = (dtypes(&definition.inputs), dtypes(&definition.outputs));
    let is_tested = |dtype: &&&str| dtype.contains("float") && !definition::EIGHTS.contains(dtype);
    let is_eight = given.iter().any(|dtype| definition::EIGHTS.contains(dtype));
    let of_outputs = made.iter().filter(|_| is_eight).find(is_tested);
    let floating = of_outputs.or_else(|| given.iter().find(is_tested));
    let first = given.first().filter(|dtype| !definition::EIGHTS.contains(dtype));
    floating.or(first).copied().unwrap_or("float32")
}

/// Returns the dtypes of the tensors among inputs or outputs, in order.
fn dtypes(of: &Named<Tensor>) -> Vec<&str> {
    let tensors = of.0.iter().filter(|(_, tensor)| tensor.shape.is_some());
    tensors.map(|(_, tensor)| tensor.dtype.as_str()).collect()
}

/// Returns how values of a dtype are drawn, where that must be said.
fn init(dtype: &str) -> Option<&'static str> {
    match dtype {
        "bool" => Some("{mask: 0.5}"),
        dtype if dtype.contains("int") => Some("{randint: [0, 2]}"),
        _ => None,
    }
}
