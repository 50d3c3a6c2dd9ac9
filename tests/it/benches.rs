//! Benches that need no device run to their end: nobody runs them for weeks, while what they stand on changes.

use std::process::Command;

use crate::environment;

#[test]
fn many_ops_are_measured_with_the_stand_in() {
    let mut bench = Command::new(environment::python());
    bench.arg(environment::root().join("benches/scale.py")).arg("--t2t").arg(environment::binary());
    let ran = bench.args(["--ops", "1", "--runs", "1", "--edits", "1"]).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}{}", String::from_utf8_lossy(&ran.stderr));
    let row = told.lines().find(|line| line.starts_with("ops 1 ")).unwrap_or_else(|| panic!("{told}"));
    for figure in
        ["t2t no-op (ms) ", "interpreter start (ms) ", "t2t edit (ms) ", "t2t edit (MB) ", "t2t watch save (ms) "]
    {
        let value = row.split(figure).nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{row}"));
        assert!(value.parse::<f64>().unwrap() > 0.0, "{row}");
    }
}
