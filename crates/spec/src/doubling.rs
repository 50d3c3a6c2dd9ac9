//! The sizes of a sweep: an op's free lengths in powers of two, from its smallest size to its largest.
//!
//! It does not know what is measured at them.

use std::collections::BTreeMap;

use super::Binding;

/// How often the lengths of an op with one size are halved for the first size of its sweep.
const HALVINGS: u32 = 4;

/// Returns the sizes of the sweep over `sizes`, from the smallest on. Dims that have one length in all of two or more sizes keep it; the others
/// grow together.
#[must_use]
pub fn doubled(sizes: &BTreeMap<String, Binding>) -> Vec<Binding> {
    let mut bindings: Vec<&Binding> = sizes.values().filter(|size| !size.is_empty()).collect();
    bindings.sort_by_key(|size| size.values().product::<u64>());
    bindings.dedup();
    let (Some(smallest), Some(largest)) = (bindings.first(), bindings.last()) else {
        return sizes.values().next().cloned().into_iter().collect();
    };
    let has_one = bindings.len() == 1;
    let is_free = |dim: &String| has_one || bindings.iter().any(|size| size[dim] != smallest[dim]);
    let first = |length: u64| if has_one { (length >> HALVINGS).max(1) } else { length };
    let at = |step: u32| -> Binding {
        let length = |(dim, length): (&String, &u64)| {
            let grown = first(*length).next_power_of_two().saturating_mul(1 << step);
            (dim.clone(), if is_free(dim) { grown } else { *length })
        };
        smallest.iter().map(length).collect()
    };
    let fits = |size: &Binding| size.iter().all(|(dim, length)| !is_free(dim) || *length <= largest[dim]);
    let all: Vec<Binding> = (0..32).map(at).take_while(fits).collect();
    if all.is_empty() { vec![(*smallest).clone()] } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(sizes: &[&[(&str, u64)]]) -> BTreeMap<String, Binding> {
        let binding = |size: &&[(&str, u64)]| size.iter().map(|(dim, length)| ((*dim).to_owned(), *length)).collect();
        sizes.iter().enumerate().map(|(number, size)| (number.to_string(), binding(size))).collect()
    }

    fn lengths(found: &[Binding], dim: &str) -> Vec<u64> {
        found.iter().map(|size| size[dim]).collect()
    }

    #[test]
    fn free_lengths_double_from_the_smallest_size_to_the_largest_and_fixed_ones_stay() {
        let found = doubled(&sizes(&[&[("S", 4096), ("D", 48)], &[("S", 256), ("D", 48)], &[("S", 1024), ("D", 48)]]));
        assert_eq!(lengths(&found, "S"), [256, 512, 1024, 2048, 4096]);
        assert_eq!(lengths(&found, "D"), [48; 5]);
    }

    #[test]
    fn lengths_that_are_no_powers_of_two_begin_at_the_next_one() {
        assert_eq!(lengths(&doubled(&sizes(&[&[("M", 100)], &[("M", 1000)]])), "M"), [128, 256, 512]);
    }

    #[test]
    fn one_size_is_swept_from_a_sixteenth_of_its_lengths() {
        assert_eq!(lengths(&doubled(&sizes(&[&[("M", 16), ("N", 64)]])), "N"), [4, 8, 16, 32, 64]);
        assert_eq!(lengths(&doubled(&sizes(&[&[("M", 4), ("N", 64)]])), "M"), [1, 2, 4]);
    }

    #[test]
    fn sizes_too_close_for_a_power_of_two_leave_the_smallest() {
        assert_eq!(lengths(&doubled(&sizes(&[&[("M", 65)], &[("M", 70)]])), "M"), [65]);
    }

    #[test]
    fn an_op_without_dims_has_one_size() {
        assert_eq!(doubled(&sizes(&[&[]])), vec![Binding::new()]);
    }
}
