//! How the values of an input are drawn.
//!
//! It does not know which lengths the dims have, nor whether files are there.

use super::expression::Expression;
use super::names;
use super::node::{Entry, Node, Value};
use super::reader::Reader;
use super::{Init, Quantity};

impl Reader<'_, '_> {
    /// Returns the init in `node` of the input `entry`; without a node the default.
    pub(crate) fn init(&mut self, entry: &Entry, node: Option<&Node>) -> Option<Init> {
        let Some(node) = node else { return named_init("normal") };
        if let Some(word) = node.text() {
            return named_init(word);
        }
        match node.entries() {
            [only] => self.distribution(entry, only),
            several => {
                let message = format!("the init of input `{}` has {} keys", entry.key, several.len());
                self.fault(node.place, &message, "name one distribution, as in `init: {uniform: [0.0, 1.0]}`");
                None
            }
        }
    }

    fn distribution(&mut self, entry: &Entry, only: &Entry) -> Option<Init> {
        let pair = || match only.node.items() {
            [first, second] => Some((quantity(first)?, quantity(second)?)),
            _ => None,
        };
        match only.key.as_str() {
            "normal" => {
                let (mean, std) = pair().map(|(mean, std)| (float(mean), float(std)))?;
                let is_negative = matches!(std, Quantity::Number(std) if std < 0.0);
                self.fits(entry, only, is_negative, "has a standard deviation below 0", "write `[mean, std]`");
                Some(Init::Normal { mean, std })
            }
            "uniform" => {
                let (low, high) = pair().map(|(low, high)| (float(low), float(high)))?;
                let is_empty = matches!((&low, &high), (Quantity::Number(low), Quantity::Number(high)) if low > high);
                self.fits(entry, only, is_empty, "draws from an empty range", "write `[low, high]`");
                Some(Init::Uniform { low, high })
            }
            "randint" => {
                let (low, high) = pair()?;
                self.integers_fit(entry, only, &low, &high);
                Some(Init::Randint { low, high })
            }
            "distinct" => {
                let (low, high) = pair()?;
                self.integers_fit(entry, only, &low, &high);
                Some(Init::Distinct { low, high })
            }
            "unique" => {
                let (low, high) = pair()?;
                self.integers_fit(entry, only, &low, &high);
                Some(Init::UniqueBetween { low, high })
            }
            "offsets" => {
                let total = quantity(&only.node)?;
                self.total_fits(entry, only, &total);
                Some(Init::Offsets { total })
            }
            "constant" => quantity(&only.node).map(|value| Init::Constant { value }),
            "sorted" => {
                let of = self.init(entry, Some(only.node.get("of")?))?;
                Some(Init::Sorted { of: Box::new(of) })
            }
            "mask" => self.share(entry, only, &only.node).map(|p| Init::Mask { p }),
            "triangular" => only.node.text().map(|side| Init::Triangular { side: side.to_owned() }),
            "block_sparse" => self.block_sparse(entry, only),
            "low_rank" => self.at_least_one(entry, only, &only.node).map(|rank| Init::LowRank { rank }),
            "ill_conditioned" => {
                self.at_least_one(entry, only, &only.node).map(|condition| Init::IllConditioned { condition })
            }
            "file" => {
                let (path, name) = names::stored(only.node.text()?)?;
                Some(Init::File { path: path.to_owned(), name: name.to_owned() })
            }
            _ => None,
        }
    }

    fn block_sparse(&mut self, entry: &Entry, only: &Entry) -> Option<Init> {
        let block = match only.node.get("block") {
            Some(node) => self.at_least_one(entry, only, node)?,
            None => Quantity::Whole(16),
        };
        let density = match only.node.get("density") {
            Some(node) => self.share(entry, only, node)?,
            None => Quantity::Number(0.25),
        };
        Some(Init::BlockSparse { block, density })
    }

    /// Reads a number from 0 to 1.
    fn share(&mut self, entry: &Entry, only: &Entry, node: &Node) -> Option<Quantity> {
        let found = float(quantity(node)?);
        if let Quantity::Number(number) = found
            && !(0.0..=1.0).contains(&number)
        {
            let message = format!("the {} of input `{}` is no share: `{number}`", only.key, entry.key);
            self.fault(node.place, &message, "write a number from 0 to 1");
        }
        Some(found)
    }

