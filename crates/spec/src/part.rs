//! A part of ops.yaml: the text with all but some ops blanked, so that what is left is read as fast as it is short, and every line keeps its number.
//!
//! It does not read the part: whether what is left says the same of those ops, it does not know.

/// Returns `text` without the blocks of the ops that are not `wanted`. `ops` names every op and the line of its key, from 1, in the order of the file. None where the
/// ops are not written as blocks of their own.
#[must_use]
pub fn part(text: &str, ops: &[(&str, u32)], wanted: &dyn Fn(&str) -> bool) -> Option<String> {
    let mut left = String::with_capacity(text.len() / 4);
    let mut ops = ops.iter().map(|(name, line)| (*name, *line)).peekable();
    // The indentation of the key whose block is being blanked.
    let mut blanked: Option<usize> = None;
    for (line, number) in text.split_inclusive('\n').zip(1_u32..) {
        let indentation = line.len() - line.trim_start_matches(' ').len();
        let rest = line[indentation..].trim_end();
        if let Some((name, _)) = ops.next_if(|(_, at)| *at == number) {
            is_key(rest, name).then_some(())?;
            blanked = (!wanted(name)).then_some(indentation);
        } else if !rest.is_empty() && !rest.starts_with('#') && blanked.is_some_and(|key| indentation <= key) {
            blanked = None;
        }
        left.push_str(if blanked.is_some() { "\n" } else { line });
    }
    ops.next().is_none().then_some(left)
}

fn is_key(rest: &str, name: &str) -> bool {
    rest.strip_prefix(name).is_some_and(|after| after.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version: 1\nops:\n  add:\n    torch: torch.add\n\n  # of gelu\n  gelu:\n    note: |\n      x\n  relu: {torch: relu}\nprofiles:\n  cpu: {}\n";

    #[test]
    fn what_is_left_keeps_its_lines_and_what_is_around_the_ops() {
        let left = part(TEXT, &[("add", 3), ("gelu", 7), ("relu", 10)], &|name| name == "gelu").unwrap();
        assert_eq!(left.lines().count(), TEXT.lines().count());
        let words: Vec<(usize, &str)> = left.lines().enumerate().filter(|(_, line)| !line.is_empty()).collect();
        let wanted = [
            (0, "version: 1"),
            (1, "ops:"),
            (6, "  gelu:"),
            (7, "    note: |"),
            (8, "      x"),
            (10, "profiles:"),
            (11, "  cpu: {}"),
        ];
        assert_eq!(words, wanted);
    }

    #[test]
    fn ops_that_are_not_where_they_are_said_to_be_have_no_part() {
        assert_eq!(part(TEXT, &[("add", 3), ("gelu", 6), ("relu", 10)], &|_| true), None);
        assert_eq!(part(TEXT, &[("add", 3), ("gelu", 7), ("relu", 99)], &|_| true), None);
        let flow = "ops: {a: {torch: x}, b: {torch: y}}\n";
        assert_eq!(part(flow, &[("a", 1), ("b", 1)], &|_| true), None);
    }
}
