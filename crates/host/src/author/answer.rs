//! An answer in text: the one fenced Python block in it.
//!
//! It does not know who answered, nor whether the block is a kernel.

/// What languages a fence may name that holds Python.
const PYTHON: [&str; 4] = ["python", "py", "python3", "triton"];

/// Why a text holds no kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoBlock {
    /// There is none.
    #[error("no fenced Python block is in it")]
    None,
    /// It is not said which.
    #[error("{0} fenced Python blocks are in it, and not one")]
    Several(usize),
    /// The text ends in it.
    #[error("its fenced Python block has no end: the answer was cut off")]
    Open,
}

/// A fenced block, as `CommonMark` has it.
struct Block {
    language: String,
    text: String,
    is_closed: bool,
}

/// Returns the one fenced Python block in `text`. Blocks without a language count where none names one; those of other languages never do.
pub(super) fn block(text: &str) -> Result<String, NoBlock> {
    let blocks = blocks(text);
    let of = |languages: &[&str]| -> Vec<&Block> {
        blocks.iter().filter(|block| languages.contains(&block.language.as_str())).collect()
    };
    let named = of(&PYTHON);
    match (if named.is_empty() { of(&[""]) } else { named }).as_slice() {
        [] => Err(NoBlock::None),
        [one] if one.is_closed => Ok(one.text.clone()),
        [_] => Err(NoBlock::Open),
        several => Err(NoBlock::Several(several.len())),
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((indentation, fence, words)) = fence(line) else { continue };
        let language = words.split_whitespace().next().unwrap_or_default().to_lowercase();
        let mut block = Block { language, text: String::new(), is_closed: false };
        for line in lines.by_ref() {
            if closes(line, fence) {
                block.is_closed = true;
                break;
            }
            let spaces = line.len() - line.trim_start_matches(' ').len();
            block.text += &line[spaces.min(indentation)..];
            block.text.push('\n');
        }
        found.push(block);
    }
    found
}

/// Returns the indentation of the fence that a line opens, the fence, and what follows it.
fn fence(line: &str) -> Option<(usize, &str, &str)> {
    let rest = line.trim_start_matches(' ');
    let letter = rest.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let length = rest.len() - rest.trim_start_matches(letter).len();
    let (fence, words) = rest.split_at(length);
    // Three backticks may also be a word in a line.
    let is_one = length >= 3 && !(letter == '`' && words.contains('`'));
    is_one.then_some((line.len() - rest.len(), fence, words.trim()))
}

fn closes(line: &str, fence: &str) -> bool {
    let line = line.trim();
    let letter = fence.chars().next().unwrap_or('`');
    line.len() >= fence.len() && line.chars().all(|other| other == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_python_block_is_the_answer() {
        for text in [
            "```python\nx = 1\n```",
            "Here it is:\n\n  ```py\n  x = 1\n  ```\nRun it:\n```sh\nt2t build\n```\n",
            "~~~Python3 title=\"x\"\nx = 1\n~~~\n",
            "```\nx = 1\n```\n",
            "```\nplain\n```\n```triton\nx = 1\n```\n",
            "````python\nx = 1\n````\n",
        ] {
            assert_eq!(block(text).as_deref(), Ok("x = 1\n"), "{text}");
        }
        assert_eq!(block("````python\n```\nx\n```\n````").as_deref(), Ok("```\nx\n```\n"));
    }

    #[test]
    fn what_is_no_single_block_says_why() {
        let two = "```python\nx = 1\n```\n```python\nx = 2\n```\n";
        for (text, why) in [
            ("", NoBlock::None),
            ("I cannot do that.", NoBlock::None),
            ("```sh\nls\n```\n", NoBlock::None),
            ("```not a fence``` in a line", NoBlock::None),
            (two, NoBlock::Several(2)),
            ("```python\nx = 1\n", NoBlock::Open),
        ] {
            assert_eq!(block(text), Err(why), "{text}");
        }
    }
}
