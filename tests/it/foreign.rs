//! Foreign text gives no orders: one hostile string through what people and programs read.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use crate::project::{OPS, Project};

/// An order to a terminal, a NUL, what turns text, markup of pages and XML, the ends of lines and of code.
const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}<script>alert(1)</script>]]>`&\r";

#[track_caller]
fn expect_harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let turns = |letter: char| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let order = text.chars().find(|letter| (letter.is_control() && !"\n\t".contains(*letter)) || turns(*letter));
    assert_eq!(order, None, "{what}: {text:?}");
}

fn hostile() -> Project {
    let project = Project::with(&OPS.replace("v2_tiling]", "v2_tiling, v3_odd, v4_cut, v5_says]"));
    for op in ["softmax", "gelu"] {
        for variant in ["v1_baseline", "v2_tiling", "v3_odd", "v4_cut", "v5_says"] {
            project.kernel(op, variant, "");
        }
    }
    let kernel = |variant: &str| format!("kernels/softmax/{variant}.py");
    // A docstring, for the log; a line that is cited; a message of the kernel's own.
    let said = HOSTILE.replace('\r', "");
    project.edit(&kernel("v2_tiling"), "softmax, v2_tiling.", &format!("{said}.\n\n{said}\n"));
    project.write(&kernel("v3_odd"), format!("x = 1\nx = ( '{HOSTILE}'\n"));
    project.write(&kernel("v4_cut"), format!("x = 1\nx = '{HOSTILE}\0\u{1}\n"));
    project.edit(&kernel("v5_says"), "MARK = \"\"", &format!("MARK = \"RAISE {}\"", said.replace(';', "")));
    project
}

#[test]
fn no_output_of_a_build_gives_an_order() {
    let project = hostile();
    project.install(&[("torch", &format!("2.11.0{HOSTILE}")), ("triton", &format!("3.6.0{HOSTILE}"))]);
    let mut asked =
        project.command("build --events events.jsonl --junit junit.xml --trace trace.json --annotations github");
    let built = asked.output().unwrap();
    assert_eq!(built.status.code(), Some(1), "{}", String::from_utf8_lossy(&built.stderr));
    expect_harmless("what a build prints", &built.stdout);
    expect_harmless("what a build says", &built.stderr);
    for file in ["events.jsonl", "junit.xml", "trace.json", "logs/softmax_log.md", "logs/summary.md"] {
        expect_harmless(file, &fs::read(project.path(file)).unwrap());
    }
    for line in project.read("events.jsonl").lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    serde_json::from_str::<Value>(&project.read("trace.json")).unwrap();
    let text = project.read("junit.xml");
    let mut reader = Reader::from_str(&text);
    while !matches!(reader.read_event().unwrap(), Event::Eof) {}
    let log = project.read("logs/softmax_log.md");
    assert!(!log.replace("\\<script>", "").lines().any(|line| !line.starts_with(' ') && line.starts_with("<script>")));
    // What lies in the store under a hostile name.
    fs::write(project.path("cache").join(HOSTILE.replace('/', "")), "").unwrap();
    let looks = [
        "status",
        "explain softmax",
        "explain softmax/v3_odd:compile",
        "explain softmax/v4_cut:check",
        "explain softmax --format json",
        "attempts softmax --format json",
        "doctor --format json",
        "graph",
        "graph --format json",
        "graph --format ops",
        "graph --format mermaid",
        "log softmax",
        "cache verify",
        "cache stats --format json",
        "doctor",
        "affected --since HEAD",
        "build --dry-run",
        "compare . . --format json",
    ];
    for asked in looks {
        let ran = project.command(asked).output().unwrap();
        expect_harmless(asked, &ran.stdout);
        expect_harmless(asked, &ran.stderr);
        if asked.contains("json") && ran.status.success() {
            serde_json::from_slice::<Value>(&ran.stdout).unwrap();
        }
    }
}

#[test]
fn no_complaint_gives_an_order() {
    let project = Project::built();
    for name in ["build", "explain", "status", "log", "adopt", "publish", "compare", "cache"] {
        let command = project.command("");
        let mut plain = Command::new(command.get_program());
        plain.arg(name).current_dir(project.path("")).env_clear();
        plain.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        match name {
            "adopt" => plain.args([HOSTILE, "--as", "odd"]),
            "compare" => plain.args([HOSTILE, HOSTILE]),
            "cache" => plain.args(["import", HOSTILE]),
            "publish" => &mut plain,
            _ => plain.arg(HOSTILE),
        };
        let ran = plain.output().unwrap();
        expect_harmless(name, &ran.stderr);
        expect_harmless(name, &ran.stdout);
    }
    for text in [format!("{OPS}  {HOSTILE}: 1\n"), OPS.replace("[M, N]", &format!("\"{HOSTILE}\"")), HOSTILE.to_owned()]
    {
        project.write("ops.yaml", text);
        let ran = project.command("build --annotations github").output().unwrap();
        assert_eq!(ran.status.code(), Some(2));
        expect_harmless("ops.yaml", &ran.stderr);
        expect_harmless("ops.yaml", &ran.stdout);
    }
    // A workspace in a folder, and an interpreter, of such a name.
    let folder = project.path("../").join(HOSTILE.replace('/', ""));
    symlink(project.path(""), &folder).unwrap();
    let mut command = project.command("build");
    command.current_dir(&folder).env("T2T_PYTHON", folder.join("none"));
    let ran = command.output().unwrap();
    expect_harmless("a folder", &ran.stderr);
}
