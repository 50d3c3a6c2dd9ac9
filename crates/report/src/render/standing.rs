//! How a workspace stands, in lines for people: what is rejected, skipped and stale, as many actions in a line as have one reason.
//!
//! It does not know when an action is stale, nor what a reason is.

use t2t_model::action::Target;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How wide the names of actions may be in a line; more of them are counted.
const NAMES: usize = 60;

/// An action that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// `rejected`, `unjudged`, `skipped` or `stale`.
    pub word: &'static str,
    /// Which.
    pub target: Target,
    /// Why, in words.
    pub why: String,
}

/// Returns a line for each word and reason, in the order in which they first come, rejections first. Lines are cut at `width`, where there is one.
#[must_use]
pub fn lines(rows: &[Row], width: Option<usize>) -> String {
    let mut groups: Vec<(&Row, Vec<&Target>)> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|(first, _)| (first.word, &first.why) == (row.word, &row.why)) {
            Some((_, targets)) => targets.push(&row.target),
            None => groups.push((row, vec![&row.target])),
        }
    }
    let order = |word: &str| ["rejected", "unjudged", "skipped", "stale"].iter().position(|known| *known == word);
    groups.sort_by_key(|(row, _)| order(row.word));
    let line = |(row, targets): &(&Row, Vec<&Target>)| format!("{:<10}{}  {}", row.word, names(targets), row.why);
    groups.iter().map(|group| cut(&line(group), width) + "\n").collect()
}

/// Returns the actions by name, phases of one place together, or how many there are of how many ops.
fn names(targets: &[&Target]) -> String {
    let mut places: Vec<(String, Vec<&str>)> = Vec::new();
    for target in targets {
        let place = target.place();
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, phases)) => phases.push(target.phase.name()),
            None => places.push((place, vec![target.phase.name()])),
        }
    }
    let named = places.iter().map(|(place, phases)| match place.as_str() {
        "" => phases.join(" "),
        place => format!("{place}:{}", phases.join(",")),
    });
    let named = named.collect::<Vec<_>>().join(" ");
    if named.width() <= NAMES { named } else { counted(targets) }
}

fn counted(targets: &[&Target]) -> String {
    let mut ops: Vec<&str> = targets.iter().map(|target| target.op.as_str()).filter(|op| !op.is_empty()).collect();
    ops.sort_unstable();
    ops.dedup();
    match ops.as_slice() {
        [op] => format!("{} actions of {op}", targets.len()),
        several => format!("{} actions of {} ops", targets.len(), several.len()),
    }
}

fn cut(line: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| line.width() > *width) else { return line.to_owned() };
    let mut kept = String::new();
    let mut taken = 0;
    for letter in line.chars() {
        taken += letter.width().unwrap_or(0);
        if taken >= width {
            break;
        }
        kept.push(letter);
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use t2t_model::action::Phase;

    use super::*;

    fn row(word: &'static str, target: Target, why: &str) -> Row {
        Row { word, target, why: why.to_owned() }
    }

    #[test]
    fn actions_of_one_reason_are_one_line() {
        let of_variant = |phase| Target::of_variant("gelu", "v1", phase);
        let rows = [
            row("stale", of_variant(Phase::Compile), "its code changed"),
            row("stale", of_variant(Phase::Check), "its code changed"),
            row("stale", Target::of_op("gelu", Phase::Log), "the template changed"),
            row("stale", Target::summary(), "the template changed"),
            row("rejected", Target::of_variant("add", "v1", Phase::Check), "mismatch"),
        ];
        let expected = "\
rejected  add/v1:check  mismatch
stale     gelu/v1:compile,check  its code changed
stale     gelu:log summary  the template changed
";
        assert_eq!(lines(&rows, None), expected);
    }

    #[test]
    fn many_actions_are_counted_and_a_line_ends_at_the_edge() {
        let ops: Vec<String> = (0..24).map(|number| format!("op{number:02}")).collect();
        let never: Vec<Row> =
            ops.iter().map(|op| row("stale", Target::of_op(op, Phase::Analyze), "never ran")).collect();
        assert_eq!(lines(&never, None), "stale     24 actions of 24 ops  never ran\n");
        assert_eq!(lines(&never, Some(30)), "stale     24 actions of 24 op…\n");
        let long = [row("stale", Target::summary(), &"very long ".repeat(200))];
        assert_eq!(lines(&long, Some(60)).trim_end().width(), 60);
    }
}
