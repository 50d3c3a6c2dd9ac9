//! `t2t mcp`, used by the protocol's official client (`mcp_client.py`): sessions of agents, names that lead elsewhere, two clients at once, calls that are taken back, clients that vanish.

use std::process::Command;

use crate::environment;
use crate::project::Project;
use crate::workspace::Workspace;

/// Has the client go through a session with the server's `command`, in whose folder it works. Returns what it printed.
#[track_caller]
fn passes(session: &str, command: &Command) -> String {
    let folder = command.get_current_dir().unwrap();
    let mut client = Command::new(environment::python());
    client.arg(environment::root().join("tests/it/mcp_client.py")).arg(session).arg(command.get_program()).arg(folder);
    client.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("PYTHONDONTWRITEBYTECODE", "1");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => client.env(name, value),
            None => client.env_remove(name),
        };
    }
    let output = client.output().unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{errors}\n`uv sync --group dev` brings what the client needs");
    told.into_owned()
}

#[test]
fn an_agent_declares_an_op_and_comes_to_a_kernel_that_passes() {
    let workspace = Workspace::with_zygote("");
    std::fs::remove_file(workspace.path("ops.yaml")).unwrap();
    passes("author", &workspace.command(&[]));
}

#[test]
fn no_name_leads_out_of_the_workspace_and_a_persons_file_is_kept() {
    passes("names", &Project::new().command(""));
}

#[test]
fn two_clients_at_once_get_each_its_own_verdict() {
    passes("together", &Project::new().command(""));
}

#[test]
fn a_call_that_is_taken_back_ends_its_build() {
    passes("cancelled", &Project::new().command(""));
}

#[test]
fn a_client_that_vanishes_leaves_nothing_running() {
    passes("gone", &Project::new().command(""));
}

#[test]
fn without_a_client_it_ends_and_without_a_folder_it_does_not_begin() {
    let project = Project::new();
    let ran = project.t2t("mcp").exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    project.t2t("mcp --workspace nowhere").exits(2).says("is no folder");
}

#[test]
fn the_docs_list_the_tools_of_the_server() {
    let told = passes("tools", &Project::new().command(""));
    let page = std::fs::read_to_string(environment::root().join("docs/reference/agents.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")).map(|row| {
        let cells: Vec<&str> = row.split(" | ").collect();
        let mut takes: Vec<&str> = cells[1].split(", ").map(|name| name.trim_matches('`')).collect();
        takes.sort_by_key(|name| name.trim_end_matches('?'));
        let does = if cells[2] == "nothing" { "reads" } else { "writes" };
        format!("{} {} {does}", cells[0].trim_end_matches('`'), takes.join(",").trim_matches('–'))
    });
    assert_eq!(rows.collect::<Vec<_>>(), told.lines().collect::<Vec<_>>());
}
