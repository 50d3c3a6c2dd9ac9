//! What a build writes for programs: events, test cases, annotations. The table of docs/reference/machine-readable.md is held against what is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use crate::project::{Project, Ran};

/// A workspace with a variant that is rejected.
fn rejecting() -> Project {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "REJECT mismatch");
    project
}

fn events(project: &Project) -> Vec<Value> {
    let text = project.read("events.jsonl");
    assert!(text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn of<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

fn ends<'a>(events: &'a [Value], target: &str) -> &'a Value {
    of(events, "action-finished").into_iter().rfind(|event| event["target"] == target).unwrap()
}

/// Returns, by event, the fields that the page documents with their types.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let page =
        fs::read_to_string(format!("{}/docs/reference/machine-readable.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains("| `")) {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches(['|', '`', ' '])).collect();
        found.entry(cells[0].to_owned()).or_default().insert(cells[1].to_owned(), cells[2].to_owned());
    }
    let every = found.remove("every").unwrap();
    for fields in found.values_mut() {
        fields.extend(every.clone());
    }
    found
}

fn is_of(value: &Value, kind: &str) -> bool {
    kind.split(" or ").any(|kind| match kind {
        "text" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        "list of text" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        other => panic!("the page has a type `{other}`"),
    })
}

/// Holds each line against the page: its fields are those of its event, of the types that are named.
fn hold(events: &[Value], documented: &BTreeMap<String, BTreeMap<String, String>>) -> BTreeSet<String> {
    for event in events {
        let name = event["event"].as_str().unwrap();
        let fields = documented.get(name).unwrap_or_else(|| panic!("the page has no event `{name}`"));
        let written: BTreeSet<&String> = event.as_object().unwrap().keys().collect();
        assert_eq!(written, fields.keys().collect::<BTreeSet<_>>(), "{name}");
        for (field, kind) in fields {
            assert!(is_of(&event[field], kind), "`{field}` of `{name}` is no {kind}: {event}");
        }
    }
    events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn events_tell_the_whole_build_as_the_page_says() {
    let (project, page) = (rejecting(), documented());
    let mut seen = BTreeSet::new();
    project.t2t("build --events events.jsonl").exits(1);
    let first = events(&project);
    seen.extend(hold(&first, &page));
    assert_eq!((&first[0]["event"], &first[0]["version"]), (&Value::from("started"), &Value::from(1)));
    let failure = of(&first, "failure")[0];
    assert_eq!(
        (&failure["target"], &failure["file"]),
        (&"gelu/v2_tiling:check".into(), &"kernels/gelu/v2_tiling.py".into())
    );
    assert!(
        failure["line"].is_u64() && failure["text"].as_str().unwrap().starts_with("error: kernels/gelu/"),
        "{failure}"
    );
    let rejected = ends(&first, "gelu/v2_tiling:check");
    assert_eq!(
        (&rejected["how"], &rejected["outcome"], &rejected["class"]),
        (&"ran".into(), &"rejected".into(), &"mismatch".into())
    );
    assert!(rejected["wall_ms"].as_f64().unwrap() > 0.0);
    let skipped = ends(&first, "gelu/v2_tiling:bench");
    assert_eq!((&skipped["how"], &skipped["outcome"]), (&"skipped".into(), &Value::Null));
    let last = first.last().unwrap();
    assert_eq!(
        (&last["event"], &last["exit_code"], &last["tally"]["rejected"]),
        (&"finished".into(), &1.into(), &1.into())
    );
    let seconds: Vec<f64> = first.iter().map(|event| event["seconds"].as_f64().unwrap()).collect();
    assert!(seconds.is_sorted(), "{seconds:?}");
    let started = of(&first, "action-started").len();
    assert_eq!(of(&first, "action-finished").iter().filter(|event| event["how"] == "ran").count(), started);

    project.t2t("build --events events.jsonl gelu").exits(1);
    let again = events(&project);
    seen.extend(hold(&again, &page));
    assert_eq!(again[0]["targets"], Value::from(vec!["gelu"]));
    let standing = ends(&again, "gelu/v2_tiling:check");
    assert_eq!(
        (&standing["how"], &standing["outcome"], &standing["key"]),
        (&"fresh".into(), &"rejected".into(), &rejected["key"])
    );
    assert_eq!(of(&again, "failure").len(), 1);
    assert!(
        ["started", "planned", "action-started", "action-finished", "failure", "note", "finished"]
            .iter()
            .all(|name| seen.contains(*name)),
        "{seen:?}"
    );
}

#[test]
fn events_say_what_was_had_of_a_remote_cache() {
    let (first, second, page) = (Project::new(), Project::new(), documented());
    let url = format!("file://{}", first.path("../remote").display());
    let used = |project: &Project| {
        project.t2t(&format!("build --events events.jsonl --remote {url}")).exits(0);
        let told = events(project);
        assert!(hold(&told, &page).contains("remote-used"));
        let used = of(&told, "remote-used")[0];
        assert_eq!(used["remote"], Value::from(url.as_str()));
        ["hits", "misses", "uploads", "unsent", "faults"].map(|field| used[field].as_u64().unwrap())
    };
    assert_eq!(used(&first), [0, 19, 19, 0, 0]);
    assert_eq!(used(&second), [19, 0, 0, 0, 0]);
}

#[test]
fn events_of_what_is_missing_lost_or_stopped() {
    let (project, page) = (Project::new(), documented());
    project.t2t("build --require-cached --events events.jsonl").exits(1);
    let missing = events(&project);
    hold(&missing, &page);
    assert_eq!(ends(&missing, "gelu/v2_tiling:check")["how"], "missing");
    project.kernel("gelu", "v2_tiling", "LOST");
    project.t2t("build --events events.jsonl").exits(3);
    let lost = events(&project);
    hold(&lost, &page);
    assert_eq!(ends(&lost, "gelu/v2_tiling:check")["how"], "lost");
    assert_eq!(lost.last().unwrap()["exit_code"], 3);
    project.write("ops.yaml", "version: 1\nops: 3\n");
    project.t2t("build --events events.jsonl").exits(2);
    let stopped = events(&project);
    hold(&stopped, &page);
    let end = stopped.last().unwrap();
    assert_eq!((&end["exit_code"], &end["tally"]), (&2.into(), &Value::Null));
    assert!(end["error"].as_str().unwrap().starts_with("error: ops.yaml:2:"), "{end}");
}

#[test]
fn an_interrupted_build_leaves_its_events_and_its_cases() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "HANG");
    let mut command = project.command("build --events events.jsonl --junit junit.xml");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    project.until_logged("pid ");
    // Lines are there while the build runs; the last may be half-written.
    let told = project.read("events.jsonl");
    let told = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>();
    assert!(of(&told, "action-started").iter().any(|event| event["target"] == "gelu/v2_tiling:check"));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    project.wait(child).exits(130);
    assert_eq!(events(&project).last().unwrap()["exit_code"], 130);
    assert_eq!(cases(&project)["gelu v2_tiling:check"].0, "skipped");
}

