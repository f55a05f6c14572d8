//! The answers that are known: those of the validation's parameters on the data of scale factor 1, before any refresh.
//!
//! The fact that constrains it: they come from the generator's crate each time they are asked for; none is kept as a file of
//! ours, because its header says that they derive from TPC's own tools.

use serde::Serialize;
use tpchgen::q_and_a::QueryAndAnswer;

/// The only scale factor with known answers.
const SCALE_FACTOR: f64 = 1.0;
const SEPARATOR: char = '|';

/// The answer to one query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// 1 to [`QUERIES`](super::QUERIES).
    pub query: u32,
    /// Each row's columns as they are printed, trailing blanks cut off; numbers may have blanks before them.
    pub rows: Vec<Vec<String>>,
}

/// The crate has no answer, or one that is not a table.
#[derive(Debug, thiserror::Error)]
#[error("the answer to query {query}: {reason}; is the crate tpchgen another version?")]
pub struct AnswerError {
    query: u32,
    reason: String,
}

/// The answer to `query` on the data of scale factor 1.
///
/// # Errors
/// When there is none: `query` is not of 1 to [`QUERIES`](super::QUERIES), or the crate's text is not a table.
pub fn answer(query: u32) -> Result<Answer, AnswerError> {
    let refused = |reason: String| AnswerError { query, reason };
    let known = QueryAndAnswer::new(query as i32, SCALE_FACTOR).map_err(refused)?;
    let mut lines = known.answer().lines().filter(|line| !line.trim().is_empty());
    let columns = lines.next().map_or(0, |line| line.split(SEPARATOR).count());
    let row = |line: &str| line.split(SEPARATOR).map(|column| column.trim_end().to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = lines.map(row).collect();
    match rows.iter().position(|row| row.len() != columns) {
        Some(at) => Err(refused(format!("row {} has not {columns} columns like its header", at + 1))),
        None => Ok(Answer { query, rows }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::QUERIES;
    use super::*;

    #[test]
    fn answers_have_the_known_numbers_of_rows() {
        let rows = [4, 100, 10, 5, 5, 1, 4, 2, 175, 20, 1048, 2, 42, 1, 1, 18_314, 1, 57, 1, 186, 100, 7];
        let found: Vec<usize> = (1..=QUERIES).map(|query| answer(query).unwrap().rows.len()).collect();
        assert_eq!(found, rows);
    }

    #[test]
    fn single_values_are_the_known_ones() {
        for (query, value) in [(6, "123141078.23"), (14, "16.38"), (17, "348406.02"), (19, "3083843.06")] {
            assert_eq!(answer(query).unwrap().rows, [[value]]);
        }
        let first = answer(1).unwrap().rows.swap_remove(0);
        assert_eq!((first.len(), first[0].as_str(), first[9].as_str()), (10, "A", "1478493"));
    }

    #[test]
    fn there_is_no_other_query() {
        for query in [0, 23] {
            assert!(answer(query).unwrap_err().to_string().contains(&query.to_string()));
        }
    }
}
