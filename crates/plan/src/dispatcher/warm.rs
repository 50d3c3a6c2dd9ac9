//! Warm children: how many wait at each server for a request, or will. Nobody else counts them.
//!
//! It does not know what they get ready for, nor processes: one that died unseen is counted until a request would have had it.

use std::collections::BTreeMap;

use t2t_protocol::ServerKind;

/// A server that runs. One that is started later has a greater number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server {
    /// Its kind, of which one runs at a time.
    pub kind: ServerKind,
    /// Its number, that of no other server.
    pub serial: u64,
}

/// A request that a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The server.
    pub server: Server,
    /// The request's number there.
    pub id: u64,
}

/// The warm children of all servers.
#[derive(Debug, Default)]
pub(super) struct Warm {
    servers: BTreeMap<ServerKind, Serving>,
    /// For how many children a server is looked for that is to make them.
    being_asked: usize,
}

#[derive(Debug, Default)]
struct Serving {
    serial: u64,
    /// By key: how many wait, or will.
    waiting: BTreeMap<String, usize>,
    /// By request: the key of the child that serves it and waits again afterwards.
    lent: BTreeMap<u64, String>,
    /// How many children it was told to make.
    ordered: u64,
    /// Of how many of them it has said that they are ready, or never will be.
    prepared: u64,
}

impl Warm {
    /// Takes a child for a request: the server hands it over where there is one. Whether it `comes_back` is what the request says.
    pub(super) fn take(&mut self, call: Call, key: &str, comes_back: bool) {
        let Some(serving) = self.of(call.server) else { return };
        let Some(waiting) = serving.waiting.get_mut(key).filter(|waiting| **waiting > 0) else { return };
        *waiting -= 1;
        if comes_back {
            serving.lent.insert(call.id, key.to_owned());
        }
    }

    /// Takes back the child that was lent for a request, if one was; where it did not stay, it is gone.
    pub(super) fn put_back(&mut self, call: Call, has_stayed: bool) {
        let Some(serving) = self.of(call.server) else { return };
        if let Some(key) = serving.lent.remove(&call.id).filter(|_| has_stayed) {
            *serving.waiting.entry(key).or_default() += 1;
        }
    }

    /// Returns how many children are to be made so that `most` wait, or will, and counts them. Those that come back are among them.
    pub(super) fn fill(&mut self, server: Server, key: &str, most: usize) -> usize {
        let Some(serving) = self.of(server) else { return 0 };
        let lent = serving.lent.values().filter(|other| *other == key).count();
        let waiting = serving.waiting.entry(key.to_owned()).or_default();
        let missing = most.saturating_sub(*waiting + lent);
        *waiting += missing;
        serving.ordered += missing as u64;
        missing
    }

    /// Notes of how many children in all a server has said that they are ready, or never will be.
    pub(super) fn note_prepared(&mut self, server: Server, prepared: u64) {
        if let Some(serving) = self.of(server) {
            serving.prepared = serving.prepared.max(prepared);
        }
    }

    /// Forgets the children that wait for a device. Their keys begin with it.
    pub(super) fn dismiss(&mut self, kind: ServerKind, device: &str) {
        let Some(serving) = self.servers.get_mut(&kind) else { return };
        serving.waiting.retain(|key, _| !key.starts_with(device));
    }

    /// Notes that a server is looked for, which is to make a child.
    pub(super) fn begin_asking(&mut self) {
        self.being_asked += 1;
    }

    /// Notes that it was told to, or that none was found.
    pub(super) fn end_asking(&mut self) {
        self.being_asked = self.being_asked.saturating_sub(1);
    }

    /// Returns whether children get ready at the server of this kind, or will.
    pub(super) fn get_ready(&self, kind: ServerKind) -> bool {
        self.being_asked > 0 || self.servers.get(&kind).is_some_and(|serving| serving.ordered > serving.prepared)
    }