#[test]
fn a_file_that_cannot_be_written_stops_the_build_before_anything_runs() {
    for (flag, what, why) in
        [("--events", "the events", "Is a directory (os error 21)"), ("--junit", "the JUnit file", "it is no file")]
    {
        let project = Project::new();
        let ran = project.t2t(&format!("build {flag} kernels")).exits(2).runs("");
        let expected = format!(
            "error: cannot write {what} to `[ROOT]/kernels`: {why}\nhint: name a file in a folder that can be written\n"
        );
        assert_eq!((ran.stderr.as_str(), ran.starts), (expected.as_str(), 0));
    }
}

#[test]
fn each_output_is_a_file_of_its_own_and_a_dry_run_has_none() {
    let project = Project::new();
    let ran = project.t2t("build --events told --junit ./told").exits(2).runs("");
    let expected = "error: `--events` and `--junit` name one file, `[ROOT]/told`\nhint: give each a file of its own\n";
    assert_eq!((ran.stderr.as_str(), project.exists("told")), (expected, false));
    for flag in ["--events", "--junit", "--trace"] {
        let ran = project.t2t(&format!("build --dry-run {flag} told")).exits(2).runs("");
        assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    }
}

#[test]
fn a_file_that_holds_something_else_is_not_replaced() {
    let project = Project::new();
    let files = ["ops.yaml", "kernels/softmax/v2_tiling.py"];
    for (flag, what) in [("--events", "the events"), ("--junit", "the JUnit file"), ("--trace", "the trace")] {
        for file in files {
            let before = project.read(file);
            let ran = project.t2t(&format!("build {flag} {file}")).exits(2).runs("");
            let expected = format!(
                "error: cannot write {what} to `[ROOT]/{file}`: something else is in it\nhint: name another file, or remove that one first\n"
            );
            assert_eq!((ran.stderr.as_str(), project.read(file)), (expected.as_str(), before));
        }
    }
    // What a build wrote itself is replaced, and what is empty.
    project.write("empty", "");
    for _ in 0..2 {
        project.t2t("build --events events.jsonl --junit junit.xml --trace empty").exits(0);
    }
}

