//! Series beside the load: one thread that samples every probe at fixed times, counted from the start of the segment, or at the
//! edges of its windows.

mod edges;

use crate::failure::Failure;
use crate::probes::{Opened, ProbesRequest, Site};
use crate::request::{GroupRequest, Sample, Watch};
use crate::target::Target;
use plimsoll_load::monotonic_ns;
use plimsoll_probe::{Devices, Group, GroupPaths, Host, Probe};
use plimsoll_record::{ABSENT_SAMPLE, ProbeReport, SeriesWriter};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const NS_PER_MS: i64 = 1_000_000;

/// The newest of what progress lines show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Latest {
    #[serde(skip_serializing_if = "Option::is_none")]
    blks_hit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blks_read: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_sectors: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    io_read_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_bytes: Option<i64>,
}

/// A field of the newest figures.
type LatestField = fn(&mut Latest) -> &mut Option<i64>;

/// A probe, its file, and the columns that progress lines show.
struct Series {
    name: &'static str,
    probe: Box<dyn Probe>,
    /// None if the probe writes tables of its own.
    writer: Option<SeriesWriter>,
    shown: Vec<(usize, LatestField)>,
}

const SHOWN: [(&str, LatestField); 5] = [
    ("blks_hit", |latest| &mut latest.blks_hit),
    ("blks_read", |latest| &mut latest.blks_read),
    ("read_sectors", |latest| &mut latest.read_sectors),
    ("io_read_bytes", |latest| &mut latest.io_read_bytes),
    ("swap_bytes", |latest| &mut latest.swap_bytes),
];

impl Series {
    fn create(folder: &Path, name: &'static str, probe: Box<dyn Probe>) -> Result<Self, Failure> {
        let columns = probe.columns();
        let file = format!("{name}.npy");
        let create = || SeriesWriter::create(&folder.join(&file), &columns);
        let writer = if columns.is_empty() { Ok(None) } else { create().map(Some) };
        let writer = writer.map_err(|error| Failure::Record(format!("{file} cannot be written: {error}")))?;
        let place = |shown: &str| columns.iter().position(|column| *column == shown);
        let shown = SHOWN.iter().filter_map(|(name, field)| Some((place(name)?, *field))).collect();
        Ok(Self { name, probe, writer, shown })
    }

    fn sample(&mut self, latest: &mut Latest) -> io::Result<()> {
        let mut result = Ok(());
        let t_ns = monotonic_ns();
        self.shown.iter().for_each(|(_, field)| *field(latest) = None);
        let Self { probe, writer, shown, .. } = self;
        probe.sample(&mut |row| {
            for (place, field) in shown.iter().filter(|(place, _)| row[*place] != ABSENT_SAMPLE) {
                // Several rows (devices) add up.
                let sum = field(latest);
                *sum = Some(sum.unwrap_or(0) + row[*place]);
            }
            if let (Ok(()), Some(writer)) = (&result, writer.as_mut()) {
                result = writer.sample(t_ns, row);
            }
        });
        result
    }
}

/// What sampling amounts to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    pub(crate) samples: u64,
    pub(crate) late_ns_max: i64,
    /// What the probes in the kernel say, by name.
    pub(crate) probes: BTreeMap<String, ProbeReport>,
}

/// Probes that are open.
pub(crate) struct Sampler {
    series: Vec<Series>,
    interval_ns: i64,
    refused: BTreeMap<String, ProbeReport>,
}

/// What the sampling thread is asked for.
#[derive(Clone, Copy, Debug)]
enum Ask {
    /// A sample at an edge of a window.
    Edge,
    End,
}

/// Sampling under way.
pub(crate) struct Running {
    thread: JoinHandle<io::Result<Sampled>>,
    asks: Sender<Ask>,
    latest: Arc<Mutex<Latest>>,
}

impl Sampler {
    /// Opens the probes beside a load of `target` and creates their files in `folder`.
    pub(crate) fn beside_load(
        folder: &Path,
        target: &Target,
        sample: &Sample,
        probes: Option<&ProbesRequest>,
    ) -> Result<Self, Failure> {
        let mut sampler = Self::empty(sample.interval_ms);
        let site = Site { out: folder, live: None, target: Some(target) };
        let probes = probes.map_or_else(|| Ok(Vec::new()), |probes| probes.open(&site))?;
        sampler.add_surroundings(folder, true, &sample.devices, sample.group.as_ref())?;
        if let Some((name, counters)) = target.series()? {
            sampler.series.push(Series::create(folder, name, counters)?);
        }
        sampler.add_opened(folder, probes)?;
        Ok(sampler)
    }

    /// Opens the probes of a watch.
    pub(crate) fn of_watch(request: &Watch) -> Result<Self, Failure> {
        let mut sampler = Self::empty(request.interval_ms);
        let live = Some(Duration::from_millis(request.interval_ms));
        let probes = request.probes.open(&Site { out: &request.out, live, target: request.target.as_ref() })?;
        sampler.add_surroundings(&request.out, request.host, &request.devices, request.group.as_ref())?;
        sampler.add_opened(&request.out, probes)?;
        Ok(sampler)
    }

