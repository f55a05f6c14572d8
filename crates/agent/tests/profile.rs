//! The profile of known processes and of a private PostgreSQL. Needs root and the programs.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use support::{Agent, Server, agent, must};
use tempfile::TempDir;

/// Beside a server that switches 10,000 times a second a process that computes gets up to a third more samples than its time
/// on the CPUs; whoever checks known times has the machine alone.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stacks and their counts.
fn folded(out: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(out.join("profile.folded")).unwrap();
    let line = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), count.parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn with(stacks: &BTreeMap<String, u64>, frame: &str) -> u64 {
    let holds = |stack: &str| stack.split(';').any(|one| one.contains(frame));
    stacks.iter().filter(|(stack, _)| holds(stack)).map(|(_, count)| count).sum()
}

/// Those that reach the first function of their program.
fn whole(stacks: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let reaches = |stack: &str| stack.split_once(';').is_some_and(|(_, frames)| frames.starts_with("_start;"));
    stacks.iter().filter(|(stack, _)| reaches(stack)).map(|(stack, count)| (stack.clone(), *count)).collect()
}

/// Four standard deviations of a count, and a part of it for what one clock sees and another does not.
fn is_about(expected: f64, found: u64, part: f64) -> bool {
    (found as f64 - expected).abs() <= 4.0 * expected.sqrt() + part * expected + 2.0
}

/// A process that is on a CPU for 100 ms each time: outside of the kernel when asked "u", inside when asked "k". Asked "l" it
/// waits three times for a mutex of the kernel. It is the child of a shell that looks like the first process of a server.
struct Known {
    first: Child,
    folder: TempDir,
}

impl Known {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        // The command after it keeps the shell from becoming the program itself.
        shell.args(["-c", "\"$0\" sampled; true", env!("CARGO_BIN_EXE_plimsoll-agent")]).current_dir(&folder);
        let first = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::fs::write(folder.path().join("PG_VERSION"), "15\n").unwrap();
        std::fs::write(folder.path().join("postmaster.pid"), format!("{}\n", first.id())).unwrap();
        let mut known = Self { first, folder };
        // It is there before the watch, or its parent's memory map would have to stand for its own.
        known.ask(b'u', 1);
        known
    }

    /// Gives for how many nanoseconds in all, by its own clock.
    fn ask(&mut self, what: u8, times: usize) -> u64 {
        let (mut lasted, mut all) = ([0; 8], 0);
        for _ in 0..times {
            self.first.stdin.as_mut().unwrap().write_all(&[what]).unwrap();
            self.first.stdout.as_mut().unwrap().read_exact(&mut lasted).unwrap();
            all += u64::from_ne_bytes(lasted);
        }
        all
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.first.stdin.take());
        self.first.wait().unwrap();
    }
}

#[test]
fn known_functions_get_their_shares() {
    let _alone = one_at_a_time();
    let (mut known, out) = (Known::start(), tempfile::tempdir().unwrap());
    let probes = json!({"profile": {"data_directory": known.folder.path(), "hz": 499}});
    let mut watching = Agent::start("watch", &json!({"out": out.path(), "probes": probes}));
    if watching.line()["probes"]["profile"]["reason"].as_str().is_some_and(|reason| reason.contains("needs root")) {
        eprintln!("skipped: needs root");
        return;
    }
    std::thread::sleep(Duration::from_millis(300));
    let (user_ns, kernel_ns) = (known.ask(b'u', 5), known.ask(b'k', 15));
    watching.tell("stop");
    let said = watching.end();
    let probe = &said.result()["probes"]["profile"];
    assert_eq!(probe["status"], "on", "{probe}");
    assert!(probe["checks"].as_array().unwrap().iter().all(|check| check["ok"] == true), "{probe}");
    let stacks = folded(out.path());
    let (user, kernel) = (with(&stacks, "work_out_numbers"), with(&stacks, "sys_read"));
    assert!(is_about(user_ns as f64 * 499e-9, user, 0.05), "{user} in {user_ns} ns: {probe}");
    assert!(is_about(kernel_ns as f64 * 499e-9, kernel, 0.05), "{kernel} in {kernel_ns} ns: {probe}");
    let samples = &probe["profile"]["samples"];
    assert_eq!(stacks.values().sum::<u64>(), samples["taken"].as_u64().unwrap());
    let complete = with(&whole(&stacks), "work_out_numbers");
    assert!(complete * 100 >= user * 98, "{complete} of {user}: {stacks:?}");
    assert!(probe["lost"].as_object().unwrap().values().all(|lost| lost == 0), "{probe}");
}

fn column_sum(out: &Path, name: &str) -> f64 {
    Table::read(&out.join("breakdown.npy")).unwrap().column(name).unwrap().into_iter().sum::<i128>() as f64
}

/// By itself at the end of ./test.
mod alone {
    use super::*;

