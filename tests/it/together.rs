//! Ten t2t on one workspace at once: each ends as if it had been alone, no action runs twice, and whoever waits says for whom.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr};

use nix::sys::signal::Signal;

use crate::cli::damage::steady;
use crate::project::{Project, Ran};
use crate::soak::{Count, rounds};
use crate::watching::Watching;

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// What nine people ask for in the same moment. The tenth watches.
const ASKED: [&str; 9] = [
    "build",
    "build --op softmax",
    "build --op gelu",
    "cache gc",
    "cache verify",
    "explain softmax gelu",
    "cache stats",
    "status",
    "build softmax/v2_tiling",
];

/// A call that the interpreter logged: the process that served it, when it ran, for which action.
#[derive(Debug)]
struct Span {
    begin: u64,
    end: u64,
    target: String,
}

fn spans(log: &[String]) -> Vec<Span> {
    let lines = log.iter().filter_map(|line| line.strip_prefix("span "));
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Span { begin: words[1].parse().unwrap(), end: words[2].parse().unwrap(), target: words[3].to_owned() }
    };
    lines.map(parse).filter(|span| !span.target.ends_with(":probe")).collect()
}

/// Returns how often each action's last call ended: how often it ran.
fn runs(log: &[String]) -> BTreeMap<String, usize> {
    let lasts =
        ["analyze:analyze", "baseline:baseline", "compile:compile_variant", "judge:judge", "sample:judge_sample"];
    let mut runs = BTreeMap::new();
    for line in log {
        if let Some((target, function)) = line.split_once(' ')
            && lasts.contains(&function)
        {
            *runs.entry(target.to_owned()).or_default() += 1;
        }
    }
    runs
}

fn all_at_once(project: &Project) -> Vec<(&'static str, Ran)> {
    let started: Vec<(&str, Child)> = ASKED.into_iter().map(|asked| (asked, project.spawn(asked))).collect();
    started.into_iter().map(|(asked, child)| (asked, project.wait(child))).collect()
}

#[test]
fn ten_at_once_come_to_what_they_come_to_one_after_the_other() {
    let project = Project::new();
    for place in ["../python/bin/steady", "../python/bin/spans"] {
        project.write(place, "");
    }
    project.write("assets/summary_template.md", "# Of my own\n");
    project.kernel("gelu", "v1_baseline", "SLEEP 0.05");
    let mut watching = Watching::begin(&project, "");
    let count = Count::of("side by side", "commands");
    let mut edits = 0;
    for edit in rounds(3) {
        let before = project.log().len();
        if edit > 0 {
            project.edit(KERNEL, &format!("input + {edit}"), &format!("input + {}", edit + 1));
        }
        let ran = all_at_once(&project);
        if edit > 0 {
            watching.says(&format!("changed: {KERNEL}"));
        }
        watching.settles();
        let log = project.log().split_off(before);
        for (asked, ran) in &ran {
            assert_eq!(ran.code, 0, "{asked}: {}\n{}", ran.stdout, ran.stderr);
            assert!(!ran.stderr.contains("warning"), "{asked}: {}", ran.stderr);
        }
        let twice: Vec<_> = runs(&log).into_iter().filter(|(_, count)| *count > 1).collect();
        assert!(twice.is_empty(), "{twice:?} of edit {edit}");
        assert_eq!(runs(&log).len(), if edit == 0 { 14 } else { 3 }, "{log:?}");
        let spans = spans(&log);
        let overlap =
            |one: &Span, other: &Span| one.target == other.target && one.begin < other.end && other.begin < one.end;
        for (number, one) in spans.iter().enumerate() {
            assert!(!spans[number + 1..].iter().any(|other| overlap(one, other)), "{one:?}");
        }
        expect_waits_to_be_told(&ran);
        project.t2t("cache verify").exits(0).says(": 0 damages").never_says("unfinished files");
        project.build().exits(0).runs("");
        count.add(ran.len());
        edits = edit;
    }
    let (code, told) = watching.stop(Signal::SIGINT);
    assert_eq!(code, 130, "{told}");
    assert!(!told.contains("warning") && !told.contains("error"), "{told}");
    told.lines().for_each(|line| expect_whom("watch", line));
    let alone = Project::new();
    alone.write("../python/bin/steady", "");
    alone.write("assets/summary_template.md", "# Of my own\n");
    alone.kernel("gelu", "v1_baseline", "SLEEP 0.05");
    alone.edit(KERNEL, "input + 1", &format!("input + {}", edits + 1));
    alone.build().exits(0);
    for log in ["logs/softmax_log.md", "logs/gelu_log.md", "logs/summary.md"] {
        assert_eq!(project.read(log), alone.read(log), "{log}");
    }
}

