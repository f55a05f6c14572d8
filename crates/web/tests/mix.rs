//! The mix over a million requests, within bounds of what its parameters say.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_web::{Kind, Mix, Parameters};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::{DIRECTORIES, mix, parameters};

const REQUESTS: u64 = 1_000_000;
/// Beyond five standard deviations a right mix lies once in two million times.
const DEVIATIONS: f64 = 5.0;

fn within(what: &str, found: u64, of: u64, share: f64) {
    let (found, of) = (found as f64, of as f64);
    let deviation = (of * share * (1.0 - share)).sqrt();
    let distance = (found - of * share).abs();
    assert!(distance <= DEVIATIONS * deviation, "{what}: {found} of {of}, not {share}");
}

#[test]
fn kinds_classes_files_and_directories_have_their_shares() {
    let mix = mix(json!({}));
    let (mut kinds, mut classes, mut files, mut directories) = ([0u64; 5], [0u64; 4], [0u64; 9], BTreeMap::new());
    let mut static_classes = [0u64; 4];
    for request in (0..REQUESTS).map(|index| mix.request(index)) {
        kinds[request.kind as usize] += 1;
        classes[usize::from(request.place.class)] += 1;
        files[usize::from(request.place.file)] += 1;
        *directories.entry(request.place.directory).or_insert(0u64) += 1;
        if request.kind == Kind::Static {
            static_classes[usize::from(request.place.class)] += 1;
        }
        assert!(request.user < 2_000 && request.last_ad < 360);
    }
    let percent = |name, found: &[u64], of, shares: &[f64]| {
        found
            .iter()
            .zip(shares)
            .enumerate()
            .for_each(|(place, (&found, share))| within(&format!("{name} {place}"), found, of, share / 100.0));
    };
    percent("kind", &kinds, REQUESTS, &[70.0, 12.45, 0.15, 12.6, 4.8]);
    percent("class", &classes, REQUESTS, &[35.0, 50.0, 14.0, 1.0]);
    percent("class of static requests", &static_classes, kinds[0], &[35.0, 50.0, 14.0, 1.0]);
    // Zipf's law over nine ranks: 1/r over their sum.
    let sum: f64 = (1..=9).map(|rank| 1.0 / f64::from(rank)).sum();
    for (rank, file) in [4, 3, 5, 2, 6, 1, 7, 8, 0].into_iter().enumerate() {
        within(&format!("file {file}"), files[file], REQUESTS, 1.0 / (rank as f64 + 1.0) / sum);
    }
    let harmonic: f64 = (1..=DIRECTORIES).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut counts: Vec<u64> = directories.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(counts.len(), DIRECTORIES as usize);
    for (rank, found) in counts.into_iter().enumerate() {
        within(&format!("directory of rank {}", rank + 1), found, REQUESTS, 1.0 / (rank as f64 + 1.0) / harmonic);
    }
}

#[test]
fn the_mean_file_is_as_large_as_the_shares_say() {
    let mix = mix(json!({"mix": {"static": 1}}));
    let bytes: u64 = (0..REQUESTS).map(|index| mix.request(index).place.size() as u64).sum();
    let mean = bytes as f64 / REQUESTS as f64;
    // 14,727 by the shares; the standard deviation of one is about 50 KB.
    assert!((mean - 14_727.0).abs() < 300.0, "{mean}");
}

#[test]
fn requests_are_shared_out_between_the_kinds_of_connection() {
    let mix = mix(json!({"persistent": 0.7, "requests_a_connection": [5, 15], "http_1_0": 0.25}));
    let (mut persistent, mut single, mut old, mut lengths) = (0u64, 0u64, 0u64, [0u64; 16]);
    for connection in (0..REQUESTS).map(|index| mix.connection(index)) {
        old += u64::from(connection.old);
        if connection.requests == 1 {
            single += 1;
        } else {
            persistent += u64::from(connection.requests);
            lengths[connection.requests as usize] += 1;
        }
    }
    let share = persistent as f64 / (persistent + single) as f64;
    assert!((share - 0.7).abs() < 0.003, "{share}");
    within("HTTP/1.0", old, REQUESTS, 0.25);
    let all: u64 = lengths.iter().sum();
    (5..16).for_each(|length| within(&format!("{length} requests"), lengths[length], all, 1.0 / 11.0));
    assert_eq!(lengths[..5].iter().sum::<u64>(), 0);
}

#[test]
fn the_extremes_are_exact() {
    let always = mix(
        json!({"persistent": 1.0, "requests_a_connection": [7, 7], "http_1_0": 1.0, "zipf": 0, "mix": {"post": 3}}),
    );
    let never = mix(json!({"persistent": 0.0, "http_1_0": 0.0, "mix": {"cgi": 0.01}, "classes": [0, 0, 0, 2]}));
    for index in 0..10_000 {
        let (kept, closed) = (always.connection(index), never.connection(index));
        assert!(kept.old && kept.requests == 7 && !closed.old && closed.requests == 1);
        assert_eq!((always.request(index).kind, never.request(index).kind), (Kind::Post, Kind::Cgi));
        assert_eq!(never.request(index).place.class, 3);
    }
}

#[test]
fn seed_and_index_decide_everything() {
    let (one, same, other) = (mix(json!({})), mix(json!({})), mix(json!({"seed": 21})));
    assert!(
        (0..1000)
            .rev()
            .all(|index| one.request(index) == same.request(index) && one.connection(index) == same.connection(index))
    );
    assert!((0..1000).filter(|&index| one.request(index) == other.request(index)).count() < 5);
}

#[test]
fn wrong_parameters_are_named() {
    for (more, field) in [
        (json!({"mix": {"static": 0}}), "mix"),
        (json!({"mix": {"static": 1, "post": -1}}), "mix"),
        (json!({"classes": [0, 0, 0, 0]}), "classes"),
        (json!({"files": [1, 1, 1, 1, -1, 1, 1, 1, 1]}), "files"),
        (json!({"persistent": 1.1}), "persistent"),
        (json!({"http_1_0": -0.1}), "http_1_0"),
        (json!({"zipf": -1}), "zipf"),
        (json!({"users": 0}), "users"),
        (json!({"users": 90_001}), "users"),
        (json!({"requests_a_connection": [0, 5]}), "requests_a_connection"),
        (json!({"requests_a_connection": [6, 5]}), "requests_a_connection"),
        (json!({"line_bits_per_s": 1}), "line_bits_per_s"),
        (json!({"read_bytes": 0}), "read_bytes"),
        (json!({"receive_buffer_bytes": 1}), "receive_buffer_bytes"),
        (json!({"deadline_ms": 0}), "deadline_ms"),
    ] {
        let refused = Mix::new(&parameters(more.clone()), DIRECTORIES).unwrap_err();
        assert!(refused.starts_with(field), "{more}: {refused}");
    }
    let unknown: Result<Parameters, _> =
        serde_json::from_value::<Parameters>(json!({"seed": 1, "directories": 1, "mixx": 1}));
    assert!(unknown.unwrap_err().to_string().contains("mixx"));
    let unknown: Result<Parameters, _> = serde_json::from_value::<Parameters>(Value::Null);
    assert!(unknown.is_err());
}
