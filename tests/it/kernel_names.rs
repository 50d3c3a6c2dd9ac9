//! That the kernels of the repository are what their names say: read off what the compiler made of them, with no GPU.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::environment;
use crate::whole;
use crate::workspace::Workspace;

const OPS: [&str; 6] = ["add", "softmax", "mha", "gelu", "layernorm", "matmul"];
const VARIANTS: [&str; 4] = ["v1_baseline", "v2_tiling", "v3_coalesced", "v4_optimized"];

/// Ops whose result has the shape of their first input, row by row or element by element. The others reduce over a dim that no tile holds.
const STREAMING: [&str; 4] = ["add", "softmax", "gelu", "layernorm"];

/// What the compiler made of a variant for one dtype.
#[derive(Debug)]
struct Facts {
    /// How many configurations were compiled.
    configurations: usize,
    /// Each kernel and configuration.
    kernels: Vec<Kernel>,
}

/// What the PTX of one kernel says.
#[derive(Debug)]
struct Kernel {
    /// Bits of the widest load of one thread from global memory.
    widest: u32,
    /// Whether some loop loads from global memory.
    loops: bool,
    /// Whether it copies to shared memory without registers between.
    copies: bool,
    /// Whether it multiplies tiles on tensor cores.
    multiplies: bool,
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_the_kernels_are_what_their_names_say() {
    hold_to_their_names();
    hold_to_no_matrix();
    whole::KERNELS.note(&environment::root());
}

fn hold_to_their_names() {
    let workspace = compiled();
    for op in OPS {
        for dtype in dtypes(op) {
            let [v1, v2, v3, v4] = VARIANTS.map(|variant| facts(&workspace, op, variant, dtype));
            let all = format!("{op} {dtype}\nv1 {v1:?}\nv2 {v2:?}\nv3 {v3:?}\nv4 {v4:?}");
            assert_eq!(v1.configurations, 1, "v1 is tuned: {all}");
            assert!(v1.all(|kernel| kernel.widest <= 32), "v1 loads at most 32 bits a thread: {all}");
            let wide = |kernel: &Kernel| kernel.widest >= 64;
            assert!(v3.all(wide) && v4.any(wide), "v3 and v4 load at least 64 bits a thread: {all}");
            let loops = |kernel: &Kernel| kernel.loops;
            assert!(v2.all(loops), "v2 loops over tiles: {all}");
            if STREAMING.contains(&op) {
                assert!(!v1.any(loops) && !v3.any(loops), "v1 and v3 hold their row or block whole: {all}");
            } else {
                assert!(v1.all(loops) && v3.all(loops), "every variant loops over k or the keys: {all}");
                let copies = |kernel: &Kernel| kernel.copies;
                assert!(!v1.any(copies) && v4.any(copies), "v4 loads ahead, v1 does not: {all}");
                let multiplies = |kernel: &Kernel| kernel.multiplies;
                assert!(v2.all(multiplies) && v4.any(multiplies), "v2 and v4 multiply tiles: {all}");
            }
        }
    }
}

/// Attention never makes a matrix of queries and keys.
fn hold_to_no_matrix() {
    let names: Vec<String> = VARIANTS.iter().map(|variant| format!("{variant}_watched")).collect();
    let workspace = Workspace::new(&format!(
        "version: 1
defaults: {{check: {{edges: {{{}}}}}}}
ops:
  mha:
    torch: torch.nn.functional.scaled_dot_product_attention
    inputs: {{query: [B, H, S, D], key: [B, H, S, D], value: [B, H, S, D]}}
    dims: {{B: 1, H: 2, D: 64}}
    bench: {{sizes: {{small: {{S: 1024}}}}}}
    variants: [{}, quadratic]
",
        edges_off(),
        names.join(", ")
    ));
    copy_kernels(&workspace, "mha");
    for variant in VARIANTS {
        let watched = WATCHED.replace("VARIANT", variant);
        workspace.write(&format!("kernels/mha/{variant}_watched.py"), watched);
    }
    let quadratic = WATCHED.replace("VARIANT", "v1_baseline").replace("# HERE", "query.new_empty(SQUARE(query))");
    workspace.write("kernels/mha/quadratic.py", quadratic);
    let ran = workspace.build(&["--phase", "compile"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let coverage =
        |variant: &str| workspace.document(&format!("mha/{variant}:compile"), "launches")["coverage"].clone();
    for name in &names {
        assert_eq!(coverage(name), "full", "{name}");
    }
    assert_eq!(coverage("quadratic"), "partial", "the watch sees a matrix that is made");
}

/// The edges at which an op is compiled beside its declared sizes.
const EDGES: [&str; 8] = ["empty", "one", "transposed", "strided", "large", "special", "broadcast", "blocks"];

/// Returns the fields of `edges` by which none is asked for.
fn edges_off() -> String {
    EDGES.map(|edge| format!("{edge}: {{off: not asked here}}")).join(", ")
}

/// A wrapper that raises where torch makes a tensor much larger than the queries. A kernel can only store to what torch made.
const WATCHED: &str = "\
from torch.utils._python_dispatch import TorchDispatchMode

from kernels.mha.VARIANT import triton_mha as attention


def SQUARE(query):
    return (*query.shape[:3], query.shape[2])


class Watch(TorchDispatchMode):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        assert result.numel() <= self.most, f'{func} makes {result.numel()} elements'
        return result


def triton_mha(query, key, value, **kwargs):
    with Watch(2 * query.numel() + 4096):
        # HERE
        return attention(query, key, value, **kwargs)
";

/// Attention takes long to compile: one dtype is enough.
fn dtypes(op: &str) -> &'static [&'static str] {
    if op == "mha" { &["float32"] } else { &["float32", "float16"] }
}

/// The repository's ops, compiled for one size that is large enough for every tile.
fn compiled() -> Workspace {
    let text = std::fs::read_to_string(environment::root().join("ops.yaml")).unwrap();
    let text = text.replacen("dtypes: [float32]", "dtypes: [float32, float16]", 1);
    let text = text.replacen("  mha:\n", "  mha:\n    dtypes: [float32]\n", 1);
    // What is read below are the kernels of the large size. Those of edges are most of the work; real.rs compiles add's, and a device all of them.
    let text = text.replacen("check: {atol", &format!("check: {{edges: {{{}}}, atol", edges_off()), 1);
    assert!(text.contains("edges: {"), "{text}");
    let lines = text.lines().map(|line| match line.split_once("sizes: {small") {
        Some((head, tail)) => {
            let large = tail.rsplit_once("large: ").unwrap().1;
            format!("{head}sizes: {{large: {}\n", large.replace("4096", "1024"))
        }
        None => format!("{line}\n"),
    });
    let workspace = Workspace::new(&lines.collect::<String>());
    for op in OPS {
        copy_kernels(&workspace, op);
    }
    let ran = workspace.build(&["--phase", "compile"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    workspace
}

/// Copies all Python files of an op: its variants, and what they share.
fn copy_kernels(workspace: &Workspace, op: &str) {
    for entry in std::fs::read_dir(environment::root().join("kernels").join(op)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if std::path::Path::new(&name).extension().is_some_and(|extension| extension == "py") {
            workspace.copy(&format!("kernels/{op}/{name}"), &format!("kernels/{op}/{name}"));
        }
    }
}

/// Reads what was compiled for the declared size in one dtype.
fn facts(workspace: &Workspace, op: &str, variant: &str, dtype: &str) -> Facts {
    let target = format!("{op}/{variant}:compile");
    let launches = workspace.document(&target, "launches");
    let resources = workspace.document(&target, "resources");
    let members = members(&workspace.artifact(&target, "triton.tar.gz"));
    let case = format!("large/{dtype}/0");
    let traced: Vec<&Value> =
        launches["launches"].as_array().unwrap().iter().filter(|launch| launch["case"] == *case).collect();
    assert!(!traced.is_empty(), "{target} launched nothing in {case}");
    let mut configurations: Vec<&Value> = traced.iter().map(|launch| &launch["config"]).collect();
    configurations.dedup();
    let rows = resources["kernels"].as_array().unwrap().iter();
    let rows = rows.filter(|row| traced.iter().any(|launch| launch["compiled"] == row["compiled"]));
    let kernels = rows.map(|row| Kernel::of(&members[row["stages"]["ptx"].as_str().unwrap()]));
    Facts { configurations: configurations.len(), kernels: kernels.collect() }
}

fn members(archive: &[u8]) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let read = |member: std::io::Result<tar::Entry<GzDecoder<&[u8]>>>| {
        let mut member = member.unwrap();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        (member.path().unwrap().to_str().unwrap().to_owned(), String::from_utf8_lossy(&bytes).into_owned())
    };
    archive.entries().unwrap().map(read).collect()
}

impl Facts {
    fn all(&self, is: impl Fn(&Kernel) -> bool) -> bool {
        self.kernels.iter().all(is)
    }

    fn any(&self, is: impl Fn(&Kernel) -> bool) -> bool {
        self.kernels.iter().any(is)
    }
}

impl Kernel {
    fn of(ptx: &str) -> Self {
        let lines: Vec<&str> = ptx.lines().map(str::trim).collect();
        Self {
            widest: lines.iter().map(|line| load_bits(line)).max().unwrap_or(0),
            loops: loops(&lines).any(|body| body.iter().any(|line| load_bits(line) > 0)),
            copies: lines.iter().any(|line| line.contains("cp.async.c") || line.contains("cp.async.bulk")),
            multiplies: lines.iter().any(|line| line.contains("mma")),
        }
    }
}

/// Returns how many bits a PTX line loads from global memory for one thread: 0 for another instruction.
fn load_bits(line: &str) -> u32 {
    let words: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()).collect();
    let Some(word) = words.iter().find(|word| word.starts_with("ld.global") || word.starts_with("cp.async.c")) else {
        return 0;
    };
    if word.starts_with("cp.async") {
        let bytes = words.iter().rev().find_map(|word| word.strip_prefix("0x")).unwrap_or("0");
        return 8 * u32::from_str_radix(bytes, 16).unwrap();
    }
    let parts: Vec<&str> = word.split('.').collect();
    let number = |prefix: char| parts.iter().rev().find_map(|part| part.strip_prefix(prefix)?.parse::<u32>().ok());
    number('b').unwrap_or(0) * number('v').unwrap_or(1)
}

/// Returns the lines between each label and each later jump back to it.
fn loops<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a [&'a str]> {
    let label =
        |line: &str| line.split_once(':').map(|(label, _)| label.to_owned()).filter(|label| label.starts_with('$'));
    let labels: BTreeMap<String, usize> =
        lines.iter().enumerate().filter_map(|(number, line)| Some((label(line)?, number))).collect();
    lines.iter().enumerate().filter_map(move |(number, line)| {
        let (_, name) = line.split_once("bra")?;
        let name = name.trim_start_matches(".uni").trim().trim_end_matches(';');
        labels.get(name).filter(|start| **start < number).map(|start| &lines[*start..number])
    })
}
