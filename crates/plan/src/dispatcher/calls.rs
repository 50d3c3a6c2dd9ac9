//! Calls: which warm child may serve a call of the harness, whether it stays, and how many others get ready meanwhile.
//!
//! What a child does before its request depends on nothing that a request says, so a call comes to the same with one that was ready and with one that was not.

use t2t_model::action::Phase;

use crate::functions::{FOLLOW, Function, Queues, WarmUp};

/// How many children for measurements wait beside one at the most.
const WHILE_MEASURED: usize = 2;

/// How many judges of a device are: one serves all actions, one after the other.
const JUDGES_OF_DEVICE: usize = 1;

/// What checks on the interpreter ask for their children by.
const CHECK: &str = "check";

/// How many children a build leaves ready for kernels that another follows: for its first check, and for what comes after it.
pub(super) const AT_REST: usize = 3;

/// An action that calls functions of the harness.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Its op.
    pub op: &'a str,
    /// Its phase.
    pub phase: Phase,
    /// The device that its children see.
    pub device: Option<&'a str>,
    /// Whether its children run on the interpreter.
    pub is_interpreted: bool,
    /// Whether whoever judges it opens files of the op.
    pub opens_files: bool,
    /// How many children may be ready for its device: those that actions to come will take, or fewer.
    pub awaited: usize,
}

/// How many children there may be of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What requests ask for them by.
    pub key: String,
    /// How many may wait at once.
    pub most: usize,
}

impl Caller<'_> {
    /// Returns the key of the warm child that may run `function`. None where none may.
    #[must_use]
    pub fn key(&self, function: &Function, queues: Queues) -> Option<String> {
        let is_check = self.phase == Phase::Check && self.is_interpreted;
        let key = self.device.or_else(|| is_check.then_some(CHECK))?;
        if self.stays(function) {
            return Some(judges(key));
        }
        if self.device.is_none() {
            return (function.warm_up != WarmUp::Useless).then(|| key.to_owned());
        }
        match queues {
            Queues::One => Some(key.to_owned()),
            Queues::All => {
                (function.warm_up == WarmUp::OwnWithAllQueues).then(|| format!("{key} compiles {}", self.op))
            }
        }
    }

    /// Returns whether a child that has called `function` may call it again, for another action. To get ready and to end takes several times as long as to judge: on a
    /// device CUDA is started, and all that torch launches is loaded. A judge that imports a reference in Python, or opens other files of the op, does not stay: what it opens is
    /// that action's, and the file may be another at the next.
    #[must_use]
    pub fn stays(&self, function: &Function) -> bool {
        function.may_stay && !self.opens_files
    }

    /// Returns which children get ready for the caller's device while `function` runs: none while it measures. Starting a device takes time, and would take it from what is
    /// timed. What measures next makes everything ready itself meanwhile, and waits for them then.
    pub(super) fn beside(&self, function: &Function) -> Vec<Wanted> {
        // A judge that follows a candidate is called beside it, in either order: what gets ready is the candidate's to say, which may take one that waits.
        let is_quiet = function.is_timed || *function == FOLLOW;
        let Some(device) = self.device.filter(|_| !is_quiet) else { return Vec::new() };
        let mut awaited = self.awaited;
        if self.phase != Phase::Check {
            // Once the last check has been judged, none gets ready but in the place of another: what is measured would wait for it.
            awaited = awaited.min(WHILE_MEASURED);
        }
        let mut wanted = of_device(device, awaited);
        // The judge that works now comes back.
        wanted.retain(|wanted| !self.stays(function) || wanted.key != judges(device));
        wanted
    }
}

/// Returns which children may be ready for a device: a judge, and as many others as `awaited` says.
#[must_use]
pub fn of_device(device: &str, awaited: usize) -> Vec<Wanted> {
    let judges = Wanted { key: judges(device), most: JUDGES_OF_DEVICE };
    let kernels = Wanted { key: device.to_owned(), most: awaited };
    [judges, kernels].into_iter().filter(|wanted| wanted.most > 0).collect()
}

/// Returns which children may be ready for the next check on the interpreter: its candidate, and its judge.
#[must_use]
pub fn of_a_check() -> [Wanted; 2] {
    [CHECK.to_owned(), judges(CHECK)].map(|key| Wanted { key, most: 1 })
}

fn judges(device: &str) -> String {
    format!("{device} judges")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{BASELINE, BENCH, CANDIDATE, JUDGE, PREPARE, SAMPLE};

    fn caller(phase: Phase, device: Option<&str>) -> Caller<'_> {
        Caller { op: "add", phase, device, is_interpreted: device.is_none(), opens_files: false, awaited: 5 }
    }

    #[test]
    fn kernels_share_children_judges_stay_and_a_baseline_has_one_of_its_own() {
        let check = caller(Phase::Check, Some("GPU"));
        let key = |function: &Function, queues| check.key(function, queues);
        assert_eq!(key(&CANDIDATE, Queues::One).as_deref(), Some("GPU"));
        assert_eq!(key(&CANDIDATE, Queues::All), None);
        assert_eq!(key(&JUDGE, Queues::One).as_deref(), Some("GPU judges"));
        assert_eq!(Caller { opens_files: true, ..check }.key(&JUDGE, Queues::One).as_deref(), Some("GPU"));
        assert_eq!(key(&BASELINE, Queues::All).as_deref(), Some("GPU compiles add"));
        let interpreted = caller(Phase::Check, None);
        assert_eq!(interpreted.key(&CANDIDATE, Queues::One).as_deref(), Some("check"));
        assert_eq!(interpreted.key(&PREPARE, Queues::All), None);
        assert_eq!(caller(Phase::Bench, None).key(&CANDIDATE, Queues::One), None);
    }

    #[test]
    fn none_get_ready_beside_what_is_timed_and_few_once_nothing_is_checked() {
        let most = |phase, function| {
            let wanted = caller(phase, Some("GPU")).beside(function);
            wanted.into_iter().map(|wanted| (wanted.key, wanted.most)).collect::<Vec<_>>()
        };
        let (judges, kernels) = (("GPU judges".to_owned(), 1), ("GPU".to_owned(), 5));
        assert_eq!(most(Phase::Check, &CANDIDATE), [judges, kernels.clone()]);
        assert_eq!(most(Phase::Check, &JUDGE), [kernels]);
        assert_eq!(most(Phase::Check, &FOLLOW), []);
        assert_eq!(most(Phase::Bench, &SAMPLE), [("GPU".to_owned(), 2)]);
        assert_eq!(most(Phase::Bench, &BENCH), []);
        assert_eq!(caller(Phase::Check, None).beside(&CANDIDATE), []);
    }
}
