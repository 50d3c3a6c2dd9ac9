//! Writing logs: the logs in the workspace are those of the store, even if they were changed since.
//!
//! A file that somebody changed is put back, and the change is kept under `cache/replaced/`. A file whose bytes are in the store is nobody's edit: a build that was
//! killed before it wrote its logs left those of an earlier one.

use std::collections::HashSet;

use t2t_model::action::Phase;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_model::path::RepoPath;
use t2t_model::record::Blob;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_store::fs;

use super::{EngineError, Run, Stop, local};

impl Run<'_, '_> {
    /// Writes every log of this build that is missing or differs from the store's. What a build shows at its end must be in the store, too.
    pub(super) fn write_logs(&mut self) -> Result<(), Stop> {
        for index in self.session.graph.indices() {
            let target = self.session.graph.action(index).target();
            let path = match target.phase {
                Phase::Select => {
                    self.readable(index)?;
                    continue;
                }
                Phase::Log => local::log_path(&target.op),
                Phase::Summary => local::SUMMARY.to_owned(),
                _ => continue,
            };
            let Some(settled) = self.schedule.settled(index) else { continue };
            let Some(blob) = settled.record().and_then(|record| record.outputs.get(local::PAGE)) else { continue };
            let ran = matches!(settled, Settled::Ran(_) | Settled::Restored(_));
            self.restore(&path, *blob, if ran { Known::Rendered } else { Known::Fresh })?;
        }
        self.drop_logs_of_no_op()
    }

    /// Removes the logs of ops that ops.yaml has no more. One whose bytes are not the store's is somebody's own file, and stays.
    fn drop_logs_of_no_op(&mut self) -> Result<(), Stop> {
        let ops: HashSet<&str> = self.session.ops().into_iter().map(|(op, _)| op).collect();
        for name in fs::names(&self.session.root.join(local::LOGS)) {
            let Some(op) = local::op_of_log(&name).filter(|op| !ops.contains(op)) else { continue };
            let Ok(path) = RepoPath::new(&format!("{}/{name}", local::LOGS)) else { continue };
            let file = path.under(&self.session.root);
            let Ok(bytes) = fs::read(&file) else { continue };
            if self.cas.is_whole(Digest::of(&bytes)).is_ok_and(|whole| whole == Some(true)) {
                fs::remove(&file).map_err(|source| EngineError::Log { path: path.to_string(), source })?;
                let text = format!("{path} is removed: ops.yaml has no op `{op}` any more");
                (self.emit)(Event::Note { text });
            }
        }
        Ok(())
    }

    /// Fails where an artifact of the action at `index` is lost or damaged.
    fn readable(&self, index: Index) -> Result<(), Stop> {
        let record = self.schedule.settled(index).and_then(Settled::record);
        let selection = record.and_then(|record| record.outputs.get("selection"));
        selection.map_or(Ok(()), |blob| self.bytes(blob.digest).map(drop))
    }

    fn restore(&mut self, path: &str, blob: Blob, known: Known) -> Result<(), Stop> {
        let Ok(path) = RepoPath::new(path) else { return Ok(()) };
        let there = self.session.sources.bytes(&path);
        if there == Some(blob.digest) {
            return Ok(());
        }
        let bytes = self.bytes(blob.digest)?;
        let file = path.under(&self.session.root);
        let failed = |source| EngineError::Log { path: path.to_string(), source };
        match (there, known) {
            (Some(earlier), Known::Fresh) if self.cas.is_whole(earlier).is_ok_and(|whole| whole == Some(true)) => {}
            (Some(edited), Known::Fresh) => self.keep_replaced(&path, &edited.short())?,
            (None, Known::Fresh) => (self.emit)(Event::Note { text: format!("{path} was missing and is restored") }),
            (_, Known::Rendered) => {}
        }
        fs::write(&file, &bytes).map_err(failed)?;
        self.session.sources.look_again();
        Ok(())
    }

    /// Keeps a log that was edited by hand before it is put back.
    fn keep_replaced(&mut self, path: &RepoPath, edited: &str) -> Result<(), Stop> {
        let kept = local::kept_edit(path.as_str().trim_start_matches("logs/"), edited);
        fs::write(&self.session.root.join(&kept), &fs::read(&path.under(&self.session.root))?)?;
        let text = format!("{path} was edited by hand and is restored; the edit is kept in {kept}");
        (self.emit)(Event::Note { text });
        Ok(())
    }
}

/// What is known of a log's file before it is written.
#[derive(Clone, Copy)]
enum Known {
    /// This build rendered it: the file is expected to differ.
    Rendered,
    /// It was rendered before: a file that differs was changed by somebody else.
    Fresh,
}
