//! What operation i does: a pure function of seed and i, as far as it does not depend on which files there are.

use plimsoll_keys::{Choice, KeyChooser, Words};
use serde::Deserialize;

/// Tables of words, told apart.
const OPERATIONS: u64 = 1;
const SIZES: u64 = 2;
const PLACES: u64 = 3;
const BLOCKS: u64 = 4;

/// Fields of an operation's words.
const KIND: u64 = 0;
const BYTES: u64 = 1;
const BLOCK: u64 = 2;
const PLACE: u64 = 16;

/// How operations are handed to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Engine {
    #[default]
    Sync,
    IoUring,
}

/// How what is written is made durable, within the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sync {
    #[default]
    None,
    Fsync,
    Fdatasync,
    ODsync,
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Read {
        bytes: u64,
    },
    Write {
        bytes: u64,
        sync: Sync,
    },
    /// Sizes are multiples of the unit.
    Append {
        sizes: (u64, u64),
        unit: u64,
        sync: Sync,
    },
    Fsync,
    Create {
        bytes: u64,
    },
    Stat,
    Rename,
    Unlink,
    Readdir,
}

impl Task {
    /// Whether it changes which names there are.
    pub(super) fn is_of_names(self) -> bool {
        matches!(self, Self::Create { .. } | Self::Rename | Self::Unlink)
    }

    /// Whether it is performed on an open file that is kept.
    pub(super) fn needs_a_descriptor(self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. } | Self::Append { .. } | Self::Fsync)
    }

    /// Whether the descriptor has to be one that writes through.
    pub(super) fn writes_through(self) -> bool {
        matches!(self, Self::Write { sync: Sync::ODsync, .. } | Self::Append { sync: Sync::ODsync, .. })
    }

    /// The most bytes that one system call of it moves.
    pub(super) fn buffer_bytes(self) -> u64 {
        match self {
            Self::Read { bytes } | Self::Write { bytes, .. } => bytes,
            Self::Append { sizes, .. } => sizes.1,
            Self::Create { bytes } => bytes.min(CHUNK),
            _ => 0,
        }
    }
}

/// Files are laid out and created in calls of at most so many bytes.
pub(super) const CHUNK: u64 = 1 << 20;

/// All that a request says.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) engine: Engine,
    pub(super) count: u64,
    pub(super) file_bytes: (u64, u64),
    pub(super) fanout: u64,
    pub(super) direct: bool,
    pub(super) verify: bool,
    pub(super) choice: Choice,
    /// Operations go on from one another, in so many streams; `None`: each draws.
    pub(super) streams: Option<u32>,
    pub(super) kinds: Vec<String>,
    pub(super) weights: Vec<u64>,
    pub(super) tasks: Vec<Task>,
}

impl Plan {
    /// Bytes of the file that is laid out at a place below `count`: uniform in the logarithm, in whole units of 4096.
    pub(super) fn laid_out_bytes(&self, place: u64) -> u64 {
        let (least, most) = self.file_bytes;
        if least == most {
            return least;
        }
        let share = Words::new(self.seed, SIZES, place).word(0) as f64 / u64::MAX as f64;
        let bytes = (least as f64).ln() + share * ((most as f64).ln() - (least as f64).ln());
        (bytes.exp() as u64 / super::versions::BLOCK * super::versions::BLOCK).clamp(least, most)
    }

    /// The largest file that it creates.
    pub(super) fn created_bytes_max(&self) -> u64 {
        let created = self.tasks.iter().map(|task| if let Task::Create { bytes } = task { *bytes } else { 0 });
        created.max().unwrap_or(0)
    }

    /// Whether a segment leaves anything that the one after it has to know.
    pub(super) fn changes_files(&self) -> bool {
        self.changes_names() || self.tasks.iter().any(|task| matches!(task, Task::Write { .. } | Task::Append { .. }))
    }

    /// Whether names come and go.
    pub(super) fn changes_names(&self) -> bool {
        self.tasks.iter().any(|task| task.is_of_names())
    }
}

