//! What fork servers import once they serve, and which calls wait for which of it.
//!
//! It does not know servers, nor what they import before. What is not listed here, the children that need it import themselves.

use t2t_protocol::ServerKind;

/// What a child that launches or compiles a kernel would do first.
const FOR_LAUNCHES: &str = "t2t_harness.preload:launching";

/// What the first fake tensor imports, which takes seconds: children that analyze or compile make some. The first two are parts of the last.
const FOR_FAKE_TENSORS: [&str; 4] = ["mpmath", "sympy", "torch._subclasses.fake_tensor", "torch._dynamo"];

/// What a child on a CUDA device would do first, but for those that launch nothing of Triton's and compile nothing.
pub const FOR_DEVICES: &str = "t2t_harness.preload:parts";

/// Lists what a server of `kind` imports after its hello, in order.
#[must_use]
pub fn later(kind: ServerKind, has_devices: bool) -> Vec<String> {
    match kind {
        ServerKind::Interpreter => Vec::new(),
        ServerKind::Compiled => {
            // A calibration runs meanwhile, and the first measurement waits for all of it and for an analysis: what is forked before only slows it.
            let device = has_devices.then_some(FOR_DEVICES);
            [FOR_LAUNCHES].into_iter().chain(device).chain(FOR_FAKE_TENSORS).map(str::to_owned).collect()
        }
    }
}

/// Returns the entry of [`later`] up to which a server must have come before it forks a child that calls `function`, as `module:function` of the
/// harness; `None` where any time will do.
#[must_use]
pub fn needed(function: &str, has_device: bool) -> Option<&'static str> {
    match function {
        "analyze:analyze" | "compile:compile_variant" => FOR_FAKE_TENSORS.last().copied(),
        "calibrate:calibrate" | "prepare:prepare" => None,
        _ => has_device.then_some(FOR_DEVICES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_imported_by_the_server_that_forks() {
        let all = later(ServerKind::Compiled, true);
        for function in ["analyze:analyze", "compile:compile_variant", "candidate:run", "bench:bench", "sweep:sweep"] {
            let needed = needed(function, true).unwrap();
            assert!(all.iter().any(|entry| entry == needed), "{function} waits for {needed}");
        }
        assert_eq!(needed("candidate:run", false), None, "the interpreter's children");
        assert_eq!(needed("calibrate:calibrate", true), None);
        assert_eq!(later(ServerKind::Interpreter, true), Vec::<String>::new());
    }

    #[test]
    fn what_needs_fake_tensors_waits_for_all() {
        let needed = needed("analyze:analyze", false).unwrap();
        for has_devices in [false, true] {
            assert_eq!(later(ServerKind::Compiled, has_devices)[0], FOR_LAUNCHES);
            assert_eq!(later(ServerKind::Compiled, has_devices).last().map(String::as_str), Some(needed));
        }
        let launches = FOR_LAUNCHES.last().copied();
        let listed = later(ServerKind::Compiled, true);
        assert!(
            listed.iter().position(|entry| Some(entry.as_str()) == launches)
                < listed.iter().position(|entry| entry == FOR_DEVICES)
        );
    }
}
