//! Tells the binary how it was built. It does not know what is in it.

use std::env;

fn main() {
    println!("cargo::rustc-env=T2T_PROFILE={}", env::var("PROFILE").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build.rs");
}