    // Whoever is kept from a CPU finds the lock free, and there is one wait fewer.
    #[test]
    fn waits_for_a_known_lock_are_counted_with_their_time() {
        let _alone = one_at_a_time();
        let (mut known, out) = (Known::start(), tempfile::tempdir().unwrap());
        let probes = json!({"profile": {"data_directory": known.folder.path(), "locks": true}});
        let mut watching = Agent::start("watch", &json!({"out": out.path(), "probes": probes}));
        if watching.line()["probes"]["profile"]["reason"].as_str().is_some_and(|reason| reason.contains("needs root")) {
            eprintln!("skipped: needs root");
            return;
        }
        std::thread::sleep(Duration::from_millis(300));
        let lasted_ns = known.ask(b'l', 7);
        watching.tell("stop");
        let said = watching.end();
        let probe = &said.result()["probes"]["profile"];
        assert_eq!(probe["status"], "on", "{probe}");
        let sites = probe["profile"]["contention"]["sites"].as_array().unwrap();
        let of_terminal =
            sites.iter().filter(|site| site["stack"].as_str().is_some_and(|stack| stack.contains("tty_write")));
        let of_terminal: Vec<&Value> = of_terminal.filter(|site| site["kind"] == "mutex").collect();
        let sum = |key: &str| of_terminal.iter().map(|site| site[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("count"), 21, "{sites:?}");
        let (found, slack) = (sum("total_ns"), lasted_ns / 50 + 21 * 400_000);
        assert!(found.abs_diff(lasted_ns) <= slack, "{found} of {lasted_ns}: {sites:?}");
        assert!(of_terminal.iter().all(|site| site["caller"].as_str().unwrap().contains("tty")), "{sites:?}");
        let kinds = probe["profile"]["contention"]["kinds"].as_array().unwrap();
        let mutexes = kinds.iter().find(|kind| kind["kind"] == "mutex").unwrap();
        assert!(mutexes["count"].as_u64() >= Some(21) && mutexes["total_ns"].as_u64() >= Some(found), "{kinds:?}");
        assert!(probe["lost"].as_object().unwrap().values().all(|lost| lost == 0), "{probe}");
    }

    #[test]
    fn a_servers_samples_are_its_time_on_the_cpus() {
        let _alone = one_at_a_time();
        let Some(server) = Server::start() else { return };
        let workload = json!({"name": "bank", "scale": 1, "seed": 3, "transaction": "select_only"});
        must("populate", &json!({"target": server.target(), "workload": workload}));
        let out = tempfile::tempdir().unwrap();
        let folder = server.data();
        let probes = json!({"profile": {"data_directory": folder, "hz": 997}, "breakdown": {"data_directory": folder}});
        let summary = must(
            "load",
            &json!({"target": server.target(), "workload": workload, "clients": 4, "stop": {"seconds": 6},
                    "out": out.path(), "probes": probes}),
        );
        let probe = &summary["probes"]["profile"];
        assert_eq!(probe["status"], "on", "{probe}");
        let processes = summary["probes"]["breakdown"]["processes"].as_array().unwrap();
        let beside: u64 = processes.iter().map(|process| process["cpu_ns"].as_u64().unwrap()).sum();
        let cpu_ns = column_sum(out.path(), "cpu_ns") + column_sum(out.path(), "after_ns") + beside as f64;
        let samples = &probe["profile"]["samples"];
        let taken = samples["taken"].as_u64().unwrap();
        let ticks = &probe["profile"]["ticks"];
        let (due, came) = (ticks["due"].as_f64().unwrap(), ticks["came"].as_f64().unwrap());
        let lost = |key: &str| probe["lost"][key].as_u64().unwrap();
        let counted = taken + samples["others"].as_u64().unwrap() + lost("no_room") + lost("unreadable");
        assert_eq!(ticks["came"], counted, "{probe}");
        assert!(came <= due * 1.02 + 10.0, "{probe}");
        // Time that the machine did not have its CPUs is the process's by the kernel's clock, whether it was told of or not.
        let expected = cpu_ns * 997e-9 * (came / due).min(1.0);
        let found = taken + lost("no_room");
        // What backends do between their answer and waiting again, and while they start, is in one and not in the other.
        assert!(is_about(expected, found, 0.15), "{found} samples for {expected}, of {cpu_ns} ns: {probe}");
        let stacks = folded(out.path());
        assert_eq!(stacks.values().sum::<u64>(), taken);
        let count = |key: &str| samples[key].as_u64().unwrap();
        assert!(count("complete") * 100 >= taken * 90, "{samples}");
        assert!(with(&stacks, "PostgresMain") * 100 >= taken * 80, "{stacks:?}");
        assert!(with(&stacks, "_[k]") == count("in_kernel"), "{samples}");
        // Either nearly all have names, or it says how to get those that have not.
        let images = probe["profile"]["images"].as_array().unwrap();
        let unnamed: u64 = images.iter().map(|image| image["unnamed"].as_u64().unwrap()).sum();
        assert_eq!(taken - count("in_kernel") - count("named_outside"), unnamed, "{probe}");
        let advised = images.iter().filter(|image| image["unnamed"].as_u64() > Some(0));
        assert!(advised.clone().all(|image| image["remedy"].is_string()), "{images:?}");
        assert!(count("named") * 100 >= taken * 95 || advised.count() > 0, "{probe}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let (out, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ask = |hz: Value| {
        let probes = json!({"profile": {"data_directory": nowhere.path(), "hz": hz}});
        let mut watching = Agent::start("watch", &json!({"out": out.path(), "probes": probes}));
        watching.close_input();
        watching.end()
    };
    for wrong in [json!(0), json!(10_000), json!("often")] {
        let said = ask(wrong.clone());
        assert_eq!(said.code, Some(2), "{wrong}: {said:?}");
        assert!(said.errors.contains("probes.profile.hz"), "{wrong}: {said:?}");
    }
    let said = ask(json!(99));
    let reason = said.result()["probes"]["profile"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("PG_VERSION") || reason.contains("postmaster.pid"), "{reason}");
    let said = agent("watch", &json!({"out": out.path(), "probes": {"profile": {"hz": 99}}}));
    assert!(said.errors.contains("data_directory"), "{said:?}");
}
