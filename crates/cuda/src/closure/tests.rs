//! What has a meaning in a CUDA C++ file, and what has none.

use std::collections::BTreeMap;

use proptest::prelude::*;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;

use super::closure;
use crate::lexer::tokens;
use crate::read;

const KERNEL: &str = r#"#include <cuda_fp16.h>
#include "common.cuh"
#define SCALE(x) ((x) * 2.0f) // doubled
extern "C" __global__ void scale(float* x, int n) {
  /* one element a thread */
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = SCALE(x[i]);
}
"#;

fn meaning(text: &str) -> Digest {
    read(text.as_bytes()).meaning
}

fn texts(text: &str) -> Vec<String> {
    tokens(text.as_bytes()).iter().map(|token| String::from_utf8_lossy(&token.text).into_owned()).collect()
}

#[test]
fn comments_and_whitespace_between_tokens_have_no_meaning() {
    let other = "\n\n// a file\n#  include   <cuda_fp16.h>\n#include \"common.cuh\" /* ours */\n#define SCALE(x) ((x) * 2.0f)\n\
                 extern \"C\"\n__global__ void\nscale( float *x,int n ){int i=blockIdx.x*blockDim.x+threadIdx.x;\n\
                 if(i<n)\n  x[i] = SCALE( x[i] ) ; // done\n}\r\n";
    assert_eq!(meaning(KERNEL), meaning(other));
}

#[test]
fn every_token_has_a_meaning() {
    let edits = [
        ("2.0f", "2.00f"),
        ("i < n", "i <= n"),
        ("float* x", "float* y"),
        ("\"C\"", "\"C \""),
        ("common.cuh", "common.h"),
        ("cuda_fp16.h", "cuda_bf16.h"),
        ("#define SCALE(x) (", "#define SCALE(x)("),
        ("x[i] = ", "x[i] += "),
        ("\nextern", " extern"),
    ];
    for (old, new) in edits {
        assert_ne!(meaning(KERNEL), meaning(&KERNEL.replacen(old, new, 1)), "{old:?} and {new:?}");
    }
}

#[test]
fn whitespace_that_parts_tokens_is_told_from_none() {
    let differ = [
        ("a + +b", "a ++b"),
        ("int x", "intx"),
        ("#define F(x) x", "#define F (x) x"),
        ("x->y", "x - >y"),
        ("1 .5", "1.5"),
        ("L \"x\"", "L\"x\""),
        ("\"x\" _s", "\"x\"_s"),
        ("<: :x", "<::x"),
        ("#define A\nB", "#define A B"),
        ("#define A 1\n#undef A", "#define A 1 #undef A"),
        ("f<<<1, 2>>>(x)", "f< <<1, 2>>>(x)"),
    ];
    for (one, other) in differ {
        assert_ne!(meaning(one), meaning(other), "{one:?} and {other:?}");
    }
}

