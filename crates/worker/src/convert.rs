//! JSON and Python values, one into the other.
//!
//! It does not know what they mean. It is stricter than Python's `json`: a reply is data that other programs read, so
//! NaN, keys that are no strings and numpy's own numbers are errors with their place, not surprises later.

use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};
use serde_json::{Map, Number, Value};

/// Deeper than that `serde_json` does not parse either.
const DEPTH: usize = 100;

/// Makes the Python value of a JSON one.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => py.None().into_bound_py_any(py),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Number(number) => number_to_python(py, number),
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_bound_py_any(py)
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                dict.set_item(key, to_python(py, item)?)?;
            }
            dict.into_bound_py_any(py)
        }
    }
}

fn number_to_python<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    if let Some(integer) = number.as_i64() {
        return integer.into_bound_py_any(py);
    }
    if let Some(integer) = number.as_u64() {
        return integer.into_bound_py_any(py);
    }
    number.as_f64().into_bound_py_any(py)
}

/// Makes the JSON value of a Python one, or says what at which place has none.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> Result<Value, String> {
    Walk { path: "$".to_owned(), depth: 0 }.value(value)
}

struct Walk {
    path: String,
    depth: usize,
}

impl Walk {
    fn value(&mut self, value: &Bound<'_, PyAny>) -> Result<Value, String> {
        if value.is_none() {
            return Ok(Value::Null);
        }
        if let Ok(truth) = value.cast::<PyBool>() {
            return Ok(Value::Bool(truth.is_true()));
        }
        if value.is_instance_of::<PyInt>() {
            return self.integer(value);
        }
        if value.is_instance_of::<PyFloat>() {
            return self.float(value);
        }
        if let Ok(text) = value.cast::<PyString>() {
            return text.to_str().map(Value::from).map_err(|_| self.error("a string that is not Unicode"));
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            return self.object(dict);
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            return self.array(value);
        }
        let name = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
        Err(self.error(&format!("a value of type `{name}`")))
    }

    fn integer(&self, value: &Bound<'_, PyAny>) -> Result<Value, String> {
        if let Ok(integer) = value.extract::<i64>() {
            return Ok(integer.into());
        }
        value.extract::<u64>().map(Value::from).map_err(|_| self.error("an integer beyond 64 bits"))
    }

    fn float(&self, value: &Bound<'_, PyAny>) -> Result<Value, String> {
        let number = value.extract::<f64>().ok().and_then(Number::from_f64);
        number.map(Value::Number).ok_or_else(|| self.error("a number that is not finite"))
    }

    fn object(&mut self, dict: &Bound<'_, PyDict>) -> Result<Value, String> {
        let mut entries = Map::new();
        for (key, item) in dict {
            let key: String = key.extract().map_err(|_| self.error("a key that is not a string"))?;
            let item = self.inside(&format!(".{key}"), &item)?;
            entries.insert(key, item);
        }
        Ok(Value::Object(entries))
    }

    fn array(&mut self, items: &Bound<'_, PyAny>) -> Result<Value, String> {
        let mut values = Vec::new();
        for (index, item) in items.try_iter().map_err(|error| error.to_string())?.enumerate() {
            let item = item.map_err(|error| error.to_string())?;
            values.push(self.inside(&format!("[{index}]"), &item)?);
        }
        Ok(Value::Array(values))
    }

    fn inside(&mut self, step: &str, value: &Bound<'_, PyAny>) -> Result<Value, String> {
        if self.depth == DEPTH {
            return Err(self.error("more than 100 levels"));
        }
        let length = self.path.len();
        self.path.push_str(step);
        self.depth += 1;
        let inner = self.value(value);
        self.depth -= 1;
        self.path.truncate(length);
        inner
    }

    fn error(&self, what: &str) -> String {
        format!("the reply has {what} at {}", self.path)
    }
}
