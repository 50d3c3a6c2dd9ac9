//! Templates as persons write them: their mistakes, the names and filters that they have, text that is foreign.
//!
//! It does not know the templates that t2t carries.

use super::*;

fn error_of(text: &str) -> RenderError {
    let softmax = Softmax::on_the_interpreter();
    log(Template { path: "assets/mine.md", text }, &softmax.page()).unwrap_err()
}

#[test]
fn a_template_that_names_what_there_is_not_is_told_where() {
    let error = error_of("# {{ op }}\n\n{{ operatoin }}\n");
    assert_eq!(error.to_string(), "assets/mine.md:3: `operatoin` is not defined");
    assert_eq!(error.excerpt, "{{ operatoin }}");
    assert_eq!(error.hint.as_deref(), Some("docs/reference/log-templates.md lists what a template may name"));
    assert_eq!(error_of("{% if no %}{% endif %}").to_string(), "assets/mine.md:1: `no` is not defined");
    assert_eq!(error_of("\n{{ nothing.of.it }}").line, 2);
}

#[test]
fn a_template_that_does_not_parse_is_told_where() {
    let error = error_of("ok\n{% for x in variants %}\n{{ x }\n{% endfor %}\n");
    assert_eq!((error.path.as_str(), error.line, error.excerpt.as_str()), ("assets/mine.md", 3, "{{ x }"));
    let error = error_of("{{ op | shout }}");
    assert_eq!(error.to_string(), "assets/mine.md:1: filter shout is unknown");
    let error = error_of("a\n{{ kwargs | ms }}");
    assert_eq!(error.to_string(), "assets/mine.md:2: `{'dim': -1}` is no number");
}

#[test]
fn nothing_is_escaped_and_no_text_breaks_out_of_its_block() {
    let softmax = Softmax::on_a_device();
    let page = OpPage { op: "a < b & c | d", ..softmax.page() };
    let rendered = |text| log(Template { path: "t", text }, &page).unwrap();
    assert_eq!(rendered("{{ op }} {{ op | cell }}"), "a < b & c | d a < b & c \\| d\n");
    assert_eq!(rendered("{{ 'x ``` \u{1b}[2J y' | fence }}"), "````text\nx ``` \\u{1b}[2J y\n````\n");
    assert_eq!(rendered("{{ 'one\n\n  # two' | quote }}"), "> one\n>\n>   # two\n");
    assert_eq!(rendered("a  \n\n\n\n{{ 'x\n\n\ny' | fence }}\n\n"), "a\n\n```text\nx\n\n\ny\n```\n");
}

/// Adds all names of a context, of its mappings and of the first of each list, but not those of documents shown as they are.
fn names(context: &Value, found: &mut Vec<String>) {
    const DATA: [&str; 11] = [
        "analysis", "kwargs", "dims", "outputs", "blocks", "binding", "config", "dropped", "choices", "device",
        "protocol",
    ];
    for (name, value) in context.as_object().into_iter().flatten() {
        found.push(name.clone());
        if !DATA.contains(&name.as_str()) {
            value.as_array().into_iter().flatten().chain([value]).for_each(|value| names(value, found));
        }
    }
}

#[test]
fn every_name_and_filter_is_documented() {
    let documented = include_str!("../../../../../docs/reference/log-templates.md");
    let softmax = Softmax::on_a_device();
    let op = OpSummary::of("softmax", &softmax.selection);
    let page = BuildPage {
        ops: vec![&op],
        files: vec![],
        calibration: &Found::Lost,
        wall: Duration::ZERO,
        device: Duration::ZERO,
    };
    let mut found = Vec::new();
    names(&json!(softmax.page().context()), &mut found);
    names(&json!(page.context()), &mut found);
    found.retain(|name| !["small", "medium", "large"].contains(&name.as_str()));
    let missing: Vec<&String> = found.iter().filter(|name| !documented.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, Vec::<&String>::new());
    assert!(found.len() > 150, "{found:?}");
    for filter in include_str!("../filters.rs").split("add_filter(\"").skip(1).filter_map(|text| text.split('"').next())
    {
        assert!(documented.contains(&format!("| `{filter}` |")), "{filter}");
    }
}

#[test]
fn foreign_text_gives_a_terminal_no_command_and_a_page_no_tag() {
    let hostile = "\u{1b}[31mred\u{0}\u{202e} <script>alert(1)</script> `<tag>` | a < b\r\u{9b}2J";
    let template = "{{ text }}\n{{ text | prose }}\n{{ text | cell }}\n{{ text | fence }}\n{{ text | quote }}\n";
    let told = render(shipped("odd", template), &serde_json::json!({"text": hostile})).unwrap();
    assert!(told.chars().all(|letter| letter == '\n' || !letter.is_control() && letter != '\u{202e}'), "{told:?}");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[1], r"\u{1b}[31mred\u{0}\u{202e} \<script>alert(1)\</script> `<tag>` | a < b\r\u{9b}2J");
    assert_eq!(lines[2], r"\u{1b}[31mred\u{0}\u{202e} \<script>alert(1)\</script> `<tag>` \| a < b\r\u{9b}2J");
}