/// Returns the test cases of `junit.xml`: `CLASSNAME NAME` → the element inside and its text.
fn cases(project: &Project) -> BTreeMap<String, (String, String)> {
    let text = project.read("junit.xml");
    let mut reader = Reader::from_str(&text);
    let (mut found, mut name, mut inside) = (BTreeMap::new(), String::new(), String::new());
    loop {
        match reader.read_event().unwrap_or_else(|error| panic!("{error}: {text}")) {
            Event::Eof => return found,
            Event::Start(start) | Event::Empty(start) => {
                let tag = start.name().as_ref().to_owned();
                let value = |key: &str| start.try_get_attribute(key).unwrap().unwrap().value.into_owned();
                match tag.as_str() {
                    "testcase" => {
                        name = format!("{} {}", value("classname"), value("name"));
                        found.insert(name.clone(), ("passed".to_owned(), String::new()));
                    }
                    "failure" | "error" | "skipped" => {
                        let about = if tag == "skipped" { value("message") } else { value("type") };
                        found.insert(name.clone(), (tag.clone(), about));
                    }
                    _ => {}
                }
                inside = tag;
            }
            Event::Text(text) if inside == "failure" => found.get_mut(&name).unwrap().1 += &text,
            _ => {}
        }
    }
}

#[test]
fn test_cases_describe_how_it_stands_and_not_what_ran() {
    let project = rejecting();
    project.t2t("build").exits(1);
    project.t2t("build --junit junit.xml").exits(1).runs("");
    let cases = cases(&project);
    let ends = |name: &str| cases[name].0.as_str();
    assert_eq!(
        cases.keys().collect::<Vec<_>>(),
        [
            "gelu v1_baseline:bench",
            "gelu v1_baseline:check",
            "gelu v2_tiling:bench",
            "gelu v2_tiling:check",
            "softmax v1_baseline:bench",
            "softmax v1_baseline:check",
            "softmax v2_tiling:bench",
            "softmax v2_tiling:check",
        ]
    );
    assert_eq!((ends("gelu v1_baseline:check"), ends("softmax v2_tiling:bench")), ("passed", "passed"));
    assert_eq!(cases["gelu v2_tiling:bench"], ("skipped".to_owned(), "after gelu/v2_tiling:check".to_owned()));
    let (kind, text) = &cases["gelu v2_tiling:check"];
    assert!(kind == "failure" && text.starts_with("mismatcherror: kernels/gelu/v2_tiling.py:"), "{text}");
    project.t2t("build softmax --junit junit.xml").exits(0);
    assert!(self::cases(&project).keys().all(|name| name.starts_with("softmax ")));
}

