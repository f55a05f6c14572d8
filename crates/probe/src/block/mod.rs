//! The requests of the disks that hold a target's files: queue time and device time, sizes, by what they carry; definitions in
//! README.md.

mod depth;
mod disks;
mod journal;
mod rows;
mod self_test;
mod settings;

use crate::bpf::{CostMeter, Kernel, Programs, Wanted, WatchedFileSystem, now_ns, summed};
use crate::folders::Files;
use crate::{Probe, Refusal};
use depth::{Depth, Depths};
use disks::System;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plimsoll_record::{BlockReport, Check, DiskRequests, ProbeReport, ProbeStatus};
use rows::{CLASSES, OPERATIONS, Segment};
use settings::{Watched, without};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/block.bpf.o"));

/// In the order in which they are attached: what is issued has to be seen to complete.
const PROGRAMS: [(&str, &str); 6] = [
    ("on_complete", "block_rq_complete"),
    ("on_requeue", "block_rq_requeue"),
    ("on_back_merge", "block_bio_backmerge"),
    ("on_front_merge", "block_bio_frontmerge"),
    ("on_request_merge", "block_rq_merge"),
    ("on_issue", "block_rq_issue"),
];
const OF_SPLITS: (&str, &str) = ("on_split", "block_split");
const SPLITS: &str = "splits";

/// `enum event`.
const EVENTS: usize = 9;
const FLUSH_ASKS: usize = 5;
/// `enum lost`, and what the kernel left out.
const LOST: [&str; 2] = ["files", "buckets"];
const LOST_EVENTS: &str = "events";
/// Those whose end was not seen, and those that there was no room for.
const LOST_REQUESTS: &str = "requests";
/// Place of `segment` in `struct flight`.
const FLIGHT_SEGMENT_AT: usize = 27;
/// Programs that were at work when a segment ended are done by then.
const SETTLE: Duration = Duration::from_millis(2);

/// The probe.
pub struct Requests {
    // Declared first: programs are detached before their maps go.
    _programs: Programs,
    maps: Maps,
    cost: CostMeter,
    checks: Vec<Check>,
    watched: Watched,
    file_systems: Vec<WatchedFileSystem>,
    out: PathBuf,
    period: u32,
    recording: Recording,
}

enum Recording {
    NotYet,
    Now { depths: Depths, began_ns: i64, lost_before: Vec<i64> },
    Failed(String),
}

/// What the programs count into.
struct Maps {
    counters: MapHandle,
    events: MapHandle,
    losses: MapHandle,
    flights: MapHandle,
    buckets: MapHandle,
    depths: MapHandle,
    target: MapHandle,
}

impl Maps {
    fn of(programs: &Programs) -> Result<Self, Refusal> {
        Ok(Self {
            counters: programs.map("counters")?,
            events: programs.map("events")?,
            losses: programs.map("losses")?,
            flights: programs.map("flights")?,
            buckets: programs.map("buckets")?,
            depths: programs.map("depths")?,
            target: programs.map_of_section(".data.target")?,
        })
    }

    /// `struct target`.
    fn tell(&self, own_file: u64, segment: Segment, period: u32) -> Result<(), Refusal> {
        let mut target = own_file.to_ne_bytes().to_vec();
        target.extend([segment as u32, period].iter().flat_map(|word| word.to_ne_bytes()));
        let told = self.target.update(&0_u32.to_ne_bytes(), &target, MapFlags::ANY);
        told.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
    }

    fn lost(&self) -> Vec<i64> {
        summed(&self.losses, 0, LOST.len()).unwrap_or_else(|| vec![0; LOST.len()])
    }

    /// How many requests that were issued in the measured segment are at each disk.
    fn under_way(&self) -> BTreeMap<u8, u64> {
        let mut found = BTreeMap::new();
        for key in self.flights.keys() {
            let Ok(Some(flight)) = self.flights.lookup(&key, MapFlags::ANY) else { continue };
            if flight.get(FLIGHT_SEGMENT_AT).copied() == Some(Segment::Measured as u8) {
                *found.entry(flight[FLIGHT_SEGMENT_AT - 3]).or_insert(0) += 1;
            }
        }
        found
    }
}

