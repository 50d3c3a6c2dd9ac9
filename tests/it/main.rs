//! All integration tests that run t2t or a Python; `tests/core` has the others. One binary, which links all crates once and is carried to machines with a device; its parts
//! are modules: `cargo test --test it cli::`. A file has its parts in a folder of its name. One that is not declared, here or by the file whose part it is, is not
//! run, which `layers` of `tests/core` checks.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests stand outside the boundary that they test"
)]
#![allow(
    unreachable_pub,
    reason = "what a file of tests offers to the others is marked so; nothing of the binary is reached from outside"
)]

mod environment;
mod soak;
mod profile;
mod project;
mod authored;
mod lite;
mod watching;
#[allow(dead_code, reason = "what reads the notes is in the other target")]
mod whole;
mod remote_servers;
mod worker_setup;
mod zygote;
mod workspace;

/// The binary over small workspaces, with a stand-in for Python.
#[path = "."]
mod cli {
    mod benches;
    mod worn;
    mod edited;
    mod edits;
    mod kernelbench;
    mod flashinfer;
    mod kills;
    pub mod damage;
    mod power;
    mod together;
    mod cleaned;
    mod history;
    mod published;
    mod signed;
    mod stored;
    mod performed;
    mod clusters;
    mod compared;
    mod affected;
    mod imported;
    mod portable;
    mod ci;
    mod commands;
    mod add;
    mod attempts;
    mod authors;
    mod chat;
    pub mod report;
    mod improve;
    mod secrets;
    mod targets;
    mod messages;
    mod foreign;
    mod deep;
    mod limits;
    mod devices;
    mod outputs;
    mod unchanged;
    mod head_start;
    mod remote;
    mod watch;
    mod served;
    mod editors;
    mod clock;
}

/// The fork server and its children, without torch.
#[path = "."]
mod worker {
    mod worker_staying;
    mod worker_client;
    mod worker_hello;
    mod worker_ends;
    mod worker_output;
    mod worker_walls;
    mod worker_calls;
    mod worker_later;
    pub mod worker_leftovers;
    mod worker_reserves;
    mod worker_spare;
    mod bytecode;
    pub mod probes;
}

/// Real kernels, checked with torch on the interpreter.
#[path = "."]
mod real {
    mod repro;
    mod bad_kernels;
    pub mod adoption;
    mod examples;
    mod export;
    mod export_forms;
    mod stages;
    pub mod cuda;
    pub mod extensions;
    mod generated;
    pub mod hostile;
    mod mutants;
    mod level1;
    #[expect(clippy::module_inception, reason = "this repository's own ops are a file of it")]
    mod real;
    mod kernel_names;
    mod called;
    mod adopt;
    mod adopted;
    mod mcp;
    mod skill;
    mod tutorial;
    mod sweep;
    mod improved;
    mod against;
}

mod python_suites;
mod gpu;
