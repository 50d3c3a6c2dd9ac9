//! What fork servers import once they serve, and which calls wait for which entry.
//!
//! It does not know servers, nor what they import before. Children import everything else themselves.

use t2t_protocol::ServerKind;

use crate::functions::{Function, Imports};

/// What a child that launches or compiles a kernel would do first.
const FOR_LAUNCHES: &str = "t2t_harness.server.preload:launching";

/// What the first fake tensor imports. It takes seconds, and children that analyze or compile make some. The first two are imported by the last as well; they
/// are listed so that they are parts of their own, between which the server serves.
const FOR_FAKE_TENSORS: [&str; 4] = ["mpmath", "sympy", "torch._subclasses.fake_tensor", "torch._dynamo"];

/// What a child on a CUDA device would do first, unless it launches nothing of Triton's.
pub const FOR_DEVICES: &str = "t2t_harness.server.preload:device";

/// What a child that has torch compile would import, for seconds.
const FOR_COMPILER: &str = "t2t_harness.server.preload:compiler";

/// Lists what a server of `kind` imports after its hello, in order.
#[must_use]
pub fn later(kind: ServerKind) -> Vec<String> {
    let entries: &[&str] = match kind {
        ServerKind::Interpreter => &[],
        ServerKind::Compiled => &[&[FOR_LAUNCHES], &FOR_FAKE_TENSORS[..]].concat(),
        // These delay nothing: the first kernels are compiled meanwhile.
        ServerKind::Device => &[FOR_LAUNCHES, FOR_DEVICES],
    };
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

/// Lists what a server of `kind` imports once a call needs it. Most baselines have warm children that import it themselves, beside checks: a server that
/// imports would keep those checks waiting.
#[must_use]
pub fn asked(kind: ServerKind) -> Vec<String> {
    let entries: &[&str] = if kind == ServerKind::Device { &[FOR_COMPILER] } else { &[] };
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

/// Returns the last entry of [`later`] or [`asked`] that a server must have imported before it forks a child that calls `function`; `None` if it need not wait.
#[must_use]
pub fn needed(function: &Function, has_device: bool) -> Option<&'static str> {
    match function.imports {
        Imports::Nothing => None,
        Imports::FakeTensors => FOR_FAKE_TENSORS.last().copied(),
        Imports::OnDevice => has_device.then_some(FOR_DEVICES),
        Imports::CompilerOnDevice => has_device.then_some(FOR_COMPILER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{ANALYZE, BASELINE, BENCH, CALIBRATE, CANDIDATE, COMPILE, SWEEP};

    #[test]
    fn what_is_waited_for_is_imported_by_the_server_that_forks() {
        for (kind, function, before) in [
            (ServerKind::Compiled, ANALYZE, 0),
            (ServerKind::Compiled, COMPILE, 0),
            (ServerKind::Device, CANDIDATE, 1),
            (ServerKind::Device, BENCH, 1),
            (ServerKind::Device, BASELINE, 0),
            (ServerKind::Device, SWEEP, 0),
        ] {
            let all = [later(kind), asked(kind)].concat();
            assert_eq!(all.first().map(String::as_str), Some(FOR_LAUNCHES));
            let needed = needed(&function, kind == ServerKind::Device);
            assert_eq!(needed, all.iter().rev().nth(before).map(String::as_str), "{}", function.name);
        }
        assert_eq!(needed(&CANDIDATE, false), None, "the interpreter's children");
        assert_eq!(needed(&CALIBRATE, true), None);
        assert_eq!(later(ServerKind::Interpreter), Vec::<String>::new());
    }
}
