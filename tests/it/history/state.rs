//! What the workspace holds that edits change, and what each action depends on of it.
//!
//! It does not know t2t, against which it is held.

use std::collections::BTreeMap;
use std::fmt::Write;

use t2t_model::digest::Digest;

use super::{Draw, Inputs, OPS};
use crate::project::Project;

/// What the workspace holds: what edits change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// File → number that its code returns.
    code: BTreeMap<String, u64>,
    docstring: u64,
    table: Option<u64>,
    dim: i64,
    atol: &'static str,
    size: u64,
    template: u64,
    torch: u64,
    triton: u64,
    has_third: bool,
    /// Comments and blanks, which nothing depends on.
    noise: u64,
}

impl State {
    pub(super) fn new() -> Self {
        let files = [
            "kernels/softmax/v1_baseline.py",
            "kernels/softmax/v2_tiling.py",
            "kernels/softmax/v3_coalesced.py",
            "kernels/gelu/v1_baseline.py",
            "kernels/common.py",
            "cases/softmax.py",
        ];
        Self {
            code: files.map(|file| (file.to_owned(), 1)).into(),
            docstring: 1,
            table: None,
            dim: -1,
            atol: "0.00001",
            size: 16,
            template: 1,
            torch: 11,
            triton: 6,
            has_third: false,
            noise: 0,
        }
    }

    /// Makes one edit of those that a person makes.
    pub(super) fn edit(&mut self, draw: &mut Draw) {
        match draw.below(14) {
            0..=3 => {
                let number = usize::try_from(draw.below(self.code.len() as u64)).unwrap();
                *self.code.values_mut().nth(number).unwrap() = 1 + draw.below(3);
            }
            4 => self.docstring = 1 + draw.below(3),
            5 => self.table = [None, Some(1), Some(2)][usize::try_from(draw.below(3)).unwrap()],
            6 => self.dim = if self.dim == 0 { -1 } else { 0 },
            7 => self.atol = ["0.00001", "0.001", "0.01"][usize::try_from(draw.below(3)).unwrap()],
            8 => self.size = [8, 16, 32][usize::try_from(draw.below(3)).unwrap()],
            9 => self.template = 1 + draw.below(3),
            10 => self.torch = 11 + draw.below(2),
            11 => self.triton = 6 + draw.below(2),
            12 => self.has_third = !self.has_third,
            _ => self.noise += 1,
        }
    }

