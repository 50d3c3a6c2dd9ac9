//! The figures of an op's benches for a terminal: a line for each variant and size, and for each variant without figures the reason.
//!
//! It compares nothing: which variant is chosen, `select` says.

use t2t_protocol::{self as protocol, Figure, StopReason, Stopped};

use crate::figures;
use crate::render::sizes;
use crate::render::table::{Align, Table};

/// What came of a variant's bench.
#[derive(Clone, Debug)]
pub enum Bench {
    /// Its document.
    Measured(Box<protocol::Bench>),
    /// Why there is none.
    Missing(String),
}

/// Where figures were taken, which decides what they can be held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// On a device.
    OnADevice,
    /// By the interpreter: nothing but how long it took.
    Interpreted,
}

/// Returns the table of an op's variants, and the lines of those that have no figures.
#[must_use]
pub fn text(op: &str, variants: &[(&str, Bench)], measured: Measured, width: Option<usize>) -> String {
    let mut columns = vec![("Variant", Align::Left), ("Size", Align::Left)];
    columns.extend(match measured {
        Measured::OnADevice => {
            [("Time (ms)", Align::Right), ("Torch (ms)", Align::Right), ("Speedup", Align::Right)].as_slice()
        }
        Measured::Interpreted => [("Interpreter (ms)", Align::Right)].as_slice(),
    });
    columns.push(("Note", Align::Left));
    let mut table = Table::new(&columns);
    let mut reasons = String::new();
    let mut has_rows = false;
    for (variant, bench) in variants {
        match bench {
            Bench::Measured(document) => {
                for row in rows(variant, document, measured) {
                    has_rows = true;
                    table.push(row);
                }
            }
            Bench::Missing(why) => reasons += &format!("{op}/{variant} has no figures: {why}\n"),
        }
    }
    let table = if has_rows { format!("{op}\n{}", table.text(width)) } else { String::new() };
    table + &reasons
}

fn rows(variant: &str, document: &protocol::Bench, measured: Measured) -> Vec<Vec<String>> {
    let names = sizes::ordered(document.sizes.iter().map(|(name, size)| (name, &size.binding)));
    let told = |value: Option<f64>, written: fn(f64) -> String| value.map_or_else(|| "–".to_owned(), written);
    let row = |name: &String| {
        let size = &document.sizes[name];
        let mean = |figure: &Option<Figure>| figure.as_ref().map(|figure| figure.mean);
        let own = match measured {
            Measured::OnADevice => mean(&size.variant),
            Measured::Interpreted => size.interpreter_ms,
        };
        let mut cells = vec![variant.to_owned(), name.clone(), told(own, figures::milliseconds)];
        if measured == Measured::OnADevice {
            let torch = mean(&size.torch);
            let speedup = own.zip(torch).filter(|(own, _)| *own > 0.0).map(|(own, torch)| torch / own);
            cells.extend([told(torch, figures::milliseconds), told(speedup, figures::ratio)]);
        }
        let why = document.why_unstable.as_ref().and_then(Option::as_ref);
        let unstable = why.map(|why| format!("unstable: {why}"));
        let timed = document.protocol.passes.map(|passes| figures::passes(passes).to_owned());
        let notes = timed.into_iter().chain(size.stopped.as_ref().map(ended)).chain(unstable);
        cells.push(notes.collect::<Vec<_>>().join("; "));
        cells
    };
    names.iter().map(row).collect()
}

/// Returns, size by size, how many runs a bench had and why there were no more; nothing where their number was fixed.
#[must_use]
pub fn ends(document: &protocol::Bench) -> String {
    let names = sizes::ordered(document.sizes.iter().map(|(name, size)| (name, &size.binding)));
    let told = names.iter().filter_map(|name| {
        let stopped = document.sizes[name].stopped.as_ref()?;
        Some(format!("{name} {}", ended(stopped)))
    });
    told.collect::<Vec<_>>().join("; ")
}

