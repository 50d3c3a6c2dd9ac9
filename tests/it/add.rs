//! `t2t add`: what it writes into ops.yaml and kernels/, what it leaves alone, and what it says.

use std::thread;

use crate::project::{Project, Ran};

const VARIANTS: [&str; 4] = ["v1_baseline", "v2_tiling", "v3_coalesced", "v4_optimized"];

const SOFTMAX: &str = "  softmax:
    torch: torch.nn.functional.softmax
    inputs: {input: [M, N]}
    kwargs: {dim: -1}
    dtypes: [float32, float16]
    backward: true
    variants: [v1_baseline, v2_tiling, v3_coalesced, v4_optimized]
";

/// An empty folder, and an interpreter that no `add` starts.
fn empty() -> Project {
    let project = Project::with("");
    project.remove("ops.yaml");
    project.remove("assets");
    project
}

/// Runs `t2t add`, which writes the kernels at once, and expects that no interpreter was started.
#[track_caller]
fn add(project: &Project, arguments: &str) -> Ran {
    let writes = if arguments.contains("--list") { "" } else { " --write" };
    declare(project, &format!("{arguments}{writes}"))
}

/// Runs `t2t add` and expects that no interpreter was started.
#[track_caller]
fn declare(project: &Project, arguments: &str) -> Ran {
    let ran = project.t2t(&format!("add {arguments}"));
    assert_eq!(ran.starts, 0);
    ran
}

/// Returns the files of the workspace, relative to it.
fn files(project: &Project) -> Vec<String> {
    let root = project.path("");
    let files = project.files("").into_iter();
    files.map(|file| file.strip_prefix(&root).unwrap().display().to_string()).collect()
}

fn kernels(op: &str) -> Vec<String> {
    VARIANTS.iter().map(|variant| format!("kernels/{op}/{variant}.py")).collect()
}

/// Returns ops.yaml as `add softmax` leaves it where it was `before`.
fn after(before: &str) -> String {
    let project = empty();
    project.write("ops.yaml", before);
    add(&project, "softmax").exits(0);
    project.read("ops.yaml")
}

// What is written.

#[test]
fn those_that_add_at_once_all_have_their_way() {
    let project = empty();
    let names = ["softmax", "relu", "gelu", "rms_norm", "exp", "add", "sum", "sigmoid"];
    thread::scope(|scope| {
        for name in names {
            let project = &project;
            scope.spawn(move || project.t2t(&format!("add {name}")).exits(0));
        }
    });
    let declared = project.read("ops.yaml");
    for name in names {
        assert!(declared.contains(&format!("\n  {name}:\n")), "no `{name}` in\n{declared}");
    }
}

#[test]
fn an_empty_folder_becomes_a_workspace() {
    let project = empty();
    let ran = add(&project, "softmax F.gelu,+layernorm,").exits(0);
    let expected = [vec![".gitignore".to_owned()], kernels("gelu"), kernels("layernorm"), kernels("softmax")].concat();
    assert_eq!(files(&project), [expected, vec!["ops.yaml".to_owned()]].concat());
    assert_eq!(project.read(".gitignore"), "/cache/\n/logs/\n");
    let text = project.read("ops.yaml");
    assert!(text.starts_with(&format!("version: 1\nops:\n{SOFTMAX}  gelu:\n")), "{text}");
    assert!(text.contains("  layernorm:\n    torch: torch.nn.functional.layer_norm\n"), "{text}");
    assert!(project.read("kernels/layernorm/v4_optimized.py").contains("\ndef triton_layernorm("));
    let said = "\
wrote .gitignore
softmax: torch.nn.functional.softmax; 4 kernels in kernels/softmax
gelu: torch.nn.functional.gelu; 4 kernels in kernels/gelu
layernorm: torch.nn.functional.layer_norm; 4 kernels in kernels/layernorm
wrote 3 ops and 12 kernels; next: `t2t build --op softmax --op gelu --op layernorm`
";
    assert_eq!((ran.stderr.as_str(), ran.stdout.as_str()), (said, ""));
}

