//! Many connections at once, each held to its line speed. By itself, for it asks for both CPUs.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "../../load/tests/support/undisturbed.rs"]
mod undisturbed;

use plimsoll_load::Config;
use serde_json::json;
use std::time::Duration;
use support::load::{config, served};
use support::server::{Framing, Wrong, start};
use undisturbed::undisturbed;

const LINE: f64 = 400_000.0;

mod alone {
    use super::*;

    #[test]
    fn a_thousand_connections_hold_their_line_speed_within_a_hundredth() {
        undisturbed(Duration::from_millis(20), || {
            let server = start(Framing::Length, Wrong::Nothing, 1);
            let config = Config { transactions: Some(2_000), ..config() };
            // Of 82 and 92 KB, which such a line carries in 1.6 and 1.8 seconds.
            let files = [0, 0, 0, 0, 0, 0, 0, 1, 1];
            let line =
                json!({"mix": {"static": 1}, "classes": [0, 0, 1, 0], "files": files, "line_bits_per_s": 400_000});
            let served = served(&server, 1_000, &config, line);
            assert_eq!(served.outcomes.identity.done, 2_000, "{:?}", served.outcomes.errors);
            assert!(served.totals["clients_with_work"] > 990);
            let speeds = served.outcomes.reports.iter().filter_map(|report| {
                let total =
                    |name| report.totals.iter().find(|(of, _)| *of == name).map_or(0, |(_, value)| *value) as f64;
                (total("line_ns") > 0.0).then(|| total("line_bytes") * 8.0 / (total("line_ns") / 1e9))
            });
            let mut speeds: Vec<f64> = speeds.collect();
            speeds.sort_unstable_by(f64::total_cmp);
            let (slowest, fastest) = (speeds[speeds.len() / 100], speeds[speeds.len() - 1]);
            // Within a hundredth, all but one in a hundred, which a neighbour may have kept waiting; and none is faster at all.
            assert!(slowest >= 0.99 * LINE && fastest <= LINE + 1.0, "{slowest} to {fastest} bit/s");
        });
    }
}
