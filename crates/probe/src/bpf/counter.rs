//! A probe of one device that only counts: a per-CPU row of numbers in the map `counters`.

use super::{CostMeter, Programs, summed};
use crate::Refusal;
use libbpf_rs::MapHandle;
use plimsoll_record::{ABSENT_SAMPLE, CounterReport, FileSystem, ProbeReport, ProbeStatus};

/// Programs with one row of counters.
pub(crate) struct Counter {
    // Declared first: programs are detached before their maps go.
    _programs: Programs,
    counters: MapHandle,
    cost: CostMeter,
    attachment: &'static str,
    device: String,
    file_systems: Vec<FileSystem>,
    columns: &'static [&'static str],
    first: Option<Vec<i64>>,
}

impl Counter {
    pub(crate) fn new(
        programs: Programs,
        attachment: &'static str,
        device: String,
        file_systems: Vec<FileSystem>,
        columns: &'static [&'static str],
    ) -> Result<Self, Refusal> {
        let (counters, cost) = (programs.map("counters")?, programs.cost_meter()?);
        Ok(Self { _programs: programs, counters, cost, attachment, device, file_systems, columns, first: None })
    }

    fn counts(&self) -> Vec<i64> {
        let absent = || vec![ABSENT_SAMPLE; self.columns.len()];
        summed(&self.counters, 0, self.columns.len()).unwrap_or_else(absent)
    }

    pub(crate) fn columns(&self) -> Vec<&'static str> {
        std::iter::once("device").chain(self.columns.iter().copied()).collect()
    }

    pub(crate) fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let counts = self.counts();
        let device = std::iter::once(0);
        row(&device.chain(counts.iter().copied()).collect::<Vec<i64>>());
        self.cost.sampled(false);
        if self.first.is_none() {
            self.first = Some(counts);
        }
    }

    pub(crate) fn report(&self) -> ProbeReport {
        let first = |at: usize| self.first.as_ref().map_or(0, |first| first[at]);
        let counts = self.counts();
        let grown = self.columns.iter().enumerate().map(|(at, name)| ((*name).to_owned(), counts[at] - first(at)));
        ProbeReport::new(CounterReport {
            status: ProbeStatus::on(self.attachment),
            devices: vec![self.device.clone()],
            file_systems: self.file_systems.clone(),
            totals: [(self.device.clone(), grown.collect())].into(),
            lost: [("events".to_owned(), self.cost.missed(|_| true))].into(),
            cost: self.cost.cost(),
        })
    }
}