#[test]
fn kernels_are_left_to_builds_where_they_are_not_to_be_written_at_once() {
    let project = empty();
    let ran = declare(&project, "softmax F.gelu").exits(0);
    assert_eq!(files(&project), [".gitignore", "ops.yaml"]);
    let text = project.read("ops.yaml");
    assert!(text.starts_with(&format!("version: 1\nops:\n{SOFTMAX}    generator: template\n  gelu:\n")), "{text}");
    let said = "\
wrote .gitignore
softmax: torch.nn.functional.softmax; 4 kernels, made by builds
gelu: torch.nn.functional.gelu; 4 kernels, made by builds
wrote 2 ops; next: `t2t build --op softmax --op gelu`
";
    assert_eq!((ran.stderr.as_str(), ran.stdout.as_str()), (said, ""));
    project.t2t("build softmax:check").exits(0);
    assert_eq!(files(&project).iter().filter(|path| path.starts_with("kernels/")).count(), 4);
    let again = declare(&project, "softmax").exits(0);
    assert_eq!(again.stderr.lines().next(), Some("softmax: in ops.yaml already, its entry stays"));
}

#[test]
fn an_entry_without_a_generator_is_told_how_its_kernels_are_written() {
    let project = empty();
    project.write(
        "ops.yaml",
        "version: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}, variants: [v1_baseline]}\n",
    );
    declare(&project, "relu")
        .exits(0)
        .says("its entry stays; `--write` writes the kernels that it lacks\nnothing to write");
    add(&project, "relu").exits(0).says("wrote 1 kernel");
}

#[test]
fn what_was_added_is_built_as_it_is() {
    let project = empty();
    add(&project, "softmax --variants v1_baseline,v4_optimized").exits(0);
    assert_eq!(files(&project)[1..3], ["kernels/softmax/v1_baseline.py", "kernels/softmax/v4_optimized.py"]);
    assert!(project.read("ops.yaml").ends_with("    variants: [v1_baseline, v4_optimized]\n"));
    project
        .t2t("build softmax:check")
        .exits(0)
        .runs("softmax:analyze softmax/v1_baseline:check softmax/v4_optimized:check");
}

#[test]
fn what_ops_yaml_has_keeps_its_bytes_and_the_entry_follows_it() {
    let ops = "# mine\nversion: 1\nops:\n  # sums\n  sum: {torch: sum, inputs: {input: [M, N]}}   # all\n";
    assert_eq!(after(ops), format!("{ops}{SOFTMAX}"));
    assert_eq!(after(ops.trim_end()), format!("{ops}{SOFTMAX}"));
    let profiles = "\n# of the interpreter\nprofiles: {cpu: {bench: {runs: 1}}}\n";
    assert_eq!(after(&format!("{ops}{profiles}")), format!("{ops}{SOFTMAX}{profiles}"));
    let crlf = |text: &str| text.replace('\n', "\r\n");
    assert_eq!(after(&crlf(&format!("{ops}{profiles}"))), crlf(&format!("{ops}{SOFTMAX}{profiles}")));
    let deep = "version: 1\nops:\n      sum:\n          torch: sum\n          inputs: {input: [M, N]}\n";
    let deeper = SOFTMAX.lines().map(|line| format!("    {line}\n")).collect::<Vec<_>>().concat();
    assert_eq!(after(deep), format!("{deep}{deeper}"));
}

#[test]
fn ops_that_are_empty_become_a_block() {
    for nothing in ["ops: {}\n", "ops: {}", "ops:\n", "ops: ~\n", ""] {
        assert_eq!(after(&format!("version: 1\n{nothing}")), format!("version: 1\nops:\n{SOFTMAX}"), "{nothing:?}");
    }
    assert_eq!(after("version: 1\nops: {} # none\n# end\n"), format!("version: 1\nops: # none\n{SOFTMAX}# end\n"));
}

