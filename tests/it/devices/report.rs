//! `t2t report`: the page of a workspace with a kernel of each kind, as HTML that is whole and in which nothing foreign is markup.
//!
//! It does not know how figures are measured, nor how the page looks.

use std::process::Command;

use serde_json::json;

use super::{build, machine, on};
use crate::cli::report::whole;
use crate::project::Project;

/// Writes the page, and expects nothing wrong with it.
fn page(project: &Project, command: &mut Command) -> String {
    let ran = project.run(command).exits(0).runs("");
    assert!(ran.stdout.starts_with("[ROOT]/logs/report.html: "), "{}", ran.stdout);
    checked(project)
}

fn checked(project: &Project) -> String {
    whole(&project.path("logs/report.html"))
}

/// Returns the part of a page that is about an op.
fn section<'a>(page: &'a str, op: &str) -> &'a str {
    let begin = page.find(&format!("<section class=op id=\"{op}\"")).unwrap_or_else(|| panic!("no {op}: {page}"));
    &page[begin..begin + page[begin..].find("</section>").unwrap()]
}

#[test]
fn the_page_of_a_machine_with_a_device_has_each_verdict_its_figures_and_its_failures() {
    let project = machine(1);
    project.kernel("softmax", "v2_tiling", "VARIES <b>runs vary</b>");
    project.kernel("gelu", "v2_tiling", "REJECT mismatch");
    project.kernel("relu", "v1_baseline", "RAISE </script><script>alert(1)</script>");
    project.kernel("relu", "v2_tiling", "COMPILE-ERROR");
    project.run(&mut on(&project, &project, "build")).exits(1);
    let text = page(&project, &mut on(&project, &project, "report"));
    assert!(text.contains("Results of this machine: nvidia-h200."), "{text}");
    let softmax = section(&text, "softmax");
    for told in [
        "Chosen: <strong>v",
        "<svg role=img aria-label=\"Speedups of softmax",
        "&lt;b&gt;runs vary&lt;&#x2f;b&gt;",
        "class=\"s4 h1\"",
        "There is no roofline: the analysis counted nothing of what was measured.",
    ] {
        assert!(softmax.contains(told), "{told}: {softmax}");
    }
    let gelu = section(&text, "gelu");
    for told in [
        "<tr id=\"gelu/v2_tiling\">",
        "✗ rejected (mismatch)",
        "kernels&#x2f;gelu&#x2f;v2_tiling.py:4:1",
        "t2t repro gelu&#x2f;v2_tiling small&#x2f;float32&#x2f;0",
    ] {
        assert!(gelu.contains(told), "{told}: {gelu}");
    }
    let relu = section(&text, "relu");
    assert!(
        relu.contains("– skipped")
            && relu.contains("<code>relu&#x2f;v2_tiling:compile</code> was rejected (compile-error)")
            && relu.contains("t2t build relu&#x2f;v2_tiling:compile --force"),
        "{relu}"
    );
    assert!(relu.contains("No kernel is chosen.") && !relu.contains("<svg"), "{relu}");
    assert!(relu.contains("&lt;script&gt;alert(1)&lt;&#x2f;script&gt;"), "{relu}");
    // Nothing but what stands is in it.
    assert_eq!(page(&project, &mut on(&project, &project, "report")), text);
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    let text = page(&project, &mut on(&project, &project, "report"));
    assert!(section(&text, "softmax").contains("… stale"), "{text}");
    assert!(section(&text, "softmax").contains("Chosen: <strong>v1_baseline"), "what stands is chosen from: {text}");
}

