//! What is to be improved: the kernel of a variant, whose file that is, and who is asked.
//!
//! It runs nothing.

use t2t_model::action::{Phase, Target};
use t2t_model::path::RepoPath;
use t2t_plan::graph::pick::{Force, Selection as Picked, pick};
use t2t_plan::schedule::Settled;
use t2t_protocol::read;
use t2t_report::rank::Selection;
use t2t_spec::authors::{Author, TEMPLATE};
use t2t_spec::{Op, Variant};
use t2t_store::fs;

use crate::cli::error::CliError;
use crate::cli::plan::plans;
use crate::cli::trial::Kernel;
use crate::session::Session;

/// The kernel of a variant, and the author that is asked for a better one.
pub(super) struct Subject<'a> {
    /// The workspace.
    pub(super) session: &'a Session,
    /// The op.
    pub(super) op: &'a Op,
    /// The variant.
    pub(super) variant: &'a Variant,
    /// The place of its file in the workspace.
    pub(super) file: RepoPath,
    /// What the file holds.
    pub(super) source: Vec<u8>,
    /// The author's name.
    pub(super) generator: String,
    /// The author.
    pub(super) author: &'a Author,
}

impl<'a> Subject<'a> {
    /// Returns what `OP` or `OP/VARIANT` names: without a variant the one that is selected. The author is the one that is named, else the variant's own. Fails where a kernel
    /// cannot be improved, and where nobody can be asked.
    pub(super) fn of(session: &'a Session, written: &str, generator: Option<&str>) -> Result<Self, CliError> {
        let (op, variant) = written.split_once('/').map_or((written, None), |(op, variant)| (op, Some(variant)));
        let Some(op) = session.spec.op(op) else {
            return Err(CliError::misuse(
                format!("`{op}` is no op"),
                "name one, as in `t2t improve softmax/v2_tiling`",
            ));
        };
        let name = variant.map_or_else(|| chosen(session, op), |variant| Ok(variant.to_owned()))?;
        let Some(variant) = op.variant(&name) else {
            let names: Vec<&str> = op.variants.iter().map(|variant| variant.name.as_str()).collect();
            return Err(CliError::misuse(
                format!("{} has no variant `{name}`", op.name),
                format!("it has {}", names.join(", ")),
            ));
        };
        let place = format!("{}/{}", op.name, variant.name);
        if variant.module.is_some() {
            let message = format!("{place} is of an installed module, which is not written over");
            return Err(CliError::misuse(message, "declare a variant that has a file of the workspace"));
        }
        if variant.cuda.is_some() {
            let message = format!("{place} is in CUDA C++, and generators write Triton");
            return Err(CliError::misuse(message, "name a variant in Triton"));
        }
        let (generator, author) = author(session, variant, generator, &place)?;
        let unfit = |_| CliError::misuse(format!("`{}` is no place in the workspace", variant.file), "name another");
        let file = RepoPath::new(&variant.file).map_err(unfit)?;
        let source = fs::read(&file.under(&session.root)).map_err(|error| CliError::Use {
            message: format!("cannot read `{file}`: {error}"),
            hint: Some(format!("`t2t build {place}` makes kernels that a generator writes")),
        })?;
        Ok(Self { session, op, variant, file, source, generator, author })
    }

    /// Returns the kernel whose versions are tried.
    pub(super) fn kernel(&self) -> Kernel<'a> {
        Kernel { session: self.session, op: self.op, variant: self.variant }
    }

    /// Returns the variant as targets name it.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.op.name, self.variant.name)
    }
}

/// Returns the variant of an op that is selected, by results that stand.
fn chosen(session: &Session, op: &Op) -> Result<String, CliError> {
    let target = Target::of_op(&op.name, Phase::Select);
    let selection = Picked { targets: vec![target.to_string()], ..Picked::default() };
    let plans = plans(session, &pick(&session.graph, &selection, Force::Stale)?)?;
    let index = session.graph.find(&target);
    let record = plans.iter().find(|plan| Some(plan.index) == index).and_then(|plan| Settled::record(&plan.settled));
    let blob = record.and_then(|record| record.outputs.get("selection"));
    let bytes = blob.and_then(|blob| session.cas().get(blob.digest).ok());
    let found: Option<Selection> = bytes.and_then(|bytes| read::document(&bytes).ok());
    found.and_then(|selection| selection.chosen).ok_or_else(|| CliError::Missing {
        message: format!("no variant of {} is selected by results that stand", op.name),
        hint: format!("run `t2t build {0}`, or name the variant, as in `t2t improve {0}/{1}`", op.name, first(op)),
    })
}

fn first(op: &Op) -> &str {
    op.variants.first().map_or("v1_baseline", |variant| variant.name.as_str())
}

/// Returns the author with its name.
fn author<'a>(
    session: &'a Session,
    variant: &Variant,
    named: Option<&str>,
    place: &str,
) -> Result<(String, &'a Author), CliError> {
    let authors = &session.spec.authors.named;
    let known: Vec<&str> = authors.keys().map(String::as_str).collect();
    let hint = if known.is_empty() {
        "declare one: docs/reference/authors.md has entries for coding agents, servers and scripts".to_owned()
    } else {
        format!("name one with `--generator`: {}", known.join(", "))
    };
    let Some(name) = named.or(variant.generator.as_deref()) else {
        return Err(CliError::misuse(format!("ops.yaml names no author of {place}"), hint));
    };
    if name == TEMPLATE {
        let message = "`template` writes the same kernel whatever its figures are: it cannot be asked for a better one";
        return Err(CliError::misuse(message, hint));
    }
    let author = authors.get(name);
    let author = author.ok_or_else(|| CliError::misuse(format!("`generators` has no `{name}`"), hint))?;
    Ok((name.to_owned(), author))
}
