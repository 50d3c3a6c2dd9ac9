//! The embedded generator `template`: from the name of a torch operation to kernel files.
//!
//! A catalogue says which family an operation belongs to and what it computes; a family has a template, and two techniques that its four variants combine. All of it lies in
//! assets/generators/ and is embedded; a workspace may override or add files. This crate does not know where files lie, which op was asked for why, or whether a kernel is right.

pub mod files;
pub mod json;
pub mod catalogue;
pub mod wrap;
pub mod render;
pub mod again;
