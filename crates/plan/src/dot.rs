//! The graph as text: Graphviz's dot, Mermaid, or JSON.
//!
//! It does not know what is stale.

use std::fmt::Write as _;

use serde_json::{Value, json};
use t2t_model::action::Need;

use crate::graph::{Graph, Index};

/// How the graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Graphviz.
    Dot,
    /// Mermaid's flowchart.
    Mermaid,
    /// One object with `actions` and `edges`.
    Json,
}

/// Returns the wanted part of `graph` as text that ends in a newline.
#[must_use]
pub fn write(graph: &Graph, wanted: &[bool], format: Format) -> String {
    let shown: Vec<Index> = graph.indices().filter(|index| wanted[index.number()]).collect();
    match format {
        Format::Dot => dot(graph, &shown),
        Format::Mermaid => mermaid(graph, &shown),
        Format::Json => format!("{:#}\n", as_json(graph, &shown)),
    }
}

fn dot(graph: &Graph, shown: &[Index]) -> String {
    let mut text = String::from("digraph t2t {\n  rankdir=LR;\n  node [shape=box];\n");
    for index in shown {
        let _ = writeln!(text, "  \"{}\";", graph.action(*index).target());
    }
    for (from, to, need) in edges(graph, shown) {
        let style = if need == Need::Pass { "" } else { " [style=dashed]" };
        let _ = writeln!(text, "  \"{}\" -> \"{}\"{style};", graph.action(from).target(), graph.action(to).target());
    }
    text + "}\n"
}

fn mermaid(graph: &Graph, shown: &[Index]) -> String {
    let mut text = String::from("flowchart LR\n");
    for index in shown {
        let _ = writeln!(text, "  a{}[\"{}\"]", index.number(), graph.action(*index).target());
    }
    for (from, to, need) in edges(graph, shown) {
        let arrow = if need == Need::Pass { "-->" } else { "-.->" };
        let _ = writeln!(text, "  a{} {arrow} a{}", from.number(), to.number());
    }
    text
}

fn as_json(graph: &Graph, shown: &[Index]) -> Value {
    let actions: Vec<Value> = shown
        .iter()
        .map(|index| {
            let action = graph.action(*index);
            json!({"target": action.target().to_string(), "phase": action.target().phase.name(), "lane": format!("{:?}", action.lane)})
        })
        .collect();
    let edges: Vec<Value> = edges(graph, shown)
        .map(|(from, to, need)| {
            let (from, to) = (graph.action(from).target().to_string(), graph.action(to).target().to_string());
            json!({"from": from, "to": to, "need": format!("{need:?}")})
        })
        .collect();
    json!({"version": 1, "actions": actions, "edges": edges})
}

fn edges(graph: &Graph, shown: &[Index]) -> impl Iterator<Item = (Index, Index, Need)> {
    shown
        .iter()
        .flat_map(|to| graph.dependencies(*to).into_iter().map(|(from, dependency)| (from, *to, dependency.need)))
}
