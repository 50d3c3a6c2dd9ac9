//! The graph: all actions and what they need of each other, sealed: every edge has both ends, and there is no cycle.
//!
//! It does not know what is stale. Indices follow the declared order, the order people read.

use std::collections::HashMap;

use petgraph::Direction;
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use t2t_model::action::{Action, Dependency, Need, Phase, Target};
use t2t_model::record::Outcome;

pub mod expand;
pub mod pattern;
pub mod pick;
pub mod files;

/// An action's place in the declared order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Index(usize);

impl Index {
    /// Returns the place as a number, from 0.
    #[must_use]
    pub fn number(self) -> usize {
        self.0
    }
}

/// The sealed graph.
#[derive(Debug)]
pub struct Graph {
    actions: DiGraph<Action, Dependency>,
    by_target: HashMap<Target, Index>,
    by_op: HashMap<String, Vec<Index>>,
}

/// Which actions are wanted, and which run even when a result stands.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// By number: wanted, as a target or for one.
    pub wanted: Vec<bool>,
    /// By number: runs whatever is known.
    pub forced: Vec<bool>,
}

/// Why actions make no graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    /// Two actions have one name.
    #[error("two actions are named `{0}`")]
    Twice(Target),
    /// An edge leads nowhere.
    #[error("`{from}` needs `{on}`, and there is no such action")]
    Dangling {
        /// The dependent.
        from: Target,
        /// The name that no action has.
        on: Target,
    },
    /// An action needs itself, through others or not.
    #[error("`{0}` needs itself")]
    Cycle(Target),
}

impl Graph {
    /// Returns the graph of `actions`. Fails where a name stands twice, an edge leads nowhere, or there is a cycle.
    pub fn seal(actions: Vec<Action>) -> Result<Self, Unsealed> {
        let mut graph = DiGraph::with_capacity(actions.len(), actions.len() * 4);
        let mut by_target = HashMap::with_capacity(actions.len());
        let mut by_op: HashMap<String, Vec<Index>> = HashMap::new();
        for action in actions {
            let target = action.target().clone();
            let index = Index(graph.add_node(action).index());
            match by_op.get_mut(&target.op) {
                Some(of_op) => of_op.push(index),
                None => _ = by_op.insert(target.op.clone(), vec![index]),
            }
            if by_target.insert(target.clone(), index).is_some() {
                return Err(Unsealed::Twice(target));
            }
        }
        for index in 0..graph.node_count() {
            connect(&mut graph, &by_target, NodeIndex::new(index))?;
        }
        let looped = toposort(&graph, None).err().map(|cycle| graph[cycle.node_id()].target().clone());
        match looped {
            Some(target) => Err(Unsealed::Cycle(target)),
            None => Ok(Self { actions: graph, by_target, by_op }),
        }
    }

    /// Returns how many actions there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.actions.node_count()
    }

    /// Returns every place, in declared order.
    pub fn indices(&self) -> impl Iterator<Item = Index> + use<> {
        (0..self.count()).map(Index)
    }

    /// Returns the action at `index`.
    #[must_use]
    pub fn action(&self, index: Index) -> &Action {
        &self.actions[NodeIndex::new(index.0)]
    }

    /// Returns the place of the action named `target`.
    #[must_use]
    pub fn find(&self, target: &Target) -> Option<Index> {
        self.by_target.get(target).copied()
    }

    /// Returns the action that makes the attempt which an end of the action at `index` asks for. None where it asks for none, and after the last one.
    #[must_use]
    pub fn next_attempt(&self, index: Index, outcome: &Outcome) -> Option<Index> {
        let action = self.action(index);
        let target = action.target();
        // A fault that was there before the kernel file was made is no fault of that.
        let is_of_kernel = outcome.asks_for_another() && !action.facts.contains_key("fault");
        let is_asking = matches!(target.phase, Phase::Generate | Phase::Compile | Phase::Check);
        let next = Target { phase: Phase::Generate, ..target.of_attempt(target.attempt + 1) };
        let next = self.find(&next).filter(|_| is_of_kernel && is_asking)?;
        // What made no kernel is followed by another attempt only where that looks at such an end.
        let waits = |edge: &Dependency| edge.need == Need::Reject && edge.on == *target;
        self.action(next).dependencies.iter().any(waits).then_some(next)
    }

    /// Returns the places of the actions of an op, in declared order.
    #[must_use]
    pub fn of_op(&self, op: &str) -> &[Index] {
        self.by_op.get(op).map_or(&[], Vec::as_slice)
    }

    /// Returns the sources of the action's edges, with what each asks, in declared order.
    #[must_use]
    pub fn dependencies(&self, index: Index) -> Vec<(Index, &Dependency)> {
        let mut found: Vec<_> = self
            .actions
            .edges_directed(NodeIndex::new(index.0), Direction::Incoming)
            .map(|edge| (Index(edge.source().index()), edge.weight()))
            .collect();
        found.sort_by_key(|(source, _)| *source);
        found
    }

    /// Returns the actions that need the one at `index`, in declared order.
    #[must_use]
    pub fn dependents(&self, index: Index) -> Vec<Index> {
        let mut found: Vec<_> = self
            .actions
            .neighbors_directed(NodeIndex::new(index.0), Direction::Outgoing)
            .map(|dependent| Index(dependent.index()))
            .collect();
        found.sort();
        found
    }
}

fn connect(
    graph: &mut DiGraph<Action, Dependency>,
    by_target: &HashMap<Target, Index>,
    to: NodeIndex,
) -> Result<(), Unsealed> {
    for dependency in graph[to].dependencies.clone() {
        let Some(source) = by_target.get(&dependency.on) else {
            return Err(Unsealed::Dangling { from: graph[to].target().clone(), on: dependency.on });
        };
        graph.add_edge(NodeIndex::new(source.0), to, dependency);
    }
    Ok(())
}