/// What draws the operations of one session.
#[derive(Debug)]
pub(super) struct Draws {
    seed: u64,
    choice: Choice,
    /// Sums of the weights up to and with each step; empty where there is one alone.
    up_to: Vec<u64>,
    places: KeyChooser,
    /// Of each step, the chooser among as many blocks as the last file had.
    blocks: Vec<(u64, KeyChooser)>,
    /// Of the last read or write: how long its file's body was, its own bytes, and how often they go into it.
    divided: (u64, u64, u64),
}

impl Draws {
    /// Those of `plan` among so many places, 1 or more. `None` if the exponent is not a number above 0.
    pub(super) fn new(plan: &Plan, places: u64) -> Option<Self> {
        let mut sum = 0;
        let up_to = plan.weights.iter().map(|weight| {
            sum += weight;
            sum
        });
        let up_to = if plan.weights.len() > 1 { up_to.collect() } else { Vec::new() };
        let one = KeyChooser::new(plan.choice, plan.seed, BLOCKS, 1)?;
        Some(Self {
            seed: plan.seed,
            choice: plan.choice,
            up_to,
            places: KeyChooser::new(plan.choice, plan.seed, PLACES, places)?,
            blocks: vec![(1, one); plan.tasks.len()],
            divided: (0, 1, 0),
        })
    }

    /// The words of operation `index`, and its step.
    #[inline]
    pub(super) fn step(&self, index: u64) -> (Words, usize) {
        let words = Words::new(self.seed, OPERATIONS, index);
        let Some(&sum) = self.up_to.last() else { return (words, 0) };
        let drawn = words.below(KIND, sum);
        (words, self.up_to.iter().position(|&up_to| drawn < up_to).unwrap_or(0))
    }

    /// Which place; `attempt` counts from 0, where what was drawn before has no file that will do.
    #[inline]
    pub(super) fn place(&self, words: &Words, attempt: u64) -> u64 {
        self.places.choose(words, PLACE + attempt)
    }

    /// Where in a file whose body is so long an operation of `bytes` is; `step` is whose.
    #[inline]
    pub(super) fn offset(&mut self, words: &Words, step: usize, (body, bytes): (u64, u64)) -> u64 {
        // A division takes as long as the rest of the draw, and files are mostly of one length.
        if (self.divided.0, self.divided.1) != (body, bytes) {
            self.divided = (body, bytes, body / bytes);
        }
        bytes * self.block(words, step, self.divided.2)
    }

    /// Which of the `count` blocks of a file; `step` is whose.
    #[inline]
    fn block(&mut self, words: &Words, step: usize, count: u64) -> u64 {
        if self.choice == Choice::Uniform {
            return words.below(BLOCK, count);
        }
        let (size, chooser) = &mut self.blocks[step];
        if *size != count
            && let Some(of_count) = KeyChooser::new(self.choice, self.seed, BLOCKS, count)
        {
            (*size, *chooser) = (count, of_count);
        }
        chooser.choose(words, BLOCK)
    }

