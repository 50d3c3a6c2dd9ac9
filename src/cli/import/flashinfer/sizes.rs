//! Which sizes an imported op has: those of workloads, those that were given, or usual ones.
//!
//! It does not know how they are written.

use std::collections::BTreeMap;

use super::definition::{Definition, Unfit};
use super::workloads::Workload;

/// The names of the sizes that are measured.
const NAMES: [&str; 3] = ["small", "medium", "large"];

/// Their lengths where none is given: no power of two first, so that a block is not full.
const USUAL: [u64; 3] = [5, 64, 1024];

/// How many elements all tensors of a workload have at most that is checked beside the smallest.
const CHECKED_ELEMENTS: u64 = 1 << 18;

/// How many workloads are checked at most.
const CHECKED: usize = 6;

/// Lengths of var axes.
pub(super) type Lengths = BTreeMap<String, u64>;

/// The sizes of an op, by name and in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Those that are measured.
    pub(super) bench: Vec<(String, Lengths)>,
    /// Those that are checked.
    pub(super) check: Vec<(String, Lengths)>,
}

impl Sizes {
    /// Returns the sizes of workloads, of which there is at least one: the smallest, the one in the middle and the largest are measured, the smaller ones are checked.
    pub(super) fn of_workloads(workloads: &[Workload], definition: &Definition) -> Self {
        let mut all: Vec<(u64, &Lengths)> =
            workloads.iter().map(|one| (elements(&one.axes, definition), &one.axes)).collect();
        all.sort();
        all.dedup();
        let last = all.len() - 1;
        let places: &[usize] = match last {
            0 => &[0],
            1 => &[0, 1],
            _ => &[0, last / 2, last],
        };
        let names = if places.len() == 2 { &["small", "large"][..] } else { &NAMES[..] };
        let bench = names.iter().zip(places).map(|(name, at)| ((*name).to_owned(), all[*at].1.clone())).collect();
        let few: Vec<&(u64, &Lengths)> = all.iter().filter(|(elements, _)| *elements <= CHECKED_ELEMENTS).collect();
        let few = if few.is_empty() { vec![&all[0]] } else { few };
        // Of many some at equal distances, the least and the most among them.
        let count = few.len().min(CHECKED);
        let chosen = (0..count).map(|at| few[if count == 1 { 0 } else { at * (few.len() - 1) / (count - 1) }]);
        let check = (1..).zip(chosen).map(|(number, (_, axes))| (format!("w{number}"), (*axes).clone())).collect();
        Self { bench, check }
    }

    /// Returns the sizes that `--axis M=7,64` gives to var axes, and usual ones of the others.
    pub(super) fn given(texts: &[String], definition: &Definition) -> Result<Self, Unfit> {
        let derived = definition.derived();
        let free: Vec<&str> = definition.vars().into_iter().filter(|axis| !derived.contains_key(axis)).collect();
        let mut lengths: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for text in texts {
            let unfit = |why: &str| {
                Unfit::new(
                    format!("`--axis {text}`: {why}"),
                    "write an axis of the definition and one to three lengths: `--axis M=7,64,1024`",
                )
            };
            let (name, told) = text.split_once('=').ok_or_else(|| unfit("it has no `=`"))?;
            let axis = free.iter().find(|axis| **axis == name).ok_or_else(|| {
                unfit(if derived.contains_key(name) {
                    "a constraint says it by other axes"
                } else if definition.axes.get(name).is_some() {
                    "it is a const axis"
                } else {
                    "the definition has no such axis"
                })
            })?;
            let read = told.split(',').map(|number| number.trim().parse::<u64>().ok().filter(|length| *length > 0));
            let read: Vec<u64> =
                read.collect::<Option<_>>().ok_or_else(|| unfit("a length is an integer of at least 1"))?;
            if read.len() > NAMES.len() {
                return Err(unfit("it has more than three lengths"));
            }
            if lengths.insert(axis, read).is_some() {
                return Err(unfit("the axis is given twice"));
            }
        }
        let most = lengths.values().map(Vec::len).max();
        if let Some((axis, _)) = lengths.iter().find(|(_, told)| told.len() > 1 && Some(told.len()) != most) {
            let hint = "give each axis as many lengths, or one for all sizes";
            return Err(Unfit::new(format!("`--axis {axis}=…` has fewer lengths than another"), hint));
        }
        let count = most.unwrap_or(NAMES.len());
        let names = if count == 2 { vec!["small", "large"] } else { NAMES[..count].to_vec() };
        let size = |name: &&str| {
            let at = names.iter().position(|other| other == name).unwrap_or_default();
            let usual = USUAL[NAMES.iter().position(|other| other == name).unwrap_or_default()];
            let length = |axis: &&str| match lengths.get(axis) {
                Some(told) => *told.get(at).unwrap_or(&told[0]),
                None => usual,
            };
            ((*name).to_owned(), free.iter().map(|axis| ((*axis).to_owned(), length(axis))).collect())
        };
        let bench: Vec<(String, Lengths)> = names.iter().map(size).collect();
        let check = vec![bench[0].clone()];
        Ok(Self { bench, check })
    }
}