#[test]
fn test_cases_tell_of_other_phases_that_failed_and_of_a_build_that_stopped() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "COMPILE-ERROR");
    project.t2t("build gelu --junit junit.xml").exits(1);
    assert_eq!(cases(&project)["gelu v2_tiling:compile"].0, "failure");
    project.t2t("build --require-cached --junit junit.xml").exits(1);
    for name in ["check", "compile"] {
        let case = &cases(&project)[&format!("softmax v2_tiling:{name}")];
        assert_eq!(*case, ("error".to_owned(), "missing".to_owned()), "{name}");
    }
    assert!(!cases(&project).contains_key("softmax log"));
    project.t2t("build nothing --junit junit.xml").exits(2);
    assert_eq!(cases(&project), BTreeMap::from([("t2t build".to_owned(), ("error".to_owned(), "build".to_owned()))]));
}

fn on_github(project: &Project, arguments: &str) -> Ran {
    let mut command: Command = project.command(arguments);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_WORKSPACE", project.path("").join(".."));
    project.run(&mut command)
}

fn annotations(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.starts_with("::")).collect()
}

#[test]
fn rejections_are_annotated_on_github_at_the_kernels_line() {
    let project = rejecting();
    let folder = project.path("").file_name().unwrap().to_string_lossy().into_owned();
    let ran = on_github(&project, "build").exits(1);
    let first = annotations(&ran);
    assert_eq!(first.len(), 1, "{}", ran.stdout);
    let head = format!("::error file={folder}/kernels/gelu/v2_tiling.py,line=");
    assert!(
        first[0].starts_with(&head) && first[0].contains(",title=gelu/v2_tiling%3Acheck%3A mismatch::"),
        "{first:?}"
    );
    assert!(ran.stdout.trim_end().ends_with(first[0]), "{}", ran.stdout);
    assert_eq!(annotations(&on_github(&project, "build --quiet").exits(1)), first);
    assert!(annotations(&on_github(&project, "build --annotations none").exits(1)).is_empty());
    assert!(annotations(&project.t2t("build").exits(1)).is_empty());
    let asked = project.t2t("build --annotations github").exits(1);
    assert!(annotations(&asked)[0].starts_with("::error file=kernels/gelu/v2_tiling.py,line="), "{}", asked.stdout);
}

#[test]
fn faults_of_files_are_annotated_once() {
    let project = Project::new();
    project.write("kernels/gelu/v2_tiling.py", "def triton_gelu(:\n");
    let ran = project.t2t("build --annotations github").exits(1);
    let told = annotations(&ran);
    assert!(told.len() == 1 && told[0].starts_with("::error file=kernels/gelu/v2_tiling.py,line=1,col="), "{told:?}");
    project.write("ops.yaml", "version: 1\nops: 3\n");
    let ran = project.t2t("build --annotations github").exits(2);
    let told = annotations(&ran);
    assert!(told.len() == 1 && told[0].starts_with("::error file=ops.yaml,line=2,col="), "{told:?}");
}

// The state, and documents.

#[test]
fn the_state_of_every_action_is_told_to_programs() {
    let project = rejecting();
    project.t2t("build").exits(1);
    project.kernel("softmax", "v1_baseline", "TAKES 2");
    let states: Vec<Value> = serde_json::from_str(&project.run_raw("status --format json")).unwrap();
    let of = |target: &str| {
        let state = states.iter().find(|state| state["target"] == target).unwrap_or_else(|| panic!("{target}"));
        ["state", "outcome", "class"].map(|name| state[name].as_str().unwrap_or("none"))
    };
    assert_eq!(of("gelu/v1_baseline:check"), ["fresh", "passed", "none"]);
    assert_eq!(of("gelu/v2_tiling:check"), ["fresh", "rejected", "mismatch"]);
    assert_eq!(of("gelu/v2_tiling:bench"), ["skipped", "none", "none"]);
    assert_eq!(of("softmax/v1_baseline:check"), ["stale", "none", "none"]);
    let why = |target: &str| states.iter().find(|state| state["target"] == target).unwrap()["why"].to_string();
    assert!(why("softmax/v1_baseline:check").contains("v1_baseline.py"), "{}", why("softmax/v1_baseline:check"));
    assert!(why("gelu/v2_tiling:bench").contains("after gelu/v2_tiling:check"));
}

