//! The speedups of a device's results as a picture: a group of bars for each op and size, the selected kernel beside torch and `torch.compile`.
//!
//! It knows documents and no file.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use t2t_protocol::{Baseline, Bench, Figure};

use crate::rank::Selection;
use crate::render::sweep::Undrawn;

/// Width and height of the picture.
const SIZE: (u32, u32) = (960, 420);

/// The colors of the bars: blue and orange differ for those, too, who cannot tell red from green (Okabe and Ito, 2008).
const KERNEL: RGBColor = RGBColor(0, 114, 178);
const COMPILED: RGBColor = RGBColor(230, 159, 0);

/// The width of a bar, and the room between two ops. A size with both its bars is one wide.
const BAR: f64 = 0.38;
const APART: f64 = 0.6;

/// The documents of an op.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// What was selected.
    pub selection: Selection,
    /// The bench of the selected variant.
    pub bench: Bench,
    /// Torch's figures.
    pub baseline: Option<Baseline>,
}

/// The speedups of an op.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Op {
    /// Its name.
    pub name: String,
    /// The selected variant.
    pub variant: String,
    /// Its sizes, small ones first.
    pub sizes: Vec<Size>,
}

/// The speedups at a size, as multiples of what torch reaches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Size {
    /// Its name.
    pub name: String,
    /// That of the selected kernel.
    pub kernel: f64,
    /// That of `torch.compile`, where it was measured.
    pub compiled: Option<f64>,
}

/// Returns the speedups of an op; None where no kernel of it was selected, or none was measured on a device.
#[must_use]
pub fn op(name: &str, documents: &Documents) -> Option<Op> {
    let variant = documents.selection.chosen.clone().filter(|_| !documents.selection.interpreter)?;
    let mut sizes: Vec<_> = documents.bench.sizes.iter().collect();
    sizes.sort_by_key(|(_, size)| size.binding.values().product::<u64>());
    let sizes = sizes.into_iter().filter_map(|(size, figures)| {
        let kernel = ratio(figures.torch.as_ref(), figures.variant.as_ref())?;
        let baseline = documents.baseline.as_ref().and_then(|baseline| baseline.sizes.get(size));
        let compiled = baseline.and_then(|size| ratio(size.torch.as_ref()?.as_ref(), size.compiled.as_ref()?.as_ref()));
        Some(Size { name: size.clone(), kernel, compiled })
    });
    let sizes: Vec<Size> = sizes.collect();
    (!sizes.is_empty()).then(|| Op { name: name.to_owned(), variant, sizes })
}

/// Returns how many times as fast `own` is as torch.
fn ratio(torch: Option<&Figure>, own: Option<&Figure>) -> Option<f64> {
    let (torch, own) = (torch?.mean, own?.mean);
    (own > 0.0 && torch > 0.0).then(|| torch / own)
}

/// Returns the speedups of `ops` as an SVG under this `title`.
///
/// # Errors
///
/// Fails where nothing can be drawn.
pub fn svg(title: &str, ops: &[Op]) -> Result<String, Undrawn> {
    let mut text = String::new();
    draw(title, ops, SVGBackend::with_string(&mut text, SIZE)).map_err(|error| Undrawn::of(&error.to_string()))?;
    Ok(text)
}

fn draw(title: &str, ops: &[Op], backend: SVGBackend<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let all = || ops.iter().flat_map(|op| &op.sizes);
    let highest = all().flat_map(|size| [Some(size.kernel), size.compiled]).flatten().fold(1.0, f64::max);
    let places = places(ops);
    let end = places.iter().flatten().copied().fold(0.0, f64::max) + 1.0;
    let area = backend.into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(16)
        .x_label_area_size(52)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..end, 0.0..highest * 1.12)?;
    chart.configure_mesh().disable_x_mesh().max_light_lines(0).x_labels(0).y_desc("times as fast as torch").draw()?;
    let (centered, small) = (Pos::new(HPos::Center, VPos::Bottom), ("sans-serif", 11).into_font().color(&BLACK));
    let above = small.pos(centered);
    for (op, at) in ops.iter().zip(&places) {
        for (size, left) in op.sizes.iter().zip(at) {
            let bar = |left: f64, value: f64, color: RGBColor| {
                Rectangle::new([(left, 0.0), (left + BAR, value)], color.filled())
            };
            chart.draw_series([bar(*left, size.kernel, KERNEL)])?;
            // The other's number would stand on this one's.
            let number = format!("{:.2}", size.kernel);
            chart.draw_series([Text::new(number, (left + BAR / 2.0, size.kernel + highest * 0.015), above.clone())])?;
            chart.draw_series(size.compiled.map(|compiled| bar(left + BAR, compiled, COMPILED)))?;
        }
    }
    chart.draw_series([PathElement::new([(0.0, 1.0), (end, 1.0)], BLACK.stroke_width(1))])?;
    let style = |size: u32| ("sans-serif", size).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
    for (op, at) in ops.iter().zip(&places) {
        let bottom = |x: f64, down: i32| {
            let (x, y) = chart.backend_coord(&(x, 0.0));
            (x, y + down)
        };
        for (size, left) in op.sizes.iter().zip(at) {
            area.draw(&Text::new(size.name.clone(), bottom(left + BAR, 4), style(11)))?;
        }
        let middle = (at.first().unwrap_or(&0.0) + at.last().unwrap_or(&0.0)) / 2.0 + BAR;
        area.draw(&Text::new(op.name.clone(), bottom(middle, 18), style(15)))?;
        area.draw(&Text::new(op.variant.clone(), bottom(middle, 35), style(11)))?;
    }
    legend(&area)?;
    area.present()?;
    Ok(())
}

