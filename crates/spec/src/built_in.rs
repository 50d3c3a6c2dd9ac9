//! The sizes of the built-in CPU profile, made to fit an op: they know nothing of it, and a length that it does not take would have no kernel of it pass.
//!
//! It does not know which lengths the op's reference refuses. It goes by the lengths and numbers that its entry declares.

use std::collections::BTreeMap;

use super::Binding;
use super::expression::Expression;

/// Largest number of which lengths are made multiples: a larger one costs the interpreter more than it may be worth.
const MOST: u64 = 128;

/// Longest that a length grows so that a shape has elements.
const LONGEST: u64 = 1 << 12;

/// What an op's entry says of the lengths that it takes.
#[derive(Debug, Default)]
pub(super) struct LengthHints {
    /// Its own sizes, checked or measured.
    pub(crate) sizes: Vec<Binding>,
    /// The lengths of its shapes.
    pub(crate) shapes: Vec<Expression>,
    /// The whole numbers among its kwargs.
    pub(crate) numbers: Vec<u64>,
}

/// Returns `sizes` with lengths of the `free` dims rounded up to multiples that all own sizes are of, and raised until no shape is empty.
pub(super) fn fitted(
    sizes: BTreeMap<String, Binding>,
    free: &[String],
    told: &LengthHints,
) -> BTreeMap<String, Binding> {
    let steps: Vec<(&String, u64)> = free.iter().map(|dim| (dim, told.step(dim))).collect();
    let fitted = |mut size: Binding| {
        for (dim, step) in &steps {
            if let Some(length) = size.get_mut(*dim) {
                *length = length.next_multiple_of(*step);
            }
        }
        raised(&mut size, free, &told.shapes);
        size
    };
    sizes.into_iter().map(|(name, size)| (name, fitted(size))).collect()
}

impl LengthHints {
    /// Returns of what all own lengths of a dim are multiples for a reason: a power of two where some of them are none, and a number of the kwargs. 1 where nothing says so.
    fn step(&self, dim: &str) -> u64 {
        let own: Vec<u64> =
            self.sizes.iter().filter_map(|size| size.get(dim)).copied().filter(|own| *own > 0).collect();
        let common = own.iter().copied().fold(0, gcd);
        let by_chance = own.iter().all(|length| length.is_power_of_two());
        let of_sizes = if by_chance { 1 } else { 1 << common.trailing_zeros().min(MOST.ilog2()) };
        let divides = |number: &u64| (2..=MOST).contains(number) && common > 0 && common % number == 0;
        let of_numbers = self.numbers.iter().copied().filter(divides).max().unwrap_or(1);
        let both = of_sizes / gcd(of_sizes, of_numbers) * of_numbers;
        if both > MOST { of_sizes.max(of_numbers) } else { both }
    }
}

/// Doubles the free dims of each shape that would be empty, or have no length at all, as far as that helps.
fn raised(size: &mut Binding, free: &[String], shapes: &[Expression]) {
    for shape in shapes {
        let own: Vec<&str> = shape.dims().into_iter().filter(|dim| free.iter().any(|one| one == dim)).collect();
        let is_empty = |size: &Binding| shape.value(size).is_none_or(|length| length < 1);
        let mut grown = size.clone();
        while is_empty(&grown) && !own.is_empty() && own.iter().all(|dim| grown[*dim] < LONGEST) {
            for dim in &own {
                *grown.get_mut(*dim).expect("each free dim has a length") *= 2;
            }
        }
        if !is_empty(&grown) {
            *size = grown;
        }
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(lengths: &[(&str, u64)]) -> Binding {
        lengths.iter().map(|(dim, length)| ((*dim).to_owned(), *length)).collect()
    }

    fn small(told: &LengthHints) -> Binding {
        let built_in = BTreeMap::from([("small".to_owned(), size(&[("M", 16), ("N", 16)]))]);
        fitted(built_in, &["M".to_owned(), "N".to_owned()], told).remove("small").unwrap()
    }

    fn told(sizes: &[Binding], shapes: &[&str], numbers: &[u64]) -> LengthHints {
        let shapes = shapes.iter().map(|shape| Expression::parse(shape).unwrap()).collect();
        LengthHints { sizes: sizes.to_vec(), shapes, numbers: numbers.to_vec() }
    }

    #[test]
    fn lengths_are_multiples_of_what_own_ones_are_unless_those_are_powers_of_two_by_chance() {
        let odd = [size(&[("M", 9), ("N", 96)]), size(&[("M", 16), ("N", 4096)])];
        assert_eq!(small(&told(&odd, &[], &[])), size(&[("M", 16), ("N", 32)]));
        let even = [size(&[("M", 64), ("N", 1024)]), size(&[("M", 128), ("N", 4096)])];
        assert_eq!(small(&told(&even, &[], &[])), size(&[("M", 16), ("N", 16)]));
        let large = [size(&[("M", 100), ("N", 3000)])];
        assert_eq!(small(&told(&large, &[], &[])), size(&[("M", 16), ("N", 16)]));
        assert_eq!(small(&told(&[], &[], &[64])), size(&[("M", 16), ("N", 16)]));
    }

    #[test]
    fn a_number_of_the_kwargs_that_divides_all_own_lengths_divides_these() {
        let own = [size(&[("M", 64), ("N", 1024)]), size(&[("M", 96), ("N", 4096)])];
        assert_eq!(small(&told(&own, &[], &[128, 7])), size(&[("M", 32), ("N", 128)]));
        assert_eq!(small(&told(&own, &[], &[256])), size(&[("M", 32), ("N", 16)]));
    }

    #[test]
    fn dims_grow_until_no_shape_is_empty() {
        assert_eq!(small(&told(&[], &["N // 100", "M"], &[])), size(&[("M", 16), ("N", 128)]));
        assert_eq!(small(&told(&[], &["N - 9999"], &[])), size(&[("M", 16), ("N", 16)]), "what cannot be helped stays");
    }
}
