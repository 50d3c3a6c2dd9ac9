//! How the values of an input are drawn, as ops.yaml says it and the harness is told.
//!
//! It does not know which lengths the dims have, nor how anything is drawn.

use serde::{Deserialize, Serialize};

/// How the values of an input are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Init {
    /// Normally distributed.
    Normal {
        /// Its mean.
        mean: Quantity,
        /// Its standard deviation.
        std: Quantity,
    },
    /// Evenly distributed floats.
    Uniform {
        /// The least.
        low: Quantity,
        /// Above the greatest.
        high: Quantity,
    },
    /// Evenly distributed integers.
    Randint {
        /// The least.
        low: Quantity,
        /// One above the greatest.
        high: Quantity,
    },
    /// The same everywhere.
    Constant {
        /// The value.
        value: Quantity,
    },
    /// One everywhere.
    Ones,
    /// In each row the integers below its length, in random order.
    Permutation,
    /// In each row some of the integers between two, none twice, in random order.
    Distinct {
        /// The least.
        low: Quantity,
        /// One above the greatest.
        high: Quantity,
    },
    /// In each row integers in ascending order, of which the first is 0 and the last the total: where segments of so many rows begin and end.
    Offsets {
        /// The last of them.
        total: Quantity,
    },
    /// No two equal, as far as the dtype has so many.
    Unique,
    /// Some of the integers between two, no two of the whole tensor equal, in random order.
    UniqueBetween {
        /// The least.
        low: Quantity,
        /// One above the greatest.
        high: Quantity,
    },
    /// What another init draws, each row in ascending order.
    Sorted {
        /// What is sorted.
        of: Box<Init>,
    },
    /// True with this probability.
    Mask {
        /// The probability.
        p: Quantity,
    },
    /// Normal values on one side of the diagonal and on it, zeros on the other.
    Triangular {
        /// `lower` or `upper`.
        side: String,
    },
    /// Normal values in some square blocks, zeros in the others.
    BlockSparse {
        /// The side of a block.
        block: Quantity,
        /// The share of blocks that are not zero.
        density: Quantity,
    },
    /// A sum of so many outer products.
    LowRank {
        /// How many.
        rank: Quantity,
    },
    /// Matrices of this condition.
    IllConditioned {
        /// The largest singular value over the smallest.
        condition: Quantity,
    },
    /// A tensor of a safetensors file.
    File {
        /// The file, absolute in requests and relative to the workspace in keys.
        path: String,
        /// The tensor's name in it.
        name: String,
    },
}

impl Init {
    /// Returns what draws the values: that of a sorted init is the one that is sorted.
    #[must_use]
    pub fn drawn(&self) -> &Self {
        match self {
            Self::Sorted { of } => of.drawn(),
            other => other,
        }
    }

    /// Returns the file that holds the values, if one does.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self.drawn() {
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the same, to be changed.
    pub fn file_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Sorted { of } => of.file_mut(),
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// A number, or an expression of dims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Quantity {
    /// An integer.
    Whole(i64),
    /// A finite float.
    Number(f64),
    /// What this is at a size.
    Of(String),
}