/// Returns where the bars of each size begin, op by op.
fn places(ops: &[Op]) -> Vec<Vec<f64>> {
    let mut next = APART / 2.0;
    let mut places = Vec::new();
    for op in ops {
        let mut at = Vec::new();
        for _ in &op.sizes {
            at.push(next);
            next += 1.0;
        }
        next += APART;
        places.push(at);
    }
    places
}

fn legend(area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Result<(), Box<dyn std::error::Error>> {
    let style = ("sans-serif", 12).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
    for (left, color, text) in [(90, KERNEL, "the selected kernel"), (240, COMPILED, "torch.compile")] {
        area.draw(&Rectangle::new([(left, 50), (left + 12, 62)], color.filled()))?;
        area.draw(&Text::new(text, (left + 18, 56), style.clone()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use t2t_protocol::read::exactly;

    use super::*;

    fn figure(mean: f64) -> Value {
        json!({"runs": [], "mean": mean, "median": mean, "p20": mean, "p80": mean, "cv": 0.0, "repeated": 0})
    }

    fn documents(kernel: [f64; 2], compiled: Option<f64>) -> Documents {
        let mut made = Documents::default();
        made.selection.chosen = Some("v2_tiling".to_owned());
        for (name, length, own) in [("large", 4096, kernel[1]), ("small", 256, kernel[0])] {
            let size = json!({"binding": {"M": length}, "dtype": "float32", "config": null, "variant": figure(own), "torch": figure(1.0)});
            made.bench.sizes.insert(name.to_owned(), exactly(&size).unwrap());
        }
        made.baseline = compiled.map(|own| {
            let size =
                json!({"binding": {"M": 256}, "dtype": "float32", "torch": figure(1.0), "torch.compile": figure(own)});
            Baseline { sizes: BTreeMap::from([("small".to_owned(), exactly(&size).unwrap())]), ..Baseline::default() }
        });
        made
    }

    #[test]
    fn speedups_are_multiples_of_torch_and_small_sizes_come_first() {
        let found = op("gelu", &documents([2.0, 0.25], Some(0.5))).unwrap();
        let size = |name: &str, kernel, compiled| Size { name: name.to_owned(), kernel, compiled };
        assert_eq!(found.sizes, [size("small", 0.5, Some(2.0)), size("large", 4.0, None)]);
        assert_eq!((found.name.as_str(), found.variant.as_str()), ("gelu", "v2_tiling"));
    }

    #[test]
    fn an_op_without_a_selected_kernel_or_without_figures_has_none() {
        let mut none = documents([1.0, 1.0], None);
        none.selection.chosen = None;
        assert_eq!(op("gelu", &none), None);
        let mut interpreted = documents([1.0, 1.0], None);
        interpreted.selection.interpreter = true;
        assert_eq!(op("gelu", &interpreted), None, "those times compare nothing");
        assert_eq!(op("gelu", &Documents { bench: Bench::default(), ..documents([1.0, 1.0], None) }), None);
    }

    #[test]
    fn the_picture_has_a_bar_for_each_figure_and_the_names_of_ops_sizes_and_variants() {
        let ops = [
            op("gelu", &documents([2.0, 0.25], Some(0.5))).unwrap(),
            op("<add>", &documents([1.0, 1.0], None)).unwrap(),
        ];
        let picture = svg("NVIDIA H200", &ops).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        for word in ["gelu", "&lt;add&gt;", "v2_tiling", "small", "large", "NVIDIA H200", "torch.compile", "4.00"] {
            assert!(picture.contains(word), "{word}");
        }
        assert!(!picture.contains("<add>"));
        let bars = |color: &str| picture.matches(&format!("fill=\"{color}\"")).count();
        // One more of each is in the legend.
        assert_eq!((bars("#0072B2"), bars("#E69F00")), (4 + 1, 1 + 1));
    }
}
