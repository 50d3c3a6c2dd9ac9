//! The functions of the harness that actions call: one table of what the dispatcher and requests have to know of each.
//!
//! It does not know actions, nor what a function computes. What children call before there is a request is here, too, by its name.

/// The package of the harness whose functions requests name, with the dot before their names.
pub const PHASES: &str = "t2t_harness.phases.";

/// What a child calls that gets ready for a device.
pub const START_DEVICE: &str = "t2t_harness.server.ready:start_device";

/// What a child calls that gets ready for a check on the interpreter.
pub const REHEARSE: &str = "t2t_harness.server.ready:rehearse";

/// What a child calls that gets ready for the baseline of an op.
pub const COMPILE_AHEAD: &str = "t2t_harness.server.ready:compile_ahead";

/// The variable that says over how many queues of its device the streams of a process are spread.
const QUEUES: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// Over how many queues of its device the streams of a child are spread. With one the driver, which serves one child after the other, starts CUDA in half the time, and
/// what one stream does is done as it would be anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queues {
    /// All have one. Enough for whoever uses one stream.
    One,
    /// As many as the driver thinks right.
    All,
}

impl Queues {
    /// Returns the variable that a child is started with, and its value.
    #[must_use]
    pub fn variable(self) -> Option<(&'static str, &'static str)> {
        (self == Self::One).then_some((QUEUES, "1"))
    }
}

/// What a server must have imported before it forks a child for a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imports {
    /// Nothing: any time will do.
    Nothing,
    /// What the first fake tensor imports.
    FakeTensors,
    /// What a child on a device does first, where the call has one.
    OnDevice,
    /// What torch's compiler imports, where the call has a device.
    CompilerOnDevice,
}

/// Which child that got ready before its request may serve a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// None: the function runs none of the code that is made ready, and would wait in vain.
    Useless,
    /// One that got ready for a check on the interpreter, or for a device with one queue.
    Shared,
    /// Likewise; with all queues, one that got ready for this op alone.
    OwnWithAllQueues,
}

/// What has to be known of one function of the harness.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, as `module:function` of [`PHASES`].
    pub name: &'static str,
    /// Whether it runs no kernel code.
    pub is_trusted: bool,
    /// Whether it times, which children that get ready would disturb.
    pub is_timed: bool,
    /// Whether a child that has called it may call it again for another action, unless the op has it open files.
    pub may_stay: bool,
    /// Over how many queues the streams of a child are spread at first: code of a kernel that uses more than one stream says so. What has torch compile something has
    /// them all, as whatever torch calls would have.
    pub queues: Queues,
    /// What its server must have imported.
    pub imports: Imports,
    /// Which child that is ready may serve it.
    pub warm_up: WarmUp,
}

/// What an untrusted function has that times nothing and launches nothing; the table says where others differ.
const PLAIN: Function = Function {
    name: "",
    is_trusted: false,
    is_timed: false,
    may_stay: false,
    queues: Queues::All,
    imports: Imports::OnDevice,
    warm_up: WarmUp::Shared,
};

/// What judges have in common: they judge what kernel code left, and run none.
const JUDGES: Function = Function { is_trusted: true, may_stay: true, queues: Queues::One, ..PLAIN };

/// Measures what a device does at most.
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

/// Writes a case as files that run without t2t.
pub const REPRO: Function = Function { name: "repro:write", is_trusted: true, ..PLAIN };

/// All of them.
pub const FUNCTIONS: [&Function; 13] = [
    &CALIBRATE, &ANALYZE, &COMPILE, &PREPARE, &CANDIDATE, &JUDGE, &FOLLOW, &TUNE, &BASELINE, &BENCH, &SAMPLE, &SWEEP,
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