    fn at_least_one(&mut self, entry: &Entry, only: &Entry, node: &Node) -> Option<Quantity> {
        let found = quantity(node)?;
        if node.number().is_some_and(|number| number < 1.0) {
            let message = format!("the {} of input `{}` is below 1", only.key, entry.key);
            self.fault(node.place, &message, "write a number of at least 1");
        }
        Some(found)
    }

    fn fits(&mut self, entry: &Entry, only: &Entry, is_wrong: bool, what: &str, hint: &str) {
        if is_wrong {
            self.fault(only.node.place, &format!("the {} of input `{}` {what}", only.key, entry.key), hint);
        }
    }

    fn integers_fit(&mut self, entry: &Entry, only: &Entry, low: &Quantity, high: &Quantity) {
        let empty = matches!((low, high), (Quantity::Whole(low), Quantity::Whole(high)) if low >= high);
        let float = [low, high].iter().any(|bound| matches!(bound, Quantity::Number(_)));
        let what = if float { "takes integers" } else { "draws from an empty range" };
        self.fits(entry, only, empty || float, what, "write `[low, high]`; high itself is never drawn");
    }

    fn total_fits(&mut self, entry: &Entry, only: &Entry, total: &Quantity) {
        let is_count = match total {
            Quantity::Whole(whole) => *whole >= 0,
            Quantity::Number(_) => false,
            Quantity::Of(_) => true,
        };
        if !is_count {
            let message = format!("the last offset of input `{}` is no number of rows", entry.key);
            let hint = "write the dim that the offsets divide, as in `init: {offsets: T}`";
            self.fault(only.node.place, &message, hint);
        }
    }
}

fn named_init(word: &str) -> Option<Init> {
    let (zero, one) = (Quantity::Number(0.0), Quantity::Number(1.0));
    match word {
        "normal" => Some(Init::Normal { mean: zero, std: one }),
        "uniform" => Some(Init::Uniform { low: zero, high: one }),
        "ones" => Some(Init::Ones),
        "permutation" => Some(Init::Permutation),
        "unique" => Some(Init::Unique),
        _ => None,
    }
}

fn quantity(node: &Node) -> Option<Quantity> {
    match &node.value {
        Value::Whole(whole) => Some(Quantity::Whole(*whole)),
        Value::Number(number) => Some(Quantity::Number(*number)),
        Value::Text(text) => Expression::parse(text).map(|found| Quantity::Of(found.to_string())),
        _ => None,
    }
}

/// Returns whether an init draws floats alone.
pub(super) fn is_float(init: &Init) -> bool {
    matches!(
        init.drawn(),
        Init::Normal { .. } | Init::Uniform { .. } | Init::LowRank { .. } | Init::IllConditioned { .. }
    )
}

/// Returns how many dims an init needs.
pub(super) fn rank_needed(init: &Init) -> usize {
    match init {
        Init::Triangular { .. } | Init::BlockSparse { .. } | Init::LowRank { .. } | Init::IllConditioned { .. } => 2,
        Init::Permutation | Init::Distinct { .. } | Init::Offsets { .. } => 1,
        Init::Sorted { of } => rank_needed(of).max(1),
        _ => 0,
    }
}

/// Returns the numbers of an init.
pub(super) fn quantities(init: &Init) -> Vec<&Quantity> {
    match init {
        Init::Normal { mean: first, std: second }
        | Init::Uniform { low: first, high: second }
        | Init::Randint { low: first, high: second }
        | Init::Distinct { low: first, high: second }
        | Init::UniqueBetween { low: first, high: second }
        | Init::BlockSparse { block: first, density: second } => vec![first, second],
        Init::Constant { value: one }
        | Init::Offsets { total: one }
        | Init::Mask { p: one }
        | Init::LowRank { rank: one }
        | Init::IllConditioned { condition: one } => vec![one],
        Init::Sorted { of } => quantities(of),
        Init::Ones | Init::Permutation | Init::Unique | Init::Triangular { .. } | Init::File { .. } => vec![],
    }
}

/// `[0, 1]` and `[0.0, 1.0]` are the same distribution and must be the same key.
#[expect(clippy::cast_precision_loss, reason = "an integer where a number is wanted means the nearest float")]
fn float(quantity: Quantity) -> Quantity {
    match quantity {
        Quantity::Whole(whole) => Quantity::Number(whole as f64),
        other => other,
    }
}
