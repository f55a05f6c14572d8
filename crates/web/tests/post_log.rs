//! The server's log of POSTs: every answered one is in it once; each planted fault is found and named.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Check;
use plimsoll_web::post_log::{COUNT_BYTES, Posted, RECORD_BYTES, Sent, body, check, count_line, number, record};
use plimsoll_web::{Kind, Mix};
use serde_json::json;
use support::mix;

const NAMES: [&str; 6] = ["count", "answered and not", "more than once", "differ", "nobody sent", "out of their order"];

fn posts(mix: &Mix, count: usize) -> Vec<u64> {
    (1_000..).filter(|&index| mix.request(index).kind == Kind::Post).take(count).collect()
}

fn line(mix: &Mix, sequence: u64, index: u64) -> String {
    let request = mix.request(index);
    let (place, name) = (request.place, request.place.path());
    let client = u64::from(request.user_number());
    let posted = Posted {
        directory: place.directory,
        class: place.class,
        file: place.file,
        client,
        name: &name,
        cookie: number(index),
    };
    record(sequence, 1_700_000_000, 4711, &posted)
}

fn log(mix: &Mix, indexes: &[u64]) -> Vec<u8> {
    let lines: String = (1..).zip(indexes).map(|(sequence, &index)| line(mix, sequence, index)).collect();
    (count_line(indexes.len() as u64) + &lines).into_bytes()
}

fn judged(mix: &Mix, log: &[u8], acknowledged: &[u64]) -> Vec<Check> {
    let request = |index| mix.request(index);
    check(log, &Sent { taken: &[1_000..5_000, 5_000..9_000], acknowledged, request: &request })
}

/// The only check that fails, with what was found.
fn fault(checks: &[Check]) -> (usize, &str) {
    assert!(checks.iter().zip(NAMES).all(|(check, name)| check.name.contains(name)));
    let wrong: Vec<usize> = (0..checks.len()).filter(|&place| !checks[place].ok).collect();
    assert_eq!(wrong.len(), 1, "{checks:?}");
    (wrong[0], &checks[wrong[0]].found)
}

#[test]
fn records_have_their_length() {
    let mix = mix(json!({}));
    let index = posts(&mix, 1)[0];
    assert_eq!((line(&mix, 1, index).len(), count_line(17).len()), (RECORD_BYTES, COUNT_BYTES));
    let body = body(&mix.request(index));
    assert!(body.starts_with("urlroot=/web&dir=") && body.contains("&class=") && body.contains("&client=1"), "{body}");
}

#[test]
fn a_log_with_every_post_once_passes_whatever_their_order() {
    let mix = mix(json!({}));
    let mut indexes = posts(&mix, 50);
    let acknowledged = indexes.clone();
    indexes.reverse();
    assert!(judged(&mix, &log(&mix, &indexes), &acknowledged).iter().all(|check| check.ok));
    assert!(judged(&mix, &log(&mix, &[]), &[]).iter().all(|check| check.ok));
    assert!(
        judged(&mix, &log(&mix, &indexes), &acknowledged[3..]).iter().all(|check| check.ok),
        "one without an answer may be there"
    );
}

#[test]
fn each_planted_fault_is_found() {
    let mix = mix(json!({}));
    let indexes = posts(&mix, 50);
    let without: Vec<u64> = indexes.iter().copied().filter(|&index| index != indexes[7]).collect();
    assert_eq!(
        fault(&judged(&mix, &log(&mix, &without), &indexes)),
        (1, format!("1: {}", indexes[7]).as_str()),
        "lost"
    );
    let mut twice = indexes.clone();
    twice.insert(20, indexes[3]);
    assert_eq!(fault(&judged(&mix, &log(&mix, &twice), &indexes)), (2, format!("1: {}", indexes[3]).as_str()), "twice");

    let whole = log(&mix, &indexes);
    let text = String::from_utf8(whole.clone()).unwrap();
    let changed = text.replacen("/file_set/dir0", "/file_set/dir1", 1);
    assert_eq!(fault(&judged(&mix, changed.as_bytes(), &indexes)).0, 3);
    let miscounted = text.replacen("        50\n", "        49\n", 1);
    assert_eq!(fault(&judged(&mix, miscounted.as_bytes(), &indexes)), (0, "49"));
    let mut foreign = indexes.clone();
    foreign.push((1_000..).find(|&index| mix.request(index).kind == Kind::Static).unwrap());
    assert_eq!(fault(&judged(&mix, &log(&mix, &foreign), &indexes)), (4, "1: record 51"), "that index was no POST");
    foreign[50] = (9_000..).find(|&index| mix.request(index).kind == Kind::Post).unwrap();
    assert_eq!(fault(&judged(&mix, &log(&mix, &foreign), &indexes)), (4, "1: record 51"), "that index was not taken");
    let swapped = [
        &whole[..COUNT_BYTES],
        &whole[COUNT_BYTES + RECORD_BYTES..][..RECORD_BYTES],
        &whole[COUNT_BYTES..][..RECORD_BYTES],
        &whole[COUNT_BYTES + 2 * RECORD_BYTES..],
    ]
    .concat();
    assert_eq!(fault(&judged(&mix, &swapped, &indexes)), (5, "2: record 1, record 2"));
}

#[test]
fn a_torn_record_is_no_record() {
    let mix = mix(json!({}));
    let indexes = posts(&mix, 10);
    let whole = log(&mix, &indexes);
    let checks = judged(&mix, &whole[..whole.len() - 30], &indexes);
    let wrong: Vec<usize> = (0..checks.len()).filter(|&place| !checks[place].ok).collect();
    assert_eq!(wrong, [0, 1, 4], "the count, the lost one, and what is left of it: {checks:?}");
    assert_eq!(
        judged(&mix, b"", &indexes)[1].found,
        format!("10: {}", indexes[..5].iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
    );
}
