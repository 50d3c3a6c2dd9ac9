//! The examples of docs/ci, followed locally: their own files are parsed and their steps done one by one, in a fresh clone for each run, with a folder for the service's
//! cache. What the services do themselves (cloning, keeping the cache) is played; every command is the file's.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::environment;
use crate::project::{Project, Ran, program};

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// What runs for one kernel: its own actions, and those that compare and show the variants.
const OF_KERNEL: &str = "softmax:select,log softmax/v2_tiling:compile,check,bench";

fn example(name: &str) -> Value {
    let text = fs::read_to_string(environment::root().join("docs/ci").join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Why a pipeline runs.
#[derive(Clone, Copy, PartialEq)]
enum Trigger {
    Push,
    PullRequest,
    PullRequestOfAFork,
}

/// How a job ended: its exit code, and what ran and was printed in all its steps.
struct Job {
    code: i32,
    ran: Vec<String>,
    out: String,
    /// The folders and files that are kept for people.
    kept: Vec<String>,
}

impl Job {
    fn new() -> Self {
        Self { code: 0, ran: Vec::new(), out: String::new(), kept: Vec::new() }
    }

    fn add(&mut self, ran: Ran) {
        self.out += &format!("{}{}", ran.stdout, ran.stderr);
        self.ran.extend((!ran.actions.is_empty()).then_some(ran.actions));
        if self.code == 0 {
            self.code = ran.code;
        }
    }

    #[track_caller]
    fn ends(self, code: i32, actions: &str) -> Self {
        assert_eq!((self.code, self.ran.join(" | ").as_str()), (code, actions), "{}", self.out);
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no `{text}` in\n{}", self.out);
        self
    }

    /// Fails unless these are kept, and are there in the clone.
    #[track_caller]
    fn keeps(self, service: &Service, paths: &[&str]) -> Self {
        assert_eq!(self.kept, paths);
        for path in paths {
            assert!(service.origin.exists(&format!("../clone/{path}")), "{path}\n{}", self.out);
        }
        self
    }
}

/// A service: the repository, the folder of its cache, and the interpreter of its machines.
struct Service {
    origin: Project,
}

impl Service {
    /// Makes a repository whose results of an H200 are published, and the programs that a machine has.
    fn new() -> Self {
        let origin = Project::new();
        origin.write(".gitignore", "/cache/\n/logs/\n/*.xml\n");
        origin.write("pyproject.toml", "[project]\n");
        let uv = "#!/bin/sh\ncase $1 in\n  sync) ;;\n  run) shift; exec \"$@\" ;;\n  *) exit 9 ;;\nesac\n";
        let programs = origin.path("../programs");
        fs::create_dir(&programs).unwrap();
        program(&programs.join("uv"), uv);
        std::os::unix::fs::symlink(environment::binary(), programs.join("t2t")).unwrap();
        let service = Self { origin };
        service.publish();
        service.git("init -q -b main");
        service.commit("one");
        service
    }

    /// Builds on a machine with an H200, and publishes.
    fn publish(&self) {
        self.origin.write("../driver/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n");
        let device = "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-00000000-aaaa-bbbb-cccc-dddddddddddd\n";
        self.origin.write("../driver/gpus/0000:00:00.0/information", device);
        fs::create_dir_all(self.origin.path("../locks")).unwrap();
        for command in ["build --device cuda", "publish --device cuda"] {
            let mut command = self.origin.command(command);
            command.env("T2T_DRIVER", self.origin.path("../driver")).env("T2T_LOCK_DIR", self.origin.path("../locks"));
            self.origin.run(&mut command).exits(0);
        }
        self.origin.t2t("clean --cache").exits(0);
    }

    fn git(&self, arguments: &str) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments.split(' '));
        let output = command.current_dir(self.origin.path("")).output().unwrap();
        assert!(output.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self, message: &str) {
        self.git("add -A");
        self.git(&format!("commit -qm {message}"));
    }

    /// Returns what the repository says of a commit.
    fn revision(&self, name: &str) -> String {
        let output = Command::new("git").args(["rev-parse", name]).current_dir(self.origin.path("")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn clone_path(&self) -> PathBuf {
        self.origin.path("../clone")
    }

    /// Clones what is checked out, as another machine would: nothing of an earlier run is there.
    fn clone_fresh(&self) {
        let _ = fs::remove_dir_all(self.clone_path());
        let cloned =
            Command::new("git").args(["clone", "-q"]).arg(self.origin.path("")).arg(self.clone_path()).status();
        assert!(cloned.unwrap().success());
    }

    /// Runs a script in the clone as the services do: in a shell that stops at the first failure, with these variables.
    fn script(&self, script: &str, variables: &[(&str, &str)]) -> Ran {
        let plain = self.origin.command("");
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]);
        command.current_dir(self.clone_path()).env_clear();
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap());
        }
        let path = plain.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_str().unwrap();
        command.env("PATH", format!("{}:{path}", self.origin.path("../programs").display()));
        // There is no device, whatever this machine has.
        command.env("T2T_DRIVER", self.origin.path("../no-driver")).envs(variables.iter().copied());
        self.origin.run(&mut command)
    }

    /// Puts what is kept under `key`, or else under the newest key that starts with one of `others`, at `path`.
    fn restore(&self, path: &str, key: &str, others: &[String]) {
        let kept = self.origin.path("../kept");
        fs::create_dir_all(&kept).unwrap();
        let mut names: Vec<String> =
            fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let newest = |start: &String| names.iter().rfind(|name| name.starts_with(start)).cloned();
        let found = names.iter().find(|name| *name == key).cloned().or_else(|| others.iter().find_map(newest));
        let Some(found) = found else { return };
        let folder = self.clone_path().join(path);
        let _ = fs::remove_dir_all(&folder);
        copy(&kept.join(found), &folder);
    }

    fn save(&self, path: &str, key: &str) {
        let place = self.origin.path("../kept").join(key);
        let _ = fs::remove_dir_all(&place);
        let folder = self.clone_path().join(path);
        if folder.is_dir() {
            copy(&folder, &place);
        }
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

// GitHub.

/// Does the steps of a job of the workflow.
fn github(service: &Service, job: &str, trigger: Trigger, run: u32) -> Job {
    let workflow = example("github-actions.yml");
    let mut ended = Job::new();
    let root = service.clone_path().to_str().unwrap().to_owned();
    for step in workflow["jobs"][job]["steps"].as_array().expect("the job has steps") {
        if !is_due(step["if"].as_str(), trigger, ended.code) {
            continue;
        }
        let with = |name: &str| filled(step["with"][name].as_str().unwrap_or_default(), run);
        if let Some(script) = step["run"].as_str() {
            ended.add(service.script(script, &[("GITHUB_ACTIONS", "true"), ("GITHUB_WORKSPACE", &root)]));
            continue;
        }
        match step["uses"].as_str().expect("a step runs or uses").split_once('@').expect("it names a version").0 {
            "actions/checkout" => service.clone_fresh(),
            "astral-sh/setup-uv" => {}
            "actions/cache/restore" => service.restore(&with("path"), &with("key"), &[with("restore-keys")]),
            "actions/cache/save" => service.save(&with("path"), &with("key")),
            "actions/upload-artifact" => ended.kept.extend(with("path").lines().map(str::to_owned)),
            other => panic!("the test does not know `{other}`"),
        }
    }
    ended
}

/// Whether a step is due, by the conditions that the file has.
fn is_due(condition: Option<&str>, trigger: Trigger, code: i32) -> bool {
    let is_pull_request = trigger != Trigger::Push;
    match condition {
        None => code == 0,
        Some("github.event_name == 'pull_request'") => code == 0 && is_pull_request,
        Some("github.event_name == 'push'") => code == 0 && !is_pull_request,
        Some("${{ !cancelled() }}") => true,
        Some(other) => {
            let own = "${{ !cancelled() && (github.event_name == 'push' || github.event.pull_request.head.repo.full_name == github.repository) }}";
            assert_eq!(other, own, "the test does not know the condition");
            trigger != Trigger::PullRequestOfAFork
        }
    }
}

fn filled(text: &str, run: u32) -> String {
    let text = text.replace("${{ runner.os }}", "Linux").replace("${{ github.run_id }}", &format!("{run:04}"));
    let text = text.replace("${{ github.run_attempt }}", "1");
    assert!(!text.contains("${{"), "the test does not know a name in `{text}`");
    text
}

/// Makes an edit and commits it on a branch of its own, as a pull request is: its first parent is what it goes to.
fn pull_request(service: &Service, name: &str, edit: impl Fn(&Project)) {
    service.git("checkout -q main");
    service.git(&format!("checkout -qb {name}"));
    edit(&service.origin);
    service.commit(name);
}

fn edit_kernel(project: &Project) {
    project.edit(KERNEL, "+ 1", "+ 2");
}

fn edit_comment(project: &Project) {
    project.edit(KERNEL, "import triton\n", "# Triton, as everywhere.\nimport triton\n");
}

#[test]
fn the_workflow_for_github_builds_what_is_stale_and_no_more() {
    let service = Service::new();
    let first = github(&service, "build", Trigger::Push, 1);
    assert!(first.code == 0 && first.ran.len() == 1 && first.ran[0].ends_with("summary"), "{}", first.out);
    first.keeps(&service, &["logs/", "junit.xml"]);
    github(&service, "gate", Trigger::Push, 1).ends(0, "").keeps(&service, &["gate.xml"]);

    pull_request(&service, "edit", edit_kernel);
    github(&service, "build", Trigger::PullRequestOfAFork, 2).ends(0, OF_KERNEL);
    let gate = github(&service, "gate", Trigger::PullRequestOfAFork, 2).ends(1, "");
    gate.says("missing   softmax/v2_tiling:check  code of `kernels/softmax/v2_tiling.py` changed");
    // A fork kept nothing; the next run of a branch of the repository finds what it did the time before.
    github(&service, "build", Trigger::PullRequest, 3).ends(0, OF_KERNEL);
    github(&service, "build", Trigger::PullRequest, 4).ends(0, "");

    pull_request(&service, "comment", edit_comment);
    github(&service, "build", Trigger::PullRequest, 5).ends(0, "").says("no op is affected");
    github(&service, "gate", Trigger::PullRequest, 5).ends(0, "");
    github(&service, "build", Trigger::Push, 6).ends(0, "");

    pull_request(&service, "wrong", |project| project.kernel("gelu", "v1_baseline", "REJECT mismatch"));
    let wrong = github(&service, "build", Trigger::PullRequest, 7);
    let wrong =
        wrong.ends(1, "gelu:select,log gelu/v1_baseline:compile,check").keeps(&service, &["logs/", "junit.xml"]);
    wrong.says("::error file=kernels/gelu/v1_baseline.py,line=");
    // The rejection is a result, and was saved.
    github(&service, "build", Trigger::PullRequest, 8).ends(1, "").says("::error file=kernels/gelu/v1_baseline.py");
}

// GitLab.

/// Does a job of the pipeline. `base` is that of a merge request.
fn gitlab(service: &Service, job: &str, branch: &str, base: Option<&str>) -> Job {
    let pipeline = example("gitlab-ci.yml");
    let mut ended = Job::new();
    service.clone_fresh();
    let mut variables: Vec<(&str, &str)> = vec![("CI_COMMIT_REF_SLUG", branch), ("CI_DEFAULT_BRANCH", "main")];
    variables.extend(base.map(|base| ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base)));
    for (name, value) in pipeline["variables"].as_object().unwrap() {
        variables.push((name, value.as_str().unwrap()));
    }
    let named = |text: &str| {
        variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    };
    let caches = pipeline[job]["cache"].as_array().expect("the job says what it caches").clone();
    let key = |cache: &Value| match cache["key"]["files"].as_array() {
        Some(files) => {
            assert!(files.iter().all(|file| service.clone_path().join(file.as_str().unwrap()).exists()));
            format!("{}-files", cache["key"]["prefix"].as_str().unwrap())
        }
        None => named(cache["key"].as_str().unwrap()),
    };
    for cache in &caches {
        let others: Vec<String> = texts(&cache["fallback_keys"]).iter().map(|key| named(key)).collect();
        for path in texts(&cache["paths"]) {
            service.restore(&path, &key(cache), &others);
        }
    }
    let lines = [texts(&pipeline["default"]["before_script"]), texts(&pipeline[job]["script"])].concat();
    ended.add(service.script(&lines.join("\n"), &variables));
    ended.add(service.script(&texts(&pipeline[job]["after_script"]).join("\n"), &variables));
    for cache in caches.iter().filter(|cache| ended.code == 0 || cache["when"] == "always") {
        for path in texts(&cache["paths"]) {
            service.save(&path, &key(cache));
        }
    }
    let artifacts = &pipeline[job]["artifacts"];
    assert_eq!(artifacts["when"], "always");
    ended.kept = texts(&artifacts["paths"]);
    ended.kept.extend(artifacts["reports"]["junit"].as_str().map(str::to_owned));
    ended
}