    /// How many bytes, uniform among the multiples of `unit` in the range.
    #[inline]
    pub(super) fn bytes(words: &Words, (least, most): (u64, u64), unit: u64) -> u64 {
        if least == most { least } else { least + unit * words.below(BYTES, (most - least) / unit + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(choice: Choice) -> Plan {
        Plan {
            seed: 7,
            engine: Engine::Sync,
            count: 50,
            file_bytes: (4096, 1 << 20),
            fanout: 10,
            direct: false,
            verify: true,
            choice,
            streams: None,
            kinds: ["read", "stat", "fsync"].map(str::to_owned).to_vec(),
            weights: vec![70, 0, 30],
            tasks: vec![Task::Read { bytes: 4096 }, Task::Stat, Task::Fsync],
        }
    }

    #[test]
    fn steps_come_by_their_weights_and_always_the_same() {
        let draws = Draws::new(&plan(Choice::Uniform), 50).unwrap();
        let mut counts = [0u32; 3];
        (0..10_000).for_each(|index| counts[draws.step(index).1] += 1);
        // 7000 are expected; the standard deviation is 46.
        assert!((6_770..7_230).contains(&counts[0]) && counts[1] == 0, "{counts:?}");
        let again = Draws::new(&plan(Choice::Uniform), 50).unwrap();
        assert!((0..1_000).all(|index| draws.step(index) == again.step(index)));
    }

    #[test]
    fn places_and_blocks_follow_the_distribution() {
        for choice in [Choice::Uniform, Choice::Zipf { theta: 0.99 }] {
            let mut draws = Draws::new(&plan(choice), 50).unwrap();
            let (mut places, mut blocks) = ([0u32; 50], [0u32; 8]);
            for index in 0..20_000 {
                let (words, _) = draws.step(index);
                places[draws.place(&words, 0) as usize] += 1;
                blocks[draws.block(&words, 0, 8) as usize] += 1;
            }
            let share = |counts: &[u32]| f64::from(*counts.iter().max().unwrap()) / 20_000.0;
            // Of the hottest of n the harmonic sum says 22 % of 50 and 37 % of 8.
            let (place, block) = if choice == Choice::Uniform { (0.02, 0.125) } else { (0.22, 0.365) };
            assert!((share(&places) - place).abs() < 0.012 && (share(&blocks) - block).abs() < 0.012, "{places:?}");
        }
    }

    #[test]
    fn offsets_are_those_of_blocks_whatever_file_was_drawn_before() {
        let mut draws = Draws::new(&plan(Choice::Uniform), 50).unwrap();
        for index in 0..1_000 {
            let (words, step) = draws.step(index);
            let (body, bytes) = (4096 * (1 + index % 7), 512 << (index % 4));
            assert_eq!(draws.offset(&words, step, (body, bytes)), bytes * draws.block(&words, step, body / bytes));
        }
    }

    #[test]
    fn a_mix_of_one_step_draws_none_and_everything_else_the_same() {
        let (of_three, mut of_one) = (plan(Choice::Uniform), plan(Choice::Uniform));
        (of_one.weights, of_one.tasks) = (vec![1], vec![Task::Read { bytes: 4096 }]);
        let (three, one) = (Draws::new(&of_three, 50).unwrap(), Draws::new(&of_one, 50).unwrap());
        for index in 0..1_000 {
            let (words, step) = one.step(index);
            assert_eq!((words, step), (three.step(index).0, 0));
            assert_eq!(one.place(&words, 0), three.place(&words, 0));
        }
    }

    #[test]
    fn another_attempt_draws_another_place() {
        let draws = Draws::new(&plan(Choice::Uniform), 50).unwrap();
        let same = (0..1_000).filter(|&index| {
            let (words, _) = draws.step(index);
            draws.place(&words, 0) == draws.place(&words, 1)
        });
        assert!(same.count() < 50);
    }

    #[test]
    fn sizes_are_uniform_in_the_logarithm() {
        let plan = plan(Choice::Uniform);
        let sizes: Vec<u64> = (0..4_000).map(|place| plan.laid_out_bytes(place)).collect();
        assert!(sizes.iter().all(|bytes| bytes.is_multiple_of(4096) && (4096..=1 << 20).contains(bytes)));
        // Half of them below the geometric mean, 64 KiB.
        let small = sizes.iter().filter(|&&bytes| bytes < 65_536).count();
        assert!((1_850..2_150).contains(&small), "{small}");
        let words = Words::new(1, 1, 1);
        assert_eq!(Draws::bytes(&words, (512, 512), 1), 512);
        let drawn: Vec<u64> =
            (0..1_000).map(|index| Draws::bytes(&Words::new(1, 1, index), (4096, 16_384), 4096)).collect();
        assert!([4096, 8192, 12_288, 16_384].iter().all(|bytes| drawn.contains(bytes)));
        assert!(drawn.iter().all(|bytes| bytes.is_multiple_of(4096)));
    }
}
