//! Foreign text, from kernels, files, tools and servers, made harmless for where it is shown. This is the only place that does so.
//!
//! It does not know who said it.

/// Returns whether a character gives an order rather than showing something: control characters, and what turns the direction of text, which shows other words than are there. The ends of lines and
/// tabs are none.
#[must_use]
pub(crate) fn is_order(letter: char) -> bool {
    let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !matches!(letter, '\n' | '\t') && (letter.is_control() || turns)
}

/// Returns text for a terminal, an annotation or a page: control characters are written as escapes, as in `\u{1b}`.
#[must_use]
pub fn printable(text: &str) -> String {
    escaped(text, is_order, |letter| letter.escape_default().to_string())
}

/// Returns text of as many characters, for a line below which something is pointed at: each order is replaced by U+FFFD.
#[must_use]
pub(crate) fn masked(line: &str) -> String {
    line.chars().map(|letter| if is_order(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Returns JSON that is also harmless in a terminal. Orders stand only in its texts, where their escapes, as in `\u001b`, mean the same; what is no JSON may be given as well.
#[must_use]
pub fn json(text: &str) -> String {
    escaped(text, is_order, |letter| format!("\\u{:04x}", u32::from(letter)))
}

/// Returns text that XML can hold: the two noncharacters are written as escapes, too.
#[must_use]
pub fn xml(text: &str) -> String {
    let is_none = |letter: char| is_order(letter) || matches!(letter, '\u{fffe}' | '\u{ffff}');
    escaped(text, is_none, |letter| letter.escape_default().to_string())
}

fn escaped(text: &str, is_wanted: impl Fn(char) -> bool, escape: impl Fn(char) -> String) -> String {
    if !text.chars().any(&is_wanted) {
        return text.to_owned();
    }
    text.chars().map(|letter| if is_wanted(letter) { escape(letter) } else { letter.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "\u{1b}[31m\0\u{202e}\u{2069}\u{9b}\u{7f}\r <script>]]>`\n\t";

    #[test]
    fn no_medium_gets_an_order() {
        for shown in [printable(HOSTILE), masked(HOSTILE), json(HOSTILE), xml(HOSTILE)] {
            assert_eq!(shown.chars().find(|letter| is_order(*letter)), None, "{shown:?}");
            assert!(shown.ends_with(" <script>]]>`\n\t"), "{shown:?}");
        }
    }

    #[test]
    fn json_means_what_it_meant() {
        let value = serde_json::json!({HOSTILE: HOSTILE});
        let text = json(&value.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        assert_eq!(text.chars().find(|letter| is_order(*letter)), None);
    }

    #[test]
    fn a_masked_line_is_as_long() {
        assert_eq!(masked(HOSTILE).chars().count(), HOSTILE.chars().count());
    }
}
