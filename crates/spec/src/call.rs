//! `call:`, how a wrapper is called, as in `entry(input, dim, keep=True)`: a Python call whose names are inputs and kwargs of the op.
//!
//! So are the methods of an operator, as in `methods: {backward: "backward(grad, output)"}`. It is parsed here so that a mistake is reported at its line; the harness parses it again to make the call.

use ruff_python_ast::{Expr, UnaryOp};
use ruff_python_parser::parse_expression;
use t2t_python::bounds;

use super::Methods;
use super::names::{Form, suggestion};
use super::node::Node;
use super::reader::Reader;

/// How to write one.
fn hint(function: &str) -> String {
    let more = if function == "entry" { "" } else { "; `backward` also has `grad` and `output`" };
    format!("write it as in `{function}(input, dim, keepdim=True)`: inputs and kwargs of the op, and literals{more}")
}

impl Reader<'_, '_> {
    /// Returns the call that `node` has under `call`, checked against the op's arguments; None where it has none, or an invalid one.
    pub(crate) fn call(&mut self, node: &Node) -> Option<String> {
        let written = node.get("call")?;
        let text = written.text().filter(|text| Form::Call.fits(text))?;
        if let Err((message, hint)) = check("call", "entry", text, &self.arguments()) {
            self.fault(written.place, &message, hint);
        }
        Some(text.to_owned())
    }

    /// Returns the methods that `node` has under `methods`, checked as a call is; None where it has none, or an invalid one.
    pub(crate) fn methods(&mut self, node: &Node) -> Option<Methods> {
        let written = node.get("methods")?;
        if let Some(call) = node.get("call") {
            let hint = "keep one: `methods` says how each method is called, as in `{forward: \"forward(input, dim)\"}`";
            self.fault(call.place, "`call` and `methods` both say how it is called", hint);
        }
        let forward = self.method(written, "forward", &[]);
        let named = self.of_outputs();
        let named: Vec<&str> = [GRADIENT, OUTPUT].into_iter().chain(named.iter().map(String::as_str)).collect();
        let backward = self.method(written, "backward", &named);
        Some(Methods { forward: forward?, backward: backward? })
    }

    fn method(&mut self, methods: &Node, key: &str, more: &[&str]) -> Option<String> {
        let Some(written) = methods.get(key) else { return Some(key.to_owned()) };
        let text = written.text().filter(|text| Form::Method.fits(text))?;
        if let Some((name, _)) = text.split_once('(') {
            let mut known = self.arguments();
            known.extend(more);
            if let Err((message, hint)) = check(key, name, text, &known) {
                self.fault(written.place, &message, hint);
            }
        }
        Some(text.to_owned())
    }

    /// Returns what a backward pass calls declared outputs and the gradients that flow into them.
    fn of_outputs(&self) -> Vec<String> {
        let outputs = self.entry.node.get("outputs").map_or(&[][..], Node::entries);
        outputs.iter().flat_map(|entry| [entry.key.clone(), format!("{GRADIENT}_{}", entry.key)]).collect()
    }

    fn arguments(&self) -> Vec<&str> {
        let entries = ["inputs", "kwargs"].into_iter().filter_map(|key| self.entry.node.get(key));
        let seed = self.entry.node.at(&["random", "seed"]).and_then(Node::text);
        entries.flat_map(Node::entries).map(|entry| entry.key.as_str()).chain(seed).collect()
    }
}

/// What a backward pass calls the gradient that flows in, and what the forward pass returned.
const GRADIENT: &str = "grad";
const OUTPUT: &str = "output";

/// How many bytes one may have.
const LONGEST: usize = 10_000;

/// Says what is wrong with `text`, a call of `function` that stands under `key`, and what to do about it.
fn check(key: &str, function: &str, text: &str, known: &[&str]) -> Result<(), (String, String)> {
    let depth = bounds::depth_of_expression(text);
    if text.len() > LONGEST || depth > bounds::DEEPEST {
        return Err((format!("`{key}` has more than {LONGEST} bytes, or nests too deep"), hint(function)));
    }
    bounds::with_stack(depth, || check_parsed(key, function, text, known))
}

fn check_parsed(key: &str, function: &str, text: &str, known: &[&str]) -> Result<(), (String, String)> {
    let other = |what: &str| (format!("`{key}: {text}` {what}"), hint(function));
    let parsed = parse_expression(text).map_err(|_| other("is no Python expression"))?;
    let is_no_call = format!("is not a call of `{function}`");
    let Expr::Call(call) = *parsed.into_syntax().body else { return Err(other(&is_no_call)) };
    if !matches!(&*call.func, Expr::Name(name) if name.id.as_str() == function) {
        return Err(other(&is_no_call));
    }
    let mut named = Vec::new();
    for keyword in &*call.arguments.keywords {
        let name = keyword.arg.as_ref().ok_or_else(|| other("has `**`"))?.as_str();
        if named.contains(&name) {
            return Err(other(&format!("gives `{name}` twice")));
        }
        named.push(name);
    }
    let values = call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|keyword| &keyword.value));
    values.into_iter().try_for_each(|value| match misfit(value, known) {
        None => Ok(()),
        Some(Misfit::Unknown(name)) => {
            let message = format!("`{key}` names `{name}`, which is neither an input nor a kwarg of the op");
            Err((message, suggestion(&name, known.iter().copied())))
        }
        Some(Misfit::Form) => Err(other("has an argument that is neither a name nor a literal")),
    })
}

/// Why an argument cannot be.
enum Misfit {
    /// A name that the op does not have.
    Unknown(String),
    /// It would have to be computed.
    Form,
}

fn misfit(value: &Expr, known: &[&str]) -> Option<Misfit> {
    match value {
        Expr::Name(name) if known.contains(&name.id.as_str()) => None,
        Expr::Name(name) => Some(Misfit::Unknown(name.id.to_string())),
        Expr::List(list) => list.elts.iter().find_map(|item| misfit(item, known)),
        Expr::Tuple(tuple) => tuple.elts.iter().find_map(|item| misfit(item, known)),
        Expr::UnaryOp(sign) if matches!(sign.op, UnaryOp::USub) => match &*sign.operand {
            Expr::NumberLiteral(_) => None,
            _ => Some(Misfit::Form),
        },
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::BooleanLiteral(_) | Expr::NoneLiteral(_) => None,
        _ => Some(Misfit::Form),
    }
}
