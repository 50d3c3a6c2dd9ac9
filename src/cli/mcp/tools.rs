//! The tools: their names, what they say of themselves, what they take, and which function each one is.
//!
//! It does not know how tools work. docs/reference/agents.md lists them.

use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::arguments::{
    Nothing, OfEntry, OfExplanation, OfKernel, OfLog, OfNames, OfNew, OfOp, OfStage, OfTargets, OfVariant,
};
use super::child::{Fault, Program};
use super::follow::Caller;
use super::{contract, declare, look, submit};

/// What a tool does to the workspace's own files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It leaves kernels/ and ops.yaml as they are.
    Look,
    /// It adds to them.
    Add,
    /// It may put a file in the place of another.
    Replace,
}

/// Returns all tools, as a client is told of them.
pub(super) fn all() -> Vec<Tool> {
    vec![
        tool::<Nothing>(
            "list_ops",
            Does::Look,
            "List the ops of ops.yaml, their variants and files, and how each phase stands: fresh, stale or skipped; passed, rejected or not judged.",
        ),
        tool::<OfVariant>(
            "read_contract",
            Does::Look,
            "Say what the kernel file of a variant must offer and on what it is judged: file, entry, parameters, inputs, dtypes, tolerances, sizes, cases. Read it before you write a kernel.",
        ),
        tool::<OfOp>(
            "read_analysis",
            Does::Look,
            "Read the analysis of an op: what it computes, FLOPs and bytes by size, what bounds it, how it goes through memory. It is made first if it is stale.",
        ),
        tool::<OfVariant>("read_kernel", Does::Look, "Read the kernel file of a variant."),
        tool::<OfNames>(
            "add_op",
            Does::Add,
            "Add ops to ops.yaml by the names of torch operations that t2t's catalogue knows; builds make kernels for them, which a submission may replace. In a folder without ops.yaml this makes the workspace.",
        ),
        tool::<OfEntry>(
            "declare_op",
            Does::Add,
            "Add one op to ops.yaml by an entry that you write, for what `add_op` does not know. The file is left as it is unless the whole is valid.",
        ),
        tool::<OfNew>(
            "add_variant",
            Does::Add,
            "Add a variant to an op that is there: ops.yaml lists it, and its file is a copy of another variant's, which a submission replaces.",
        ),
        tool::<OfKernel>(
            "submit_kernel",
            Does::Replace,
            "Put the source of a kernel in the place of a variant's file, compile, check and measure it, and return the verdict: passed or rejected, class, failures with line, excerpt and hint, cases, registers and spills, figures. It may take minutes.",
        ),
        tool::<OfTargets>(
            "build",
            Does::Add,
            "Bring targets up to date: the ones named, or everything. Only what is stale runs. Logs are written for whole ops.",
        ),
        tool::<OfExplanation>(
            "explain",
            Does::Look,
            "Explain targets: why they are stale, how they ended and what their results depend on. Or explain a class of rejections, as `mismatch`: what it means, what helps.",
        ),
        tool::<OfLog>("read_log", Does::Look, "Read the log of an op, or the summary of all ops."),
        tool::<OfVariant>(
            "list_attempts",
            Does::Look,
            "List what was submitted for a variant, oldest first: verdict, class, the first failure's message, speedup. And what a generator tried.",
        ),
        tool::<OfStage>(
            "read_ir",
            Does::Look,
            "Read what the compiler made of a variant's kernels at a stage: ttir, ttgir, llir or ptx. In parts: `of_lines` says how long it is.",
        ),
    ]
}

fn tool<T: JsonSchema + 'static>(name: &'static str, does: Does, description: &'static str) -> Tool {
    let schema = schema_for_input::<T>().expect("what a tool takes is an object");
    let annotations = ToolAnnotations::new()
        .read_only(does == Does::Look)
        .destructive(does == Does::Replace)
        .idempotent(does == Does::Look)
        .open_world(false);
    Tool::new(name, description, schema).with_annotations(annotations)
}

/// A call of a tool, with what it was given.
enum Call {
    Ops,
    Contract(OfVariant),
    Analysis(OfOp),
    Kernel(OfVariant),
    Add(OfNames),
    Declare(OfEntry),
    Vary(OfNew),
    Submit(OfKernel),
    Build(OfTargets),
    Explain(OfExplanation),
    Log(OfLog),
    Attempts(OfVariant),
    Ir(OfStage),
}

/// Calls the tool of this name; None where there is none.
pub(super) async fn call(
    program: &Program,
    caller: &Caller,
    name: &str,
    given: JsonObject,
) -> Option<Result<Value, Fault>> {
    let call = match read(name, given)? {
        Ok(call) => call,
        Err(fault) => return Some(Err(fault)),
    };
    Some(match call {
        Call::Ops => look::ops(program, caller).await,
        Call::Contract(asked) => contract::contract(program, caller, &asked.op, &asked.variant).await,
        Call::Analysis(asked) => look::analysis(program, caller, &asked).await,
        Call::Kernel(asked) => look::kernel(program, caller, &asked).await,
        Call::Add(asked) => declare::by_name(program, caller, &asked).await,
        Call::Declare(asked) => declare::by_entry(&program.root, &asked),
        Call::Vary(asked) => declare::variant(program, caller, &asked).await,
        Call::Submit(asked) => submit::submit(program, caller, &asked).await,
        Call::Build(asked) => look::build(program, caller, &asked).await,
        Call::Explain(asked) => look::explain(program, caller, &asked).await,
        Call::Log(asked) => look::log(program, caller, &asked).await,
        Call::Attempts(asked) => look::attempts(program, caller, &asked).await,
        Call::Ir(asked) => look::ir(program, caller, &asked).await,
    })
}

/// Returns the call that a client asks for; None where no tool has the name.
fn read(name: &str, given: JsonObject) -> Option<Result<Call, Fault>> {
    Some(match name {
        "list_ops" => taken(given).map(|Nothing {}| Call::Ops),
        "read_contract" => taken(given).map(Call::Contract),
        "read_analysis" => taken(given).map(Call::Analysis),
        "read_kernel" => taken(given).map(Call::Kernel),
        "add_op" => taken(given).map(Call::Add),
        "declare_op" => taken(given).map(Call::Declare),
        "add_variant" => taken(given).map(Call::Vary),
        "submit_kernel" => taken(given).map(Call::Submit),
        "build" => taken(given).map(Call::Build),
        "explain" => taken(given).map(Call::Explain),
        "read_log" => taken(given).map(Call::Log),
        "list_attempts" => taken(given).map(Call::Attempts),
        "read_ir" => taken(given).map(Call::Ir),
        _ => return None,
    })
}

/// Returns what a tool was given, as what it takes.
fn taken<T: DeserializeOwned>(given: JsonObject) -> Result<T, Fault> {
    serde_json::from_value(Value::Object(given))
        .map_err(|error| Fault::hinted(error.to_string(), "the tool's schema says what it takes"))
}
