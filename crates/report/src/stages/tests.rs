//! Small stages: what belongs to which line, and when nothing is said of that.

use super::*;

const SOURCE: &str = "def kernel(x):\n    y = load(x)\n    store(x, y + 1)\n";

const KEPT: &str = "#loc1 = loc(\"x\")\nmodule {\n  tt.func @kernel(%x: i32 loc(\"x\")) {\n    %0 = tt.load %x : i32 loc(#loc)\n    %1 = arith.addi %0, %0 : i32 loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n#loc = loc(unknown)\n";

const LINED: &str = "#loc = loc(\"/w/kernels/k.py\":1:0)\n#loc4 = loc(\"x\"(#loc))\nmodule {\n  tt.func @kernel(%x: i32 loc(\"x\"(#loc))) {\n    %y = tt.load %x : i32 loc(#loc5)\n    %y_1 = arith.addi %y, %y : i32 loc(#loc6)\n  } loc(#loc)\n} loc(#loc)\n#loc2 = loc(\"/w/kernels/k.py\":2:8)\n#loc3 = loc(\"/lib/standard.py\":9:1)\n#loc5 = loc(\"y\"(#loc2))\n#loc6 = loc(callsite(#loc3 at #loc7))\n#loc7 = loc(\"/w/kernels/k.py\":3:17)\n";

const KEPT_PTX: &str = "//\n.visible .entry kernel(\n)\n{\n\t.reg .b32 \t%r<2>;\n\tld.global.b32 \t%r1, [%rd1];\n\tadd.s32 \t%r2, %r1, 1; // <why>\n\tret;\n}\n";

const LINED_PTX: &str = "//\n.visible .entry kernel(\n)\n{\n\t.reg .b32 \t%r<2>;\n\t.loc\t1 2 8                           // k.py:2:8\n$L__tmp0:\n\tld.global.b32 \t%r1, [%rd1];\n\t.loc\t2 9 1, function_name $L__info_string0, inlined_at 1 3 17\n\tadd.s32 \t%r2, %r1, 1; // k.py\n\t.loc\t1 0 0\n\tret;\n}\n\t.file\t1 \"/w/kernels\" \"k.py\"\n\t.file\t2 \"/lib/standard.py\"\n\t.section\t.debug_abbrev\n\tadd\n";

fn page(lined: Result<BTreeMap<String, String>, String>) -> String {
    let stages = vec![("ttgir".to_owned(), KEPT.to_owned()), ("ptx".to_owned(), KEPT_PTX.to_owned())];
    let kernel = Kernel { name: "kernel".to_owned(), about: "nvidia-h200 {\"<N>\": 1}".to_owned(), stages, lined };
    let files = [("kernels/k.py".to_owned(), SOURCE.to_owned()), ("lib/other.py".to_owned(), "<b>\n".to_owned())];
    html("op/v1", &files, &[kernel]).unwrap()
}

fn lined(ttgir: &str) -> BTreeMap<String, String> {
    [("ttgir", ttgir), ("ptx", LINED_PTX)].map(|(stage, text)| (stage.to_owned(), text.to_owned())).into()
}

/// Returns, of each line of a pane, its text and what it belongs to.
fn pane<'a>(page: &'a str, title: &str) -> Vec<(&'a str, &'a str)> {
    let begin = page.find(&format!("<ol data-pane=\"{title}\"")).unwrap_or_else(|| panic!("no {title}: {page}"));
    let list = &page[begin..begin + page[begin..].find("</ol>").unwrap()];
    let line = |line: &'a str| {
        let (head, text) = line.split_once('>').unwrap();
        let text = text.split("</a>").last().unwrap();
        (text.trim_end(), head.split("data-l=\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap()))
    };
    list.split("<li").skip(1).map(line).collect()
}

#[test]
fn lines_of_stages_belong_to_the_source_that_the_second_compile_names() {
    let text = page(Ok(lined(LINED)));
    assert!(!text.contains("not linked"), "{text}");
    let told = pane(&text, "ttgir");
    // What is defined in a library belongs to the call.
    assert_eq!(told[2], ("    %0 = tt.load %x : i32", "0.2"));
    assert_eq!(told[3].1, "0.3");
    assert!(told.iter().all(|(text, _)| !text.contains("#loc")), "{told:?}");
    let told = pane(&text, "ptx");
    let of = |start: &str| told.iter().find(|(text, _)| text.contains(start)).unwrap().1;
    assert_eq!([of("ld.global"), of("add.s32"), of("ret;"), of(".reg")], ["0.2", "0.3", "", ""]);
    assert_eq!(pane(&text, "kernels&#x2f;k.py").iter().map(|(_, key)| *key).collect::<Vec<_>>(), ["0.1", "0.2", "0.3"]);
    assert!(!text.contains("lib/other.py") && !text.contains("lib&#x2f;other.py"), "no line is of it: {text}");
    assert!(text.contains("<a href=\"#0.0.2\" tabindex=-1>2</a>") && text.contains("id=\"0.0.2\""), "{text}");
    assert!(text.contains("&lt;why&gt;") && text.contains("&lt;N&gt;"), "{text}");
}

#[test]
fn lines_of_other_code_are_linked_with_nothing_and_the_page_says_why() {
    let other = LINED.replace("arith.addi", "arith.muli");
    let text = page(Ok(lined(&other)));
    assert!(text.contains("Lines of ttgir are not linked: a compile with lines makes other code."), "{text}");
    assert!(pane(&text, "ttgir").iter().all(|(_, key)| key.is_empty()), "{text}");
    // The other stage is the same.
    assert!(pane(&text, "ptx").iter().any(|(_, key)| *key == "0.2"), "{text}");
    let text = page(Err("no <interpreter>".to_owned()));
    assert!(text.contains("Lines are not linked: no &lt;interpreter&gt;.") && !text.contains("data-l="), "{text}");
}

#[test]
fn values_are_told_apart_by_where_they_are_defined_and_not_by_their_names() {
    let kept = "%0 = a loc(#loc)\n^bb0(%arg4: f32 loc(unknown), %arg5: f32 loc(unknown)):\n%1:2 = b %arg4, %arg5\n^bb0(%arg4: f32, %arg5: f32):\nc %arg4, %0, %1#1\n";
    let lined = "%x = a\n^bb0(%y: f32 loc(callsite(#loc1 at #loc2)), %y_1: f32):\n%z:2 = b %y, %y_1\n^bb0(%w: f32, %w_3: f32):\nc %w, %x, %z#1\n";
    let code = |text: &str| mlir(text).into_iter().map(|line| line.code).collect::<Vec<_>>();
    assert_eq!(code(kept), code(lined));
    assert_eq!(mlir(kept)[1].shown, "^bb0(%arg4: f32, %arg5: f32):");
    assert_ne!(code(kept), code(&lined.replace("c %w, %x", "c %y, %x")), "another value");
}

#[test]
fn names_of_places_in_a_circle_end() {
    let text = "  %0 = a loc(#loc1)\n#loc1 = loc(fused[#loc2, #loc1])\n#loc2 = loc(\"f.py\":7:1)\n";
    let places = &mlir(text)[0].places;
    assert_eq!(places.iter().map(|place| (place.file.as_str(), place.line)).collect::<Vec<_>>(), [("f.py", 7)]);
}
