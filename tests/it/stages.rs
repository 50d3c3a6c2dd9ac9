//! `t2t ir --html`: the stages of a real kernel side by side, whose lines a second compile links.
//!
//! It does not know how the page looks.

use crate::cli::report::whole;
use crate::environment;
use crate::workspace::Workspace;

const FILE: &str = "kernels/add/v3_coalesced.py";

/// The op `add` of this repository, with one of its kernels compiled.
fn compiled() -> Workspace {
    let ops = std::fs::read_to_string(environment::root().join("ops.yaml")).unwrap();
    let workspace = Workspace::with_zygote(&ops[..ops.find("  softmax:\n").unwrap()]);
    crate::project::copy_folder(&environment::root().join("kernels/add"), &workspace.path("kernels/add"));
    assert_eq!(workspace.build(&["add/v3_coalesced:compile"]).code, Some(0));
    workspace
}

fn page(workspace: &Workspace) -> (String, String) {
    let ran = workspace.run(&["ir", "add/v3_coalesced", "--html", "stages.html"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("stages.html: 1 kernel, "), "{ran:?}");
    (whole(&workspace.path("stages.html")), ran.told)
}

/// Returns what the first line that holds `part` belongs to.
fn key<'a>(page: &'a str, part: &str) -> Option<&'a str> {
    let line = page.lines().find(|line| line.starts_with("<li") && line.contains(part));
    line.unwrap_or_else(|| panic!("no {part}: {page}")).split("data-l=\"").nth(1)?.split('"').next()
}

#[test]
fn a_kernel_that_imports_relatively_is_linked_too() {
    let workspace = compiled();
    let helper = "import triton\n\n\n@triton.jit\ndef combined(x, y, alpha):\n    return x + alpha * y\n";
    workspace.write("kernels/add/helper.py", helper);
    workspace.edit(FILE, "x + alpha * y", "combined(x, y, alpha)");
    workspace.edit(FILE, "import triton\n", "import triton\nfrom .helper import combined\n");
    assert_eq!(workspace.build(&["add/v3_coalesced:compile"]).code, Some(0));
    let (text, told) = page(&workspace);
    assert!(!text.contains("not linked") && !told.contains("note:"), "{told}");
    assert_eq!(key(&text, "return x + alpha * y"), Some("1.6"), "{text}");
}

#[test]
fn a_line_of_the_source_belongs_to_what_it_was_compiled_to() {
    let workspace = compiled();
    let line = |start: &str| {
        let text = workspace.read(FILE);
        let number = text.lines().position(|line| line.trim_start().starts_with(start)).unwrap() + 1;
        format!("0.{number}")
    };
    let (text, told) = page(&workspace);
    assert!(!text.contains("not linked") && !told.contains("note:"), "{told}");
    for (source, stages) in
        [("tl.store(", ["tt.store %", "st.global.v4.b32 ["]), ("x = tl.load(", ["tt.load %", "ld.global.v4.b32 {"])]
    {
        for stage in stages {
            assert_eq!(key(&text, stage), Some(line(source).as_str()), "{stage}: {text}");
        }
        assert_eq!(key(&text, source), Some(line(source).as_str()), "{text}");
    }
    assert_eq!(key(&text, "def triton_add"), None, "the wrapper is not compiled");
    let place = workspace.path("").display().to_string();
    assert!(!text.contains(&place), "no place of the machine: {text}");
    // A comment moves lines and no result.
    workspace.write(FILE, format!("# why\n{}", workspace.read(FILE)));
    let (text, _) = page(&workspace);
    assert_eq!(key(&text, "tt.store %"), Some(line("tl.store(").as_str()), "{text}");
    // Lines of other code are nobody's.
    workspace.edit(FILE, "x + alpha * y", "x - alpha * y");
    let (text, told) = page(&workspace);
    assert!(told.contains("is stale: this is its last result"), "{told}");
    assert!(text.contains("Lines of ttgir are not linked: a compile with lines makes other code."), "{text}");
    assert_eq!(key(&text, "tt.store %"), None, "{text}");
    // A file that cannot be imported leaves the stages, and says why.
    workspace.write(FILE, format!("raise ValueError('no <b>')\n{}", workspace.read(FILE)));
    let (text, told) = page(&workspace);
    assert!(told.contains("note: lines of add_kernel are not linked: ValueError: no <b>"), "{told}");
    assert!(text.contains("Lines are not linked: ValueError: no &lt;b&gt;."), "{text}");
    for (arguments, said) in [
        (["ir", "add", "--html", "a.html"], "`add` names no variant"),
        (["ir", "add/v1_baseline", "--html", "a.html"], "`add/v1_baseline` is not compiled"),
        (["ir", "add/v3_coalesced", "--html", "kernels"], "it is no file"),
    ] {
        let ran = workspace.run(&arguments);
        assert!(ran.code == Some(2) && ran.told.contains(said), "{ran:?}");
    }
    assert!(!workspace.path("a.html").exists());
}
