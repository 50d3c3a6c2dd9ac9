//! The schema of the boundary and the Python types of the harness are those of the types. `T2T_WRITE_SCHEMA=1 cargo test -p t2t-protocol` writes both anew.
#![expect(clippy::disallowed_methods, reason = "it reads and writes two files of the repository")]

use std::path::Path;
use std::{env, fs};

use t2t_protocol::schema;

fn holds(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if env::var_os("T2T_WRITE_SCHEMA").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == text,
        "`{file}` is not what the types say: T2T_WRITE_SCHEMA=1 cargo test -p t2t-protocol"
    );
}

#[test]
fn the_schema_is_that_of_the_types() {
    holds("docs/design/harness.schema.json", &schema::schema_text());
}

#[test]
fn the_python_types_are_those_of_the_schema() {
    holds("python/t2t_harness/boundary/documents.py", &schema::python_text());
}
