//! The loader of order_entry against `psql \copy` of ready binary files in shared memory, on one server with the same settings:
//! run it with `cargo test --release -p plimsoll-workload --test postgres order_entry_loader -- --ignored --nocapture`.
//!
//! Both fill each table in the transaction that creates it, over as many sessions; psql's take the tables in the order in which
//! ours do. What is compared are the rows alone: ours also makes them, and goes on to statistics, keys and constraints.

use crate::server::Server;
use plimsoll_target::postgres::bulk::Table;
use plimsoll_workload::order_entry::OrderEntry;
use plimsoll_workload::{DataSet, Event, drop_data, populate};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// What ours sets while it fills tables of a server whose wal_level is minimal.
const OPTIONS: &str = "-c search_path=theirs -c backend_flush_after=2MB";

/// Seconds of the whole and of its rows, and in words those of all phases.
fn ours(server: &Server, data: &OrderEntry, parallel: usize) -> (f64, f64, String) {
    let phases = Mutex::new(Vec::new());
    let started = Instant::now();
    let listener = |event: Event<'_>| {
        if let Event::Phase(name) = event {
            phases.lock().unwrap().push((name, Instant::now()));
        }
    };
    populate(data, &server.address(), "ours", parallel, &listener).unwrap();
    let ended = Instant::now();
    let mut phases = phases.into_inner().unwrap();
    phases.push(("end", ended));
    let timed: Vec<(&str, f64)> =
        phases.windows(2).map(|pair| (pair[0].0, (pair[1].1 - pair[0].1).as_secs_f64())).collect();
    let rows = timed.iter().find(|(name, _)| *name == "rows").map_or(f64::NAN, |(_, seconds)| *seconds);
    let words: Vec<String> = timed.iter().map(|(name, seconds)| format!("{name} {seconds:.2}")).collect();
    ((ended - started).as_secs_f64(), rows, words.join(", "))
}

/// A file of COPY BINARY with all rows of each table.
fn write_files(data: &OrderEntry, tables: &[Table], folder: &Path) {
    for (number, table) in tables.iter().enumerate() {
        let mut out = bytes::BytesMut::from(&b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..]);
        plimsoll_target::postgres::bulk::RowSource::write_rows(data, number, 0, table.rows, &mut out);
        out.extend_from_slice(&[0xff, 0xff]);
        std::fs::write(folder.join(&table.name), out).unwrap();
    }
}

/// Seconds that `parallel` psql take for the rows.
fn theirs(server: &Server, tables: &[Table], folder: &Path, parallel: usize) -> f64 {
    let mut by_size: Vec<&Table> = tables.iter().collect();
    by_size.sort_by_key(|table| std::cmp::Reverse(table.estimated_bytes));
    let scripts: Vec<String> = by_size
        .iter()
        .map(|table| {
            let (create, name, path) = (&table.create, &table.name, folder.join(&table.name).display().to_string());
            let copy = format!("\\copy {name} FROM '{path}' (FORMAT binary, FREEZE)");
            server.file(&format!("{name}.psql"), &format!("BEGIN;\n{create};\n{copy}\nCOMMIT;\n"))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..parallel {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    server.psql_file(script, OPTIONS);
                }
            });
        }
    });
    started.elapsed().as_secs_f64()
}

#[test]
#[ignore = "loads several GiB; prints times"]
fn loading_keeps_up_with_copying_ready_files() {
    let number = |name: &str, default: usize| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (warehouses, pairs, parallel) = (number("WAREHOUSES", 10), number("PAIRS", 3), number("PARALLEL", 2));
    let settings = "fsync = on\nshared_buffers = 1GB\nmax_wal_size = 16GB";
    println!("{warehouses} warehouses, {parallel} connections, wal_level = minimal, {}", settings.replace('\n', ", "));
    let Some(server) = Server::start(settings) else { return };
    let text = format!(r#"{{"name": "order_entry", "warehouses": {warehouses}, "seed": 7}}"#);
    let data = OrderEntry::new(&serde_json::from_str(&text).unwrap()).unwrap();
    let tables = data.making(parallel, true).tables;
    let rows = data.rows().values().sum::<u64>() as f64;
    // psql may run as another user.
    let readable = Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(readable).tempdir_in("/dev/shm").unwrap();
    write_files(&data, &tables, folder.path());
    let mut client = server.client("public");
    let mut ratios = Vec::new();
    for pair in 0..pairs {
        let mut seconds = [0.0, 0.0];
        for turn in 0..2 {
            client.run("CHECKPOINT").unwrap();
            if (pair + turn) % 2 == 0 {
                let (whole, of_rows, phases) = ours(&server, &data, parallel);
                println!("plimsoll {of_rows:6.2} s {:9.0} rows/s  {phases}", rows / of_rows);
                println!("         {:.1} warehouses a minute", warehouses as f64 * 60.0 / whole);
                seconds[1] = of_rows;
                drop_data(&data, &mut client, "ours").unwrap();
            } else {
                client.run("CREATE SCHEMA theirs").unwrap();
                seconds[0] = theirs(&server, &tables, folder.path(), parallel);
                println!("psql     {:6.2} s {:9.0} rows/s", seconds[0], rows / seconds[0]);
                client.run("DROP SCHEMA theirs CASCADE").unwrap();
            }
        }
        ratios.push(seconds[0] / seconds[1]);
    }
    ratios.sort_by(f64::total_cmp);
    println!("rows per second against psql: {ratios:.2?}");
}
