//! Running: on another machine, the action of one bundle is performed.
//!
//! It does not know how.

use std::path::Path;

use t2t_store::node::Node;

use super::super::error::CliError;
use super::super::{Common, streams};
use super::performer::Performer;

/// Performs the action of the bundle in `folder`, writes its result to the file `result`, and says in a document how it ended.
pub(super) fn run(
    common: &Common,
    (folder, result): (&Path, &Path),
    node: Node,
    jobs: Option<usize>,
) -> Result<u8, CliError> {
    super::read(folder)?;
    let mut performer = Performer::new(common, node, jobs)?;
    let ended = performer.perform(folder, result, &mut |line| streams::say(&line))?;
    streams::print(&format!("{}\n", ended.document));
    Ok(ended.exit)
}
