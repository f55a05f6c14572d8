//! What the server has answered to the round trip under way, against what it must answer.

use crate::workload::{Expect, Workload};
use bytes::BytesMut;
use plimsoll_target::postgres::Form;
use plimsoll_target::postgres::wire::{ServerError, command_tag, row_values};

/// The answer so far.
#[derive(Debug)]
pub(super) struct Answer {
    expect: Expect,
    /// Rows of the statement that is being answered.
    rows: u64,
    /// Rows of the last statement that was answered.
    rows_of_last: u64,
    tag_matches: bool,
    wrong: Option<String>,
    refusal: Option<Box<ServerError>>,
    /// Room for the row that is expected.
    expected: BytesMut,
}

impl Default for Answer {
    fn default() -> Self {
        let expected = BytesMut::with_capacity(1024);
        let (wrong, refusal) = (None, None);
        Self { expect: Expect::Nothing, rows: 0, rows_of_last: 0, tag_matches: false, wrong, refusal, expected }
    }
}

impl Answer {
    /// A round trip was queued that must be answered by `expect`.
    #[inline]
    pub(super) fn expect(&mut self, expect: Expect) {
        self.expect = expect;
        (self.wrong, self.refusal) = (None, None);
        (self.rows, self.rows_of_last, self.tag_matches) = (0, 0, false);
    }

    /// A DataRow came.
    #[inline]
    pub(super) fn row<W: Workload>(&mut self, body: &[u8], workload: &W, client: &mut W::Client, form: Form) {
        self.rows += 1;
        match self.expect {
            Expect::Row { table, key } => {
                self.expected.clear();
                workload.expected_row(table, key, form, &mut self.expected);
                if body != &self.expected[..] {
                    self.wrong = Some(difference(workload.columns(table), key, body, &self.expected));
                }
            }
            Expect::OneRow | Expect::AnyRows | Expect::Judged => workload.row(client, body),
            Expect::Tag(_) | Expect::Nothing => {}
        }
    }

    /// A CommandComplete came, or an EmptyQueryResponse.
    #[inline]
    pub(super) fn completed<W: Workload>(&mut self, body: &[u8], workload: &W, client: &mut W::Client) {
        self.rows_of_last = std::mem::take(&mut self.rows);
        let wanted = match self.expect {
            Expect::Judged => return workload.completed(client, command_tag(body)),
            Expect::Row { .. } | Expect::OneRow | Expect::AnyRows | Expect::Nothing => return,
            Expect::Tag(tag) => tag,
        };
        self.tag_matches |= command_tag(body) == wanted;
    }

    /// An ErrorResponse came; the first of a round trip counts.
    #[cold]
    pub(super) fn refused(&mut self, error: ServerError) {
        self.refusal.get_or_insert(Box::new(error));
    }

    /// Why the server refused, if it did.
    #[inline]
    pub(super) fn take_refusal(&mut self) -> Option<ServerError> {
        self.refusal.take().map(|error| *error)
    }

    /// True if rows are compared with what they must be.
    #[inline]
    pub(super) fn is_compared(&self) -> bool {
        matches!(self.expect, Expect::Row { .. } | Expect::OneRow | Expect::Judged)
    }

    /// What is wrong with the whole of it, in words.
    #[inline]
    pub(super) fn wrong<W: Workload>(&mut self, workload: &W, client: &W::Client) -> Option<String> {
        let right = match self.expect {
            Expect::Judged => return workload.verdict(client),
            Expect::Row { .. } => self.wrong.is_none() && self.rows_of_last == 1,
            Expect::OneRow => self.rows_of_last == 1,
            Expect::Tag(_) => self.tag_matches,
            Expect::AnyRows | Expect::Nothing => true,
        };
        if right { None } else { Some(self.in_words(workload)) }
    }

    #[cold]
    fn in_words<W: Workload>(&mut self, workload: &W) -> String {
        if let Some(wrong) = self.wrong.take() {
            return wrong;
        }
        let rows = self.rows_of_last;
        match self.expect {
            Expect::Row { table, key } => format!("{} {key}: {rows} rows instead of one", workload.columns(table).0),
            Expect::Tag(tag) => format!("the server did not answer {}", tag.escape_ascii()),
            Expect::OneRow | Expect::AnyRows | Expect::Judged | Expect::Nothing => {
                format!("{rows} rows instead of one")
            }
        }
    }
}

/// Names the first column in which two rows differ.
#[cold]
fn difference((table, columns): (&str, Vec<&str>), key: i64, found: &[u8], expected: &[u8]) -> String {
    let (Some(found), Some(expected)) = (row_values(found), row_values(expected)) else {
        return format!("{table} {key}: a malformed row");
    };
    let place = (0..expected.len().max(found.len())).find(|&place| found.get(place) != expected.get(place));
    match place.and_then(|place| columns.get(place)) {
        Some(column) => format!("{table} {key}: {column} differs"),
        None => format!("{table} {key}: {} columns instead of {}", found.len(), expected.len()),
    }
}
