//! The inputs of an op: tensors, lists of them, scalars; shapes, dtypes, layouts.
//!
//! It does not know which lengths the dims have.

use super::expression::Expression;
use super::fields::DTYPES;
use super::inits::{is_float, rank_needed};
use super::json::json;
use super::layers::{self, Layers, Owner};
use super::node::{Entry, Node, Value};
use super::reader::Reader;
use super::{Binding, Dim, Init, Input, Layout, Quantity, Settings, Tensor};

impl Reader<'_, '_> {
    /// Returns the inputs in declared order, or none where one of them could not be read.
    pub(crate) fn inputs(&mut self) -> Option<Vec<Input>> {
        let entries = self.entry.node.get("inputs")?.entries();
        let inputs: Vec<Option<Vec<Input>>> = entries.iter().map(|entry| self.input(entry)).collect();
        inputs.into_iter().collect::<Option<Vec<_>>>().map(|inputs| inputs.into_iter().flatten().collect())
    }

    /// Returns one tensor, each tensor of a list, or a scalar.
    fn input(&mut self, entry: &Entry) -> Option<Vec<Input>> {
        let Value::Map(keys) = &entry.node.value else {
            return self.tensor(entry, &entry.node, None).map(|tensor| vec![Input::Tensor(tensor)]);
        };
        let forms: Vec<&Entry> =
            keys.iter().filter(|key| matches!(key.key.as_str(), "shape" | "list" | "scalar")).collect();
        let [form] = forms[..] else {
            let message = format!("input `{}` has {} of `shape`, `list` and `scalar`", entry.key, forms.len());
            self.fault(entry.place, &message, "give it one of them, as in `shape: [M, N]`");
            return None;
        };
        if form.key == "scalar" {
            if let Some(other) = keys.iter().find(|key| key.key != "scalar") {
                let message = format!("the scalar `{}` has `{}`", entry.key, other.key);
                self.fault(other.place, &message, "remove the key: only tensors have it");
            }
            return Some(vec![Input::Scalar { name: entry.key.clone(), scalar: json(&form.node) }]);
        }
        if form.key == "shape" {
            return self.tensor(entry, &form.node, None).map(|tensor| vec![Input::Tensor(tensor)]);
        }
        if let Some(optional) = entry.node.get("optional") {
            let message = format!("the list `{}` cannot be optional", entry.key);
            self.fault(optional.place, &message, "declare an op of its own for the call without it");
        }
        let members = form.node.items().iter().enumerate();
        members.map(|(number, shape)| self.tensor(entry, shape, Some(number)).map(Input::Tensor)).collect()
    }

    fn tensor(&mut self, entry: &Entry, shape: &Node, number: Option<usize>) -> Option<Tensor> {
        let Value::List(dims) = &shape.value else { return None };
        let tensor = Tensor {
            name: number.map_or_else(|| entry.key.clone(), |number| format!("{}.{number}", entry.key)),
            list: number.map(|_| entry.key.clone()),
            shape: dims.iter().map(dim).collect::<Option<_>>()?,
            dtype: entry.node.get("dtype").and_then(Node::text).map(str::to_owned),
            init: self.init(entry, entry.node.get("init"))?,
            requires_grad: entry.node.get("requires_grad").and_then(Node::flag).unwrap_or(false),
            layout: entry.node.get("layout").map_or_else(|| Layout::One("contiguous".to_owned()), layout),
            optional: entry.node.get("optional").and_then(Node::flag).unwrap_or(false),
        };
        self.layout_fits(entry, &tensor);
        self.dtype_fits(entry, &tensor);
        Some(tensor)
    }

    fn layout_fits(&mut self, entry: &Entry, tensor: &Tensor) {
        let rank = tensor.shape.len();
        let fits = |layout: &str| match layout {
            "transposed" => rank >= 2,
            "strided" => rank >= 1,
            "channels_last" => rank == 4,
            _ => true,
        };
        let layouts = match &tensor.layout {
            Layout::One(layout) => std::slice::from_ref(layout),
            Layout::Several(layouts) => layouts.as_slice(),
        };
        if let (Some(node), Some(layout)) = (entry.node.get("layout"), layouts.iter().find(|layout| !fits(layout))) {
            let message = format!("layout `{layout}` does not suit the shape of input `{}`", tensor.name);
            self.fault(
                node.place,
                &message,
                "`transposed` needs 2 dims or more, `strided` 1 or more, `channels_last` 4",
            );
        }
        if let Some(node) = entry.node.get("init").filter(|_| rank < rank_needed(&tensor.init)) {
            let needed = rank_needed(&tensor.init);
            let message = format!("the init of input `{}` needs {needed} dims or more, and it has {rank}", tensor.name);
            self.fault(node.place, &message, "give it another `init`, or another shape");
        }
    }

