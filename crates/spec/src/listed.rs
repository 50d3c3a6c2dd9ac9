//! One more variant in the list of an op: what else is in the file keeps its bytes.
//!
//! It does not know whether what comes of it is right: whoever writes it reads it again.

/// Returns `file`, an ops.yaml, in which the op whose key stands in `line`, from 1, lists `new` behind its variants, which are called `names`. None where the op, or its list, is
/// written in a way that is not looked through: an op in braces over several lines, a list over several lines in brackets, an anchor.
#[must_use]
pub fn with_variant(file: &str, line: usize, names: &[&str], new: &str) -> Option<String> {
    let end = if file.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = file.split_inclusive('\n').map(str::to_owned).collect();
    let key = line.checked_sub(1)?;
    let margin = indent(lines.get(key)?);
    let value = lines[key].split_once(':')?.1.trim();
    if value.starts_with('{') {
        return in_braces(&lines[key], names, new).map(|line| {
            lines[key] = line;
            lines.concat()
        });
    }
    if !value.is_empty() && !value.starts_with('#') {
        return None;
    }
    let is_own = |line: &String| is_blank(line) || indent(line) > margin;
    let count = lines[key + 1..].iter().take_while(|line| is_own(line)).count();
    let block = key + 1..key + 1 + count;
    let first = block.clone().find(|at| !is_blank(&lines[*at]))?;
    let depth = indent(&lines[first]);
    let list =
        block.clone().find(|at| indent(&lines[*at]) == depth && lines[*at].trim_start().starts_with("variants:"));
    let Some(list) = list else {
        let all = names.iter().chain([&new]).copied().collect::<Vec<_>>().join(", ");
        lines.insert(key + 1, format!("{}variants: [{all}]{end}", " ".repeat(depth)));
        return Some(lines.concat());
    };
    let value = lines[list].trim_start()["variants:".len()..].trim().to_owned();
    if let Some(inside) = value.strip_prefix('[') {
        let close = lines[list].rfind(']')?;
        let is_last = matches!(lines[list][close + 1..].trim(), rest if rest.is_empty() || rest.starts_with('#'));
        let gap = if inside.trim_start().starts_with(']') { "" } else { ", " };
        return is_last.then(|| {
            lines[list].insert_str(close, &format!("{gap}{new}"));
            lines.concat()
        });
    }
    if !value.is_empty() && !value.starts_with('#') {
        return None;
    }
    let is_item = |at: &usize| lines[*at].trim_start().starts_with("- ") && indent(&lines[*at]) >= depth;
    let item = (list + 1..block.end).find(|at| !is_blank(&lines[*at])).filter(is_item)?;
    let depth_of_items = indent(&lines[item]);
    let is_inside = |at: &usize| {
        is_blank(&lines[*at])
            || indent(&lines[*at]) > depth_of_items
            || (indent(&lines[*at]) == depth_of_items && is_item(at))
    };
    let inside = (item..block.end).take_while(is_inside).filter(|at| !is_blank(&lines[*at]));
    let tail = inside.last()?;
    if !lines[tail].ends_with('\n') {
        lines[tail].push_str(end);
    }
    lines.insert(tail + 1, format!("{}- {new}{end}", " ".repeat(depth_of_items)));
    Some(lines.concat())
}