#[test]
fn a_machine_without_a_device_shows_what_is_published_with_its_device_and_commit() {
    let project = machine(1);
    build(&project, "");
    project.run(&mut on(&project, &project, "publish")).exits(0);
    project.t2t("clean --cache --yes").exits(0);
    // Before anything is built here, what is published of these kernels stands.
    let text = page(&project, &mut project.command("report"));
    let softmax = section(&text, "softmax");
    for told in [
        "Figures were measured on NVIDIA H200 (published)",
        "… stale",
        "<svg role=img ",
        "stale: never ran",
        " Why: <code>v",
    ] {
        assert!(softmax.contains(told), "{told}: {softmax}");
    }
    project.t2t("build --device cpu").exits(0);
    let text = page(&project, &mut project.command("report"));
    let softmax = section(&text, "softmax");
    assert!(softmax.contains("✓ passed") && !softmax.contains("stale"), "{softmax}");
    assert!(softmax.contains("Run by run"), "{softmax}");
    project.edit("kernels/gelu/v1_baseline.py", "+ 1", "+ 2");
    let text = page(&project, &mut project.command("report"));
    assert!(section(&text, "gelu").contains("v1_baseline has no published figures: edited since."), "{text}");
    let there = page(&project, &mut project.command("report --as-device nvidia-h200"));
    assert!(there.contains("Results of NVIDIA H200."), "{there}");
}

fn commit(project: &Project) -> String {
    let git = |arguments: &[&str]| {
        let own = ["-c", "user.name=t2t", "-c", "user.email=t2t@example.org", "-c", "commit.gpgsign=false"];
        let run = Command::new("git").args(own).args(arguments).current_dir(project.path("")).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()[..].trim().to_owned()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "results"]);
    git(&["rev-parse", "HEAD"])[..8].to_owned()
}

/// Returns the rows of an op's history, without tags.
fn history(page: &str, op: &str) -> Vec<String> {
    let section = section(page, op);
    let Some(begin) = section.find("<caption>The chosen kernel at each revision") else { return Vec::new() };
    let table = &section[begin..begin + section[begin..].find("</table>").unwrap()];
    let untagged = |row: &str| row.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    table.split("<tr>").skip(2).map(untagged).collect()
}

#[test]
fn the_history_has_what_commits_published_and_what_was_built_since_with_regressions_marked() {
    let project = machine(1);
    project.write(".gitignore", "/cache/\n/logs/\n");
    project.kernel("softmax", "v2_tiling", "TAKES 0.5");
    let built = |takes: &str| {
        project.kernel("softmax", "v1_baseline", takes);
        build(&project, "");
    };
    built("TAKES 0.01");
    let report = || page(&project, &mut on(&project, &project, "report"));
    assert_eq!(history(&report(), "softmax"), [] as [String; 0], "one revision is no history");
    project.run(&mut on(&project, &project, "publish")).exits(0);
    let first = commit(&project);
    built("TAKES 0.02");
    project.run(&mut on(&project, &project, "publish")).exits(0);
    let second = commit(&project);
    built("TAKES 0.005");
    let text = report();
    let rows = history(&text, "softmax");
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[0].starts_with(&first) && rows[0].contains("v1_baseline") && !rows[0].contains("slower"), "{rows:?}");
    assert!(
        rows[1].starts_with(&second) && rows[1].contains("0.50x") && rows[1].contains("slower; ▲ regression: "),
        "{rows:?}"
    );
    assert!(rows[2].contains("4.00x") && rows[2].contains("faster") && !rows[2].contains("regression"), "{rows:?}");
    assert_eq!(section(&text, "softmax").matches("▲ slower").count(), 1, "{text}");
    assert_eq!(report(), text, "equal results give equal bytes");
    // The others did not change.
    assert_eq!(history(&text, "gelu"), [] as [String; 0], "{text}");
    let one = page(&project, &mut on(&project, &project, "report --history 1"));
    assert!(history(&one, "softmax").len() == 2 && history(&one, "softmax")[0].starts_with(&second), "{one}");
    let none = page(&project, &mut on(&project, &project, "report --history 0"));
    assert!(!none.contains("History"), "{none}");
    // Where there is no device, its published results have a history, too.
    let there = page(&project, &mut project.command("report --as-device nvidia-h200"));
    assert!(history(&there, "softmax").len() == 2, "{there}");
}