    /// Forgets all children of a server that is gone.
    pub(super) fn forget(&mut self, server: Server) {
        if let Some(serving) = self.of(server) {
            *serving = Serving { serial: server.serial, ..Serving::default() };
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self, kind: ServerKind, key: &str) -> usize {
        self.servers.get(&kind).and_then(|serving| serving.waiting.get(key)).copied().unwrap_or(0)
    }

    /// Returns what is known of a server; None where a later one of its kind runs. Of one that is new nothing is known, and what was of the one before is forgotten.
    fn of(&mut self, server: Server) -> Option<&mut Serving> {
        let serving = self.servers.entry(server.kind).or_default();
        if server.serial > serving.serial {
            *serving = Serving { serial: server.serial, ..Serving::default() };
        }
        (serving.serial == server.serial).then_some(serving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Server = Server { kind: ServerKind::Device, serial: 1 };
    const SECOND: Server = Server { kind: ServerKind::Device, serial: 2 };

    const CALL: Call = Call { server: FIRST, id: 7 };

    #[test]
    fn as_many_are_made_as_are_missing_and_a_request_takes_one() {
        let mut warm = Warm::default();
        assert_eq!((warm.fill(FIRST, "GPU", 3), warm.fill(FIRST, "GPU", 3), warm.fill(FIRST, "GPU", 2)), (3, 0, 0));
        warm.take(CALL, "GPU", false);
        warm.take(CALL, "GPU judges", false);
        assert_eq!((warm.fill(FIRST, "GPU", 3), warm.fill(FIRST, "GPU judges", 1)), (1, 1));
        assert_eq!(warm.waiting(ServerKind::Device, "GPU"), 3);
    }

    #[test]
    fn one_that_serves_and_comes_back_is_not_made_anew_unless_it_is_gone() {
        let mut warm = Warm::default();
        for (has_stayed, missing) in [(true, 0), (false, 1)] {
            warm.fill(FIRST, "GPU judges", 1);
            warm.take(CALL, "GPU judges", true);
            assert_eq!(warm.fill(FIRST, "GPU judges", 1), 0);
            // A request for which none was there has a child of its own, which is of no account.
            warm.take(Call { id: 8, ..CALL }, "GPU judges", true);
            warm.put_back(Call { id: 8, ..CALL }, false);
            assert_eq!(warm.fill(FIRST, "GPU judges", 1), 0);
            warm.put_back(CALL, has_stayed);
            assert_eq!(warm.fill(FIRST, "GPU judges", 1), missing);
        }
    }

    #[test]
    fn children_get_ready_until_the_server_has_said_of_all_that_they_are() {
        let mut warm = Warm::default();
        assert!(!warm.get_ready(ServerKind::Device));
        warm.begin_asking();
        assert!(warm.get_ready(ServerKind::Device));
        warm.fill(FIRST, "GPU", 2);
        warm.end_asking();
        warm.note_prepared(FIRST, 1);
        assert!(warm.get_ready(ServerKind::Device) && !warm.get_ready(ServerKind::Interpreter));
        warm.note_prepared(FIRST, 2);
        assert!(!warm.get_ready(ServerKind::Device));
    }

    #[test]
    fn a_server_has_none_of_the_children_of_the_one_before_which_is_heard_no_more() {
        let mut warm = Warm::default();
        warm.fill(FIRST, "GPU", 2);
        assert_eq!(warm.fill(SECOND, "GPU", 2), 2);
        warm.note_prepared(FIRST, 9);
        warm.take(CALL, "GPU", false);
        assert_eq!((warm.fill(FIRST, "GPU", 5), warm.waiting(ServerKind::Device, "GPU")), (0, 2));
        assert!(warm.get_ready(ServerKind::Device));
        warm.forget(FIRST);
        assert!(warm.get_ready(ServerKind::Device));
        warm.forget(SECOND);
        assert!(!warm.get_ready(ServerKind::Device));
    }

    #[test]
    fn what_was_dismissed_is_made_anew_and_others_stay() {
        let mut warm = Warm::default();
        for key in ["GPU-1", "GPU-1 judges", "GPU-2"] {
            warm.fill(FIRST, key, 1);
        }
        warm.dismiss(ServerKind::Device, "GPU-1");
        assert_eq!(["GPU-1", "GPU-1 judges", "GPU-2"].map(|key| warm.fill(FIRST, key, 1)), [1, 1, 0]);
    }
}