#[test]
fn in_a_subfolder_the_workspace_is_the_one_above() {
    let project = empty();
    project.write("ops.yaml", "version: 1\n");
    project.write("lib/deep/x", "");
    project.run(project.command("add relu --write").current_dir(project.path("lib/deep"))).exits(0);
    let expected = [kernels("relu"), vec!["lib/deep/x".to_owned(), "ops.yaml".to_owned()]].concat();
    assert_eq!(files(&project), expected);
}

#[test]
fn a_quiet_command_says_the_result_alone() {
    let ran = add(&empty(), "relu -q").exits(0);
    assert_eq!(ran.stderr, "wrote 1 op and 4 kernels; next: `t2t build --op relu`\n");
}

// What stays.

#[test]
fn the_second_time_nothing_is_written() {
    let project = empty();
    add(&project, "softmax").exits(0);
    let before = project.read("ops.yaml");
    let said = "softmax: in ops.yaml already, its entry stays\nnothing to write; next: `t2t build --op softmax`\n";
    assert_eq!(add(&project, "softmax F.softmax").exits(0).stderr, said);
    assert_eq!(project.read("ops.yaml"), before);
    add(&project, "relu").exits(0);
    assert!(project.read("ops.yaml").starts_with(&format!("{before}  relu:\n")));
}

#[test]
fn a_kernel_that_is_there_is_never_written_over() {
    let project = empty();
    project.write("kernels/relu/v2_tiling.py", "mine");
    let ran = add(&project, "relu").exits(0);
    let line = "relu: torch.nn.functional.relu; 3 kernels in kernels/relu; kernels/relu/v2_tiling.py there already, kept\nwrote 1 op and 3 kernels; ";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    assert_eq!(project.read("kernels/relu/v2_tiling.py"), "mine");
    assert!(project.read("kernels/relu/v1_baseline.py").contains("def triton_relu("));
}

#[test]
fn missing_kernels_of_a_declared_op_are_written_as_it_declares_them() {
    let project = empty();
    let ops = "version: 1\nops:\n  rows:\n    torch: softmax\n    inputs: {input: [M, N]}\n  softmax:\n    torch: F.softmax\n    inputs: {input: [M, N]}\n    kwargs: {dim: 0}\n    entry: columns\n    variants: [v1_baseline, v1_own, {name: v4_optimized, path: best.py}, {name: v2_tiling, call: \"entry(input, dim)\"}]\n";
    project.write("ops.yaml", ops);
    let ran = add(&project, "softmax").exits(0);
    assert_eq!(
        ran.stderr,
        "softmax: in ops.yaml already, its entry stays; 2 kernels; a variant that is called in a way of its own is left to you\nwrote 2 kernels; next: `t2t build --op softmax`\n"
    );
    assert_eq!(files(&project), ["best.py", "kernels/softmax/v1_baseline.py", "ops.yaml"]);
    assert!(project.read("best.py").contains("\ndef columns("));
    assert_eq!(project.read("ops.yaml"), ops);
}

#[test]
fn an_op_of_that_name_that_is_another_function_is_left_alone() {
    let project = empty();
    let ops = "version: 1\nops:\n  softmax:\n    torch: torch.log_softmax\n    inputs: {input: [M, N]}\n";
    project.write("ops.yaml", ops);
    let said = "softmax: in ops.yaml already, its entry stays; it is not torch's function of that name, so no kernels are made for it\n";
    add(&project, "softmax").exits(0).says(said).says("nothing to write");
    assert_eq!((files(&project), project.read("ops.yaml").as_str()), (vec!["ops.yaml".to_owned()], ops));
}

// What is refused.

