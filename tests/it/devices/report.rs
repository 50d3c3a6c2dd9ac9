//! `t2t report`: the page of a workspace with a kernel of each kind, as HTML that is whole and in which nothing foreign is markup.
//!
//! It does not know how figures are measured, nor how the page looks.

use std::fs;
use std::process::Command;

use super::{build, machine, on};
use crate::environment;
use crate::project::Project;

/// Says of a page on its standard input, by Python's own parser, what is wrong with it: tags that are open or closed twice, ids that are there twice, links to nowhere, scripts and
/// styles that the policy refuses, and whatever would load something.
const CHECK: &str = r##"
import base64, hashlib, html.parser, re, sys

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.wrong, self.policy, self.held = [], [], [], [], "", {}

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        told = dict(attributes)
        if len(told) != len(attributes):
            self.wrong.append(f"{tag} has an attribute twice")
        if "id" in told:
            self.ids.append(told["id"])
        if "href" in told:
            self.links.append(told["href"])
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = told["content"]
        self.wrong += [f"{tag} {name}" for name in told if name.startswith("on") or name in ("src", "style")]
        if tag in ("img", "iframe", "object", "embed", "link", "base", "form"):
            self.wrong.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.held.setdefault(self.open[-1], []).append(data)


page = Page()
page.feed(sys.stdin.read())
page.close()
page.wrong += [f"<{tag}> is left open" for tag in page.open]
page.wrong += [f"id {name} twice" for name in set(page.ids) if page.ids.count(name) > 1]
page.wrong += [f"no {link}" for link in page.links if not link.startswith("#") or link[1:] not in page.ids]
for tag in ("script", "style"):
    held = page.held.get(tag, [])
    if len(held) != 1:
        page.wrong.append(f"{len(held)} of {tag}")
    digest = base64.b64encode(hashlib.sha256("".join(held).encode()).digest()).decode()
    if f"{tag}-src 'sha256-{digest}'" not in page.policy:
        page.wrong.append(f"the policy lacks sha256-{digest} for {tag}: write it into crates/report/src/page.rs")
if "default-src 'none'" not in page.policy or "unsafe" in page.policy:
    page.wrong.append(page.policy)
print("\n".join(page.wrong), end="")
"##;

/// Writes the page, and expects nothing wrong with it.
fn page(project: &Project, command: &mut Command) -> String {
    let ran = project.run(command).exits(0).runs("");
    assert!(ran.stdout.starts_with("[ROOT]/logs/report.html: "), "{}", ran.stdout);
    checked(project)
}

fn checked(project: &Project) -> String {
    let file = fs::File::open(project.path("logs/report.html")).unwrap();
    let python = environment::python();
    let said = Command::new(python).args(["-c", CHECK]).stdin(file).output().unwrap();
    let wrong = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    assert_eq!(wrong, "");
    project.read("logs/report.html")
}

/// Returns the part of a page that is about an op.
fn section<'a>(page: &'a str, op: &str) -> &'a str {
    let begin = page.find(&format!("<section class=\"op\" id=\"{op}\"")).unwrap_or_else(|| panic!("no {op}: {page}"));
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
        "<svg role=\"img\" aria-label=\"Speedups of softmax",
        "&lt;b&gt;runs vary&lt;&#x2f;b&gt;",
        "class=\"h c1\"",
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
        "<svg role=\"img\"",
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