#[test]
fn the_timeline_of_a_trace_is_shown_and_what_is_none_is_refused() {
    let project = machine(1);
    build(&project, "--trace trace.json");
    let text = page(&project, &mut on(&project, &project, "report --trace trace.json"));
    for told in
        ["<h2 id=\"page.timeline\">A build, by lane</h2>", "<tr><th>cuda:0<td>", "Timeline of the build by lane"]
    {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(text.contains("<tr><th>softmax&#x2f;v2_tiling:check<td class=w>"), "{text}");
    assert_eq!(page(&project, &mut on(&project, &project, "report --trace trace.json")), text);
    for file in ["ops.yaml", "none.json"] {
        let ran = project.t2t(&format!("report --trace {file} --out none.html")).exits(2);
        assert!(ran.stderr.starts_with(&format!("error: cannot show the trace `{file}`: ")), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: name a file that `t2t build --trace FILE` wrote"), "{}", ran.stderr);
    }
    assert!(!project.exists("none.html"));
}

/// The document of a sweep of `op`, as `t2t bench OP --sweep` writes it.
fn sweep(op: &str) -> String {
    let time = |ms: f64| json!({"median": ms, "p20": ms, "p80": ms});
    let point = |length: u64, rate: f64| {
        json!({"binding": {"M": length, "N": length}, "dtype": "float32", "bytes": 1, "flop": 0,
            "rate": {"torch": rate, "<b>": null}, "ms": {"torch": time(0.5), "<b>": null}})
    };
    let points = [point(256, 100.0), point(512, 300.0)];
    let told = json!({"op": op, "clock": "cuda-events", "protocol": {}, "model": "nvidia-h200", "unit": "GB/s",
        "subjects": ["torch", "<b>"], "points": points, "reasons": {"<b>": "it <raised>"}, "telemetry": null});
    told.to_string()
}

#[test]
fn sweeps_are_shown_with_their_op_and_what_is_none_is_refused() {
    let project = machine(1);
    project.write("logs/sweep/softmax.json", sweep("softmax"));
    project.write("logs/sweep/softmax.csv", "M,N\n");
    project.write("other.json", sweep("gelu"));
    let text = page(&project, &mut project.command("report --sweep logs/sweep --sweep other.json"));
    for op in ["softmax", "gelu"] {
        let section = section(&text, op);
        for told in [
            &format!("aria-label=\"GB&#x2f;s of {op} by size\""),
            "<tr><th>512×512 <i>float32</i><td>300<td>0.5000<td>–<td>–",
            "&lt;b&gt; has no figure: it &lt;raised&gt;.",
        ] {
            assert!(section.contains(told), "{told}: {section}");
        }
    }
    assert!(!section(&text, "relu").contains("Sweep"), "{text}");
    for (file, content, why) in [
        ("none.json", None, ""),
        ("ops.yaml", None, "no JSON: "),
        ("a.json", Some("{}".to_owned()), "it is no sweep"),
        ("b.json", Some(sweep("gelo")), "ops.yaml declares no op `gelo`"),
        ("kernels", None, "the folder has no `.json`"),
    ] {
        if let Some(content) = content {
            project.write(file, content);
        }
        let ran = project.t2t(&format!("report --sweep {file} --out none.html")).exits(2);
        assert!(ran.stderr.starts_with(&format!("error: cannot show the sweep `{file}`: {why}")), "{}", ran.stderr);
    }
    assert!(!project.exists("none.html"));
}

#[test]
fn the_page_is_of_the_named_ops_and_bad_use_leaves_nothing() {
    let project = Project::built();
    project.t2t("report gelu").exits(0);
    let text = checked(&project);
    assert!(text.contains("id=\"gelu\"") && !text.contains("id=\"softmax\""), "{text}");
    assert!(text.contains("Its times compare nothing, so there are no speedups."), "{text}");
    project.t2t("report --out page.html").exits(0);
    assert!(project.read("page.html").contains("id=\"softmax\""));
    let ran = project.t2t("report gelo --out none.html").exits(2);
    assert_eq!(ran.stderr, "error: ops.yaml declares no op `gelo`\nhint: did you mean `gelu`?\n");
    project.t2t("report --out kernels").exits(2).says("cannot write `[ROOT]/kernels`: it is no file");
    assert!(!project.exists("none.html"));
}