#[test]
fn an_unknown_name_is_told_the_nearest_and_nothing_is_written() {
    let project = empty();
    let list = "`t2t add --list` has the ops by family (docs/reference/generators.md); of any other torch function write the entry into ops.yaml and the kernels yourself\n";
    for (arguments, said) in [
        ("relu sofmax", "error: no family of the generator has `sofmax`\nhint: did you mean `softmax`"),
        ("torch.fft.zzqqy", "error: no family of the generator has `torch.fft.zzqqy`\nhint: `t2t add --list`"),
        ("sofmax,gellu", "error: no family of the generator has `sofmax`, `gellu`\nhint: for `sofmax` did you mean"),
    ] {
        let ran = add(&project, arguments).exits(2).says(said).says(list);
        assert_eq!(ran.stdout, "");
    }
    add(&project, ",").exits(2).says("error: the name of an op is empty\nhint: name an op, as in `t2t add softmax`\n");
    add(&project, "").exits(2).says("required arguments were not provided");
    add(&project, "relu matmul --variants v3_coalesced").exits(2).says(
        "error: the generator has no variant `v3_coalesced` of `matmul`\nhint: its variants are `v1_baseline`, `v2_tiling`, `v3_grouped`, `v4_optimized`\n",
    );
    assert_eq!(files(&project), Vec::<String>::new());
}

#[test]
fn where_ops_yaml_has_no_place_for_an_entry_it_is_told_and_nothing_is_written() {
    let flow = "version: 1\nops: {sum: {torch: sum, inputs: {input: [M, N]}}}\n";
    let project = empty();
    project.write("ops.yaml", flow);
    let told = format!(
        "error: ops.yaml is left as it is: its ops are no blocks of their own\nhint: write under `ops`:\n{}",
        SOFTMAX.lines().map(|line| format!("{}\n", &line[2..])).collect::<Vec<_>>().concat()
    );
    assert_eq!(add(&project, "softmax").exits(2).stderr, told);
    let sizes = "version: 1\ndefaults: {bench: {sizes: {small: [8, 8, 8]}}}\nops:\n  f: {torch: lerp, inputs: {input: [M, N, K], end: [M, N, K], weight: [M, N, K]}}\n";
    project.write("ops.yaml", sizes);
    add(&project, "softmax").exits(2).says("error: ops.yaml is left as it is: ").says("write under `ops`:\nsoftmax:\n");
    let wrong = "version: 1\nops:\n  f: {torch: sum, input: [M]}\n";
    project.write("ops.yaml", wrong);
    add(&project, "softmax").exits(2).says("error: ops.yaml:3:").says("unknown key `input`");
    assert_eq!((files(&project), project.read("ops.yaml").as_str()), (vec!["ops.yaml".to_owned()], wrong));
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let project = empty();
    project.write("kernels/softmax", "a file in the way");
    let ran = add(&project, "relu softmax").exits(3).says("error: cannot write `kernels/softmax/v1_baseline.py`: ");
    assert_eq!((files(&project), ran.stdout.as_str()), (vec!["kernels/softmax".to_owned()], ""));
}

// Looking.

#[test]
fn a_dry_run_says_what_would_be_written() {
    let project = empty();
    project.write("kernels/softmax/v1_baseline.py", "mine");
    let ran = add(&project, "softmax --dry-run").exits(0);
    let expected = format!(
        "ops.yaml, at the end of `ops`:\n{SOFTMAX}write kernels/softmax/v2_tiling.py\nwrite kernels/softmax/v3_coalesced.py\nwrite kernels/softmax/v4_optimized.py\nkeep  kernels/softmax/v1_baseline.py\n"
    );
    assert_eq!((ran.stdout, ran.stderr.as_str()), (expected, ""));
    assert_eq!(files(&project), ["kernels/softmax/v1_baseline.py"]);
    add(&project, "softmax").exits(0);
    let kept = kernels("softmax").iter().map(|path| format!("keep  {path}\n")).collect::<Vec<_>>().concat();
    assert_eq!(add(&project, "softmax --dry-run").exits(0).stdout, format!("{kept}nothing to write\n"));
}