#[test]
fn the_documents_of_a_result_are_printed_as_they_are_kept() {
    let project = rejecting();
    project.t2t("build").exits(1);
    project.t2t("artifact gelu/v2_tiling:check").exits(0).says("evidence ").says("verdict ");
    let verdict: Value = serde_json::from_str(&project.run_raw("artifact gelu/v2_tiling:check verdict")).unwrap();
    assert_eq!((&verdict["verdict"], &verdict["class"]), (&"rejected".into(), &"mismatch".into()));
    project.t2t("artifact gelu/v2_tiling:check bench").exits(2).says("has no `bench`").says("`evidence`, `verdict`");
    project.t2t("artifact gelu").exits(2).says("`gelu` is not one action");
    project.t2t("artifact gelu:nothing").exits(2);
    project.t2t("artifact gelu/v2_tiling:bench").exits(2).says("has no result");
    project.kernel("gelu", "v2_tiling", "");
    project.t2t("artifact gelu/v2_tiling:check verdict").exits(0).says("is stale: this is its last result");
}

fn document(project: &Project, arguments: &str) -> Value {
    serde_json::from_str(&project.run_raw(&format!("{arguments} --format json"))).unwrap()
}

#[test]
fn what_explain_says_is_told_to_programs() {
    let project = rejecting();
    project.t2t("build").exits(1);
    project.kernel("softmax", "v1_baseline", "TAKES 2");
    let told =
        document(&project, "explain softmax/v1_baseline:check gelu/v2_tiling:check gelu/v2_tiling:bench mismatch");
    assert_eq!(told["classes"][0]["class"], "mismatch");
    assert!(!told["classes"][0]["remedy"].as_str().unwrap().is_empty());
    let of = |target: &str| {
        let actions = told["actions"].as_array().unwrap();
        actions.iter().find(|action| action["target"] == target).unwrap_or_else(|| panic!("{target}"))
    };
    let stale = of("softmax/v1_baseline:check");
    assert_eq!(
        [&stale["state"], &stale["outcome"], &stale["from"]],
        [&Value::from("stale"), &Value::Null, &Value::Null]
    );
    assert!(stale["why"][0].as_str().unwrap().starts_with("code of `kernels/softmax/v1_baseline.py` changed: "));
    let rejected = of("gelu/v2_tiling:check");
    assert_eq!([&rejected["state"], &rejected["outcome"], &rejected["class"]], ["fresh", "rejected", "mismatch"]);
    assert_eq!(rejected["failure"]["case"], "small/float32/0");
    assert_eq!(rejected["cases"]["small/float32/0"], "rejected");
    assert_eq!(of("gelu/v2_tiling:bench")["cases"], Value::Null);
    assert!(rejected["from"].as_str().unwrap().starts_with("a run of "), "{rejected}");
    assert_eq!(rejected["key"].as_str().unwrap().len(), 64);
    assert_eq!(rejected["facts"]["toolchain.triton"], "3.6.0");
    let skipped = of("gelu/v2_tiling:bench");
    assert_eq!([&skipped["state"], &skipped["after"]], ["skipped", "gelu/v2_tiling:check"]);
    assert_eq!(document(&project, "explain mismatch")["actions"], Value::Array(Vec::new()));
}

#[test]
fn doctor_says_what_is_lacking_and_needs_no_workspace() {
    let project = Project::new();
    project
        .run(project.command("doctor").env("T2T_PYTHON", "/nowhere/python"))
        .exits(0)
        .says("missing: cannot start `/nowhere/python`");
    project.remove("ops.yaml");
    let ran = project.t2t("doctor").exits(0);
    ran.says("workspace: none: no ops.yaml in `").says("hint: `t2t init` makes one here").says("torch: 2.11.0");
}

#[test]
fn what_doctor_says_is_told_to_programs() {
    let project = Project::new();
    let found = document(&project, "doctor");
    let found: Vec<(&str, &str)> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["value"].as_str().unwrap()))
        .collect();
    assert!(found.contains(&("torch", "2.11.0")), "{found:?}");
    assert!(found.contains(&("cuda", "no device; kernels run in Triton's interpreter")), "{found:?}");
    let lines: Vec<String> = found.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(lines, project.run_raw("doctor").lines().collect::<Vec<_>>());
}
