//! A rate over time, its integral, and the integral's inverse.
//!
//! The fact that constrains it: the time of the n-th arrival is the inverse of the integral at n, so that one process of
//! arrivals at rate 1 serves every shape of rate.

const NS_PER_SECOND: f64 = 1e9;

/// A stretch of time in which the rate is constant or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    start_ns: f64,
    /// The integral up to the start: how many arrivals are expected before.
    before: f64,
    /// Rates a second, at the start and at the end.
    from: f64,
    to: f64,
    seconds: f64,
}

impl Stretch {
    /// The time at which `more` arrivals are expected since the start.
    fn time_ns(&self, more: f64) -> f64 {
        if self.from == self.to {
            // One division, so that times of a constant rate are as exact as they can be.
            return self.start_ns + more * NS_PER_SECOND / self.from;
        }
        if more <= 0.0 {
            return self.start_ns;
        }
        // from t + slope t^2 / 2 = more, solved without the difference of two near numbers.
        let slope = (self.to - self.from) / self.seconds;
        let root = (self.from * self.from + 2.0 * slope * more).max(0.0).sqrt();
        self.start_ns + 2.0 * more / (self.from + root) * NS_PER_SECOND
    }

    /// The arrivals expected in the first `seconds`.
    fn expected(&self, seconds: f64) -> f64 {
        if self.from == self.to {
            return self.from * seconds;
        }
        (self.from + (self.to - self.from) * seconds / self.seconds / 2.0) * seconds
    }
}

/// A rate over all times from 0; never 0 in the end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rate {
    stretches: Vec<Stretch>,
}

impl Rate {
    /// `stretches` are (rate at the start, rate at the end, seconds); then `last` goes on for ever.
    pub(crate) fn new(stretches: impl IntoIterator<Item = (f64, f64, f64)>, last: f64) -> Self {
        let (mut start_ns, mut before) = (0.0, 0.0);
        let mut all = Vec::new();
        for (from, to, seconds) in stretches {
            let stretch = Stretch { start_ns, before, from, to, seconds };
            all.push(stretch);
            start_ns += seconds * NS_PER_SECOND;
            before += stretch.expected(seconds);
        }
        all.push(Stretch { start_ns, before, from: last, to: last, seconds: f64::INFINITY });
        Self { stretches: all }
    }

    /// The time at which `arrivals` are expected. `hint` is where the search begins (0 is always right) and is moved on; the
    /// answer does not depend on it as long as `arrivals` never falls between calls with one hint.
    #[inline]
    pub(crate) fn time_ns(&self, arrivals: f64, hint: &mut usize) -> f64 {
        while self.stretches.get(*hint + 1).is_some_and(|next| arrivals >= next.before) {
            *hint += 1;
        }
        let time_ns = self.stretches[*hint].time_ns(arrivals - self.stretches[*hint].before);
        // Rounding must not carry an arrival beyond the first of the next stretch.
        self.stretches.get(*hint + 1).map_or(time_ns, |next| time_ns.min(next.start_ns))
    }

    /// How many arrivals are expected before `time_ns`.
    pub(crate) fn expected(&self, time_ns: f64) -> f64 {
        let place = self.stretches.partition_point(|stretch| stretch.start_ns <= time_ns).max(1) - 1;
        let stretch = &self.stretches[place];
        stretch.before + stretch.expected((time_ns - stretch.start_ns).max(0.0) / NS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_the_integral() {
        let rate = Rate::new([(100.0, 100.0, 2.0), (100.0, 0.5, 3.0), (7.0, 900.0, 1.5)], 40.0);
        let mut hint = 0;
        for step in 0..2_000 {
            let time_ns = f64::from(step) * 5e6;
            let back = rate.time_ns(rate.expected(time_ns), &mut hint);
            assert!((back - time_ns).abs() < 1.0, "{time_ns}: {back}");
        }
    }

    #[test]
    fn a_constant_rate_is_exact() {
        let rate = Rate::new([], 1_000.0);
        assert!((0..100_000).all(|n| rate.time_ns(f64::from(n), &mut 0) == f64::from(n) * 1e6));
    }
}
