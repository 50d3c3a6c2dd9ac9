//! The actions of a variant in CUDA C++ beside those of one in Triton: what they depend on, and what they wait for.

use std::collections::BTreeSet;

use t2t_model::action::{Action, DeviceClass, Source};
use t2t_model::digest::Digest;
use t2t_model::manifest::Fact;
use t2t_model::path::RepoPath;
use t2t_model::problem::Problem;
use t2t_plan::graph::expand::{Inventory, KernelFile, expand};
use t2t_plan::graph::files::Files;
use t2t_spec::Spec;

use crate::inventory::inventory;

const OPS: &str = "\
version: 1
ops:
  softmax:
    torch: F.softmax
    inputs: {input: [M, N]}
    kwargs: {dim: -1}
    variants: [rows, {name: plain, lang: cuda}, {name: inline, lang: cuda, file: inline.py}, {name: extension, lang: cuda}]
";
const SOURCE: &str = "kernels/softmax/plain.cu";
const HEADER: &str = "kernels/softmax/reduce.cuh";
const EXTENSION: &str = "kernels/softmax/extension.cu";
const BINDING: &str = "kernels/softmax/binding.cpp";

struct World {
    spec: Spec,
    inventory: Inventory,
}

impl World {
    fn new(class: DeviceClass) -> Self {
        let spec = Spec::parse("ops.yaml", OPS.as_bytes(), None).unwrap();
        let mut inventory = inventory(&spec, class, "");
        let digest = Digest::of(b"tokens");
        let source = |name: &str| (RepoPath::new(name).unwrap(), Source { meaning: digest, bytes: digest });
        let closure = [SOURCE, HEADER].map(source).into();
        inventory.files.insert(SOURCE.to_owned(), KernelFile { closure, ..KernelFile::default() });
        let closure = [EXTENSION, HEADER, BINDING].map(source).into();
        let file = KernelFile { closure, is_extension: true, ..KernelFile::default() };
        inventory.files.insert(EXTENSION.to_owned(), file);
        inventory.harness_of_cuda = Digest::of(b"compile_cuda");
        inventory.harness_of_inline = Digest::of(b"compile_inline");
        Self { spec, inventory }
    }

    fn action(&self, target: &str) -> Action {
        let all = expand(&self.spec, &self.inventory);
        all.into_iter().find(|action| action.target().to_string() == target).unwrap()
    }

    fn facts(&self, target: &str) -> BTreeSet<String> {
        self.action(target).facts.into_keys().collect()
    }
}

fn device() -> DeviceClass {
    DeviceClass::Cuda("nvidia-h200".to_owned())
}

#[test]
fn what_nvcc_compiles_depends_on_its_file_on_nvcc_and_on_nothing_that_is_declared() {
    let expected = [
        "architectures",
        "harness",
        "source.kernels/softmax/plain.cu",
        "source.kernels/softmax/reduce.cuh",
        "toolchain.nvcc",
        "variant.cuda",
    ];
    for class in [DeviceClass::Interpreter, device()] {
        let world = World::new(class);
        let compile = world.action("softmax/plain:compile");
        assert_eq!(compile.facts.keys().map(String::as_str).collect::<Vec<_>>(), expected);
        assert!(compile.dependencies.is_empty() && compile.identity.device.is_none());
        let (own, others) = (&compile.facts["harness"], &world.action("softmax/rows:compile").facts["harness"]);
        assert_ne!(own, others, "each language has the harness that compiles it");
    }
}

#[test]
fn what_runs_on_a_device_depends_on_nvcc_and_what_is_not_judged_does_not() {
    let (interpreter, device) = (World::new(DeviceClass::Interpreter), World::new(device()));
    let compiled = |world: &World, target: &str| {
        let facts = world.facts(target);
        ["toolchain.nvcc", "architectures"].map(|name| facts.contains(name))
    };
    assert_eq!(compiled(&interpreter, "softmax/plain:check"), [false; 2]);
    for phase in ["check", "tune", "bench"] {
        let target = format!("softmax/plain:{phase}");
        assert_eq!(compiled(&device, &target), [true; 2], "{phase}");
        let facts = device.facts(&target);
        for name in [SOURCE, HEADER, "kernels/softmax/plain.py"] {
            assert!(facts.contains(&format!("source.{name}")), "{phase} has no {name}");
        }
        assert!(facts.contains("variant.cuda"), "{phase}");
    }
}

