//! The prompt of a round of `t2t improve`: that of an attempt, and below it the kernel that is to be replaced with its figures.
//!
//! It does not know who is asked.

use serde::Serialize;
use serde_json::{Value, json};
use t2t_protocol::{Analysis, Bench, Calibration, Resources};

use crate::rank::{Found, Lane, VariantResult};
use crate::render::benchmark::{self, Benchmark};
use crate::render::prompt::{self, Prompt};
use crate::render::resources::{self, KernelRow};
use crate::render::rounds::{self, Round, Row};
use crate::render::{RenderError, Template, render};

/// All that an author is told of the kernel that is to be replaced.
#[derive(Clone, Debug)]
pub struct Improving<'a> {
    /// What the author of an attempt is told.
    pub prompt: &'a Prompt<'a>,
    /// Which round it is.
    pub round: u32,
    /// The text of the kernel.
    pub source: &'a str,
    /// Its document `bench`.
    pub bench: &'a Bench,
    /// Where it was timed.
    pub lane: Lane,
    /// The document `analysis`.
    pub analysis: Option<&'a Analysis>,
    /// The document `calibration`.
    pub calibration: &'a Found<Calibration>,
    /// `ieee` or `tf32`.
    pub precision: &'a str,
    /// What its compiled kernels use.
    pub resources: Option<&'a Resources>,
    /// The rounds so far.
    pub rounds: &'a [Round],
    /// The candidate of the last round, where that was right and is not the kernel above.
    pub last: Option<&'a str>,
}

/// What the template may name.
#[derive(Serialize)]
struct Context<'a> {
    op: &'a str,
    variant: &'a str,
    file: &'a str,
    round: u32,
    source: &'a str,
    interpreter: bool,
    benchmark: Benchmark<'a>,
    kernels: Vec<KernelRow>,
    rounds: Vec<Row<'a>>,
    last: Option<&'a str>,
}

/// Returns the prompt: the template of an attempt, then that of a round. Fails where one of them is wrong.
pub fn text(attempt: Template<'_>, round: Template<'_>, told: &Improving<'_>) -> Result<String, RenderError> {
    let contract = prompt::prompt(attempt, told.prompt)?;
    let measured = VariantResult {
        name: told.prompt.variant.to_owned(),
        verdict: Found::Skipped { reason: String::new() },
        bench: Found::Document(told.bench.clone()),
    };
    let context = Context {
        op: told.prompt.op,
        variant: told.prompt.variant,
        file: told.prompt.file,
        round: told.round,
        source: told.source,
        interpreter: told.lane == Lane::Interpreter,
        benchmark: benchmark::of(benchmark::Documents {
            variants: &[&measured],
            baseline: None,
            analysis: told.analysis,
            calibration: told.calibration,
            precision: told.precision,
            selection: None,
        }),
        kernels: told.resources.map(resources::rows).unwrap_or_default(),
        rounds: rounds::rows(told.rounds),
        last: told.last,
    };
    Ok(format!("{contract}\n{}", render(round, &context)?))
}

/// Returns the same as JSON, for programs: what an attempt has, and `improve`.
#[must_use]
pub fn request(told: &Improving<'_>) -> Value {
    let mut request = prompt::request(told.prompt);
    request["improve"] = json!({
        "round": told.round,
        "source": told.source,
        "bench": told.bench,
        "calibration": told.calibration.document(),
        "resources": told.resources,
        "rounds": told.rounds,
        "last": told.last,
    });
    request
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use t2t_protocol::read::leniently;

    use super::*;
    use crate::render::rounds::{End, Screened};

    const ATTEMPT: &str = "Write `{{ file }}`.\n";
    const ROUND: &str = include_str!("../../../../assets/prompts/improve.md");

    fn figure(mean: f64) -> Value {
        json!({"runs": [], "mean": mean, "median": mean, "p20": mean, "p80": mean, "cv": 0.01, "repeated": 0})
    }

    fn told(lane: Lane, rounds: &[Round], last: Option<&str>) -> (String, Value) {
        let bench: Bench = leniently(&json!({
            "clock": "cuda-events", "final_ms": 0.5, "device": {"model": "nvidia-h200"},
            "sizes": {"large": {"binding": {"M": 4096}, "dtype": "float32", "interpreter_ms": 7.0, "variant": figure(0.5), "torch": figure(1.0)}},
        }))
        .unwrap();
        let analysis: Analysis = leniently(&json!({
            "dtype": "float32",
            "sizes": {"large": {"dims": {"M": 4096}, "bytes": 1_000_000_000, "flops": 1_000_000}},
        }))
        .unwrap();
        let calibration: Calibration = leniently(&json!({
            "clock": "cuda-events", "copy_gb_per_s": 4000.0, "copies": [], "products": {},
        }))
        .unwrap();
        let resources: Resources = leniently(&json!({"kernels": [{
            "compiled": "c", "target": "nvidia-h200", "kernel": "softmax_kernel", "constants": {"BLOCK": 16}, "num_warps": 4,
            "num_stages": 3, "registers": 32, "spills": 8, "shared": 1024, "stages": {},
        }]}))
        .unwrap();
        let (declaration, declared, devices) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let prompt = Prompt {
            op: "softmax",
            variant: "v1",
            attempt: 1,
            file: "v1.py",
            declaration: &declaration,
            declared: &declared,
            reference: None,
            analysis: None,
            devices: &devices,
            neighbours: &[],
            before: None,
        };
        let improving = Improving {
            prompt: &prompt,
            round: 2,
            source: "x = 1\n",
            bench: &bench,
            lane,
            analysis: Some(&analysis),
            calibration: &Found::Document(calibration),
            precision: "ieee",
            resources: Some(&resources),
            rounds,
            last,
        };
        let template = |text| Template { path: "assets/prompts/improve.md", text };
        (text(template(ATTEMPT), template(ROUND), &improving).unwrap(), request(&improving))
    }

    #[test]
    fn an_author_is_told_times_the_bound_resources_and_the_rounds() {
        let screened = Screened { pairs: 3, ratio: 1.25, ..Screened::default() };
        let slower = Round { round: 1, end: End::Slower, screened: Some(screened), ..Round::default() };
        let (text, request) = told(Lane::Device, &[slower], Some("y = 2\n"));
        for part in ["Write `v1.py`.", "x = 1", "y = 2", "50 %", "32 registers", "8 words", "125 %", "slower", "0.25"] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        assert!(!text.contains("interpreter"), "{text}");
        assert_eq!((&request["improve"]["round"], &request["improve"]["source"]), (&json!(2), &json!("x = 1\n")));
    }

    #[test]
    fn on_the_interpreter_figures_are_said_to_say_nothing() {
        let (text, _) = told(Lane::Interpreter, &[], None);
        assert!(text.contains("say nothing about a GPU") && !text.contains("50 %"), "{text}");
    }
}