/// Returns how many elements all inputs and outputs have together.
fn elements(axes: &Lengths, definition: &Definition) -> u64 {
    let fixed = definition.fixed();
    let length = |axis: &String| fixed.get(axis.as_str()).or_else(|| axes.get(axis)).copied().unwrap_or(1);
    let tensors = definition.inputs.0.iter().chain(&definition.outputs.0);
    let shapes = tensors.filter_map(|(_, tensor)| tensor.shape.as_ref());
    let counts = shapes.map(|shape| shape.iter().map(length).fold(1, u64::saturating_mul));
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn definition() -> Definition {
        let text = r#"{"name": "rows", "axes": {"M": {"type": "var"}, "E": {"type": "var"}, "N": {"type": "const", "value": 1024}},
            "inputs": {"x": {"shape": ["M", "N"], "dtype": "float32"}, "e": {"shape": ["E"], "dtype": "int32"}},
            "outputs": {"y": {"shape": ["M", "N"], "dtype": "float32"}}, "constraints": ["E == M + 1"], "reference": ""}"#;
        Definition::read(text.as_bytes()).unwrap()
    }

    fn told(sizes: &[(String, Lengths)]) -> String {
        let one = |(name, lengths): &(String, Lengths)| {
            let lengths: Vec<String> = lengths.iter().map(|(axis, length)| format!("{axis}{length}")).collect();
            format!("{name}:{}", lengths.join("+"))
        };
        sizes.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn of_workloads_the_least_and_the_most_are_measured_and_the_small_ones_are_checked() {
        let of = |rows: &[u64]| {
            let workload = |rows: &u64| Workload {
                line: 1,
                axes: [("M".to_owned(), *rows), ("E".to_owned(), rows + 1)].into(),
                scalars: Map::new(),
            };
            let sizes = Sizes::of_workloads(&rows.iter().map(workload).collect::<Vec<_>>(), &definition());
            format!("{} | {}", told(&sizes.bench), told(&sizes.check))
        };
        assert_eq!(of(&[7]), "small:E8+M7 | w1:E8+M7");
        assert_eq!(of(&[7, 7, 1]), "small:E2+M1 large:E8+M7 | w1:E2+M1 w2:E8+M7");
        assert_eq!(of(&[14521, 1, 539]), "small:E2+M1 medium:E540+M539 large:E14522+M14521 | w1:E2+M1");
        assert_eq!(of(&[5000]), "small:E5001+M5000 | w1:E5001+M5000");
        let many: Vec<u64> = (1..=40).collect();
        let checked = of(&many);
        assert!(checked.ends_with("w1:E2+M1 w2:E9+M8 w3:E17+M16 w4:E25+M24 w5:E33+M32 w6:E41+M40"), "{checked}");
    }

    #[test]
    fn axes_have_the_lengths_that_are_given_or_usual_ones() {
        let given = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            Sizes::given(&texts, &definition()).map(|sizes| told(&sizes.bench))
        };
        assert_eq!(given(&[]).unwrap(), "small:M5 medium:M64 large:M1024");
        assert_eq!(given(&["M=7"]).unwrap(), "small:M7");
        assert_eq!(given(&["M=7,9"]).unwrap(), "small:M7 large:M9");
        for (text, said) in [
            ("M", "it has no `=`"),
            ("M=0", "at least 1"),
            ("M=1,2,3,4", "more than three"),
            ("N=4", "it is a const axis"),
            ("E=4", "a constraint says it"),
            ("Q=4", "the definition has no such axis"),
        ] {
            let message = given(&[text]).unwrap_err().message;
            assert!(message.contains(said), "{text}: {message}");
        }
        assert!(given(&["M=1", "M=2"]).unwrap_err().message.contains("given twice"));
    }
}
