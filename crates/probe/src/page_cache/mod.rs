//! What the target asks of the page cache, by file class, in pages; definitions in README.md.

mod fields;
mod self_test;
mod settings;

use crate::bpf::{CostMeter, Kernel, Programs, Wanted, WatchedFileSystem, summed, with_tracefs};
use crate::folders::{CLASSES, Known, OWN, OwnClass, SELF_TEST, Tree};
use crate::{Probe, Refusal};
use fields::Fields;
use libbpf_rs::MapHandle;
use plimsoll_record::{ABSENT_SAMPLE, Counts, PageCacheReport, PageIdentity, ProbeReport, ProbeStatus, SelfTest};
use settings::{Settings, block_bytes, page_bytes};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page_cache.bpf.o"));

/// `enum counter`, but for the last, WHOLE_BLOCK_READS, which is none of the record's.
const COUNTERS: [&str; 20] = [
    "read_calls",
    "read_pages",
    "read_blocks",
    "read_missed_pages",
    "read_missed_blocks",
    "read_calls_missed",
    "read_calls_waited",
    "fault_pages",
    "fault_missed_pages",
    "readahead_pages",
    "prefetch_pages",
    "ahead_used_pages",
    "ahead_mapped_pages",
    "ahead_evicted_pages",
    "write_pages",
    "other_pages",
    "unsettled_pages",
    "added_pages",
    "evicted_pages",
    "dropped_pages",
];
/// What an addition can be accounted for by.
const ACCOUNTS: [&str; 7] = [
    "read_missed_pages",
    "fault_missed_pages",
    "readahead_pages",
    "prefetch_pages",
    "write_pages",
    "other_pages",
    "unsettled_pages",
];
const FAULT_COLUMNS: [&str; 3] = ["fault_pages", "fault_missed_pages", "ahead_mapped_pages"];
/// `enum lost`, and what the kernel left out.
const LOST: [&str; 4] = ["files", "tasks", "ahead", "intervals"];
const LOST_EVENTS: &str = "events";
/// How long reads under way may take to end before additions in no account are called a fault.
const SETTLING_LOOKS: u32 = 50;
const SETTLING_PAUSE: Duration = Duration::from_millis(10);

/// Where the ranges of reads come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requests {
    /// The best the kernel has.
    #[default]
    Auto,
    /// The tracepoint mm_filemap_get_pages.
    GetPages,
    /// The end of read calls.
    SystemCalls,
}

/// How the programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// BTF tracepoints, or classic ones where those are refused.
    #[default]
    Auto,
    /// BTF tracepoints.
    Btf,
    /// Classic tracepoints.
    Tracepoint,
}

/// What tests may break, to see the probe refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A program is attached to a tracepoint that does not exist.
    Attach,
    /// Folders go into the program's map under numbers that are not theirs.
    FolderMap,
}

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct PageCacheOptions {
    /// Folders and their classes.
    pub trees: Vec<Tree>,
    /// Classes of the workload's own among the files there; the first that fits a file has it.
    pub own: Vec<OwnClass>,
    /// Where the self-test's files may lie for a moment; on a file system of the target.
    pub scratch: PathBuf,
    /// Where the ranges of reads come from.
    pub requests: Requests,
    /// How the programs are attached.
    pub attachment: Attachment,
    /// For tests only.
    pub fault: Option<Fault>,
}

/// The probe.
pub struct PageCache {
    // Declared first: programs are detached before their maps go.
    _programs: Programs,
    counters: MapHandle,
    losses: MapHandle,
    cost: CostMeter,
    by_get_pages: bool,
    attachment: Attachment,
    faults_are_seen: bool,
    self_test: SelfTest,
    file_systems: Vec<WatchedFileSystem>,
    classes: Vec<Counted>,
    first: Option<Vec<Vec<i64>>>,
    lost_before: Vec<i64>,
    row: Vec<i64>,
}

/// A file class of the record.
#[derive(Clone, Debug)]
struct Counted {
    name: String,
    number: u32,
    /// Of a workload's own: the class that it is a part of.
    within: Option<&'static str>,
}

/// The classes of the record in their order: those that every target has, then the workload's own.
fn classes(own: &[OwnClass]) -> Vec<Counted> {
    let every = (0..).zip(CLASSES).map(|(number, name)| Counted { name: name.to_owned(), number, within: None });
    let theirs = (OWN..).zip(own).map(|(number, one)| {
        let within = Some(CLASSES[one.within as usize]);
        Counted { name: one.name.clone(), number, within }
    });
    every.chain(theirs).collect()
}

fn place(counter: &str) -> usize {
    COUNTERS.iter().position(|known| *known == counter).unwrap_or(COUNTERS.len())
}

