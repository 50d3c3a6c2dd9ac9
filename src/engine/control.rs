//! Control: how whoever runs a build may direct it while it runs.
//!
//! It does not know what for.

use super::in_flight::Touched;

/// Who directs a build while it runs.
pub(crate) enum Control<'a> {
    /// It goes its way to the end, and to it belongs all that runs.
    None,
    /// It is asked at each pass of the loop. What runs when it is left goes on, for the next build.
    By {
        /// What is asked.
        ask: &'a mut dyn FnMut() -> Command,
        /// What it may begin.
        begins: Begins,
    },
}

/// What a build that is controlled may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Whatever is stale.
    Anything,
    /// Nothing: what is in flight is kept when it ends.
    Nothing,
}

/// What a build does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
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

impl Control<'_> {
    /// Asks for the next command.
    pub(super) fn next_command(&mut self) -> Command {
        match self {
            Self::None => Command::GoOn,
            Self::By { ask, .. } => ask(),
        }
    }

    /// Returns whether the build is one of several over what is in flight.
    pub(super) fn is_controlled(&self) -> bool {
        matches!(self, Self::By { .. })
    }

    /// Returns whether anything may begin.
    pub(super) fn begins(&self) -> bool {
        !matches!(self, Self::By { begins: Begins::Nothing, .. })
    }
}
