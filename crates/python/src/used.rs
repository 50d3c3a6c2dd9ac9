//! Whether code uses a name.
//!
//! It does not know what the name stands for.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, parse_unchecked};

use crate::bounds;

/// Tells whether the Python code in `text` has `name` for a variable, an attribute or a module. Comments and strings do not count; what nests too deep to be read counts as using it.
#[must_use]
pub fn uses(text: &str, name: &str) -> bool {
    // A text that does not have it anywhere needs no look.
    if !text.contains(name) {
        return false;
    }
    let depth = bounds::depth(text);
    depth > bounds::DEEPEST
        || bounds::with_stack(depth, || {
            let parsed = parse_unchecked(text, Mode::Module.into());
            parsed.tokens().iter().any(|token| {
                let (kind, place) = token.as_tuple();
                kind == TokenKind::Name && &text[place] == name
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_uses_a_name_and_comments_and_strings_do_not() {
        for code in [
            "from triton.language.extra import libdevice\n",
            "import triton.language.extra.libdevice as lib\n",
            "from triton.language.extra.libdevice import log1p\n",
            "y = tl.extra.cuda.libdevice.log1p(x)\n",
            "if broken(:\n    y = libdevice.exp(x)\n",
        ] {
            assert!(uses(code, "libdevice"), "{code}");
        }
        for code in [
            "x = 1  # not libdevice\n",
            "\"\"\"Without libdevice.\"\"\"\n",
            "x = 'libdevice'\n",
            "libdevices = 1\n",
            "",
        ] {
            assert!(!uses(code, "libdevice"), "{code}");
        }
    }
}
