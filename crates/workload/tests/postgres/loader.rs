//! The loader against `pgbench -i` (client-side generate) on one server with the same settings: run it with
//! `cargo test --release -p plimsoll-workload --test postgres -- --ignored --nocapture`.

use crate::server::Server;
use plimsoll_workload::{Bank, Event, drop_data, populate};
use std::sync::Mutex;
use std::time::Instant;

/// Seconds of the whole, and in words those of its phases.
type Timed = (f64, String);

fn ours(server: &Server, bank: &Bank, parallel: usize) -> Timed {
    let phases = Mutex::new(Vec::new());
    let started = Instant::now();
    let listener = |event: Event<'_>| {
        if let Event::Phase(name) = event {
            phases.lock().unwrap().push((name, Instant::now()));
        }
    };
    populate(bank, &server.address(), "ours", parallel, &listener).unwrap();
    let ended = Instant::now();
    let mut phases = phases.into_inner().unwrap();
    phases.push(("end", ended));
    let seconds = |pair: &[(&str, Instant)]| format!("{} {:.2}", pair[0].0, (pair[1].1 - pair[0].1).as_secs_f64());
    ((ended - started).as_secs_f64(), phases.windows(2).map(seconds).collect::<Vec<_>>().join(", "))
}

fn theirs(server: &Server, scale: u64) -> Timed {
    let started = Instant::now();
    let said = server.pgbench("", &["-i", "-s", &scale.to_string(), "-q"]);
    (started.elapsed().as_secs_f64(), said.lines().last().unwrap_or_default().to_owned())
}

#[test]
#[ignore = "loads several GiB; prints times"]
fn loading_is_faster_than_pgbench() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (scale, pairs, parallel) = (number("SCALE", 100), number("PAIRS", 3), number("PARALLEL", 2) as usize);
    let wal_level = std::env::var("WAL_LEVEL").unwrap_or_else(|_| "minimal".to_owned());
    let more = std::env::var("MORE").unwrap_or_default();
    let memory = std::env::var("MEMORY").unwrap_or_else(|_| "128MB".to_owned());
    let settings = format!(
        "wal_level = {wal_level}\nfsync = on\nshared_buffers = 1GB\nmaintenance_work_mem = {memory}\nmax_wal_size = 16GB"
    );
    println!("scale {scale}, {parallel} connections, {}", settings.replace('\n', ", "));
    let Some(server) = Server::start(&settings) else { return };
    let text = format!(r#"{{"name": "bank", "scale": {scale}, "seed": 7{more}}}"#);
    let bank = Bank::new(&serde_json::from_str(&text).unwrap()).unwrap();
    let mut client = server.client("public");
    let mut ratios = Vec::new();
    for pair in 0..pairs {
        let mut timed = [(0.0, String::new()), (0.0, String::new())];
        for turn in 0..2 {
            let mine = (pair + turn) % 2 == 0;
            client.run("CHECKPOINT").unwrap();
            timed[usize::from(mine)] = if mine { ours(&server, &bank, parallel) } else { theirs(&server, scale) };
            if mine {
                drop_data(&bank, &mut client, "ours").unwrap();
            } else {
                client.run("DROP TABLE pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers").unwrap();
            }
        }
        let [theirs, ours] = timed;
        let rows = (scale * 100_011) as f64;
        println!("pgbench -i  {:6.2} s {:9.0} rows/s  {}", theirs.0, rows / theirs.0, theirs.1);
        println!("plimsoll    {:6.2} s {:9.0} rows/s  {}", ours.0, rows / ours.0, ours.1);
        ratios.push(theirs.0 / ours.0);
    }
    ratios.sort_by(f64::total_cmp);
    println!("rows per second against pgbench: {ratios:.2?}");
}
