//! What is published of an op's kernels by a device that did not run them here: the figures that stand for exactly the kernels that are here.
//!
//! It does not know how it is told that a kernel is the same.

use std::collections::BTreeSet;

use super::selection::{Published, PublishedPlace, PublishedVariant, Selection};

/// A variant that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Why what was published of it is not of it as it is; none where it is.
    pub changed: Option<String>,
}

/// Returns what of the document `selection` that was published stands for the kernels that are here, in declared order.
#[must_use]
pub fn published(place: PublishedPlace, then: &Selection, kernels: &[Kernel]) -> Published {
    let standing: BTreeSet<&str> =
        kernels.iter().filter(|kernel| kernel.changed.is_none()).map(|kernel| kernel.name.as_str()).collect();
    let variants: Vec<PublishedVariant> = kernels.iter().map(|kernel| of_variant(then, kernel)).collect();
    let chosen = then.chosen.clone().filter(|chosen| standing.contains(chosen.as_str()));
    Published {
        why: chosen.is_none().then(|| why_none(then, kernels)),
        figures: then.figures.clone().filter(|_| chosen.is_some()),
        against_torch: then.against_torch.clone().filter(|_| chosen.is_some()),
        ties: then.ties.iter().filter(|tie| chosen.is_some() && standing.contains(tie.as_str())).cloned().collect(),
        sizes: sizes(then),
        place,
        chosen,
        variants,
    }
}

fn of_variant(then: &Selection, kernel: &Kernel) -> PublishedVariant {
    let name = kernel.name.clone();
    if let Some(why) = &kernel.changed {
        return PublishedVariant { name, figures: None, why: Some(why.clone()) };
    }
    let row = then.variants.iter().find(|row| row.name == kernel.name);
    let figures = row.and_then(|row| row.figures.clone());
    let why = figures.is_none().then(|| match row {
        Some(row) if row.status != "passed" => format!("{} there", row.status),
        _ => "not measured there".to_owned(),
    });
    PublishedVariant { name, figures, why }
}

fn why_none(then: &Selection, kernels: &[Kernel]) -> String {
    let Some(chosen) = &then.chosen else { return then.why.clone() };
    match kernels.iter().find(|kernel| kernel.name == *chosen).and_then(|kernel| kernel.changed.as_ref()) {
        Some(changed) => format!("{chosen}, chosen there, {changed}"),
        None => format!("{chosen}, chosen there, is declared no more"),
    }
}

/// Returns the sizes by how long torch takes.
fn sizes(then: &Selection) -> Vec<String> {
    let figures = then.variants.iter().filter_map(|row| row.figures.as_ref());
    let Some(figures) = figures.max_by_key(|figures| figures.sizes.len()) else { return Vec::new() };
    let mut sizes: Vec<(&String, f64)> =
        figures.sizes.iter().map(|(name, size)| (name, size.torch_ms.or(size.ms).unwrap_or(f64::INFINITY))).collect();
    sizes.sort_by(|a, b| a.1.total_cmp(&b.1));
    sizes.into_iter().map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use t2t_protocol::read::exactly;

    use super::*;

    fn then() -> Selection {
        let figures = |large: f64| -> Value {
            let size = |ms: f64, torch: f64| json!({"ms": ms, "torch_ms": torch, "speedup": torch / ms});
            json!({"final_ms": large, "torch_final_ms": 2.0, "speedup": 2.0 / large,
                "sizes": {"large": size(large, 3.0), "small": size(0.5, 1.0)}})
        };
        let row = |name: &str, ms: f64| json!({"name": name, "status": "passed", "figures": figures(ms)});
        let wrong = json!({"name": "v3", "status": "rejected"});
        exactly(&json!({"chosen": "v2", "why": "it has the lowest Final", "ties": ["v1"], "against_torch": "faster",
            "figures": figures(1.0), "variants": [row("v1", 1.01), row("v2", 1.0), wrong]}))
        .unwrap()
    }

    fn kernel(name: &str, changed: Option<&str>) -> Kernel {
        Kernel { name: name.to_owned(), changed: changed.map(str::to_owned) }
    }

    fn shown(kernels: &[Kernel]) -> Published {
        published(PublishedPlace::default(), &then(), kernels)
    }

    #[test]
    fn what_was_chosen_there_is_shown_with_its_figures() {
        let found = shown(&[kernel("v1", None), kernel("v2", None), kernel("v3", None)]);
        assert_eq!((found.chosen.as_deref(), found.why.as_deref()), (Some("v2"), None));
        assert_eq!(found.figures.as_ref().and_then(|figures| figures.speedup), Some(2.0));
        assert_eq!((found.ties, found.against_torch.as_deref()), (vec!["v1".to_owned()], Some("faster")));
        assert_eq!(found.sizes, ["small", "large"]);
        assert!(found.variants[..2].iter().all(|variant| variant.figures.is_some() && variant.why.is_none()));
        assert_eq!(found.variants[2].why.as_deref(), Some("rejected there"));
    }

    #[test]
    fn a_kernel_that_was_edited_since_has_no_figures() {
        let found = shown(&[kernel("v1", None), kernel("v2", Some("edited since"))]);
        assert_eq!((found.chosen, found.figures), (None, None));
        assert_eq!(found.why.as_deref(), Some("v2, chosen there, edited since"));
        assert!(found.ties.is_empty() && found.variants[0].figures.is_some());
        assert_eq!(found.variants[1].why.as_deref(), Some("edited since"));
        let tied = shown(&[kernel("v1", Some("edited since")), kernel("v2", None)]);
        assert!(tied.ties.is_empty(), "what was edited ties with nobody");
    }

    #[test]
    fn what_is_here_and_was_not_published_has_none_and_what_is_here_no_more_is_said() {
        let found = shown(&[kernel("v1", None), kernel("v5", Some("not published"))]);
        assert_eq!(found.why.as_deref(), Some("v2, chosen there, is declared no more"));
        assert_eq!(found.variants[1].why.as_deref(), Some("not published"));
    }
}
