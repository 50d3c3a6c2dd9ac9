//! Kernels of the embedded generator, one op of each family, checked on the interpreter in an empty folder: all four variants of an op of each template pass, the first and the last of the others, and so do the forms of later attempts. The same by `t2t add`.

use t2t_generate::catalogue::Op;
use t2t_generate::files::Files;
use t2t_generate::render::{Form, Generator, Request, Variant, variant_names};

use crate::environment;
use crate::whole::{self, PART};
use crate::workspace::Workspace;

/// An op of each family.
const OPS: [&str; 16] = [
    "relu",
    "maximum",
    "lerp",
    "amax",
    "cumsum",
    "softmax",
    "rms_norm",
    "huber_loss",
    "tril",
    "addmm",
    "nll_loss",
    "max_pool1d",
    "scaled_dot_product_attention",
    "conv1d",
    "stack",
    "index_fill",
];

#[test]
fn there_is_an_op_of_each_family() {
    let generator = Generator::new(&Files::default()).unwrap();
    let families: Vec<&str> = OPS.iter().map(|op| generator.catalogue.find(op).unwrap().family.as_str()).collect();
    assert!(generator.catalogue.families().all(|family| families.contains(&family.name.as_str())), "{families:?}");
}

#[test]
fn ops_of_some_families_pass() {
    let generator = Generator::new(&Files::default()).unwrap();
    let ops: Vec<&str> = OPS.into_iter().step_by(PART).collect();
    passes(&generator, &ops, &[Form::Standard], |op| op == ops[0]);
    passes(&generator, &["mul"], &[Form::Small, Form::Plain], |_| false);
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_an_op_of_each_family_passes_one_of_each_template_in_its_four_variants_and_later_attempts() {
    let generator = Generator::new(&Files::default()).unwrap();
    passes(&generator, &OPS, &[Form::Standard], has_techniques_of_its_own);
    passes(&generator, &["mul", "softmax"], &[Form::Small, Form::General, Form::Plain], |op| op == "mul");
    whole::GENERATED.note(&environment::root());
}

#[test]
fn a_kernel_that_is_wrong_is_made_again_in_its_plainest_form() {
    let ops = "version: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}, variants: [v1_baseline], generator: template}\n";
    let workspace = Workspace::with_zygote(ops);
    let name = "pointwise.py.jinja";
    let text = Files::default().get(name).unwrap().to_owned();
    // Every form but the plainest is wrong by one.
    let wrong = text.replacen("with.value, \"mask", "with.value ~ (\"\" if plain else \" + 1.0\"), \"mask", 1);
    assert_ne!(wrong, text);
    workspace.write(&format!("assets/generators/{name}"), &wrong);
    let ran = workspace.build(&["relu:check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert_eq!(workspace.outcome("relu/v1_baseline:check"), "mismatch", "{}", ran.told);
    assert_eq!(workspace.outcome("relu/v1_baseline#2:check"), "passed", "{}", ran.told);
    assert!(workspace.read("kernels/relu/v1_baseline.py").contains("tl.float64"));
}

/// Tells whether the op is the first one here of its family's template, which has the two techniques. Of the others the baseline and both techniques together are checked: each check compiles.
fn has_techniques_of_its_own(op: &str) -> bool {
    !["maximum", "lerp", "rms_norm", "max_pool1d", "index_fill"].contains(&op)
}

/// Writes the ops' entries, and kernels of these forms, into an empty folder, has them checked, and expects every variant to pass: all four of the ops that `is_whole` tells of, of others the first and the last.
fn passes(generator: &Generator, names: &[&str], forms: &[Form], is_whole: impl Fn(&str) -> bool) {
    let ops: Vec<&Op> = names.iter().map(|name| generator.catalogue.find(name).unwrap()).collect();
    let mut text = format!("version: 1\ndefaults: {{bench: {{{MEASURED}}}}}\nops:\n");
    let mut kernels: Vec<(String, String)> = Vec::new();
    for op in &ops {
        text += &format!("  {}:\n", op.name);
        for (key, value) in op.entry() {
            let value = value.to_string();
            text += &format!("    {key}: {}\n", if key == "bench" { without_the_largest(&value) } else { value });
        }
        let mut variants: Vec<String> = Vec::new();
        for form in forms {
            let four = Variant::ALL.into_iter().zip(variant_names(&generator.catalogue, op));
            for (variant, name) in four.step_by(if is_whole(&op.name) { 1 } else { Variant::ALL.len() - 1 }) {
                let name = format!("{name}_{form:?}").to_lowercase();
                kernels.push((
                    format!("{}/{name}", op.name),
                    generator.render(&Request::new(op, variant, *form)).unwrap(),
                ));
                variants.push(name);
            }
        }
        text += &format!("    variants: [{}]\n", variants.join(", "));
    }
    let workspace = Workspace::with_zygote(&text);
    for (kernel, rendered) in &kernels {
        workspace.write(&format!("kernels/{kernel}.py"), rendered);
    }
    let ran = workspace.build(&["--phase", "check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    for (kernel, _) in kernels {
        assert_eq!(workspace.outcome(&format!("{kernel}:check")), "passed", "{kernel}\n{}", ran.told);
    }
}

/// The sizes that are measured where an op has none of its own: the default ones but the largest, whose inputs alone take longer to draw than all cases to run.
/// The tutorial's test has that one.
const MEASURED: &str = "sizes: {small: [256, 256], medium: [1024, 1024]}";

/// Returns the sizes of an op's own in the same way.
fn without_the_largest(bench: &str) -> String {
    let (others, _) = bench.split_once(", \"large\": ").expect("an op has a large size");
    format!("{others}}}}}")
}
