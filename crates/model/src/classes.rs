//! The classes of rejections: what each means, and what to do about it. docs/reference/judging.md has the rules by which they are given.
//!
//! It does not know what was rejected.

/// A class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// As in `mismatch`.
    pub name: &'static str,
    /// What was seen.
    pub meaning: &'static str,
    /// What helps.
    pub remedy: &'static str,
}

/// All classes, in the order in which a check asks.
pub const CLASSES: [Class; 26] = [
    class(
        "source",
        "the kernel file cannot be used: it is missing, is not Python, lacks its entry, or raises when it is imported",
        "mend the file at the place that is named; `entry:` in ops.yaml names another wrapper",
    ),
    class(
        "compile-error",
        "Triton, or nvcc, cannot compile a kernel for a target device",
        "mend the line that is named; `t2t build OP/VARIANT:compile` tries again, without a GPU",
    ),
    class(
        "no-compiler",
        "the variant is in CUDA C++, and this machine has no nvcc",
        "`uv sync --extra cuda` installs one into the environment, or set CUDA_HOME; `t2t doctor` says which one is found",
    ),
    class(
        "architecture",
        "nvcc does not compile for an architecture, or nothing that it compiled runs on the device",
        "take the architecture out of `TORCH_CUDA_ARCH_LIST` or `targets:`, add the device's own, or install another nvcc",
    ),
    class(
        "abi",
        "what compile built of CUDA C++ is for another torch, Python or C++ ABI than the one that is there",
        "`t2t build OP/VARIANT:compile --force` builds it for this environment; see that both machines have the same torch and Python",
    ),
    class(
        "exception",
        "the wrapper or a kernel raised; of analyze: torch itself refuses the call that ops.yaml declares",
        "`t2t repro OP/VARIANT --pdb` stops where it raises",
    ),
    class("exit", "the kernel's process ended itself", "take `sys.exit` and `os._exit` out of the kernel file"),
    class(
        "crash",
        "the kernel's process died by a signal, as by a memory fault of the device",
        "look for pointers beyond their tensor and masks that are missing; `t2t repro` shows the case alone",
    ),
    class(
        "timeout",
        "the deadline passed",
        "look for a loop that does not end; `check: {timeout: 5m}` or `bench: {timeout: 20m}` in ops.yaml gives more time",
    ),
    class(
        "memory",
        "the host or the device had no memory left for the kernel",
        "allocate less, or declare smaller sizes",
    ),
    class(
        "output-flood",
        "the kernel's process printed more than is allowed",
        "take prints out of the kernel; `t2t repro` has no such limit",
    ),
    class(
        "no-reply",
        "the kernel's process ended, or left its results, without a readable reply",
        "see what it printed in the log; `t2t repro` runs the case without t2t",
    ),
    class(
        "type",
        "the wrapper returned something else than torch does: no plain tensor, another number of them, or one on another device",
        "return what the torch function returns, in its order",
    ),
    class(
        "shape",
        "a result has another shape than torch's, or its elements share memory where torch's do not",
        "compare with the shapes in the line of the case; `expand` returns a view whose elements share memory",
    ),
    class(
        "dtype",
        "a result has another dtype than torch's",
        "allocate the output with the dtype that torch returns; `torch.empty_like` of the wrong input is the usual cause",
    ),
    class(
        "mutated-input",
        "an input has other bits or another form after the call, and neither `mutates:` nor `overwrites:` in ops.yaml names it; a backward pass wrote to the gradient that came in; or torch has other settings",
        "write into memory of your own, reshape what is not the caller's, put settings back; or declare `mutates: [NAME]` where torch writes there, too, `overwrites: [NAME]` where nobody reads it afterwards",
    ),
    class(
        "out-of-bounds",
        "a kernel wrote outside of all tensors that its call has",
        "mask the store by the lengths of the tensor it writes to; on the interpreter the line that wrote is named",
    ),
    class(
        "torch-fallback",
        "torch computed for the wrapper, or a result lies in memory that no kernel was given",
        "compute in the kernel; docs/reference/judging.md lists what torch may do",
    ),
    class(
        "no-kernel-launched",
        "a result was returned, and no kernel was launched for it",
        "launch the kernel on every path; an empty result alone needs none",
    ),
    class(
        "nan",
        "NaN or an infinity stands where torch has a number, or the other way round",
        "look at masked lanes (`other=` of a load, `padding_option=` of a block pointer's), at `exp` of large values, and at division by zero",
    ),
    class(
        "mismatch",
        "values differ from torch's by more than the tolerance, and from the exact result by more than twice torch's own error",
        "look at the first wrong index: masks, strides and block edges come first; `t2t repro OP/VARIANT CASE` runs that case alone. If nearly all elements of a float32 product are off by about 1e-3 of their size, `tl.dot` has TF32: `input_precision=\"ieee\"` asks for more, and `precision: tf32` with an `atol` and `rtol` of 1e-2 in ops.yaml for no more",
    ),
    class(
        "nondeterministic",
        "two runs on the same inputs gave other bits",
        "look for races, atomics, memory that is read before it is written, and seeds that each call draws; `deterministic: false` in ops.yaml allows it where it is meant",
    ),
    class(
        "aliased",
        "a later call returned memory of an earlier call's result, or changed it, while its caller still held it; or a result is a buffer of the kernel's class, and torch's is none",
        "allocate the result anew in every call; torch never hands out memory twice",
    ),
    class(
        "unfit-cases",
        "the cases would accept wrong results, such as all zeros: a pass would say nothing",
        "declare other or more `check: {sizes: …}`, more `check: {seeds: …}`, a tighter tolerance (of one output under `outputs`) or another `init`, or add a `cases.py`",
    ),
    class(
        "no-further-form",
        "of generate: the attempts before were rejected, and the generator has no form left that differs from them",
        "write the kernel file yourself: what is there is never written over; `t2t attempts OP/VARIANT` lists what was tried",
    ),
    class(
        "no-kernel",
        "of generate: the author ended without an error, and left no kernel: neither the file nor one fenced Python block",
        "`t2t artifact OP/VARIANT:generate failure` has what it printed; docs/reference/authors.md says how an answer is taken",
    ),
];

const fn class(name: &'static str, meaning: &'static str, remedy: &'static str) -> Class {
    Class { name, meaning, remedy }
}

/// Returns the class of that name.
#[must_use]
pub fn find(name: &str) -> Option<Class> {
    CLASSES.into_iter().find(|class| class.name == name)
}