    fn variants(&self, op: &str) -> Vec<&'static str> {
        match (op, self.has_third) {
            ("gelu", _) => vec!["v1_baseline"],
            (_, false) => vec!["v1_baseline", "v2_tiling"],
            (_, true) => vec!["v1_baseline", "v2_tiling", "v3_coalesced"],
        }
    }

    fn text(&self, file: &str) -> String {
        let (number, noise) = (self.code[file], self.noise);
        match file {
            "kernels/common.py" => format!("# {noise}\ndef add(x):\n    return x + {number}\n"),
            "cases/softmax.py" => format!("def cases(spec, generator):  # {noise}\n    return [][{number}:]\n"),
            _ => {
                let op = file.split('/').nth(1).unwrap();
                let import = if file.contains("v1_") { "from kernels.common import add\n" } else { "" };
                let mark = if file.contains("v2_") { "READS data/table.txt" } else { "" };
                let docstring = if file == "kernels/softmax/v1_baseline.py" { self.docstring } else { 0 };
                format!(
                    "\"\"\"Of {docstring}.\"\"\"\nimport triton\n{import}\nMARK = \"{mark}\"\n\n\ndef triton_{op}(input):  # {noise}\n    return input + {number}\n"
                )
            }
        }
    }

    fn ops(&self) -> String {
        let mut text = format!(
            "version: 1 # {}\ndefaults:\n  bench: {{sizes: {{small: [{}, {}]}}}}\nops:\n",
            self.noise, self.size, self.size
        );
        for op in OPS {
            write!(text, "  {op}:\n    torch: torch.nn.functional.{op}\n    inputs: {{input: [M, N]}}\n").unwrap();
            writeln!(text, "    variants: [{}]", self.variants(op).join(", ")).unwrap();
        }
        let softmax = format!(
            "    kwargs: {{dim: {}}}\n    check: {{atol: {}}}\n    cases: cases/softmax.py\n",
            self.dim, self.atol
        );
        text.replacen("    inputs: {input: [M, N]}\n", &format!("    inputs: {{input: [M, N]}}\n{softmax}"), 1)
    }

    fn template(&self) -> String {
        format!("# {{{{ op }}}} {}\n", self.template)
    }

    pub(super) fn write(&self, project: &Project) {
        for file in self.code.keys() {
            project.write(file, self.text(file));
        }
        project.write("ops.yaml", self.ops());
        project.write("assets/log_template.md", self.template());
        match self.table {
            Some(number) => project.write("data/table.txt", number.to_string()),
            None => _ = std::fs::remove_file(project.path("data/table.txt")),
        }
        let (torch, triton) = (format!("2.{}.0", self.torch), format!("3.{}.0", self.triton));
        project.install(&[("torch", &torch), ("triton", &triton)]);
    }

    /// Returns the actions, each after those that it needs.
    pub(super) fn actions(&self) -> Vec<String> {
        let mut actions = Vec::new();
        for op in OPS {
            actions.push(format!("{op}:analyze"));
            for variant in self.variants(op) {
                actions.extend(["compile", "check", "bench"].map(|phase| format!("{op}/{variant}:{phase}")));
            }
            actions.extend(["select", "log"].map(|phase| format!("{op}:{phase}")));
        }
        actions.push("summary".to_owned());
        actions
    }

    /// Returns what an action depends on. `made` tells what an artifact of another is now.
    pub(super) fn inputs(&self, action: &str, made: &dyn Fn(&str, &str) -> String) -> Inputs {
        let mut inputs = Inputs::new();
        let (place, phase) = action.rsplit_once(':').unwrap_or(("", action));
        let (op, variant) = place.split_once('/').map_or((place, None), |(op, variant)| (op, Some(variant)));
        let is_softmax = op == "softmax";
        let mut set = |name: String, value: String| _ = inputs.insert(name, value);
        let of = |field: &str| format!("`{field}` in ops.yaml");
        if is_softmax && ["analyze", "compile", "check", "bench", "log"].contains(&phase) {
            set(of("kwargs"), format!("{{\"dim\":{}}}", self.dim));
        }
        if ["analyze", "compile"].contains(&phase) {
            set(of("sizes"), self.sizes());
        }
        if phase == "compile" {
            set(of("check_sizes"), self.sizes());
        }
        if phase == "check" {
            set(of("measured"), self.sizes());
        }
        if is_softmax && phase == "check" {
            let rest = "\"bfloat16\":[0.016,0.01],\"float16\":[0.001,0.001]";
            set(of("tolerances"), format!("{{{rest},\"float32\":[{},0.00001],\"float64\":[1e-7,1e-7]}}", self.atol));
        }
        if ["analyze", "compile", "check", "bench"].contains(&phase) {
            set("torch version".to_owned(), format!("2.{}.0", self.torch));
        }
        if let Some(variant) = variant {
            set("triton version".to_owned(), format!("3.{}.0", self.triton));
            for file in Self::sources(op, variant) {
                set(format!("code of `{file}`"), t2t_python::read(self.text(&file).as_bytes()).meaning.short());
            }
            if variant == "v2_tiling" {
                let table =
                    self.table.map_or("absent".to_owned(), |number| Digest::of(number.to_string().as_bytes()).short());
                set("data/table.txt".to_owned(), table);
            }
        }
        for (source, artifact) in self.reads(op, variant, phase) {
            set(format!("`{artifact}` of `{source}`"), made(&source, artifact));
        }
        if phase == "select" {
            let names: Vec<String> = self.variants(op).iter().map(|name| format!("\"{name}\"")).collect();
            set("variants".to_owned(), format!("[{}]", names.join(",")));
        }
        if phase == "log" {
            set("template".to_owned(), Digest::of(self.template().as_bytes()).short());
            for variant in self.variants(op) {
                let docstring = if (op, variant) == ("softmax", "v1_baseline") { self.docstring } else { 0 };
                set(format!("docstring of `{variant}`"), format!("Of {docstring}."));
                set(format!("file of `{variant}`"), format!("kernels/{op}/{variant}.py"));
            }
        }
        inputs
    }

    fn sizes(&self) -> String {
        format!("{{\"small\":{{\"M\":{},\"N\":{}}}}}", self.size, self.size)
    }

    fn sources(op: &str, variant: &str) -> Vec<String> {
        let mut files = vec![format!("kernels/{op}/{variant}.py")];
        files.extend((variant == "v1_baseline").then(|| "kernels/common.py".to_owned()));
        files.extend((op == "softmax").then(|| "cases/softmax.py".to_owned()));
        files
    }

    /// Returns the artifacts of others that an action reads.
    fn reads(&self, op: &str, variant: Option<&str>, phase: &str) -> Vec<(String, &'static str)> {
        let mut reads = Vec::new();
        let mut read =
            |source: String, names: &[&'static str]| reads.extend(names.iter().map(|name| (source.clone(), *name)));
        match (phase, variant) {
            ("compile" | "check", Some(_)) => read(format!("{op}:analyze"), &["lengths"]),
            ("bench", Some(variant)) => read(format!("{op}/{variant}:check"), &["verdict"]),
            ("select", _) => {
                for variant in self.variants(op) {
                    read(format!("{op}/{variant}:check"), &["verdict"]);
                    read(format!("{op}/{variant}:bench"), &["bench"]);
                }
            }
            ("log", _) => {
                read(format!("{op}:analyze"), &["analysis", "failure"]);
                read(format!("{op}:select"), &["selection"]);
                for variant in self.variants(op) {
                    read(format!("{op}/{variant}:compile"), &["launches", "resources", "failure"]);
                    read(format!("{op}/{variant}:check"), &["verdict", "evidence", "failure"]);
                    read(format!("{op}/{variant}:bench"), &["bench", "failure"]);
                }
            }
            ("summary", _) => {
                for op in OPS {
                    read(format!("{op}:select"), &["selection", "cost"]);
                    read(format!("{op}:analyze"), &["cost"]);
                    for variant in self.variants(op) {
                        for phase in ["compile", "check", "bench"] {
                            read(format!("{op}/{variant}:{phase}"), &["cost"]);
                        }
                    }
                }
            }
            _ => {}
        }
        reads
    }
}
