//! The kernel files of a named op: which are to be written, with their text, and which stay as they are.

use std::path::{Path, PathBuf};

use t2t_generate::render::{Form, Generator, Request, Variant, variant_names};

use super::families::misuse;
use super::listing::counted;
use super::{Named, Ops};
use crate::cli::error::CliError;
use crate::session::takes_the_wrapper;

/// Who writes kernel files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// Builds do, and make them again where they fail: the entry names the generator.
    Builds,
    /// The command does, as a person would.
    Now,
}

/// A kernel file to be written.
pub(super) struct File {
    /// Relative to the workspace.
    pub(super) path: String,
    pub(super) place: PathBuf,
    pub(super) text: String,
}

/// The kernels of an op.
pub(super) struct Kernels {
    /// The op's name in ops.yaml.
    pub(super) name: String,
    /// The full name of torch's function.
    torch: String,
    /// Whether ops.yaml gets an entry for it.
    is_new: bool,
    /// How many builds make.
    made: usize,
    /// Those to be written.
    pub(super) files: Vec<File>,
    /// The files of those that are there already.
    pub(super) kept: Vec<String>,
    /// Why missing ones are not written, if some are not.
    note: Option<&'static str>,
}

impl Kernels {
    /// Returns the kernels of `named` in the variants `chosen`, as ops.yaml declares them, to be written here or made by builds. Fails where a template is wrong.
    pub(super) fn of(
        generator: &Generator,
        named: &Named,
        chosen: &[String],
        ops: &Ops,
        root: &Path,
        writing: Writing,
    ) -> Result<Self, CliError> {
        let declared = ops.spec.op(&named.name).expect("ops.yaml has each named op by now");
        let function = declared.torch.as_ref().and_then(|torch| generator.catalogue.find(torch.as_str()));
        let is_same = function.is_some_and(|op| op.name == named.op.name);
        let all = variant_names(&generator.catalogue, named.op);
        let (name, torch) = (named.name.clone(), named.op.torch.clone());
        let is_new = ops.new.contains(&name);
        let mut kernels = Self { name, torch, is_new, made: 0, files: Vec::new(), kept: Vec::new(), note: None };
        if !is_same {
            kernels.note = Some("it is not torch's function of that name, so no kernels are made for it");
            return Ok(kernels);
        }
        for variant in declared.variants.iter().filter(|variant| variant.module.is_none()) {
            let place = root.join(&variant.file);
            let of = all.iter().position(|name| *name == variant.name);
            if place.symlink_metadata().is_ok() {
                kernels.kept.push(variant.file.clone());
            } else if let Some(of) = of.filter(|_| chosen.contains(&variant.name)) {
                if writing == Writing::Builds {
                    let is_made = variant.generator.is_some();
                    kernels.made += usize::from(is_made);
                    kernels.note = kernels.note.or((!is_made).then_some("`--write` writes the kernels that it lacks"));
                    continue;
                }
                if !takes_the_wrapper(variant) {
                    kernels.note = Some("a variant that is called in a way of its own is left to you");
                    continue;
                }
                let request = Request {
                    entry: variant.entry.clone(),
                    backward: declared.backward,
                    ..Request::new(named.op, Variant::ALL[of], Form::Standard)
                };
                let text = generator.render(&request).map_err(|fault| misuse(&fault.to_string()))?;
                kernels.files.push(File { path: variant.file.clone(), place, text });
            }
        }
        Ok(kernels)
    }

    /// Returns what becomes of the op, on one line.
    pub(super) fn line(&self) -> String {
        let Self { name, torch, .. } = self;
        let mut parts =
            vec![if self.is_new { torch.clone() } else { "in ops.yaml already, its entry stays".to_owned() }];
        if !self.files.is_empty() {
            let folder = format!("kernels/{name}");
            let is_usual = self.files.iter().all(|file| Path::new(&file.path).starts_with(&folder));
            let place = if is_usual { format!(" in {folder}") } else { String::new() };
            parts.push(counted(self.files.len(), "kernel") + &place);
        }
        if self.made > 0 {
            parts.push(format!("{}, made by builds", counted(self.made, "kernel")));
        }
        if self.is_new && !self.kept.is_empty() {
            parts.push(format!("{} there already, kept", self.kept.join(", ")));
        }
        parts.extend(self.note.map(str::to_owned));
        format!("{name}: {}", parts.join("; "))
    }
}
