//! Lines of Python that are as long as a formatter leaves them: prose, definitions, calls.
//!
//! It knows the width and nothing of what the text says.

/// The longest line of code, as pyproject.toml has it.
pub const WIDTH: usize = 120;

/// Returns prose in lines of at most [`WIDTH`] less one characters. Words are not cut.
#[must_use]
pub fn fill(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() < WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// Returns `head(items)tail` as the formatter breaks it, `indent` spaces deep: on one line, else the items on one, else each on one. The first line has no indent.
#[must_use]
pub fn call(indent: usize, head: &str, items: &[String], tail: &str) -> String {
    let joined = items.join(", ");
    let flat = format!("{head}({joined}){tail}");
    if indent + flat.chars().count() <= WIDTH {
        return flat;
    }
    let (outer, inner) = (" ".repeat(indent), " ".repeat(indent + 4));
    if indent + 4 + joined.chars().count() <= WIDTH {
        return format!("{head}(\n{inner}{joined}\n{outer}){tail}");
    }
    let each: Vec<String> = items.iter().map(|item| format!("{inner}{item},\n")).collect();
    format!("{head}(\n{}{outer}){tail}", each.concat())
}

/// Returns an op's name as that of a class: `log_softmax` is `LogSoftmax`.
#[must_use]
pub fn camel(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    name.split(['_', '.']).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_broken_as_the_formatter_breaks_it() {
        let items = |count: usize| -> Vec<String> { (0..count).map(|place| format!("argument_{place:02}")).collect() };
        assert_eq!(call(4, "f", &items(2), ""), "f(argument_00, argument_01)");
        let middle = call(4, "function_of_a_name", &items(8), ":");
        assert_eq!(middle.lines().count(), 3, "{middle}");
        assert!(middle.ends_with("\n    ):"), "{middle}");
        let long = call(4, "f", &items(10), "");
        assert_eq!(long.lines().count(), 12, "{long}");
        assert!(long.contains("\n        argument_09,\n    )"), "{long}");
    }

    #[test]
    fn prose_is_filled_up_to_one_less_than_the_width() {
        let text = fill(&"word ".repeat(60));
        assert!(text.lines().all(|line| line.len() < WIDTH));
        assert_eq!(text.lines().next().unwrap().len(), 119);
    }

    #[test]
    fn a_class_has_the_name_of_its_op() {
        assert_eq!(camel("log_softmax"), "LogSoftmax");
    }
}
