//! The real worker without torch: a project whose interpreter is the tests' own, with the worker module of this source, stand-ins for torch and Triton, and a
//! harness whose functions answer as `fake_python/server.py` does. Servers start in a tenth of a second, and children are real ones.
//!
//! It does not know what is tested with it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::environment;
use crate::project::Project;

/// The functions of the harness's phases, as `module:function`.
const FUNCTIONS: [&str; 9] = [
    "probe:probe",
    "analyze:analyze",
    "compile:compile_variant",
    "prepare:prepare",
    "candidate:run",
    "judge:judge",
    "bench:bench",
    "sample:judge_sample",
    "baseline:baseline",
];

/// What answers for all of them, in the child. It cannot log, nor ask for versions: a child sees and writes its own folders alone.
const ANSWERS: &str = "\
import os
import stand_in

known = stand_in.versions()
stand_in.versions = lambda: known
stand_in.note = lambda line: None


def answers(function):
    def answer(arguments):
        request = {'function': function, 'arguments': arguments, 'environment': dict(os.environ)}
        request['limits'] = {'cpu_ms': None, 'cores': None, 'nice': None}
        request |= {'stays': False, 'undisturbed': False}
        call = stand_in.Call(request)
        if function in ('candidate:run', 'compile:compile_variant', 'bench:bench'):
            call.runs_kernel()
        return stand_in.ANSWERS[function](call)
    return answer
";

/// Makes a project's interpreter the real one. Call it once.
pub fn prepare(project: &Project) {
    let stubs = project.path("../stubs");
    write(&stubs.join("torch/__init__.py"), "__version__ = '2.11.0'\n\n\ndef set_num_threads(count):\n    pass\n");
    write(&stubs.join("triton/__init__.py"), "__version__ = '3.6.0'\n");
    write(&stubs.join("triton/runtime/__init__.py"), "");
    write(&stubs.join("triton/runtime/cache.py"), "def triton_key():\n    return 'none'\n");
    write(&stubs.join("safetensors/__init__.py"), "");
    symlink(environment::root().join("tests/it/fake_python/stand_in.py"), project.path("../python/bin/stand_in.py"))
        .unwrap();
    let package = project.path("../harness/t2t_harness");
    write(&package.join("__init__.py"), "");
    write(&package.join("phases/__init__.py"), "");
    write(&package.join("answers.py"), ANSWERS);
    for function in FUNCTIONS {
        let (module, name) = function.split_once(':').unwrap();
        let text = format!("from t2t_harness.answers import answers\n\n{name} = answers('{function}')\n");
        write(&package.join(format!("phases/{module}.py")), &text);
    }
}

/// Returns a command of the project with that interpreter.
pub fn command(project: &Project, arguments: &str) -> Command {
    let mut command = project.command(arguments);
    let mut search = format!("{}:{}", project.path("../stubs").display(), project.path("../python/bin").display());
    if let Some(module) = std::env::var_os("T2T_TEST_MODULE") {
        search += &format!(":{}", Path::new(&module).display());
    }
    command.env("T2T_PYTHON", environment::python()).env("T2T_HARNESS", project.path("../harness"));
    command.env("PYTHONPATH", search);
    command
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