impl Requests {
    /// Loads, attaches and tests the probe; a table of its own goes to `out`.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(files: &Files, out: &Path) -> Result<Self, Refusal> {
        let known = files.known()?;
        let mut watched = Watched::of(&known, &System::own()?)?;
        let kernel = Kernel::read()?;
        let splits = without(&kernel, OF_SPLITS.1);
        let functions = PROGRAMS.iter().chain(splits.is_none().then_some(&OF_SPLITS));
        let wanted: Vec<Wanted> = functions.map(|(function, _)| Wanted { function, tracepoint: None }).collect();
        watched.absent.extend(splits.map(|why| (SPLITS.to_owned(), why)));
        let programs =
            Programs::start(OBJECT, &watched.bytes(&known)?, &wanted, |programs| known.fill(programs, false))?;
        let (maps, cost) = (Maps::of(&programs)?, programs.cost_meter()?);
        let own = self_test::Own::create(&files.folder)?;
        maps.tell(own.inode, Segment::SelfTest, 0)?;
        let checks = own.run(&|| rows::own_sums(&maps.counters, watched.disks.len()))?;
        Ok(Self {
            _programs: programs,
            maps,
            cost,
            checks,
            watched,
            file_systems: known.file_systems,
            out: out.to_owned(),
            period: 0,
            recording: Recording::NotYet,
        })
    }

    /// What has happened to a disk's requests in the measured segment, in the order of `enum event`.
    fn events(&self, disk: usize) -> [u64; EVENTS] {
        let row = (Segment::Measured as usize * disks::DISKS_MAX + disk) as u32;
        let found = summed(&self.maps.events, row, EVENTS).unwrap_or_else(|| vec![0; EVENTS]);
        std::array::from_fn(|at| found[at] as u64)
    }

    fn depths(&self, period: u32, now_ns: i64) -> Vec<Depth> {
        let disks = 0..self.watched.disks.len();
        let depth = |disk| Depth {
            flush_asks: self.events(disk)[FLUSH_ASKS],
            ..Depth::read(&self.maps.depths, disk, period, now_ns).unwrap_or_default()
        };
        disks.map(depth).collect()
    }

    /// What is issued from now on is the segment's.
    fn begin(&mut self) -> Result<(), String> {
        self.period = 1;
        self.maps.tell(0, Segment::Measured, self.period).map_err(|refusal| refusal.reason)?;
        let began_ns = now_ns();
        let depths = Depths::begin(&self.out, began_ns, &self.depths(self.period, began_ns));
        let depths = depths.map_err(|error| format!("block_depth.npy cannot be written: {error}"))?;
        self.recording = Recording::Now { depths, began_ns, lost_before: self.maps.lost() };
        Ok(())
    }

    /// A period ends, and the next begins, or the segment ends.
    fn go_on(&mut self, next: Segment) -> Result<(), String> {
        let ended = self.period;
        self.period += 1;
        self.maps.tell(0, next, self.period).map_err(|refusal| refusal.reason)?;
        if next == Segment::Ended {
            std::thread::sleep(SETTLE);
        }
        let now = now_ns();
        let read = self.depths(ended, now);
        let Recording::Now { depths, .. } = &mut self.recording else { return Ok(()) };
        depths.take(now, read).map_err(|error| format!("block_depth.npy cannot be written: {error}"))
    }

    /// What is known from the start.
    fn head(&self) -> BlockReport {
        BlockReport {
            status: ProbeStatus::on("tp_btf").without(self.watched.absent.clone()),
            classes: CLASSES.map(str::to_owned).to_vec(),
            operations: OPERATIONS.map(str::to_owned).to_vec(),
            devices: self.watched.disks.iter().map(|disk| disk.name.clone()).collect(),
            file_systems: self.file_systems.iter().map(|one| one.shown.clone()).collect(),
            checks: self.checks.clone(),
            lost: BTreeMap::new(),
            request_totals: BTreeMap::new(),
            disk_requests: BTreeMap::new(),
            cost: self.cost.cost(),
        }
    }

    fn disk_requests(&self, disk: usize, depths: &Depths, under_way: u64, completed: u64) -> DiskRequests {
        let [issued, requeued, before, unseen, no_room, flush_asks, bios_merged, requests_merged, splits] =
            self.events(disk);
        let (depth_ns, depth_max) = depths.of(disk);
        DiskRequests {
            issued,
            completed,
            requeued,
            under_way,
            unseen,
            no_room,
            holds: issued == completed + requeued + under_way + unseen + no_room,
            before,
            flush_asks,
            bios_merged,
            requests_merged,
            splits: (!self.watched.absent.contains_key(SPLITS)).then_some(splits),
            depth_ns,
            depth_max,
            segment_ns: 0,
        }
    }

    fn add_totals(&self, depths: &Depths, began_ns: i64, ended_ns: i64, report: &mut BlockReport) {
        let under_way = self.maps.under_way();
        let mut distributions = rows::distributions(&self.maps.buckets);
        let rows = rows::rows(&self.maps.counters, Segment::Measured, self.watched.disks.len());
        let mut completed = vec![0; self.watched.disks.len()];
        for (&(disk, class, operation), row) in &rows {
            let totals = rows::totals((disk, class, operation), row, &mut distributions);
            completed[disk] += totals.count;
            let of_disk = report.request_totals.entry(self.watched.disks[disk].name.clone()).or_default();
            let of_class = of_disk.entry(CLASSES[class].to_owned()).or_default();
            of_class.insert(OPERATIONS[operation].to_owned(), totals);
        }
        for (disk, watched) in self.watched.disks.iter().enumerate() {
            let left = under_way.get(&(disk as u8)).copied().unwrap_or(0);
            let mut found = self.disk_requests(disk, depths, left, completed[disk]);
            found.segment_ns = (ended_ns - began_ns).max(0) as u64;
            report.lost.entry(LOST_REQUESTS.to_owned()).and_modify(|lost| *lost += found.unseen + found.no_room);
            report.disk_requests.insert(watched.name.clone(), found);
        }
    }
}

