//! The store: `cache/`, with blobs by digest, the journal of records, the workspace's lock, and the cache that machines share.
//!
//! It may be deleted, copied and shared at any time: whatever is torn or damaged in it is a miss. It does not know which results still stand.

pub mod archive;
pub mod at_work;
pub mod audit;
pub mod cas;
pub mod collect;
pub mod journal;
pub mod key_index;
pub mod noop_cache;
pub mod leftovers;
pub mod lock;
pub mod remote;
