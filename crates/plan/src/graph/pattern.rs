//! Patterns like a shell's: `*` matches any letters, `?` one.
//!
//! It does not know what is matched, and `/` is a letter like others to it.

/// Returns whether `text` has a wildcard.
#[must_use]
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Returns whether `pattern` matches the whole of `name`.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where the last `*` stands and how much of the name it was taken for: the rest is tried again with one letter more.
    let mut star: Option<(usize, usize)> = None;
    let (mut at, mut here) = (0, 0);
    while here < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[here] => {
                at += 1;
                here += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, here) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_letters_and_a_question_mark_is_one() {
        for (pattern, name) in
            [("softmax", "softmax"), ("soft*", "softmax"), ("*", ""), ("v?_*g", "v2_tiling"), ("*a*a", "abcaba")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("soft", "softmax"), ("?", ""), ("v?_b*", "v2_tiling"), ("*a*b", "abcaba"), ("", "a")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