#[test]
fn what_torch_would_build_depends_on_the_wrapper_on_torch_on_python_and_on_both_compilers() {
    for class in [DeviceClass::Interpreter, device()] {
        let world = World::new(class.clone());
        let compile = world.action("softmax/inline:compile");
        let wanted = ["architectures", "source.kernels/softmax/inline.py", "toolchain.nvcc", "variant.entry"];
        let of_abi = ["toolchain.torch", "toolchain.python", "toolchain.cxx"];
        for name in wanted.into_iter().chain(of_abi) {
            assert!(compile.facts.contains_key(name), "{name}");
        }
        assert_eq!(compile.facts["harness"], Fact::Digest(Digest::of(b"compile_inline")));
        let of_check = world.facts("softmax/inline:check");
        let is_run = class != DeviceClass::Interpreter;
        assert!(of_abi.iter().skip(1).all(|name| of_check.contains(*name) == is_run), "{of_check:?}");
    }
}

#[test]
fn files_that_a_python_file_has_torch_build_depend_on_what_its_texts_would_and_on_the_files() {
    for class in [DeviceClass::Interpreter, device()] {
        let world = World::new(class.clone());
        let of_inline = world.facts("softmax/inline:compile");
        let other = "source.kernels/softmax/inline.py";
        let of_files =
            [EXTENSION, HEADER, BINDING, "kernels/softmax/extension.py"].map(|file| format!("source.{file}"));
        let expected = of_inline.into_iter().filter(|name| name != other).chain(of_files.clone()).collect();
        assert_eq!(world.facts("softmax/extension:compile"), expected);
        let compile = world.action("softmax/extension:compile");
        assert_eq!(compile.facts["harness"], Fact::Digest(Digest::of(b"compile_inline")));
        for phase in ["check", "bench"] {
            let facts = world.facts(&format!("softmax/extension:{phase}"));
            assert!(of_files.iter().all(|name| facts.contains(name)), "{phase}: {facts:?}");
        }
    }
}

#[test]
fn what_is_in_triton_has_no_fact_more() {
    let world = World::new(device());
    for phase in ["compile", "check", "tune", "bench"] {
        let facts = world.facts(&format!("softmax/rows:{phase}"));
        let is_of_cuda = |name: &&String| name.contains("cuda") || name.contains("nvcc") || *name == "architectures";
        assert_eq!(facts.iter().find(is_of_cuda), None, "{phase}");
    }
}

#[test]
fn a_cu_that_is_missing_stops_its_variant() {
    let mut world = World::new(device());
    let file = world.inventory.files.get_mut(SOURCE).unwrap();
    *file = KernelFile { fault: Some(Problem::of_file(SOURCE, "no such file")), ..KernelFile::default() };
    for phase in ["compile", "check", "bench"] {
        assert!(world.facts(&format!("softmax/plain:{phase}")).contains("fault"), "{phase}");
        assert!(!world.facts(&format!("softmax/rows:{phase}")).contains("fault"), "{phase}");
    }
}

#[test]
fn an_included_file_stands_for_the_variants_that_are_made_from_it() {
    let World { spec, inventory } = World::new(device());
    let files = Files { spec: &spec, inventory: &inventory };
    for path in [SOURCE, "kernels/softmax/plain.py"] {
        assert_eq!(files.targets(path).unwrap().unwrap(), ["softmax/plain"], "{path}");
    }
    assert_eq!(files.targets(BINDING).unwrap().unwrap(), ["softmax/extension"]);
    assert_eq!(files.targets(HEADER).unwrap().unwrap(), ["softmax/plain", "softmax/extension"]);
    let all = ["softmax/rows", "softmax/plain", "softmax/inline", "softmax/extension"];
    assert_eq!(files.targets("kernels/softmax").unwrap().unwrap(), all);
    assert!(files.targets("other.cu").is_err(), "it looks like a file that nothing is made from");
}
