//! Which phases a declaration keys.
//!
//! It does not know other facts of a manifest.

use serde_json::json;
use t2t_model::action::Phase;
use t2t_spec::{Declaration, Profile, Spec};

use super::{PHASES, add, op, parse};

fn changed(before: &Declaration, after: &Declaration) -> Vec<Phase> {
    PHASES.into_iter().filter(|phase| before.facts(*phase) != after.facts(*phase)).collect()
}

/// Changes each setting alone; the phases whose facts change are the ones that the table names.
#[test]
fn a_changed_setting_changes_the_facts_of_the_phases_that_the_table_names() {
    let lines = "torch: torch.add\ninputs: {input: [M, N], other: [M, N]}\n";
    let before = op("", lines).declaration(Profile::Cuda);
    let edits = [
        ("op", "kwargs", "kwargs: {alpha: 2}"),
        ("op", "dims", "dims: {N: 2}\nbench: {sizes: {small: [256], medium: [1024], large: [4096]}}"),
        ("op", "dtypes", "dtypes: [float16]"),
        ("op", "cases", "cases: kernels/x/cases.py"),
        ("op", "precision", "precision: tf32"),
        ("op", "mutates", "mutates: [input]"),
        ("op", "overwrites", "overwrites: [input]"),
        ("op", "outputs", "outputs: {out: exact}"),
        ("op", "random", "random: {kind: normal}"),
        ("op", "backward", "backward: true"),
        ("op", "broadcast", "broadcast: true"),
        ("op", "deterministic", "deterministic: false"),
        ("op", "log", "log: {template: assets/other.md}"),
        ("op", "entry", "entry: other"),
        ("check", "atol", "check: {atol: 1}"),
        ("check", "rtol", "check: {rtol: 1}"),
        ("check", "tolerances", "check: {tolerances: {float16: [1, 1]}}"),
        ("check", "seeds", "check: {seeds: 3}"),
        ("check", "sizes", "check: {sizes: {odd: [7, 7]}}"),
        ("check", "max_retries", "check: {max_retries: 1}"),
        ("check", "timeout", "check: {timeout: 1h}"),
        ("bench", "sizes", "bench: {sizes: {small: 8}}"),
        ("bench", "runs", "bench: {runs: 2}"),
        ("bench", "warmup_ms", "bench: {warmup_ms: 2}"),
        ("bench", "rep_ms", "bench: {rep_ms: 2}"),
        ("bench", "stop", "bench: {stop: auto}"),
        ("bench", "baselines", "bench: {baselines: [torch]}"),
        ("baseline", "name", "bench: {baselines: [torch, {name: own, function: a.f}]}"),
        ("baseline", "function", "bench: {baselines: [torch, a.py::f]}"),
        ("bench", "timeout", "bench: {timeout: 1h}"),
    ];
    for (section, key, edit) in edits {
        let after = op("", &format!("{lines}{edit}")).declaration(Profile::Cuda);
        let field =
            t2t_spec::fields::FIELDS.iter().find(|field| field.section.name() == section && field.key == key).unwrap();
        // An entry is a fact of the variants, a template one of the log.
        let of_the_op = !matches!(key, "entry" | "log");
        let expected: Vec<Phase> =
            PHASES.into_iter().filter(|phase| of_the_op && field.phases.contains(phase)).collect();
        assert_eq!(changed(&before, &after), expected, "{section}.{key}");
    }
    for lines in [
        "torch: torch.sub\ninputs: {input: [M, N], other: [M, N]}",
        "torch: torch.add\ninputs: {input: [M, N], other: {shape: [M, N], init: ones}}",
    ] {
        let after = op("", lines).declaration(Profile::Cuda);
        let expected: &[Phase] = if lines.contains("sub") {
            &[Phase::Analyze, Phase::Check, Phase::Bench, Phase::Baseline]
        } else {
            &PHASES
        };
        assert_eq!(changed(&before, &after), expected, "{lines}");
    }
}

#[test]
fn what_is_unset_is_a_number_or_nan_and_says_nothing_where_it_is_not_there() {
    let of = |told: &str| {
        let declaration = add(&format!("outputs: {{out: {{{told}}}}}")).declaration(Profile::Cuda);
        declaration.facts(Phase::Check)["outputs"][0].clone()
    };
    assert_eq!(of("unset: nan")["unset"], "nan");
    assert_eq!(of("compare: exact, unset: -1")["unset"], -1);
    assert_eq!(of("unset: 0.5")["unset"], 0.5);
    assert_eq!(of("compare: exact").get("unset"), None);
}