/// Programs of the object for a kernel that has `faults` and shows `ring_reads`, asked by `by_get_pages`.
fn wanted(btf: bool, by_get_pages: bool, faults: bool, ring_reads: bool) -> Vec<Wanted> {
    let all = [
        (true, "on_add", "classic_add", "mm_filemap_add_to_page_cache"),
        (true, "on_delete", "classic_delete", "mm_filemap_delete_from_page_cache"),
        (by_get_pages, "on_get_pages", "classic_get_pages", "mm_filemap_get_pages"),
        (!by_get_pages, "on_sys_exit", "classic_sys_exit", "sys_exit"),
        (ring_reads, "on_submit", "", "io_uring_submit_req"),
        (faults, "on_fault", "classic_fault", "mm_filemap_fault"),
        (faults, "on_map_pages", "classic_map_pages", "mm_filemap_map_pages"),
        (true, "on_switch", "classic_switch", "sched_switch"),
    ];
    let category = |name| match name {
        "sys_exit" => "raw_syscalls",
        "sched_switch" => "sched",
        _ => "filemap",
    };
    let chosen = all.into_iter().filter(|(is_wanted, ..)| *is_wanted);
    chosen
        .map(|(_, by_btf, classic, name)| match btf {
            true => Wanted { function: by_btf, tracepoint: None },
            false => Wanted { function: classic, tracepoint: Some((category(name), name)) },
        })
        .collect()
}

impl PageCache {
    /// Loads, attaches and tests the probe.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(options: &PageCacheOptions) -> Result<Self, Refusal> {
        let by_btf = || Self::start_by(options, Attachment::Btf, Fields::default());
        let by_tracepoints =
            || with_tracefs(|events| Self::start_by(options, Attachment::Tracepoint, Fields::read(events)?));
        match options.attachment {
            Attachment::Auto => by_btf().or_else(|first| by_tracepoints().map_err(|_| first)),
            Attachment::Btf => by_btf(),
            Attachment::Tracepoint => by_tracepoints(),
        }
    }

    fn start_by(options: &PageCacheOptions, attachment: Attachment, fields: Fields) -> Result<Self, Refusal> {
        let kernel = Kernel::read()?;
        let has_get_pages = kernel.has_tracepoint("mm_filemap_get_pages");
        if options.requests == Requests::GetPages && !has_get_pages {
            return Err(Refusal::from("this kernel has no tracepoint mm_filemap_get_pages".to_owned()));
        }
        let by_get_pages = has_get_pages && options.requests != Requests::SystemCalls;
        let faults_are_seen =
            kernel.has_tracepoint("mm_filemap_fault") && kernel.has_tracepoint("mm_filemap_map_pages");
        let folder = self_test::Folder::create(&options.scratch)?;
        let btf = attachment == Attachment::Btf;
        let known = Known::with_own(&options.trees, &options.own, btf)?.with_self_test(folder.path(), btf)?;
        let devices = known.devices();
        // What a request holds is told by its type alone, so a classic tracepoint has no way to it.
        let ring_reads_are_seen = btf && by_get_pages && kernel.has_tracepoint("io_uring_submit_req");
        let own = &options.own;
        let settings = Settings { devices, own, faults_are_seen, ring_reads_are_seen, by_subvolume: btf, fields };
        let settings = settings.bytes()?;
        let mut wanted = wanted(btf, by_get_pages, faults_are_seen, ring_reads_are_seen);
        if options.fault == Some(Fault::Attach) {
            wanted.push(Wanted { function: wanted[0].function, tracepoint: Some(("filemap", "no_such_tracepoint")) });
        }
        let programs = Programs::start(OBJECT, &settings, &wanted, |programs| {
            known.fill(programs, options.fault == Some(Fault::FolderMap))
        })?;
        let (counters, losses, cost) = (programs.map("counters")?, programs.map("losses")?, programs.cost_meter()?);
        let mut probe = Self {
            _programs: programs,
            counters,
            losses,
            cost,
            by_get_pages,
            attachment,
            faults_are_seen,
            self_test: SelfTest::default(),
            file_systems: known.file_systems,
            classes: classes(own),
            first: None,
            lost_before: Vec::new(),
            row: Vec::new(),
        };
        probe.self_test = self_test::run(folder.path(), &|| probe.of_self_test())?;
        Ok(probe)
    }

    fn of_self_test(&self) -> self_test::Counted {
        let counts = self.counts(SELF_TEST);
        let of = |counter| counts.get(place(counter)).copied().unwrap_or(-1);
        self_test::Counted { missed: of("read_missed_pages"), added: of("added_pages") }
    }

    fn counts(&self, class: u32) -> Vec<i64> {
        let Some(mut counts) = summed(&self.counters, class, COUNTERS.len() + 1) else {
            return vec![ABSENT_SAMPLE; COUNTERS.len()];
        };
        // Reads of one whole block are counted as such, and stand for a call, a block and its pages.
        let whole = counts.pop().unwrap_or(0);
        let pages = i64::from(block_bytes() / page_bytes());
        for (counter, each) in [("read_calls", 1), ("read_blocks", 1), ("read_pages", pages)] {
            counts[place(counter)] += each * whole;
        }
        counts
    }

    fn is_absent(&self, counter: &str) -> bool {
        !self.faults_are_seen && FAULT_COLUMNS.contains(&counter)
    }

    fn growth(&self) -> BTreeMap<String, Counts> {
        let first = |class: usize, at: usize| self.first.as_ref().map_or(0, |first| first[class][at]);
        let of_class = |(place, class): (usize, &Counted)| {
            let now = self.counts(class.number);
            let known = COUNTERS.iter().enumerate().filter(|(_, counter)| !self.is_absent(counter));
            let grown = known.map(|(at, counter)| ((*counter).to_owned(), now[at] - first(place, at)));
            (class.name.clone(), grown.collect())
        };
        self.classes.iter().enumerate().map(of_class).collect()
    }

    /// Additions against their accounts since the probe was attached. Between an addition and the moment that its read's range
    /// is known it is in no account, so a difference is looked at again before it is believed.
    fn identity(&self) -> BTreeMap<String, PageIdentity> {
        let of_class = |class: &Counted| {
            let counts = self.counts(class.number);
            let added = counts[place("added_pages")];
            let accounted = ACCOUNTS.iter().map(|account| counts[place(account)]).sum();
            (class.name.clone(), PageIdentity { added, accounted, holds: added == accounted })
        };
        for _ in 0..SETTLING_LOOKS {
            let found: BTreeMap<_, _> = self.classes.iter().map(of_class).collect();
            if found.values().all(|class| class.holds) {
                return found;
            }
            std::thread::sleep(SETTLING_PAUSE);
        }
        self.classes.iter().map(of_class).collect()
    }

    fn lost(&self) -> Vec<i64> {
        summed(&self.losses, 0, LOST.len()).unwrap_or_else(|| vec![0; LOST.len()])
    }
}

