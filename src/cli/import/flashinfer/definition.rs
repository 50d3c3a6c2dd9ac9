//! A definition in the form of FlashInfer Trace: what its file says, and what t2t can hold of it.
//!
//! It reads no code: what the reference does, a child finds out. It does not know workloads.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use t2t_spec::names::Form;

/// The dtypes that both sides have, under one name.
const DTYPES: [&str; 10] =
    ["float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"];

/// Further ones, in which tensors are and no op is tested.
pub(super) const EIGHTS: [&str; 2] = ["float8_e4m3fn", "float8_e5m2"];

/// A definition.
#[derive(Debug, Deserialize)]
pub(super) struct Definition {
    /// What it is called.
    pub(super) name: String,
    /// The lengths, fixed or not.
    pub(super) axes: Named<Axis>,
    /// What the reference takes, in order.
    pub(super) inputs: Named<Tensor>,
    /// What it returns, in order.
    pub(super) outputs: Named<Tensor>,
    /// Python with a function `run`.
    pub(super) reference: String,
    /// What holds between axes, as expressions of Python.
    #[serde(default)]
    pub(super) constraints: Option<Vec<String>>,
    /// The function that makes inputs, where the form is extended by one.
    #[serde(default)]
    custom_inputs_entrypoint: Option<Value>,
}

/// A length.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Axis {
    /// Always the same.
    Const {
        /// The length.
        value: NonZeroU64,
    },
    /// One that workloads say.
    Var {},
}

/// An input or an output.
#[derive(Debug, Deserialize)]
pub(super) struct Tensor {
    /// Its axes; None of a number.
    pub(super) shape: Option<Vec<String>>,
    /// Its dtype.
    pub(super) dtype: String,
}

impl Tensor {
    /// Returns its axes; of a number none.
    pub(super) fn axes(&self) -> &[String] {
        self.shape.as_deref().unwrap_or_default()
    }
}

/// A mapping whose keys keep their order, each of which is there once.
#[derive(Debug)]
pub(super) struct Named<T>(pub(super) Vec<(String, T)>);

impl<T> Named<T> {
    /// Returns what has this name.
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found: Self::Value = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if found.iter().any(|(other, _)| *other == name) {
                        return Err(A::Error::custom(format!("`{name}` is there twice")));
                    }
                    found.push((name, value));
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Entries(PhantomData)).map(Self)
    }
}

/// Why a definition cannot be imported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// Where and what.
    pub(super) message: String,
    /// What to do.
    pub(super) hint: &'static str,
}

/// What is said where nothing else helps.
pub(super) const DECLARE: &str =
    "docs/reference/import.md says what can be imported; declare it by hand, with a `cases.py` that makes such inputs";

impl Unfit {
    /// Returns why, with what to do.
    pub(super) fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint }
    }
}

