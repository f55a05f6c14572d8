//! A segment in windows beside whoever opens them.

use super::Segment;
use plimsoll_load::mock::MockOpener;
use plimsoll_load::{Config, Control, WindowTimes};
use plimsoll_record::Identity;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What has not happened by then never will.
const AT_MOST: Duration = Duration::from_secs(30);

/// Carries a segment of so many sessions.
pub(crate) type Carry = fn(&Arc<MockOpener>, u32, &Arc<Control>, &Config) -> Segment;

/// Who opens the windows of a segment, and stops it when gone.
pub(crate) struct Gatekeeper {
    pub(crate) control: Arc<Control>,
    drained: Receiver<()>,
}

/// A window that has drained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) times: WindowTimes,
    pub(crate) before: Identity,
    pub(crate) after: Identity,
}

impl Seen {
    pub(crate) fn length_ns(&self) -> i64 {
        self.times.closed_ns - self.times.opened_ns
    }

    pub(crate) fn done(&self) -> u64 {
        self.after.done - self.before.done
    }
}

impl Gatekeeper {
    /// Waits until nothing is under way.
    pub(crate) fn wait(&self) {
        self.drained.recv_timeout(AT_MOST).unwrap();
    }

    /// Whether all drained within a short time.
    pub(crate) fn hears(&self, within: Duration) -> bool {
        self.drained.recv_timeout(within).is_ok()
    }

    /// A window of so many nanoseconds, to the end of its drain.
    pub(crate) fn window(&self, length_ns: i64) -> Seen {
        let before = self.control.identity();
        let opened_ns = self.control.open(length_ns).unwrap();
        self.wait();
        let seen = Seen { times: self.control.window().unwrap(), before, after: self.control.identity() };
        assert_eq!(seen.times.opened_ns, opened_ns);
        assert!(seen.times.drained_ns >= seen.times.closed_ns);
        let Identity { planned, done, failed, skipped, lost } = seen.after;
        assert_eq!(planned, done + failed + skipped + lost, "nothing is under way: {:?}", seen.after);
        seen
    }

    /// Several windows of so many nanoseconds, with a pause as long between them.
    pub(crate) fn windows(&self, count: usize, length_ns: i64) -> Vec<Seen> {
        let pause = Duration::from_nanos(length_ns as u64);
        let window = |_| {
            let seen = self.window(length_ns);
            std::thread::sleep(pause);
            seen
        };
        (0..count).map(window).collect()
    }
}

impl Drop for Gatekeeper {
    fn drop(&mut self) {
        self.control.stop();
    }
}

/// Carries a segment while `keep` opens its windows, from when its threads are there.
pub(crate) fn in_windows<T: Send>(
    (carry, threads): (Carry, usize),
    (opener, clients): (&Arc<MockOpener>, u32),
    config: &Config,
    keep: impl FnOnce(&Gatekeeper) -> T + Send,
) -> (Segment, T) {
    let (tell, drained) = channel();
    let control = Control::windowed(threads, move || tell.send(()).unwrap_or_default());
    let gatekeeper = Gatekeeper { control: Arc::clone(&control), drained };
    std::thread::scope(|scope| {
        let kept = scope.spawn(move || {
            gatekeeper.wait();
            keep(&gatekeeper)
        });
        let segment = carry(opener, clients, &control, config);
        (segment, kept.join().unwrap())
    })
}

/// `at_ns` on the plan's clock, which began with the first of these windows and stands between them.
pub(crate) fn plan_ns(windows: &[Seen], at_ns: i64) -> i64 {
    let open = |seen: &Seen| (at_ns.min(seen.times.closed_ns) - seen.times.opened_ns).max(0);
    windows.iter().map(open).sum()
}
