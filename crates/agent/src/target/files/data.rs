//! The files of a workload on a folder: made, checked, removed.

use super::Files;
use crate::failure::Failure;
use crate::workload::on_files;
use crate::{output, stop};
use plimsoll_files::Tree;
use plimsoll_record::Summary;
use plimsoll_workload::AnyWorkload;
use serde_json::json;
use std::time::{Duration, Instant};

/// At most one progress line in this time.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

impl Files {
    /// Makes the files of a workload, and has them reach the device.
    pub(in crate::target) fn populate(&self, workload: Box<dyn AnyWorkload>) -> Result<(), Failure> {
        let workload = on_files(workload)?;
        stop::exit_on_signal("the files are incomplete, drop them")?;
        let (started, total) = (Instant::now(), workload.estimated_bytes());
        let (mut done, mut told) = (0, Duration::ZERO);
        let tree = Tree::create(&self.folder, workload.name())?;
        tree.note_class(workload.class())?;
        workload.lay_out(&tree, &mut |bytes| {
            done += bytes;
            let since = started.elapsed();
            if since - told >= PROGRESS_EVERY {
                told = since;
                output::event("progress", json!({"done": done, "total": total, "seconds": since.as_secs_f64()}));
            }
        })?;
        output::event("populated", json!({"bytes": done, "seconds": started.elapsed().as_secs_f64()}));
        Ok(())
    }

    /// Reads what segments have left of them.
    pub(in crate::target) fn check(&self, workload: Box<dyn AnyWorkload>, segments: &[Summary]) -> Result<(), Failure> {
        let workload = on_files(workload)?;
        let checks = workload.check(&self.open(workload.name())?, segments)?;
        output::event("checked", json!({"checks": checks}));
        Ok(())
    }

    /// Removes what a workload has laid out.
    pub(in crate::target) fn remove(&self) -> Result<(), Failure> {
        stop::exit_on_signal("some of the files may still be there")?;
        output::event("dropped", json!({"existed": Tree::remove(&self.folder)?}));
        Ok(())
    }
}
