//! Segments in windows, whichever driver their sessions have: nothing is started while the gate is closed, the plan's clock stands
//! then, and every transaction is accounted for.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Control, Ended};
use plimsoll_schedule::{Schedule, Wait};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::undisturbed::undisturbed;
use support::windows::{Carry, Gatekeeper, Seen, in_windows, plan_ns};
use support::{MS, Segment, blocking, completion, config, constant, controlled};

const CLIENTS: u32 = 3;
/// Every driver, with its number of threads.
const DRIVERS: [(Carry, usize); 5] =
    [(controlled, 1), (controlled, 3), (completion::<MockOpener>, 1), (completion::<MockOpener>, 2), (blocking, 3)];

fn each<T: Send>(
    config: &Config,
    script: impl Fn(u64) -> Scripted + Copy + Send + Sync + 'static,
    keep: impl Fn(&Gatekeeper) -> T + Sync,
    check: impl Fn(&Segment, T),
) {
    for driver in DRIVERS {
        let opener = Arc::new(MockOpener::new(script));
        let (segment, kept) = in_windows(driver, (&opener, CLIENTS), config, &keep);
        check(&segment, kept);
    }
}

fn unbounded() -> Config {
    Config { transactions: None, patience_ns: 20_000 * MS, ..config() }
}