#[test]
fn literals_are_kept_as_they_are() {
    assert_ne!(meaning("\"a  b\""), meaning("\"a b\""));
    assert_ne!(meaning("\"a // b\""), meaning("\"a \""));
    assert_ne!(meaning("'/*' + '*/'"), meaning("''"));
    assert_eq!(
        texts(r#""a\"b" 'c' '\'' L'd' u8"e" "f"_g"#),
        [r#""a\"b""#, "'c'", r"'\''", "L'd'", "u8\"e\"", "\"f\"_g"]
    );
    assert_eq!(texts("1'000'000u 0x1p-3f .5e+10 1.f"), ["1'000'000u", "0x1p-3f", ".5e+10", "1.f"]);
}

#[test]
fn raw_strings_keep_their_lines_and_what_looks_like_comments() {
    let text = "asm(R\"ptx(\nadd.s32 %0; // \"one\" \\\n)x\" )ptx\" : x); // out";
    assert_eq!(texts(text), ["asm", "(", "R\"ptx(\nadd.s32 %0; // \"one\" \\\n)x\" )ptx\"", ":", "x", ")", ";"]);
    assert_ne!(meaning("R\"(a\\\nb)\""), meaning("R\"(ab)\""), "lines of raw strings are not joined");
    assert_eq!(texts("u8R\"(a)\"_s b"), ["u8R\"(a)\"_s", "b"]);
    assert_eq!(texts("R\"(never ends"), ["R\"(never ends"]);
    assert_eq!(texts("FOOR\"(x)\""), ["FOOR", "\"(x)\""], "the prefix is a word of its own");
}

#[test]
fn joined_lines_are_one() {
    assert_eq!(meaning("#define A 1 \\\n  + 2\nA"), meaning("#define A 1 + 2\nA"));
    assert_eq!(meaning("int na\\\nme;"), meaning("int name;"));
    assert_eq!(meaning("x // a comment \\\n that goes on\ny"), meaning("x y"));
    assert_eq!(meaning("a \\  \r\n b"), meaning("a b"));
}

#[test]
fn a_quote_that_does_not_end_ends_with_its_line() {
    assert_eq!(texts("#if 0\nit's // so\n#endif\nx"), ["#", "if", "0", "", "it", "'s // so", "#", "endif", "", "x"]);
    assert_eq!(texts("#error don't\nx"), ["#", "error", "don", "'t", "", "x"]);
}

#[test]
fn the_number_of_a_line_counts_where_it_is_asked_for() {
    assert_eq!(meaning("// c\nint x;"), meaning("int x;"));
    assert_ne!(meaning("// c\nint x = __LINE__;"), meaning("int x = __LINE__;"));
    assert_eq!(meaning("int x = __LINE__; // c"), meaning("int x = __LINE__;"));
}

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

fn closure_of(files: &[(&str, &str)], file: &str) -> BTreeMap<RepoPath, Digest> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    closure(&[path(file)], |path| files.get(path.as_str()).map(|text| read(text.as_bytes()))).files
}

#[test]
fn includes_beside_the_file_are_followed_and_those_of_the_compiler_are_not() {
    let files = [
        (
            "kernels/a/v.cu",
            "#include <common.cuh>\n# include \"own.cuh\" // c\n#if 0\n#include \"../shared/x.h\"\n#endif\n",
        ),
        (
            "kernels/a/own.cuh",
            "#pragma once\n#include \"./own.cuh\"\n#include \"cuda_fp16.h\"\n#include \"../../../out.h\"\n",
        ),
        ("kernels/shared/x.h", "#include \"y.h\"\n#include \"/etc/passwd\"\n#include NAME\n"),
        ("kernels/shared/y.h", "// #include \"../a/unused.h\"\nconst char* s = \"#include \\\"../a/unused.h\\\"\";"),
        ("kernels/a/unused.h", ""),
        ("kernels/a/common.cuh", ""),
    ];
    let found = closure_of(&files, "kernels/a/v.cu");
    let names: Vec<&str> = found.keys().map(RepoPath::as_str).collect();
    assert_eq!(names, ["kernels/a/own.cuh", "kernels/a/v.cu", "kernels/shared/x.h", "kernels/shared/y.h"]);
    assert!(closure_of(&files, "kernels/a/none.cu").is_empty());
}

#[test]
fn headers_of_torch_are_known_however_they_are_included() {
    let of_torch = |header: &str, file: &str| {
        let files = [path("v.cu"), path("w.cpp")];
        let text = |path: &RepoPath| match path.as_str() {
            "v.cu" => Some(read(file.as_bytes())),
            "h.cuh" => Some(read(header.as_bytes())),
            _ => None,
        };
        closure(&files, text).includes_torch
    };
    for file in ["#include <torch/extension.h>", "#include \"ATen/ATen.h\"", "#if 0\n#include <Python.h>\n#endif"] {
        assert!(of_torch("", file), "{file}");
        assert!(of_torch(file, "#include \"h.cuh\""), "{file}");
    }
    let others = "#include <cuda_fp16.h>\n// #include <torch/all.h>\n#include \"torch.h\"\n#define X <torch/all.h>\n";
    assert!(!of_torch(others, "#include \"h.cuh\""));
}

#[test]
fn whitespace_counts_where_a_macro_of_the_closure_makes_texts() {
    let found = |header: &str, body: &str| {
        closure_of(&[("k/h.h", header), ("k/v.cu", &format!("#include \"h.h\"\n{body}"))], "k/v.cu")[&path("k/v.cu")]
    };
    let (plain, texts) = ("#define P(x) x##1\n", "#define P(x) asm(#x)\n");
    assert_eq!(found(plain, "P(add .s32)"), found(plain, "P(add.s32)"));
    assert_ne!(found(texts, "P(add .s32)"), found(texts, "P(add.s32)"));
    assert_eq!(found(texts, "P(add  .s32) // c"), found(texts, "P(add /* c */ .s32)"), "how much of it does not");
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn texts_that_look_like_tokens_are_read_whole(text in "[a(R\"'\\\\\n/*# <:x1.)]{0,60}") {
        let read: usize = tokens(text.as_bytes()).iter().map(|token| token.text.len()).sum();
        prop_assert!(read <= text.len());
    }

    #[test]
    fn a_comment_at_the_end_of_a_line_has_no_meaning(line in 0_usize..8, comment in "[ -~&&[^\\\\]]{0,20}") {
        let lines: Vec<&str> = KERNEL.lines().collect();
        let with: Vec<String> = lines.iter().enumerate().map(|(at, text)| {
            if at == line { format!("{text} // {comment}") } else { (*text).to_owned() }
        }).collect();
        prop_assert_eq!(meaning(KERNEL), meaning(&with.join("\n")));
    }
}
