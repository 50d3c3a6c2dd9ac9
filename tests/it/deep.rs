//! Files that nest deep, or are long: whoever wrote one gets told where, and whatever is beside it goes on.

use crate::project::{OPS, Project};

/// How a kernel nests, `MORE` times over: before, what is repeated, between, what closes it.
const NESTED: [(&str, &str, &str, &str, &str); 18] = [
    ("attributes", "x = a", ".b", "", ""),
    ("awaits", "x = ", "await ", "a", ""),
    ("braces", "x = ", "{", "1", "}"),
    ("brackets", "x = ", "[", "", "]"),
    ("calls", "x = a", "()", "", ""),
    ("chars", "x = ", "f'{", "1", "}'"),
    ("cut", "x = ", "(", "", ""),
    ("formats", "x = f'", "{a:", "", "}"),
    ("lambdas", "x = ", "lambda:", "1", ""),
    ("minuses", "x = ", "-", "1", ""),
    ("nots", "x = ", "not ", "1", ""),
    ("parameters", "x = ", "lambda a, b: ", "1", ""),
    ("parentheses", "x = ", "(", "1", ")"),
    ("pattern", "match a:\n  case ", "[", "", "]"),
    ("pluses", "x = 1", "+1", "", ""),
    ("powers", "x = 1", "**1", "", ""),
    ("subscripts", "x = a", "[0]", "", ""),
    ("ternaries", "x = ", "1 if 1 else ", "1", ""),
];

const MORE: usize = 300_000;

/// Returns lines of which each is indented one further than the last.
fn steps(line: &str, count: usize) -> String {
    (0..count).flat_map(|depth| [" ".repeat(depth), line.to_owned(), "\n".to_owned()]).collect()
}

#[test]
fn a_kernel_that_nests_too_deep_or_is_too_long_is_rejected_and_the_others_go_on() {
    let variants: Vec<&str> = NESTED.iter().map(|kind| kind.0).chain(["blocks", "long", "importing"]).collect();
    let named = format!("variants: [v1_baseline, {}]\n  bench:", variants.join(", "));
    let project = Project::with(&format!(
        "{}    variants: [v1_baseline]\n",
        OPS.replace("variants: [v1_baseline, v2_tiling]\n  bench:", &named)
    ));
    for op in ["softmax", "gelu"] {
        project.kernel(op, "v1_baseline", "");
    }
    let place = |variant: &str| format!("kernels/softmax/{variant}.py");
    for (name, before, more, between, after) in NESTED {
        let text = format!("y = 1\n{before}{}{between}{}\n", more.repeat(MORE), after.repeat(MORE));
        project.write(&place(name), text);
    }
    project.write(&place("blocks"), format!("{}{}pass\n", steps("if a:", 1100), " ".repeat(1100)));
    project.write(&place("long"), "# more\n".repeat(8_000_000));
    project.write("kernels/common.py", format!("x = {}1\n", "-".repeat(MORE)));
    project.write(&place("importing"), "import kernels.common\n\ndef triton_softmax(input):\n    return input\n");

    project.t2t("status").exits(0);
    project.t2t("explain softmax/pluses:check").exits(0);
    project.t2t("graph").exits(0);
    let mut built = project.build().exits(1);
    for name in &variants {
        built = built.says(&format!("compile softmax/{name} … rejected"));
        if !["blocks", "long", "importing"].contains(name) {
            built = built.says(&format!("kernels/softmax/{name}.py:"));
        }
    }
    let built = built.says("kernels/softmax/minuses.py:2:1004: the syntax nests deeper than 1000 levels");
    let built =
        built.says("kernels/softmax/long.py:1:1: the file has 56000000 bytes, more than the 4194304 that are read");
    let built = built.says("kernels/common.py:1:1004: the syntax nests deeper").says("hint: part it into");
    built.says("check softmax/v1_baseline … passed").never_says("gelu/v1_baseline … rejected");
    project.t2t("explain softmax/pluses:check").exits(0).says("source");
}

#[test]
fn ops_yaml_that_nests_too_deep_is_bad_use() {
    let blocks = steps("a:", 3000);
    let project = Project::with(OPS);
    let call = format!("    call: entry({}1)\n", "-".repeat(MORE));
    let dim = OPS.replacen("[M, N]", &format!("[\"M{}\", N]", "+1".repeat(MORE)), 1);
    for text in [
        "a: ".to_owned() + &"[".repeat(MORE),
        "a: ".to_owned() + &"{a: ".repeat(MORE),
        "- ".repeat(MORE),
        blocks,
        format!("{OPS}{call}"),
        dim,
    ] {
        project.write("ops.yaml", &text);
        for command in ["status", "build", "explain softmax", "graph"] {
            project.t2t(command).exits(2).says("error: ops.yaml:").says("hint: ");
        }
    }
}