#[test]
fn the_list_has_every_op_by_its_family() {
    let project = empty();
    let all = add(&project, "--list").exits(0).stdout;
    let catalogue = t2t_generate::catalogue::Catalogue::read(&t2t_generate::files::Files::default()).unwrap();
    let words: Vec<&str> = all.split_whitespace().collect();
    assert!(catalogue.ops().all(|op| words.contains(&op.name.as_str())), "{all}");
    assert!(catalogue.families().all(|family| all.contains(&format!("{}: {}\n  ", family.name, family.title))));
    let one = add(&project, "--list normalization").exits(0).stdout;
    let names: Vec<&str> = one.lines().filter_map(|line| line.split(' ').next()).collect();
    let own = catalogue.ops().filter(|op| op.family == "normalization");
    assert_eq!(names, own.map(|op| op.name.as_str()).collect::<Vec<_>>());
    assert!(one.contains("  torch.nn.functional.layer_norm  "), "{one}");
    let told = "error: the generator has no family `norms`\nhint: the families are `attention`, `binary`, ";
    add(&project, "--list norms").exits(2).says(told);
    add(&project, "relu --list").exits(2).says("cannot be used with");
}

#[test]
fn a_build_where_there_is_no_workspace_names_the_command_that_makes_one() {
    let project = empty();
    let none = "error: no ops.yaml in `[ROOT]` or in a folder above it\n";
    for (arguments, names) in [
        ("build softmax,+layernorm,+gelu", "softmax layernorm gelu"),
        ("build softmax/v1_baseline:check --op F.relu softmax:log", "softmax F.relu"),
        ("build --dry-run softmax", "softmax"),
    ] {
        let hint =
            format!("hint: `t2t add {names}` makes a workspace of this folder, with these ops and their kernels\n");
        assert_eq!(project.t2t(arguments).exits(2).stderr, format!("{none}{hint}"), "{arguments}");
    }
    for arguments in ["build", "build frobnicate", "build kernels/softmax/*.py", "build */v1_*:check"] {
        let hint = "hint: run t2t in a workspace, a folder with an ops.yaml: `t2t init` makes one here, `t2t add softmax` one with an op\n";
        assert_eq!(project.t2t(arguments).exits(2).stderr, format!("{none}{hint}"), "{arguments}");
    }
}

// A workspace's own.

#[test]
fn a_workspace_has_families_and_templates_of_its_own() {
    let project = empty();
    project.write("ops.yaml", "version: 1\n");
    let family = r#"{"title": "own", "template": "own.py.jinja", "techniques": [{"variant": "v2_a", "summary": "a"}, {"variant": "v3_b", "summary": "b"}], "entry": {"inputs": {"input": ["M", "N"]}, "dtypes": ["float32"]},
        "ops": {"swish2": {"torch": "torch.swish2", "title": "Own", "math": "out = x."}}}"#;
    project.write("assets/generators/own.json", family);
    project.write("assets/generators/own.py.jinja", "\"\"\"{{ op.title }}.\n\"\"\"\n\ndef {{ entry }}(input): ...\n");
    add(&project, "swish2 --variants v3_b").exits(0);
    assert!(project.read("kernels/swish2/v3_b.py").contains("def triton_swish2(input)"));
    add(&project, "--list own").exits(0).says("swish2  torch.swish2  Own\n");
    project.write("assets/generators/own.json", family.replace(r#"["M", "N"]"#, r#"["N"]"#));
    project.remove("ops.yaml");
    add(&project, "swish2").exits(2).says("error: ops.yaml is left as it is: with the entries, ");
    project.write("assets/generators/own.json", family);
    project.write("assets/generators/own.py.jinja", "{{ nothing }}");
    add(&project, "swish2").exits(2).says("error: assets/generators/own.py.jinja:1: ");
    project.write("assets/generators/own.json", "{}");
    add(&project, "relu").exits(2).says("error: assets/generators/own.json: missing field");
}
