//! The files of the embedded generator, held against the folder that they lie in and the page that describes them.

use std::collections::BTreeSet;
use std::fs;

use t2t_generate::catalogue::Catalogue;
use t2t_generate::files::{EMBEDDED, Files};

fn root(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let names = fs::read_dir(root("assets/generators")).unwrap();
    let names: BTreeSet<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn the_page_has_the_table_of_ops() {
    let table = Catalogue::read(&Files::default()).unwrap().table();
    let page = fs::read_to_string(root("docs/reference/generators.md")).unwrap();
    let (_, part) = page.split_once("<!-- Generated: held by tests/core/generators.rs. -->\n").unwrap();
    assert_eq!(part.trim(), table.trim(), "`cargo run -p t2t-generate --example render -- --table` prints the table");
}

#[test]
fn every_entry_is_one_that_ops_yaml_takes() {
    let catalogue = Catalogue::read(&Files::default()).unwrap();
    let mut text = "version: 1\nops:\n".to_owned();
    for op in catalogue.ops() {
        text += &format!("  {}:\n", op.name);
        for (key, value) in op.entry() {
            text += &format!("    {key}: {value}\n");
        }
    }
    let spec = t2t_spec::Spec::parse("ops.yaml", text.as_bytes(), None).unwrap();
    assert_eq!(spec.ops.len(), catalogue.ops().count());
}
