//! All integration tests that run t2t or a Python, one binary; `tests/core` has the others. A file that is not declared here is not run, which `layers` of that checks.
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

mod worn;

mod worker_setup;
mod worker_staying;
mod worker_client;
mod worker_hello;
mod worker_ends;
mod worker_output;
mod worker_walls;
mod worker_calls;
mod worker_later;
mod worker_leftovers;
mod worker_reserves;
mod bytecode;

mod python_suites;

mod project;
mod lite;
mod edited;
mod edits;
mod kills;
mod damage;
mod power;
mod together;
mod cleaned;
mod history;
mod published;
mod signed;
mod stored;
mod compared;
mod affected;
mod portable;
mod ci;
mod commands;
mod secrets;
mod probes;
mod targets;
mod messages;
mod foreign;
mod deep;
mod limits;
mod devices;
mod outputs;
mod unchanged;
mod remote_servers;
mod remote;
mod watching;
mod watch;
mod editors;
mod clock;

mod workspace;
mod repro;
mod bad_kernels;
mod adoption;
mod examples;
mod hostile;
mod mutants;
mod level1;
mod real;
mod kernel_names;
mod called;
mod adopt;
mod imported;
mod adopted;
mod sweep;

mod gpu;
