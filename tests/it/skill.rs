//! The skill for agents: where it is written, what it does not overwrite, and that its steps are true when they are followed to the letter.

use std::fs;
use std::process::Command;

use crate::environment;
use crate::project::Project;
use crate::workspace::Workspace;

const FOLDER: &str = ".agents/skills/t2t";

#[test]
fn it_is_written_into_the_workspace_or_where_it_is_told() {
    let project = Project::new();
    let ran = project.t2t("skill install").exits(0);
    assert_eq!(ran.stderr, "wrote the skill t2t: 4 files in .agents/skills/t2t\n");
    let text = project.read(&format!("{FOLDER}/SKILL.md"));
    assert!(text.starts_with("---\nname: t2t\ndescription: "), "{text}");
    project.t2t("skill install --dir ../elsewhere/t2t").exits(0);
    assert_eq!(project.read("../elsewhere/t2t/SKILL.md"), text);
    // Each page that it refers to is there.
    for page in text.split("](references/").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(project.exists(&format!("{FOLDER}/references/{page}")), "{page}");
    }
}

#[test]
fn a_changed_file_is_overwritten_only_when_asked_and_one_of_an_earlier_t2t_always() {
    let project = Project::new();
    project.t2t("skill install").exits(0).says("wrote");
    project.t2t("skill install").exits(0).says("wrote");
    let page = format!("{FOLDER}/references/mcp.md");
    let text = project.read(&page);
    project.write(&page, "ours\n");
    project.t2t("skill install").exits(2).says(&format!("`{page}` was changed since t2t wrote it")).says("--overwrite");
    assert_eq!(project.read(&page), "ours\n");
    project.t2t("skill install --overwrite").exits(0).says("wrote");
    assert_eq!(project.read(&page), text);
    // As another version of t2t left it.
    project.write(&page, "of an earlier one\n");
    let digest = t2t_model::digest::Digest::of(b"of an earlier one\n");
    project.write(&format!("{FOLDER}/.installed"), format!("{digest} references/mcp.md\n"));
    project.t2t("skill install").exits(0).says("wrote");
    assert_eq!(project.read(&page), text);
}

/// Returns the commands of a page: the lines of its blocks of shell, a here-document with its command.
fn commands(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut document: Option<String> = None;
    for block in page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for line in block.lines() {
            if let Some(end) = document.take() {
                commands.last_mut().unwrap().push_str(&format!("\n{line}"));
                document = Some(end).filter(|end| line != end);
            } else {
                commands.push(line.to_owned());
                document = line.split_once("<<'").map(|(_, end)| end.trim_end_matches('\'').to_owned());
            }
        }
    }
    commands
}

#[test]
fn its_steps_are_true_to_the_letter() {
    let workspace = Workspace::with_zygote("");
    fs::remove_file(workspace.path("ops.yaml")).unwrap();
    let page = fs::read_to_string(environment::root().join("assets/skill/SKILL.md")).unwrap();
    let commands = commands(&page);
    assert!(commands.len() > 12, "{commands:?}");
    let like = workspace.command(&[]);
    for command in &commands {
        let code = command.split("# exit ").nth(1).map_or(0, |code| code.trim().parse().unwrap());
        let mut shell = Command::new("sh");
        let search = std::env::var("PATH").unwrap_or_default();
        shell.args(["-c", command]).current_dir(workspace.root());
        shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("PATH", format!("{}:{search}", environment::binary().parent().unwrap().display()));
        // The steps are for any machine, and what they say is of the interpreter.
        shell.env("CUDA_VISIBLE_DEVICES", "").env_remove("T2T_HARNESS").env_remove("PYTHONPATH");
        let output = shell.output().unwrap();
        let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{command}\n{told}\n{errors}");
        if code == 1 {
            assert!(errors.contains("mismatch"), "{command}\n{told}\n{errors}");
        }
    }
    let status = workspace.run(&["status"]);
    assert!(status.out.contains(" 0 stale"), "{}{}", status.out, status.told);
}
