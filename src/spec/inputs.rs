//! The inputs of an op: shapes, dtypes, layouts, and how values are drawn.
//!
//! It does not know which lengths the dims have.

use super::layers::Layers;
use super::parse::{Entry, Node, Value};
use super::reader::Reader;
use super::{Dim, Init, Input, Quantity};

impl Reader<'_, '_> {
    /// Returns the inputs in declared order, or none where one of them could not be read.
    pub fn inputs(&mut self) -> Option<Vec<Input>> {
        let entries = self.entry.node.get("inputs")?.entries();
        let inputs: Vec<Option<Input>> = entries.iter().map(|entry| self.input(entry)).collect();
        inputs.into_iter().collect::<Option<Vec<_>>>().filter(|inputs| !inputs.is_empty())
    }

    fn input(&mut self, entry: &Entry) -> Option<Input> {
        let long = matches!(entry.node.value, Value::Map(_));
        let shape_node = if long { entry.node.get("shape")? } else { &entry.node };
        let Value::List(dims) = &shape_node.value else { return None };
        let text = |key: &str| entry.node.get(key).and_then(Node::text).map(str::to_owned);
        let input = Input {
            name: entry.key.clone(),
            shape: dims.iter().map(dim).collect::<Option<_>>()?,
            dtype: text("dtype"),
            init: self.init(entry)?,
            requires_grad: entry.node.get("requires_grad").and_then(Node::flag).unwrap_or(false),
            layout: text("layout").unwrap_or_else(|| "contiguous".to_owned()),
        };
        self.layout_fits(entry, &input);
        self.dtype_fits(entry, &input);
        Some(input)
    }

    fn layout_fits(&mut self, entry: &Entry, input: &Input) {
        let rank = input.shape.len();
        let fits = match input.layout.as_str() {
            "transposed" => rank >= 2,
            "strided" => rank >= 1,
            "channels_last" => rank == 4,
            _ => true,
        };
        if let (Some(node), false) = (entry.node.get("layout"), fits) {
            let message = format!("layout `{}` does not suit the shape of input `{}`", input.layout, input.name);
            self.fault(
                node.place,
                &message,
                "`transposed` needs 2 dims or more, `strided` 1 or more, `channels_last` 4",
            );
        }
    }

    /// Integers are not drawn from a normal or uniform distribution, and have no gradient.
    fn dtype_fits(&mut self, entry: &Entry, input: &Input) {
        let Some(dtype) = input.dtype.as_deref().filter(|dtype| !dtype.contains("float")) else { return };
        let place = entry.node.get("init").or_else(|| entry.node.get("dtype")).map_or(entry.place, |node| node.place);
        if input.init.is_float() {
            let message = format!("input `{}` is {dtype} and needs an init for integers", input.name);
            self.fault(place, &message, "add `init: {randint: [0, 10]}`, or `constant`, or `ones`");
        }
        if let (Some(node), true) = (entry.node.get("requires_grad"), input.requires_grad) {
            let message = format!("input `{}` is {dtype} and has no gradient", input.name);
            self.fault(node.place, &message, "remove `requires_grad`");
        }
    }

    /// Checks that inputs which follow the tested dtype can be drawn in each of them.
    pub fn drawable(&mut self, inputs: &[Input], layers: &Layers) {
        let dtypes = layers.get(&["dtypes"]).map(texts).unwrap_or_default();
        let Some(integers) = dtypes.iter().find(|dtype| !dtype.contains("float")) else { return };
        for input in inputs.iter().filter(|input| input.dtype.is_none() && input.init.is_float()) {
            let entries = self.entry.node.get("inputs").map_or(&[][..], Node::entries);
            let place =
                entries.iter().find(|entry| entry.key == input.name).map_or(self.entry.place, |entry| entry.place);
            let message = format!("input `{}` is drawn as a float, but `dtypes` has `{integers}`", input.name);
            self.fault(
                place,
                &message,
                "give it an `init` for integers, as in `init: {randint: [0, 10]}`, or a `dtype`",
            );
        }
    }

    fn init(&mut self, entry: &Entry) -> Option<Init> {
        let Some(node) = entry.node.get("init") else { return named_init("normal") };
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
            "normal" => pair().map(|(mean, std)| Init::Normal { mean: mean.float(), std: std.float() }),
            "uniform" => pair().map(|(low, high)| Init::Uniform { low: low.float(), high: high.float() }),
            "randint" => {
                let (low, high) = pair()?;
                self.randint_fits(entry, only, &low, &high);
                Some(Init::Randint { low, high })
            }
            "constant" => quantity(&only.node).map(|value| Init::Constant { value }),
            _ => None,
        }
    }

    fn randint_fits(&mut self, entry: &Entry, only: &Entry, low: &Quantity, high: &Quantity) {
        let empty = matches!((low, high), (Quantity::Whole(low), Quantity::Whole(high)) if low >= high);
        let float = [low, high].iter().any(|bound| matches!(bound, Quantity::Number(_)));
        if empty || float {
            let what = if float { "takes integers" } else { "draws from an empty range" };
            let message = format!("the randint of input `{}` {what}", entry.key);
            self.fault(only.node.place, &message, "write `[low, high]`; high itself is never drawn");
        }
    }
}

/// Returns the texts of a list.
pub(super) fn texts(node: &Node) -> Vec<String> {
    node.items().iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn named_init(word: &str) -> Option<Init> {
    let (zero, one) = (Quantity::Number(0.0), Quantity::Number(1.0));
    match word {
        "normal" => Some(Init::Normal { mean: zero, std: one }),
        "uniform" => Some(Init::Uniform { low: zero, high: one }),
        "ones" => Some(Init::Ones),
        _ => None,
    }
}

fn dim(node: &Node) -> Option<Dim> {
    let name = || node.text().map(|name| Dim::Name(name.to_owned()));
    node.whole().map(Dim::Length).or_else(name)
}

fn quantity(node: &Node) -> Option<Quantity> {
    match &node.value {
        Value::Whole(whole) => Some(Quantity::Whole(*whole)),
        Value::Number(number) => Some(Quantity::Number(*number)),
        Value::Text(name) => Some(Quantity::Dim(name.clone())),
        _ => None,
    }
}

impl Init {
    fn is_float(&self) -> bool {
        matches!(self, Init::Normal { .. } | Init::Uniform { .. })
    }
}

impl Quantity {
    /// `[0, 1]` and `[0.0, 1.0]` are the same distribution and must be the same key.
    #[expect(clippy::cast_precision_loss, reason = "an integer where a number is wanted means the nearest float")]
    fn float(self) -> Quantity {
        match self {
            Quantity::Whole(whole) => Quantity::Number(whole as f64),
            other => other,
        }
    }
}
