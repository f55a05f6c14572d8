//! A window as each worker has it, and the plan's clock, which stands while the gate is closed.

/// From when to when transactions are started, and how far the plan's clock is behind. In nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// From 1; 0: before the first.
    number: u64,
    /// How long the gate has been closed so far: what is due at a time of the plan is due so much later.
    shift_ns: i64,
    /// From then on nothing is started.
    closes_ns: i64,
}

impl Window {
    /// Of a segment without windows.
    pub(crate) const ALWAYS: Self = Self { number: 0, shift_ns: 0, closes_ns: i64::MAX };

    /// Before the first one of a segment that is ready at `started_ns`.
    pub(crate) fn none_yet(started_ns: i64) -> Self {
        Self { closes_ns: started_ns, ..Self::ALWAYS }
    }

    /// From 1; 0: before the first.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The same with another end.
    pub(crate) fn closing_at(&self, closes_ns: i64) -> Self {
        Self { closes_ns, ..*self }
    }

    #[inline]
    pub(crate) fn is_closed(&self, now_ns: i64) -> bool {
        now_ns >= self.closes_ns
    }

    /// When it closes, or has closed.
    pub(crate) fn closes_ns(&self) -> i64 {
        self.closes_ns
    }

    /// `now_ns`, or when it closed: the moment at which the plan's clock stands.
    #[inline]
    pub(crate) fn standing_ns(&self, now_ns: i64) -> i64 {
        now_ns.min(self.closes_ns)
    }

    /// The plan's clock.
    #[inline]
    pub(crate) fn plan_ns(&self, now_ns: i64) -> i64 {
        self.standing_ns(now_ns) - self.shift_ns
    }

    /// What is due by then on the plan's clock is due now: all that falls into the window, and nothing that falls on its end.
    #[inline]
    pub(crate) fn due_by_ns(&self, now_ns: i64) -> i64 {
        now_ns.min(self.closes_ns - 1) - self.shift_ns
    }

    /// The time at which the plan's clock shows, or showed, `plan_ns`.
    #[inline]
    pub(crate) fn clock_ns(&self, plan_ns: i64) -> i64 {
        plan_ns.saturating_add(self.shift_ns)
    }

    /// The same if it is not after the end; the largest time otherwise, for nobody knows when that will be.
    pub(crate) fn known_ns(&self, plan_ns: i64) -> i64 {
        let clock_ns = self.clock_ns(plan_ns);
        if clock_ns <= self.closes_ns { clock_ns } else { i64::MAX }
    }

    /// How much later than in `earlier` everything is due.
    pub(crate) fn later_than_ns(&self, earlier: &Self) -> i64 {
        self.shift_ns - earlier.shift_ns
    }

    /// The next one, which opens now for so long.
    pub(crate) fn next(&self, opens_ns: i64, length_ns: i64) -> Self {
        let stood_ns = opens_ns - self.closes_ns;
        let (number, shift_ns) = (self.number + 1, self.shift_ns + stood_ns);
        Self { number, shift_ns, closes_ns: opens_ns.saturating_add(length_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_clock_stands_between_windows() {
        let first = Window::none_yet(1_000).next(1_500, 100);
        let second = first.next(5_000, 100);
        assert_eq!([1_500, 1_560, 1_600, 4_000].map(|now_ns| first.plan_ns(now_ns)), [1_000, 1_060, 1_100, 1_100]);
        assert_eq!([5_000, 5_040, 5_100, 9_000].map(|now_ns| second.plan_ns(now_ns)), [1_100, 1_140, 1_200, 1_200]);
        assert_eq!((second.clock_ns(1_140), second.later_than_ns(&first)), (5_040, 3_400));
    }

    #[test]
    fn what_is_due_when_it_closes_is_the_next_windows() {
        let window = Window::none_yet(0).next(500, 100);
        assert_eq!((window.due_by_ns(599), window.due_by_ns(600), window.due_by_ns(10_000)), (99, 99, 99));
        assert_eq!((window.known_ns(100), window.known_ns(101)), (600, i64::MAX));
        assert!(!window.is_closed(599) && window.is_closed(600));
    }

    #[test]
    fn without_windows_the_plans_clock_is_the_clock() {
        let always = Window::ALWAYS;
        assert_eq!((always.plan_ns(7), always.due_by_ns(7), always.clock_ns(7), always.known_ns(7)), (7, 7, 7, 7));
        assert_eq!((always.plan_ns(i64::MAX), always.known_ns(i64::MAX)), (i64::MAX, i64::MAX));
        assert!(!always.is_closed(i64::MAX - 1));
    }
}
