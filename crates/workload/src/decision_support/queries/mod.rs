//! The 22 queries derived from TPC-H, in our own formatting: their texts, their parameters and their order in a stream.
//!
//! The fact that constrains it: a text is a pure function of (seed, stream, query, scale factor), so that any client of any
//! server, in any process, runs the same ones, and a result can be traced to its text without having stored it.
//!
//! `qNN.sql` is a query: the first line says what it asks, names in braces are its parameters. Texts keep to what PostgreSQL
//! and DuckDB both understand. Query 15 is the approved variant without a view, so that streams need no names of their own.

mod answers;
mod domains;
mod draws;
mod orders;

pub use answers::{Answer, AnswerError, answer};
pub use draws::Ranges;
use draws::Values;
pub use orders::QUERIES;

use serde::Serialize;
use std::collections::BTreeMap;

const TEXTS: [&str; QUERIES as usize] = [
    include_str!("q01.sql"),
    include_str!("q02.sql"),
    include_str!("q03.sql"),
    include_str!("q04.sql"),
    include_str!("q05.sql"),
    include_str!("q06.sql"),
    include_str!("q07.sql"),
    include_str!("q08.sql"),
    include_str!("q09.sql"),
    include_str!("q10.sql"),
    include_str!("q11.sql"),
    include_str!("q12.sql"),
    include_str!("q13.sql"),
    include_str!("q14.sql"),
    include_str!("q15.sql"),
    include_str!("q16.sql"),
    include_str!("q17.sql"),
    include_str!("q18.sql"),
    include_str!("q19.sql"),
    include_str!("q20.sql"),
    include_str!("q21.sql"),
    include_str!("q22.sql"),
];

/// One query with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Query {
    /// 1 to [`QUERIES`].
    pub query: u32,
    /// The business question's name.
    pub title: &'static str,
    /// What was drawn, or the validation's values.
    pub parameters: BTreeMap<&'static str, String>,
    /// The most rows that its text asks for; `None` if it asks for all.
    pub rows_max: Option<u32>,
    /// The text for the server: one statement, without a semicolon.
    pub sql: String,
}

/// What decides the texts of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// The size of the data, 1 for about 1 GB; query 11 asks for a share that depends on it.
    pub scale_factor: f64,
    /// The seed of stream 0, the power test.
    pub seed: u64,
    /// From where parameters are drawn.
    pub ranges: Ranges,
}

impl Source {
    /// The queries of `stream` in its order: 0 is the power test, 1 and up are those of the throughput test.
    pub fn stream(&self, stream: u32) -> Vec<Query> {
        let drawn = |&query: &u8| {
            let query = u32::from(query);
            filled(
                query,
                draws::drawn(query, self.seed.wrapping_add(u64::from(stream)), self.scale_factor, self.ranges),
            )
        };
        orders::of_stream(stream).iter().map(drawn).collect()
    }
}

/// The queries in the order of their numbers with the parameters of which the answers at scale factor 1 are known.
pub fn validation() -> Vec<Query> {
    (1..=QUERIES).map(|query| filled(query, draws::validation(query))).collect()
}

/// The query's text with `values` in the place of the names; `query` is of 1 to [`QUERIES`].
fn filled(query: u32, values: Values) -> Query {
    let text = TEXTS[query as usize - 1];
    let (first, body) = text.split_once('\n').unwrap_or(("", text));
    let title = first.trim_start_matches("-- ").split(':').next().unwrap_or_default();
    let place = |sql: String, (name, value): (&&str, &String)| sql.replace(&format!("{{{name}}}"), value);
    let sql = values.iter().fold(body.trim_end().to_owned(), place);
    let rows_max = body.rsplit_once("\nlimit ").and_then(|(_, rows)| rows.trim().parse().ok());
    Query { query, title, parameters: values, rows_max, sql }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source { scale_factor: 1.0, seed: 1_022_113_041, ranges: Ranges::Specified };

    #[test]
    fn every_name_is_filled_and_every_value_used() {
        let drawn = (0..50).flat_map(|stream| SOURCE.stream(stream));
        for query in drawn.chain(validation()) {
            assert!(!query.sql.contains(['{', '}', ';']), "{}", query.sql);
            let text = TEXTS[query.query as usize - 1];
            for name in query.parameters.keys() {
                assert!(text.contains(&format!("{{{name}}}")), "query {}: {name} is not in its text", query.query);
            }
            assert!(query.sql.starts_with("select ") || query.sql.starts_with("with "), "{}", query.sql);
            assert!(!query.title.is_empty() && query.title.len() < 40, "query {}: {:?}", query.query, query.title);
        }
    }

    #[test]
    fn five_queries_ask_for_so_many_rows_and_no_more() {
        let limits: Vec<_> = validation().iter().filter_map(|query| Some((query.query, query.rows_max?))).collect();
        assert_eq!(limits, [(2, 100), (3, 10), (10, 20), (18, 100), (21, 100)]);
    }

    #[test]
    fn a_text_hangs_on_seed_and_stream_alone() {
        assert_eq!(SOURCE.stream(3), SOURCE.stream(3));
        // Seeds are added up as the specification has it: stream s of a seed draws as stream 0 of the seed plus s.
        let by_number = |mut queries: Vec<Query>| {
            queries.sort_by_key(|query| query.query);
            queries
        };
        let later = Source { seed: SOURCE.seed + 3, ..SOURCE };
        assert_eq!(by_number(SOURCE.stream(3)), by_number(later.stream(0)));
        assert_ne!(by_number(SOURCE.stream(3)), by_number(SOURCE.stream(4)));
    }

    #[test]
    fn a_stream_has_its_order() {
        let order: Vec<u32> = SOURCE.stream(1).iter().map(|query| query.query).collect();
        assert_eq!(order[..5], [21, 3, 18, 5, 11]);
        let numbers: Vec<u32> = validation().iter().map(|query| query.query).collect();
        assert_eq!(numbers, (1..=QUERIES).collect::<Vec<_>>());
    }
}
