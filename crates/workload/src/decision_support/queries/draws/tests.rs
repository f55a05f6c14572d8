//! Ranges are kept and reached: what many streams draw is the whole domain and nothing else.

use super::*;
use std::collections::BTreeSet;

const STREAMS: u64 = 4_000;

/// What `query` drew for `name` in all streams, in order.
fn seen(query: u32, name: &str, ranges: Ranges) -> Vec<String> {
    let all: BTreeSet<String> = (0..STREAMS).map(|seed| drawn(query, seed, 1.0, ranges)[name].clone()).collect();
    all.into_iter().collect()
}

/// First, last and count.
fn ends(query: u32, name: &str, ranges: Ranges) -> (String, String, usize) {
    let seen = seen(query, name, ranges);
    (seen[0].clone(), seen[seen.len() - 1].clone(), seen.len())
}

fn expected(first: &str, last: &str, count: usize) -> (String, String, usize) {
    (first.to_owned(), last.to_owned(), count)
}

fn numbers(query: u32, name: &str) -> (i64, i64, usize) {
    let seen: BTreeSet<i64> = seen(query, name, Ranges::Specified).iter().map(|text| text.parse().unwrap()).collect();
    (*seen.first().unwrap(), *seen.last().unwrap(), seen.len())
}

#[test]
fn numbers_fill_their_ranges() {
    for (query, name, low, high) in [
        (1, "delta", 60, 120),
        (2, "size", 1, 50),
        (6, "quantity", 24, 25),
        (18, "quantity", 312, 315),
        (19, "quantity1", 1, 10),
        (19, "quantity2", 10, 20),
        (19, "quantity3", 20, 30),
        (16, "size8", 1, 50),
        (22, "code7", 10, 34),
    ] {
        assert_eq!(numbers(query, name), (low, high, (high - low + 1) as usize), "query {query}, {name}");
    }
}

#[test]
fn dates_fill_their_ranges() {
    for (query, first, last, count) in [
        (3, "1995-03-01", "1995-03-31", 31),
        (4, "1993-01-01", "1997-10-01", 58),
        (5, "1993-01-01", "1997-01-01", 5),
        (6, "1993-01-01", "1997-01-01", 5),
        (10, "1993-02-01", "1995-01-01", 24),
        (12, "1993-01-01", "1997-01-01", 5),
        (14, "1993-01-01", "1997-12-01", 60),
        (15, "1993-01-01", "1997-10-01", 58),
        (20, "1993-01-01", "1997-01-01", 5),
    ] {
        assert_eq!(ends(query, "date", Ranges::Specified), expected(first, last, count), "query {query}");
    }
}

#[test]
fn words_fill_their_domains() {
    for (query, name, first, last, count) in [
        (2, "type", "BRASS", "TIN", 5),
        (2, "region", "AFRICA", "MIDDLE EAST", 5),
        (3, "segment", "AUTOMOBILE", "MACHINERY", 5),
        (6, "discount", "0.02", "0.09", 8),
        (7, "nation2", "ALGERIA", "VIETNAM", 25),
        (8, "type", "ECONOMY ANODIZED BRASS", "STANDARD POLISHED TIN", 150),
        (9, "color", "almond", "yellow", 92),
        (12, "shipmode2", "AIR", "TRUCK", 7),
        (13, "word1", "express", "unusual", 4),
        (13, "word2", "accounts", "requests", 4),
        (16, "brand", "Brand#11", "Brand#55", 25),
        (16, "type", "ECONOMY ANODIZED", "STANDARD POLISHED", 30),
        (17, "container", "JUMBO BAG", "WRAP PKG", 40),
        (19, "brand3", "Brand#11", "Brand#55", 25),
        (20, "color", "almond", "yellow", 92),
        (21, "nation", "ALGERIA", "VIETNAM", 25),
    ] {
        assert_eq!(ends(query, name, Ranges::Specified), expected(first, last, count), "query {query}, {name}");
    }
}

#[test]
fn those_that_must_differ_do() {
    for seed in 0..STREAMS {
        for query in [7, 12, 16, 22] {
            let mut found = drawn(query, seed, 1.0, Ranges::Specified);
            for name in ["date", "brand", "type"] {
                found.remove(name);
            }
            let distinct: BTreeSet<&String> = found.values().collect();
            assert_eq!(distinct.len(), found.len(), "query {query}, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn a_nation_goes_with_its_region() {
    for seed in 0..STREAMS {
        let found = drawn(8, seed, 1.0, Ranges::Specified);
        let nation = (0..domains::nations()).map(domains::nation).find(|nation| nation.name == found["nation"]);
        assert_eq!(nation.unwrap().region, found["region"]);
    }
}

#[test]
fn the_old_generator_differs_in_two_queries() {
    assert_eq!(ends(4, "date", Ranges::Qgen214), expected("1993-02-01", "1997-11-01", 58));
    assert_eq!(ends(22, "code1", Ranges::Qgen214), expected("20", "44", 25));
    for query in (1..=QUERIES).filter(|query| ![4, 22].contains(query)) {
        assert_eq!(drawn(query, 7, 1.0, Ranges::Qgen214), drawn(query, 7, 1.0, Ranges::Specified), "query {query}");
    }
}

#[test]
fn the_share_of_query_11_shrinks_with_the_data() {
    for (scale_factor, text) in [(0.01, "0.01"), (1.0, "0.0001"), (10.0, "0.00001"), (30.0, "0.0000033333")] {
        assert_eq!(drawn(11, 1, scale_factor, Ranges::Specified)["fraction"], text);
    }
}

#[test]
fn values_do_not_move() {
    // Results of different runs are compared by their seed; a change here makes them results of other queries.
    let found = drawn(16, 42, 1.0, Ranges::Specified);
    let listed: Vec<&str> = found.values().map(String::as_str).collect();
    assert_eq!(listed, ["Brand#22", "41", "16", "21", "17", "24", "43", "7", "1", "LARGE POLISHED"]);
}
