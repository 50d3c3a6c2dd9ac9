//! Kernel files that cannot be used: each is its variant's rejection.
//!
//! It does not know kernels that run and are wrong.

use super::{GELU, SOFTMAX};
use crate::project::{Project, file};

/// Builds with this text for a kernel, and again: both say so, reject the variant as `source` and build the others.
fn unusable(text: Option<&[u8]>, message: &str) {
    let project = Project::new();
    let path = file("softmax", "v2_tiling");
    match text {
        Some(text) => project.write(&path, text),
        None => project.remove(&path),
    }
    let others = SOFTMAX.replace(" softmax/v2_tiling:compile,check,bench", "");
    let ran = project.build().exits(1).runs(&format!("{GELU} {others} summary")).says(message);
    let ran =
        ran.says("check softmax/v2_tiling … rejected (source)").says("compile softmax/v2_tiling … rejected (source)");
    assert_eq!(ran.stderr.matches(message).count(), 1, "told once:\n{}", ran.stderr);
    project.build().exits(1).runs("").says(message);
    project.kernel("softmax", "v2_tiling", "");
    project.build().exits(0).runs("softmax:select,log softmax/v2_tiling:compile,check,bench summary");
}

#[test]
fn a_kernel_file_that_is_missing_rejects_its_variant() {
    let message = "error: kernels/softmax/v2_tiling.py: no such file\nhint: write the file, or take the variant out of ops.yaml\n";
    unusable(None, message);
}

#[test]
fn a_kernel_file_without_its_entry_rejects_its_variant_and_lists_what_it_has() {
    let message = "\
error: kernels/softmax/v2_tiling.py: no callable `triton_softmax`; the file has `softmax_kernel`, `launch`
hint: name the wrapper with `entry:` in ops.yaml
";
    unusable(Some(b"def softmax_kernel():\n    pass\n\n\ndef launch():\n    pass\n"), message);
}

#[test]
fn a_kernel_file_with_nothing_in_it_says_so() {
    unusable(
        Some(b""),
        "error: kernels/softmax/v2_tiling.py: no callable `triton_softmax`; the file has none at all\n",
    );
}

#[test]
fn a_kernel_file_that_does_not_parse_rejects_its_variant_at_its_place() {
    let message = "\
error: kernels/softmax/v2_tiling.py:2:12: expected an expression
  |
2 |     y = x +
  |            ^
";
    unusable(Some(b"def triton_softmax(x):\n    y = x +\n"), message);
}

#[test]
fn a_kernel_file_that_is_not_utf8_rejects_its_variant_at_its_place() {
    let message = "\
error: kernels/softmax/v2_tiling.py:2:6: not UTF-8: byte 0xff at offset 11
  |
2 | y = '\u{fffd}'
  |      ^
";
    unusable(Some(b"x = 1\ny = '\xff'\n"), message);
}