#[test]
fn what_is_timed_keys_whatever_times_and_tunes_and_a_forward_pass_is_no_fact() {
    let of = |lines: &str| add(&format!("backward: true\n{lines}")).declaration(Profile::Cuda);
    let before = of("");
    for (pass, expected) in [("backward", "backward"), ("both", "both")] {
        let after = of(&format!("bench: {{pass: {pass}}}"));
        assert_eq!(changed(&before, &after), [Phase::Tune, Phase::Bench, Phase::Baseline], "{pass}");
        assert_eq!(after.facts(Phase::Tune)["passes"], expected);
        assert_eq!(after.facts(Phase::Bench)["protocol"]["passes"], expected);
    }
    assert_eq!(changed(&before, &of("bench: {pass: forward}")), []);
    assert!(
        !before.facts(Phase::Tune).contains_key("passes")
            && before.facts(Phase::Bench)["protocol"].get("passes").is_none()
    );
}

#[test]
fn a_variants_facts_are_those_that_the_table_names() {
    let facts = |variant: &str, phase| add(&format!("variants: [{variant}]")).variants[0].facts(phase);
    for (key, variant) in [
        ("entry", "{name: v, entry: other}"),
        ("lanes", "{name: v, lanes: [cuda]}"),
        ("deterministic", "{name: v, deterministic: false}"),
        ("file", "{name: v, file: w.py}"),
    ] {
        let field = t2t_spec::fields::FIELDS
            .iter()
            .find(|field| field.section.name() == "variant" && field.key == key)
            .unwrap();
        let changed: Vec<Phase> =
            PHASES.into_iter().filter(|phase| facts("v", *phase) != facts(variant, *phase)).collect();
        assert_eq!(changed, field.phases, "{key}");
    }
}

#[test]
fn the_order_of_ops_and_keys_is_in_no_declaration() {
    let one = parse(
        "version: 1\nops:\n  a: {torch: add, inputs: {input: [M, N]}, kwargs: {x: 1, y: {p: 1, q: 2}}}\n  b: {torch: sub, inputs: {input: [M, N]}}",
    );
    let other = parse(
        "ops:\n  b: {inputs: {input: [M, N]}, torch: sub}\n  a: {kwargs: {y: {q: 2, p: 1}, x: 1}, torch: add, inputs: {input: [M, N]}}\nversion: 1",
    );
    assert_eq!(one.ops[0].name, "a");
    assert_eq!(other.ops[0].name, "b");
    for name in ["a", "b"] {
        let text = |spec: &Spec| serde_json::to_string(&spec.op(name).unwrap().declaration(Profile::Cuda)).unwrap();
        assert_eq!(text(&one), text(&other));
    }
}

#[test]
fn a_baseline_in_one_word_is_the_same_fact_as_ever_and_a_function_tells_its_file_or_its_module() {
    let of = |baselines: &str| {
        json!(
            add(&format!("bench: {{baselines: [{baselines}]}}")).declaration(Profile::Cuda).facts(Phase::Baseline)["baselines"]
        )
    };
    assert_eq!(of("torch, torch.compile"), json!(["torch", "torch.compile"]));
    let mode = "torch.compile:reduce-overhead";
    assert_eq!(
        of(&format!(
            "torch, '{mode}', lib/a.py::f, {{name: own, function: lib/a.py::g.h}}, {{name: gems, function: flag_gems.ops.softmax}}"
        )),
        json!([
            "torch",
            mode,
            {"name": "f", "file": "lib/a.py", "function": "f"},
            {"name": "own", "file": "lib/a.py", "function": "g.h"},
            {"name": "gems", "function": "flag_gems.ops.softmax"},
        ])
    );
}

#[test]
fn an_argument_with_the_length_of_a_dim_has_another_value_in_another_size() {
    let lines = "torch: torch.nn.functional.layer_norm\ninputs: {input: [M, N]}\nkwargs: {normalized_shape: [N], eps: 1.0e-5, of: {half: N // 2}, word: sum}\n";
    let op = op("", lines);
    let found = ["normalized_shape", "eps", "of", "word", "none"].map(|name| op.is_of_lengths(name));
    assert_eq!(found, [true, false, true, false, false]);
}
