//! Study S1's own counter: lookups of buffer heads. Beside the page cache's figures and never merged with them.

use crate::bpf::{Counter, Kernel, Programs, Wanted, file_system_of};
use crate::{Probe, Refusal};
use plimsoll_record::ProbeReport;
use std::path::Path;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/buffer_heads.bpf.o"));
const COLUMNS: [&str; 1] = ["touched"];

/// The probe.
pub struct BufferHeads(Counter);

impl BufferHeads {
    /// Watches the block device under the file system of `path`.
    ///
    /// # Errors
    /// The reason why its figures cannot be had.
    pub fn start(path: &Path) -> Result<Self, Refusal> {
        if !Kernel::read()?.has_tracepoint("block_touch_buffer") {
            return Err(Refusal::from("this kernel has no tracepoint block_touch_buffer".to_owned()));
        }
        let file_system = file_system_of(path)?.file_system;
        let wanted = [Wanted { function: "on_touch", tracepoint: None }];
        let programs = Programs::start(OBJECT, &file_system.device.to_ne_bytes(), &wanted, |_| Ok(()))?;
        let device = file_system.shown.device.clone();
        Ok(Self(Counter::new(programs, "tp_btf", device, vec![file_system.shown], &COLUMNS)?))
    }
}

impl Probe for BufferHeads {
    fn columns(&self) -> Vec<&'static str> {
        self.0.columns()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.0.sample(row);
    }

    fn report(&mut self) -> Option<ProbeReport> {
        Some(self.0.report())
    }
}
