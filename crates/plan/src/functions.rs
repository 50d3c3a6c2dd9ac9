//! The functions of the harness that actions call: one table of what the dispatcher and requests have to know of each.
//!
//! It does not know actions, nor what a function computes. The functions that warm children call before their request are named here, too.

/// The package of the harness whose functions requests name, with the dot before their names.
pub const PHASES: &str = "t2t_harness.phases.";

/// What a warm child for a device calls.
pub const START_DEVICE: &str = "t2t_harness.server.ready:start_device";

/// What a warm child for a check on the interpreter calls.
pub const REHEARSE: &str = "t2t_harness.server.ready:rehearse";

/// What a warm child for the baseline of an op calls.
pub const COMPILE_AHEAD: &str = "t2t_harness.server.ready:compile_ahead";

/// The variable that sets how many queues of its device the streams of a process use.
const QUEUES: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// How many queues of its device the streams of a child use. With one the driver, which serves one child after the other, starts CUDA in half the time. A
/// single stream works the same with one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queues {
    /// One for all streams. Enough for code that uses one stream.
    One,
    /// The driver's default.
    All,
}

impl Queues {
    /// Returns the child's variable and its value, if it needs one.
    #[must_use]
    pub fn variable(self) -> Option<(&'static str, &'static str)> {
        (self == Self::One).then_some((QUEUES, "1"))
    }
}

/// What a server must have imported before it forks a child for a function. The host's `imports` has the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imports {
    /// Nothing: any time will do.
    Nothing,
    /// What the first fake tensor imports.
    FakeTensors,
    /// What a child on a device does first, if the call has one.
    OnDevice,
    /// What torch's compiler imports, if the call has a device.
    CompilerOnDevice,
}

/// Which warm child may serve a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// None: the function runs none of the code that a warm child prepares, so waiting for one would be in vain.
    Useless,
    /// One for a check on the interpreter, or for a device with one queue.
    Shared,
    /// Likewise; with all queues, one for this op alone.
    OwnWithAllQueues,
}

/// The properties of one function of the harness.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, as `module:function` of [`PHASES`].
    pub name: &'static str,
    /// Whether it runs no kernel code.
    pub is_trusted: bool,
    /// Whether it times. Children that get ready would disturb it.
    pub is_timed: bool,
    /// Whether a child that has called it may stay and call it again for another action, unless the op makes it open files.
    pub may_stay: bool,
    /// How many queues a child has at first; kernel code that uses more than one stream asks for all. A function that has torch compile has all from the start,
    /// as torch would elsewhere.
    pub queues: Queues,
    /// What its server must have imported before the fork.
    pub imports: Imports,
    /// Which warm child may serve it.
    pub warm_up: WarmUp,
}

/// The defaults: an untrusted function that neither times nor launches. The table says where others differ.
const PLAIN: Function = Function {
    name: "",
    is_trusted: false,
    is_timed: false,
    may_stay: false,
    queues: Queues::All,
    imports: Imports::OnDevice,
    warm_up: WarmUp::Shared,
};

/// The common properties of judges: they judge what kernel code left, and run none.
const JUDGES: Function = Function { is_trusted: true, may_stay: true, queues: Queues::One, ..PLAIN };

/// Measures a device's limits.
pub const CALIBRATE: Function = Function {
    name: "calibrate:calibrate",
    is_trusted: true,
    is_timed: true,
    queues: Queues::One,
    imports: Imports::Nothing,
    ..PLAIN
};

/// Finds out what torch says of an op.
pub const ANALYZE: Function =
    Function { name: "analyze:analyze", is_trusted: true, imports: Imports::FakeTensors, ..PLAIN };

/// Compiles the kernels of a variant.
pub const COMPILE: Function = Function { name: "compile:compile_variant", imports: Imports::FakeTensors, ..PLAIN };

/// Compiles the CUDA C++ of a variant.
pub const COMPILE_CUDA: Function =
    Function { name: "compile_cuda:compile_cuda", imports: Imports::Nothing, warm_up: WarmUp::Useless, ..PLAIN };

/// Compiles the CUDA C++ that a variant's Python file has torch build.
pub const COMPILE_INLINE: Function =
    Function { name: "compile_inline:compile_inline", imports: Imports::FakeTensors, ..PLAIN };

/// Makes the inputs of an op's own cases.
pub const PREPARE: Function = Function {
    name: "prepare:prepare",
    is_trusted: true,
    imports: Imports::Nothing,
    warm_up: WarmUp::Useless,
    ..PLAIN
};

/// Calls a kernel to be judged.
pub const CANDIDATE: Function = Function { name: "candidate:run", queues: Queues::One, ..PLAIN };

/// Judges what a candidate left.
pub const JUDGE: Function = Function { name: "judge:judge", ..JUDGES };

/// Judges cases while the candidate runs.
pub const FOLLOW: Function = Function { name: "judge:follow", ..JUDGES };

/// Finds the fastest configuration of a kernel.
pub const TUNE: Function = Function { name: "tune:tune", is_timed: true, queues: Queues::One, ..PLAIN };

/// Measures torch.
pub const BASELINE: Function = Function {
    name: "baseline:baseline",
    is_trusted: true,
    is_timed: true,
    imports: Imports::CompilerOnDevice,
    warm_up: WarmUp::OwnWithAllQueues,
    ..PLAIN
};

/// Measures a variant.
pub const BENCH: Function = Function { name: "bench:bench", is_timed: true, queues: Queues::One, ..PLAIN };

/// Judges an output of a call that was timed.
pub const SAMPLE: Function = Function { name: "sample:judge_sample", ..JUDGES };

/// Times variants at many sizes.
pub const SWEEP: Function =
    Function { name: "sweep:sweep", is_timed: true, imports: Imports::CompilerOnDevice, ..PLAIN };

/// Times a candidate beside the kernel that it is to replace.
pub const SCREEN: Function = Function { name: "screen:screen", is_timed: true, ..PLAIN };

/// Times two versions of a kernel beside each other.
pub const AGAINST: Function = Function { name: "against:against", is_timed: true, ..PLAIN };

/// Records what the device does for calls of a variant. It subscribes to CUPTI through torch, so nothing else of the child may.
pub const PROFILE: Function = Function { name: "profile:profile", is_timed: true, ..PLAIN };

/// Writes a case as files that run without t2t.
pub const REPRO: Function = Function { name: "repro:write", is_trusted: true, ..PLAIN };

/// All of them.
pub const FUNCTIONS: [&Function; 18] = [
    &CALIBRATE,
    &ANALYZE,
    &COMPILE,
    &COMPILE_CUDA,
    &COMPILE_INLINE,
    &PREPARE,
    &CANDIDATE,
    &JUDGE,
    &FOLLOW,
    &TUNE,
    &BASELINE,
    &BENCH,
    &SAMPLE,
    &SWEEP,
    &SCREEN,
    &AGAINST,
    &PROFILE,
    &REPRO,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_or_times_is_told_apart() {
        let mut names: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FUNCTIONS.len(), "a name stands twice");
        for function in FUNCTIONS {
            assert!(!function.may_stay || function.is_trusted, "{}: kernel code stays in no child", function.name);
            assert!(!function.may_stay || !function.is_timed, "{}", function.name);
        }
    }
}