    fn empty(interval_ms: u64) -> Self {
        Self { series: Vec::new(), interval_ns: interval_ms as i64 * NS_PER_MS, refused: BTreeMap::new() }
    }

    /// Opens the series of what surrounds a server.
    fn add_surroundings(
        &mut self,
        folder: &Path,
        host: bool,
        devices: &[String],
        group: Option<&GroupRequest>,
    ) -> Result<(), Failure> {
        let proc = Path::new("/proc");
        if host {
            self.add(folder, "host", Host::open(proc)?)?;
        }
        if !devices.is_empty() {
            self.add(folder, "device", Devices::open(proc, devices)?)?;
        }
        if let Some(group) = group.cloned() {
            let GroupRequest { version, path, swap_path, reads } = group;
            let paths = GroupPaths { version, path, swap_path, reads };
            self.add(folder, "group", Group::open(&paths)?)?;
        }
        Ok(())
    }

    fn add(&mut self, folder: &Path, name: &'static str, probe: impl Probe + 'static) -> Result<(), Failure> {
        self.series.push(Series::create(folder, name, Box::new(probe))?);
        Ok(())
    }

    fn add_opened(&mut self, folder: &Path, opened: Vec<Opened>) -> Result<(), Failure> {
        for (name, probe) in opened {
            match probe {
                Ok(probe) => self.series.push(Series::create(folder, name, probe)?),
                Err(refusal) => {
                    self.refused.insert(name.to_owned(), ProbeReport::refused(refusal.reason, refusal.remedy));
                }
            }
        }
        Ok(())
    }

    /// What the probes in the kernel can say before the first sample.
    pub(crate) fn reports(&mut self) -> BTreeMap<String, ProbeReport> {
        let mut reports = self.refused.clone();
        for series in &mut self.series {
            if let Some(report) = series.probe.report() {
                reports.insert(series.name.to_owned(), report);
            }
        }
        reports
    }

    /// Takes the first sample, so that nothing after this call is left out, and goes on in a thread.
    pub(crate) fn start(mut self) -> io::Result<Running> {
        let (asks, asked) = channel();
        let latest: Arc<Mutex<Latest>> = Arc::default();
        let shared = Arc::clone(&latest);
        let started_ns = monotonic_ns();
        self.sample(&shared)?;
        let thread = std::thread::Builder::new()
            .name("sample".to_owned())
            .spawn(move || self.run(started_ns, &asked, &shared))?;
        Ok(Running { thread, asks, latest })
    }

    fn sample(&mut self, shared: &Mutex<Latest>) -> io::Result<()> {
        let mut latest = Latest::default();
        self.series.iter_mut().try_for_each(|series| series.sample(&mut latest))?;
        *shared.lock().unwrap_or_else(PoisonError::into_inner) = latest;
        Ok(())
    }

    fn run(mut self, started_ns: i64, asked: &Receiver<Ask>, shared: &Mutex<Latest>) -> io::Result<Sampled> {
        let mut sampled = Sampled { samples: 1, ..Sampled::default() };
        for number in 1.. {
            let due_ns = started_ns + number * self.interval_ns;
            let wait_ns = (due_ns - monotonic_ns()).max(0) as u64;
            let last = match asked.recv_timeout(Duration::from_nanos(wait_ns)) {
                Err(RecvTimeoutError::Timeout) => false,
                Ok(_) | Err(RecvTimeoutError::Disconnected) => true,
            };
            if !last {
                sampled.late_ns_max = sampled.late_ns_max.max(monotonic_ns() - due_ns);
            }
            self.sample(shared)?;
            sampled.samples += 1;
            if last {
                break;
            }
        }
        self.close(sampled)
    }

    fn close(mut self, mut sampled: Sampled) -> io::Result<Sampled> {
        sampled.probes = self.reports();
        for writer in self.series.into_iter().filter_map(|series| series.writer) {
            writer.close()?;
        }
        Ok(sampled)
    }
}

impl Running {
    pub(crate) fn latest(&self) -> Latest {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a sample at an edge of a window; [`Sampler::start_at_edges`] has who hears of it.
    pub(crate) fn sample_edge(&self) {
        let _ = self.asks.send(Ask::Edge);
    }

    /// Has it take what samples are still asked for, by the clock a last one, and close the files. Gives the newest figures, too.
    pub(crate) fn finish(self) -> io::Result<(Sampled, Latest)> {
        let Self { thread, asks, latest } = self;
        let _ = asks.send(Ask::End);
        let sampled = thread.join().unwrap_or_else(|_| Err(io::Error::other("the sampler panicked")))?;
        let latest = *latest.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((sampled, latest))
    }
}
