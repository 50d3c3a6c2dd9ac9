//! The page of `t2t report` of this repository's own ops, as they were published, and what is wrong with any page.
//!
//! It runs no kernel: results that stand are committed.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::cli::attempts::{THIRD, project};
use crate::environment;
use crate::workspace::Workspace;

/// Says of a page on its standard input, by Python's own parser, what is wrong with it: tags that are open or closed twice, ids that are there twice, links to nowhere, scripts and
/// styles that the policy refuses, and whatever would load something.
const CHECK: &str = r##"
import base64, hashlib, html.parser, re, sys

# What may be left open, and which tags end it.
OMITTED = {
    "td": {"td", "th", "tr", "tbody", "thead"}, "th": {"td", "th", "tr", "tbody", "thead"}, "tr": {"tr", "tbody", "thead"},
    "thead": {"tbody"}, "tbody": {"tbody"}, "li": {"li"},
}
ENDS = {"td": {"table"}, "th": {"table"}, "tr": {"table"}, "thead": {"table"}, "tbody": {"table"}, "li": {"ul", "ol"}}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.wrong, self.policy, self.held = [], [], [], [], "", {}

    def end_omitted(self, tag, omitted):
        while self.open and tag in omitted.get(self.open[-1], ()):
            self.open.pop()

    def handle_starttag(self, tag, attributes):
        self.end_omitted(tag, OMITTED)
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
        self.end_omitted(tag, ENDS)
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

/// Expects nothing wrong with a page, and returns it.
pub fn whole(file: &Path) -> String {
    let page = File::open(file).unwrap();
    let said = Command::new(environment::python()).args(["-c", CHECK]).stdin(page).output().unwrap();
    let wrong = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    assert_eq!(wrong, "");
    std::fs::read_to_string(file).unwrap()
}

/// This repository's ops, kernels and published results.
fn published() -> Workspace {
    let root = environment::root();
    let workspace = Workspace::new(&std::fs::read_to_string(root.join("ops.yaml")).unwrap());
    for folder in ["kernels", "assets"] {
        crate::project::copy_folder(&root.join(folder), &workspace.path(folder));
    }
    workspace
}

#[test]
fn a_hundred_ops_like_those_of_this_repository_are_a_page_below_two_megabytes() {
    let workspace = published();
    let page = || {
        let ran = workspace.run(&["report", "--as-device", "nvidia-h200"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        whole(&workspace.path("logs/report.html"))
    };
    let text = page();
    let ops = text.matches("<section class=op ").count();
    assert_eq!(text.matches("aria-label=\"Roofline of ").count(), ops, "each was measured");
    assert!(ops >= 6 && text.len() * 100 / ops < 2_000_000, "{} bytes of {ops} ops", text.len());
    assert!(page() == text, "equal results give equal bytes");
}

#[test]
fn the_page_for_a_browser_has_what_each_attempt_changed() {
    let project = project(THIRD);
    project.build().exits(0);
    project.t2t("report").exits(0);
    let page = whole(&project.path("logs/report.html"));
    let changes: Vec<&str> = page.split("<summary>What it changed</summary>\n<pre>").skip(1).collect();
    assert_eq!(changes.len(), 2, "the first changed nothing: {page}");
    for (number, change) in (2..).zip(changes) {
        let change = change.split("</pre>").next().unwrap().replace("&#x2f;", "/").replace("&quot;", "\"");
        let shown = project.run_raw(&format!("attempts softmax/v1_baseline#{number} --diff"));
        assert_eq!(change, shown);
        assert!(change.contains(&format!("+++ softmax/v1_baseline#{number}\n")), "{change}");
    }
}