/// Returns the line of an op that is written in braces, whole, with the variant. None where its list does not end there.
fn in_braces(line: &str, names: &[&str], new: &str) -> Option<String> {
    let mut line = line.to_owned();
    if let Some(list) = line.find("variants:") {
        let open = list + line[list..].find('[')?;
        let close = open + line[open..].find(']')?;
        let gap = if line[open + 1..close].trim().is_empty() { "" } else { ", " };
        line.insert_str(close, &format!("{gap}{new}"));
    } else {
        let all = names.iter().chain([&new]).copied().collect::<Vec<_>>().join(", ");
        line.insert_str(line.rfind('}')?, &format!(", variants: [{all}]"));
    }
    Some(line)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Comments belong to nobody.
fn is_blank(line: &str) -> bool {
    let text = line.trim();
    text.is_empty() || text.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    const HEAD: &str = "version: 1\n# all\nops:\n  add:\n    torch: torch.add\n    inputs: {input: [M, N], other: [M, N]}\n    variants: [v1]\n  gelu: # the one\n    torch: torch.nn.functional.gelu\n    inputs: {input: [M, N]}\n";

    /// Returns the file with `v9` in the list of gelu, after both were read.
    fn with_v9(tail: &str) -> Option<String> {
        let file = format!("{HEAD}{tail}");
        let names = |text: &str| -> Vec<String> {
            let spec =
                Spec::parse("ops.yaml", text.as_bytes(), None).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
            spec.op("gelu").unwrap().variants.iter().map(|variant| variant.name.clone()).collect()
        };
        let spec = Spec::parse("ops.yaml", file.as_bytes(), None).unwrap();
        let before = names(&file);
        let known: Vec<&str> = before.iter().map(String::as_str).collect();
        let line = usize::try_from(spec.op("gelu").unwrap().place.line).unwrap();
        let found = with_variant(&file, line, &known, "v9")?;
        assert_eq!(names(&found), [&before[..], &["v9".to_owned()]].concat(), "{found}");
        assert_eq!(spec.op("add"), Spec::parse("ops.yaml", found.as_bytes(), None).unwrap().op("add"));
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let kept = lines(&file).iter().filter(|line| lines(&found).contains(line)).count();
        assert!(kept + 1 >= lines(&file).len(), "one line changes: {found}");
        Some(found)
    }

    #[test]
    fn a_list_in_brackets_gets_one_more() {
        let found = with_v9("    variants: [v1, {name: v2, entry: other}] # mine\n    precision: ieee\n").unwrap();
        assert!(found.contains("    variants: [v1, {name: v2, entry: other}, v9] # mine\n"), "{found}");
    }

    #[test]
    fn a_list_in_lines_gets_a_line() {
        let tail = "    variants:\n      # the first\n      - v1\n      - name: v2\n        entry: other # there\n\n    # how exact\n    precision: ieee\n";
        let found = with_v9(tail).unwrap();
        assert!(found.contains("        entry: other # there\n      - v9\n\n    # how exact\n"), "{found}");
        let flush = with_v9("    variants:\n    - v1\n    - v2\n    precision: ieee").unwrap();
        assert!(flush.contains("    - v2\n    - v9\n    precision: ieee"), "{flush}");
        let at_the_end = with_v9("    variants:\n      - v1").unwrap();
        assert!(at_the_end.ends_with("      - v1\n      - v9\n"), "{at_the_end}");
    }

    #[test]
    fn an_op_without_a_list_gets_one_with_what_it_has() {
        let found = with_v9("    precision: ieee\n").unwrap();
        let list = "    variants: [v1_baseline, v2_tiling, v3_coalesced, v4_optimized, v9]\n";
        assert!(found.contains(&format!("  gelu: # the one\n{list}    torch:")), "{found}");
    }

    #[test]
    fn windows_line_ends_stay() {
        let file = format!("{HEAD}    variants:\n      - v1\n").replace('\n', "\r\n");
        let found = with_variant(&file, 8, &["v1"], "v9").unwrap();
        assert_eq!(found, format!("{file}      - v9\r\n"));
    }

    #[test]
    fn an_op_in_braces_gets_one_more() {
        let file =
            |more: &str| format!("version: 1\nops:\n  gelu: {{torch: gelu, inputs: {{input: [M, N]}}{more}}} # mine\n");
        for (before, known, after) in [
            (", variants: [v1, {name: v2, entry: f}]", &["v1", "v2"][..], ", variants: [v1, {name: v2, entry: f}, v9]"),
            (", variants: []", &[], ", variants: [v9]"),
            ("", &["v1"], ", variants: [v1, v9]"),
        ] {
            assert_eq!(with_variant(&file(before), 3, known, "v9").as_deref(), Some(file(after).as_str()));
        }
    }

    #[test]
    fn what_is_not_looked_through_is_left_alone() {
        let braces = "version: 1\nops:\n  gelu: {torch: torch.nn.functional.gelu,\n    inputs: {input: [M, N]}}\n";
        assert_eq!(with_variant(&braces.replace("}}", "}, variants: [v1]}"), 3, &["v1"], "v9"), None);
        let several = format!("{HEAD}    variants: [v1,\n      v2]\n");
        assert_eq!(with_variant(&several, 8, &["v1", "v2"], "v9"), None);
        let anchor = format!("{HEAD}    variants: *mine\n");
        assert_eq!(with_variant(&anchor, 8, &["v1"], "v9"), None);
        assert_eq!(with_variant(HEAD, 0, &[], "v9"), None);
        assert_eq!(with_variant(HEAD, 99, &[], "v9"), None);
    }
}
