//! docs/tutorial.md, followed to the letter in an empty folder: each of its commands ends as it says, and prints what it says.

use std::fs;
use std::process::Command;

use crate::environment;
use crate::workspace::{Workspace, finished};

const KERNEL: &str = "kernels/my_softmax/v1_rows.py";

/// One block of the page.
#[derive(Debug)]
enum Block {
    /// A command and the lines that it prints.
    Run(String, Vec<String>),
    /// A fenced block.
    Text(String),
}

/// The page, read block by block.
struct Tutorial {
    workspace: Workspace,
    blocks: std::vec::IntoIter<Block>,
}

#[test]
fn the_tutorial_is_true_to_the_letter() {
    let page = fs::read_to_string(environment::root().join("docs/tutorial.md")).unwrap();
    let workspace = Workspace::with_zygote("");
    fs::remove_file(workspace.path("ops.yaml")).unwrap();
    let mut tutorial = Tutorial { workspace, blocks: blocks(&page).into_iter() };

    // 1. From a name to kernels
    tutorial.runs("mkdir demo && cd demo", 0);
    tutorial.runs("t2t add softmax", 0);
    let declared = tutorial.text();
    assert_eq!(declared, without_comments(&tutorial.workspace.read("ops.yaml")));
    tutorial.runs("t2t build", 0);

    // 2. Build again
    tutorial.runs("t2t build", 0);
    let generated = "kernels/softmax/v1_baseline.py";
    let text = tutorial.workspace.read(generated);
    tutorial.workspace.write(generated, format!("{text}# A comment.\n"));
    let kept = tutorial.workspace.kept_by(|| assert_eq!(tutorial.workspace.run(&["build"]).code, Some(0)));
    assert!(!kept.iter().any(|target| target.ends_with(":compile") || target.ends_with(":check")), "{kept:?}");
    tutorial.runs("t2t status", 0);
    fs::remove_file(tutorial.workspace.path(generated)).unwrap();
    assert_eq!(tutorial.workspace.run(&["build"]).code, Some(0));
    assert_eq!(tutorial.workspace.read(generated), text);

    // 3. A kernel of your own
    let appended = tutorial.text();
    tutorial.workspace.write("ops.yaml", tutorial.workspace.read("ops.yaml") + &appended);
    let wrong = tutorial.text();
    tutorial.workspace.write(KERNEL, &wrong);
    tutorial.runs("t2t build my_softmax", 1);
    tutorial.runs("t2t explain out-of-bounds", 0);
    tutorial.runs("t2t repro my_softmax/v1_rows edge/transposed/float32", 1);

    // 4. The repair
    let repair = tutorial.text();
    let first = wrong.find("    x = tl.load").unwrap();
    let end = wrong.find("\n\n\ndef triton_my_softmax").unwrap();
    tutorial.workspace.write(KERNEL, format!("{}{}{}", &wrong[..first], repair.trim_end(), &wrong[end..]));
    tutorial.runs("t2t build my_softmax", 0);
    tutorial.workspace.write(KERNEL, &wrong);
    let ran = tutorial.workspace.run(&["build", "my_softmax"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    // A check that runs has a line of its own.
    assert!(ran.told.contains("(out-of-bounds)") && !ran.told.contains("check my_softmax/v1_rows …"), "{}", ran.told);

    // 5. Look around
    for command in [
        "t2t status",
        "t2t explain softmax/v2_tiling:check",
        "t2t attempts softmax",
        "t2t log softmax",
        "t2t ir softmax/v2_tiling",
        "t2t build --dry-run",
    ] {
        tutorial.runs(command, 0);
    }
    let rest: Vec<Block> = tutorial.blocks.collect();
    assert!(rest.is_empty(), "not followed: {rest:?}");
}

impl Tutorial {
    /// Runs the next command of the page, which must be this one, and holds what it prints against the page.
    fn runs(&mut self, command: &str, code: i32) {
        let Some(Block::Run(stands, lines)) = self.blocks.next() else {
            panic!("the page has no more commands: {command}")
        };
        assert_eq!(stands, command);
        let ran = finished(self.shell(command));
        assert_eq!(ran.code, Some(code), "{command}\n{}{}", ran.out, ran.told);
        let told = plain(&format!("{}\n{}", ran.out, ran.told));
        for line in lines.iter().filter(|line| *line != "…") {
            assert!(told.contains(&plain(line)), "{command}: it does not print\n{line}\nbut\n{}{}", ran.out, ran.told);
        }
    }

    /// Returns the next block of the page, which must be a fenced one.
    fn text(&mut self) -> String {
        match self.blocks.next() {
            Some(Block::Text(text)) => text,
            other => panic!("a text is next: {other:?}"),
        }
    }

    /// Returns a shell that finds `t2t`, in the workspace, on a machine without a GPU.
    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.workspace.root());
        let like = self.workspace.command(&[]);
        shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let search = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{search}", environment::binary().parent().unwrap().display()));
        shell.env("CUDA_VISIBLE_DEVICES", "").env_remove("T2T_HARNESS");
        shell
    }
}

/// Returns the blocks of a page. Indented are commands: after `$`, with what they print, or one on each line, with what it is for behind it.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block::Text(text.join("\n") + "\n"));
        } else if let Some(command) = line.strip_prefix("    $ ") {
            blocks.push(Block::Run(command.to_owned(), Vec::new()));
        } else if let Some(listed) = line.strip_prefix("    t2t ") {
            // What a command is for stands in a column of its own, with one space between where the command is long.
            let (command, _) = listed.split_once("  ").unwrap_or_else(|| listed.split_once(" why ").unwrap());
            blocks.push(Block::Run(format!("t2t {command}"), Vec::new()));
        } else if let (Some(printed), Some(Block::Run(_, printing))) = (line.strip_prefix("    "), blocks.last_mut()) {
            printing.push(printed.to_owned());
        }
    }
    blocks
}

/// Returns a text without what differs from run to run: white space between words, times, numbers of lanes, the width of a terminal.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_time = |at: usize| {
        let number = |word: &str| word.parse::<f64>().is_ok();
        let unit = |word: &str| ["ms", "s", "min"].contains(&word);
        (number(words[at]) && words.get(at + 1).is_some_and(|next| unit(next)))
            || (at > 0 && unit(words[at]) && number(words[at - 1]))
    };
    let kept = (0..words.len()).filter(|&at| !is_time(at) && !words[at].starts_with('×'));
    kept.map(|at| words[at]).collect::<Vec<_>>().join(" ")
}

/// Returns the lines that are no comments.
fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n") + "\n"
}
