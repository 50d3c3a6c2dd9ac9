//! The tests of what needs no Python, network or device: the pure crates, the rules of the layers, the docs. One binary, done in seconds.
//! A file has its parts in a folder of its name. One that is not declared, here or by the file whose part it is, is not run, which `layers` checks.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "tests stand outside the boundary that they test"
)]
#![allow(
    unreachable_pub,
    reason = "what a file of tests offers to the others is marked so; nothing of the binary is reached from outside"
)]

#[path = "../it/soak.rs"]
mod soak;
#[path = "../it/whole.rs"]
#[expect(dead_code, reason = "what runs a corpus is in the other target")]
mod whole;
mod corpora;
mod draws;
mod inventory;

mod layers;
mod circles;
mod docs;
mod site;
mod calibration;
mod functions;
mod generators;

mod world;
mod core_rules;
mod cuda;
mod core_fuzz;

mod attempts;
mod recalled;
mod spec_docs;
mod spec_errors;
mod spec_fuzz;
mod fuzz;
mod spec_meaning;
