//! Tables come back as they were written, closed or cut short at any byte.

use plimsoll_record::{
    Outcome, SecondsWriter, SeriesWriter, Table, Transaction, TransactionWriter, WindowRow, WindowWriter, write_latency,
};

fn row(index: u64) -> Transaction {
    Transaction {
        index,
        planned_ns: -5,
        start_ns: 1 << 40,
        end_ns: i64::MAX,
        bytes: u64::MAX - 1,
        connection: u32::MAX,
        backend_pid: 77,
        statements: 5,
        requests: 400_000,
        retries: 70_000,
        error: 513,
        kind: 4,
        outcome: Outcome::Lost,
    }
}

#[test]
fn transactions_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transactions.npy");
    let mut writer = TransactionWriter::create(&path).unwrap();
    writer.append(&[row(1), row(u64::MAX)]).unwrap();
    assert_eq!(writer.close().unwrap(), 2);
    let table = Table::read(&path).unwrap();
    assert_eq!((table.len(), table.claimed_rows), (2, 2));
    let one = |name: &str| table.column(name).unwrap()[1];
    assert_eq!(one("index"), i128::from(u64::MAX));
    assert_eq!(one("planned_ns"), -5);
    assert_eq!(one("end_ns"), i128::from(i64::MAX));
    assert_eq!(one("bytes"), i128::from(u64::MAX - 1));
    assert_eq!(one("connection"), i128::from(u32::MAX));
    assert_eq!((one("backend_pid"), one("kind"), one("outcome"), one("statements"), one("error")), (77, 4, 3, 5, 513));
    assert_eq!((one("retries"), one("requests")), (70_000, 400_000));
    assert!(table.column("unheard_of").is_none());
}

#[test]
fn a_table_cut_anywhere_gives_its_whole_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.npy");
    let mut writer = SeriesWriter::create(&path, &["ctxt"]).unwrap();
    (0..5).for_each(|t| writer.sample(t, &[10 * t]).unwrap());
    drop(writer);
    let bytes = std::fs::read(&path).unwrap();
    let header = bytes.len() - 5 * 16;
    for kept in header..=bytes.len() {
        std::fs::write(&path, &bytes[..kept]).unwrap();
        let table = Table::read(&path).unwrap();
        assert_eq!(table.claimed_rows, 0, "an unclosed header claims nothing");
        let times: Vec<i128> = (0..5).take((kept - header) / 16).collect();
        assert_eq!(table.column("t_ns").unwrap(), times);
    }
    std::fs::write(&path, &bytes[..header - 1]).unwrap();
    assert!(Table::read(&path).unwrap_err().to_string().contains("cut short"));
}

#[test]
fn latency_keeps_every_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latency.npy");
    let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    (1..=1000u64).for_each(|v| histogram.record(v * v).unwrap());
    write_latency(&path, &[hdrhistogram::Histogram::new(3).unwrap(), histogram]).unwrap();
    let table = Table::read(&path).unwrap();
    assert_eq!(table.column("count").unwrap().iter().sum::<i128>(), 1000);
    assert!(table.column("kind").unwrap().iter().all(|&kind| kind == 1));
    let (low, high) = (table.column("low_ns").unwrap(), table.column("high_ns").unwrap());
    assert!(low.iter().zip(&high).all(|(low, high)| *high == low + 1 || (low < high && (high - low) * 999 <= *high)));
    assert!(high.iter().zip(&low[1..]).all(|(high, next)| high <= next));
}

#[test]
fn seconds_keep_every_count_by_second_and_kind() {
    let folder = tempfile::tempdir().unwrap();
    let (latency, lag) = (folder.path().join("latency_seconds.npy"), folder.path().join("lag_seconds.npy"));
    let mut histogram = hdrhistogram::Histogram::<u32>::new_with_bounds(1, 1 << 40, 2).unwrap();
    (1..=1000u64).for_each(|v| histogram.record(v * v).unwrap());
    let mut writer = SecondsWriter::latency(&latency).unwrap();
    [(0, 1), (0, 2), (7, 1)].into_iter().for_each(|(second, kind)| writer.second(second, kind, &histogram).unwrap());
    writer.close().unwrap();
    let mut writer = SecondsWriter::lag(&lag).unwrap();
    [0, 7].into_iter().for_each(|second| writer.second(second, 9, &histogram).unwrap());
    writer.close().unwrap();
    let table = Table::read(&latency).unwrap();
    let column = |name: &str| table.column(name).unwrap();
    let of = |second: i128, kind: i128| -> i128 {
        let keys = column("second").into_iter().zip(column("kind"));
        keys.zip(column("count")).filter(|(key, _)| *key == (second, kind)).map(|(_, count)| count).sum()
    };
    assert_eq!([of(0, 1), of(0, 2), of(7, 1), of(7, 2)], [1000, 1000, 1000, 0]);
    let (low, high) = (column("low_ns"), column("high_ns"));
    assert!(low.iter().zip(&high).all(|(low, high)| *high == low + 1 || (low < high && (high - low) * 99 <= *high)));
    let table = Table::read(&lag).unwrap();
    assert!(table.column("kind").is_none());
    assert_eq!(table.column("count").unwrap().iter().sum::<i128>(), 2000);
}

#[test]
fn windows_come_back_before_their_table_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windows.npy");
    let mut writer = WindowWriter::create(&path).unwrap();
    let row = |round| WindowRow {
        round,
        position: u32::MAX,
        opened_ns: -1,
        closed_ns: i64::MAX,
        drained_ns: 1 << 40,
        first_index: u64::MAX,
        next_index: 7,
        done: 1,
        failed: 2,
        skipped: 3,
        lost: 1 << 50,
    };
    writer.append(&row(1)).unwrap();
    writer.append(&row(2)).unwrap();
    let read = || Table::read(&path).unwrap();
    let of = |name: &str| read().column(name).unwrap()[1];
    assert_eq!((read().len(), read().claimed_rows), (2, 0), "a kill now would lose neither");
    assert_eq!((of("round"), of("position"), of("opened_ns")), (2, i128::from(u32::MAX), -1));
    assert_eq!((of("closed_ns"), of("drained_ns")), (i128::from(i64::MAX), 1 << 40));
    assert_eq!((of("first_index"), of("next_index")), (i128::from(u64::MAX), 7));
    assert_eq!((of("done"), of("failed"), of("skipped"), of("lost")), (1, 2, 3, 1 << 50));
    assert_eq!(writer.close().unwrap(), 2);
    assert_eq!(read().claimed_rows, 2);
}