#[test]
fn the_pipeline_for_gitlab_builds_what_is_stale_and_no_more() {
    let service = Service::new();
    let main = service.revision("main");
    let first = gitlab(&service, "build", "main", None);
    assert!(first.code == 0 && first.ran.len() == 1 && first.ran[0].ends_with("summary"), "{}", first.out);
    first.keeps(&service, &["logs/", "junit.xml"]);
    gitlab(&service, "gate", "main", None).ends(0, "").keeps(&service, &["gate.xml"]);

    pull_request(&service, "edit", edit_kernel);
    gitlab(&service, "build", "edit", Some(&main)).ends(0, OF_KERNEL);
    gitlab(&service, "build", "edit", Some(&main)).ends(0, "");
    gitlab(&service, "gate", "edit", Some(&main)).ends(1, "").says("missing   softmax/v2_tiling:check");

    pull_request(&service, "comment", edit_comment);
    gitlab(&service, "build", "comment", Some(&main)).ends(0, "").says("no op is affected");
    gitlab(&service, "gate", "comment", Some(&main)).ends(0, "");

    pull_request(&service, "wrong", |project| project.kernel("gelu", "v1_baseline", "REJECT mismatch"));
    gitlab(&service, "build", "wrong", Some(&main)).ends(1, "gelu:select,log gelu/v1_baseline:compile,check");
}