fn rows(segment: &Segment) -> Vec<[i64; 4]> {
    let [index, planned, start, end] = ["index", "planned_ns", "start_ns", "end_ns"].map(|name| segment.column(name));
    let mut rows: Vec<_> = (0..index.len()).map(|row| [index[row], planned[row], start[row], end[row]]).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn nothing_is_started_while_closed_and_windows_have_their_length() {
    undisturbed(Duration::from_millis(2), || {
        each(
            &unbounded(),
            |_| Scripted::DoneAfter(MS / 5),
            |gate| gate.windows(5, 20 * MS),
            |segment, windows| {
                assert_eq!(segment.outcomes.ended, Ended::Told);
                assert!(windows.iter().all(|seen| seen.length_ns() == 20 * MS), "{windows:?}");
                let (mut due_before, mut begun_late) = ([0; 5], [0; 5]);
                for row in rows(segment) {
                    let [index, planned, start, end] = row;
                    let of =
                        |seen: &Seen| (100 + seen.before.planned..100 + seen.after.planned).contains(&(index as u64));
                    let place = windows.iter().position(of).unwrap();
                    let times = windows[place].times;
                    assert!(
                        times.opened_ns <= start && planned <= start && end <= times.drained_ns,
                        "{row:?}: {times:?}"
                    );
                    due_before[place] += usize::from(planned < times.opened_ns);
                    begun_late[place] += usize::from(start > times.closed_ns);
                }
                // A thread may be kept waiting between its look at the clock and what it begins then, once; or through a whole window.
                for late in due_before.iter().chain(&begun_late) {
                    assert!(*late <= CLIENTS as usize, "{due_before:?} {begun_late:?}");
                }
                assert_eq!(due_before[0], 0);
                assert!(windows.iter().all(|seen| seen.done() >= u64::from(CLIENTS)), "{windows:?}");
                assert_eq!(segment.outcomes.identity.planned, windows[4].after.planned);
            },
        );
    });
}

#[test]
fn what_a_window_had_no_time_for_is_as_late_in_the_next() {
    let stuck = |index| {
        if index == 100 {
            std::thread::sleep(Duration::from_millis(450));
        }
        Scripted::DoneAfter(MS)
    };
    for carry in [controlled, completion::<MockOpener>] as [Carry; 2] {
        let opener = Arc::new(MockOpener::new(stuck));
        let (segment, windows) =
            in_windows((carry, 1), (&opener, CLIENTS), &unbounded(), |gate| gate.windows(2, 300 * MS));
        assert_eq!((windows[0].done(), windows[0].length_ns()), (1, 300 * MS));
        let [_, planned, start, _] = rows(&segment)[1];
        assert_eq!(planned, windows[1].times.opened_ns - 300 * MS, "it was due when the first one opened");
        assert!(start >= windows[1].times.opened_ns);
    }
}

#[test]
fn what_is_under_way_drains() {
    undisturbed(Duration::from_millis(2), || {
        each(
            &unbounded(),
            |_| Scripted::DoneAfter(60 * MS),
            |gate| gate.windows(3, 5 * MS),
            |segment, windows| {
                for seen in &windows {
                    assert_eq!(
                        (seen.done(), seen.length_ns()),
                        (u64::from(CLIENTS), 5 * MS),
                        "one a session: {seen:?}"
                    );
                    assert!(seen.times.drained_ns - seen.times.opened_ns >= 60 * MS, "{seen:?}");
                }
                assert_eq!(segment.outcomes.identity.done, 9);
            },
        );
    });
}

#[test]
fn an_open_loops_plan_stands_while_closed() {
    undisturbed(Duration::from_millis(2), || {
        let config = Config { duration_ns: None, ..constant(1_000.0, 0) };
        each(
            &config,
            |_| Scripted::Done,
            |gate| gate.windows(4, 50 * MS),
            |segment, windows| {
                let rows = rows(segment);
                assert_eq!(rows.len(), 200, "{windows:?}");
                for (place, [index, planned, _, _]) in rows.into_iter().enumerate() {
                    let times = windows[place / 50].times;
                    assert_eq!((index, planned), (100 + place as i64, times.opened_ns + (place as i64 % 50) * MS));
                }
                assert!(windows.iter().all(|seen| seen.done() == 50), "{windows:?}");
                assert!(segment.latency_ns(0.5) < 20 * MS as u64, "the time in between is none of it");
                assert!((segment.outcomes.planned_rate.unwrap() - 1_000.0).abs() < 1e-6);
            },
        );
    });
}

#[test]
fn an_open_loops_backlog_is_worked_off_before_the_next_window() {
    let config = Config { duration_ns: None, patience_ns: 20_000 * MS, ..constant(1_000.0, 0) };
    each(
        &config,
        |_| Scripted::DoneAfter(6 * MS),
        |gate| gate.windows(2, 50 * MS),
        |segment, windows| {
            for seen in &windows {
                // Three at a time for 6 ms each: 50 take 102 ms at least.
                assert_eq!(seen.done(), 50);
                assert!(seen.times.drained_ns - seen.times.opened_ns >= 102 * MS, "{seen:?}");
            }
            assert!(segment.latency_ns(1.0) >= 52 * MS as u64, "it counts from the plan");
        },
    );
}

#[test]
fn users_think_while_open_only() {
    undisturbed(Duration::from_millis(2), || {
        let schedule = Schedule::Closed { think_ms: Wait::Fixed(25.0), keying_ms: Wait::default(), seed: 1 };
        let config = Config { schedule, ..unbounded() };
        for carry in [controlled, completion::<MockOpener>, blocking] as [Carry; 3] {
            let opener = Arc::new(MockOpener::new(|_| Scripted::DoneAfter(MS)));
            let (segment, windows) = in_windows((carry, 1), (&opener, 1), &config, |gate| gate.windows(8, 20 * MS));
            let rows = rows(&segment);
            assert!((3..=6).contains(&rows.len()), "one in 26 of 160 ms, or late ones fewer: {}", rows.len());
            let mut free_ns = 0;
            for [_, planned, _, end] in rows {
                // A session that blocks is free when its thread has looked at the clock again; the time between windows is more than that.
                let thought_ns = plan_ns(&windows, planned) - free_ns;
                assert!((25 * MS..40 * MS).contains(&thought_ns), "{thought_ns}");
                free_ns = plan_ns(&windows, end);
            }
        }
    });
}

#[test]
fn a_stop_between_windows_ends_the_segment_at_once() {
    for config in [unbounded(), Config { duration_ns: None, ..constant(1_000.0, 0) }] {
        each(
            &config,
            |_| Scripted::Done,
            |gate| {
                let windows = gate.windows(2, 10 * MS);
                gate.control.stop();
                assert_eq!(gate.control.open(10 * MS), None);
                (windows, Instant::now())
            },
            |segment, (windows, stopped)| {
                assert!(stopped.elapsed() < Duration::from_secs(5));
                assert_eq!(segment.outcomes.ended, Ended::Told);
                assert_eq!(segment.outcomes.identity.planned, windows[1].after.planned);
            },
        );
    }
}

#[test]
fn a_segment_may_end_before_its_first_window() {
    for config in [unbounded(), Config { duration_ns: None, ..constant(1_000.0, 0) }] {
        each(
            &config,
            |_| Scripted::Done,
            |gate| assert_eq!(gate.control.window(), None),
            |segment, ()| assert_eq!((segment.outcomes.identity.planned, segment.outcomes.ended), (0, Ended::Told)),
        );
    }
}

/// Stops a segment within a window, or its drain, while each session has one under way; gives its control, too.
fn stopped_in_window(
    driver: (Carry, usize),
    config: &Config,
    service_ns: i64,
    length_ns: i64,
) -> (Segment, Arc<Control>) {
    // Threads that are kept waiting through a short window begin nothing in it: then another segment tells.
    for _ in 0..20 {
        let opener = Arc::new(MockOpener::new(move |_| Scripted::DoneAfter(service_ns)));
        let (segment, begun) = in_windows(driver, (&opener, CLIENTS), config, |gate| {
            gate.control.open(length_ns).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            let has_begun = || gate.control.identity().planned >= u64::from(CLIENTS);
            while !has_begun() && gate.control.window().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            gate.control.stop();
            has_begun().then(|| Arc::clone(&gate.control))
        });
        if let Some(control) = begun {
            return (segment, control);
        }
    }
    panic!("no session begins anything in its window");
}

#[test]
fn a_stop_within_a_window_closes_it() {
    for config in [unbounded(), Config { duration_ns: None, ..constant(1_000.0, 0) }] {
        for driver in DRIVERS {
            let (segment, control) = stopped_in_window(driver, &config, MS, 60_000 * MS);
            let times = control.window().unwrap();
            assert!((30 * MS..10_000 * MS).contains(&(times.closed_ns - times.opened_ns)), "{times:?}");
            assert!(times.drained_ns >= times.closed_ns);
            let outcomes = &segment.outcomes;
            assert_eq!((outcomes.ended, outcomes.identity), (Ended::Told, control.identity()));
        }
    }
}

#[test]
fn a_stop_while_it_drains_lets_what_is_under_way_end() {
    for driver in DRIVERS {
        let (segment, control) = stopped_in_window(driver, &unbounded(), 100 * MS, 10 * MS);
        let times = control.window().unwrap();
        assert_eq!((segment.outcomes.identity.done, times.closed_ns - times.opened_ns), (3, 10 * MS));
        assert!(times.drained_ns - times.opened_ns >= 100 * MS, "{times:?}");
        let open = Config { duration_ns: None, patience_ns: 20_000 * MS, ..constant(1_000.0, 0) };
        let identity = stopped_in_window(driver, &open, 100 * MS, 10 * MS).0.outcomes.identity;
        assert_eq!((identity.planned, identity.done, identity.skipped), (10, 3, 7), "what was due is counted");
    }
}

#[test]
fn a_window_that_never_drains_ends_the_segment() {
    undisturbed(Duration::from_millis(2), || {
        let silent = |index| if index == 107 { Scripted::Silent } else { Scripted::DoneAfter(MS) };
        let open = Config { duration_ns: None, ..constant(1_000.0, 0) };
        for config in [unbounded(), open] {
            let config = Config { patience_ns: 100 * MS, ..config };
            for (driver, opener) in DRIVERS.into_iter().flat_map(|driver| {
                [MockOpener::new(silent), MockOpener::deaf(silent)].map(|opener| (driver, Arc::new(opener)))
            }) {
                let (segment, control) = in_windows(driver, (&opener, CLIENTS), &config, |gate| {
                    gate.control.open(200 * MS).unwrap();
                    assert!(!gate.hears(Duration::from_millis(250)), "it has not drained");
                    while gate.control.window().is_none() {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    Arc::clone(&gate.control)
                });
                let (outcomes, times) = (&segment.outcomes, control.window().unwrap());
                assert_eq!((outcomes.ended, outcomes.identity.lost), (Ended::Undrained, 1), "{:?}", outcomes.identity);
                assert_eq!(times.closed_ns - times.opened_ns, 200 * MS);
                assert!(times.drained_ns - times.closed_ns >= 100 * MS, "{times:?}");
                assert!(outcomes.identity.done > 10, "the others went on");
            }
        }
    });
}

#[test]
fn seconds_count_while_open_only() {
    for (schedule, rate) in [(Schedule::default(), None), (constant(1_000.0, 0).schedule, Some(50))] {
        let config = Config { schedule, duration_ns: Some(50 * MS), ..unbounded() };
        for driver in DRIVERS {
            let opener = Arc::new(MockOpener::new(|_| Scripted::Done));
            let (segment, control) = in_windows(driver, (&opener, CLIENTS), &config, |gate| {
                gate.windows(2, 20 * MS);
                gate.control.open(20 * MS).unwrap();
                gate.hears(Duration::from_millis(300));
                while gate.control.window().is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Arc::clone(&gate.control)
            });
            let times = control.window().unwrap();
            assert_eq!((segment.outcomes.ended, times.closed_ns - times.opened_ns), (Ended::Seconds, 10 * MS));
            assert!(rate.is_none_or(|planned| segment.outcomes.identity.done == planned));
        }
    }
}

#[test]
fn seconds_that_end_with_a_window_end_the_segment() {
    let config = Config { duration_ns: Some(40 * MS), ..unbounded() };
    for driver in DRIVERS {
        let opener = Arc::new(MockOpener::new(|_| Scripted::Done));
        let (segment, ()) = in_windows(driver, (&opener, CLIENTS), &config, |gate| {
            gate.window(20 * MS);
            gate.control.open(20 * MS).unwrap();
            while gate.control.window().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        assert_eq!(segment.outcomes.ended, Ended::Seconds);
    }
}

#[test]
fn a_number_of_transactions_ends_the_segment_in_a_window() {
    let thinking =
        Schedule::Closed { think_ms: Wait::Uniform { uniform: [0.0, 30.0] }, keying_ms: Wait::default(), seed: 1 };
    for schedule in [Schedule::default(), thinking, constant(1_000.0, 0).schedule] {
        let config = Config { schedule, transactions: Some(20), ..unbounded() };
        for driver in DRIVERS {
            let opener = Arc::new(MockOpener::new(|_| Scripted::DoneAfter(MS)));
            let (segment, ()) = in_windows(driver, (&opener, CLIENTS), &config, |gate| {
                while gate.control.identity().planned < 20 {
                    gate.control.open(10 * MS);
                    std::thread::sleep(Duration::from_millis(1));
                }
                // Others may hold what falls into a later window.
                while gate.control.identity().done < 20 {
                    gate.control.open(10 * MS);
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::sleep(Duration::from_millis(50));
            });
            let outcomes = &segment.outcomes;
            assert_eq!((outcomes.ended, outcomes.identity.done), (Ended::Transactions, 20));
        }
    }
}

#[test]
fn connections_that_break_are_opened_again() {
    let script = |index: u64| match index % 10 {
        5 => Scripted::Lost,
        _ => Scripted::DoneAfter(MS),
    };
    each(
        &Config { reconnect: true, ..unbounded() },
        script,
        |gate| gate.windows(10, 20 * MS),
        |segment, windows| {
            let outcomes = &segment.outcomes;
            assert!(outcomes.identity.lost >= 2 && outcomes.reconnects >= 1, "{:?}", outcomes.identity);
            assert_eq!(outcomes.identity.planned, windows[9].after.planned);
        },
    );
}

#[test]
fn without_any_connection_the_segment_ends_in_its_window() {
    for driver in DRIVERS {
        let opener = Arc::new(MockOpener::new(|_| Scripted::Lost));
        let (segment, control) = in_windows(driver, (&opener, CLIENTS), &unbounded(), |gate| {
            gate.control.open(60_000 * MS).unwrap();
            while gate.control.window().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Arc::clone(&gate.control)
        });
        let times = control.window().unwrap();
        assert_eq!((segment.outcomes.ended, segment.outcomes.identity.lost), (Ended::ConnectionsLost, 3));
        assert!(times.closed_ns <= times.drained_ns && times.closed_ns - times.opened_ns < 60_000 * MS, "{times:?}");
    }
}

#[test]
fn work_that_is_dealt_out_knows_no_windows() {
    let folder = tempfile::tempdir().unwrap();
    let opener: Arc<dyn plimsoll_session::BlockingOpener> = Arc::new(MockOpener::new(|_| Scripted::Done));
    let config = Config { dealt: vec![vec![0]], ..unbounded() };
    let tables = plimsoll_load::Tables::of_rows(folder.path()).unwrap();
    let control = Control::windowed(1, || ());
    let sessions = vec![opener.open(0).unwrap()];
    let error = plimsoll_load::run_blocking(sessions, Some(&opener), &config, &control, tables).unwrap_err();
    assert!(error.to_string().contains("without windows"), "{error}");
}