impl Definition {
    /// Reads a definition. Fails, with the line or the field, where it is none or where t2t cannot hold it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unfit> {
        let form = "it must be a definition in the form of FlashInfer Trace: name, axes, inputs, outputs, reference";
        let read = serde_json::from_slice::<Self>(bytes);
        let definition = read.map_err(|error| {
            let place = format!("{}:{}", error.line(), error.column());
            let text = error.to_string();
            let what = text.strip_suffix(&format!(" at line {} column {}", error.line(), error.column()));
            Unfit::new(format!("{place}: {}", what.unwrap_or(&text)), form)
        })?;
        definition.is_fit()?;
        Ok(definition)
    }

    fn is_fit(&self) -> Result<(), Unfit> {
        if self.custom_inputs_entrypoint.is_some() {
            let message = " custom_inputs_entrypoint: a function of its own makes the inputs";
            return Err(Unfit::new(message, DECLARE));
        }
        for (name, _) in &self.axes.0 {
            if !Form::Identifier.fits(name) {
                return Err(Unfit::new(format!(" axes: `{name}` is no name"), "rename it in the definition"));
            }
        }
        for (kind, tensors) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if tensors.0.is_empty() {
                return Err(Unfit::new(format!(" {kind}: there is none"), "name at least one in the definition"));
            }
            for (name, tensor) in &tensors.0 {
                self.holds(&format!(" {kind}.{name}"), name, tensor)?;
            }
        }
        if let Some((name, _)) = self.outputs.0.iter().find(|(_, tensor)| tensor.shape.is_none()) {
            let message = format!(" outputs.{name}.shape: it is a number, and outputs of ops are tensors");
            return Err(Unfit::new(message, DECLARE));
        }
        if self.inputs.0.iter().all(|(_, tensor)| tensor.shape.is_none()) {
            return Err(Unfit::new(" inputs: none of them is a tensor", DECLARE));
        }
        Ok(())
    }

    fn holds(&self, place: &str, name: &str, tensor: &Tensor) -> Result<(), Unfit> {
        if !Form::Identifier.fits(name) {
            return Err(Unfit::new(format!("{place}: `{name}` is no name in Python"), "rename it in the definition"));
        }
        if !DTYPES.iter().chain(&EIGHTS).any(|known| *known == tensor.dtype) {
            let message = format!("{place}.dtype: t2t has no `{}`", tensor.dtype);
            return Err(Unfit::new(
                message,
                "it has float32, float16, bfloat16, float64, float8_e4m3fn, float8_e5m2, int8 to int64, uint8 and bool",
            ));
        }
        let axes = tensor.shape.iter().flatten();
        if let Some(axis) = axes.clone().find(|axis| self.axes.get(axis).is_none()) {
            let hint = "each length in a shape is a name of `axes`";
            return Err(Unfit::new(format!("{place}.shape: there is no axis `{axis}`"), hint));
        }
        if tensor.shape.is_some() && axes.count() == 0 {
            return Err(Unfit::new(format!("{place}.shape: it has no dimension"), "a number has the shape null"));
        }
        Ok(())
    }

    /// Returns the lengths that are always the same.
    pub(super) fn fixed(&self) -> BTreeMap<&str, u64> {
        let fixed = self.axes.0.iter().filter_map(|(name, axis)| match axis {
            Axis::Const { value } => Some((name.as_str(), value.get())),
            Axis::Var {} => None,
        });
        fixed.collect()
    }

    /// Returns the axes that workloads say, in order.
    pub(super) fn vars(&self) -> Vec<&str> {
        self.axes.0.iter().filter(|(_, axis)| matches!(axis, Axis::Var {})).map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the var axes that constraints say by other axes, each with the expression: `len_indptr == batch_size + 1` says the first.
    pub(super) fn derived(&self) -> BTreeMap<&str, String> {
        let vars = self.vars();
        let mut derived: BTreeMap<&str, String> = BTreeMap::new();
        for constraint in self.constraints.iter().flatten() {
            for (axis, said) in sides(constraint).into_iter().flatten() {
                let names = names(said);
                let is_axis =
                    |name: &&str| *name != axis && self.axes.get(name).is_some() && !derived.contains_key(name);
                let is_other = !names.is_empty() && names.iter().all(|name| is_axis(&name.as_str()));
                let Some(axis) = vars.iter().find(|var| **var == axis) else { continue };
                // An axis that another one is said by stays as it is.
                let is_used = derived.values().any(|other| self::names(other).iter().any(|name| name == axis));
                if is_other && !is_used && !derived.contains_key(axis) && Form::Length.fits(said) {
                    derived.insert(axis, said.to_owned());
                    break;
                }
            }
        }
        derived
    }

    /// Returns the inputs that are offsets, each with the axis that the last of them is: `total == indptr[-1].item()` says so.
    pub(super) fn offsets(&self) -> BTreeMap<&str, &str> {
        let sides = self.constraints.iter().flatten().filter_map(|constraint| sides(constraint)).flatten();
        let one = |(axis, said): (&str, &str)| {
            let said = said.strip_suffix(".item()").unwrap_or(said);
            let (name, tensor) = self.inputs.0.iter().find(|(name, _)| said.strip_prefix(name) == Some("[-1]"))?;
            let (axis, _) = self.axes.0.iter().find(|(other, _)| other == axis)?;
            let is_row = tensor.shape.as_ref().is_some_and(|shape| shape.len() == 1) && tensor.dtype.contains("int");
            is_row.then_some((name.as_str(), axis.as_str()))
        };
        sides.filter_map(one).collect()
    }
}

/// Returns the two sides of a constraint that says that they are equal, each before the other.
fn sides(constraint: &str) -> Option<[(&str, &str); 2]> {
    let (left, right) = constraint.split_once("==").map(|(left, right)| (left.trim(), right.trim()))?;
    Some([(left, right), (right, left)])
}

/// Returns the names in an expression.
pub(super) fn names(expression: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c| !is_name(c)).filter(|word| !word.is_empty());
    words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned).collect()
}