fn ended(stopped: &Stopped) -> String {
    let Stopped { runs, most, why } = stopped;
    let why = match why {
        StopReason::Precise => "precise",
        StopReason::Decided => "decided",
        StopReason::Varies => "varies",
        StopReason::Runs => "all",
    };
    format!("{runs} of {most} runs: {why}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use t2t_protocol::read::exactly;

    use super::*;

    fn measured(bench: &Value) -> Bench {
        Bench::Measured(Box::new(exactly(bench).unwrap()))
    }

    fn benches() -> Vec<(&'static str, Bench)> {
        let figure = |mean: f64| json!({"runs": [], "mean": mean, "median": mean, "p20": mean, "p80": mean, "cv": 0.0});
        let size =
            |binding: u64, own: f64| json!({"binding": {"M": binding}, "variant": figure(own), "torch": figure(2.0)});
        let sizes = json!({"sizes": {"small": size(16, 1.0), "large": size(64, 4.0)}, "why_unstable": null});
        vec![("v1", measured(&sizes)), ("v2", Bench::Missing("its check was rejected (mismatch)".to_owned()))]
    }

    #[test]
    fn figures_stand_in_lines_by_variant_and_size() {
        let expected = "\
softmax
Variant  Size   Time (ms)  Torch (ms)  Speedup  Note
───────  ─────  ─────────  ──────────  ───────  ────
v1       small      1.000       2.000    2.00x
v1       large      4.000       2.000    0.50x
softmax/v2 has no figures: its check was rejected (mismatch)
";
        assert_eq!(text("softmax", &benches(), Measured::OnADevice, None), expected);
    }

    #[test]
    fn where_measuring_ended_by_what_was_seen_the_note_says_when() {
        let figure =
            json!({"runs": [], "mean": 1.0, "median": 1.0, "p20": 1.0, "p80": 1.0, "cv": 0.0, "within": 0.004});
        let size = json!({"binding": {"M": 16}, "variant": figure, "torch": figure,
            "stopped": {"runs": 6, "most": 100, "why": "precise"}});
        let told = text(
            "softmax",
            &[("v1", measured(&json!({"sizes": {"small": size}, "why_unstable": "it was hot"})))],
            Measured::OnADevice,
            None,
        );
        assert!(told.ends_with("1.000       1.000    1.00x  6 of 100 runs: precise; unstable: it was hot\n"), "{told}");
        let sizes = json!({"sizes": {
            "large": {"binding": {"M": 64}, "stopped": {"runs": 20, "most": 100, "why": "decided"}},
            "small": {"binding": {"M": 16}, "stopped": {"runs": 100, "most": 100, "why": "runs"}}, "odd": {}}});
        let Bench::Measured(document) = measured(&sizes) else { unreachable!() };
        assert_eq!(ends(&document), "small 100 of 100 runs: all; large 20 of 100 runs: decided");
    }

    #[test]
    fn the_note_says_which_passes_were_timed_where_that_is_not_the_forward_pass_alone() {
        let sizes = json!({"sizes": {"small": {"binding": {"M": 16}, "interpreter_ms": 12.5}},
            "protocol": {"runs": 3, "warmup_ms": 0, "rep_ms": 20, "passes": "backward"}});
        let told = text("softmax", &[("v1", measured(&sizes))], Measured::Interpreted, None);
        assert!(told.ends_with("v1       small             12.50  the backward pass alone\n"), "{told}");
    }

    #[test]
    fn the_interpreters_time_is_held_against_nothing() {
        let sizes = json!({"sizes": {"small": {"binding": {"M": 16}, "interpreter_ms": 12.5}}});
        let told = text("softmax", &[("v1", measured(&sizes))], Measured::Interpreted, None);
        let expected = "\
softmax
Variant  Size   Interpreter (ms)  Note
───────  ─────  ────────────────  ────
v1       small             12.50
";
        assert_eq!(told, expected);
    }
}
