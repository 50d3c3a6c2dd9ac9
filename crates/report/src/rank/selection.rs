//! The document `selection`: the chosen variant, why, its figures, and how every variant of the op stands.
//!
//! docs/reference/log-templates.md says what each means. It does not know how one is chosen. Times are in milliseconds.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use t2t_protocol::MeasuredDevice;

/// The document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// The version of the document.
    pub(crate) version: u32,
    /// Whether the figures compare kernels.
    pub(crate) comparable: bool,
    /// Whether they are those of Triton's interpreter.
    pub(crate) interpreter: bool,
    /// What a reader must know of them.
    pub(crate) note: Option<String>,
    /// What ran them.
    pub(crate) device: Option<MeasuredDevice>,
    /// The chosen variant.
    pub chosen: Option<String>,
    /// Why, in words.
    pub(crate) why: String,
    /// Those that tie with the fastest, without the chosen one.
    pub(crate) ties: Vec<String>,
    /// The one with the lowest Final.
    pub(crate) fastest: Option<String>,
    /// Whether the speedup or its interval reaches 1.
    pub(crate) success: bool,
    /// `faster`, `ties` or `slower`.
    pub(crate) against_torch: Option<String>,
    /// The figures of the chosen one; none on the interpreter.
    pub(crate) figures: Option<SelectedFigures>,
    /// Of the chosen one, on the interpreter: size → how long it took for one call.
    pub(crate) interpreter_ms: Option<BTreeMap<String, Option<f64>>>,
    /// Each variant against the first declared one.
    pub(crate) against: Option<AgainstFirst>,
    /// All variants, in declared order.
    pub(crate) variants: Vec<VariantRow>,
    /// How many ended how.
    pub(crate) counts: Counts,
    /// On the interpreter: what is published by a device of these kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<Published>,
}

impl Selection {
    /// Returns the selection with what is published by a device of its kernels.
    #[must_use]
    pub fn beside(self, published: Option<Published>) -> Self {
        Self { published, ..self }
    }

    /// Returns the variants of which figures are published that stand for the kernels that are here.
    #[must_use]
    pub fn published_variants(&self) -> BTreeSet<&str> {
        let rows = self.published.iter().flat_map(|published| &published.variants);
        rows.filter(|row| row.figures.is_some()).map(|row| row.name.as_str()).collect()
    }
}

/// What was measured of a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SelectedFigures {
    /// The mean of the sizes' figures.
    pub(crate) final_ms: f64,
    /// Torch's.
    pub(crate) torch_final_ms: Option<f64>,
    /// Their ratio.
    pub(crate) speedup: Option<f64>,
    /// Its 95 % interval.
    pub(crate) interval: Option<[f64; 2]>,
    /// The geometric mean of the ratios by size.
    pub(crate) geomean_speedup: Option<f64>,
    /// The sizes.
    pub(crate) sizes: BTreeMap<String, SelectedSize>,
    /// Whether a figure cannot be relied on.
    pub(crate) unstable: bool,
    /// Why.
    pub(crate) why_unstable: Option<String>,
}

/// What was measured of a variant at one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SelectedSize {
    /// Its own time.
    pub(crate) ms: Option<f64>,
    /// Torch's.
    pub(crate) torch_ms: Option<f64>,
    /// Their ratio.
    pub(crate) speedup: Option<f64>,
    /// Its 95 % interval.
    pub(crate) interval: Option<[f64; 2]>,
    /// Whether it cannot be relied on.
    pub(crate) unstable: bool,
}

/// Each variant against the first declared one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgainstFirst {
    /// The first declared one.
    pub(crate) base: String,
    /// Those of the others that passed and were measured.
    pub(crate) variants: Vec<Gains>,
}

/// How many times as long the first takes as another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Gains {
    /// The other.
    pub(crate) name: String,
    /// By size.
    pub(crate) sizes: BTreeMap<String, Gain>,
    /// Of the Finals.
    #[serde(rename = "final")]
    pub(crate) whole: Gain,
}

/// One ratio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Gain {
    /// The first one's time over the other's.
    pub(crate) ratio: f64,
    /// Its 95 % interval.
    pub(crate) interval: Option<[f64; 2]>,
    /// Whether it cannot be relied on.
    pub(crate) unstable: bool,
}

/// How a variant stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VariantRow {
    /// Its name.
    pub(crate) name: String,
    /// As in `passed`.
    pub(crate) status: String,
    /// The mark that logs show.
    pub(crate) mark: String,
    /// The class of a rejection.
    pub(crate) class: Option<String>,
    /// Why, where it is neither passed nor rejected, or was rejected by its bench.
    pub(crate) reason: Option<String>,
    /// How many attempts at it were judged.
    pub(crate) attempts: usize,
    /// How many cases ended how.
    pub(crate) cases: BTreeMap<String, usize>,
    /// Its figures.
    pub(crate) figures: Option<SelectedFigures>,
    /// Size → how long the interpreter took for one call.
    pub(crate) interpreter_ms: Option<BTreeMap<String, Option<f64>>>,
    /// What torch computed for it, as the op allows.
    pub(crate) allowed: Vec<String>,
}

/// How many variants ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Counts {
    /// All.
    pub(crate) variants: usize,
    /// Those that are right.
    pub(crate) passed: usize,
    /// Those that are wrong.
    pub(crate) rejected: usize,
    /// Those of which nothing is known.
    pub(crate) not_judged: usize,
    /// Those that were not reached.
    pub(crate) skipped: usize,
    /// Those that the machine failed.
    pub(crate) lost: usize,
}

/// What is published of an op by a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Published {
    /// The device, and when.
    pub(crate) place: PublishedPlace,
    /// The variant that was chosen there; none where its figures do not stand.
    pub(crate) chosen: Option<String>,
    /// Why there is none.
    pub(crate) why: Option<String>,
    /// Its figures.
    pub(crate) figures: Option<SelectedFigures>,
    /// `faster`, `ties` or `slower`.
    pub(crate) against_torch: Option<String>,
    /// Those that tie with it, of which figures stand.
    pub(crate) ties: Vec<String>,
    /// The sizes, the one first whose calls are the shortest.
    pub(crate) sizes: Vec<String>,
    /// The variants, in declared order.
    pub(crate) variants: Vec<PublishedVariant>,
}

/// By which device figures were published, and of which commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishedPlace {
    /// Its id, as in `nvidia-h200`.
    pub device: String,
    /// Its name as the driver gives it, or its id.
    pub name: String,
    /// The commit, shortened.
    pub revision: Option<String>,
    /// Whether files differed from it.
    pub dirty: bool,
}

/// What is published of a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PublishedVariant {
    /// Its name.
    pub(crate) name: String,
    /// Its figures, where they stand.
    pub(crate) figures: Option<SelectedFigures>,
    /// Why there are none.
    pub(crate) why: Option<String>,
}
