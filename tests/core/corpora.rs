//! The corpora of kernels of which a run of the tests judges a part alone: each passed whole as it is now.

use std::path::Path;

use crate::whole::{ALL, noted};

#[test]
fn each_corpus_passed_whole_since_it_or_what_judges_it_was_changed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let noted = noted(root);
    let is_current = |name: &str, digest: String| noted.get(name) == Some(&digest);
    let stale: Vec<&str> =
        ALL.iter().filter(|one| !is_current(one.name, one.digest(root).to_string())).map(|one| one.name).collect();
    assert!(
        stale.is_empty(),
        "judge all of {}, which takes minutes: `cargo test --test it whole_ -- --ignored`",
        stale.join(", ")
    );
    assert!(noted.keys().all(|name| ALL.iter().any(|one| one.name == name)), "{noted:?}");
}