impl Probe for Requests {
    fn columns(&self) -> Vec<&'static str> {
        ["device", "class", "operation"].into_iter().chain(rows::COLUMNS).collect()
    }

    /// What nothing was counted of yet has no row.
    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let done = match &self.recording {
            Recording::NotYet => self.begin(),
            Recording::Now { .. } => self.go_on(Segment::Measured),
            Recording::Failed(_) => Ok(()),
        };
        if let Err(reason) = done {
            self.recording = Recording::Failed(reason);
        }
        for (&(disk, class, operation), counted) in
            &rows::rows(&self.maps.counters, Segment::Measured, self.watched.disks.len())
        {
            let place = [disk as i64, class as i64, operation as i64];
            row(&place.into_iter().chain(rows::columns(counted)).collect::<Vec<i64>>());
        }
        self.cost.sampled(false);
    }

    fn report(&mut self) -> Option<ProbeReport> {
        if matches!(self.recording, Recording::Now { .. })
            && let Err(reason) = self.go_on(Segment::Ended)
        {
            self.recording = Recording::Failed(reason);
        }
        let ended_ns = now_ns();
        let mut report = self.head();
        match &mut self.recording {
            Recording::NotYet => {}
            Recording::Failed(reason) => return Some(ProbeReport::refused(reason.clone(), None)),
            Recording::Now { depths, .. } => {
                if let Err(error) = depths.close() {
                    return Some(ProbeReport::refused(format!("block_depth.npy cannot be written: {error}"), None));
                }
            }
        }
        if let Recording::Now { depths, began_ns, lost_before } = &self.recording {
            let lost = self.maps.lost().into_iter().zip(lost_before).map(|(now, before)| (now - before).max(0) as u64);
            report.lost = LOST.map(str::to_owned).into_iter().zip(lost).collect();
            report.lost.extend([(LOST_EVENTS.to_owned(), self.cost.missed(|_| true)), (LOST_REQUESTS.to_owned(), 0)]);
            self.add_totals(depths, *began_ns, ended_ns, &mut report);
        }
        Some(ProbeReport::new(report))
    }
}