    /// Integers are not drawn from a normal or uniform distribution, and have no gradient. Nor has what torch computes nothing in.
    fn dtype_fits(&mut self, entry: &Entry, tensor: &Tensor) {
        let is_plain = |dtype: &&str| !dtype.contains("float") || !DTYPES.contains(dtype);
        let Some(dtype) = tensor.dtype.as_deref().filter(is_plain) else { return };
        let place = entry.node.get("init").or_else(|| entry.node.get("dtype")).map_or(entry.place, |node| node.place);
        if is_float(&tensor.init) && !dtype.contains("float") {
            let message = format!("input `{}` is {dtype} and needs an init for integers", tensor.name);
            self.fault(place, &message, "add `init: {randint: [0, 10]}`, or `offsets`, `constant`, `ones`");
        }
        if let (Some((least, most)), Some((low, high))) = (range_of(dtype), drawn_between(&tensor.init))
            && (low < least || high > most + 1)
        {
            let message = format!(
                "input `{}` is {dtype}, which holds {least} to {most}, and draws {low} to {}",
                tensor.name,
                high.saturating_sub(1)
            );
            self.fault(
                place,
                &message,
                "the second number is not drawn itself; draw fewer, or give it another `dtype`",
            );
        }
        if let (Some(node), true) = (entry.node.get("requires_grad"), tensor.requires_grad) {
            let message = format!("input `{}` is {dtype} and has no gradient", tensor.name);
            self.fault(node.place, &message, "remove `requires_grad`");
        }
    }

    /// Checks that inputs which follow the tested dtype can be drawn in each of them.
    pub(crate) fn drawable(&mut self, inputs: &[Input], layers: &Layers) {
        if !self.conforms(layers, &["dtypes"]) {
            return;
        }
        let dtypes = layers.get(&["dtypes"]).map(texts).unwrap_or_default();
        let Some(integers) = dtypes.iter().find(|dtype| !dtype.contains("float")) else { return };
        let is_drawn_so = |tensor: &&Tensor| tensor.dtype.is_none() && is_float(&tensor.init);
        for tensor in inputs.iter().filter_map(Input::tensor).filter(is_drawn_so) {
            let place = self.place_of(tensor);
            let message = format!("input `{}` is drawn as a float, but `dtypes` has `{integers}`", tensor.name);
            self.fault(
                place,
                &message,
                "give it an `init` for integers, as in `init: {randint: [0, 10]}`, or a `dtype`",
            );
        }
    }

    /// Checks that every length is one at every size.
    pub(crate) fn lengths_fit(&mut self, inputs: &[Input], settings: &Settings, layers: &Layers) {
        if !self.conforms(layers, &["dims", "check", "bench"]) {
            return;
        }
        let (measured, checked) = (Origin::of(layers, "bench"), Origin::of(layers, "check"));
        let measured_sizes = settings.sizes.iter().map(|size| (size, &measured));
        let sizes = measured_sizes.chain(settings.check_sizes.iter().map(|size| (size, &checked)));
        for ((size, origin), tensor) in sizes.flat_map(|size| inputs.iter().map(move |input| (size, input.tensor()))) {
            let Some(tensor) = tensor else { continue };
            let wrong = tensor.shape.iter().find_map(|dim| wrong_length(dim, size.1));
            if let Some((expression, value)) = wrong {
                let is = value.map_or_else(|| "no length".to_owned(), |value| format!("the length {value}"));
                let of = &origin.words;
                let message = format!("size `{}`{of} gives input `{}` {is} for `{expression}`", size.0, tensor.name);
                let place = self.place_of(tensor);
                let hint = format!("give the op {} at which every length is at least 1", origin.sizes);
                self.fault(place, &message, hint);
            } else if is_beyond_any_memory(&tensor.shape, size.1) {
                let message = format!("size `{}` gives input `{}` more bytes than any memory has", size.0, tensor.name);
                let place = self.place_of(tensor);
                self.fault(place, &message, "give the op smaller sizes");
            }
        }
    }