/// What is drawn from for workspaces that are shared by people who also clean.
const DRAWN: [&str; 11] = [
    "build",
    "build --op softmax",
    "build softmax/v2_tiling",
    "status",
    "explain softmax gelu",
    "log softmax",
    "cache verify",
    "cache stats",
    "cache gc",
    "cache gc --max-size 1B",
    "clean --cache --yes",
];

/// How many of them run at once.
const AT_ONCE: usize = 6;

/// Draws what is asked, the same in every run.
fn drawn(draw: &mut u64, most: usize) -> usize {
    *draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*draw >> 33).unwrap() % most
}

#[test]
fn any_commands_at_once_on_shared_workspaces_end_as_if_alone() {
    let count = Count::of("side by side", "commands");
    let shared = [steady(), steady()];
    let mut draw = 5;
    for round in rounds(4) {
        let mut started: Vec<(&Project, &str, Child)> = Vec::new();
        for project in &shared {
            if drawn(&mut draw, 3) == 0 {
                let [from, to] = if round % 2 == 0 { [1, 2] } else { [2, 1] };
                let text = project.read(KERNEL).replace(&format!("input + {from}"), &format!("input + {to}"));
                project.write(KERNEL, text);
            }
            for _ in 0..AT_ONCE {
                let asked = DRAWN[drawn(&mut draw, DRAWN.len())];
                started.push((project, asked, project.spawn(asked)));
            }
        }
        count.add(started.len());
        for (project, asked, child) in started {
            let ran = project.wait(child);
            // There may be no log to print.
            let is_expected = ran.code == 0 || (asked.starts_with("log") && ran.code == 2);
            assert!(is_expected, "round {round}, {asked}: {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
            // A log is stale until the build beside it has made it again.
            let warns =
                |line: &str| line.contains("warning") && !(asked.starts_with("log") && line.contains("is stale"));
            assert!(!ran.stderr.lines().any(warns), "round {round}, {asked}: {}", ran.stderr);
        }
        for project in &shared {
            project.build().exits(0).never_says("warning");
            project.build().exits(0).runs("");
            project.t2t("cache verify").exits(0).says(": 0 damages").never_says("unfinished files");
            assert!(project.files("cache/scratch").iter().all(|path| !path.is_file()), "round {round}");
        }
    }
    for project in &shared {
        let alone = steady();
        alone.write(KERNEL, project.read(KERNEL));
        alone.build().exits(0);
        for log in ["logs/softmax_log.md", "logs/gelu_log.md", "logs/summary.md"] {
            assert_eq!(project.read(log), alone.read(log), "{log}");
        }
    }
}

/// Of those that take the workspace's lock at most one did not wait; whoever waited said for which command.
fn expect_waits_to_be_told(ran: &[(&str, Ran)]) {
    for (asked, ran) in ran {
        ran.stderr.lines().for_each(|line| expect_whom(asked, line));
    }
    let waited = ran.iter().filter(|(_, ran)| ran.stderr.contains("waiting: the workspace's lock")).count();
    assert!(waited > 0, "nobody waited");
}

/// A line that says that somebody waits says for whom.
fn expect_whom(asked: &str, line: &str) {
    if line.contains("waiting: the workspace's lock") {
        let is_named = line.contains("held by pid ") && line.contains("t2t") && line.contains(", since ");
        assert!(is_named || line.contains("held by another t2t"), "{asked}: {line}");
    }
}

#[test]
fn nine_builds_that_wait_say_for_whom_and_run_nothing() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let first = project.spawn("build");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    let others: Vec<Child> = (0..9).map(|_| project.spawn("build")).collect();
    let looks = ["status", "explain gelu", "cache stats", "cache verify"];
    for asked in looks {
        // Who only looks waits for nobody.
        project.t2t(asked).exits(0).never_says("waiting");
    }
    let holder = format!("held by pid {}, `", first.id());
    let waiting: Vec<_> = others.into_iter().map(until_it_waits).collect();
    project.calm();
    project.wait(first).exits(0);
    for (told, mut child, mut rest) in waiting {
        assert!(told.starts_with("waiting: the workspace's lock, cache/lock, held by "), "{told}");
        assert!(told.contains(&holder) && told.contains("t2t build"), "{told}");
        let mut text = String::new();
        rest.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success(), "{text}");
        assert!(text.contains("fresh 19"), "{text}");
    }
    assert!(runs(&project.log()).values().all(|count| *count == 1), "{:?}", runs(&project.log()));
}

/// Reads what a build says until it says that it waits.
fn until_it_waits(mut child: Child) -> (String, Child, BufReader<ChildStderr>) {
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    (line, child, told)
}
