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
pub fn later(kind: ServerKind) -> Vec<String> {
    let entries: &[&str] = match kind {
        ServerKind::Interpreter => &[],
        ServerKind::Compiled => &[&[FOR_LAUNCHES], &FOR_FAKE_TENSORS[..]].concat(),
        // A calibration runs meanwhile, and the first measurement waits for all of it: what is forked before only slows it.
        ServerKind::Device => &[FOR_LAUNCHES, FOR_DEVICES],
    };
    entries.iter().map(|entry| (*entry).to_owned()).collect()
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
    fn what_is_waited_for_comes_last_on_the_server_that_forks() {
        for (kind, functions) in [
            (ServerKind::Compiled, ["analyze:analyze", "compile:compile_variant"]),
            (ServerKind::Device, ["candidate:run", "bench:bench"]),
        ] {
            let all = later(kind);
            assert_eq!(all.first().map(String::as_str), Some(FOR_LAUNCHES));
            for function in functions {
                assert_eq!(needed(function, kind == ServerKind::Device), all.last().map(String::as_str), "{function}");
            }
        }
        assert_eq!(needed("candidate:run", false), None, "the interpreter's children");
        assert_eq!(needed("calibrate:calibrate", true), None);
        assert_eq!(later(ServerKind::Interpreter), Vec::<String>::new());
    }
}