/// Returns an expression with numbers in the place of these names.
pub(super) fn with_numbers(expression: &str, numbers: &BTreeMap<&str, u64>) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let end = if is_name(first) { rest.find(|c| !is_name(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, after) = rest.split_at(end);
        match numbers.get(word) {
            Some(number) => text.push_str(&number.to_string()),
            None => text.push_str(word),
        }
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(change: impl Fn(&mut Value)) -> Result<Definition, Unfit> {
        let mut value = json!({
            "name": "scaled", "op_type": "rows",
            "axes": {"rows": {"type": "var", "description": "d"}, "ends": {"type": "var"}, "wide": {"type": "const", "value": 8}},
            "inputs": {
                "x": {"shape": ["rows", "wide"], "dtype": "bfloat16"},
                "ends_of": {"shape": ["ends"], "dtype": "int32"},
                "by": {"shape": null, "dtype": "float32"},
            },
            "outputs": {"y": {"shape": ["rows", "wide"], "dtype": "bfloat16"}},
            "constraints": ["ends == rows + 1", "wide % 2 == 0"],
            "reference": "def run(x, ends_of, by): return x * by",
        });
        change(&mut value);
        Definition::read(serde_json::to_string_pretty(&value).unwrap().as_bytes())
    }

    #[test]
    fn an_axis_that_a_constraint_says_is_an_expression_of_the_others() {
        let derived = |constraints: &[&str]| {
            let made = definition(|value| value["constraints"] = json!(constraints)).unwrap();
            made.derived().into_iter().map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(derived(&["ends == rows + 1", "wide % 2 == 0"]), "ends=rows + 1");
        assert_eq!(derived(&["2*rows == ends"]), "ends=2*rows");
        assert_eq!(derived(&["ends == rows", "rows == ends"]), "ends=rows");
        assert_eq!(
            derived(&["ends == ends_of[-1].item()", "ends == ends + 1", "ends <= rows", "wide == rows"]),
            "rows=wide"
        );
        assert_eq!(derived(&["ends == rows + 1", "rows == 7"]), "ends=rows + 1");
    }

    #[test]
    fn offsets_are_the_inputs_whose_last_one_is_an_axis() {
        let offsets = |constraint: &str| {
            let made = definition(|value| value["constraints"] = json!([constraint])).unwrap();
            made.offsets().into_iter().map(|(name, axis)| format!("{name}={axis}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(offsets("rows == ends_of[-1].item()"), "ends_of=rows");
        assert_eq!(offsets("ends_of[-1] == wide"), "ends_of=wide");
        for other in ["rows == ends_of[0].item()", "rows <= ends_of[-1].item()", "7 == ends_of[-1]", "rows == x[-1]"] {
            assert_eq!(offsets(other), "");
        }
    }

    #[test]
    fn const_axes_in_an_expression_become_numbers() {
        let numbers = BTreeMap::from([("wide", 8), ("w", 2)]);
        assert_eq!(with_numbers("(rows*wide + w) // wide2 + 1", &numbers), "(rows*8 + 2) // wide2 + 1");
    }

    #[test]
    fn what_is_no_definition_or_cannot_be_held_is_told_with_its_place() {
        let refused = |change: &dyn Fn(&mut Value)| definition(change).unwrap_err().message;
        for (change, said) in [
            (&(|value: &mut Value| value["axes"]["wide"]["value"] = json!(0)) as &dyn Fn(&mut Value), "nonzero"),
            (&|value| value["axes"]["wide"]["type"] = json!("expr"), "unknown variant `expr`"),
            (&|value| value["inputs"]["x"]["shape"] = json!(["rows", "Q"]), " inputs.x.shape: there is no axis `Q`"),
            (
                &|value| value["inputs"]["x"]["dtype"] = json!("float4_e2m1"),
                " inputs.x.dtype: t2t has no `float4_e2m1`",
            ),
            (&|value| value["inputs"]["x"]["shape"] = json!([]), " inputs.x.shape: it has no dimension"),
            (&|value| value["outputs"]["y"]["shape"] = json!(null), " outputs.y.shape: it is a number"),
            (&|value| value["inputs"] = json!({}), " inputs: there is none"),
            (
                &|value| value["inputs"]["a-b"] = json!({"shape": ["rows"], "dtype": "int8"}),
                " inputs.a-b: `a-b` is no name",
            ),
            (&|value| value["custom_inputs_entrypoint"] = json!("make"), " custom_inputs_entrypoint: "),
            (&|value| value["reference"] = json!(7), "invalid type: integer `7`, expected a string"),
            (&|value| _ = value.as_object_mut().unwrap().remove("axes"), "missing field `axes`"),
        ] {
            let message = refused(change);
            assert!(message.contains(said), "{said}: {message}");
        }
        let twice = br#"{"name": "a", "axes": {"M": {"type": "var"}, "M": {"type": "var"}}}"#;
        assert!(Definition::read(twice).unwrap_err().message.contains("`M` is there twice"));
        assert!(Definition::read(b"{\n\n]").unwrap_err().message.starts_with("3:1: "));
    }
}
