//! The kinds of edges that an op is checked at.
//!
//! It does not know which inputs an edge has.

/// The kinds of edges that a check has of its own.
pub(crate) const EDGES: &[&str] = &[
    "empty",
    "one",
    "transposed",
    "strided",
    "padded",
    "large",
    "equal-rows",
    "special",
    "hidden",
    "broadcast",
    "blocks",
    "shapes",
    "literals",
    "drawn",
    "kwargs",
    "offset",
    "infinite-rows",
    "zeros",
    "cancelling",
    "denormal",
    "limits",
    "mixed",
    "together",
    "small",
    "gradients",
    "upstream",
];
