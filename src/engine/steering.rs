//! Steering: how whoever runs a build may turn it while it runs.
//!
//! It does not know what for.

use super::underway::Touched;

/// Whether a build is turned while it runs.
pub(crate) enum Steering<'a> {
    /// It goes its way to the end, and to it belongs all that runs.
    None,
    /// It is asked at each turn of the loop. What runs when it is left goes on, for the next build.
    By {
        /// What is asked.
        ask: &'a mut dyn FnMut() -> Turn,
        /// What it may begin.
        begins: Begins,
    },
}

/// What a build that is steered may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Whatever is stale.
    Anything,
    /// Nothing: what is underway is kept when it ends.
    Nothing,
}

/// What a build does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It goes on.
    GoOn,
    /// It goes on, while these files changed that it has not looked at: what runs may have read them.
    Touched(Touched),
    /// It keeps no result for now: the workspace is being changed, and it is not known yet what a result is worth.
    Hold,
    /// It is left: nothing more is begun or kept.
    Leave,
}

/// How a build came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Whatever could be decided was.
    #[default]
    Settled,
    /// It was left.
    Left,
    /// This file is not any more what the build took it for.
    Outdated(String),
}

impl Steering<'_> {
    /// Asks for the next turn.
    pub(super) fn turn(&mut self) -> Turn {
        match self {
            Self::None => Turn::GoOn,
            Self::By { ask, .. } => ask(),
        }
    }

    /// Returns whether the build is one of several over what is underway.
    pub(super) fn is_by(&self) -> bool {
        matches!(self, Self::By { .. })
    }

    /// Returns whether anything may begin.
    pub(super) fn begins(&self) -> bool {
        !matches!(self, Self::By { begins: Begins::Nothing, .. })
    }
}
