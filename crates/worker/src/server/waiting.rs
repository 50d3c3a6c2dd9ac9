//! Messages that cannot be served yet: what each waits for.
//!
//! It does not know how they are served.

use std::time::Instant;

use t2t_protocol::{ToWorker, WarmChild};

use super::{GETS_READY, Server};
use crate::ready::device_of;

/// How many children start one device at once. The driver serves them in turns. With many, the first is ready only when nearly all are, and other calls of the
/// driver wait among them. One at a time would be slower, too: each child has much to do beside the driver's part.
const START_AT_ONCE: usize = 6;

impl Server {
    /// Says whether the next part of the later imports is due: somebody waits for it, or there is nothing else to do.
    pub(super) fn is_to_import(&self) -> bool {
        let is_awaited = !self.has_heard && self.waiting.iter().any(|message| self.needs_more(message));
        !self.later.is_over() && (is_awaited || (self.is_quiet && !self.later.is_over_unasked()))
    }

    /// Says whether a message waits for a later import, and for nothing else before that.
    fn needs_more(&self, message: &ToWorker) -> bool {
        match message {
            ToWorker::Run(request) => !self.later.has(request.needs.as_deref()),
            ToWorker::Prepare(warm_child) => {
                !self.later.has(warm_child.needs.as_deref()) && !self.would_disturb(warm_child)
            }
            _ => false,
        }
    }

    /// Says whether a message waits for something that may happen at any moment, and not for the end of an action.
    pub(super) fn is_awaited(&self) -> bool {
        let is_held =
            |message: &ToWorker| matches!(message, ToWorker::Prepare(warm_child) if self.would_disturb(warm_child));
        !self.waiting.iter().all(is_held)
    }

    /// Says whether a running action would be disturbed while this child gets ready.
    pub(super) fn would_disturb(&self, warm_child: &WarmChild) -> bool {
        self.running.iter().any(|child| child.is_disturbed_by(warm_child))
    }

    /// Says whether as many children as may already start this child's device.
    pub(super) fn is_crowded(&mut self, warm_child: &WarmChild) -> bool {
        let device = device_of(&warm_child.environment).filter(|_| warm_child.scratch.is_none());
        device.is_some_and(|device| self.warm_pool.starting(&device, Instant::now(), GETS_READY) >= START_AT_ONCE)
    }
}
