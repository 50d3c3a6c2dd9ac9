//! The module `t2t` of Python: what a build comes to, as values. A script imports it from the repository, and its workspace has the interpreter for tests.

use std::process::Command;

use serde_json::{Value, json};

use super::{machine, on};
use crate::environment;
use crate::project::Project;

/// Runs a script with the module on a machine with one device, and returns the JSON that it prints.
fn script(project: &Project, text: &str) -> Value {
    let like = on(project, project, "build");
    let mut command = Command::new(environment::python());
    command.args(["-c", text]).current_dir(project.path("")).env_clear();
    for (name, value) in like.get_envs() {
        command.env(name, value.unwrap());
    }
    command.env("T2T_BIN", environment::binary()).env("PYTHONPATH", environment::root().join("python/api"));
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_build_and_what_stands_are_values() {
    let project = machine(1);
    let told = script(
        &project,
        r#"
import json, t2t
heard = []
first = t2t.build(device="cuda", heard=lambda event: heard.append(event["event"]))
again = t2t.build("softmax", device="cuda")
results = t2t.results("softmax", "gelu", device="cuda")
chosen = results[0].kernel()
print(json.dumps({
    "first": [first.exit_code, first.is_whole, len(first.ran) > 10, len(first.failures)],
    "again": [again.exit_code, len(again.ran), {one.how for one in again.actions} == {"fresh"}],
    "heard": [heard[0], heard[-1]],
    "ops": [one.op for one in results],
    "device": results[0].device,
    "sizes": [one.size for one in chosen.figures],
    "speedup": all(abs(one.torch_ms / one.ms / one.speedup - 1) < 0.01 for one in chosen.figures),
    "chosen": [one.name for one in results[0].kernels if one.is_chosen] == [results[0].chosen],
    "fresh": {one.state for one in t2t.status(device="cuda")} == {"fresh"},
    "bench": t2t.artifact(f"softmax/{results[0].chosen}:bench", "bench", device="cuda")["final_ms"] == chosen.figures[-1].ms,
}))
"#,
    );
    assert_eq!(
        told,
        json!({
            "first": [0, true, true, 0],
            "again": [0, 0, true],
            "heard": ["started", "finished"],
            "ops": ["softmax", "gelu"],
            "device": "nvidia-h200",
            "sizes": ["small", "final"],
            "speedup": true,
            "chosen": true,
            "fresh": true,
            "bench": true,
        })
    );
}

#[test]
fn results_are_a_table_of_pandas() {
    let project = machine(1);
    project.kernel("softmax", "v1_baseline", "REJECT mismatch");
    let told = script(
        &project,
        r#"
import json, t2t
t2t.build("softmax", device="cuda")
table = t2t.frame(t2t.results(device="cuda"))
right = table[table.status == "passed"]
print(json.dumps({
    "kernels": sorted(set(table.kernel)),
    "rejected": table[table.status == "rejected"].ms.isna().tolist(),
    "sizes": right["size"].tolist(),
    "faster": bool((right.torch_ms / right.ms - right.speedup).abs().max() < 0.01 * right.speedup.max()),
    "empty": t2t.frame([]).columns.tolist() == table.columns.tolist(),
}))
"#,
    );
    assert_eq!(
        told,
        json!({
            "kernels": ["v1_baseline", "v2_tiling"],
            "rejected": [true],
            "sizes": ["small", "final"],
            "faster": true,
            "empty": true,
        })
    );
}

#[test]
fn a_rejected_kernel_is_a_failure_with_its_place_and_misuse_is_an_error_of_its_own() {
    let project = machine(1);
    project.kernel("softmax", "v1_baseline", "REJECT mismatch");
    let told = script(
        &project,
        r#"
import json, t2t
built = t2t.build("softmax:check", device="cuda")
failure = built.failures[0]
try:
    t2t.build("nothing", device="cuda")
except t2t.MisuseError as error:
    misuse = [error.exit_code, "no op `nothing`" in str(error), isinstance(error, ValueError)]
print(json.dumps({
    "built": [built.exit_code, built.is_whole, len(built.failures)],
    "failure": [failure.target, failure.class_, failure.file, failure.line],
    "misuse": misuse,
}))
"#,
    );
    assert_eq!(
        told,
        json!({
            "built": [1, false, 1],
            "failure": ["softmax/v1_baseline:check", "mismatch", "kernels/softmax/v1_baseline.py", 4],
            "misuse": [2, true, true],
        })
    );
}

#[test]
fn a_machine_that_fails_and_a_signal_are_errors_of_their_own() {
    let project = machine(1);
    project.kernel("softmax", "v1_baseline", "LOST");
    let told = script(
        &project,
        r#"
import json, os, signal, sys, tempfile, t2t
try:
    t2t.build("softmax:check", device="cuda")
except t2t.MachineError as error:
    machine = [error.exit_code, "softmax/v1_baseline" in str(error), isinstance(error, OSError)]
heard_of = []
def heard(event):
    heard_of.append(event["event"])
    if heard_of.count("action-finished") == 1 and heard_of[-1] == "action-finished":
        # That of this process: the build.
        child = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()[0]
        os.kill(int(child), signal.SIGINT)
try:
    t2t.build(device="cuda", heard=heard)
    ended = "whole"
except KeyboardInterrupt:
    ended = "interrupted"
# A second Ctrl-C kills t2t itself.
with tempfile.TemporaryDirectory() as folder:
    os.environ["T2T_BIN"] = killed = f"{folder}/t2t"
    with open(killed, "w") as script:
        # What runs in the background ignores the signal, and so would a shell.
        script.write(f'''#!{sys.executable}
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGINT)
''')
    os.chmod(killed, 0o755)
    try:
        t2t.build()
        twice = "whole"
    except KeyboardInterrupt:
        twice = "interrupted"
print(json.dumps({"machine": machine, "ended": ended, "twice": twice}))
"#,
    );
    assert_eq!(told, json!({ "machine": [3, true, true], "ended": "interrupted", "twice": "interrupted" }));
}

#[test]
fn who_hears_events_may_end_the_build_and_the_next_one_goes_on() {
    let project = machine(1);
    let told = script(
        &project,
        r#"
import json, t2t
def heard(event):
    if event["event"] == "action-finished":
        raise RuntimeError("enough")
try:
    t2t.build(device="cuda", heard=heard)
    ended = None
except RuntimeError as error:
    ended = str(error)
after = t2t.build(device="cuda")
print(json.dumps({"ended": ended, "after": after.exit_code, "kept": any(one.how == "fresh" for one in after.actions)}))
"#,
    );
    assert_eq!(told, json!({ "ended": "enough", "after": 0, "kept": true }));
}