impl Probe for PageCache {
    fn columns(&self) -> Vec<&'static str> {
        let known = COUNTERS.into_iter().filter(|counter| !self.is_absent(counter));
        std::iter::once("class").chain(known).collect()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let counts: Vec<Vec<i64>> = self.classes.iter().map(|class| self.counts(class.number)).collect();
        let known: Vec<usize> = (0..COUNTERS.len()).filter(|at| !self.is_absent(COUNTERS[*at])).collect();
        for (class, counts) in counts.iter().enumerate() {
            self.row.clear();
            self.row.push(class as i64);
            self.row.extend(known.iter().map(|at| counts[*at]));
            row(&self.row);
        }
        self.cost.sampled(false);
        if self.first.is_none() {
            self.first = Some(counts);
            self.lost_before = self.lost();
        }
    }

    fn report(&mut self) -> Option<ProbeReport> {
        let identity = self.identity();
        let totals = self.growth();
        let now = self.lost();
        let before = |at: usize| self.lost_before.get(at).copied().unwrap_or(0);
        let mut lost: BTreeMap<String, u64> =
            LOST.iter().enumerate().map(|(at, what)| ((*what).to_owned(), (now[at] - before(at)) as u64)).collect();
        lost.insert(LOST_EVENTS.to_owned(), self.cost.missed(|_| true));
        let why = "this kernel has no tracepoints mm_filemap_fault and mm_filemap_map_pages";
        let absent = COUNTERS.iter().filter(|counter| self.is_absent(counter));
        let absent = absent.map(|counter| ((*counter).to_owned(), why.to_owned())).collect();
        let programs = if self.attachment == Attachment::Btf { "tp_btf" } else { "tracepoint" };
        Some(ProbeReport::new(PageCacheReport {
            status: ProbeStatus::on(programs).without(absent),
            requests: if self.by_get_pages { "get_pages" } else { "system_calls" }.to_owned(),
            self_test: self.self_test,
            classes: self.classes.iter().map(|class| class.name.clone()).collect(),
            part_of: self.classes.iter().filter_map(|one| Some((one.name.clone(), one.within?.to_owned()))).collect(),
            page_bytes: u64::from(page_bytes()),
            block_bytes: u64::from(block_bytes()),
            file_systems: self.file_systems.iter().map(|one| one.shown.clone()).collect(),
            identity,
            totals,
            lost,
            cost: self.cost.cost(),
        }))
    }
}
