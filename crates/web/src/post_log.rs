//! What a server keeps of the POSTs: a count, and a record of each in the order in which they were taken.
//!
//! The fact that constrains it: a record's cookie is the number of the POST, so that each is known again and none can stand for
//! another. A POST that was answered is there once; one without an answer may be there once.

use crate::ads::FIRST_USER;
use crate::mix::{Kind, Request};
use plimsoll_record::Check;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Bytes of the count and its line's end.
pub const COUNT_BYTES: usize = 11;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 139;
/// Numbers of POSTs have ten digits.
const NUMBERS: u64 = 10_000_000_000;
/// Fields of a record.
const FIELDS: usize = 10;
const COOKIE_FIELD: usize = 9;
/// POSTs that are wrong are named up to here.
const NAMED_MAX: usize = 5;

/// The number by which the POST with this index is known in the log.
pub fn number(index: u64) -> u64 {
    index % NUMBERS
}

/// A POST as a server takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted<'a> {
    /// Of the file named.
    pub directory: u32,
    /// Its class.
    pub class: u8,
    /// Its number in the class.
    pub file: u8,
    /// Who posted.
    pub client: u64,
    /// Its name.
    pub name: &'a str,
    /// [`number`].
    pub cookie: u64,
}

/// The count as the file begins.
pub fn count_line(records: u64) -> String {
    format!("{records:>10}\n")
}

/// The record of a POST, the `sequence`-th from 1.
pub fn record(sequence: u64, time_s: i64, pid: u32, posted: &Posted<'_>) -> String {
    let Posted { directory, class, file, client, name, cookie } = posted;
    format!(
        "{sequence:>10} {time_s:>10} {pid:>10} {directory:>5} {class:>2} {file:>2} {client:>10} {name:<60.60} {pid:>10} {cookie:>10}\n"
    )
}

/// What a POST tells of `request`.
pub fn body(request: &Request) -> String {
    let mut body = String::new();
    // Writing to a string cannot fail.
    let _ = write_body(request, &mut body);
    body
}

pub(crate) fn write_body(request: &Request, to: &mut impl fmt::Write) -> fmt::Result {
    let (place, client) = (request.place, FIRST_USER + request.user);
    write!(to, "urlroot=/web&dir={}&class={}&num={}&client={client}", place.directory, place.class, place.file)
}

/// What is known of the POSTs of some segments.
pub struct Sent<'a> {
    /// Indexes that were taken.
    pub taken: &'a [Range<u64>],
    /// Those of them that were answered.
    pub acknowledged: &'a [u64],
    /// What is asked with an index.
    pub request: &'a dyn Fn(u64) -> Request,
}

impl Sent<'_> {
    /// The index with this number, if there is one among those taken.
    fn index_of(&self, number: u64) -> Option<u64> {
        let within = |range: &Range<u64>| {
            let base = range.start - range.start % NUMBERS;
            [base + number, base + NUMBERS + number].into_iter().find(|index| range.contains(index))
        };
        self.taken.iter().find_map(within)
    }
}

/// Compares the log with what was sent.
pub fn check(log: &[u8], sent: &Sent<'_>) -> Vec<Check> {
    let (count, records) = log.split_at(log.len().min(COUNT_BYTES));
    let whole = records.len() / RECORD_BYTES;
    let mut found: BTreeMap<u64, u32> = BTreeMap::new();
    let (mut unknown, mut different, mut out_of_order) = (Named::default(), Named::default(), Named::default());
    for (place, bytes) in records.chunks(RECORD_BYTES).enumerate() {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() == RECORD_BYTES && text.ends_with('\n'));
        let Some((sequence, index)) = text.and_then(|text| Some((number_at(text, 0)?, number_at(text, COOKIE_FIELD)?)))
        else {
            unknown.add(format!("record {}", place + 1));
            continue;
        };
        if sequence != place as u64 + 1 {
            out_of_order.add(format!("record {}", place + 1));
        }
        let posted = sent.index_of(index).map(sent.request).filter(|request| request.kind == Kind::Post);
        match posted {
            None => unknown.add(format!("record {}", place + 1)),
            Some(request) => {
                *found.entry(request.index).or_default() += 1;
                if text.is_none_or(|text| !tells(text, &request)) {
                    different.add(request.index.to_string());
                }
            }
        }
    }
    let (mut lost, mut twice) = (Named::default(), Named::default());
    sent.acknowledged.iter().filter(|index| !found.contains_key(index)).for_each(|index| lost.add(index.to_string()));
    found.iter().filter(|(_, times)| **times > 1).for_each(|(index, _)| twice.add(index.to_string()));
    let count = String::from_utf8_lossy(count).trim().to_owned();
    vec![
        Check {
            name: "count of the post log".to_owned(),
            ok: count == whole.to_string(),
            expected: whole.to_string(),
            found: count,
        },
        lost.check("POSTs answered and not in the log"),
        twice.check("POSTs in the log more than once"),
        different.check("POSTs in the log that differ from what was sent"),
        unknown.check("records of the log that nobody sent"),
        out_of_order.check("records of the log out of their order"),
    ]
}

/// The `field`-th field of a record, as a number.
fn number_at(record: &str, field: usize) -> Option<u64> {
    record.split_ascii_whitespace().nth(field)?.parse().ok()
}

fn tells(record: &str, request: &Request) -> bool {
    let fields: Vec<&str> = record.split_ascii_whitespace().collect();
    let place = request.place;
    let client = FIRST_USER + request.user;
    let expected = [
        place.directory.to_string(),
        place.class.to_string(),
        place.file.to_string(),
        client.to_string(),
        place.path(),
    ];
    fields.len() == FIELDS && fields[3..8].iter().zip(&expected).all(|(found, expected)| found == expected)
}

/// Faults that are counted, the first few by name.
#[derive(Default)]
struct Named {
    count: u64,
    named: Vec<String>,
}

impl Named {
    fn add(&mut self, name: String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(name);
        }
    }

    fn check(self, name: &str) -> Check {
        let found = if self.count == 0 { "0".to_owned() } else { format!("{}: {}", self.count, self.named.join(", ")) };
        Check { name: name.to_owned(), expected: "0".to_owned(), found, ok: self.count == 0 }
    }
}