    fn place_of(&self, tensor: &Tensor) -> t2t_model::problem::Position {
        let name = tensor.list.as_ref().unwrap_or(&tensor.name);
        let entries = self.entry.node.get("inputs").map_or(&[][..], Node::entries);
        entries.iter().find(|entry| entry.key == *name).map_or(self.entry.place, |entry| entry.place)
    }
}

/// Where the sizes of a phase come from, in words.
struct Origin {
    /// Of what the size is, with a space before; nothing where the op itself has it.
    words: String,
    /// What the op should be given.
    sizes: &'static str,
}

impl Origin {
    /// Returns where the sizes of `section`, `bench` or `check`, come from; checks take those of `bench` where they have none of their own.
    fn of(layers: &Layers, section: &str) -> Self {
        let found = layers.find(&[section, "sizes"]).or_else(|| layers.find(&["bench", "sizes"]));
        match found {
            Some((layer, _)) if layer.owner == Owner::All => Self {
                words: format!(" of {}", layer.name),
                sizes: match layer.name {
                    layers::CPU_PROFILE => "`profiles: {cpu: {bench: {sizes: …}}}`",
                    _ => "sizes of its own",
                },
            },
            _ => Self { words: String::new(), sizes: "sizes" },
        }
    }
}

/// Returns the least and the greatest integer that a dtype holds; None for one that holds all that is drawn, or takes it for a flag.
fn range_of(dtype: &str) -> Option<(i64, i64)> {
    match dtype {
        "int8" => Some((i8::MIN.into(), i8::MAX.into())),
        "int16" => Some((i16::MIN.into(), i16::MAX.into())),
        "int32" => Some((i32::MIN.into(), i32::MAX.into())),
        "uint8" => Some((u8::MIN.into(), u8::MAX.into())),
        _ => None,
    }
}

/// Returns the bounds of the integers that an init draws, the second one not among them; None where they are no numbers.
fn drawn_between(init: &Init) -> Option<(i64, i64)> {
    match init.drawn() {
        Init::Randint { low: Quantity::Whole(low), high: Quantity::Whole(high) }
        | Init::Distinct { low: Quantity::Whole(low), high: Quantity::Whole(high) }
        | Init::UniqueBetween { low: Quantity::Whole(low), high: Quantity::Whole(high) } => Some((*low, *high)),
        _ => None,
    }
}

/// Returns an expression that is no length, and what it is.
fn wrong_length<'a>(dim: &'a Dim, binding: &Binding) -> Option<(&'a Expression, Option<i64>)> {
    let Dim::Of(expression) = dim else { return None };
    let value = expression.value(binding);
    value.is_none_or(|value| value < 1).then_some((expression, value))
}

/// Bytes of an element of the widest dtypes.
const WIDEST: i64 = 8;

/// Returns whether a tensor has so many elements that torch cannot count its bytes, which it does in 64 bits with a sign.
fn is_beyond_any_memory(shape: &[Dim], binding: &Binding) -> bool {
    let length = |dim: &Dim| match dim {
        Dim::Of(expression) => expression.value(binding),
        Dim::Length(length) => i64::try_from(*length).ok(),
    };
    let bytes = shape.iter().try_fold(WIDEST, |bytes, dim| bytes.checked_mul(length(dim)?));
    bytes.is_none()
}

/// Returns the texts of a list.
pub(super) fn texts(node: &Node) -> Vec<String> {
    node.items().iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn layout(node: &Node) -> Layout {
    match texts(node).as_slice() {
        [] => Layout::One(node.text().unwrap_or("contiguous").to_owned()),
        [one] => Layout::One(one.clone()),
        several => Layout::Several(several.to_vec()),
    }
}

fn dim(node: &Node) -> Option<Dim> {
    let expression = || node.text().and_then(Expression::parse).map(Dim::Of);
    node.whole().map(Dim::Length).or_else(expression)
}
