//! The server to be watched: its first process, its version, and where its processes keep their wait event.

use super::wait_place::WaitPlace;
use crate::Refusal;
use crate::folders::{Tree, of_postgres};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) postmaster: u32,
    pub(crate) major: u32,
    /// Where its processes have their wait event; None if the program does not tell.
    pub(crate) wait_place: Option<WaitPlace>,
    /// Its folders by class, if it does not.
    pub(crate) trees: Vec<Tree>,
    folder: PathBuf,
}

/// Whether the process works in `folder`, as the first process of a server does.
fn works_in(process: &Path, folder: &Path) -> bool {
    let (Ok(its), Ok(folder)) = (fs::metadata(process.join("cwd")), fs::metadata(folder)) else { return false };
    (its.dev(), its.ino()) == (folder.dev(), folder.ino())
}

fn number(path: &Path) -> Result<u32, Refusal> {
    let text = fs::read_to_string(path).map_err(|error| {
        let reason = format!("{}: {error}", path.display());
        let remedy = (error.kind() == ErrorKind::PermissionDenied).then(|| "run as root".to_owned());
        Refusal { reason, remedy }
    })?;
    let first = text.lines().next().unwrap_or_default().trim();
    first.parse().map_err(|_| Refusal::from(format!("{}: \"{first}\" is not a number", path.display())))
}

impl Server {
    /// The one that runs on the cluster in `folder`.
    pub(crate) fn of(folder: &Path) -> Result<Self, Refusal> {
        let (postmaster, major) = (number(&folder.join("postmaster.pid"))?, number(&folder.join("PG_VERSION"))?);
        let process = PathBuf::from(format!("/proc/{postmaster}"));
        if !process.exists() {
            let remedy = "start the server; a stale postmaster.pid does no harm";
            return Err(Refusal::with_remedy(format!("no server runs on {}", folder.display()), remedy));
        }
        // The file is left behind by a server that was killed, and numbers are given again.
        if !works_in(&process, folder) {
            let program = fs::read_link(process.join("exe"));
            let is =
                program.map_or("has ended".to_owned(), |it| format!("is {} and runs in another folder", it.display()));
            let folder = folder.display();
            let reason = format!("no server runs on {folder}: process {postmaster}, which postmaster.pid names, {is}");
            let remedy = "start the server; for one in a container run the agent in the container's process namespace";
            return Err(Refusal::with_remedy(reason, remedy));
        }
        let (wait_place, trees) = (WaitPlace::of(postmaster, major), Vec::new());
        Ok(Self { postmaster, major, wait_place, trees, folder: folder.to_owned() })
    }

    /// The same as one whose program does not tell its wait events.
    pub(crate) fn by_system_call(self) -> Result<Self, Refusal> {
        Ok(Self { wait_place: None, trees: of_postgres(&self.folder)?, ..self })
    }

    /// It has not ended since.
    pub(crate) fn runs(&self) -> bool {
        works_in(&PathBuf::from(format!("/proc/{}", self.postmaster)), &self.folder)
    }
}

fn ns(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// CLOCK_MONOTONIC, as the programs stamp.
pub(crate) fn now_ns() -> i64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// By how much the clock that stamps is before one that nobody corrects, as the scheduler's is.
fn slew_ns() -> i64 {
    now_ns() - ns(clock_gettime(ClockId::MonotonicRaw))
}

/// `enum phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opened = 0,
    Closing = 1,
    Closed = 2,
}

/// What the programs watch: `struct target`.
#[derive(Debug)]
pub(crate) struct Aim {
    map: MapHandle,
    parent: u32,
    wait_place: Option<WaitPlace>,
    until_ns: i64,
    phase: Phase,
    slice: u32,
    one_in: u32,
}

impl Aim {
    /// At nothing yet.
    pub(crate) fn new(map: MapHandle) -> Self {
        Self { map, parent: 0, wait_place: None, until_ns: 0, phase: Phase::Opened, slice: 0, one_in: 1 }
    }

    /// Makes the children of `parent`, who have their wait event at `wait_place`, the ones that are watched.
    pub(crate) fn at(&mut self, parent: u32, wait_place: Option<WaitPlace>) -> Result<(), Refusal> {
        (self.parent, self.wait_place) = (parent, wait_place);
        self.tell()
    }

    /// Tells the clock's slew, which changes all the time.
    pub(crate) fn keep(&mut self) -> Result<(), Refusal> {
        self.tell()
    }

    /// The number of the present slice.
    pub(crate) fn slice(&self) -> u32 {
        self.slice
    }

    /// Begins a slice, one of so many.
    pub(crate) fn open(&mut self, one_in: u32) -> Result<(), Refusal> {
        (self.slice, self.one_in) = (self.slice.wrapping_add(1), one_in);
        // First the number: whoever sees an open slice with the number before believes what it knew then.
        self.tell()?;
        self.phase = Phase::Opened;
        self.tell()
    }

    /// What begins from now on is not followed.
    pub(crate) fn close_at(&mut self, now_ns: i64) -> Result<(), Refusal> {
        self.until_ns = now_ns;
        self.tell()?;
        self.phase = Phase::Closing;
        self.tell()
    }

    /// Ends a slice.
    pub(crate) fn close(&mut self) -> Result<(), Refusal> {
        self.phase = Phase::Closed;
        self.tell()
    }

    fn tell(&self) -> Result<(), Refusal> {
        let (pointer, offset) = self.wait_place.map_or((0, 0), |place| (place.pointer, place.offset));
        let mut target = pointer.to_ne_bytes().to_vec();
        target.extend(slew_ns().to_ne_bytes());
        target.extend(self.until_ns.to_ne_bytes());
        for number in [self.parent, self.phase as u32, self.slice, self.one_in, offset, 0] {
            target.extend(number.to_ne_bytes());
        }
        let told = self.map.update(&0_u32.to_ne_bytes(), &target, MapFlags::ANY);
        told.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_server_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Server::of(folder.path()).unwrap_err().reason.contains("postmaster.pid"));
        fs::write(folder.path().join("PG_VERSION"), "15\n").unwrap();
        fs::write(folder.path().join("postmaster.pid"), format!("{}\n/data\n", u32::MAX)).unwrap();
        assert!(Server::of(folder.path()).unwrap_err().reason.contains("no server runs on"));
    }

    #[test]
    fn a_number_that_was_given_again_is_no_server() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("PG_VERSION"), "15\n").unwrap();
        fs::write(folder.path().join("postmaster.pid"), format!("{}\n/data\n", std::process::id())).unwrap();
        let refused = Server::of(folder.path()).unwrap_err();
        assert!(refused.reason.contains("runs in another folder"), "{refused}");
        let mut server = std::process::Command::new("sleep").arg("5").current_dir(folder.path()).spawn().unwrap();
        fs::write(folder.path().join("postmaster.pid"), format!("{}\n/data\n", server.id())).unwrap();
        // It is there before it has gone to the folder.
        let found = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Server::of(folder.path()).ok()
        });
        let found = found.unwrap();
        assert!(found.runs() && found.postmaster == server.id());
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(!found.runs());
    }
}
